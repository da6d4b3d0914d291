"""A task's calls one after another on the state that learned contracts have predicted, gaps filled by the schema."""

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


def roll(toolkit: Toolkit, calls: Sequence[Recorded]) -> JsonObject:
    """Return how many of a class's calls in a task are answered as known on the predicted state, and how many right.

    Where a change is not known, what the tool has ever touched is not either, and no answer that needs it.
    Identifiers that a right answer has drawn take the real names, as a caller would go on with those.

    Returns:
        `calls`; `known`: result and change by contract, in a known state; `right`: of these like the real tool's,
        with the state; `gaps`: changes known and the result filled; `gaps_right`: of these outcome and state.
    """
    counts = dict.fromkeys(("calls", "known", "right", "gaps", "gaps_right"), 0)
    state, lost = calls[0].before.get(calls[0].kind, {}), set[str]()
    wrong: list[str] = []
    for one in calls:
        tool = toolkit.get(one.name)
        if tool is None or find_complaints(tool, one.args):
            lost |= set() if one.fails else {*state}  # the document refuses it; the real tool has done it
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
            break  # the recorded states after it hold what Python's default lists have kept
        state = {**one.after.get(one.kind, {}), **{key: world.state[key] for key in lost}} if right else world.state
    return {**counts, "wrong": wrong}


def _touches(tool: ToolSpec, state: JsonObject) -> set[str]:
    """Return the parts of the state that calls of the tool have ever changed; all of them where none was seen."""
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
