"""The preview of a plan: what will be called, in order, with what the rehearsal predicts of each call."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ..state import VERSION, Call, JsonObject, Rehearsal, Step
from ..task_state.digest import digest
from ..toolkit import Toolkit
from .bindings import bound
from .policy import ReviewPolicy
from .records import PlannedCall, Preview


def make_preview(
    rehearsal: Rehearsal, state: JsonObject, done: Sequence[Step], *, toolkit: Toolkit, policy: ReviewPolicy
) -> Preview | None:
    """Return what an accepted plan has left to do; None where that is nothing.

    Args:
        rehearsal: The rehearsal; its plan begins with what was done.
        state: The task state that the calls begin from.
        done: The turn's steps that were really made.
        toolkit: The tools.
        policy: Which calls are reviewed.
    """
    attempt = next(each for each in rehearsal["attempts"] if each["number"] == rehearsal["chosen"])
    made = {step["call"]["id"] for step in done}
    steps = {step["call"]["id"]: step for step in attempt["steps"]}
    writes = {id_ for id_, step in steps.items() if not toolkit[step["call"]["name"]].reads} - made
    calls: list[PlannedCall] = []
    chosen_from: set[str] = set()
    for call in rehearsal["plan"]:
        if call["id"] in made:
            continue
        bindings, reads = bound(call, rehearsal.get("origins", {}), attempt["steps"], writes)
        chosen_from |= set(reads)
        outcome, tool = steps[call["id"]]["outcome"], toolkit[call["name"]]
        word, reason = policy.word(tool)
        calls.append(
            {
                "call": call,
                "effect": tool.effect or "unknown",
                "predicted": {key: outcome[key] for key in ("status", "result", "rung", "patch")},  # type: ignore[typeddict-item]
                "bindings": bindings,
                "ambiguous": [],
                "made_up": [each for each in rehearsal["verdict"].get("made_up", []) if each["call"] == call["id"]],
                "rehearse_after": False,
                "review": word,
                "reason": reason,
            }
        )
    for each in calls:
        each["rehearse_after"] = each["call"]["id"] in chosen_from and each["predicted"]["rung"] != "real"
    if not calls:
        return None
    start = digest(state)
    return {
        "v": VERSION,
        "digest": preview_digest(calls, start),
        "start_digest": start,
        "made_at": time.time(),
        "calls": calls,
        "changes": rehearsal.get("changes", []),
    }


def preview_digest(calls: Sequence[PlannedCall], start: str) -> str:
    """Return the digest of the calls, with a hole for each bound argument, and of the state that they begin from."""
    return digest([start, [with_holes(each) for each in calls]])


def with_holes(planned: PlannedCall) -> Call:
    """Return a call with a hole in the place of each bound argument."""
    from .bindings import replaced

    call: Call = {**planned["call"]}
    for binding in planned["bindings"]:
        call["args"] = replaced(call["args"], binding["argument"], {"from": binding["call"], "path": binding["path"]})
    return call
