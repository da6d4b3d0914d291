"""Find figures with units in texts, and compare them: rounded, in another unit, in another notation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..values.finding import Leaves, atoms_of, canonical, number_words
from .english import WORDS, pattern, topic_of

_KINDS = [
    (re.compile(rf"[ -]?(?:{words})(?!\w)", re.I), kind, factor)
    for kind, units in WORDS["units"].items()
    for words, factor in units.items()
]
_KIND_OF_DAYS = re.compile(
    r" (?!(?:and|or|per|an?|every|each|this|last|next|those|these|to|in|of|for|at|on)\b)[a-z]{3,}"
    r"(?= (?:minutes|hours|days|nights|weeks|months|years)\b)"
)
"""Words between a number and its unit: two full hours."""
_MONEY = {"€": "euro", "$": "dollar", "£": "pound", "eur": "euro", "usd": "dollar", "gbp": "pound"}
_NUMBER = re.compile(
    r"(?P<minus>[-\u2212](?=[\d$€£])|minus )?(?:(?P<money>[$€£]|\b(?:eur|usd|gbp)\b) ?)?"
    r"(?P<number>(?<![\w.:/])\d{1,3}(?:,\d{3}){1,5}(?:\.\d{1,9})?|(?<![\w.:/])\d{1,15}(?:\.\d{1,9})?)"
    r"(?![\w:/]{0,20}\d|\.\d)(?P<after> ?[$€£])?",
    re.I,
)
_TIMES = re.compile(r" (thousand|million|billion)\b", re.I)
_HEDGE = pattern("hedge")
_CLOSE = 0.05
"""Largest relative deviation of a rounded figure."""
_WEEKDAY = re.compile(r"\b((?:mon|tues|wednes|thurs|fri|satur|sun)day)s?\b", re.I)
_PHONE = re.compile(r"(?<![\w.])(?!\d{4}-\d\d?-\d)\+?\d[\d ()/-]{6,18}\d(?!\w)")
_FILE = re.compile(r"\b[\w-]*[^\W\d_][\w-]*\.(?!com\b|org\b|net\b)[a-z]{2,4}\d?\b")
_PLAIN_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:[A-Za-z%°]{1,5}|-[a-z]+)?|[\d,]+\.?")
_LABELS = re.compile(r"(?: (?!(?:and|or|is|are|was|were|to|in|on|at|for|where|from|of|with|by)\b)[a-z]{3,}){1,3}")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)")
_HALF_OF_DAY = re.compile(r"[ap]m\b|\b(?:1[3-9]|2[0-3]|00?):\d\d", re.I)
_VAGUE = pattern("vague")
_DOZEN = re.compile(r"\b(?:half|dozens?|hundreds?|third)\b", re.I)
_EXACT = ("time", "code", "phone", "euro", "dollar", "pound", "celsius", "fahrenheit")
"""Kinds that are never expressed in vague words."""
_VAGUE_DAY = re.compile(r"\b(?:tomorrow|today|tonight|next|mon|tues?|wed|thu(?:rs)?|fri|sat|sun)\b", re.I)


_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}")
_NUMERIC_DAY = re.compile(r"(?<![\d.])\d{1,2}[./]\d{1,2}\b")
_GLUED = re.compile(r"^[^\d]+|[^\d]+$")
_DIGITS = re.compile(r"[^\d.,]")
_DAYS = {"date", "weekday"}
_SENTENCE = re.compile(r"[.!?;]\s|\n")


class Figure(NamedTuple):
    """A figure of a text.

    Args:
        text: Its text.
        kind: `number`, a unit's dimension, `date`, `time`, `weekday`, `phone`, or `code` for digits with letters.
        value: The number in the dimension's first unit, minutes for a time; None if it is not a quantity.
        slack: Allowed deviation of another figure: half of its last place.
        labels: The words after it: the counted things.
        hedged: Whether a word marks it as approximate.
    """

    text: str
    kind: str
    value: float | None = None
    slack: float = 0.0
    labels: frozenset[str] = frozenset()
    hedged: bool = False


@lru_cache(maxsize=1024)
def find_figures(text: str) -> tuple[Figure, ...]:
    """Return the figures of a text: weekdays, telephone numbers, dates, times and codes first, then quantities."""
    left = spell_figures(text)
    found = [Figure(each.lower(), "weekday") for each in _WEEKDAY.findall(left)]
    for code in (_MAIL, _FILE):
        found += [Figure(each, "code") for each in code.findall(left)]
        left = code.sub(" _ ", left)
    if not any(map(str.isdigit, left)):
        return tuple(found)
    found += [Figure(each, "phone") for each in _PHONE.findall(left)]
    left = _PHONE.sub(" ", left)
    for atom in atoms_of(left):
        if not _PLAIN_NUMBER.fullmatch(atom.text) and any(map(str.isdigit, atom.text)):
            moment = _CLOCK.fullmatch(atom.wholes[0])
            kind = "time" if moment else "date" if "~" in atom.wholes[0] else "code"
            found.append(Figure(atom.text, kind, int(moment[1]) * 60 + int(moment[2]) if moment else None))
            left = left.replace(atom.text, " _ ", 1)
    return (*found, *_quantities(left))


_NTHS = WORDS["ordinals"].split()
_ORDINALS = {word: n for n, word in enumerate(_NTHS, 1)} | {"thirtieth": 30}
_ORDINALS |= {f"{tens}-{word}": tens + n for tens in (20, 30) for n, word in enumerate(_NTHS[:9], 1)}
_MONTHS = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_ORDINAL = re.compile(rf"\b({'|'.join(sorted(_ORDINALS, key=len, reverse=True))})(?= (?:of )?{_MONTHS}\b)", re.I)


def spell_figures(text: str) -> str:
    """Return a text with times and numbers in digits: 10:30 for half past ten, 6 pm for six in the evening."""
    text = _ORDINAL.sub(lambda found: str(_ORDINALS[found[1].lower()]), number_words(text))
    for find, to in _SPELT:
        text = find.sub(to, text)
    return text


def _past(found: re.Match[str]) -> str:
    minutes = {"half": 30, "quarter": 15}.get(found[1].lower()) or int(found[1])
    hour = int(found[3].lower().replace("one", "1")) - (found[2].lower() == "to")
    return f"{hour}:{minutes if found[2].lower() == 'past' else 60 - minutes:02}"


def _write(to: Any, unit: str = "") -> str | Callable[[re.Match[str]], str]:
    """Return the replacement of a row of `spelt`: digits, a time, or the sum of a large and a small number."""
    if unit:
        return lambda found: f"{int(found[1]) * to + int(found[2])} {unit}"
    return _past if to == "clock" else str(to)


_SPELT = [(re.compile(find, re.I), _write(*to)) for find, *to in WORDS["spelt"]["rows"]]


def _quantities(text: str) -> Iterator[Figure]:
    for found in _NUMBER.finditer(text):
        written = found["number"].replace(",", "")
        times = _TIMES.match(text, found.end())
        scale = {"thousand": 1e3, "million": 1e6, "billion": 1e9}[times[1].lower()] if times else 1.0
        hedged = bool(_HEDGE.search(text[max(found.start() - 20, 0) : found.start()]))
        for kind, factor in _units_of(found, text, times.end() if times else found.end()):
            labels = _LABELS.match(text, found.end()) if kind == "number" else None
            value = (-1 if found["minus"] else 1) * float(written) * scale * factor
            slack = _slack(written, hedged) * scale * factor
            counted = frozenset(each[:5] for each in labels[0].split()) if labels else frozenset()
            yield Figure(found[0].strip(), kind, value, slack, counted, hedged)


def _units_of(found: re.Match[str], text: str, end: int) -> list[tuple[str, float]]:
    """Return the possible units, each with its factor to its kind's first one; `pounds` has two meanings."""
    if money := found["money"] or (found["after"] or "").strip():
        return [(_MONEY[money.lower()], 1.0)]
    if found["number"] != "1" and (kind := _KIND_OF_DAYS.match(text, end)):
        end = kind.end()
    hits = [(hit.end(), name, each) for unit, name, each in _KINDS if (hit := unit.match(text, end))]
    longest = max((each[0] for each in hits), default=0)
    return [(name, each) for place, name, each in hits if place == longest] or [("number", 1.0)]


def _slack(number: str, hedged: bool) -> float:
    """Return half of a number's last place; if it is approximate, half of its last nonzero place."""
    whole, _, places = number.partition(".")
    last = -len(places.rstrip("0")) or len(whole) - len(whole.rstrip("0")) if hedged else -len(places)
    exact = not places and not hedged and float(number) < 10
    return 0.0 if exact else min(0.5 * 10.0**last, float(number) * _CLOSE)


@lru_cache(maxsize=1024)
def _read(text: str) -> Leaves:
    return Leaves([spell_figures(text)], keys=False)


def is_said(wanted: Figure, text: str) -> bool:
    if wanted.kind == "weekday":
        return any(each[:2] == wanted[:2] for each in find_figures(text))
    if wanted.kind == "date":
        wholes = [form for atom in atoms_of(wanted.text) for form in atom.wholes if "~" in form]
        without_year = any(_read(text).has_form(f"?{form[form.index('~') :]}") for form in wholes)
        return without_year or _read(text).holds(wanted.text, "normal")
    if wanted.kind in ("code", "phone"):
        return _read(text).holds(wanted.text, "loose" if wanted.kind == "phone" else "normal")
    return any(is_same(wanted, each) for each in find_figures(text))


def is_given(wanted: Figure, text: str) -> bool:
    """Return whether a text contains a figure literally, not only an equal one in another unit."""
    if wanted.value is None or wanted.kind == "time":
        return is_said(wanted, text)
    figures = [each for each in find_figures(text) if is_same(wanted, each)]
    return any(canonical(_DIGITS.sub("", each.text)) == canonical(_DIGITS.sub("", wanted.text)) for each in figures)


def is_same(wanted: Figure, said: Figure) -> bool:
    """Return whether a quantity or time equals another one within the slack."""
    if wanted.value is None or said.value is None or not _is_comparable(wanted, said):
        return False
    slack = max(said.slack, wanted.slack) if wanted.hedged else said.slack
    return abs(said.value - wanted.value) <= slack + 1e-9


def _is_comparable(wanted: Figure, said: Figure) -> bool:
    kinds = {wanted.kind, said.kind}
    if len(kinds) == 1 or ("degrees" in kinds and kinds & {"celsius", "fahrenheit", "number"}):
        return True
    return "number" in kinds and "time" not in kinds and not said.labels and not wanted.labels


def rivals_of(wanted: Figure, text: str, known: Sequence[str] = ()) -> list[Figure]:
    return [
        each
        for each in find_figures(text)
        if _is_rival(wanted, each) and not any(is_said(each, other) for other in known)
    ]


def _is_rival(wanted: Figure, other: Figure) -> bool:
    if wanted.value is None or other.value is None:
        return wanted.kind == other.kind and not is_said(wanted, other.text)
    alike = wanted.labels & other.labels or not (wanted.labels and other.labels)
    return bool(_is_comparable(wanted, other) and alike and not is_same(wanted, other))


def word_before(figure: Figure, text: str) -> str:
    found = re.search(rf"([^\W\d_]{{3,}}) {re.escape(figure.text)}(?!\w)", spell_figures(text))
    return topic_of(found[1].lower()) if found else ""


def may_say(wanted: Figure, text: str) -> bool:
    """Return whether a text may express a figure in an unparsed form: other grouping, or vague words."""
    digits = re.sub(r"\D", "", wanted.text)
    read = {re.sub(r"\D", "", each.text) for each in find_figures(text)}
    grouped = len(digits) > 3 and digits not in read and digits in re.sub(r"(?<=\d)[ .,'/-]{1,2}(?=\d)", "", text)
    vague = _VAGUE_DAY if wanted.kind in ("date", "weekday") else _VAGUE
    if digits and digits not in read and re.search(rf"(?<!\d){digits}(?!\d)", text):
        return True
    if wanted.value == 1 and re.search(r"\b(?:one|an?|single)\b", text, re.I):
        return True
    if (wanted.kind == "date" and _NUMERIC_DAY.search(text)) or (wanted.kind == "duration" and _CLOCK.search(text)):
        return True
    if wanted.kind not in ("time", "date") and any(has_numeral(wanted, each) for each in find_figures(text)):
        return True
    if wanted.kind in _EXACT or (wanted.kind == "number" and (wanted.value or 0) > 12):
        vague = _DOZEN
    if wanted.kind in _DAYS and any(_days_of(each) == _DAYS - {wanted.kind} for each in _SENTENCE.split(text)):
        return True  # the weekday instead of the date
    if (
        grouped
        or vague.search(spell_figures(text))
        or (wanted.kind == "date" and _read(text).holds(wanted.text, "loose"))
    ):
        return True
    return any(_may_be_same(wanted, each) for each in find_figures(text))


def has_numeral(wanted: Figure, other: Figure) -> bool:
    """Return whether another figure has the same digits, regardless of its unit: `v2.3.1`, `36 are billable`."""
    one, two = (_GLUED.sub("", each.text.replace(",", "")) for each in (wanted, other))
    return bool(one) and canonical(one) == canonical(two)


def _days_of(text: str) -> set[str]:
    return _DAYS & {each.kind for each in find_figures(text)}


def _may_be_same(wanted: Figure, other: Figure) -> bool:
    """Return whether the figures may be a time without am or pm, or an amount without its sign."""
    if wanted.value is None or other.value is None or wanted.kind != "time":
        return wanted.value is not None and wanted.kind not in _EXACT[-2:] and other.value == -wanted.value
    minutes = other.value * 60 if other.kind == "number" else other.value
    return not _HALF_OF_DAY.search(other.text) and abs(minutes - wanted.value) in (0, 720)
