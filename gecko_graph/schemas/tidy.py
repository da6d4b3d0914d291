"""Tidying schemas: what is malformed in a schema is taken out of it, so that it is no rule and breaks no run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from .pattern import compile_pattern

TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})

_DATA = frozenset({"enum", "const", "default", "example", "examples"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
_SINGLE = frozenset({
    "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems",
    "unevaluatedProperties", "contentSchema",
})  # fmt: skip

_COUNTS = (
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains",
)  # fmt: skip

_TURNING = frozenset({"not", "oneOf", "if", "contains"})
"""Where less of a rule inside can mean more of it outside: these stay whole or go."""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: object) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)  # type: ignore[call-overload, operator]


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_types(value: object) -> bool:
    kinds = [value] if isinstance(value, str) else value
    return isinstance(kinds, list) and bool(kinds) and all(isinstance(kind, str) and kind in TYPES for kind in kinds)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_SHAPES: Mapping[str, Callable[[object], bool]] = {
    "type": _is_types,
    "enum": lambda value: isinstance(value, list) and bool(value),
    "required": _is_names,
    "dependentRequired": lambda value: isinstance(value, dict) and all(map(_is_names, value.values())),
    "pattern": lambda value: isinstance(value, str) and compile_pattern(value) is not None,
    "multipleOf": lambda value: _is_number(value) and value > 0,  # type: ignore[operator]
    "uniqueItems": lambda value: isinstance(value, bool),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(_COUNTS, _is_count),
    **dict.fromkeys(("format", "$ref", "$dynamicRef", "$anchor", "$dynamicAnchor", "$id"), _is_text),
}


def tidy(schema: Any) -> Any:
    """A copy of a schema without what is malformed in it.

    `$schema` goes too: everything is read as 2020-12. Places that no keyword names (`components`) are tidied as well,
    because references point there.
    """
    if not isinstance(schema, dict):
        return schema if isinstance(schema, bool) else True
    clean = {key: _tidy_value(key, value) for key, value in schema.items() if _keeps(key, value)}
    return {key: value for key, value in clean.items() if key not in _TURNING or value == schema[key]}


def _keeps(key: object, value: Any) -> bool:
    if not isinstance(key, str) or key == "$schema":
        return False
    if key in _SINGLE and not isinstance(value, dict | bool):
        return False
    if key in _LISTS:
        return isinstance(value, list) and bool(value) and all(isinstance(each, dict | bool) for each in value)
    if key in _MAPS:
        return isinstance(value, dict)
    shape = _SHAPES.get(key)
    return shape is None or shape(value)


def _tidy_value(key: str, value: Any) -> Any:
    if key in _DATA:
        return value
    if key in _COUNTS:
        return int(value)
    if key in _LISTS:
        return [tidy(each) for each in value]
    if key in _MAPS:
        return {name: _member(each) for name, each in value.items() if _names(key, name)}
    if key in _SINGLE:
        return tidy(value)
    return _elsewhere(value)


def _member(schema: Any) -> Any:
    # `false` says the same, but jsonschema's error about it does not know the place
    return {"not": {}} if schema is False else tidy(schema)


def _names(key: str, name: object) -> bool:
    return isinstance(name, str) and (key != "patternProperties" or compile_pattern(name) is not None)


def _elsewhere(value: Any) -> Any:
    if isinstance(value, dict):
        return tidy(value)
    return [_elsewhere(each) for each in value] if isinstance(value, list) else value


def mentions(schema: Any, key: str) -> bool:
    """True if an object anywhere in `schema` has the key."""
    if isinstance(schema, dict):
        return key in schema or any(mentions(value, key) for value in schema.values())
    return isinstance(schema, list) and any(mentions(value, key) for value in schema)


def follow(root: Any, reference: str) -> Any:
    """What a reference inside the document `root` points to; None where it points outside or nowhere."""
    place = root
    pointer = unquote(reference)
    if pointer not in ("", "#") and not pointer.startswith("#/"):
        return None
    for token in pointer.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(place, list) and token.isascii() and token.isdigit() and int(token) < len(place):
            place = place[int(token)]
        elif isinstance(place, dict) and token in place:
            place = place[token]
        else:
            return None
    return place if isinstance(place, dict | bool) else None
