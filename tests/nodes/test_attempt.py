"""attempt: begins from the identical state, ends in a record whatever happens, and costs what it cost."""

from __future__ import annotations

import copy

import pytest
from langgraph.errors import GraphInterrupt

from gecko_graph import GeckoContext, GeckoError
from gecko_graph.errors import StateError
from gecko_graph.nodes.attempt import Boundary, begin
from gecko_graph.testing import drive
from tests import desk


def test_begin_refuses_a_state_that_is_not_the_one(attempt):
    state = attempt()
    state["before"]["trays"]["letters"].append("changed in place")
    with pytest.raises(StateError, match="changed in the middle of a turn"):
        drive(begin, state)


@pytest.mark.parametrize("error", [GeckoError("a mistake"), GraphInterrupt(()), KeyboardInterrupt(), SystemExit()])
def test_mistakes_and_control_flow_go_through(attempt, error):
    with pytest.raises(type(error)), Boundary(attempt()):
        raise error


def broken_gecko(monkeypatch, **options):
    import gecko_graph.world.ladder as module

    real = module.climb

    def climb(question, *more):
        if question.call["name"] == "put":
            raise ZeroDivisionError("a bug of ours")
        return real(question, *more)

    monkeypatch.setattr(module, "climb", climb)
    return desk.gecko(desk.RIGHT, desk.RIGHT, **options)


@pytest.mark.parametrize("kind", ["invoke", "ainvoke"])
async def test_an_attempt_that_breaks_half_way_keeps_its_steps_and_its_costs(monkeypatch, kind):
    gecko = broken_gecko(monkeypatch, context=GeckoContext(max_retries=1))
    given = desk.inputs()
    before = copy.deepcopy(given)
    run = gecko.invoke(given) if kind == "invoke" else await gecko.ainvoke(given)
    attempts = run["rehearsal"]["attempts"]
    assert [attempt["stop_reason"] for attempt in attempts] == [
        "the attempt broke: ZeroDivisionError: a bug of ours"
    ] * 2
    assert [[step["call"]["name"] for step in attempt["steps"]] for attempt in attempts] == [["add_tray"]] * 2
    assert [attempt["number"] for attempt in attempts] == [1, 2]
    assert attempts[0]["usage"]["planner"]["calls"] == 2
    assert run["rehearsal"]["usage"]["planner"]["calls"] == 4
    assert run["task_state"] == desk.start()
    assert given == before


def test_more_steps_than_langgraph_s_own_limit_is_high():
    looking = [{"call": "look", "args": {}}] * 30 + [{"say": "done"}]
    run = desk.gecko(looking, context=GeckoContext(max_steps=30, max_retries=0)).invoke(
        desk.inputs(), {"recursion_limit": 12}
    )
    (attempt,) = run["rehearsal"]["attempts"]
    assert (len(attempt["steps"]), attempt["stop_reason"]) == (30, "answered")
