"""What an answer takes from results: values that another good answer must hold as well."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..state import Json
from ..values.finding import Found
from ..values.leaves import scalars
from ..values.spellings import NUMBERING, atoms_of, spell

LEAST_WORD, LONGEST = 4, 400
_QUESTION = re.compile(r"(?<![^.!?\n])[^.!?\n]*+\?")  # from a sentence's begin: no character is read twice


def find_statements(text: str) -> str:
    """Return a text without its questions and the numbers of its lists."""
    return NUMBERING.sub(" ", _QUESTION.sub(" ", text))


def find_taken(answer: str, results: Sequence[Json], known: Sequence[Json]) -> list[Json]:
    """Return values of results that an answer holds: whole ones before parts, none that was known without them.

    Known are texts of the user, and arguments of the writes.
    """
    taken: list[Json] = []
    before, found = _read(known), _read(results)
    for value in sorted(_find_whole(answer, results), key=lambda each: -len(str(each))):
        if not before.holds(value, "loose") and not (taken and _read(taken).holds(value, "loose")):
            taken.append(value)
    for atom in atoms_of(answer):
        part = spell(atom.wholes[0])
        if (
            atom.is_specific
            and part
            and found.holds(part, "loose")
            and not _read([*known, *taken]).holds(part, "loose")
        ):
            taken.append(part)
    return taken


def find_computed(answer: str, known: Sequence[Json]) -> list[Json]:
    """Return the numbers of an answer that stand nowhere: it has computed them."""
    parts, before = (spell(atom.wholes[0]) for atom in atoms_of(answer) if atom.is_specific), _read(known)
    numbers = (part for part in parts if part and part.replace(".", "", 1).isdecimal())
    return [number for number in dict.fromkeys(numbers) if not before.holds(number, "loose")]


def _read(values: Sequence[Json]) -> Found:
    return Found(values, keys=False)


def _find_whole(answer: str, results: Sequence[Json]) -> Iterator[Json]:
    seen, said = set[str](), _read([answer])
    for _, value in scalars(list(results)):
        if value is None or isinstance(value, bool) or (text := str(value)) in seen or len(text) > LONGEST:
            continue
        seen.add(text)
        if said.holds(value, "loose") and _is_telling(value, answer):
            yield value


def _is_telling(value: Json, answer: str) -> bool:
    if not isinstance(value, str) or any(atom.is_specific for atom in atoms_of(value)):
        return True
    phrase = re.escape(" ".join(value.split()))
    return len(value) >= LEAST_WORD and bool(re.search(rf"(?i)\b{phrase}\b", " ".join(answer.split())))
