"""What an answer takes from results: values that another good answer must hold as well."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..leaves import scalars
from ..milestones.measures import mentions
from ..spellings import Atom, atoms_of
from ..state import Json

LEAST_WORD, LONGEST = 4, 400
_QUESTION = re.compile(r"(?<![^.!?\n])[^.!?\n]*+\?")  # from a sentence's begin: no character is read twice
_DATE = re.compile(r"(\d{4})?\??~(\d{1,2})-(\d{1,2})")
_NUMBERING = re.compile(r"(?m)^[^\S\n]*+\d{1,2}[.)]\s")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def find_statements(text: str) -> str:
    """Return a text without its questions and the numbers of its lists."""
    return _NUMBERING.sub(" ", _QUESTION.sub(" ", text))


def find_taken(answer: str, results: Sequence[Json], known: Sequence[Json]) -> list[Json]:
    """Return values of results that an answer holds: whole ones before parts, none that was known without them.

    Known are texts of the user, and arguments of the writes.
    """
    taken: list[Json] = []
    for value in sorted(_find_whole(answer, results), key=lambda each: -len(str(each))):
        if not _is_known(value, known) and not (taken and _is_known(value, taken)):
            taken.append(value)
    for atom in atoms_of(answer):
        part = _write(atom)
        if atom.is_specific and part and _is_known(part, results) and not _is_known(part, [*known, *taken]):
            taken.append(part)
    return taken


def find_computed(answer: str, known: Sequence[Json]) -> list[Json]:
    """Return the numbers of an answer that stand nowhere: it has computed them."""
    parts = (_write(atom) for atom in atoms_of(answer) if atom.is_specific)
    numbers = (part for part in parts if part and part.replace(".", "", 1).isdecimal())
    return [number for number in dict.fromkeys(numbers) if not _is_known(number, known)]


def _find_whole(answer: str, results: Sequence[Json]) -> Iterator[Json]:
    seen: set[str] = set()
    for _, value in scalars(list(results)):
        if value is None or isinstance(value, bool) or (text := str(value)) in seen or len(text) > LONGEST:
            continue
        seen.add(text)
        if mentions(answer, value, {}) == 1.0 and _is_telling(value, answer):
            yield value


def _is_telling(value: Json, answer: str) -> bool:
    if not isinstance(value, str) or any(atom.is_specific for atom in atoms_of(value)):
        return True
    phrase = re.escape(" ".join(value.split()))
    return len(value) >= LEAST_WORD and bool(re.search(rf"(?i)\b{phrase}\b", " ".join(answer.split())))


def _is_known(value: Json, known: Sequence[Json]) -> bool:
    return mentions(list(known), value, {}) == 1.0


def _write(atom: Atom) -> str:
    whole = atom.wholes[0]
    if date := _DATE.fullmatch(whole):
        year, month, day = date.groups()
        return f"{year}-{int(month):02}-{int(day):02}" if year else f"{_MONTHS[int(month) - 1]} {day}"
    return "" if "~" in whole else whole
