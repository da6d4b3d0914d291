"""Decide by rules whether words or results contain a value: other notations of dates, listed options, remainders.

Decided values are not asked about. So a rule decides only if there is one reading: not between two dates, for an option
that nobody named, or for a number that two sums give.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice, takewhile
from typing import Any

from ..state import Json, JsonObject
from ..values.finding import atoms_of, fold, forms_of, holds_words, number_words
from ..values.places import place_at, pointer, scalars_of, value_at
from .derived import days_meant

MOST_TEXTS = 20
MOST_NUMBERS = 50
ABOUT_CHARS = 2_000

_FORMATS = re.compile(r"\b(?:YYYY|YY|MM|DD)(?:[-/. ]?(?:YYYY|YY|MM|DD))+\b(?![T ]*['\"]?[T ]*HH)", re.IGNORECASE)
_PARTS = {"yyyy": r"(?P<Y>\d{4})", "yy": r"\d\d", "mm": r"(?P<m>\d\d)", "dd": r"(?P<d>\d\d)"}
_SHAPE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?")
_LISTED = re.compile(r"(?i)\benum\]?:? *\[?([^\].;]+)|\[([^\]\[]+,[^\]\[]+)\]")
_LETTERS = re.compile(r"(?i)\b(2|3|4|two|three|four)[- ](?:letter|character)")
_COUNTS = {"2": 2, "3": 3, "4": 4, "two": 2, "three": 3, "four": 4}
_OF_PARTS = re.compile(r"(?i)\bformat of ((?:[a-z ]+, )+[a-z ]+)")
_DATED = re.compile(r"(\?|\d{4})~(\d{1,2})-(\d{1,2})")
_TODAY = re.compile(r"(?i)\b(?:today|now|current (?:date|time|day))\b(?:[^.\n]|\.(?=\d)){0,60}")
_WEEKDAY = re.compile(r"(?i)\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b")
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()  # noqa: SIM905
_ORDINAL_MONTH = re.compile(rf"(?i)\b({'|'.join(_ORDINALS)}) month\b")
_ORDINAL_DAY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_OPEN = re.compile(r"(?i)\b(?:from|after|before|until|till|by|between|around|about|earliest|latest|than) +(?:the )?$")
_FULL = re.compile(r"(?i)\b(?:full|fully|fill|filling|max|maximum|limit|completely?|rest|remaining|top up|end with)\b")
_SUM = re.compile(r"(?i)\b(?:sum|total|together|combined|both|plus)\b")
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|\d+")


def day_of(texts: Sequence[str]) -> str:
    """Return the current day that a text states, as ISO text; "" if none does, or its weekday is wrong."""
    for found in (found for text in texts for found in _TODAY.finditer(text)):
        days = {each for form in forms_of(found[0]) for each in _DATED.findall(form) if each[0] != "?"}
        if len(days) == 1:
            year, month, day = map(int, days.pop())
            named = {each.casefold() for each in _WEEKDAY.findall(found[0])}
            with suppress(ValueError):
                today = date(year, month, day)
                return today.isoformat() if named <= {f"{today:%A}".casefold()} else ""
    return ""


@dataclass(frozen=True, slots=True)
class _Day:
    """A day that words name; any year if `year` is None."""

    year: int | None
    month: int
    day: int


class Decided:
    """Evidence for arguments in the texts of a turn, the latest first, and in its results."""

    def __init__(self, texts: Sequence[str], results: Sequence[Json], now: str) -> None:
        self._texts = [number_words(text) for text in texts[:MOST_TEXTS] if text]
        self._results = results
        self._now: date | None = None
        with suppress(ValueError):
            self._now = date.fromisoformat(now[:10])

    def decides(self, place: str, args: JsonObject, schema: JsonObject, about: str) -> bool:
        """Return whether the words mean the value at a JSON Pointer, in the form that its schema requires.

        `about` is the tool's description.
        """
        value, rule, outer, name = value_at(args, place), schema, "", ""
        steps = place_at(args, place)
        names = [*takewhile(lambda step: isinstance(step, str), steps)]
        for token in steps:
            rule = _inner(rule, token)
            if isinstance(token, str):
                outer, name = str(rule.get("description", ""))[:ABOUT_CHARS], token
        if isinstance(value, int | float):
            return self._is_said_as(name, str(value)) or self._is_computed(float(value), f"{about} {outer}")
        if not isinstance(value, str):
            return False
        return (
            self._is_day(value, outer, str(rule.get("pattern", "")))
            or self._is_listed(value, value_at(args, pointer(names)), outer)
            or self._is_composed(value, outer)
            or (_is_code(value, outer) and self._is_said_as(name, value))
            or (_has_parts(value, outer) and self._is_said(value))
        )

    def _is_said(self, value: str) -> bool:
        part = fold(value)
        return any(map(str.isalnum, part)) and any(holds_words(fold(text), part) for text in self._texts)

    def _is_said_as(self, name: str, value: str) -> bool:
        """Return whether a value follows its argument's name in a text: `from JFK`, `priority-2`."""
        own = _NAME_WORD.findall(name)[-1:]
        return bool(own) and any(
            re.search(rf"(?i)\b{re.escape(own[0])}[-\s:#'\"]{{1,3}}{re.escape(value)}(?!\w)", text)
            for text in self._texts
        )

    # options

    def _is_listed(self, value: str, whole: Json, about: str) -> bool:
        """Return whether a value is a described option that the words name; or all are chosen, and none is named."""
        options = list(_options(about))
        if value not in options:
            return False
        named = {each for each in options if self._is_said(each) or self._is_said(each.replace("_", " "))}
        taken = {each for each in whole if isinstance(each, str)} if isinstance(whole, list) else {value}
        return taken == named or (len(options) > 1 and taken == {*options} and not named)

    def _is_composed(self, value: str, about: str) -> bool:
        """Return whether a value is a named word behind the prefix that its description requires: `@ann`."""
        sign, name = value[:1], value[1:]
        return (
            sign in "@#"
            and bool(name)
            and re.search(rf"(?i)start\w* with ['\"]?{sign}", about) is not None
            and (self._is_said(name))
        )

    # numbers

    def _is_computed(self, value: float, about: str) -> bool:
        """Return whether a number is the remainder up to a described limit, or a sum that the words ask for."""
        task = self._texts[0] if self._texts else ""
        known = {float(each) for result in self._results for each in _numbers(result)}
        limits = {
            float(form) for text in (about, task) for form in forms_of(text) if form.replace(".", "", 1).isdecimal()
        }
        ways = set[tuple[float, float]]()
        if _FULL.search(task):
            ways |= {(limit, level) for limit in limits for level in known if round(limit - level, 6) == value}
        if _SUM.search(task):
            ways |= {(one, two) for one in known for two in known if one < two and round(one + two, 6) == value}
        return len(ways) == 1

    # days

    def _is_day(self, value: str, about: str, pattern: str) -> bool:
        found, time = _read_day(value, about, pattern), value[11:16]
        if found is None:
            return False
        if found == "said":
            return self._is_said(value)
        for text in self._texts:
            clauses = [part for part in re.split(r"[.;!?]\s", text) if not time or time in _times(part)]
            if meant := {each for clause in clauses for each in self._days_of(clause)} if time else self._days_of(text):
                return meant == {found}
        return False

    def _days_of(self, text: str) -> set[date]:
        """Return the days that a text names; relative days only if it names no other day than today."""
        today = day_of([text])
        base, text = date.fromisoformat(today) if today else self._now, _TODAY.sub("", text)
        named = {
            _Day(None if y == "?" else int(y), int(m), int(d))
            for form in forms_of(text)
            for y, m, d in _DATED.findall(form)
        }
        full = {(each.month, each.day) for each in named if each.year}
        named = {each for each in named if each.year or (each.month, each.day) not in full} or {*_apart(text)}
        if named:
            return {day for each in named for day in self._with_year(each, base)}
        return days_meant(text, base) if base else set()

    def _with_year(self, each: _Day, base: date | None) -> list[date]:
        """Return the days meant; without a year the next such day, or those of the years in the words."""
        said = {int(year) for text in self._texts for year in _YEAR.findall(text)}
        years = [each.year] if each.year else [base.year, base.year + 1] if base else sorted(said)
        with suppress(ValueError):
            days = [date(year, each.month, each.day) for year in years]
            return [day for day in days if day >= base][:1] if base and not each.year else days
        return []


def _inner(rule: Any, token: str | int) -> JsonObject:
    inner = rule.get("items") if isinstance(token, int) else (rule.get("properties") or {}).get(token)
    return inner if isinstance(inner, dict) else {}


def _options(about: str) -> Iterator[str]:
    for found in _LISTED.finditer(about):
        for part in re.split(r"[,|/]", next(filter(None, found.groups()))):
            if each := part.strip(" \t\n'\"`()[]"):
                yield each


def _is_code(value: str, about: str) -> bool:
    """Return whether a value has the number of letters in its description."""
    found = _LETTERS.search(about)
    return found is not None and value.isalpha() and len(value) == _COUNTS.get(found[1].lower(), 0)


def _has_parts(value: str, about: str) -> bool:
    """Return whether a value has as many parts as the format in its description: `street, city, state`."""
    found = _OF_PARTS.search(about)
    return found is not None and value.count(", ") == found[1].count(", ") > 0


def _read_day(value: str, about: str, pattern: str) -> date | str | None:
    """Return a value's day by the described format; `said` if the format is not a full date."""
    for found in _FORMATS.finditer(about):
        form = re.sub(r"yyyy|yy|mm|dd", lambda part: _PARTS[part[0]], re.escape(found[0].lower()).replace("\\-", "-"))
        if read := re.fullmatch(form, value):
            parts = read.groupdict()
            with suppress(ValueError):
                return date(*(int(parts[key]) for key in "Ymd")) if len(parts) == 3 else "said"
    if _SHAPE.fullmatch(value) and any(len(each) == len(value) for each in _SHAPE.findall(about)):
        with suppress(ValueError):
            return datetime.fromisoformat(value).date()
    return None


def _times(text: str) -> set[str]:
    """Return the times in a text, without those that are bounds (`after 5 pm`)."""
    found = (
        each
        for each in re.finditer(r"(?i)\b\d{1,2}(?::\d\d)?(?: ?[ap]\.?m\b)?", text)
        if not _OPEN.search(text[: each.start()])
    )
    forms = (form for each in found for atom in atoms_of(each[0]) for form in atom.wholes if ":" in form)
    return {form.zfill(5) for form in forms}


def _apart(text: str) -> Iterator[_Day]:
    """Yield the day whose parts are separate: the 15th of the year 2026's eleventh month."""
    months = {_ORDINALS.index(each.lower()) + 1 for each in _ORDINAL_MONTH.findall(text)}
    months |= {int(form[1:]) for form in forms_of(text) if re.fullmatch(r"~\d{1,2}", form)}
    days, years = set(_ORDINAL_DAY.findall(text)), set(_YEAR.findall(text))
    if len(months) == len(days) == len(years) == 1:
        yield _Day(int(years.pop()), months.pop(), int(days.pop()))


def _numbers(result: Json) -> Iterator[float]:
    numbers = (each for each in scalars_of(result) if isinstance(each, int | float) and not isinstance(each, bool))
    return islice(numbers, MOST_NUMBERS)
