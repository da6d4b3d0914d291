"""as_node: one function, sync and async, in a graph and outside, with its accounts booked."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from gecko_graph.context import GeckoContext
from gecko_graph.models.ask import Work
from gecko_graph.models.factory import Models
from gecko_graph.models.node import as_node, book_turn
from gecko_graph.models.usage import add_usage
from gecko_graph.testing import recorded

FINE = {"problems": []}


def merge(a, b):
    return {role: a.get(role, 0) + b.get(role, 0) for role in a.keys() | b.keys()}


class S(TypedDict, total=False):
    said: str
    usage: Annotated[dict, add_usage]
    asked: Annotated[dict, merge]
    ledger: dict


def build(fn, *, models=None, context_schema=None, checkpointer=None, **options):
    node = as_node(fn, models=models or Models.bind(), default=GeckoContext(seed=7), **options)
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


async def test_a_plain_function_is_a_node(run):
    assert (await run(build(plain), {"said": "hi"}))["said"] == "hi 7 False"


async def test_a_generator_is_a_node_and_its_asks_are_booked(run, ask_for, plan_for):
    def node(state, scope, *, greeting):
        (first,) = yield [plan_for()]
        second, third = yield [ask_for("validator"), ask_for("judge")]
        (work,) = yield [Work(function=lambda: "worked")]
        assert (yield []) == []
        return {"said": f"{greeting} {first.value.text} {second.failure} {third.absent} {work.value}"}

    model = recorded(planner=[[{"say": "hello"}]], validator=[FINE])
    models = Models.bind(None, {"planner": model, "validator": model})
    done = await run(build(partial(node, greeting="oh"), models=models), {"said": ""})
    assert done["said"] == "oh hello None True worked"
    assert done["asked"] == {"planner": 1, "validator": 1}
    assert {role: usage["calls"] for role, usage in done["usage"].items()} == {"planner": 1, "validator": 1}
    assert all(usage["input_tokens"] > 0 for usage in done["usage"].values())


def test_nothing_asked_is_nothing_booked():
    def node(state, scope):
        yield []
        return {"said": "quiet"}

    assert list(build(node).stream({"said": ""}, stream_mode="updates")) == [{"node": {"said": "quiet"}}]


async def test_the_outer_graph_books_on_the_turn_that_opens_and_then_on_the_turn_s(run, ask_for):
    def opens(state, scope):
        yield [ask_for("validator")]
        return {"said": "x", "ledger": {"turn": 5, "started_at": 1.0, "usage": {}, "asked": {}}}

    def later(state, scope):
        yield [ask_for("validator")]
        return None

    models = Models.bind(recorded(validator=[FINE]))
    first = await run(build(opens, models=models, book=book_turn), {"said": ""})
    assert first["ledger"]["turn"] == 5
    assert first["ledger"]["started_at"] == 1.0
    assert first["ledger"]["asked"] == {"validator": 1}
    opened = {"turn": 2, "usage": {}, "asked": {"validator": 3, "judge": 1}}
    second = await run(build(later, models=models, book=book_turn), {"said": "", "ledger": opened})
    assert second["ledger"]["turn"] == 2
    assert second["ledger"]["asked"] == {"validator": 4}, "so many in all, for a reducer that takes the most"


class Foreign(TypedDict):
    tenant: str


@pytest.mark.parametrize(
    ("schema", "context", "seed"),
    [
        (GeckoContext, GeckoContext(seed=9), 9),
        (GeckoContext, {"seed": 9}, 9),
        (GeckoContext, None, 7),
        (Foreign, {"tenant": "a"}, 7),
        (None, None, 7),
    ],
)
async def test_knobs_come_from_our_context_else_from_the_default(run, schema, context, seed):
    graph = build(plain, context_schema=schema)
    assert (await run(graph, {"said": "hi"}, context=context))["said"] == f"hi {seed} False"


def test_a_node_runs_outside_of_a_graph():
    def node(state, scope):
        scope.emit({"type": "unheard"})
        return plain(state, scope)

    assert as_node(node, models=Models.bind(), default=GeckoContext()).invoke({"said": "hi"}) == {"said": "hi 0 False"}


def test_events_go_to_the_custom_stream():
    def node(state, scope):
        scope.emit({"type": "one"})
        (reply,) = yield [Work(function=lambda: 2)]
        scope.emit({"type": "two", "n": reply.value})
        return {"said": ""}

    parts = list(build(node).stream({"said": ""}, stream_mode="custom"))
    assert parts == [{"type": "one"}, {"type": "two", "n": 2}]


async def test_an_interrupt_in_a_node_pauses_and_resumes(run, ask_for):
    closed = []

    def node(state, scope):
        try:
            yield [ask_for("validator")]
            return {"said": interrupt("sure?")}
        finally:
            closed.append(True)

    graph = build(node, models=Models.bind(recorded(validator=[FINE])), checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    paused = await run(graph, {"said": ""}, config)
    assert paused["__interrupt__"][0].value == "sure?"
    assert closed == [True]
    assert (await run(graph, Command(resume="yes"), config))["said"] == "yes"


async def test_what_a_node_itself_raises_is_raised(run):
    def node(state, scope):
        yield []
        raise LookupError("a bug")

    with pytest.raises(LookupError, match="a bug"):
        await run(build(node), {"said": ""})
