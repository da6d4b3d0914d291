"""Observations of a world's calls, and what later reads of a thread showed: the record is in `values.observation`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from ..state import JsonObject
from ..values.observation import Observation, observe_step
from ..world.world import World

MOST_THREADS = 1_000
"""Threads whose next write is waited for at once."""


def observe_world(world: World, *, source: str = "world", versions: JsonObject | None = None) -> list[Observation]:
    """Return the calls of a world that were really made (`World.record`), each with what is trusted of its state."""
    steps, reads = [step for step in world.log if "outcome" in step], world.toolkit.is_read
    more: dict[str, Any] = {"start": world.snapshot()["start"], "source": source, "versions": versions or {}}
    real = (at for at, step in enumerate(steps) if not step["outcome"]["simulated"])
    return list(with_later((observe_step(steps[at], steps[:at], reads=reads, **more) for at in real), reads))


def with_later(rows: Iterable[Observation], reads: Callable[[str], bool]) -> Iterator[Observation]:
    """Yield rows with the reads of the same thread after each, until that wrote: a row is written before there are any.

    A thread is known by its rows' `source`, and its rows keep their order; those without one stay as they are.

    Args:
        rows: The rows.
        reads: Whether a tool, by its name, only reads.
    """
    waiting: dict[str, list[tuple[Observation, list[JsonObject]]]] = {}
    for row in rows:
        if row.later or not row.source:
            yield row
            continue
        if reads(row.tool):
            for _, later in waiting.get(row.source, ()):
                later.append({"name": row.tool, "args": row.args, "result": row.result})
        else:
            yield from _filled(waiting.pop(row.source, ()))
        waiting.setdefault(row.source, []).append((row, []))
        if len(waiting) > MOST_THREADS:
            yield from _filled(waiting.pop(next(iter(waiting))))
    for some in waiting.values():
        yield from _filled(some)


def _filled(rows: Iterable[tuple[Observation, list[JsonObject]]]) -> Iterator[Observation]:
    return (replace(row, later=later) if later else row for row, later in rows)
