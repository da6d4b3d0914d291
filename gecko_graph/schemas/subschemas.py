"""Subschemas and references of a JSON Schema, for every walk over schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

from ..state import JsonObject

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
"""Keywords whose schemas apply to the very value that the schema applies to."""

ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"}
)
"""Keywords that decide nothing."""


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
    """Yield the direct subschemas of a schema."""
    for key, value in schema.items():
        if key in MAPS and isinstance(value, dict):
            yield from value.values()
        elif key in LISTS and isinstance(value, list):
            yield from value
        elif key in SINGLES:
            yield value


def walk(schema: Any) -> Iterator[JsonObject]:
    """Yield each schema object in a schema, itself first, in written order."""
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
    """Resolve a reference inside the document `root`; None where it points outside or nowhere."""
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
