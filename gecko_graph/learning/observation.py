"""Observations of a world's calls: the record is in `values.observation`, for what makes real calls to write it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..state import JsonObject
from ..values.observation import (
    BadRows,
    Observation,
    is_masked,
    mask_values,
    observe_step,
    without_masked,
    write_rows,
)
from ..world.world import World

__all__ = ["BadRows", "Observation", "is_masked", "mask_values", "observe_world", "without_masked", "write_rows"]


def observe_world(world: World, *, source: str = "", versions: JsonObject | None = None) -> list[Observation]:
    """Return the calls of a world that were really made (`World.record`), each with what is trusted of its state."""
    steps, reads = [step for step in world.log if "outcome" in step], world.toolkit.is_read
    more: dict[str, Any] = {"start": world.snapshot()["start"], "source": source, "versions": versions or {}}
    real = [(at, step) for at, step in enumerate(steps) if not step["outcome"]["simulated"]]
    rows = [(at, observe_step(step, steps[:at], reads=reads, **more)) for at, step in real]
    made: list[Observation] = []
    for at, row in rows:
        until = next((other for other, each in rows if other > at and not reads(each.tool)), len(steps))
        after = [each for other, each in rows if at < other < until]
        later = [{"name": each.tool, "args": each.args, "result": each.result} for each in after]
        made.append(replace(row, later=later))
    return made
