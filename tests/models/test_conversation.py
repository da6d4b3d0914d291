"""The planner's conversation is one that every provider takes."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import tool_call

from gecko_graph.models.conversation import (
    build_conversation,
    drop_unpaired,
    keep_recent,
    merge_neighbours,
    replace_calls,
)


def called(*ids, text="", **more):
    return AIMessage(text, tool_calls=[tool_call(name="look", args={}, id=each) for each in ids], **more)


def result(identifier):
    return ToolMessage("seen", tool_call_id=identifier)


def kinds(messages):
    return [message.type for message in messages]


texts = st.sampled_from(["", "a", "b\n"]) | st.just([{"type": "text", "text": "c"}]) | st.just(["d"])
spoken = st.one_of(
    st.builds(HumanMessage, texts),
    st.builds(AIMessage, texts),
    st.builds(SystemMessage, texts),
    st.lists(st.sampled_from("123"), min_size=1, max_size=2, unique=True).map(lambda ids: called(*ids)),
    st.builds(lambda each: result(each), st.sampled_from("1234")),
)


@given(conversation=st.lists(spoken, max_size=12), budget=st.sampled_from([0, 5, 1_000]))
@settings(max_examples=50, deadline=None)
def test_whatever_comes_speakers_alternate_and_results_follow_their_calls(conversation, budget):
    seen = merge_neighbours([*build_conversation("ours", conversation, budget=budget), HumanMessage("note")])
    assert kinds(seen)[0] == "system"
    assert "system" not in kinds(seen)[1:]
    due = []
    for before, message in pairwise(seen):
        assert not (before.type == message.type == "human")
        assert not (before.type == message.type == "ai")
        if message.type == "tool":
            assert message.tool_call_id in due
            due.remove(message.tool_call_id)
            continue
        assert not due
        due = [call["id"] for call in getattr(message, "tool_calls", [])]
    assert not due
    assert str(seen[-1].text).endswith("note")


def test_a_long_conversation_begins_at_a_human_turn_and_says_what_is_left_out():
    turns = [
        message
        for n in range(9)
        for message in (HumanMessage(f"ask {n}"), called(f"c{n}"), result(f"c{n}"), AIMessage("x" * 90))
    ]
    seen = build_conversation("ours", [SystemMessage("policy"), *turns, HumanMessage("now")], budget=700)
    assert seen[1].type == "human"
    assert seen[-1].text == "now"
    left_out = len(turns) + 1 - (len(seen) - 1)
    assert left_out > 0
    assert seen[0].text == f"policy\n\nours\n\n(The first {left_out} messages of this conversation are left out.)"


def test_the_task_is_never_left_out_however_long():
    task = HumanMessage("t" * 9_000)
    assert keep_recent([HumanMessage("x"), AIMessage("y"), task], budget=100) == [task]
    assert keep_recent([AIMessage("y" * 200)], budget=100) == [AIMessage("y" * 200)]
    assert keep_recent([], budget=100) == []


def test_calls_without_results_and_results_without_calls_are_not_shown():
    messages = [HumanMessage("a"), result("lost"), called("1", "2", text="both"), result("1"), called("3")]
    seen = drop_unpaired(messages)
    assert kinds(seen) == ["human", "ai", "tool"]
    assert [call["id"] for call in seen[1].tool_calls] == ["1"]
    assert seen[1].text == "both"
    assert [call["id"] for call in messages[2].tool_calls] == ["1", "2"], "the caller's message is not changed"


def test_the_provider_s_raw_calls_go_with_the_calls():
    raw = {"tool_calls": [{"id": "1", "function": {"name": "look", "arguments": "{}"}}], "other": 1}
    blocks = [{"type": "text", "text": "so"}, {"type": "tool_use", "id": "1", "name": "look", "input": {}}]
    message = called("1", "2").model_copy(update={"content": blocks, "additional_kwargs": raw})
    kept = replace_calls(message, message.tool_calls[1:])
    assert kept.content == [{"type": "text", "text": "so"}]
    assert kept.additional_kwargs == {"other": 1}
    assert [call["id"] for call in kept.tool_calls] == ["2"]
