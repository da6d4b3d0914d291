"""What the given task state says of a plan's values: where it holds them, and which numbers its counters give next."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from ..models.focus import split_term
from ..state import JsonObject, Step
from ..values.finding import canonical, forms_of, whole_form
from ..values.origins import Mark
from ..values.patch import find, pointer
from ..values.places import scalars

_RUNS = re.compile(r"[^\W\d_]+|\d+")
_COUNTS = {"counter", "count", "sequence", "next", "last", "serial"}
"""Words of a key that holds the number of the next thing, or of the last one."""


class Tally(NamedTuple):
    """A counter of the task state: the words of what it counts, the numbers that it gives next, its place's mark."""

    words: frozenset[str]
    numbers: tuple[int, ...]
    mark: Any


def _parents(path: str) -> list[str]:
    names = path.split("/")
    return ["/".join(names[:end]) for end in range(1, len(names) + 1)]


def search_state(state: JsonObject, wanted: set[str], supposed: set[str]) -> Iterator[tuple[str, Mark]]:
    """Yield the wanted forms that the state holds outside of what was made up; a large state is read once."""
    moments = any("~" in form or ":" in form for form in wanted)
    for place, value in scalars(state, keys=True):
        if value is None or isinstance(value, bool):
            continue
        if isinstance(value, str):
            low = whole_form(value)
            near = low in wanted or not wanted.isdisjoint(_RUNS.findall(low)) or (moments and low[1:2].isdigit())
        else:
            near = canonical(value) in wanted
        if near and not supposed & {*_parents(pointer(place))}:
            yield from ((form, Mark("stated", "state", place)) for form in forms_of(value) if form in wanted)


def numbers_made_up(steps: Sequence[Step]) -> set[str]:
    """Return the numbers in what rungs made up, in their canonical form."""
    made = (step["outcome"]["result"] for step in steps if step.get("outcome", {}).get("invented"))
    return {canonical(each) for result in made for _, each in scalars(result) if type(each) in (int, float)}


def tallies_of(state: JsonObject, supposed: Collection[str]) -> Iterator[Tally]:
    """Yield the counters of a state, also those that writes have changed since; not of what is made up as a whole."""
    for place, value in scalars(state):
        words = {*split_term(str(place[-1]))} if type(value) is int else set[str]()
        if not words & _COUNTS or any(pointer(place[:end]) in supposed for end in range(len(place))):
            continue
        beside = [key for key in find(state, [*map(str, place[:-1])]) if key != place[-1]]
        is_changed = pointer(place) in supposed
        if not is_changed or any(pointer((*place[:-1], key)) not in supposed for key in beside):
            numbers = (value - 1, value) if is_changed else (value, value + 1)
            yield Tally(frozenset(words - _COUNTS), numbers, Mark("derived", place=place))
