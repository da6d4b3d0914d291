"""Flattening schemas: references followed, allOf merged, one alternative chosen; the rest speaks of one value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from ..schemas.error_bodies import is_error_branch
from ..schemas.rules import canonical
from ..schemas.subschemas import follow
from ..state import Json, JsonObject
from .dice import Dice

MAX_ALTERNATIVES = 24

COMPOSED = frozenset({"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf"})
_LARGER = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"})
_SMALLER = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"})


def flattened(schema: Any, root: Any, dice: Dice) -> Iterator[tuple[JsonObject, frozenset[str]]]:
    """The flat schemas that a schema comes down to, the likeliest first, each with the references that led to it.

    A value of one of them is likely, not certain, to fit the schema: `oneOf` and `not` want to be checked afterwards.
    """
    return islice(_flat(schema, root, dice, frozenset()), MAX_ALTERNATIVES)


def _flat(schema: Any, root: Any, dice: Dice, seen: frozenset[str]) -> Iterator[tuple[JsonObject, frozenset[str]]]:
    if schema is True:
        yield {}, seen
    if not isinstance(schema, dict):
        return
    base = {key: value for key, value in schema.items() if key not in COMPOSED}
    parts: list[list[tuple[JsonObject, frozenset[str]]]] = []
    for options, followed in _groups(schema, root, seen):
        found = (flat for option in options(dice) for flat in _flat(option, root, dice, followed))
        parts.append(list(islice(found, MAX_ALTERNATIVES)))
    for combination in product(*parts):
        merged: JsonObject | None = base
        for flat, _ in combination:
            merged = merge(merged, flat) if merged is not None else None
        if merged is not None:
            yield merged, seen.union(*(refs for _, refs in combination))


Options = Callable[[Dice], Sequence[Any]]


def _groups(schema: JsonObject, root: Any, seen: frozenset[str]) -> Iterator[tuple[Options, frozenset[str]]]:
    """Each a choice: the target of a reference, a member of allOf (no choice), the branches of anyOf or oneOf."""
    for key in ("$ref", "$dynamicRef"):
        if isinstance(reference := schema.get(key), str) and reference not in seen:
            target = follow(root, reference)
            yield _all([True if target is None else target]), seen | {reference}
    for member in schema.get("allOf", ()):
        yield _all([member]), seen
    for key in ("anyOf", "oneOf"):
        if key in schema:
            yield _ordered(schema[key], root), seen
    if "if" in schema:
        then = {"allOf": [schema["if"], schema.get("then", True)]}
        yield _all([then, schema.get("else", True)]), seen


def _all(options: Sequence[Any]) -> Options:
    return lambda dice: options


def _ordered(options: Sequence[Any], root: Any) -> Options:
    """The branches from a thrown one on; null and nothing come last, error bodies after them."""

    def rank(each: Any) -> int:
        return 2 if is_error_branch(each, root) else isinstance(each, Mapping) and each.get("type") == "null"

    def order(dice: Dice) -> list[Any]:
        start = dice.below(len(options))
        return sorted([*options[start:], *options[:start]], key=rank)

    return order


def merge(one: JsonObject, other: JsonObject) -> JsonObject | None:
    """One schema for what two ask for; None where no value can fit both."""
    merged = {**one, **other}
    for key in one.keys() & other.keys():
        both = _merged_value(key, one[key], other[key])
        if both is None:
            return None
        merged[key] = both
    return merged


def _merged_value(key: str, one: Any, other: Any) -> Any:
    if key in _LARGER or key in _SMALLER:
        return max(one, other) if key in _LARGER else min(one, other)
    if key == "type":
        return _common_types(one, other)
    if key == "enum":
        listed = {canonical(value) for value in other}
        return [value for value in one if canonical(value) in listed] or None
    if key == "required":
        return [*one, *(name for name in other if name not in one)]
    if key in ("properties", "patternProperties"):
        names = {**one, **other}
        return {name: _both(one.get(name, True), other.get(name, True)) for name in names}
    if key in ("items", "additionalProperties", "contains", "propertyNames"):
        return _both(one, other) if one is not False and other is not False else False
    return other


def _both(one: Any, other: Any) -> Any:
    if one is True or one == other:
        return other
    return one if other is True else {"allOf": [one, other]}


def _common_types(one: Json, other: Json) -> list[str] | None:
    first, second = ([each] if isinstance(each, str) else each for each in (one, other))
    common = [kind for kind in first if kind in second]
    if "integer" not in common and {"integer", "number"} <= {*first, *second}:
        common.append("integer")
    return common or None
