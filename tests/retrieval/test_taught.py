"""Tools found in people's words: a model's own search words, and needs that calls of the thread have served."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from gecko_graph import GeckoContext, Models, RehearsalState, Toolkit, create_gecko, create_gecko_agent, create_toolgate
from gecko_graph.retrieval.index import recall
from gecko_graph.retrieval.search import MOST_TAUGHT, exchange, teach
from tests.agents import call
from tests.retrieval.test_many_tools import DONE, Bound, spec, toolkit
from tests.shop import Acting

pytest.importorskip("bm25s")
THREAD, OTHER = ({"configurable": {"thread_id": name}} for name in "ab")
CONTEXT = GeckoContext(max_retries=0, top_k=3, ladder=("schema",))


def ask(text):
    items = [{"check": "len(calls) > 0"}]
    return {"messages": [("user", text)], "task_state": {"runtime_state": {}}, "checklist": items}


def gecko(*turns, **more):
    model = Bound(turns=list(turns), **more)
    roles = Models(planner=model, searcher=model) if "searcher" in turns[0] else Models(planner=model)
    return create_gecko(toolkit(), model=roles, context=CONTEXT, checkpointer=InMemorySaver()), model


def test_the_index_is_asked_by_a_model_s_own_words_which_are_kept_with_the_task():
    turn = {"planner": [[call("archive_parcel", id="1"), DONE]], "searcher": [{"words": "archive parcel"}]}
    graph, model = gecko(turn)
    graph.invoke(ask("Put what the postman brought out of sight"), THREAD)
    assert model.names[0][0] == "archive_parcel"
    kept = graph.get_state(THREAD).values["bookkeeping"]["search_words"]
    assert kept == ["Put what the postman brought out of sight", "archive parcel"]
    assert "Put what the postman brought out of sight" in model.asked["searcher"][0]


def test_without_words_the_task_s_own_are_searched_for_and_where_all_tools_are_shown_none_are_asked_for():
    turn = {"planner": [[call("print_invoice", id="7"), DONE]], "searcher": [{"nothing": 1}]}
    graph, model = gecko(turn)
    graph.invoke(ask("Print the invoice 7"), THREAD)
    assert model.names[0][0] == "print_invoice"
    model = Bound(turns=[{"planner": [[DONE]]}])
    graph = create_gecko(
        toolkit().select(names=["share_song", "get_song"]), model=Models(planner=model, searcher=model), context=CONTEXT
    )
    graph.invoke(ask("Share a song"))
    assert "searcher" not in model.asked


def test_a_plan_that_was_accepted_teaches_the_thread_what_served_its_task():
    again = {"planner": [[call("archive_parcel", id="2"), DONE]]}
    first = {"planner": [[call("search_tools", query="archive a parcel"), call("archive_parcel", id="1"), DONE]]}
    graph, model = gecko(first, again)
    graph.invoke(ask("Put what the postman brought out of sight"), THREAD)
    assert "archive_parcel" not in model.names[0]
    graph.invoke(ask("Put away what the postman brought today"), THREAD)
    taught = graph.get_state(THREAD).values["bookkeeping"]["taught"]
    assert [each["tool"] for each in taught] == ["archive_parcel"] * 2
    assert model.names[-2][0] == "archive_parcel"
    other, model = gecko(again)
    other.invoke(ask("Put away what the postman brought today"), THREAD)
    assert "archive_parcel" not in model.names[0], "another thread knows nothing of it"


class Parent(RehearsalState):
    checklist: list


def build(kind, store, *planner):
    """A graph that may be a part of another one, and its model."""
    model = Bound(turns=[{"planner": [[*planner, call("archive_parcel", id="1"), DONE]]}])
    common = {"model": Models(planner=model), "context": CONTEXT}
    more = {"checkpointer": InMemorySaver(), "store": store}
    if kind == "agent":
        tools = Toolkit(spec(name, effect="write", real=lambda id: {"id": id}) for name in toolkit().names)
        return create_gecko_agent(tools, interrupt_on="none", **common, **more), model
    if kind == "gecko":
        return create_gecko(toolkit(), **common, **more), model
    builder = StateGraph(Parent)
    builder.add_node("rehearse", create_gecko(toolkit(), **common))
    builder.add_edge(START, "rehearse")
    return builder.compile(**more), model


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("kind", ["gecko", "embedded", "agent"])
def test_a_plan_that_was_accepted_teaches_other_threads_by_the_store(kind, kept):
    store = InMemoryStore() if kept else None
    graph, _ = build(kind, store, call("search_tools", query="archive a parcel"))
    told = ask("Put what the postman brought out of sight, 1, with the key sk-proj-1234567890abcdefghijklmn")
    graph.invoke(told, THREAD)
    graph, model = build(kind, store)
    graph.invoke(told | {"messages": [("user", "Put away what the postman brought today, 1")]}, OTHER)
    assert (model.names[0][0] == "archive_parcel") == kept
    assert not kept or "1234567890" not in str(store.search(("gecko",)))


def test_a_tool_of_the_same_name_is_not_taught_by_another_one():
    store, one = InMemoryStore(), toolkit()
    taught = [{"need": "Put it away", "tool": "archive_parcel"}]
    assert exchange(store, one, taught) == []
    assert exchange(store, one, taught) == exchange(store, one, []) == taught
    assert exchange(store, one.replace(replace(one["archive_parcel"], parameters={"type": "object"})), []) == []


def test_a_store_that_fails_stops_no_turn_and_a_failed_plan_teaches_nothing():
    class Broken(InMemoryStore):
        def search(self, *args, **more):
            raise OSError("away")

    graph, _ = build("gecko", Broken())
    assert graph.invoke(ask("Archive parcel 1"), THREAD)["rehearsal"]["verdict"]["status"] == "accepted"
    graph, _ = gecko({"planner": [[DONE]]})
    graph.invoke(ask("Put what the postman brought out of sight"), THREAD)
    assert graph.get_state(THREAD).values["bookkeeping"]["taught"] == []


def test_forward_execution_learns_from_each_need_that_was_met_and_teaches_other_threads():
    first = {"need": "archive the parcel: out of sight, postman"}
    needs = [first, {"need": "postman: out of sight"}, {"answer": "Done."}]
    made = [{"call": "archive_parcel", "args": {"id": each}} for each in "12"]
    more = {"context": CONTEXT, "checkpointer": InMemorySaver(), "store": InMemoryStore()}

    def tidy(needs, thread):
        roles = {"reasoner": needs, "planner": list(made)}
        graph = create_toolgate(toolkit(), model=Models(**dict.fromkeys(roles, Acting(roles=roles))), **more)
        return graph, graph.invoke({"messages": [("user", "Tidy up 1 and 2")], "task_state": {"a": 1}}, thread)

    graph, out = tidy(needs, THREAD)
    assert [each["candidates"][0]["tool"] for each in out["record"]["needs"]] == ["archive_parcel"] * 2
    taught = graph.get_state(THREAD).values["bookkeeping"]["taught"]
    assert taught == [{"need": each["need"], "tool": "archive_parcel"} for each in needs[:2]]
    _, out = tidy(needs[1:], OTHER)
    assert out["record"]["needs"][0]["candidates"][0]["tool"] == "archive_parcel"


def test_what_served_a_need_in_like_words_comes_first_and_what_the_gate_closes_does_not():
    taught = [{"need": "Put the parcel away", "tool": "a"}, {"need": "Sing a song", "tool": "b"}]
    assert [each.name for each in recall("put that parcel away", taught)] == ["a"]
    assert recall("put that parcel away", taught, allowed=["b"]) == []
    assert recall("", taught) == []


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("ab")), max_size=8))
def test_a_thread_keeps_each_lesson_once_and_the_latest(served):
    taught = teach([], [])
    for each in served:
        taught = teach(taught, [each])
    assert [(each["need"], each["tool"]) for each in taught] == [*reversed(dict.fromkeys(reversed(served)))]
    assert len(teach(taught, [(str(number), "a") for number in range(MOST_TAUGHT + 5)])) == MOST_TAUGHT


def test_an_agent_s_words_are_kept_while_its_task_is_planned_again():
    tools = Toolkit(spec(name, effect="write", real=lambda id: {"id": id}) for name in toolkit().names)
    plans = [[call("archive_parcel", id=each), DONE] for each in "12"]
    model = Bound(turns=[{"planner": plans, "searcher": [{"words": "archive parcel"}] * 2}])
    models = Models(planner=model, searcher=model)
    agent = create_gecko_agent(tools, model=models, context=CONTEXT, checkpointer=InMemorySaver())
    out = agent.invoke(ask("Put what the postman brought out of sight"), THREAD)
    (question,) = out["__interrupt__"]
    answer = {"id": question.value["id"], "decisions": [{"type": "reject", "message": "The other one"}]}
    agent.invoke(Command(resume=answer), THREAD)
    assert [len(model.asked[role]) for role in ("searcher", "planner")] == [1, 4]
    assert [names[0] for names in model.names] == ["archive_parcel"] * 4
