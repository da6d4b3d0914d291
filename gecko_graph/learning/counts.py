"""Terms on several things or on a time: the number of a collection's things that belong to a call, and their sums.

A rule such as "two booked appointments at most" or "open bills of more than 100" is about the things that share a field
with the call. It is known in a row if reads have shown all of these things.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import combinations
from typing import Any, NamedTuple

from ..schemas.subschemas import is_number
from ..state import JsonObject
from .terms import MISSING, Term, is_collection, member, quote, stable_fields

MOST_COUNTS, MOST_LINKS, MOST_WORDS, OFTEN = 120, 6, 4, 2
ITEM = "one"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d.*")

Parts = Mapping[str, Sequence[JsonObject]]
"""Of a row's state: partly shown collections, each with the common values of its parts."""


class Link(NamedTuple):
    """A field of a collection's things that must equal a term."""

    name: str
    term: Term


def build_counts(terms: Sequence[Term], shown: Sequence[Parts]) -> list[Term]:
    """Return counts and sums of the things that belong to a call, simple ones first.

    Args:
        terms: The plain terms of the calls.
        shown: By row, the parts of its state's collections that reads have shown.
    """
    holders = [term for term in terms if term.of == "state" and term.cost == 1 and is_collection(term.values)]
    found = [one for holder in holders for one in _counts(holder, terms, shown)]
    return sorted(found, key=lambda term: term.cost)[:MOST_COUNTS]


def _counts(holder: Term, terms: Sequence[Term], shown: Sequence[Parts]) -> Iterator[Term]:
    held = [value for value in holder.values if isinstance(value, dict)]
    things = {key: thing for value in held for key, thing in value.items() if thing}
    columns = stable_fields([*things.values()])  # without the things' own, unique key
    fields = [name for name in columns if not all(str(one.get(name)) == key for key, one in things.items())]
    keys = [term for term in terms if term.of != "state" and term.where("key")]
    links = [Link(field, term) for field in fields for term in keys if _is_alike(field, term.text)]
    links = [one for one in links if holder.text not in one.term.text or _is_shared(things, one.name)][:MOST_LINKS]
    sums = [field for field in fields if any(is_number(thing.get(field)) for thing in things.values())]
    pairs = (pair for pair in combinations(links, 2) if pair[0].name != pair[1].name)
    for some in [*((one,) for one in links), *pairs]:
        own = {one.name for one in some}
        for word in [(), *((name, value) for name, value in _words(things, fields) if name not in own)]:
            name = holder.text.rpartition(".")[2]
            rows = [_chosen(value, at, some, word, shown[at].get(name)) for at, value in enumerate(holder.values)]
            equal = [(one.name, one.term.text) for one in some] + ([(word[0], quote(word[1]))] if word else [])
            said = " and ".join(f"{member(ITEM, name)} == {text}" for name, text in equal)
            cost, about = 3 + sum(1 + one.term.cost for one in some) + 2 * bool(word), tuple(one.term for one in some)
            loop = f"for {ITEM} in {holder.text}.values() if {said}"
            sizes = [MISSING if row is None else len(row) for row in rows]
            yield Term(f"len([{ITEM} {loop}])", sizes, cost, "count", about)
            for name in sums if len(some) == 1 else ():
                values = [MISSING if row is None else _sum(row, name) for row in rows]
                yield Term(f"sum({member(ITEM, name)} {loop})", values, cost + 1, "count", about)


def _is_shared(things: Mapping[str, Any], name: str) -> bool:
    """Return whether most things share a field's value with others; otherwise it is almost a key."""
    return 2 * len({str(thing.get(name)) for thing in things.values()}) <= len(things)


def _is_alike(field: str, text: str) -> bool:
    """Return whether a field has the name at an expression's end: `pet_id` and `args.petId`."""
    name = re.findall(r"\w+", text)[-1]
    return bool(name.replace("_", "").lower() == field.replace("_", "").lower())


def _words(things: Mapping[str, Any], fields: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield fields with few values, and each value that many things have."""
    for name in fields:
        values = [thing.get(name) for thing in things.values() if isinstance(thing.get(name), str | bool)]
        if 1 < len(known := {*values}) <= MOST_WORDS:
            yield from ((name, value) for value in sorted(known, key=str) if values.count(value) >= OFTEN)


def _chosen(
    value: Any, at: int, links: Sequence[Link], word: Sequence[Any], parts: Sequence[JsonObject] | None
) -> list[Any] | None:
    """Return the things of a row that belong to its call; None if no read has shown all of them."""
    wanted = {one.name: one.term.values[at] for one in links} | ({word[0]: word[1]} if word else {})
    if not isinstance(value, dict) or any(each is MISSING or each is None for each in wanted.values()):
        return None
    if parts is not None and not any(part and part.items() <= wanted.items() for part in parts):
        return None
    things = [thing for thing in value.values() if isinstance(thing, dict)]
    if any(name not in thing for thing in things for name in wanted):
        return None  # unknown after a write
    return [thing for thing in things if wanted.items() <= thing.items()]


def _sum(things: Sequence[Any], name: str) -> Any:
    values = [thing.get(name) for thing in things]
    return sum(values) if all(map(is_number, values)) else MISSING


def build_times(terms: Sequence[Term]) -> Iterator[Term]:
    """Yield the weekday, the hour and the minute of arguments that are times."""
    for term in (each for each in terms if each.of == "argument"):
        given = [each for each in term.values if isinstance(each, str)]
        if not given or not all(_TIME.fullmatch(each) for each in given):
            continue
        for text, part in TIMES.items():
            values = [part(each) if isinstance(each, str) else MISSING for each in term.values]
            yield Term(text.format(term.text), values, term.cost + 1, "time", (term,))


def _weekday(text: str) -> Any:
    try:
        return datetime.fromisoformat(text[:10]).strftime("%A")
    except ValueError:
        return MISSING


TIMES: Mapping[str, Callable[[str], Any]] = {
    "weekday({})": _weekday,
    "int({}[11:13])": lambda text: int(text[11:13]),
    "int({}[14:16])": lambda text: int(text[14:16]),
}
"""The terms of a time, as expressions."""
