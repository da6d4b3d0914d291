"""Figures in texts with their units, and whether one stands for another: rounded, in another unit, written otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from .finding import Found, atoms_of, durations_of, number_words

_UNITS = {
    "length": {"mm": 0.001, "cm": 0.01, "m|met(?:re|er)s?": 1.0, "km|kilomet(?:re|er)s?|k": 1000.0, "mi|miles?": 1609.344,
               "ft|feet|foot": 0.3048, "inch(?:es)?": 0.0254, "yards?": 0.9144},
    "duration": {"s|sec(?:ond)?s?": 1.0, "min(?:ute)?s?": 60.0, "h|hrs?|hours?": 3600.0, "days?": 86_400.0,
                 "weeks?": 604_800.0},
    "months": {"months?": 1.0, "years?": 12.0},
    "mass": {"g|grams?": 1.0, "kg|kilos?|kilograms?": 1000.0, "lbs?": 453.592, "oz|ounces?": 28.3495, "tons?|tonnes?": 1e6},
    "volume": {"ml": 1.0, "l|lit(?:re|er)s?": 1000.0, "gallons?": 3785.41},
    "size": {"kb|kilobytes?": 1.0, "mb|megabytes?": 1e3, "gb|gigabytes?|gigs?": 1e6, "tb|terabytes?": 1e9},
    "pressure": {"bars?": 1.0, "psi": 0.0689476},
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
    r"(?:about|around|approximately|approx|roughly|nearly|almost|just (?:over|under)|some|circa|close to|~|\u2248)\s*[$€£]?$",
    re.I,
)
_HEDGED, _ROUNDED = 0.05, 0.05
"""How far off, as a share, a figure may be after a word such as `about`; and after rounding to the digits shown."""
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = re.compile(rf"\b(?:{'|'.join(WEEKDAYS)})\b", re.I)


class Figure(NamedTuple):
    """A figure of a text.

    Args:
        text: As it is written.
        kind: `number`, a unit's dimension, `date`, `time`, `weekday`, or `code` for what has digits and letters.
        value: The number in the dimension's first unit, minutes for a time; None for what is no quantity.
        slack: How far another one may be off from it: half of its last place, or a share after `about`.
        label: What is counted: the word after it.
    """

    text: str
    kind: str
    value: float | None = None
    slack: float = 0.0
    label: str = ""


@lru_cache(maxsize=512)
def find_figures(text: str) -> tuple[Figure, ...]:
    """Return the figures of a text: dates, times and codes first, then quantities."""
    left = spell_figures(text)
    found: list[Figure] = [Figure(each.lower(), "weekday") for each in _WEEKDAY.findall(left)]
    for phone in _PHONE.findall(left):
        found.append(Figure(phone, "code"))
        left = left.replace(phone, " ", 1)
    for atom in atoms_of(left):
        if _PLAIN_NUMBER.fullmatch(atom.text) or not any(map(str.isdigit, atom.text)):
            continue
        moment = _CLOCK.fullmatch(atom.wholes[0])
        kind = "time" if moment else "date" if "~" in atom.wholes[0] else "code"
        found.append(Figure(atom.text, kind, int(moment[1]) * 60 + int(moment[2]) if moment else None))
        left = left.replace(atom.text, " ", 1)
    found += [Figure(f"{minutes} minutes", "duration", minutes * 60.0) for minutes in sorted(durations_of(left))]
    return (*found, *_quantities(left))


def spell_figures(text: str) -> str:
    """Return a text with times and numbers in figures: 10:30 for half past ten, 6 pm for six in the evening."""
    text = number_words(text)
    for pattern, to in _SPELT:
        text = pattern.sub(to, text)
    return text


def _past(found: re.Match[str]) -> str:
    minutes = {"half": 30, "quarter": 15}.get(found[1].lower()) or int(found[1])
    hour = int(found[3]) - (found[2].lower() == "to")
    return f"{hour}:{minutes if found[2].lower() == 'past' else 60 - minutes:02}"


_SPELT = (
    (re.compile(r"\b3[ -]quarters of an hour", re.I), "45 minutes"),
    (re.compile(r"\b(half|quarter|\d{1,2}) (past) (\d{1,2})\b", re.I), _past),
    (re.compile(r"\b(quarter|5|10|20|25) (to) (1?\d)\b(?= in the| [ap]m| at night| tonight|[.,!;]|$)", re.I), _past),
    (re.compile(r"(\d)(?: o'clock)? (?:in the morning|this morning)", re.I), r"\1 am"),
    (re.compile(r"(\d)(?: o'clock)? (?:in the (?:afternoon|evening)|at night|tonight|this evening)", re.I), r"\1 pm"),
    (re.compile(r"\b(\d{1,2}) o'clock", re.I), r"\1:00"),
    (re.compile(r"(\d)'(\d{1,2})\""), r"\1 feet \2 inches"),
)
_PHONE = re.compile(r"(?<![\w.])(?!\d{4}-\d\d?-\d)\+?\d[\d ()/-]{6,18}\d(?![\w])")
_PLAIN_NUMBER = re.compile(r"[-+]?[\d,.]+(?:[A-Za-z%\u00b0]{1,5}|-[a-z]+)?")
_LABEL = re.compile(r" (?!and|or|is|are|was|to|in|on|at|for|where|from|of|with|by)([a-z]{3,})")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)")


def _quantities(text: str) -> Iterator[Figure]:
    for found in _NUMBER.finditer(text):
        number = float(found["number"].replace(",", ""))
        after = text[found.end() :]
        minus = found["before"] or found["minus"] or re.match(r"(?: degrees)? below", after)
        places = len(found["number"].partition(".")[2])
        kind, factor = "number", 1.0
        if money := found["money"] or (found["after"] or "").strip():
            kind = _SIGNS[money]
        else:
            hits = [(unit.match(after), name, each) for unit, name, each in _KINDS]
            if best := max(((hit.end(), name, each) for hit, name, each in hits if hit), default=None):
                _, kind, factor = best
        slack = 0.5 * 10**-places * factor if places or number >= 20 or kind not in ("number", "share") else 0.0
        slack = min(slack, abs(number) * factor * _ROUNDED)
        if _HEDGE.search(text[: found.start()]):
            slack = max(slack, abs(number) * factor * _HEDGED)
        label = _LABEL.match(after) if kind == "number" else None
        yield Figure(
            found[0].strip(), kind, (-1 if minus else 1) * number * factor, slack, label[1][:5] if label else ""
        )


def is_said(wanted: Figure, figures: Sequence[Figure], said: Found) -> bool:
    """Return whether one of a text's figures stands for the one that is wanted; `said` holds the text."""
    if wanted.kind == "weekday":
        return any(each[:2] == wanted[:2] for each in figures)
    if wanted.kind in ("date", "code"):
        return said.holds(wanted.text, "normal") or _is_written_otherwise(wanted, said)
    return any(_is_same(wanted, each) for each in figures)


def _is_written_otherwise(wanted: Figure, said: Found) -> bool:
    if wanted.kind == "date":
        wholes = [form for atom in atoms_of(wanted.text) for form in atom.wholes if "~" in form]
        return any(said.has_form(f"?{form[form.index('~') :]}") for form in wholes)
    digits = sum(map(str.isdigit, wanted.text))
    return bool(_PHONE.fullmatch(wanted.text)) and digits > 6 and said.holds(wanted.text, "loose")


def is_rival(wanted: Figure, other: Figure) -> bool:
    """Return whether a figure says something else where another one is wanted: the same kind, and of the same things."""
    return wanted.kind == other.kind and (wanted.label == other.label or not (wanted.label and other.label))


def _is_same(wanted: Figure, said: Figure) -> bool:
    if wanted.value is None or said.value is None:
        return False
    if wanted.kind != said.kind and "number" not in (wanted.kind, said.kind):
        return False
    apart = abs(said.value - wanted.value)
    if apart <= said.slack + 1e-9:
        return True
    return (
        wanted.kind == "number" and said.kind == "share" and abs(said.value - 100 * wanted.value) <= said.slack + 1e-9
    )
