"""Observe a world's calls, with a thread's earlier and later reads; the record is in `values`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..state import Call, JsonObject
from ..tools import Toolkit
from ..values.observation import Observation, observe_step
from ..world.rung import Answer
from ..world.world import World

MOST_THREADS = 1_000
"""Most threads that wait for their next write at the same time."""

TOGETHER, BEFORE, LONGER = 150, 50, 150
"""Calls of a thread that one world follows, and the calls before them that show its state; the latter with
documents."""


def observe_world(world: World, *, source: str = "world") -> list[Observation]:
    """Return the real calls of a world (`World.record`), each with the trusted part of its state."""
    steps, reads = [step for step in world.log if "outcome" in step], world.toolkit.is_read
    more: dict[str, Any] = {"start": world.snapshot()["start"], "source": source}
    real = (at for at, step in enumerate(steps) if not step["outcome"]["simulated"])
    return list(with_later((observe_step(steps[at], steps[:at], reads=reads, **more) for at in real), reads))


def known_by_reads(calls: Sequence[Observation], toolkit: Toolkit) -> Iterator[Observation]:
    """Yield a thread's calls with the results of earlier reads and the state that reads show (by `observes`)."""
    for first in range(0, len(calls), TOGETHER):
        before, world = LONGER if any(tool.derived for tool in toolkit) else BEFORE, World(toolkit, derive=False)
        start = max(0, first - before)
        some = calls[start : first + TOGETHER]
        for number, row in enumerate(some):
            call = Call(id=f"call_{number}", name=row.tool, args=row.args)
            is_still = row.status == "error" or toolkit[row.tool].reads
            world.record(call, Answer(row.status, row.result, [] if is_still else None))
        for row, made in [*zip(some, observe_world(world), strict=True)][first - start :]:
            yield replace(made, result=row.result, source=row.source)


def with_later(rows: Iterable[Observation], reads: Callable[[str], bool]) -> Iterator[Observation]:
    """Yield rows with the reads of the same thread after each, up to the next write; they follow a row in the file.

    A thread is identified by its rows' `source`, and its rows keep their order; rows without source are unchanged.

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
                status = {"status": row.status} if row.status == "error" else {}
                later.append({"name": row.tool, "args": row.args, "result": row.result, **status})
        else:
            yield from _filled(waiting.pop(row.source, ()))
        waiting.setdefault(row.source, []).append((row, []))
        if len(waiting) > MOST_THREADS:
            yield from _filled(waiting.pop(next(iter(waiting))))
    for some in waiting.values():
        yield from _filled(some)


def _filled(rows: Iterable[tuple[Observation, list[JsonObject]]]) -> Iterator[Observation]:
    return (replace(row, later=later) if later else row for row, later in rows)
