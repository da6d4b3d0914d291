"""The recorded model: the same words for the same place, however often, in whatever order, by whatever path."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Annotated

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from gecko_graph.context import GeckoContext
from gecko_graph.models.answer import aanswer, answer
from gecko_graph.models.ask import Where
from gecko_graph.models.factory import Models
from gecko_graph.models.node import as_node
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.testing import recorded

TURNS = [
    {
        "planner": [
            [{"call": "mkdir", "args": {"name": "temp"}}, {"say": "Done."}],
            [{"calls": [{"call": "cd", "args": {"folder": "a"}}, {"call": "ls"}]}, {"say": "Done again."}],
        ],
        "validator": [{"problems": []}, {"problems": [{"argument": "name", "problem": "odd"}]}],
        "judge": [{"items": [], "feedback": "first"}, {"items": [], "feedback": "second"}],
    },
    {"planner": [[{"say": "Turn two."}]]},
]


@pytest.fixture
def models():
    return Models.bind(RecordedModel(turns=TURNS))


async def test_the_planner_has_one_list_an_attempt(models, plan_for, answer_all):
    asks = [plan_for(attempt=a, question=q, turn=t) for t, a, q in [(0, 1, 0), (0, 1, 1), (0, 2, 0), (1, 1, 0)]]
    first, said, both, turn_two = [reply.value for reply in await answer_all(asks, models)]
    assert [(call["name"], call["args"]) for call in first.tool_calls] == [("mkdir", {"name": "temp"})]
    assert said.text == "Done."
    assert [(call["name"], call["args"]) for call in both.tool_calls] == [("cd", {"folder": "a"}), ("ls", {})]
    assert len({call["id"] for message in (first, both) for call in message.tool_calls}) == 3
    assert turn_two.text == "Turn two."


async def test_the_judge_has_one_reply_an_attempt_and_other_roles_one_a_question(models, ask_for, answer_all):
    one, two, odd = await answer_all(
        [
            ask_for("judge", where=Where(0, 1, 0)),
            ask_for("judge", where=Where(0, 2, 0)),
            ask_for("validator", where=Where(0, 2, 1)),
        ],
        models,
    )
    assert (one.value.feedback, two.value.feedback) == ("first", "second")
    assert odd.value.problems[0].argument == "name"


@pytest.mark.parametrize(
    ("role", "where", "words"),
    [
        ("planner", Where(0, 3, 0), "the planner's attempt 3 of turn 1: 2 are"),
        ("planner", Where(0, 1, 2), "the planner's reply 3 in attempt 1 of turn 1: 2 are"),
        ("planner", Where(2, 1, 0), "nothing recorded for turn 3: 2 are"),
        ("judge", Where(0, 3, 0), "the judge's question 3 of turn 1: 2 are"),
        ("simulator", Where(0, 1, 0), "the simulator's question 1 of turn 1: 0 are"),
    ],
)
async def test_what_is_not_recorded_is_a_clear_failure(models, ask_for, plan_for, answer_all, role, where, words):
    asked = plan_for(turn=where.turn, attempt=where.attempt, question=where.question)
    (reply,) = await answer_all([asked if role == "planner" else ask_for(role, where=where)], models)
    assert reply.failure == f"nothing recorded for {words}" or reply.failure == words


async def test_a_reply_that_was_written_down_wrongly_is_a_clear_failure(plan_for, answer_all):
    models = Models.bind(recorded(planner=[[{"tool": "mkdir"}]]))
    (reply,) = await answer_all([plan_for()], models)
    assert reply.failure == "expected a planner's recorded reply with 'call', 'calls' or 'say', got {'tool': 'mkdir'}"


async def test_arguments_written_as_text_are_what_a_model_wrote_instead_of_json(plan_for, answer_all):
    (reply,) = await answer_all([plan_for()], Models.bind(recorded(planner=[[{"call": "mkdir", "args": '{"name": '}]])))
    assert reply.value.tool_calls == []
    assert reply.value.invalid_tool_calls[0]["args"] == '{"name": '


async def test_a_thousand_questions_at_once_in_any_order(models, ask_for, plan_for):
    asks = [plan_for(attempt=1 + n % 2, question=n // 2 % 2) for n in range(900)]
    asks += [ask_for("validator", where=Where(0, 1, n % 2)) for n in range(100)]
    order = random.Random(1).sample(range(1000), 1000)
    replies = await aanswer([asks[index] for index in order], models)
    back = dict(zip(order, replies, strict=True))
    for index, ask in enumerate(asks[:4] + asks[900:902]):
        (alone,) = answer([ask], models)
        same = back[index if index < 4 else 896 + index]
        if isinstance(alone.value, AIMessage):
            assert (alone.value.text, alone.value.tool_calls) == (same.value.text, same.value.tool_calls)
        else:
            assert alone.value == same.value
    assert not any(reply.failure for reply in replies)


async def test_a_slow_model_takes_as_long_as_its_replies_are(plan_for, ask_for, answer_all):
    slow = RecordedModel(
        turns=TURNS,
        latency_s=0.05,
        token_s=0.005,
        reply_tokens={"planner.call": 10, "planner.say": 20, "judge": [12, 6]},
    )
    models = Models.bind(slow)
    for ask, tokens in [
        (plan_for(), 10),
        (plan_for(question=1), 20),
        (plan_for(attempt=2), 20),
        (ask_for("judge", where=Where(0, 1, 0)), 12),
        (ask_for("judge", where=Where(0, 2, 0)), 6),
    ]:
        start = time.perf_counter()
        (reply,) = await answer_all([ask], models)
        seconds = time.perf_counter() - start
        assert reply.usage["output_tokens"] == tokens
        assert 0.05 + 0.005 * tokens <= seconds


async def test_slow_models_wait_together_in_one_loop(plan_for):
    models = Models.bind(RecordedModel(turns=TURNS, latency_s=0.2))
    start = time.perf_counter()
    await asyncio.gather(*(aanswer([plan_for()], models) for _ in range(50)))
    assert time.perf_counter() - start < 50 * 0.2 / 2


async def test_prompt_tokens_are_counted_by_characters_with_the_tools(plan_for, answer_all):
    models = Models.bind(RecordedModel(turns=TURNS))
    (bare,) = await answer_all([plan_for(tools=[], messages=[HumanMessage("x" * 400)])], models)
    assert bare.usage["input_tokens"] == 100
    (with_tools,) = await answer_all([plan_for(messages=[HumanMessage("x" * 400)])], models)
    assert with_tools.usage["input_tokens"] > 130


class S(TypedDict):
    said: str


async def test_it_streams_word_by_word_and_calls_whole(plan_for):
    def node(state, scope):
        first, second = yield [plan_for(question=1), plan_for()]
        return {"said": f"{first.value.text} {second.value.tool_calls[0]['args']} {second.usage['output_tokens'] > 0}"}

    model = RecordedModel(turns=[{"planner": [[{"call": "mkdir", "args": {"name": "temp"}}, {"say": "all is done"}]]}])
    builder = StateGraph(S)
    builder.add_node("node", as_node(node, models=Models.bind(model), default=GeckoContext(), book=lambda u, s, a: u))
    builder.add_edge(START, "node")
    graph = builder.compile()
    modes = {"stream_mode": ["messages", "updates"]}
    for parts in (
        list(graph.stream({"said": ""}, **modes)),
        [part async for part in graph.astream({"said": ""}, **modes)],
    ):
        words = [data[0].text for kind, data in parts if kind == "messages" and data[0].text]
        assert words == ["all ", "is ", "done"]
        assert parts[-1] == ("updates", {"node": {"said": "all is done {'name': 'temp'} True"}})


def test_it_serves_a_plain_agent_by_its_place_in_the_conversation():
    @tool
    def mkdir(name: str) -> str:
        """Make a folder."""
        return f"made {name}"

    class Chat(TypedDict):
        messages: Annotated[list, add_messages]

    model = RecordedModel(turns=TURNS).bind_tools([mkdir])
    asked = [HumanMessage("make temp")]
    first = model.invoke(asked)
    assert first.tool_calls[0]["name"] == "mkdir"
    asked += [first, ToolMessage("made temp", tool_call_id=first.tool_calls[0]["id"])]
    second = model.invoke(asked)
    assert second.text == "Done."
    assert model.invoke([*asked, second, HumanMessage("and now?")]).text == "Turn two."


def test_with_structured_output_works():
    model = RecordedModel(turns=[{"judge": [{"items": [], "feedback": "more"}]}])
    schema = {
        "title": "Judgement",
        "description": "d",
        "type": "object",
        "properties": {"feedback": {"type": "string"}},
    }
    place = {"metadata": {"gecko_role": "judge"}}
    assert model.with_structured_output(schema).invoke("judge it", place)["feedback"] == "more"
