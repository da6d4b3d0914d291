"""Of a typed state only the invariants that a change touches are evaluated, and the verdict is that of all of them."""

from __future__ import annotations

import random

import pytest

from gecko_graph.contracts.contract import Invariant
from gecko_graph.errors import EvaluationFailed, PatchConflict
from gecko_graph.values.patch import apply_patch
from gecko_graph.world.state_rules import StateRules
from tests.schemas.test_change import random_patch, random_value

CHECKS = [
    "state.a is not defined or state.a is not string",
    "not state.a or not state.b",
    "'ab' not in state",
    "state.a is not mapping or 'b' not in state.a",
    "at(state, ['b', 'c'], none) != 1",
    "state['c'] is not defined or (state['c'] | string | length) < 9",
    "state | length < 4",
    "(state.b if state.a else state.c) is not sequence",
    "many(state.a) < 3",
    "size < 4",
    "not any(x in (state.c if state.c is sequence and state.c is not string else []), x == state.b)",
    "(state | length) >= (before | length)",
    "1 / (state.c if state.c is number else 1) > 0",
]
LETS = {"size": "{{ state.ab | default('') | string | length }}", "many(x)": "{{ x | default('') | string | length }}"}


@pytest.mark.parametrize("seed", range(4))
def test_the_verdict_is_that_of_all_invariants(seed):
    chance, seen = random.Random(seed), [0, 0]
    invariants = [Invariant.load({"check": check, "error": check}, lets=LETS, where="test") for check in CHECKS]
    while sum(seen) < 600:
        rules = StateRules({}, chance.sample(invariants, 3))
        state = {name: random_value(chance, 1) for name in ("a", "b", "ab", "c") if chance.random() < 0.6}
        if rules.broken(state):
            continue
        for _ in range(20):
            try:
                after = apply_patch(state, random_patch(chance, state, lambda: random_value(chance, 1)))
            except PatchConflict:
                continue
            if not isinstance(after, dict):
                continue
            whole = [one.data["check"] for one in rules.invariants if is_broken(one, state, after)]
            found = [one["error"] for one in rules.violations(state, after)]
            assert bool(found) == bool(whole), (state, after, found, whole)
            seen[bool(whole)] += 1
            state = state if whole else after
    assert min(seen) > 60, seen


def is_broken(invariant, before, after):
    try:
        return invariant.violation(before, after) is not None
    except EvaluationFailed:
        return True
