"""Observations of a world's calls: the record is in `values.observation`, for what makes real calls to write it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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

MOST_THREADS = 1_000
"""Threads whose next write is waited for at once."""


def observe_world(world: World, *, source: str = "", versions: JsonObject | None = None) -> list[Observation]:
    """Return the calls of a world that were really made (`World.record`), each with what is trusted of its state."""
    steps, reads = [step for step in world.log if "outcome" in step], world.toolkit.is_read
    more: dict[str, Any] = {"start": world.snapshot()["start"], "source": source, "versions": versions or {}}
    real = [at for at, step in enumerate(steps) if not step["outcome"]["simulated"]]
    rows = [observe_step(steps[at], steps[:at], reads=reads, **more) for at in real]
    later = {id(row): after for row, after in _followed(rows, reads, lambda row: "one thread")}
    return [replace(row, later=later[id(row)]) for row in rows]


def with_later(rows: Iterable[Observation], reads: Callable[[str], bool]) -> Iterator[Observation]:
    """Yield rows with the reads of the same thread after each, until that wrote: a row is written before there are any.

    A thread is known by its rows' `source`; rows without one stay as they are. `reads`: whether a tool only reads.
    """
    for row, later in _followed(rows, reads, lambda row: "" if row.later else row.source):
        yield replace(row, later=later) if later else row


def _followed(
    rows: Iterable[Observation], reads: Callable[[str], bool], thread_of: Callable[[Observation], str]
) -> Iterator[tuple[Observation, list[JsonObject]]]:
    waiting: dict[str, list[tuple[Observation, list[JsonObject]]]] = {}
    for row in rows:
        thread = thread_of(row)
        if thread and reads(row.tool):
            for _, later in waiting.get(thread, ()):
                later.append({"name": row.tool, "args": row.args, "result": row.result})
        else:
            yield from waiting.pop(thread, ())
        if thread:
            waiting.setdefault(thread, []).append((row, []))
        else:
            yield row, []
        if len(waiting) > MOST_THREADS:
            yield from waiting.pop(next(iter(waiting)))
    for some in waiting.values():
        yield from some
