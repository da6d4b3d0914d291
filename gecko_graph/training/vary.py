"""Vary a state: remove and add rows, change keys and numbers, and the references to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import Any

from ..errors import StateError
from ..state import Json, JsonObject
from ..values.digest import clone
from ..values.places import map_texts, scalars_of
from ..world.world import World

WORDS = [
    "amber", "april", "basket", "birch", "bridge", "candle", "canyon", "cedar", "clover", "copper", "cotton", "ember",
    "garden", "harbour", "hazel", "island", "jasmine", "lantern", "linen", "maple", "marble", "meadow", "mint", "oak",
    "orchard", "paper", "pearl", "pepper", "quartz", "raven", "river", "saffron", "silver", "slate", "summer",
    "thistle", "thunder", "timber", "tulip", "velvet", "walnut", "willow",
]  # fmt: skip

TRIES = 4
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_LETTERS = re.compile(r"[^\W\d_]+")
MOST_ROWS = 60
"""Tables with more rows are not varied."""


def vary(world: World, state: JsonObject, rng: Random) -> World:
    """Return a world with a varied state, or with the given one if no valid variation was found."""
    for _ in range(TRIES):
        try:
            return world.begin(vary_state(state, rng))
        except StateError:
            continue
    return world.begin(state)


def vary_state(state: JsonObject, rng: Random) -> JsonObject:
    """Return a variation of a state; it may violate rules of the tools."""
    varied: JsonObject = clone(state)
    named = list(scalars_of(varied))
    for table in list(_find_tables(varied)):
        _vary_rows(table, {str(each) for each in named}, rng)
    taken = {str(each) for each in scalars_of(varied, keys=True)}
    new: dict[str, str] = {}
    for table in _find_tables(varied):
        for key in table if isinstance(table, dict) else ():
            if key not in new and rng.random() < 0.7 and (other := rename(key, rng)) not in taken:
                new[key] = other
                taken.add(other)
    return map_texts(varied, lambda text: new.get(text, text), keys=True)  # type: ignore[no-any-return]


def _find_tables(value: Json, depth: int = 0) -> Iterator[Any]:
    """Yield objects and lists whose members are objects with common keys, outer ones first."""
    members = list(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    rows = [each for each in members if isinstance(each, dict)]
    if depth and rows and len(rows) == len(members) <= MOST_ROWS and set(rows[0]).intersection(*rows):
        yield value
    for each in members:
        yield from _find_tables(each, depth + 1)


def _vary_rows(table: Any, named: set[str], rng: Random) -> None:
    """Add rows from values of others, remove unreferenced rows, and change numbers."""
    is_list = isinstance(table, list)
    plain = [row for row in (table if is_list else table.values()) if not any(map(_is_container, row.values()))]
    for _ in range(rng.randrange(3) if len(plain) > 1 and not is_list else 0):
        if (key := rename(rng.choice(list(table)), rng)) not in table:
            columns = rng.choice(plain)
            table[key] = {name: rng.choice([row[name] for row in plain if name in row]) for name in columns}
    for key in rng.sample(list(range(len(table)) if is_list else table), len(table)):
        if len(table) > 2 and not is_list and rng.random() < 0.2 and key not in named:
            del table[key]
        elif len(plain) > 1 and not any(map(_is_container, table[key].values())):
            table[key] = {name: _near(each, rng) if rng.random() < 0.5 else each for name, each in table[key].items()}


def _near(value: Json, rng: Random) -> Json:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    factor = rng.choice((0.5, 0.8, 1.2, 1.5, 2))
    return max(round(value * factor), min(value, 1)) if isinstance(value, int) else round(value * factor, 2)


def rename(key: str, rng: Random) -> str:
    """Return another name of the same form: with other digits, or if it has none with another first word."""
    if _DATE.match(key):
        return key
    if any(letter.isdigit() for letter in key):
        return re.sub(r"\d", lambda found: str(rng.randrange(1, 10)), key)
    word = rng.choice(WORDS)
    return _LETTERS.sub(lambda found: _like(word, found[0]), key, count=1)


def _like(word: str, model: str) -> str:
    return word.upper() if model.isupper() and len(model) > 1 else word.capitalize() if model[0].isupper() else word


def _is_container(value: Json) -> bool:
    return isinstance(value, dict | list)
