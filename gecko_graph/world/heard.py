"""The sources from which a plan's values may be derived: parsed words of the user, and results.

Of the words, only possible numbers, dates and durations are kept; `derived` computes with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from ..models.focus import split_term
from ..state import Json
from ..values.finding import durations_of, forms_of
from ..values.places import Place, scalars

MOST_VALUES = 10_000
MOST_SAID = 12

_SUMS = r"add|adds|added|adding|plus|and|more|another|extra|total|together|with|tip|came|in|increase\w*|rais\w+|up|both"
_LESS = r"minus|less|off|discount|fewer|went|out|left|remain\w*|rest|reduc\w+|decreas\w+|lower\w*|drop|down|except|back"
_CUES = {
    "+": re.compile(rf"(?i)\b(?:{_SUMS}|sum|after|later)\b|\+"),
    "-": re.compile(rf"(?i)\b(?:{_LESS}|subtract|before|earlier|difference|without|from)\b|\d ?- ?\d"),
    "×": re.compile(r"(?i)(?:\b(?:at|times|x|twice)\b|[×*@]).{0,12}|.{0,20}\b(?:each|per|apiece|a piece|every)\b"),
    "÷": re.compile(
        r"(?i)\b(?:each|per|split|shar\w+|divid\w+|half|third|quarter|fourth|fifth|tenth|average|by)\b|[/÷]"
    ),
    "%": re.compile(r"(?i)%|\bper ?cent\b"),
}
_NEAREST = re.compile(r"(?i)\bnearest (ten|hundred|thousand|million)")
_SIZES = {"ten": 10, "hundred": 100, "thousand": 1_000, "million": 1_000_000}
PLAIN = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
DATE = re.compile(r"(\d{4})~(\d{1,2})-(\d{1,2})")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
RELATIVE = re.compile(
    rf"(?i)\b(?P<which>next|this|coming|last|past|on|by|until|till|for|every)? ?(?P<weekday>{'|'.join(WEEKDAYS)})s?\b"
    r"|\b(?P<word>day (?:after|before)(?: tomorrow| yesterday)?|today|tonight|now|tomorrow|yesterday)\b"
    r"|\b(?P<number>\d{1,3}|an?|one|two|three|four|five|six|seven|ten|next|last) "
    r"(?P<unit>day|night|week)s?(?P<back> (?:ago|before|earlier))?"
)

Record: TypeAlias = dict[str | int, Json]


class Number(NamedTuple):
    """A known number, its text, and its mark."""

    value: float
    text: str
    mark: Any


class Heard:
    """The user's texts with their marks; each aspect is parsed once, on demand."""

    def __init__(self, said: Sequence[tuple[str, Any]]) -> None:
        self.said = said
        self.text = " ".join(words for words, _ in said)

    @cached_property
    def numbers(self) -> list[Number]:
        forms = {form: mark for text, mark in self.said for form in forms_of(text) if PLAIN.fullmatch(form)}
        return [Number(float(form), form, mark) for form, mark in forms.items()][-MOST_SAID:]

    @cached_property
    def cues(self) -> set[str]:
        """The signs of the operations that the words name."""
        return {sign for sign, cue in _CUES.items() if cue.search(self.text)}

    @cached_property
    def prices(self) -> set[str]:
        return {form for near in _CUES["×"].findall(self.text) for form in forms_of(near)}

    @cached_property
    def words(self) -> set[str]:
        """The words, also in the singular."""
        return {*split_term(self.text)}

    @cached_property
    def sizes(self) -> set[int]:
        """The units (ten, hundred, ...) to which numbers are to be rounded."""
        return {_SIZES[near.lower()] for text, _ in self.said for near in _NEAREST.findall(text)}

    @cached_property
    def durations(self) -> list[tuple[set[int], Any]]:
        return [(durations_of(text), mark) for text, mark in self.said]

    @cached_property
    def days(self) -> list[date]:
        return [day for text, _ in self.said for day in days_in(forms_of(text))]

    @cached_property
    def relative(self) -> list[tuple[re.Match[str], Any]]:
        """Matches of words for days relative to another day."""
        return [(found, mark) for text, mark in self.said for found in RELATIVE.finditer(text)]


class Result:
    """A tool's result, with its scalars by object, and a function from a place to its mark."""

    def __init__(self, value: Json, mark_at: Callable[[Place], Any]) -> None:
        self.value, self.mark_at = value, mark_at

    @cached_property
    def records(self) -> Mapping[Place, Record]:
        """The scalars by the object that contains them."""
        records: dict[Place, Record] = {}
        for place, value in islice(scalars(self.value), MOST_VALUES):
            if value is not None and not isinstance(value, bool):
                records.setdefault(place[:-1], {})[place[-1] if place else "$"] = value
        return records


def days_in(forms: Iterable[str]) -> Iterator[date]:
    for form in forms:
        if found := DATE.fullmatch(form):
            with suppress(ValueError):
                yield date(int(found[1]), int(found[2]), int(found[3]))
