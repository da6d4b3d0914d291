"""Observations of a world's calls. (The record is in `values.observation`: also what makes real calls writes it.)"""

from __future__ import annotations

from ..state import JsonObject, Step
from ..values.observation import (
    BadRows,
    Observation,
    is_masked,
    mask_values,
    without_masked,
    write_rows,
)
from ..values.origins import find_untrusted, trusted_part
from ..values.patch import booked_patch, fold_patches
from ..world.world import World

__all__ = ["BadRows", "Observation", "is_masked", "mask_values", "observe_world", "without_masked", "write_rows"]


def observe_world(world: World, *, source: str = "", versions: JsonObject | None = None) -> list[Observation]:
    """Return the calls of a world that were really made (`World.record`), each with what is trusted of its state."""
    start, steps = world.snapshot()["start"], [step for step in world.log if "outcome" in step]
    real = [(at, step) for at, step in enumerate(steps) if not step["outcome"]["simulated"]]
    reads = {at: _shown(step) for at, step in real if world.toolkit[step["call"]["name"]].reads}
    made: list[Observation] = []
    for at, step in real:
        outcome, call = step["outcome"], step["call"]
        state = fold_patches(start, [booked_patch(each["outcome"]) for each in steps[:at]])
        until = min((other for other, _ in real if other > at and other not in reads), default=len(steps))
        is_known = outcome["status"] == "error" or at in reads or (outcome["patch"] and not outcome.get("supposed"))
        made.append(
            Observation(
                call["name"],
                call["args"],
                outcome["status"],
                outcome["result"],
                before=trusted_part(state, find_untrusted(start, [], steps[:at])),
                change=list(outcome["patch"] or []) if is_known else None,
                shown=[shown for other, shown in reads.items() if other < at],
                later=[shown for other, shown in reads.items() if at < other < until],
                source=source,
                versions=versions or {},
            )
        )
    return made


def _shown(step: Step) -> JsonObject:
    return {"name": step["call"]["name"], "args": step["call"]["args"], "result": step["outcome"]["result"]}
