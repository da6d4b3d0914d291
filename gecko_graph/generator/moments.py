"""Dates and times that keep their order: ends come after starts, updates after creations (paper, appendix A.4).

All moments of one object hang on one anchor, at distances that follow from what the field's name says. So they agree
however many fields there are, and whatever each one's form is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ..state import Json, JsonObject
from .dice import Dice
from .naming import vocabulary, words

_RANKS: Mapping[str, frozenset[str]] = {
    "born": vocabulary("birth birthday birthdate dob born founded"),
    "created": vocabulary(
        "created creation create issued registered joined opened posted ordered published placed member uploaded"
    ),
    "updated": vocabulary("updated update modified edited changed last seen"),
    "end": vocabulary(
        "end ends ending finish finished until arrive arrival arrives checkout dropoff return through "
        "completed closed delivered resolved to"
    ),
    "expiry": vocabulary("expire expires expiry expiration due deadline"),
}

_TEMPORAL = vocabulary("date day datetime timestamp time at dob birthday birthdate on deadline when epoch")

_FORMS: Sequence[tuple[str, str]] = (
    ("yyyy-mm-dd hh:mm:ss", "%Y-%m-%d %H:%M:%S"),
    ("yyyy-mm-ddthh:mm:ssz", "%Y-%m-%dT%H:%M:%SZ"),
    ("yyyy-mm-ddthh:mm:ss", "%Y-%m-%dT%H:%M:%S"),
    ("yyyy-mm-dd hh:mm", "%Y-%m-%d %H:%M"),
    ("yyyy-mm-dd", "%Y-%m-%d"),
    ("yyyy/mm/dd", "%Y/%m/%d"),
    ("mm/dd/yyyy", "%m/%d/%Y"),
    ("dd/mm/yyyy", "%d/%m/%Y"),
    ("hh:mm:ss", "%H:%M:%S"),
    ("hh:mm", "%H:%M"),
)
_FORMATS = {"date": "%Y-%m-%d", "date-time": "%Y-%m-%dT%H:%M:%SZ", "time": "%H:%M:%SZ"}
_READABLE = (*(form for _, form in _FORMS), "%Y-%m-%dT%H:%M", "%H:%M:%SZ")
_DATED = ("%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y")
_FIRST_DAY = datetime(2025, 1, 6)


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where an object's moments hang: the start of whatever it describes, and how far the others are from it."""

    start: datetime
    length: timedelta
    days: int
    """Days from a start to an end, where only dates are told."""
    spread: int
    """0 to 9: what makes creations and birthdays differ."""

    def moment(self, rank: str, *, dates_only: bool) -> datetime:
        """The moment of a rank."""
        if rank == "end":
            return self.start + (timedelta(days=self.days) if dates_only else self.length)
        distance = {
            "born": -11_000 - 700 * self.spread,
            "created": -20 - self.spread,
            "updated": -5 - self.spread % 4,
            "expiry": 30 + self.spread,
        }
        return self.start + timedelta(days=distance.get(rank, 0))


def anchor(dice: Dice, given: datetime | None = None, *, timed: bool = False, later: bool = False) -> Anchor:
    """Throw an anchor.

    Args:
        dice: The object's dice.
        given: The start that the call's arguments speak of.
        timed: True if `given` has a time of day of its own.
        later: True where the start may be somewhat later than such a time, as among several finds.
    """
    start = given or _FIRST_DAY + timedelta(days=dice.below(540))
    if not timed:
        start = start.replace(hour=dice.between(6, 13), minute=5 * dice.below(12), second=0)
    elif later:
        start += timedelta(minutes=5 * dice.below(37))
    length = timedelta(minutes=dice.between(12, 72) * 5)
    return Anchor(start, length, dice.between(1, 5), dice.below(10))


def rank_of(names: Sequence[str]) -> str:
    """What the nearest telling name says about the order: `born`, `created`, `updated`, `start`, `end` or `expiry`."""
    for name in reversed(names):
        found = set(words(name))
        for rank, telling in _RANKS.items():
            if found & telling:
                return rank
    return "start"


def form_of(name: str, schema: JsonObject) -> str | None:
    """How a moment is written in this field: as for `strftime`, or `epoch`, `epoch_ms`; None where it is no moment."""
    kind, said = schema.get("type"), str(schema.get("description", "")).lower()
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    if kind in ("integer", "number"):
        return _number_form(name, schema, said)
    if kind not in ("string", None) or "enum" in schema or "pattern" in schema or schema.get("format"):
        return None
    if not (set(words(name)[-2:]) & _TEMPORAL or {"date", "time"} & set(words(said))):
        return None
    return _text_form(name, schema, said)


def _number_form(name: str, schema: JsonObject, said: str) -> str | None:
    if not ({"timestamp", "epoch"} & set(words(name)) or words(name)[-1:] == ("at",) or "unix" in said):
        return None
    return "epoch_ms" if "millisecond" in said or words(name)[-1:] == ("ms",) else "epoch"


def _text_form(name: str, schema: JsonObject, said: str) -> str | None:
    for example in examples_of(schema):
        if isinstance(example, str) and (form := _form_of_text(example)):
            return form
    for told, form in _FORMS:
        if told in said:
            return form
    found = words(name)
    if not set(found[-2:]) & _TEMPORAL:
        return None
    if {"date", "day", "dob", "birthday", "birthdate", "deadline"} & set(found):
        return _FORMATS["date"]
    return _FORMATS["date-time"] if {"time", "at", "datetime", "timestamp"} & set(found[-1:]) else None


def examples_of(schema: JsonObject) -> list[Json]:
    """The values that a schema shows."""
    shown = schema.get("examples")
    found = list(shown) if isinstance(shown, list) else []
    return [*found, *(schema[key] for key in ("example", "default") if schema.get(key) is not None)]


def _form_of_text(text: str) -> str | None:
    return next((form for form in _READABLE if _read(text, form)), None)


def _read(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


def write_moment(moment: datetime, form: str) -> Json:
    """A moment in a field's form."""
    if form.startswith("epoch"):
        seconds = int((moment - datetime(1970, 1, 1)).total_seconds())
        return seconds * 1000 if form == "epoch_ms" else seconds
    return moment.strftime(form)


def has_no_time(form: str) -> bool:
    """True if a form tells the day only."""
    return "%H" not in form and not form.startswith("epoch")


def given_start(args: JsonObject) -> tuple[datetime | None, bool]:
    """The start that a call's arguments speak of, and whether they tell its time of day."""
    for rank in ("start", "end"):
        for names, text in _texts(args, ()):
            moment, timed = read_moment(text) if rank_of(names) == rank else (None, False)
            if moment is not None and 1900 < moment.year < 2200:
                return (moment - timedelta(days=6), False) if rank == "end" else (moment, timed)
    return None, False


def read_moment(text: str) -> tuple[datetime | None, bool]:
    """A text as a moment in UTC, and whether it tells the time of day; None where it has no date."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return next((found for form in _DATED if (found := _read(text, form))), None), False
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return moment, len(text) > 10


def _texts(value: Any, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, str) and len(value) < 40:
        yield names, value
    elif isinstance(value, dict) and len(names) < 4:
        for name, inner in value.items():
            yield from _texts(inner, (*names, str(name)))
