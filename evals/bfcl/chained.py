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

    Once a change is not known no later answer counts as known. Identifiers that a right answer has drawn take the real
    names, as a caller would go on with those.

    Returns:
        `calls`; `known`: result and change by contract, in a known state; `right`: of these like the real tool's,
        with the state; `gaps`: changes known and the result filled; `gaps_right`: of these outcome and state.
    """
    counts = dict.fromkeys(("calls", "known", "right", "gaps", "gaps_right"), 0)
    state, is_known = calls[0].before.get(calls[0].kind, {}), True
    wrong: list[str] = []
    for one in calls:
        tool = toolkit.get(one.name)
        if tool is None or find_complaints(tool, one.args):
            is_known = is_known and one.fails  # the document refuses it; the real tool may have done it
            continue
        counts["calls"] += 1
        if not is_known:
            continue
        world = World(toolkit, state=state, context=CONTEXT)
        outcome = world.call({"name": one.name, "args": one.args})["outcome"]
        if outcome["rung"] != "contract":
            is_known = _changes_nothing(tool)
            continue
        kind = "gaps" if "filled" in outcome else "known"
        right = _is_right(one, outcome, world.state)
        counts[kind] += 1
        counts["right" if kind == "known" else "gaps_right"] += right
        wrong += [] if right else [one.name]
        state = one.after[one.kind] if right else world.state
    return {**counts, "wrong": wrong}


def _changes_nothing(tool: ToolSpec) -> bool:
    """Return whether no lawful call of the tool has ever changed anything."""
    data: Any = tool.contract.data if tool.contract is not None else {}
    known = data.get("evidence", {}).get("effects", {}).get("status") in ("established", "proposed")
    return tool.reads or (known and not data.get("effects"))


def _is_right(one: Recorded, outcome: Any, state: JsonObject) -> bool:
    if one.fails or outcome["status"] == "error":
        return one.fails == (outcome["status"] == "error") and json_equal(state, one.after[one.kind])
    real = placeholders(one.name, one.result, one.after, one.before)
    ours: Any = placeholders(one.name, outcome["result"], {**one.after, one.kind: state}, one.before)
    same: Any = ("state",) if "filled" in outcome else ("result", "state")
    return all(json_equal(real[key], ours[key]) for key in same)
