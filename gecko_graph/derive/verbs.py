"""What the last word of a path does to a thing: `/orders/{id}/cancel` sets the status `cancelled`, if there is one."""

from __future__ import annotations

from ..state import JsonObject
from .paths import Things
from .shapes import SchemaShape, plain

_OPPOSITES = {"disable": "enable", "close": "open"}
_SHORTEST = 4


def changes_of(verb: str, things: Things) -> JsonObject:
    """Return the fields that a verb sets, with their values: a listed one, or a truth value."""
    found = {name: _values_of(plain(verb), plain(name), shape) for name, shape in things.fields.items()}
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _values_of(verb: str, name: str, shape: SchemaShape) -> list[str | bool]:
    other = _OPPOSITES.get(verb) or next((verb[2:] for start in ("un", "de") if verb.startswith(start)), "")
    if shape.types == {"boolean"}:
        said = name.removeprefix("is")
        return [value for value, word in ((True, verb), (False, other)) if _is_same(word, said)]
    values = {each: plain(each) for each in shape.first("enum") or () if isinstance(each, str)}
    denied = [each for each, said in values.items() if said[:2] in ("in", "un") and _is_same(other, said[2:])]
    fits = [each for each, said in values.items() if _is_same(verb, said)] or denied
    past = [each for each in fits if values[each].endswith("ed")]
    return [*(past if len(past) == 1 else fits)]


def _is_same(verb: str, word: str) -> bool:
    """Return whether a word is a form of a verb: `cancelled` and `cancellation`, `active` and `activate`."""
    size = max(_SHORTEST, min(len(verb), len(word)) - 2)
    return verb[:size] == word[:size] and size <= len(word) <= len(verb) + _SHORTEST
