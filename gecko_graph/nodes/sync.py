"""sync: books a real result on the task state, and finds where reality left the plan (paper, step 5)."""

from __future__ import annotations

from typing import Any

from ..errors import EvaluationFailed
from ..execution.channels import AgentState, last_entry
from ..execution.records import Departure, ExecutedCall, PlannedCall
from ..models.node import NodeScope
from ..schemas.complaints import find_faults
from ..state import VERSION, JsonObject, Outcome, Step
from ..task_state.patch import apply_patch
from ..toolkit import Toolkit

MOST_DEPARTURES = 3


def sync(state: AgentState, scope: NodeScope, *, toolkit: Toolkit) -> dict[str, Any]:
    """Write what the last real call changed, and whether what is left must be rehearsed again."""
    entry = last_entry(state)
    assert entry is not None
    preview = state["preview"]
    planned = next(each for each in preview["calls"] if each["call"]["id"] == entry["call"]["id"]) if preview else None
    update: dict[str, Any] = {}
    departure = entry.get("departure")
    if entry["status"] in ("ok", "error"):
        departure = departure_of(entry, planned, toolkit)
        patch = planned["predicted"]["patch"] or [] if planned and entry["status"] == "ok" else []
        outcome: Outcome = {
            "status": "ok" if entry["status"] == "ok" else "error",
            "result": entry.get("result"),
            "patch": patch,
            "rung": "real",
            "simulated": False,
            "passed": [],
        }
        step: Step = {"v": VERSION, "call": entry["call"], "outcome": outcome}
        after: JsonObject = apply_patch(state["task_state"], patch)
        update = {"task_state": after, "steps": [*state["steps"], step]}
    if departure:
        update["journal"] = [{**entry, "departure": departure}]
        if state["rehearsals"].get("departed", 0) < MOST_DEPARTURES:
            name = entry["call"]["name"]
            text = f"{name} was really called, and did not do what the rehearsal showed: {departure['message']}"
            update |= {"again": "departed", "lesson": {"number": 0, "attempt_log": "", "feedback": text}}
    return update


def departure_of(entry: ExecutedCall, planned: PlannedCall | None, toolkit: Toolkit) -> Departure | None:
    """Return how a real result left the plan; None where it did not."""
    if entry["status"] == "error":
        return {"code": "error", "message": str(entry.get("result"))}
    schema = toolkit[entry["call"]["name"]].result
    try:
        found = find_faults(schema, entry.get("result")) if schema is not None else []
    except EvaluationFailed as failure:
        found = [str(failure)]
    if found:
        return {"code": "schema", "message": "; ".join(found[:3])}
    if planned and planned["rehearse_after"] and entry.get("result") != planned["predicted"]["result"]:
        return {"code": "result", "message": "its result is not the one that later arguments were chosen from"}
    return None
