"""Where a JSON Schema holds other schemas, and where it refers to them: what every walk over schemas uses."""

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
    """A copy of a schema with `change` applied to each schema that it holds directly."""
    return {key: _rebuilt(key, value, change) for key, value in schema.items()}


def _rebuilt(key: str, value: Any, change: Callable[[Any], Any]) -> Any:
    if key in MAPS and isinstance(value, dict):
        return {name: change(one) for name, one in value.items()}
    if key in LISTS and isinstance(value, list):
        return [change(one) for one in value]
    return change(value) if key in SINGLES else value


def children(schema: JsonObject) -> Iterator[Any]:
    """Each schema that a schema holds directly."""
    for key, value in schema.items():
        if key in MAPS and isinstance(value, dict):
            yield from value.values()
        elif key in LISTS and isinstance(value, list):
            yield from value
        elif key in SINGLES:
            yield value


def walk(schema: Any) -> Iterator[JsonObject]:
    """Each schema object in a schema, itself first, in the order in which they are written."""
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting.extend(reversed([*children(one)]))


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
