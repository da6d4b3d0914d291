"""The start of an attempt: the given state's values, and the next numbers of its counters."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from langchain_core.messages import AnyMessage

from ..models.focus import split_term
from ..state import JsonObject, Step, UnjudgedAttempt
from ..values.finding import canonical, forms_of, whole_form
from ..values.origins import Mark
from ..values.patch import find
from ..values.places import pointer, scalars

_RUNS = re.compile(r"[^\W\d_]+|\d+")
_COUNTS = {"counter", "count", "sequence", "next", "last", "serial"}
"""Words of a key whose number is the next or the last thing's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The start of an attempt.

    Args:
        conversation: Messages up to the task; results of earlier turns carry their rung (`models.memory`).
        state: The task state at the attempt's start.
        supposed: JSON Pointers to its made-up parts.
        lesson: The failed attempt that the planner was shown.
        reads: Tool to the root keys of the state from which its contract computes the result, "" for the whole.
        reading: Names of the tools that only read; ordinary words and flags of their calls need no source.
        about: Tool to description.
        answer: The planner's final message, which is traced like an argument.
    """

    conversation: Sequence[AnyMessage]
    state: JsonObject
    supposed: Sequence[str] = ()
    lesson: UnjudgedAttempt | None = None
    reads: Mapping[str, Collection[str]] = field(default_factory=dict)
    reading: Collection[str] = ()
    about: Mapping[str, str] = field(default_factory=dict)
    answer: str = ""


class Tally(NamedTuple):
    """A counter of the task state: words for the counted things, its next numbers, the mark of its place."""

    words: frozenset[str]
    numbers: tuple[int, ...]
    mark: Any


def search_state(state: JsonObject, wanted: set[str], supposed: set[str]) -> Iterator[tuple[str, Mark]]:
    """Yield the wanted forms in the state outside of made-up parts; a large state is read once."""
    moments = any("~" in form or ":" in form for form in wanted)
    for place, value in scalars(state, keys=True):
        if value is None or isinstance(value, bool):
            continue
        if isinstance(value, str):
            low = whole_form(value)
            near = low in wanted or not wanted.isdisjoint(_RUNS.findall(low)) or (moments and low[1:2].isdigit())
        else:
            near = canonical(value) in wanted
        if near and not any(pointer(place[:end]) in supposed for end in range(len(place) + 1)):
            yield from ((form, Mark("stated", "state", place)) for form in forms_of(value) if form in wanted)


def numbers_made_up(steps: Sequence[Step]) -> set[str]:
    made = (step["outcome"]["result"] for step in steps if step.get("outcome", {}).get("invented"))
    return {canonical(each) for result in made for _, each in scalars(result) if type(each) in (int, float)}


def tallies_of(state: JsonObject, supposed: Collection[str]) -> Iterator[Tally]:
    """Return the counters of a state outside of made-up parts; those that writes have changed count as well."""
    for place, value in scalars(state):
        words = {*split_term(str(place[-1]))} if type(value) is int else set[str]()
        if not words & _COUNTS or any(pointer(place[:end]) in supposed for end in range(len(place))):
            continue
        beside = [key for key in find(state, [*map(str, place[:-1])]) if key != place[-1]]
        is_changed = pointer(place) in supposed
        if not is_changed or any(pointer((*place[:-1], key)) not in supposed for key in beside):
            numbers = (value - 1, value) if is_changed else (value, value + 1)
            yield Tally(frozenset(words - _COUNTS), numbers, Mark("derived", place=place))
