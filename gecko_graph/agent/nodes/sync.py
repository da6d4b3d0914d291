"""sync: books a real result on the task state, and finds where reality left the plan (paper, step 5)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ...events import event
from ...models.ask import AnyAsk, Reply
from ...models.formatting import cut
from ...models.node import NodeScope
from ...state import VERSION, Outcome, Step
from ...tools import Toolkit
from ...values.digest import digest
from ...values.patch import apply_patch, booked_patch
from ...world.booking import REASON_CHARS, booked
from ...world.records import Departure, ExecutedCall, PlannedCall
from ..channels import AgentState, build_request, last_entry

MOST_DEPARTURES = 3
"""How often in a turn what is left is rehearsed again because reality departed."""


def sync(
    state: AgentState, scope: NodeScope, *, toolkit: Toolkit
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Write what the last real call changed, how it drifted, and whether what is left must be rehearsed again.

    The change is the tool's own contract's or `simulate` function's, on the real arguments in the real state, or the
    rehearsed one where the real result agrees, with what was made up replaced by what it holds; else a model's. Reality
    is never refused: what breaks a schema, a postcondition or an invariant is booked as far as it can be, and ends the
    plan.
    """
    entry = last_entry(state)
    assert entry is not None
    preview = None if state.get("found") else state.get("preview")
    calls = preview["calls"] if preview else []
    planned = next((each for each in calls if each["call"]["id"] == entry["call"]["id"]), None)
    if entry["status"] == "answered":
        return answered(state, entry, planned)
    if entry["status"] not in ("ok", "error"):
        return departed(state, entry, entry.get("departure"))
    request = build_request(entry["call"], state, scope, toolkit)
    outcome, departure = yield from booked(request, entry, planned, scope, toolkit)
    step: Step = {"v": VERSION, "call": entry["call"], "outcome": outcome}
    after = apply_patch(state["task_state"], booked_patch(outcome))
    scope.emit(event("gecko.sync", attempt=0, call=entry["call"], patch=outcome["patch"], drift=entry["drift"]))
    update: dict[str, Any] = {
        "task_state": after,
        "steps": [*state["steps"], step],
        "fidelity": {request.tool.name: {"calls": 1, "drifted": int(bool(entry["drift"]))}},
    }
    if "violations" in outcome or state.get("real_digest"):
        update["real_digest"] = digest(after)
    return {**update, "journal": [entry], **departed({**state, "steps": update["steps"]}, entry, departure)}


def answered(state: AgentState, entry: ExecutedCall, planned: PlannedCall | None) -> dict[str, Any]:
    """Return the update after a call that a person has answered: its result is known, and nothing has changed.

    What is left is rehearsed again where a part of it rests on the result that was predicted.
    """
    outcome: Outcome = {
        "status": "ok", "result": entry.get("result"), "patch": [], "rung": "person", "simulated": False, "passed": [],
    }  # fmt: skip
    steps: list[Step] = [*state["steps"], {"v": VERSION, "call": entry["call"], "outcome": outcome}]
    departure: Departure | None = None
    if planned and planned["rehearse_after"]:
        departure = {"code": "result", "message": "the user has answered it, and later arguments rest on its result"}
    return {"steps": steps, **departed({**state, "steps": steps}, entry, departure)}


def departed(state: AgentState, entry: ExecutedCall, departure: Departure | None) -> dict[str, Any]:
    """Return the update that stops the plan, and has what is left rehearsed again, a bounded number of times."""
    if departure is None:
        return {}
    update: dict[str, Any] = {"journal": [{**entry, "departure": departure}]}
    if state.get("found") or state["rehearsals"].get("departed", 0) >= MOST_DEPARTURES:
        return update  # a call that was found is no part of a plan
    feedback = (
        f"The plan was being carried out. {entry['call']['name']} did not do what was expected: "
        f"{cut(departure['message'], budget=REASON_CHARS)}"
    )
    return {
        **update,
        "next_rehearsal_reason": "departed",
        "lesson": {"number": 0, "attempt_log": "", "feedback": feedback},
    }
