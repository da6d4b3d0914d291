"""Checks: each with a budget of its own, and what has changed that none of them reads."""

from __future__ import annotations

import random

import pytest

from gecko_graph.nodes.checks import judge_by_rule, unasked_changes
from gecko_graph.values.patch import apply_patch
from tests.runs_to_show import step

ORDERS = {"orders": {f"o{n}": {"total": n} for n in range(50_000)}}


def checked(*checks):
    return [{"id": str(n), "description": check, "check": check} for n, check in enumerate(checks)]


def made(name, *patch, rung="contract", **args):
    return step(name, args, patch=patch, rung=rung, **({"invented": True} if rung == "model" else {}))


def refused(name, **args):
    return {"v": 1, "call": {"id": f"{name}?", "name": name, "args": args}, "complaints": []}


def test_what_one_check_uses_is_not_taken_from_another_in_any_order():
    items = checked(*["len(state.orders.values()) > 0"] * 30, "len(state.orders) == 3")
    for seed in (0, 1, 2):
        random.Random(seed).shuffle(items)
        ruled = judge_by_rule(items, before=ORDERS, after=ORDERS, steps=[], answer="")
        assert {item["id"]: ruled[item["id"]][0] for item in items} == {str(n): n < 30 for n in range(31)}


BEFORE = {"trays": {"letters": ["a"]}, "diary": {"1": "x"}, "log": [], "runtime_state": {}, "now": 1}
ADD = {"op": "add", "path": "/trays/bills", "value": []}
LOG = {"op": "add", "path": "/log/-", "value": "made bills"}
BURN = {"op": "remove", "path": "/diary/1"}
CLOCK = [{"op": "replace", "path": "/now", "value": 2}, {"op": "add", "path": "/runtime_state/cwd", "value": "/"}]


BURNT = 'remove /diary/1 "x"'


TRAY = "'bills' in state.trays"
BOTH = [made("add", ADD), made("burn", BURN)]


@pytest.mark.parametrize(
    ("checks", "steps", "unasked"),
    [
        ([TRAY], [made("add", ADD, *CLOCK)], []),
        ([TRAY], BOTH, [BURNT]),
        ([TRAY], [made("add", ADD, LOG)], []),
        ([TRAY], [made("add", ADD, LOG, rung="model")], ['add /log/0 "made bills"']),
        (["calls[0].name == 'burn'"], [made("burn", BURN)], []),
        (["calls[0].name == 'add'"], BOTH, [BURNT]),
        (["calls[0].args.x == 1"], [refused("burn"), made("burn", BURN, x=1)], []),
        ([TRAY], [made("add", ADD), made("burn", BURN, what="bills")], [BURNT]),
        ([TRAY, "len(calls) == 2"], BOTH, [BURNT]),
        ([TRAY, "all(c.status == 'ok' for c in calls)"], BOTH, [BURNT]),
        (["not any(c.name == 'sell' for c in calls)"], [made("burn", BURN)], [BURNT]),
        (["calls[1].status == 'ok'", "calls[0].args.x == 1"], BOTH, []),
        (["any(c.args.what == 'diary' for c in calls)"], [made("burn", BURN, what="diary")], []),
        (["any(c.args.what == 'bills' for c in calls)"], [made("burn", BURN, what="diary")], [BURNT]),
        (["len(state.diary) == 0"], [made("burn", BURN)], []),
        (["answer == 'x'"], [made("burn", BURN)], [BURNT]),
        ([], [made("burn", BURN)], []),
    ],
)
def test_what_nobody_asked_for(checks, steps, unasked):
    after = apply_patch(BEFORE, [op for step in steps if "outcome" in step for op in step["outcome"]["patch"]])
    found = unasked_changes(checked(*checks), before=BEFORE, after=after, steps=steps)
    assert [(each["kind"], each["text"]) for each in found] == [("unasked", each) for each in unasked]
    mixed = [*checked(*checks), {"id": "said", "description": "the user was told"}]
    assert unasked_changes(mixed, before=BEFORE, after=after, steps=steps) == [], "there the judge names them"


def test_a_limit_that_stops_a_check_fails_it_and_says_so():
    (item,) = checked("state.orders.values() + len(state.orders.values()) >= 0 and answer * 99999999 != ''")
    holds, reason = judge_by_rule([item], before=ORDERS, after=ORDERS, steps=[], answer="x")["0"]
    assert not holds
    assert reason.startswith("its check cannot be evaluated: ")
