"""Asking: what goes out with a question, what comes back, and what may pass through."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langgraph.errors import GraphInterrupt, ParentCommand
from langgraph.types import Command

from gecko_graph.models.answer import aanswer, answer
from gecko_graph.models.ask import Where, Work
from gecko_graph.models.factory import Models
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
    models = Models.bind(recorded({}, {}, {"planner": [[], [], [{"say": "hi"}]], "validator": [FINE] * 3}))
    config = {"callbacks": [watcher], "tags": ["mine"], "metadata": {"user": "u"}}
    await answer_all([plan_for(turn=2, attempt=3)], models, config)
    await answer_all([ask_for("validator", where=Where(turn=2, attempt=3, question=1))], models, config)
    (name, tags, metadata), (_, helper_tags, helper) = watcher.seen
    assert name == "planner"
    assert sorted(tags) == ["gecko:planner", "mine"]
    assert sorted(helper_tags) == ["gecko:validator", "mine", "nostream"]
    assert metadata["user"] == helper["user"] == "u"
    told = {key: value for key, value in helper.items() if key.startswith("gecko_")}
    assert told == {"gecko_role": "validator", "gecko_turn": 2, "gecko_attempt": 3, "gecko_question": 1}
    assert config == {"callbacks": [watcher], "tags": ["mine"], "metadata": {"user": "u"}}


async def test_replies_come_in_the_order_of_the_asks(ask_for, plan_for, answer_all):
    models = Models.bind(recorded(planner=[[{"say": "hi"}]], validator=[FINE], judge=["nonsense"]))
    asks = [plan_for(), ask_for("judge"), ask_for("validator"), Work(function=lambda: 7)]
    planner, judge, validator, work = await answer_all(asks, models)
    assert planner.value.text == "hi"
    assert judge.failure == "the reply holds no JSON object"
    assert validator.value == SemanticVerdict(problems=[])
    assert work.value == 7
    assert work.usage["calls"] == 0
    assert await answer_all([], models) == []


async def test_work_that_raises_or_hangs_is_a_reply(answer_all):
    def bad():
        raise OSError("disk on fire")

    models = Models.bind()
    broken, late = await answer_all(
        [Work(function=bad), Work(function=threading.Event().wait, args=(0.5,), timeout_s=0.05)], models
    )
    assert (broken.value, broken.failure, broken.absent) == (None, "OSError: disk on fire", False)
    assert (late.late, late.absent) == (True, False)
    assert "did not answer within 0.05 s" in late.failure


async def test_a_role_without_a_model_is_absent(ask_for, plan_for, answer_all):
    for reply in await answer_all([ask_for("judge"), plan_for()], Models.bind()):
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
    await answer_all([ask_for("validator")] * asks, Models.bind(slow), config)
    assert (seen.most, seen.now) == (most, 0)


seen_in_model: ContextVar[str] = ContextVar("seen_in_model", default="nothing")


class Peeking(FakeListChatModel):
    def _call(self, *args, **kwargs):
        return f'{{"problems": [{{"argument": "a", "problem": "{seen_in_model.get()}"}}]}}'


async def test_context_variables_reach_models_in_other_threads(ask_for, answer_all):
    seen_in_model.set("the callers")
    replies = await answer_all([ask_for("validator")] * 3, Models.bind(Peeking(responses=[""])))
    assert [reply.value.problems[0].problem for reply in replies] == ["the callers"] * 3


async def test_a_model_without_bind_tools_cannot_plan_and_says_so(ask_for, plan_for, answer_all):
    models = Models.bind(FakeListChatModel(responses=['{"problems": []}']))
    planner, validator = await answer_all([plan_for(), ask_for("validator")], models)
    assert planner.failure == "FakeListChatModel has no bind_tools, so it cannot plan tool calls"
    assert validator.value == SemanticVerdict(problems=[])
    (bare,) = await answer_all([plan_for(tools=[])], models)
    assert bare.value.text == '{"problems": []}'


class Choking(FakeListChatModel):
    def bind_tools(self, tools, **kwargs):
        raise KeyError("parameters")


async def test_a_model_that_chokes_on_the_tools_says_so(plan_for, answer_all):
    (reply,) = await answer_all([plan_for()], Models.bind(Choking(responses=["x"])))
    assert reply.failure.startswith("the tools could not be bound: ")


@pytest.mark.parametrize(
    "error", [ValueError("inside"), RuntimeError(""), RecursionError("deep"), TimeoutError("late"), AssertionError("x")]
)
async def test_any_fault_of_a_model_is_data(ask_for, plan_for, answer_all, error):
    for reply in await answer_all([ask_for("judge"), plan_for()], Models.bind(failing(error))):
        assert reply.value is None
        assert type(error).__name__ in reply.failure
        assert reply.usage["calls"] == 0, "no reply came"


@pytest.mark.parametrize("asks", [1, 3])
@pytest.mark.parametrize("error", [GraphInterrupt(), ParentCommand(Command())])
async def test_langgraphs_control_flow_passes(ask_for, answer_all, error, asks):
    with pytest.raises(type(error)):
        await answer_all([ask_for("judge")] * asks, Models.bind(failing(error)))


def test_ctrl_c_passes(ask_for):
    with pytest.raises(KeyboardInterrupt):
        answer([ask_for("judge")], Models.bind(Interrupting()))


class Interrupting(BaseChatModel):
    @property
    def _llm_type(self):
        return "interrupting"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        raise KeyboardInterrupt


async def test_a_cancelled_ask_cancels_its_siblings(ask_for):
    slow = recorded(validator=[FINE]).model_copy(update={"latency_s": 5.0})
    models = Models.bind(slow, {"judge": failing(GraphInterrupt())})
    with pytest.raises(GraphInterrupt):
        await aanswer([ask_for("validator"), ask_for("judge")], models)
    await asyncio.sleep(0.05)
    assert len(asyncio.all_tasks()) == 1


class Parsing(FakeListChatModel):
    """A model whose structured output is a runnable of its own, with nothing of ours in it."""

    def with_structured_output(self, schema, *, include_raw=False, **kwargs):
        return RunnableLambda(lambda messages: {"problems": [{"argument": "a", "problem": schema["title"]}]})


async def test_structured_output_of_a_models_own_making_is_used(ask_for, answer_all):
    (reply,) = await answer_all([ask_for("validator")], Models.bind(Parsing(responses=["never"])))
    assert reply.value.problems[0].problem == "SemanticVerdict"
    assert reply.usage == {"calls": 1, "input_tokens": 0, "output_tokens": 0, "cost": None}


class Picky(FakeListChatModel):
    """A model whose structured output knows neither `method` nor `strict`."""

    def with_structured_output(self, schema, *, include_raw=False):
        raise AssertionError("never reached: the arguments do not fit")


async def test_structured_output_that_takes_other_arguments_is_passed_over(ask_for, answer_all):
    (reply,) = await answer_all([ask_for("validator")], Models.bind(Picky(responses=['{"problems": []}'])))
    assert reply.failure is None


class Chatting(FakeListChatModel):
    """A model that is no chat model after all: it answers with bare text."""

    def bind_tools(self, tools, **kwargs):
        return RunnableLambda(lambda messages: "bare text")

    def with_structured_output(self, schema, *, include_raw=False, **kwargs):
        return RunnableLambda(lambda messages: "bare text")


async def test_what_is_no_message_is_a_failure(ask_for, plan_for, answer_all):
    models = Models.bind(Chatting(responses=["x"]))
    for reply in await answer_all([ask_for("validator"), plan_for()], models):
        assert reply.failure == "the model replied with str, not with a message"
        assert reply.usage["calls"] == 1


class Unwilling(FakeListChatModel):
    """A model that finds out only when it is asked that it cannot do what it was bound to."""

    def with_structured_output(self, schema, *, include_raw=False, **kwargs):
        def refuse(messages):
            raise NotImplementedError

        return RunnableLambda(refuse)


async def test_a_model_that_finds_out_late_is_asked_in_words(ask_for, answer_all):
    (reply,) = await answer_all([ask_for("validator")], Models.bind(Unwilling(responses=['{"problems": []}'])))
    assert reply.value == SemanticVerdict(problems=[])


async def test_a_repair_round_that_fails_is_a_failure(ask_for, answer_all):
    class Once(FakeListChatModel):
        def _call(self, messages, *args, **kwargs):
            if len(messages) > 2:
                raise TimeoutError("gone")
            return "{}"

    (reply,) = await answer_all([ask_for("validator")], Models.bind(Once(responses=["x"])))
    assert reply.failure == "TimeoutError: gone"
    assert reply.usage["calls"] == 1


class Oversized(BaseChatModel):
    message: AIMessage

    @property
    def _llm_type(self):
        return "oversized"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return ChatResult(generations=[ChatGeneration(message=self.message)])


def call(**args):
    return {"name": "mkdir", "args": args, "id": "1", "type": "tool_call"}


@pytest.mark.parametrize("value", [2**70, -(2**64), "\ud800", float("nan"), float("inf"), [{"deep": 2**65}]])
async def test_a_call_that_no_checkpoint_can_keep_becomes_an_invalid_call(plan_for, answer_all, value):
    message = AIMessage("", tool_calls=[call(name=value), call(name="fine")])
    (reply,) = await answer_all([plan_for()], Models.bind(Oversized(message=message)))
    assert [kept["args"] for kept in reply.value.tool_calls] == [{"name": "fine"}]
    (broken,) = reply.value.invalid_tool_calls
    assert broken["name"] == "mkdir"
    broken["args"].encode("utf-8")
    assert broken["error"]


async def test_content_blocks_of_the_planner_stay_as_they_are(plan_for, answer_all):
    message = AIMessage([{"type": "text", "text": "done"}])
    (reply,) = await answer_all([plan_for()], Models.bind(Oversized(message=message)))
    assert reply.value.content == [{"type": "text", "text": "done"}]


async def test_half_a_surrogate_pair_in_the_answer_is_replaced(plan_for, answer_all):
    (reply,) = await answer_all([plan_for()], Models.bind(Oversized(message=AIMessage("done \ud800"))))
    assert reply.value.text == "done ?"


@pytest.mark.parametrize(
    "message", [AIMessage("x" * 1_000_001), AIMessage("", tool_calls=[call(name="x" * 1_000_001)])]
)
async def test_a_huge_message_of_the_planner_is_a_failure(plan_for, answer_all, message):
    (reply,) = await answer_all([plan_for()], Models.bind(Oversized(message=message)))
    assert "characters long, 1,000,000 are allowed" in reply.failure


async def test_tools_are_bound_once(plan_for, answer_all):
    bound = []

    class Counting(Oversized):
        def bind_tools(self, tools, **kwargs):
            bound.append(len(tools))
            return self

    models = Models.bind(Counting(message=AIMessage("hi")))
    tools = [{"name": "a"}, {"name": "b"}]
    await answer_all([plan_for(tools=list(tools))], models)
    await answer_all([plan_for(tools=list(tools))], models)
    assert bound == [2]
    await answer_all([plan_for(tools=tools[:1])], models)
    await answer_all([plan_for(tools=[{"name": "a"}], messages=[HumanMessage("x")])], models)
    assert bound == [2, 1, 1]
