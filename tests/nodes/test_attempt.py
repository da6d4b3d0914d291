"""attempt: begins from the identical state, ends in a record whatever happens, and costs what it cost."""

from __future__ import annotations

import copy
from itertools import pairwise

import pytest
from langgraph.errors import GraphInterrupt
from langgraph.graph import END, START, StateGraph

from gecko_graph import GeckoContext, GeckoError
from gecko_graph.errors import StateError
from gecko_graph.graph import create_attempt
from gecko_graph.models.factory import Models
from gecko_graph.nodes.attempt import Boundary, begin, build_input, build_update, measure_longest_cycle
from gecko_graph.testing import drive
from gecko_graph.values.digest import digest
from gecko_graph.world.channels import AttemptState
from tests import desk


def test_begin_puts_the_state_in_place_and_says_so(attempt):
    state = attempt(lesson={"number": 1, "attempt_log": "", "feedback": "do better"}, number=2)
    driven = drive(begin, state)
    assert driven.update == {"task_state": [{"op": "add", "path": "", "value": desk.start()}]}
    assert driven.events == [
        {
            "v": 1,
            "type": "gecko.attempt",
            "attempt": 2,
            "digest": digest(desk.start()),
            "feedback": "do better",
        }
    ]


def test_begin_refuses_a_state_that_is_not_the_one(attempt):
    state = attempt()
    state["before"]["trays"]["letters"].append("changed in place")
    with pytest.raises(StateError, match="changed in the middle of a turn"):
        drive(begin, state)


def test_an_attempt_gets_a_copy_of_the_state_and_all_that_the_turn_knows(turn):
    usage = {"checklist": {"calls": 1, "input_tokens": 90, "output_tokens": 10, "cost": None}}
    ledger = {"turn": 3, "started_at": 1_000.0, "usage": usage, "asked": {"validator": 2}}
    state = turn(start_digest="d", ledger=ledger, attempts_at_once=2, facts={"k": 1}, argument_verdicts=[1])
    given = build_input(state, 4, GeckoContext(time_budget_s=60))
    assert given["before"] == desk.start()
    given["before"]["trays"].clear()
    assert state["task_state"] == desk.start()
    told = {
        key: given[key] for key in ("number", "turn", "start_digest", "spent_tokens", "deadline", "attempts_at_once")
    }
    assert told == {
        "number": 4,
        "turn": 0,
        "start_digest": "d",
        "spent_tokens": 100,
        "deadline": 1_060.0,
        "attempts_at_once": 2,
    }
    assert (given["facts"], given["argument_verdicts"], given["asked"]) == ({"k": 1}, [1], {"validator": 2})
    assert build_input(state, 4, GeckoContext())["deadline"] is None


def test_a_bad_attempt_is_data_and_keeps_what_was_seen(attempt, step):
    boundary = Boundary(attempt())
    with boundary:
        boundary.seen = attempt(
            steps=[step()], usage={"planner": {"calls": 1, "input_tokens": 1, "output_tokens": 1, "cost": None}}
        )
        raise ZeroDivisionError("a bug " + "x" * 9_000)
    kept = boundary.attempt()
    assert kept["stop_reason"].startswith("the attempt broke: ZeroDivisionError: a bug")
    assert len(kept["stop_reason"]) <= 1_000
    assert "verdict" not in kept
    assert len(kept["steps"]) == 1
    update = build_update(boundary.given, kept, boundary.seen)
    assert update["ledger"]["usage"]["planner"]["calls"] == 1
    assert update["attempts_to_judge"] == [kept]


@pytest.mark.parametrize("error", [GeckoError("a mistake"), GraphInterrupt(()), KeyboardInterrupt(), SystemExit()])
def test_mistakes_and_control_flow_go_through(attempt, error):
    with pytest.raises(type(error)), Boundary(attempt()):
        raise error


def test_a_finished_attempt_s_record(attempt, step):
    change = [{"op": "add", "path": "/trays/bills", "value": []}]
    after = desk.start()
    after["trays"]["bills"] = []
    boundary = Boundary(attempt())
    with boundary:
        stop = {"code": "answered", "message": "answered"}
        boundary.seen = attempt(
            steps=[step()], task_state=after, answer="a", stop_reason="answered", stop=stop, argument_verdicts=[1, 2]
        )
    kept = boundary.attempt()
    assert (kept["end_digest"], kept["change"], kept["answer"]) == (digest(after), change, "a")
    assert build_update(attempt(argument_verdicts=[1]), kept, boundary.seen)["argument_verdicts"] == [2], (
        "only what is new"
    )


def broken_gecko(monkeypatch, **options):
    import gecko_graph.world.answer as module

    real = module.climb

    def climb(question, rungs):
        if question.call["name"] == "put":
            raise ZeroDivisionError("a bug of ours")
        return real(question, rungs)

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


def test_the_recursion_limit_of_an_attempt_follows_from_its_graph():
    def chain(*nodes):
        builder = StateGraph(AttemptState)
        for node in nodes:
            builder.add_node(node, lambda state: {})
        for one, next_one in pairwise([START, *nodes]):
            builder.add_edge(one, next_one)
        builder.add_conditional_edges(nodes[-1], lambda state: END, {"again": nodes[1], "back": nodes[-2], END: END})
        return builder.compile()

    bound = Models.bind(), GeckoContext()
    assert measure_longest_cycle(create_attempt(desk.toolkit(), *bound)) == 4
    assert measure_longest_cycle(chain("begin", "a", "b")) == 2
    assert measure_longest_cycle(chain("begin", "a", "b", "c", "d", "e")) == 5
