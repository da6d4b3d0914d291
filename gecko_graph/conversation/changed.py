"""Find the changes by a conversation's calls: repeat the calls, and compare the tables of two states."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ..context import GeckoContext
from ..state import RUNTIME, Json, JsonObject, Step
from ..tools import Toolkit
from ..values.difference import json_equal, net_changes
from ..values.origins import OriginMap
from ..values.patch import tokens
from ..values.places import Place, map_texts, pointer, scalars
from ..world.provenance import is_planned
from ..world.world import World
from .milestones.measures import subtract
from .milestones.tables import CLOCK as NOW
from .milestones.tables import ENTRIES, Table, find_table
from .user import CLOCK, add_minutes

Path = tuple[str, ...]

UNWATCHED = (NOW, RUNTIME)


class Rerun:
    """The calls of a log, repeated one by one.

    New values in results, such as identifiers, replace the old ones in later calls.

    Args:
        toolkit: The tools; contracts, functions and examples answer, no model.
        start: The task state before the first call.
        log: The steps to repeat.
        seed: Another seed draws other values.
        minutes: Minutes to add to the state's clock, for values that depend on it.
    """

    def __init__(
        self, toolkit: Toolkit, start: JsonObject, log: Sequence[Step], *, seed: int = 0, minutes: int = 0
    ) -> None:
        context = GeckoContext(seed=seed, semantic_validation=False)
        start = {**start, "now": add_minutes(start["now"], minutes) or start["now"]} if "now" in start else start
        self._log, self._minutes, self._renamed = log, minutes, dict[str, Json]()
        self._world = World(toolkit, state=start, context=context, derive=False)
        self.steps: list[Step] = []
        self.states: list[JsonObject] = [start]
        self._forks: list[tuple[World, dict[str, Json]]] = []

    def run(self) -> Rerun:
        for step in self._log:
            self._forks.append((self._world.fork(), dict(self._renamed)))
            self.steps.append(self._make(self._world, step, self._renamed))
            self.states.append(self._world.state)
        return self

    def without(self, index: int) -> list[Step]:
        world, renamed = self._forks[index]
        world, renamed = world.fork(), dict(renamed)
        return [self._make(world, step, renamed) for step in self._log[index + 1 :]]

    def find_failed(self) -> Step | None:
        """Return the first step that succeeded in the log and fails here, or None."""
        pairs = zip(self._log, self.steps, strict=True)
        return next((then for then, now in pairs if is_planned(then) and not is_planned(now)), None)

    def _make(self, world: World, step: Step, renamed: dict[str, Json]) -> Step:
        call = step["call"]
        if call["name"] == CLOCK:
            patch = step["outcome"]["patch"] or ()
            moved = [{**each, "value": add_minutes(each["value"], self._minutes) or each["value"]} for each in patch]
            made = {**step, "outcome": {**step["outcome"], "patch": moved}}
            world.replay([{"step": made, "note": {}}])
            return made  # type: ignore[return-value]
        args = map_texts(call["args"], lambda text: renamed.get(text, text))
        done = world.call({"name": call["name"], "args": args})
        if is_planned(step) and is_planned(done):
            pairs = find_differences(step["outcome"]["result"], done["outcome"]["result"])
            renamed |= {old: new for _, old, new in pairs if isinstance(old, str)}
        return done


def find_differences(old: Json, new: Json) -> Iterator[tuple[Place, Json, Json]]:
    """Yield the scalars that differ between two values, with their places."""
    there = dict(scalars(new))
    for place, value in scalars(old):
        if place in there and not json_equal(value, there[place]):
            yield place, value, there[place]


def find_tables(
    before: JsonObject,
    after: JsonObject,
    free: Collection[str] = (),
    again: tuple[JsonObject, JsonObject] | None = None,
) -> list[str]:
    """Return the smallest tables that contain all changes between two states, none of them below another.

    `again` are both states of another run, which shows randomly drawn keys: then the object's entries are rows.
    """
    paths = _find_paths(before, after)
    if again:
        known = {path[:end] for path in _find_paths(*again) for end in range(1, len(path) + 1)}
        paths = {_cut(path, known) for path in paths}
    outer = [path for path in paths if not any(_is_below(path, other) for other in paths)]
    return [name for path in sorted(outer) if (name := ".".join(path)) not in free]


def _is_below(path: Path, other: Path) -> bool:
    held = other[:-1] if other[-1] == "*" else other
    return path != other and len(path) > len(held) and path[: len(held)] == held


def _cut(path: Path, known: Collection[Path]) -> Path:
    """Return a path; if it is unknown, the path of the entries in its known part."""
    end = next((end for end in range(len(path), 0, -1) if path[:end] in known), len(path))
    return path if end == len(path) else (*path[:end], "*")


def _find_paths(before: JsonObject, after: JsonObject) -> set[Path]:
    paths = (tokens(each.path) for each in net_changes(before, after))
    return {find_table_of(path, (before, after)) for path in paths if path[0] not in UNWATCHED}


def find_table_of(path: Sequence[str], states: Sequence[JsonObject]) -> Path:
    """Return the innermost list, or object of objects, on a path; else the path of the value.

    Lists are not entered, nor keys with characters that a table's name cannot contain.
    """
    here: list[Json] = list(states)
    found, depth = None, 0
    for depth, key in enumerate(path):
        if depth and any(isinstance(value, list) for value in here):
            return tuple(path[:depth])
        if depth and any(map(_is_table, here)) and all(value in ({}, None) or _is_table(value) for value in here):
            found = tuple(path[:depth])
        if depth and ("." in key or ", " in key):
            return found or tuple(path[:depth])
        here = [value.get(key) if isinstance(value, dict) else None for value in here]
    return found or tuple(path)


def _is_table(value: Json) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(row, dict) for row in value.values())


class TableChange(NamedTuple):
    """The changes of a table: new or changed rows with their places, and removed or changed rows.

    `drawn` are columns with random values: new identifiers, times.
    """

    at: str
    now: Table
    new: list[tuple[Path, JsonObject]]
    gone: list[JsonObject]
    drawn: frozenset[str]

    def describe(self) -> tuple[str, list[JsonObject]]:
        """Return the change in the form of a milestone's state: its kind, and rows without random values."""
        if not self.gone:
            return "addition", self.rows
        if not self.new:
            return "removal", self.gone
        if len(self.new) == len(self.gone) and all(_is_version(row, self.gone) for _, row in self.new):
            return "update", self.rows
        new = [row for _, row in self.new]
        return "snapshot", [self.keep(row) if row in new else row for row in self.now]

    @property
    def rows(self) -> list[JsonObject]:
        return [self.keep(row) for _, row in self.new]

    def keep(self, row: JsonObject) -> JsonObject:
        """Return a row without random values."""
        return {column: value for column, value in row.items() if column not in self.drawn}


def _is_version(row: JsonObject, gone: Sequence[JsonObject]) -> bool:
    if "key" in row:  # equal values alone do not make it a version
        return any("key" in other and json_equal(other["key"], row["key"]) for other in gone)
    return any(any(column in other and json_equal(other[column], row[column]) for column in row) for other in gone) or (
        set(row) == {"value"}
    )


def compare_table(at: str, before: JsonObject, after: JsonObject, again: tuple[JsonObject, JsonObject]) -> TableChange:
    """Return a table's changes; `again` are both states of another run, with other random values."""
    then, now = find_table(before, at), find_table(after, at)
    rows = subtract(now, then)
    other = subtract(find_table(again[1], at), find_table(again[0], at))
    pairs = list(zip(rows, other, strict=True)) if len(rows) == len(other) else []
    drawn = {key for one, two in pairs for key in one if key not in two or not json_equal(one[key], two[key])}
    return TableChange(at, now, list(_find_places(at, after, rows)), subtract(then, now), frozenset(drawn))


def _find_places(at: str, state: JsonObject, rows: Sequence[JsonObject]) -> Iterator[tuple[Path, JsonObject]]:
    path = tuple(at.removesuffix(ENTRIES).split("."))
    left = list(rows)
    for number, row in enumerate(find_table(state, at)):
        if row in left:
            left.remove(row)
            value: Json = state
            for key in path:
                value = value[key] if isinstance(value, dict) else None
            has_keys = _is_table(value) or at.endswith(ENTRIES)
            last = (str(number),) if isinstance(value, list) else (row["key"],) if has_keys else ()
            yield (*path, *last), row


def attribute(start: JsonObject, steps: Sequence[Step], change: TableChange) -> dict[int, list[JsonObject]]:
    """Return step number (from 1) to rows, with the columns whose values come from the step."""
    ledger = OriginMap(start).book(steps)
    found: dict[int, list[JsonObject]] = defaultdict(list)
    for place, row in change.new:
        parts: dict[int, JsonObject] = defaultdict(dict)
        for column, value in change.keep(row).items():
            at = place if column in ("key", "value") else (*place, column)
            if (origin := ledger.origin_at(pointer(at))) and "step" in origin:
                parts[origin["step"]][column] = value
        for step, part in parts.items():
            found[step].append(({"key": row["key"]} if "key" in change.keep(row) else {}) | part)
    return found
