"""Search values in texts and values: one implementation for validator, provenance, answers and claims.

The strictness is an argument. `verbatim`: as whole words and numbers, ignoring letter case, white space, the form of
quotes, and `1,240.50` for 1240.5. `normal`: in any normal form, so that `May 15, 2024` is 2024-05-15, `3 pm` is 15:00
and `two` is 2. `loose`: also rounded, without sign, as one of two readings of a date, or with digits grouped
differently. Whether a value follows from others is tested in `derived`.

Sign and scale count: 12.50 is not 1250, and -50 not 50. Forms with a prefix are weaker: `#77` is a group of digits in
an identifier or date, `±50` a number without its sign, `|2026~5-12` one of two readings of a date, `~5` a month.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Literal, NamedTuple, TypeAlias

from ..state import Json
from .places import scalars_of

TEXT_CHARS = 50_000
"""Most characters read of one text: half from its start, half from its end."""

SHORT_CHARS = 80
"""Longest text that is also found as a whole (as are partially read texts).

Its forms are cached, since names recur in every result.
"""

_PLAIN = re.IGNORECASE | re.ASCII  # without ASCII, "ſep" would be a month too
_ONES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred")
_NUMERALS = {
    **{word: str(number) for number, word in enumerate(_ONES)},
    **{word: str(10 * number) for number, word in enumerate(_TENS, 2)},
    **{"first": "1", "once": "1", "second": "2", "twice": "2", "couple": "2", "both": "2", "third": "3"},
    **{"fourth": "4", "quarter": "4", "fifth": "5", "tenth": "10"},
    **{"dozen": "12", "half": "0.5", "fifteen": "15", "thousand": "1000"},
}
_WORDS = {**_NUMERALS, "noon": "12:00", "midday": "12:00", "midnight": "0:00"}
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_TIMES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "b": 1e9, "billion": 1e9}
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]{{0,6}}"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:[ ,]{1,2}(?:in |of )?(?P<year>\d{4}))?(?!\d)"
_DATES_IN_FIGURES = (
    r"(?<!\d)(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)",
    r"(?<!\d)(?P<month>\d{1,2})[-/.](?P<day>\d{1,2})[-/.](?P<year>\d{4})(?!\d)",
    r"(?<!\d)(?P<day>\d{1,2})[-/.](?P<month>\d{1,2})[-/.](?P<year>\d{4})(?!\d)",
)
_DATES_IN_WORDS = (
    rf"(?<!\d){_DAY}(?: day)?(?: of)?(?: this)?[ -]?{_MONTH}{_YEAR}",
    rf"\b{_MONTH}[ .-]{{0,2}}(?:the )?{_DAY}{_YEAR}",
    rf"\b{_MONTH} (?P<year>\d{{4}}),? (?:on )?the {_DAY}(?!\d)",
)
_DATES = [
    (re.compile(needed), [re.compile(each, _PLAIN) for each in patterns])
    for needed, patterns in ((r"[0-9][-/.][0-9]", _DATES_IN_FIGURES), ("|".join(_MONTHS), _DATES_IN_WORDS))
]
"""For each kind of date: a pattern that every text with such a date matches in lower case, and the date patterns."""
_MONTH_NAME = re.compile(rf"\b{_MONTH}\b", _PLAIN)
_TIME = re.compile(r"(?<![\d:.,])(?P<hour>\d{1,2})(?:[:.](?P<minute>\d\d)(?::\d\d)?)?(?P<half> ?[ap]\.?m\b)?", _PLAIN)
_GROUPED = r"(?<![\d.\[(])\d{1,3}(?:,\d{3}){1,6}(?:\.\d+)?(?!\d)"
_DURATION = re.compile(
    rf"\b(?P<number>\d{{1,3}}(?:\.\d{{1,2}})?|quarter|an?|{'|'.join(_NUMERALS)})(?: of)?(?: an?)?[ -]?"
    r"(?P<unit>h|min)(?:ours?|r?s?|utes?)?\b(?P<half> and a half)?",
    _PLAIN,
)
_LONG_NUMBER = re.compile(_GROUPED)
_NUMBER = re.compile(
    rf"(?P<sign>(?<![\w)])[-\u2212][$€£]?)?(?P<number>{_GROUPED}|\d+(?:\.\d+)?)"
    rf"(?: ?(?P<times>{'|'.join(_TIMES)})\b)?(?P<share> ?%| per ?cent)?",
    _PLAIN,
)
_FIGURE = re.compile(r"[-+]?\d+(?:\.\d+)?", re.ASCII)
_WITH_LETTERS = re.compile(r"(?<![\w@.+-])(?=[\w@.+-]*\d)[\w@.+-]*[^\W\d_][\w@.+-]*")
_WITH_UNIT = re.compile(r"\d+(?:\.\d+)?(?:[A-Za-z]{1,4}|-[a-z]+)|\D*", re.ASCII)
_TOKEN = re.compile(r"[^\W_](?:[\w@.+\-/:#&']*[^\W_])?")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")


NUMBERING = re.compile(r"(?m)^[^\S\n]*+\d{1,2}[.)]\s")
"""The numbers of list items in a text."""

_MOMENT = re.compile(r"(\d{4})?\??~(\d{1,2})-(\d{1,2})")

_Moment: TypeAlias = tuple[tuple[str, str], int, int]
"""A date or number for comparison (its year, and the rest), with start and end in the text."""


_CARDINALS = {**dict(zip(_ONES, range(13), strict=True)), **{word: 10 * n for n, word in enumerate(_TENS, 2)}}
_CARDINALS |= {f"{word}teen": n for n, word in ((13, "thir"), (14, "four"), (15, "fif"), (16, "six"), (17, "seven"))}
_CARDINALS |= {"eighteen": 18, "nineteen": 19}
_CARDINAL = re.compile(
    rf"\b(?:(?P<tens>{'|'.join(_TENS[:-1])})[- ](?P<ones>{'|'.join(_ONES[1:10])})"
    rf"|(?P<one>{'|'.join(word for word in _CARDINALS if word != 'one')}))\b",
    _PLAIN,
)


@lru_cache(maxsize=64)
def number_words(text: str) -> str:
    """Return a text with cardinal numbers as digits: 12 for twelve, 25 for twenty-five; but `one` is also a pronoun."""
    return _CARDINAL.sub(lambda found: str(sum(_CARDINALS[each.lower()] for each in found.groups() if each)), text)


class Atom(NamedTuple):
    """A part of a value that is searched separately: a number, a date, an identifier, a word."""

    wholes: tuple[str, ...]
    """Alternative forms of the whole part."""
    digits: tuple[str, ...] = ()
    """The digit groups of an identifier, as forms."""
    words: tuple[str, ...] = ()
    text: str = ""
    """The original text."""

    @property
    def forms(self) -> tuple[str, ...]:
        """All forms by which it is found."""
        return *self.wholes, *self.digits, *self.words

    @property
    def is_specific(self) -> bool:
        """True for parts that cannot be guessed (numbers, dates, identifiers, addresses), False for plain words."""
        return not self.words or bool(self.digits) or "@" in self.wholes[0]


def canonical(number: float | str) -> str:
    """Return a number's canonical spelling: 1240.5 for `1,240.50`, 30 for 30.0, 7 for `007`."""
    text = str(number)
    if text.isdecimal() and text[0] != "0":  # the most common case
        return text
    text = text.replace(",", "")
    if not text.lstrip("-").replace(".", "", 1).isdecimal():
        return text
    text = text.rstrip("0").rstrip(".") if "." in text else text
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    return sign + (text.lstrip("0") or "0" if not text.startswith("0.") else text)


def forms_of(value: Json) -> Iterable[str]:
    """Return the forms of a scalar or of its parts, for a number also its roundings; none for a bool."""
    if isinstance(value, str):
        return (_forms_of_short if len(value) <= SHORT_CHARS else _forms_of_long)(value)
    return () if value is None or isinstance(value, bool) else _forms_of_number(canonical(value))


def atoms_of(value: Json) -> list[Atom]:
    """Return the parts of a scalar to search: first dates, times and long numbers, then identifiers and words."""
    if not isinstance(value, str) or _FIGURE.fullmatch(value):
        return [Atom((canonical(str(value).lstrip("+")),), text=str(value))]
    return [*(_atoms_of_text if len(value) <= SHORT_CHARS else _atoms_of_text.__wrapped__)(value)]


@lru_cache(maxsize=4_096)
def _atoms_of_text(value: str) -> list[Atom]:
    atoms, text = [], value[:TEXT_CHARS]
    for find in (_dates, _times, _long_numbers) if any(map(str.isdigit, text)) else ():
        places: dict[tuple[int, int], tuple[str, ...]] = {}
        for (year, rest), start, end in find(text):  # 04/10/2023 may be two dates
            places[start, end] = (*places.get((start, end), ()), year + rest)
        left = list(text)
        for (start, end), forms in places.items():
            if "".join(left[start:end]).strip():
                own = text[start:end]
                atoms.append(Atom((*forms, *({own.casefold()} if len(forms) > 1 else ())), text=own))
                left[start:end] = " " * (end - start)
        text = "".join(left)
    return atoms + [_atom(token) for token in _TOKEN.findall(text) if len(token) > 1 or token.isdigit()]


def whole_form(text: str) -> str:
    """Return a short text as one form, distinct from the forms of its words."""
    return "=" + " ".join(text.split()).casefold()


def spell(whole: str) -> str:
    """Return an atom's form as people write it; "" if it is no complete value."""
    if date := _MOMENT.fullmatch(whole):
        year, month, day = date.groups()
        return f"{year}-{int(month):02}-{int(day):02}" if year else f"{_MONTH_NAMES[int(month) - 1].title()} {day}"
    return "" if "~" in whole else whole


def durations_of(text: str) -> set[int]:
    """Return the durations in a text, in minutes: `30 minutes`, `half an hour`, `an hour and a half`."""
    found: set[int] = set()
    for match in _DURATION.finditer(text[:TEXT_CHARS]):
        number, half, unit = match["number"].lower(), match["half"], match["unit"].lower()
        amount = {"a": 1.0, "an": 1.0, "quarter": 0.25}.get(number) or float(_NUMERALS.get(number, number))
        found.add(round((amount + (0.5 if half else 0)) * (60 if unit == "h" else 1)))
    return found


def _atom(token: str) -> Atom:
    parts = [part.casefold() for part in _PART.findall(token)]
    digits = tuple(f"#{canonical(part)}" for part in parts if part.isdigit())
    words = tuple(part for part in parts if not part.isdigit() and len(part) > 1)
    if _FIGURE.fullmatch(token):
        return Atom((canonical(token),), text=token)
    whole = token.casefold()
    return Atom((whole, "".join(parts)), digits, words or (() if digits else (whole,)), token)


@lru_cache(maxsize=4_096)
def _forms_of_short(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_forms_of_text(text)))


_forms_of_long = lru_cache(maxsize=64)(_forms_of_short.__wrapped__)  # the same conversation is traced repeatedly


def _forms_of_text(text: str) -> list[str]:
    found = [] if SHORT_CHARS < len(text) <= TEXT_CHARS else [whole_form(text)]
    if len(text) > TEXT_CHARS:
        text = f"{text[: TEXT_CHARS // 2]} {text[-TEXT_CHARS // 2 :]}"
    tokens = _TOKEN.findall(text)
    read = _forms_of_token if max(map(len, tokens), default=0) <= SHORT_CHARS else _forms_of_token.__wrapped__
    found += chain.from_iterable(map(read, tokens))
    return [*found, *_forms_of_figures(text)] if any(map(str.isdigit, text)) else found


@lru_cache(maxsize=16_384)
def _forms_of_token(token: str) -> Sequence[str]:
    """Return the forms of a word or identifier; cached, because texts share most of them.

    Numbers depend on the text.
    """
    if _FIGURE.fullmatch(token):
        return ()
    parts, found = [part.casefold() for part in _PART.findall(token)], [token.casefold()]
    if len(parts) > 1:
        found += ("".join(parts), *(f"#{canonical(part)}" if part.isdigit() else part for part in parts))
        found += [piece.casefold() for piece in re.split("[/:']+", token) if not piece.isdigit()]
    return [*found, *(_WORDS[part] for part in parts if part in _WORDS)]


def _forms_of_figures(text: str) -> Iterator[str]:
    figures = _WITH_LETTERS.sub(_blank, text)
    yield from (f"~{_MONTHS[found['month'].lower()]}" for found in _MONTH_NAME.finditer(text))
    moments: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for moment, start, end in (*_dates(text), *_times(text)):
        moments.setdefault((start, end), []).append(moment)
        figures = f"{figures[:start]}{'_' * (end - start)}{figures[end:]}"
    for (start, end), each in moments.items():
        sign = "|" if len({*each}) > 1 else ""
        yield from (f"{sign}{form}" for year, rest in each for form in ((year or "?") + rest, rest))
        yield from (f"#{canonical(part)}" for part in re.findall(r"\d+", text[start:end]))
    for found in _NUMBER.finditer(figures):
        number = ("-" if found["sign"] else "") + canonical(found["number"])
        yield from _forms_of_number(number)
        if times := found["times"]:
            yield canonical(f"{float(number) * _TIMES[times.lower()]:.3f}")
        if found["share"] and len(number) < 15:
            yield canonical(f"{float(number) / 100:.12f}")


def _blank(found: re.Match[str]) -> str:
    """Return a placeholder for an identifier, whose digits are no number."""
    return found[0] if _WITH_UNIT.fullmatch(found[0]) else "_" * len(found[0])


def _forms_of_number(number: str) -> Iterator[str]:
    yield number
    if number.startswith("-"):
        yield f"±{number[1:]}"


def _dates(text: str) -> Iterator[_Moment]:
    for pattern in (each for needed, patterns in _DATES if needed.search(text.lower()) for each in patterns):
        for found in pattern.finditer(text):
            named, day = found["month"].lower(), int(found["day"])
            month = int(named) if named.isdigit() else _MONTHS[named]
            if 1 <= month <= 12 and 1 <= day <= 31:
                yield (found["year"] or "", f"~{month}-{day}"), *found.span()


def _times(text: str) -> Iterator[_Moment]:
    for found in _TIME.finditer(text):
        hour, half = int(found["hour"]), (found["half"] or "").strip().lower()
        if hour <= 24 and (half or ":" in found[0]):
            hour = hour % 12 + 12 * (half[0] == "p") if half else hour
            yield ("", f"{hour}:{found['minute'] or '00'}"), *found.span()


def _long_numbers(text: str) -> Iterator[_Moment]:
    return ((("", canonical(found[0])), *found.span()) for found in _LONG_NUMBER.finditer(text))


Strictness: TypeAlias = Literal["verbatim", "normal", "loose"]

MAX_VALUES = 5_000
"""Most values read of one document."""

SHORT_TEXT = 200
"""Longest text whose folded form is cached."""

LEAST_DIGITS = 7
"""Fewest digits of a number that is found with any grouping, as in telephone numbers."""

_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_FIGURES = re.compile(r"(?<![\w.])[-+]?\d[\d,]{0,20}(?:\.\d{1,20})?(?!\w)")
_NO_DIGIT = re.compile(r"\D")


class Leaves:
    """The scalars of documents, in which values are searched."""

    def __init__(self, documents: Iterable[Json], *, keys: bool = True) -> None:
        """Collect the scalars, with `keys` also the names of members."""
        self._leaves: list[Any] = []
        for each in (each for each in documents if each is not None):
            if isinstance(each, dict | list | tuple):
                self._leaves += [leaf for leaf in islice(scalars_of(each, keys=keys), MAX_VALUES) if leaf is not None]
            else:
                self._leaves.append(each)
        self._forms: set[str] | None = None
        self._digits = ""

    def holds(self, value: Json, strictness: Strictness) -> bool:
        """Return whether every scalar of a value occurs in one of the leaves.

        With `verbatim`, booleans, null and texts without a letter or digit never do: a match would prove nothing.
        """
        scalars = list(islice(scalars_of(value), MAX_VALUES))
        if strictness == "verbatim":
            return bool(scalars) and all(_stands(scalar, self._leaves) for scalar in scalars)
        if self._forms is None:
            self._forms = {form for leaf in self._leaves for form in forms_of(leaf)}
            self._digits = " ".join(_NO_DIGIT.sub("", str(leaf)) for leaf in self._leaves)
        found = _is_spelt if strictness == "normal" else self._is_close
        return all(found(scalar, self._forms) for scalar in scalars)

    def has_form(self, form: str) -> bool:
        self.holds("", "normal")
        return form in (self._forms or ())

    def _is_close(self, value: Json, forms: Container[str]) -> bool:
        if isinstance(value, float):
            written = {canonical(value), *(canonical(f"{value:.{places}f}") for places in range(abs(value) < 1, 4))}
            return any(f"{sign}{each.lstrip('-')}" in forms for each in written for sign in ("", "-", "±"))
        if not isinstance(value, str):
            return any(f"{sign}{canonical(value).lstrip('-')}" in forms for sign in ("", "-", "±"))
        figures = "" if any(map(str.isalpha, value)) else _NO_DIGIT.sub("", value)
        return (len(figures) >= LEAST_DIGITS and figures in self._digits) or _is_spelt(value, forms, "", "|", "#", "±")


def _is_spelt(value: Json, forms: Container[str], *signs: str) -> bool:
    if whole_form(str(value)) in forms:
        return True
    wholes: Sequence[Sequence[str]] = [atom.wholes for atom in atoms_of(value)]
    return all(any(f"{sign}{form}" in forms for form in each for sign in signs or ("",)) for each in wholes)


def _stands(value: Json, leaves: Iterable[Json]) -> bool:
    if value is None or isinstance(value, bool):
        return False
    if not isinstance(value, str):
        return any(_is_number(value, leaf) for leaf in leaves)
    part = fold(value)
    return any(map(str.isalnum, part)) and any(holds_words(fold(str(leaf)), part) for leaf in leaves)


def fold(text: str) -> str:
    """Return a text in the form for verbatim comparison."""
    return _fold_short(text) if len(text) <= SHORT_TEXT else _fold_long(text[:TEXT_CHARS])


@lru_cache(maxsize=4096)
def _fold_short(text: str) -> str:
    """Fold a short text; cached, because successive calls are compared with the same results."""
    return " ".join(text.translate(_QUOTES).casefold().split())


_fold_long = lru_cache(maxsize=64)(_fold_short.__wrapped__)


def _is_number(value: float, leaf: Json) -> bool:
    if isinstance(leaf, str):
        return any(float(number.replace(",", "")) == value for number in _FIGURES.findall(leaf[:TEXT_CHARS]))
    return leaf is not None and not isinstance(leaf, bool) and bool(leaf == value)


def holds_words(whole: str, part: str) -> bool:
    start = whole.find(part)
    while start >= 0:
        before, after = whole[:start][-1:], whole[start + len(part) :][:1]
        if not (before.isalnum() and part[0].isalnum()) and not (after.isalnum() and part[-1].isalnum()):
            return True
        start = whole.find(part, start + 1)
    return False
