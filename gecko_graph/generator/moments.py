"""Dates and times that keep their order: ends come after starts, updates after creations (paper, appendix A.4).

All moments of one object hang on one start, at distances that follow from what the field's name says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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
_DAYS = {"born": -11_000, "created": -20, "updated": -5, "expiry": 30}
"""Days from the start, to which up to five of the object's own are added."""

_DATES = vocabulary("date day dob birthday birthdate deadline")
_TIMES = vocabulary("datetime timestamp time at epoch")
_NUMBERED = vocabulary("timestamp epoch at date datetime created updated update modified expires")
"""Last words of numbers that are moments."""

_FORMATS = {"date": "%Y-%m-%d", "date-time": "%Y-%m-%dT%H:%M:%SZ", "time": "%H:%M:%SZ"}
_TOKENS = {"yyyy": "%Y", "hh:mm": "%H:%M", "ss": "%S", "mm": "%m", "dd": "%d", "t%": "T%", "Sz": "SZ"}
_DATED = ("%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y")
_READABLE = (*_FORMATS.values(), "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%H:%M:%S", "%H:%M", *_DATED)
_FIRST_DAY = datetime(2025, 1, 6)


def moment(dice: Dice, form: str, rank: str, given: datetime | None, *, timed: bool, later: bool) -> Json:
    """A moment in a field's form.

    Args:
        dice: What all moments of one object are thrown with, so that they agree.
        form: As `form_of` tells.
        rank: As `rank_of` tells.
        given: The start that the call's arguments speak of.
        timed: True if `given` has a time of day of its own.
        later: True where the start may be somewhat later than such a time, as among several finds.
    """
    made = given or _FIRST_DAY + timedelta(days=dice.below(540))
    if not timed:
        made = made.replace(hour=dice.between(6, 13), minute=5 * dice.below(12), second=0)
    elif later:
        made += timedelta(minutes=5 * dice.below(37))
    length, days = timedelta(minutes=dice.between(12, 72) * 5), dice.between(1, 5)
    dates_only = "%H" not in form and not form.startswith("epoch")
    if rank == "end":
        made += timedelta(days=days) if dates_only else length
    elif rank in _DAYS:
        made += timedelta(days=_DAYS[rank] + days)
    if form.startswith("epoch"):
        return int((made - datetime(1970, 1, 1)).total_seconds()) * (1000 if form == "epoch_ms" else 1)
    return made.strftime(form)


def rank_of(names: Sequence[str]) -> str:
    """What the nearest telling name says about the order: `born`, `created`, `updated`, `start`, `end` or `expiry`."""
    found = (rank for name in reversed(names) for rank, telling in _RANKS.items() if telling & {*words(name)})
    return next(found, "start")


def form_of(name: str, schema: JsonObject) -> str | None:
    """How a moment is written in this field: as for `strftime`, or `epoch`, `epoch_ms`; None where it is no moment."""
    kind, description = schema.get("type"), str(schema.get("description", "")).lower()
    if schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    last = {*words(name)[-1:]}
    if kind in ("integer", "number"):
        if last & _NUMBERED or "unix" in description:
            return "epoch_ms" if "millisecond" in description or "ms" in last else "epoch"
        return "epoch_ms" if "millisecond" in description and "ts" in last else None
    if kind not in ("string", None) or not {"enum", "pattern", "format"}.isdisjoint(schema):
        return None
    return _text_form(last | {*words(name)[-2:]}, schema, description)


def _text_form(last: set[str], schema: JsonObject, description: str) -> str | None:
    """The form of the examples, the one that the description spells out (`YYYY-MM-DD`), or the name's."""
    if not (last & (_DATES | _TIMES | {"on", "when"}) or {"date", "time"} & set(words(description))):
        return None
    for example in examples_of(schema):
        form = next((form for form in _READABLE if isinstance(example, str) and _read(example, form)), None)
        if form:
            return form
    spelled = re.search(r"(?:yyyy|mm|dd|hh)[-/:](?:mm|dd)[-/:ymdhtsz ]*\b", description)
    if spelled:
        form = spelled[0].strip()
        for token, directive in _TOKENS.items():
            form = form.replace(token, directive)
        return form
    if last & _DATES:
        return _FORMATS["date"]
    return _FORMATS["date-time"] if last & _TIMES else None


def examples_of(schema: JsonObject) -> list[Json]:
    """The values that a schema shows."""
    shown = schema.get("examples")
    found = list(shown) if isinstance(shown, list) else []
    return [*found, *(schema[key] for key in ("example", "default") if schema.get(key) is not None)]


def _read(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


def given_start(args: JsonObject) -> tuple[datetime | None, bool]:
    """The start that a call's arguments speak of, in UTC, and whether they tell its time of day."""
    for rank in ("start", "end"):
        for names, text in _texts(args, ()):
            found = _moment_of(text) if rank_of(names) == rank else None
            if found is not None and 1900 < found.year < 2200:
                return (found - timedelta(days=6), False) if rank == "end" else (found, len(text) > 10)
    return None, False


def _moment_of(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return next((read for form in _DATED if (read := _read(text, form))), None)
    return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)


def _texts(value: Any, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, str) and len(value) < 40:
        yield names, value
    elif isinstance(value, dict) and len(names) < 4:
        for name, inner in value.items():
            yield from _texts(inner, (*names, str(name)))
