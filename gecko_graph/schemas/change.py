"""The errors that a change brings into a value that fitted its schema: only what is not shared with it is checked.

Patches are applied copy-on-write, so what a change leaves alone is the same object before and after: it fitted then,
under the same rule, and fits now. This holds for rules that a value fits all of, each at one place (`properties`,
`items`, `allOf`, `$ref`, ...). Every other keyword of a level that changed (`required`, `uniqueItems`, `anyOf`, `if`,
`unevaluatedProperties`, ...) is checked there whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import compress, repeat
from operator import is_not
from typing import Any

from jsonschema import ValidationError
from jsonschema.protocols import Validator

from ..state import Json, JsonObject
from .rules import Same, check, member_rules
from .subschemas import follow

_LOCAL = frozenset(
    {"properties", "patternProperties", "additionalProperties", "items", "prefixItems", "allOf", "$ref", "$defs"}
)
_NOTHING = object()

Place = tuple[str | int, ...]


def check_change(rules: Validator, before: Json, after: Json) -> Iterator[ValidationError]:
    """Yield the errors of a value, given that the one before had none; none exactly where the whole check finds none.

    Args:
        rules: What `rules_of` returns, for a schema that `check_schema` accepts.
        before: A value that fits.
        after: The value that it was changed to; what is unchanged in it is shared with `before`.
    """
    yield from _check(rules, rules.schema, before, after, (), frozenset())


def _check(
    rules: Validator, schema: Any, before: Any, after: Json, place: Place, seen: frozenset[int]
) -> Iterator[ValidationError]:
    """Yield the errors of one value under one schema; `seen` are the references followed at this very value."""
    if before is after or schema is True or id(schema) in seen:
        return
    both = next((kind for kind in (dict, list) if isinstance(before, kind) and isinstance(after, kind)), None)
    rest = schema if both is None or not isinstance(schema, dict) else _whole_part(Same(schema))
    for error in check(rules.evolve(schema=rest), after):
        error.path.extendleft(reversed(place))
        yield error
    if rest is schema:
        return
    for part in _in_place(rules, schema):
        yield from _check(rules, part, before, after, place, seen | {id(schema)})
    members = _changed_members(schema, before, after) if both is dict else _changed_items(schema, before, after)
    for key, rule, old in members:
        yield from _check(rules, rule, old, after[key], (*place, key), frozenset())


@lru_cache(maxsize=4096)
def _whole_part(key: Same) -> Any:
    schema = key.schema
    if {"unevaluatedProperties", "unevaluatedItems"} & schema.keys():  # they read what the others have found
        return schema
    return {keyword: value for keyword, value in schema.items() if keyword not in _LOCAL}


def _in_place(rules: Validator, schema: JsonObject) -> Iterator[Any]:
    yield from schema.get("allOf", ())
    if "$ref" in schema:
        yield follow(rules.schema, schema["$ref"])


def _changed_members(schema: JsonObject, before: JsonObject, after: JsonObject) -> Iterator[tuple[str, Any, Any]]:
    """Yield the members of an object that changed, each with a rule for it and what it was."""
    old = map(before.get, after, repeat(_NOTHING))
    names = [*compress(after, map(is_not, after.values(), old))]  # an object may have very many members
    for name, rule in member_rules(names, schema):
        yield name, rule, before.get(name, _NOTHING)


def _changed_items(schema: JsonObject, before: list[Json], after: list[Json]) -> Iterator[tuple[int, Any, Any]]:
    """Yield the items of a list that changed, each with its rule and what stood there; items that moved did not."""
    first = schema.get("prefixItems", [])
    old = dict(enumerate(before))
    for index, rule in enumerate(first[: len(after)]):
        yield index, rule, old.get(index, _NOTHING)
    if "items" in schema:
        known = {id(item) for item in before[len(first) :]}
        for index in range(len(first), len(after)):
            if id(after[index]) not in known:
                yield index, schema["items"], old.get(index, _NOTHING)
