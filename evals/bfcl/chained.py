"""Run a task's calls in sequence on the state that learned contracts predict; the schema fills unknown results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gecko_graph import GeckoContext, Toolkit, ToolSpec, World
from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.state import JsonObject
from gecko_graph.values.difference import json_equal

from .drawn import placeholders
from .fidelity import Recorded

CONTEXT = GeckoContext(ladder=("contract", "schema"), semantic_validation=False)


def play_calls(toolkit: Toolkit, calls: Sequence[Recorded]) -> JsonObject:
    """Return how many of a class's calls in a task are predicted on the predicted state, and how many correctly.

    If a change is unknown, every key that the tool has ever changed becomes unknown, and with it each answer that reads
    such a key. Identifiers that a right answer has drawn are replaced by the real ones, which a caller would use next.

    Returns:
        `calls`; `known`: result and change by contract, in a known state; `right`: of these those with the real result
        and state; `gaps`: change known and result filled in; `gaps_right`: of these those with the real outcome and
        state.
    """
    counts = dict.fromkeys(("calls", "known", "right", "gaps", "gaps_right"), 0)
    state, lost = calls[0].before.get(calls[0].kind, {}), set[str]()
    wrong: list[str] = []
    for one in calls:
        tool = toolkit.get(one.name)
        if tool is None or find_complaints(tool, one.args):
            lost |= set() if one.fails else {*state}  # the document refuses a call that the real tool has made
            continue
        counts["calls"] += 1
        if tool.contract is None or tool.contract.state_keys & lost:
            lost |= _touches(tool, state)
            continue
        world = World(toolkit, state=state, context=CONTEXT)
        outcome = world.call({"name": one.name, "args": one.args})["outcome"]
        if outcome["rung"] != "contract":
            lost |= _touches(tool, state)
            continue
        kind = "gaps" if "filled" in outcome else "known"
        right = _is_right(one, outcome, world.state, lost)
        counts[kind] += 1
        counts["right" if kind == "known" else "gaps_right"] += right
        wrong += [] if right else [one.name]
        if one.has_leaked:
            break  # the recorded states after it contain values that Python's shared default lists have kept
        state = {**one.after.get(one.kind, {}), **{key: world.state[key] for key in lost}} if right else world.state
    return {**counts, "wrong": wrong}


def _touches(tool: ToolSpec, state: JsonObject) -> set[str]:
    """Return the keys of the state that calls of the tool have ever changed; all keys if no change was seen."""
    data: Any = tool.contract.data if tool.contract is not None else {}
    return {*data.get("evidence", {}).get("touches", state)}


def _is_right(one: Recorded, outcome: Any, state: JsonObject, lost: set[str]) -> bool:
    state = {**state, **{key: one.after.get(one.kind, {}).get(key) for key in lost}}
    if one.fails or outcome["status"] == "error":
        return one.fails == (outcome["status"] == "error") and json_equal(state, one.after.get(one.kind, {}))
    real = placeholders(one.name, one.result, one.after, one.before)
    after = {**one.after, one.kind: state} if one.kind in one.after else one.after
    ours: Any = placeholders(one.name, outcome["result"], after, one.before)
    same: Any = ("state",) if "filled" in outcome else ("result", "state")
    return all(json_equal(real[key], ours[key]) for key in same)
