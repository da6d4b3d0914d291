"""Dates and times in order: ends come after starts, updates after creations (paper, appendix A.4).

All moments of one object are offsets from one start; the offset follows from the field's name.
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
"""Days from the start; up to five more are added per object."""

_DATES = vocabulary("date day dob birthday birthdate deadline")
_TIMES = vocabulary("datetime timestamp time at epoch")
_NUMBERED = vocabulary("timestamp epoch at date datetime created updated update modified expires")
"""Last words of numbers that are moments."""

_FORMATS = {"date": "%Y-%m-%d", "date-time": "%Y-%m-%dT%H:%M:%SZ", "time": "%H:%M:%SZ"}
_TOKENS = {"yyyy": "%Y", "hh:mm": "%H:%M", "ss": "%S", "mm": "%m", "dd": "%d", "t%": "T%", "Sz": "SZ"}
_DATED = ("%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y")
_READABLE = (*_FORMATS.values(), "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%H:%M:%S", "%H:%M", *_DATED)
_FIRST_DAY = datetime(2025, 1, 6)


def make_moment(dice: Dice, form: str, rank: str, given: datetime | None, *, timed: bool, later: bool) -> Json:
    """Return a moment of a form (`find_form`) and a rank (`find_rank`), by dice that an object's moments share.

    `given` is the start found in the call's arguments, `timed` if with a time of day; `later` where the start may be
    later than that time, as among several results.
    """
    moment = given or _FIRST_DAY + timedelta(days=dice.below(540))
    if not timed:
        moment = moment.replace(hour=dice.between(6, 13), minute=5 * dice.below(12), second=0)
    elif later:
        moment += timedelta(minutes=5 * dice.below(37))
    length, days = timedelta(minutes=dice.between(12, 72) * 5), dice.between(1, 5)
    dates_only = "%H" not in form and not form.startswith("epoch")
    if rank == "end":
        moment += timedelta(days=days) if dates_only else length
    elif rank in _DAYS:
        moment += timedelta(days=_DAYS[rank] + days)
    if form.startswith("epoch"):
        return int((moment - datetime(1970, 1, 1)).total_seconds()) * (1000 if form == "epoch_ms" else 1)
    return moment.strftime(form)


def find_rank(names: Sequence[str]) -> str:
    """Return the rank by the nearest known name: `born`, `created`, `updated`, `start`, `end` or `expiry`."""
    found = (rank for name in reversed(names) for rank, known in _RANKS.items() if known & {*words(name)})
    return next(found, "start")


def find_form(name: str, schema: JsonObject) -> str | None:
    """Return a moment's format in this field: for `strftime`, or `epoch`, `epoch_ms`; None for other fields."""
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
    if not (last & (_DATES | _TIMES | {"on", "when"}) or {"date", "time"} & set(words(description))):
        return None
    for example in list_examples(schema):
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


def list_examples(schema: JsonObject) -> list[Json]:
    """Return a schema's examples and default."""
    shown = schema.get("examples")
    found = list(shown) if isinstance(shown, list) else []
    # an empty default ("" for every text, in Kubernetes' documents) says that a member may be left out
    return [*found, *(schema[key] for key in ("example", "default") if schema.get(key) not in (None, "", {}, []))]


def _read(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


def find_start(args: JsonObject) -> tuple[datetime | None, bool]:
    """Return the start found in a call's arguments, in UTC, and whether they give its time of day."""
    for rank in ("start", "end"):
        for names, text in _texts(args, ()):
            found = _parse_moment(text) if find_rank(names) == rank else None
            if found is not None and 1900 < found.year < 2200:
                return (found - timedelta(days=6), False) if rank == "end" else (found, len(text) > 10)
    return None, False


def _parse_moment(text: str) -> datetime | None:
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
