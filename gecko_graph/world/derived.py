"""Derive values from known ones by one operation: computed numbers, dates and times, composed names.

Two numbers are combined only if they belong together: in the user's words, if these name the operation; in one record
that the plan mentions, or that is the whole result; items of one list. A date with two readings is derived, never
stated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import permutations, product
from typing import Any, TypeAlias

from ..models.focus import split_term
from ..schemas.specimens import is_identifier
from ..state import Json
from ..values.finding import Atom, atoms_of, canonical, fold, forms_of, holds_words
from ..values.places import Place, scalars
from .given import Tally
from .heard import DATE, MOST_SAID, PLAIN, RELATIVE, WEEKDAYS, Heard, Number, Record, Result, days_in

TWO_WAYS = "one of two ways to read the date"
MOST_NUMBERS = 8
"""Most numbers of one record, or of small results together, that are combined."""

_PIECES = re.compile(r"[/:@\\]+")
_FILE = re.compile(r"(.+)\.[a-z]{1,5}\d?", re.IGNORECASE)
_ADDRESS = re.compile(r"[^@:/]+@[^@:/]+")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)")
_CALENDAR = re.compile(r"(?i)day|month|year|hour|minute")
_LISTED = re.compile(r"(?i)\b(?:mean|average)\b")
_WITH_WORD = re.compile(r"(\d+(?:\.\d+)?)-?[a-z]+", re.ASCII)
_WORDS = {"today": 0, "tonight": 0, "now": 0, "tomorrow": 1, "yesterday": -1, "day after": 1, "day before": -1}
_WORDS |= {"day after tomorrow": 2, "day before yesterday": -2}
_DIRECTED = re.compile(r"(?i)\b(?:minus|negative|below|west|south)\b|\d ?°? ?[ws]\b")


_Result: TypeAlias = tuple[float, str, list[Any]]
"""An operation's result, its text, and the marks of its operands."""


@dataclass(slots=True)
class Knowledge:
    """The known values before a call: by form, in the user's words, and in results in the order of the calls."""

    forms: dict[str, list[Any]]
    """A form to the marks of its sources."""
    said: list[tuple[str, Any]] = field(default_factory=list)
    """Texts of the user and the system, with their marks."""
    results: list[Result] = field(default_factory=list)
    computed: list[Number] = field(default_factory=list)
    now: str = ""
    """The clock of the task state, unless it is made up."""
    counters: Sequence[Tally] = ()
    about: str = ""
    """The called tool's description, whose numbers may be limits."""
    _read: Heard = field(default_factory=lambda: Heard(()))

    @property
    def _heard(self) -> Heard:
        if len(self._read.said) != len(self.said):
            self._read = Heard([*self.said])
        return self._read

    def derive(self, atom: Atom, value: Json, name: str, about: str, args: Json) -> list[Any] | None:
        """Return the operation that gives a part of an argument; None if no single operation does.

        `value` is the whole argument, `about` its description in the schema, `args` all arguments of the call.
        """
        whole = atom.wholes[0]
        if "~" in whole:
            return self._dated(atom)
        if found := _CLOCK.fullmatch(whole):
            return self._timed(int(found[1]), int(found[2]), whole)
        if whole.lstrip("-").replace(".", "", 1).isdecimal():
            return self._numbered(whole, value, name, about) or self._computed(whole, args)
        return self._composed(atom)

    def repeat(self, whole: str, name: str) -> list[Any] | None:
        """Return why a number is known although a simulated result contained it first.

        A counter of the state assigns it to things with the name (to any if the name is empty), or the user's words
        name its operands.
        """
        if whole.replace(".", "", 1).isdecimal() and (found := self._computed(whole, {}, named=True)):
            return found
        wanted, own = int(whole) if whole.isdecimal() else None, {*split_term(name)} - {"number"}
        near = (each for each in self.counters if wanted in each.numbers and (not own or own & each.words))
        return next((_follow([each.mark], f"{whole}: the next number of its counter") for each in near), None)

    # numbers

    def _numbered(self, whole: str, value: Json, name: str, about: str) -> list[Any] | None:
        """Return the known number that equals a number up to unit, sign or rounding, or that contains it."""
        number, text = float(whole), f"{name} {about}".casefold()
        others = {f"±{whole}": f"-(-{whole})"}
        others |= {f"{word}{whole}": f"{word} {whole}" for word in split_term(text)}
        if number < 0 and any(_DIRECTED.search(said) for said, _ in self.said):
            others[whole[1:]] = f"-({whole[1:]})"
        if isinstance(value, str) or is_identifier(name) or _CALENDAR.search(name):
            others |= {f"#{whole}": "part of an identifier or date", f"~{whole}": "the number of the month"}
        if not (whole.isdecimal() and "number" in about):
            places = len(whole.partition(".")[2])
            longer = (
                form
                for form in self.forms
                if "." in form and len(form.partition(".")[2]) > max(places, 1) and PLAIN.fullmatch(form)
            )
            others |= {form: f"{form}, rounded" for form in longer if round(float(form), places) == number}
        units = [(unit, size) for unit, size in (("min", 1), ("sec", 60), ("hour", 1 / 60)) if unit in text]
        for durations, mark in self._heard.durations if units else ():
            for unit, size in units:
                if round(number / size) in durations:
                    return _follow([mark], f"{whole} {unit} = {round(number / size)} minutes")
        form = next((form for form in others if form in self.forms), "")
        return _follow(self.forms[form], f"{whole} = {others[form]}") if form else None

    def _computed(self, whole: str, args: Json, *, named: bool = False) -> list[Any] | None:
        """Return two numbers that belong together, or a list, which give a number."""
        wanted, digits = float(whole), max(2, len(whole.partition(".")[2]))
        sizes = self._heard.sizes
        found = (
            each
            for each in (self._named() if named else self._operations(wanted, args))
            if round(each[0], digits) == wanted or any(round(each[0] / size) * size == wanted for size in sizes)
        )
        return next((_follow(marks, f"{whole} = {shown}") for _, shown, marks in found), None) if wanted else None

    def _said(self) -> list[Number]:
        return self._heard.numbers + [each for each in self.computed[-MOST_SAID:] if each.value]

    def _named(self) -> Iterator[_Result]:
        """Yield results whose operands the user's words name: two numbers, or a number and a field."""
        said, heard = self._said(), self._heard
        for one, other in permutations(said, 2):
            yield from _operate(one, other, heard.cues if one.text in heard.prices else heard.cues - {"×"})
        if _LISTED.search(heard.text):
            yield from _means(self.said)
        named = (form for form in forms_of(self.about) if form.replace(".", "", 1).isdecimal())
        limits = [Number(float(form), form, None) for form in named]
        for result in reversed(self.results):
            for place, record in result.records.items():
                fields = [(key, each) for key, each in _numbers(record) if heard.words & {*split_term(str(key))}]
                for key, each in fields[:MOST_NUMBERS]:
                    yield from _rest(Number(each, canonical(each), result.mark_at((*place, key))), said, limits)

    def _operations(self, wanted: float, args: Json) -> Iterator[_Result]:
        yield from self._named()
        said, heard = self._said(), self._heard
        counts = [each for _, each in scalars(args) if type(each) is int and each != wanted]
        factors = [*said, *(Number(each, str(each), None) for each in counts)]
        spoken, small = fold(heard.text), list[Number]()
        for result in reversed(self.results):
            records, mark_at = result.records, result.mark_at
            for place, record in records.items() if len(records) < 2 else _named(records, spoken, args):
                own = [Number(each, canonical(each), mark_at((*place, key))) for key, each in _numbers(record)]
                own = own[:MOST_NUMBERS]
                small += own if len(records) == 1 else ()
                for one, other in permutations(own, 2):
                    yield from _operate(one, other, {"+", "-", "×"})
                for one, other in product(own, factors):
                    yield from _operate(one, other, {"×", *(heard.cues if other.mark else ())})
                    yield from _operate(other, one, heard.cues & {"-"})
            yield from _sums(records, mark_at, _named(records, spoken, args))
        for one, other in permutations(small[:MOST_NUMBERS], 2):
            yield from _operate(one, other, {"+", "-", "×", "÷"})

    # dates and times

    def _dated(self, atom: Atom) -> list[Any] | None:
        for whole in atom.wholes:
            if f"|{whole}" in self.forms:
                shown = "-".join(f"{int(part):02}" for part in re.findall(r"\d+", whole))
                return _follow(self.forms[f"|{whole}"], f"{shown}: {TWO_WAYS}")
        if not (found := DATE.fullmatch(atom.wholes[0])):
            return None
        with suppress(ValueError):
            day = date(int(found[1]), int(found[2]), int(found[3]))
            if marks := self.forms.get(f"?~{day.month}-{day.day}"):
                near = self._clock and abs((day - self._clock).days) < 366
                if near or (any(each in self.forms for each in (str(day.year), f"#{day.year}")) and not self._clock):
                    return _follow(marks, f"{day} = {day:%B} {day.day} with its year")
            return self._relative(day)
        return None

    @property
    def _clock(self) -> date | None:
        with suppress(ValueError):
            return date.fromisoformat(self.now[:10])
        return None

    def _relative(self, wanted: date) -> list[Any] | None:
        """Return the words from which a day follows, counted from the clock, or else from a mentioned day."""
        small = (fields for result in self.results for fields in result.records.values() if len(fields) < 4)
        read = [day for fields in small for value in fields.values() for day in days_in(forms_of(value))]
        known = [*self._heard.days, *days_in(each.text for each in self.computed), *read]
        for found, mark in self._heard.relative:
            counted = (found["number"] and not found["back"]) or (found["word"] or "").startswith("day ")
            bases = [self._clock] if self._clock else known
            for base in {*bases, *(known if counted or found["back"] else ())} - {None}:
                if wanted in _meant(base, found):
                    return _follow([mark], f"{wanted} = {found[0].strip()}, from {base}")
        return None

    def _timed(self, hour: int, minute: int, whole: str) -> list[Any] | None:
        """Return the known time that differs from a time by a known duration, or the hour of a full hour."""
        for each in (str(hour), str(hour - 12)) if not minute else ():
            if each in self.forms:
                return _follow(self.forms[each], f"{whole} = {each} o'clock")
        durations = {minutes for each, _ in self._heard.durations for minutes in each}
        for form, marks in self.forms.items():
            if found := _CLOCK.fullmatch(form):
                apart = abs(60 * (hour - int(found[1])) + minute - int(found[2]))
                if apart in durations:
                    return _follow(marks, f"{whole} = {form} and {apart} minutes")
        return None

    # names

    def _composed(self, atom: Atom) -> list[Any] | None:
        """Return the known parts of a path, a file name or an identifier with a known prefix."""
        whole = atom.wholes[0]
        if _ADDRESS.fullmatch(whole):
            return None
        if (found := _WITH_WORD.fullmatch(whole)) and (
            marks := self.forms.get(found[1]) or self.forms.get(f"#{found[1]}")
        ):
            return _follow(marks, f"{whole}: {found[1]} with its unit")
        pieces = [piece for piece in _PIECES.split(whole) if piece.strip(".~")]
        parts = [self._piece(piece, atom if piece == whole else None) for piece in pieces]
        return (
            _follow([mark for marks in parts for mark in marks or ()], f"{whole}: put together") if all(parts) else None
        )

    def _piece(self, piece: str, atom: Atom | None) -> list[Any] | None:
        atom = atom or next(iter(atoms_of(piece)), None)
        if atom is None or (marks := next((self.forms[form] for form in atom.wholes if form in self.forms), None)):
            return atom and marks
        named = _FILE.fullmatch(piece)
        words = atom.words[: -1 if named and len(atom.words) > 1 else None]
        if not words or any(form not in self.forms and form[1:] not in self.forms for form in atom.digits):
            return None
        if atom.digits and not named:
            return None
        known = [self.forms[word][0] for word in words if word in self.forms]
        return known if len(known) == len(words) or (named and 2 * len(known) >= len(words)) else None


def _follow(marks: Sequence[Any], shown: str) -> list[Any]:
    return [mark._replace(kind="derived", shown=shown) for mark in marks]


def _operate(one: Number, other: Number, signs: set[str]) -> Iterator[_Result]:
    a, b = one.value, other.value
    results = {"+": a + b, "-": a - b, "×": a * b, "÷": a / b if b else 0.0}
    marks = [each.mark for each in (one, other) if each.mark is not None]
    yield from ((results[sign], f"{one.text} {sign} {other.text}", marks) for sign in signs & results.keys())
    if "%" in signs and 0 < b <= 100:
        for share, text in ((b, ""), (100 + b, "100 + "), (100 - b, "100 - ")):
            yield a * share / 100, f"({text}{other.text}) % of {one.text}", marks


def _rest(one: Number, said: Sequence[Number], limits: Sequence[Number]) -> Iterator[_Result]:
    """Yield the differences between a field and a number of the user's or a limit of the tool's."""
    for other in said:
        yield from _operate(other, one, {"+", "-"})
        yield from _operate(one, other, {"-"})
    for limit in limits:
        yield from _operate(limit, one, {"-"})


def _means(said: Sequence[tuple[str, Any]]) -> Iterator[_Result]:
    for text, mark in said:
        numbers = [float(form) for form in forms_of(text) if PLAIN.fullmatch(form)]
        if len(numbers) > 2:
            yield sum(numbers) / len(numbers), f"the mean of {len(numbers)} numbers", [mark]


def _numbers(record: Record) -> list[tuple[str | int, float]]:
    return [(key, value) for key, value in record.items() if isinstance(value, int | float)]


def _named(records: Mapping[Place, Record], spoken: str, args: Json) -> list[tuple[Place, Record]]:
    """Return the records of which the user or the call names a text."""
    given = {fold(str(value)) for _, value in scalars(args)}
    return [
        (place, record)
        for place, record in records.items()
        if any(
            isinstance(value, str) and len(value) > 2 and (fold(value) in given or holds_words(spoken, fold(value)))
            for value in record.values()
        )
    ]


def _sums(records: Mapping[Place, Record], mark_at: Any, named: list[Any]) -> Iterator[_Result]:
    """Yield the sums of one field over a list's items: all of them, or the named ones."""
    for some in (list(records.items()), named):
        columns: dict[Place, list[tuple[Place, float]]] = {}
        for place, record in some:
            for key, value in _numbers(record):
                column = tuple("*" if isinstance(token, int) else token for token in (*place, key))
                columns.setdefault(column, []).append(((*place, key), value))
        for items in columns.values():
            if len(items) > 1:
                terms = " + ".join(canonical(value) for _, value in items[:3]) + (" + …" if len(items) > 3 else "")
                yield sum(value for _, value in items), terms, [mark_at(items[0][0])]


def _meant(base: date, found: re.Match[str]) -> Iterator[date]:
    """Yield the days that relative words may mean."""
    if weekday := found["weekday"]:
        ahead, which = (WEEKDAYS.index(weekday.lower()) - base.weekday()) % 7, (found["which"] or "").lower()
        weeks = (-7,) if which in ("last", "past") else (0, 7) if which == "next" or not ahead else (0,)
        yield from (base + timedelta(ahead + week) for week in weeks)
    elif word := found["word"]:
        yield base + timedelta(_WORDS[word.lower()])
    else:
        counted = {"a": 1, "an": 1, "next": 1, "last": -1}.get(found["number"].lower())
        number = counted or next((int(form) for form in forms_of(found["number"]) if form.isdecimal()), 1)
        yield base + timedelta(number * (7 if found["unit"].lower() == "week" else 1) * (-1 if found["back"] else 1))


def list_lengths(result: Json) -> set[str]:
    items = {place[: at + 1] for place, _ in scalars(result) for at, token in enumerate(place) if type(token) is int}
    return set(map(str, Counter(item[:-1] for item in items).values()))


def days_meant(text: str, base: date) -> set[date]:
    """Return the days that the relative words of a text may mean, counted from `base`."""
    return {day for found in RELATIVE.finditer(text) for day in _meant(base, found)}
