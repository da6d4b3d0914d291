"""Reduce a schema to flat schemas: without references, compositions and conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from ..state import Json, JsonObject
from .complaints import is_error_branch
from .reading import COMPOSED
from .rules import canonical
from .specimens import Dice, vocabulary
from .subschemas import follow

MAX_ALTERNATIVES = 24

_LARGER = vocabulary("minimum exclusiveMinimum minLength minItems minProperties minContains")
_SMALLER = vocabulary("maximum exclusiveMaximum maxLength maxItems maxProperties maxContains")


def flatten(schema: Any, root: Any, dice: Dice) -> Iterator[tuple[JsonObject, frozenset[str]]]:
    """Yield the flat schemas that a schema reduces to, the likeliest first, each with its references.

    A value of one of them probably fits the schema; `oneOf` and `not` must be checked afterwards.
    """
    return islice(_flat(schema, root, dice, frozenset()), MAX_ALTERNATIVES)


def _flat(schema: Any, root: Any, dice: Dice, seen: frozenset[str]) -> Iterator[tuple[JsonObject, frozenset[str]]]:
    if schema is True:
        yield {}, seen
    if not isinstance(schema, dict):
        return
    base = {key: value for key, value in schema.items() if key not in COMPOSED}
    parts: list[list[tuple[JsonObject, frozenset[str]]]] = []
    for options, followed in _groups(schema, root, dice, seen):
        found = (flat for option in options for flat in _flat(option, root, dice, followed))
        parts.append(list(islice(found, MAX_ALTERNATIVES)))
    for combination in product(*parts):
        merged: JsonObject | None = base
        for flat, _ in combination:
            merged = merge(merged, flat) if merged is not None else None
        if merged is not None:
            yield merged, seen.union(*(refs for _, refs in combination))


def _groups(
    schema: JsonObject, root: Any, dice: Dice, seen: frozenset[str]
) -> Iterator[tuple[Sequence[Any], frozenset[str]]]:
    """Yield groups of options: a reference's target, a member of allOf, the branches of anyOf or oneOf."""
    for key in ("$ref", "$dynamicRef"):
        if isinstance(reference := schema.get(key), str) and reference not in seen:
            target = follow(root, reference)
            yield [True if target is None else target], seen | {reference}
    yield from (([member], seen) for member in schema.get("allOf", ()))
    for key in ("anyOf", "oneOf"):
        if key in schema:
            yield _order(schema[key], root, dice), seen
    yield from (([one, True], seen) for one in schema.get("dependentSchemas", {}).values())
    if "if" in schema:
        yield [{"allOf": [schema["if"], schema.get("then", True)]}, schema.get("else", True)], seen


def _order(options: Sequence[Any], root: Any, dice: Dice) -> list[Any]:
    """Return the branches from a random one on; the last are null, a discriminator's default, and then error bodies."""

    def rank(branch: Any) -> int:
        rules = branch.get("properties") if isinstance(branch, Mapping) else None
        is_rest = isinstance(rules, Mapping) and any(isinstance(one, dict) and "not" in one for one in rules.values())
        is_null = isinstance(branch, Mapping) and branch.get("type") == "null"
        return 2 if is_error_branch(branch, root) else is_null or is_rest

    start = dice.below(len(options))
    return sorted([*options[start:], *options[:start]], key=rank)


def merge(one: JsonObject, other: JsonObject) -> JsonObject | None:
    """Return one schema for both, None if no value can fit both."""
    merged = {**one, **other}
    for key in one.keys() & other.keys():
        both = _merge_value(key, one[key], other[key])
        if both is None:
            return None
        merged[key] = both
    return merged


def _merge_value(key: str, one: Any, other: Any) -> Any:
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
    first, second = ([types] if isinstance(types, str) else types for types in (one, other))
    common = [kind for kind in first if kind in second]
    if "integer" not in common and {"integer", "number"} <= {*first, *second}:
        common.append("integer")
    return common or None
