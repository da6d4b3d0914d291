"""Figures in texts with their units, and whether one stands for another: rounded, in another unit, written otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from .finding import Found, atoms_of, number_words

_UNITS = {
    "length": {"mm": 0.001, "cm": 0.01, "m|met(?:re|er)s?": 1.0, "km|kilomet(?:re|er)s?|k": 1000.0, "mi|miles?": 1609.344,
               "ft|feet|foot": 0.3048, "yards?": 0.9144},
    "duration": {"s|sec(?:ond)?s?": 1.0, "min(?:ute)?s?": 60.0, "h|hrs?|hours?": 3600.0, "days?": 86_400.0,
                 "weeks?": 604_800.0},
    "months": {"months?": 1.0, "years?": 12.0},
    "mass": {"g|grams?": 1.0, "kg|kilos?|kilograms?": 1000.0, "lbs?": 453.592, "oz|ounces?": 28.3495, "tons?|tonnes?": 1e6},
    "volume": {"ml": 1.0, "l|lit(?:re|er)s?": 1000.0, "gallons?": 3785.41},
    "size": {"kb": 1.0, "mb": 1e3, "gb": 1e6, "tb": 1e9},
    "share": {"%|per ?cent|percentage points?": 1.0},
    "euro": {"eur(?:os?)?": 1.0, "cents?": 0.01},
    "dollar": {"usd|dollars?|bucks": 1.0},
    "pound": {"gbp|quid": 1.0},
    "celsius": {"(?:degrees? |°) ?c(?:elsius)?": 1.0},
    "fahrenheit": {"(?:degrees? |°) ?f(?:ahrenheit)?": 1.0},
}  # fmt: skip
_KINDS = [
    (re.compile(rf"[ -]?(?:{words})(?![\w])", re.I), kind, factor)
    for kind, units in _UNITS.items()
    for words, factor in units.items()
]
_SIGNS = {"€": "euro", "$": "dollar", "£": "pound"}
_NUMBER = re.compile(
    r"(?P<before>[-\u2212](?=[\d$€£]))?(?P<minus>minus )?(?P<money>[$€£])?\s?"
    r"(?P<number>(?<![\w.:/])\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\w.:/])\d+(?:\.\d+)?)(?![\w:/]*\d)(?P<after> ?[$€£])?"
)
_HEDGE = re.compile(
    r"(?:about|around|approximately|approx|roughly|nearly|almost|just (?:over|under)|some|circa|close to|~|\u2248)\s*[$€£]?$", re.I
)
_HEDGED, _ROUNDED = 0.05, 0.05
"""How far off, as a share, a figure may be after a word such as `about`; and after rounding to the digits shown."""
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = re.compile(rf"\b(?:{'|'.join(WEEKDAYS)})\b", re.I)
_CLOCK = re.compile(r"\d:\d|^\d{1,2}(?:[:.]\d\d)? ?[ap]\.?m|^(?:noon|midnight|midday)$", re.I)


class Figure(NamedTuple):
    """A figure of a text.

    Args:
        text: As it is written.
        kind: `number`, a unit's dimension, `date`, `time`, `weekday`, or `code` for what has digits and letters.
        value: The number in the dimension's first unit; None for what is no quantity.
        slack: How far another one may be off from it: half of its last place, or a share after `about`.
    """

    text: str
    kind: str
    value: float | None = None
    slack: float = 0.0


@lru_cache(maxsize=512)
def find_figures(text: str) -> tuple[Figure, ...]:
    """Return the figures of a text: dates, times and codes first, then quantities."""
    found: list[Figure] = [Figure(each.lower(), "weekday") for each in _WEEKDAY.findall(text)]
    left = number_words(text)
    for atom in atoms_of(left):
        if not any(map(str.isdigit, atom.text)) or re.fullmatch(r"[-+]?[\d,.]+(?:[A-Za-z%°]{1,5}|-[a-z]+)?", atom.text):
            if not _is_long(atom.text):
                continue
        kind = "time" if _CLOCK.search(atom.text) and "~" not in atom.wholes[0] else "date" if "~" in atom.wholes[0] else "code"
        found.append(Figure(atom.text, kind))
        left = left.replace(atom.text, " ", 1)
    return (*found, *_quantities(left))


def _is_long(text: str) -> bool:
    return len(re.sub(r"\D", "", text)) >= 7 and "," not in text and "." not in text


def _quantities(text: str) -> Iterator[Figure]:
    for found in _NUMBER.finditer(text):
        number = float(found["number"].replace(",", ""))
        sign = -1 if found["before"] or found["minus"] or text[found.end() :].lower().startswith((" below zero", " degrees below")) else 1
        places = len(found["number"].partition(".")[2])
        kind, factor, after = "number", 1.0, text[found.end() :]
        if money := found["money"] or (found["after"] or "").strip():
            kind = _SIGNS[money]
        else:
            hits = [(unit.match(after), name, each) for unit, name, each in _KINDS]
            if best := max((hit for hit in hits if hit[0]), key=lambda hit: hit[0].end(), default=None):  # type: ignore[union-attr]
                _, kind, factor = best
        slack = 0.5 * 10**-places * factor if places or number >= 20 or kind not in ("number", "share") else 0.0
        slack = min(slack, abs(number) * factor * _ROUNDED)
        if _HEDGE.search(text[: found.start()]):
            slack = max(slack, abs(number) * factor * _HEDGED)
        yield Figure(found[0].strip(), kind, sign * number * factor, slack)


def is_said(wanted: Figure, figures: Sequence[Figure], said: Found) -> bool:
    """Return whether one of a text's figures stands for the one that is wanted; `said` holds the text."""
    if wanted.kind == "weekday":
        return wanted in figures
    if wanted.value is None:
        return said.holds(wanted.text, "normal") or _is_written_otherwise(wanted, said)
    return any(_is_same(wanted, each) for each in figures)


def _is_written_otherwise(wanted: Figure, said: Found) -> bool:
    if wanted.kind == "date":
        return any(said.has_form(form) for form in _without_year(wanted.text))
    return wanted.kind == "code" and _is_long(re.sub(r"[ +()/-]", "", wanted.text)) and said.holds(wanted.text, "loose")


def _without_year(date: str) -> Iterator[str]:
    for atom in atoms_of(date):
        for form in atom.wholes:
            if "~" in form:
                yield f"?{form[form.index('~'):]}"


def _is_same(wanted: Figure, said: Figure) -> bool:
    if wanted.value is None or said.value is None:
        return False
    if wanted.kind != said.kind and "number" not in (wanted.kind, said.kind):
        if {wanted.kind, said.kind} != {"share", "number"}:
            return False
    apart = abs(said.value - wanted.value)
    if apart <= said.slack + 1e-9:
        return True
    return wanted.kind == "number" and said.kind == "share" and abs(said.value - 100 * wanted.value) <= said.slack + 1e-9
