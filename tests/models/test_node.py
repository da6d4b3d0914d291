"""AskNode: one function, sync and async, with its accounts booked, within `time_budget_s`."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Annotated, Any

import pytest
from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from gecko_graph import GeckoContext, Models, create_gecko
from gecko_graph.models import factory
from gecko_graph.models.ask import FunctionCall
from gecko_graph.models.node import AskNode, NodeScope, find_deadline, silent
from gecko_graph.models.usage import add_usage
from gecko_graph.testing import recorded
from gecko_graph.world.channels import Bookkeeping, fold_bookkeeping
from gecko_graph.world.reducers import delta
from tests import desk

FINE = {"problems": []}


def merge(a, b):
    return {role: a.get(role, 0) + b.get(role, 0) for role in a.keys() | b.keys()}


class S(TypedDict, total=False):
    said: str
    usage: Annotated[dict, add_usage]
    asked: Annotated[dict, merge]
    bookkeeping: Annotated[Bookkeeping, delta(fold_bookkeeping, dict)]


def build(fn, *, models=None, context_schema=None, checkpointer=None, **options):
    node = AskNode(fn, models=models or Models(), default=GeckoContext(seed=7), **options)
    builder = StateGraph(S, context_schema)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile(checkpointer=checkpointer)


@pytest.fixture(params=["sync", "async"])
def run(request):
    async def run(graph, *args, **kwargs):
        return graph.invoke(*args, **kwargs) if request.param == "sync" else await graph.ainvoke(*args, **kwargs)

    return run


def plain(state, scope):
    return {"said": f"{state['said']} {scope.context.seed} {scope.has_model('judge')}"}


async def test_a_generator_is_a_node_and_its_asks_are_booked(run, ask_for, plan_for):
    def node(state, scope, *, greeting):
        (first,) = yield [plan_for()]
        second, third = yield [ask_for("validator"), ask_for("judge")]
        (work,) = yield [FunctionCall(function=lambda: "worked")]
        assert (yield []) == []
        return {"said": f"{greeting} {first.value.text} {second.failure} {third.absent} {work.value}"}

    model = recorded(planner=[[{"say": "hello"}]], validator=[FINE])
    models = Models(planner=model, validator=model)
    done = await run(build(partial(node, greeting="oh"), models=models), {"said": ""})
    assert done["said"] == "oh hello None True worked"
    assert done["asked"] == {"planner": 1, "validator": 1}
    assert {role: usage["calls"] for role, usage in done["usage"].items()} == {"planner": 1, "validator": 1}
    assert all(usage["input_tokens"] > 0 for usage in done["usage"].values())


class Foreign(TypedDict):
    tenant: str


@pytest.mark.parametrize(("schema", "context", "seed"), [
    (GeckoContext, GeckoContext(seed=9), 9), (GeckoContext, {"seed": 9}, 9), (GeckoContext, None, 7),
    (Foreign, {"tenant": "a"}, 7), (None, None, 7),
])  # fmt: skip
async def test_knobs_come_from_our_context_else_from_the_default(run, schema, context, seed):
    graph = build(plain, context_schema=schema)
    assert (await run(graph, {"said": "hi"}, context=context))["said"] == f"hi {seed} False"


def test_events_go_to_the_custom_stream_and_nowhere_outside_of_a_graph():
    def node(state, scope):
        scope.emit({"type": "one"})
        (reply,) = yield [FunctionCall(function=lambda: 2)]
        scope.emit({"type": "two", "n": reply.value})
        return {"said": ""}

    parts = list(build(node).stream({"said": ""}, stream_mode="custom"))
    assert parts == [{"type": "one"}, {"type": "two", "n": 2}]
    assert AskNode(node, models=Models(), default=GeckoContext()).invoke({"said": "hi"}) == {"said": ""}


async def test_an_interrupt_in_a_node_pauses_and_resumes(run, ask_for):
    closed = []

    def node(state, scope):
        try:
            yield [ask_for("validator")]
            return {"said": interrupt("sure?")}
        finally:
            closed.append(True)

    graph = build(node, models=Models(recorded(validator=[FINE])), checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    paused = await run(graph, {"said": ""}, config)
    assert paused["__interrupt__"][0].value == "sure?"
    assert closed == [True]
    assert (await run(graph, Command(resume="yes"), config))["said"] == "yes"


LONG = 30


class Stalled(BaseChatModel):
    """A model that does not answer, however often its client tries."""

    over: Any

    @property
    def _llm_type(self):
        return "stalled"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.over.wait(LONG)
        raise AssertionError("it was waited for")

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        await asyncio.sleep(LONG)
        raise AssertionError("it was waited for")


@pytest.fixture
def stalled():
    model = Stalled(over=Event())
    yield model
    model.over.set()


def invoke(gecko, how, given, config=None):
    if how == "sync":
        return gecko.invoke(given, config)
    return asyncio.run(asyncio.wait_for(gecko.ainvoke(given, config), LONG))


@pytest.mark.parametrize(("how", "checklist"), [("sync", True), ("async", False)])
def test_a_stalled_model_ends_the_turn_when_its_time_is_over(stalled, how, checklist):
    context = GeckoContext(time_budget_s=0.3)
    gecko = create_gecko(desk.toolkit(), model=stalled, context=context)
    given = {key: value for key, value in desk.inputs().items() if checklist or key != "checklist"}
    begun = time.monotonic()
    run = invoke(gecko, how, given)
    assert time.monotonic() - begun < LONG / 2
    rehearsal = run["rehearsal"]
    assert rehearsal["verdict"]["status"] == "failed"
    assert "time_budget_s" in rehearsal["attempts"][-1]["stop_reason"]
    assert len(rehearsal["attempts"]) == 1


def test_the_node_that_opens_a_turn_has_the_whole_time():
    scope = NodeScope(GeckoContext(time_budget_s=60), silent, bool, opens_turn=True)
    old = {"bookkeeping": {"ledger": {"turn": 1, "started_at": 100.0}}}
    assert find_deadline(old, scope) > time.time()
    assert find_deadline({}, replace(scope, opens_turn=False)) > time.time()
    assert find_deadline(old, replace(scope, opens_turn=False)) == 160.0
    assert find_deadline({**old, "deadline": 120.0}, replace(scope, opens_turn=False)) == 120.0
    assert find_deadline(old, replace(scope, context=GeckoContext())) is None


async def test_a_run_s_context_chooses_the_model_of_every_role(run, ask_for, monkeypatch):
    def asks(state, scope):
        (reply,) = yield [ask_for("validator")]
        return {"said": type(reply.value).__name__ if scope.has_model("judge") else "no judge"}

    made = []
    monkeypatch.setattr(factory, "chat_model", lambda name, **_: made.append(name) or recorded(validator=[FINE] * 9))
    graph = build(asks, context_schema=GeckoContext, models=Models("openai:first"))
    for _ in range(2):
        assert graph.invoke({"said": ""}, context=GeckoContext(model="openai:second"))["said"] != "no judge"
    assert made == ["openai:first", "openai:second"]
