"""Asking: what goes out with a question, what comes back, what may pass through, and how a reply is repaired."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langgraph.errors import GraphInterrupt, ParentCommand
from langgraph.types import Command
from pydantic import PrivateAttr

from gecko_graph import Models
from gecko_graph.models.answer import aanswer, answer
from gecko_graph.models.ask import FunctionCall, QuestionId
from gecko_graph.models.roles import SemanticVerdict
from gecko_graph.testing import failing, recorded

FINE = {"problems": []}


class Watcher(BaseCallbackHandler):
    def __init__(self):
        self.seen = []

    def on_chat_model_start(self, serialized, messages, *, tags=None, metadata=None, **kwargs):
        self.seen.append((kwargs.get("name"), tags, metadata))


async def test_questions_carry_tags_and_metadata_beside_the_callers_own(ask_for, plan_for, answer_all):
    watcher = Watcher()
    models = Models(recorded({}, {}, {"planner": [[], [], [{"say": "hi"}]], "validator": [FINE] * 3}))
    config = {"callbacks": [watcher], "tags": ["mine"], "metadata": {"user": "u"}}
    await answer_all([plan_for(turn=2, attempt=3)], models, config)
    await answer_all([ask_for("validator", where=QuestionId(turn=2, attempt=3, question=1))], models, config)
    (name, tags, metadata), (_, helper_tags, helper) = watcher.seen
    assert name == "planner"
    assert sorted(tags) == ["gecko:planner", "mine"]
    assert sorted(helper_tags) == ["gecko:validator", "mine", "nostream"]
    assert metadata["user"] == helper["user"] == "u"
    told = {key: value for key, value in helper.items() if key.startswith("gecko_")}
    assert told == {"gecko_role": "validator", "gecko_turn": 2, "gecko_attempt": 3, "gecko_question": 1}
    assert config == {"callbacks": [watcher], "tags": ["mine"], "metadata": {"user": "u"}}


async def test_replies_come_in_the_order_of_the_asks(ask_for, plan_for, answer_all):
    models = Models(recorded(planner=[[{"say": "hi"}]], validator=[FINE], judge=["nonsense"]))
    asks = [plan_for(), ask_for("judge"), ask_for("validator"), FunctionCall(function=lambda: 7)]
    planner, judge, validator, work = await answer_all(asks, models)
    assert planner.value.text == "hi"
    assert judge.failure == "the reply holds no JSON object"
    assert validator.value == SemanticVerdict(problems=[])
    assert work.value == 7
    assert work.usage["calls"] == 0
    assert await answer_all([], models) == []


async def test_a_role_without_a_model_is_absent(ask_for, plan_for, answer_all):
    for reply in await answer_all([ask_for("judge"), plan_for()], Models()):
        assert reply.absent
        assert reply.failure.startswith("no model configured for role ")
        assert reply.usage["calls"] == 0


class AtOnce(BaseCallbackHandler):
    """How many models were at work at the same time, at most."""

    def __init__(self):
        self.now = self.most = 0
        self.lock = threading.Lock()

    def on_chat_model_start(self, *args, **kwargs):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def on_llm_end(self, *args, **kwargs):
        with self.lock:
            self.now -= 1


@pytest.mark.parametrize(("asks", "allowed", "most"), [(1, None, 1), (3, None, 3), (3, 1, 1), (4, 2, 2)])
async def test_asks_of_one_list_run_at_once_as_many_as_allowed(ask_for, answer_all, asks, allowed, most):
    slow = recorded(validator=[FINE] * asks).model_copy(update={"latency_s": 0.3})
    seen = AtOnce()
    config = {"callbacks": [seen]} | ({"max_concurrency": allowed} if allowed else {})
    await answer_all([ask_for("validator")] * asks, Models(slow), config)
    assert (seen.most, seen.now) == (most, 0)


async def test_a_model_without_bind_tools_cannot_plan_and_says_so(ask_for, plan_for, answer_all):
    models = Models(FakeListChatModel(responses=['{"problems": []}']))
    planner, validator = await answer_all([plan_for(), ask_for("validator")], models)
    assert planner.failure == "FakeListChatModel has no bind_tools, so it cannot plan tool calls"
    assert validator.value == SemanticVerdict(problems=[])
    (bare,) = await answer_all([plan_for(tools=[])], models)
    assert bare.value.text == '{"problems": []}'


class Odd(FakeListChatModel):
    """A model whose binding and structured output are what a test says."""

    bound: Any = None
    parsed: Any = None

    def bind_tools(self, tools, **kwargs):
        return self.bound() if self.bound else super().bind_tools(tools, **kwargs)

    def with_structured_output(self, schema, *, include_raw=False, **kwargs):
        return RunnableLambda(lambda messages: self.parsed(schema))


async def test_a_model_that_chokes_on_the_tools_says_so(plan_for, answer_all):
    (reply,) = await answer_all([plan_for()], Models(Odd(responses=["x"], bound=lambda: {}["parameters"])))
    assert reply.failure.startswith("the tools could not be bound: ")


@pytest.mark.parametrize(
    "error", [ValueError("inside"), RuntimeError(""), RecursionError("deep"), TimeoutError("late"), AssertionError("x")]
)
async def test_any_fault_of_a_model_is_data(ask_for, plan_for, answer_all, error):
    for reply in await answer_all([ask_for("judge"), plan_for()], Models(failing(error))):
        assert reply.value is None
        assert type(error).__name__ in reply.failure
        assert reply.usage["calls"] == 0, "no reply came"


@pytest.mark.parametrize("asks", [1, 3])
@pytest.mark.parametrize("error", [GraphInterrupt(), ParentCommand(Command())])
async def test_langgraphs_control_flow_passes(ask_for, answer_all, error, asks):
    with pytest.raises(type(error)):
        await answer_all([ask_for("judge")] * asks, Models(failing(error)))


def test_ctrl_c_passes(ask_for):
    class Interrupting(FakeListChatModel):
        def _call(self, *args, **kwargs):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answer([ask_for("judge")], Models(Interrupting(responses=["x"])))


async def test_a_cancelled_ask_cancels_its_siblings(ask_for):
    slow = recorded(validator=[FINE]).model_copy(update={"latency_s": 5.0})
    models = Models(slow, judge=failing(GraphInterrupt()))
    with pytest.raises(GraphInterrupt):
        await aanswer([ask_for("validator"), ask_for("judge")], models)
    await asyncio.sleep(0.05)
    assert len(asyncio.all_tasks()) == 1


async def test_structured_output_of_a_models_own_making_is_used_and_what_is_no_message_is_a_failure(
    ask_for, answer_all, plan_for
):
    odd = Odd(responses=["never"], parsed=lambda schema: {"problems": [{"argument": "a", "problem": schema["title"]}]})
    (reply,) = await answer_all([ask_for("validator")], Models(odd))
    assert reply.value.problems[0].problem == "SemanticVerdict"
    assert reply.usage == {"calls": 1, "input_tokens": 0, "output_tokens": 0, "cost": None}
    text = RunnableLambda(lambda messages: "bare text")
    models = Models(Odd(responses=["x"], bound=lambda: text, parsed=lambda schema: "bare text"))
    for reply in await answer_all([ask_for("validator"), plan_for()], models):
        assert reply.failure == "the model replied with str, not with a message"
        assert reply.usage["calls"] == 1


async def test_a_model_that_finds_out_late_that_it_cannot_is_asked_in_words(ask_for, answer_all):
    def refuse(schema):
        raise NotImplementedError

    (reply,) = await answer_all([ask_for("validator")], Models(Odd(responses=['{"problems": []}'], parsed=refuse)))
    assert reply.value == SemanticVerdict(problems=[])


async def test_a_repair_round_that_fails_is_a_failure(ask_for, answer_all):
    class Once(FakeListChatModel):
        def _call(self, messages, *args, **kwargs):
            if len(messages) > 2:
                raise TimeoutError("gone")
            return "{}"

    (reply,) = await answer_all([ask_for("validator")], Models(Once(responses=["x"])))
    assert reply.failure == "TimeoutError: gone"
    assert reply.usage["calls"] == 1


def call(**args):
    return {"name": "mkdir", "args": args, "id": "1", "type": "tool_call"}


@pytest.mark.parametrize("value", [2**70, -(2**64), "\ud800", float("nan"), float("inf"), [{"deep": 2**65}]])
async def test_a_call_that_no_checkpoint_can_keep_becomes_an_invalid_call(plan_for, answer_all, value):
    message = AIMessage("", tool_calls=[call(name=value), call(name="fine")])
    (reply,) = await answer_all([plan_for()], Models(Mending(said=message)))
    assert [kept["args"] for kept in reply.value.tool_calls] == [{"name": "fine"}]
    (broken,) = reply.value.invalid_tool_calls
    assert broken["name"] == "mkdir"
    broken["args"].encode("utf-8")
    assert broken["error"]


async def test_a_huge_message_of_the_planner_is_a_failure(plan_for, answer_all):
    for message in (AIMessage("x" * 1_000_001), AIMessage("", tool_calls=[call(name="x" * 1_000_001)])):
        (reply,) = await answer_all([plan_for()], Models(Mending(said=message)))
        assert "characters long, 1,000,000 are allowed" in reply.failure


MENDED = '{"problems": []}'


class Mending(BaseChatModel):
    """Says what it is given, then what is right; keeps what it was told."""

    said: object
    own_parser: bool = False
    _heard: list = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self):
        return "mending"

    def bind_tools(self, tools, **kwargs):
        return self

    def with_structured_output(self, schema, **kwargs):
        return RunnableLambda(lambda messages: self._next(messages)) if self.own_parser else self

    def _next(self, messages):
        self._heard.append(messages)
        return self.said if len(self._heard) == 1 else AIMessage(MENDED)

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])


def verdict(**args):
    return call(**args) | {"name": "SemanticVerdict"}


BROKEN = {"name": "SemanticVerdict", "args": '{"problems": [', "id": "1", "error": None, "type": "invalid_tool_call"}


@pytest.mark.parametrize(("said", "shown"), [
    (AIMessage('{"problems": 3}'), '{"problems": 3}'), (AIMessage("half \ud800"), "half ?"),
    (AIMessage("", tool_calls=[verdict(problems=3)]), '{"problems": 3}'), (AIMessage(""), "(nothing)"),
    (AIMessage("", invalid_tool_calls=[BROKEN]), '{"problems": ['),
    (AIMessage("", tool_calls=[verdict(problems=3), verdict(problems=4)]), '{"problems": 3}\n{"problems": 4}'),
    (AIMessage([{"type": "text", "text": "well"}]), "well"),
])  # fmt: skip
async def test_what_the_model_wrote_stands_in_the_repair(ask_for, answer_all, said, shown):
    model = Mending(said=said)
    (reply,) = await answer_all([ask_for("validator")], Models(model))
    assert reply.failure is None
    first, again = model._heard
    assert [message.type for message in again] == ["system", "human", "ai", "human"]
    assert again[1] == first[1]
    assert again[2].text == shown
    assert "cannot be used" in again[3].text


async def test_what_a_parser_of_the_model_s_own_made_of_it_stands_there_too_and_of_a_long_reply_its_ends(
    ask_for, answer_all
):
    model = Mending(said={"problems": 3}, own_parser=True)
    await answer_all([ask_for("validator")], Models(model))
    assert json.loads(model._heard[1][2].text) == {"problems": 3}
    model = Mending(said=AIMessage('{"problems": "' + "x" * 90_000 + '", "end": 1}'))
    await answer_all([ask_for("validator")], Models(model))
    shown = model._heard[1][2].text
    assert len(shown) <= 4_000
    assert shown.startswith('{"problems": "x')
    assert shown.endswith('x", "end": 1}')


async def test_two_answers_are_repaired(ask_for, answer_all):
    twice = AIMessage("", tool_calls=[verdict(problems=[]), verdict(problems=[{"argument": "a", "problem": "b"}])])
    model = Mending(said=twice)
    (reply,) = await answer_all([ask_for("validator")], Models(model))
    assert reply.value.problems == []
    assert "2 different answers" in model._heard[1][3].text
