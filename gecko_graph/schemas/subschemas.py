"""Subschemas and references of a JSON Schema, and a copy without malformed parts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from ..state import JsonObject
from .formats import compile_pattern, contradicts_format

MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
"""Keywords whose value is an object of schemas."""

LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords whose value is a list of schemas."""

SINGLES = frozenset(
    {"items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "propertyNames"}
    | {"not", "if", "then", "else", "contentSchema"}
)
"""Keywords whose value is one schema."""

IN_PLACE = frozenset({"allOf", "anyOf", "oneOf"})
"""Keywords whose schemas apply to the same value."""

ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"}
)
"""Keywords without effect on validity."""


def rebuild(schema: JsonObject, change: Callable[[Any], Any]) -> JsonObject:
    """Return a copy of a schema with `change` applied to each direct subschema."""
    return {key: _rebuild_value(key, value, change) for key, value in schema.items()}


def _rebuild_value(key: str, value: Any, change: Callable[[Any], Any]) -> Any:
    if key in MAPS and isinstance(value, dict):
        return {name: change(one) for name, one in value.items()}
    if key in LISTS and isinstance(value, list):
        return [change(one) for one in value]
    return change(value) if key in SINGLES else value


def children(schema: JsonObject) -> Iterator[Any]:
    for key, value in schema.items():
        if key in MAPS and isinstance(value, dict):
            yield from value.values()
        elif key in LISTS and isinstance(value, list):
            yield from value
        elif key in SINGLES:
            yield value


def walk(schema: Any) -> Iterator[JsonObject]:
    """Yield each schema object in a schema, itself first, in document order."""
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting.extend(reversed([*children(one)]))


def mentions(schema: Any, key: str) -> bool:
    """Return True if an object anywhere in `schema` has the key."""
    if isinstance(schema, dict):
        return key in schema or any(mentions(value, key) for value in schema.values())
    return isinstance(schema, list) and any(mentions(value, key) for value in schema)


def follow(root: Any, reference: str) -> Any:
    """Resolve a reference inside the document `root`, None if it points outside or nowhere."""
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


TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")

BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")

COUNTS = (
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains",
)  # fmt: skip

DATA = frozenset({"enum", "const", "default", "example", "examples"})
"""Keywords whose values are not schemas."""

TURNING = frozenset({"not", "oneOf", "if", "contains"})
"""Keywords inside which a weaker rule can mean a stronger one outside: they are kept or removed as a whole."""


def is_number(value: Any) -> bool:
    """Return whether a value is a number within the range of floats; integers in files can be larger."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_count(value: Any) -> bool:
    """Return True for an integer from 0, also written as `3.0`."""
    return is_number(value) and value >= 0 and value == int(value)


def are_names(value: Any) -> bool:
    """Return True for a list of texts."""
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_types(value: object) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return isinstance(value, list) and bool(value) and all(isinstance(kind, str) and kind in TYPES for kind in value)


_SHAPES: Mapping[str, Callable[[Any], bool]] = {
    "type": _is_types,
    "enum": lambda value: isinstance(value, list) and bool(value),
    "required": are_names,
    "dependentRequired": lambda value: isinstance(value, dict) and all(map(are_names, value.values())),
    "pattern": lambda value: isinstance(value, str) and compile_pattern(value) is not None,
    "multipleOf": lambda value: is_number(value) and value > 0,
    "uniqueItems": lambda value: isinstance(value, bool),
    **dict.fromkeys(BOUNDS, is_number),
    **dict.fromkeys(COUNTS, is_count),
    **dict.fromkeys(
        ("format", "$ref", "$dynamicRef", "$anchor", "$dynamicAnchor", "$id"), lambda value: isinstance(value, str)
    ),
}


def tidy(schema: Any) -> Any:
    """Return a copy of a schema without its malformed parts.

    `$schema` is removed too: everything is read as 2020-12. Unknown keywords (`components`) are tidied as well, because
    references may point there.
    """
    if not isinstance(schema, dict):
        return schema if isinstance(schema, bool) else True
    clean = {
        key: value if type(value) is str else _tidy_value(key, value)  # the most common case
        for key, value in schema.items()
        if is_well_formed(key, value)
    }
    if "format" in clean and contradicts_format(clean):
        del clean["format"]  # its own values contradict it, so it is ignored
    return {key: value for key, value in clean.items() if key not in TURNING or value == schema[key]}


def is_well_formed(key: object, value: Any) -> bool:
    """Return whether a keyword of a schema may have this value; subschemas are not examined."""
    if not isinstance(key, str) or key == "$schema":
        return False
    if key in SINGLES and not isinstance(value, dict | bool):
        return False
    if key in LISTS:
        return isinstance(value, list) and bool(value) and all(isinstance(part, dict | bool) for part in value)
    if key in MAPS:
        return isinstance(value, dict)
    shape = _SHAPES.get(key)
    return shape is None or shape(value)


def _tidy_value(key: str, value: Any) -> Any:
    if key in DATA:
        return value
    if key in COUNTS:
        return int(value)
    if key in LISTS:
        return [tidy(part) for part in value]
    if key in MAPS:
        is_free = key != "patternProperties"
        names = [name for name in value if isinstance(name, str) and (is_free or compile_pattern(name) is not None)]
        # `{"not": {}}` equals `false`, but jsonschema's error for that has no path
        return {name: {"not": {}} if value[name] is False else tidy(value[name]) for name in names}
    if key in SINGLES:
        return tidy(value)
    return _tidy_unknown(value)


def _tidy_unknown(value: Any) -> Any:
    if isinstance(value, dict):
        return tidy(value)
    return [_tidy_unknown(item) for item in value] if isinstance(value, list) else value
