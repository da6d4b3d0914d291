"""What is known of a value before any call: from a JSON Schema, from an example of the task state, or from its text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from typing_extensions import override

from ...schemas.subschemas import follow
from ...schemas.well_formed import leave_room
from ...state import Json, JsonObject
from .sandbox import kind

Key = str | int | None
"""A key or an index; None where it is computed."""

_TYPES = {
    "string": "a text", "integer": "a number", "number": "a number", "boolean": "true or false", "null": "none",
    "array": "a list", "object": "an object",
}  # fmt: skip
_MOST = 200
_MOST_STEPS = 100
_MOST_CHOICES = 16
_NEAR = 0.75


class Shape:
    """A value of which nothing is known.

    `kinds` are the types that it may have, as `sandbox.kind` names them, None where they are not known; `keys` are
    those that it is known to have.
    """

    is_example = False

    def __init__(self, kinds: Iterable[str] | None = None, keys: Iterable[str] = ()) -> None:
        self.kinds = frozenset(kinds) if kinds is not None else None
        self.keys = list(keys)

    def member(self, key: Key) -> Shape | None:
        """Return what stands under a key; None where there can be nothing."""
        return ANY


ANY = Shape()


class Plain(Shape):
    """A value of known types, with the shape of all of its members or of each by name."""

    def __init__(self, *kinds: str, inner: Shape = ANY, members: Mapping[str, Shape] | None = None) -> None:
        super().__init__(kinds, members or ())
        self._inner, self._members = inner, members

    @override
    def member(self, key: Key) -> Shape | None:
        if self._members is not None and isinstance(key, str):
            return self._members.get(key)
        return self._inner if {"a list", "an object", "a text"} & (self.kinds or set()) else None


class _Either(Shape):
    """One of several values."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        kinds = [shape.kinds for shape in shapes]
        known = None if None in kinds else frozenset[str]().union(*filter(None, kinds))
        super().__init__(known, (key for shape in shapes for key in shape.keys))
        self.shapes = shapes
        self.is_example = any(shape.is_example for shape in shapes)

    @override
    def member(self, key: Key) -> Shape | None:
        found = [one for shape in self.shapes if (one := shape.member(key)) is not None]
        return either(found) if found else None


def either(shapes: Sequence[Shape]) -> Shape:
    """Return the shape of one of several values; of many nothing is known, as each part of each would be followed."""
    flat = [one for shape in shapes for one in (shape.shapes if isinstance(shape, _Either) else [shape])]
    if len(flat) == 1:
        return flat[0]
    return _Either(flat) if 1 < len(flat) <= _MOST_CHOICES and ANY not in flat else ANY


class Schema(Shape):
    """A value that fits a JSON Schema without alternatives.

    An object has no other keys than its properties where the schema says so, and none that are almost one of them.
    """

    def __init__(self, schema: Mapping[str, Any], root: Any) -> None:
        types, given = schema.get("type"), schema.get("enum")
        named = [types] if isinstance(types, str) else types if isinstance(types, list) else []
        known = [_TYPES[one] for one in named if isinstance(one, str) and one in _TYPES]
        kinds = map(kind, given) if isinstance(given, list) and not named else known or None
        properties = schema.get("properties")
        self._properties = properties if isinstance(properties, Mapping) else {}
        super().__init__(kinds if len(known) == len(named) else None, self._properties)
        self._schema, self._root = schema, root

    @override
    def member(self, key: Key) -> Shape | None:
        found = list(self._members(key))
        return of_schema({"anyOf": found}, self._root) if found else None

    def _members(self, key: Key) -> Iterator[Any]:
        """Yield the schemas of what may stand under a key; True where anything may."""
        kinds = self.kinds or {"a list", "an object"}
        if "a list" in kinds and not isinstance(key, str):
            yield self._schema.get("items", True)
        if "a text" in kinds and not isinstance(key, str):
            yield {"type": "string"}
        if "an object" not in kinds:
            return
        if str(key) in self._properties:
            yield self._properties[str(key)]
            return
        if key is None:
            yield from self._properties.values()
        near = key is not None and get_close_matches(str(key), self._properties, n=1, cutoff=_NEAR)
        more = self._schema.get("additionalProperties", not near)
        yield from [True] if "patternProperties" in self._schema else [more] if more else []


def of_state(schema: JsonObject | None) -> Shape:
    """Return what is known of the task state by its schema."""
    return ANY if schema is None else of_schema(leave_room(schema))


def of_schema(schema: Any, root: Any = None) -> Shape:
    """Return the shape of what fits a JSON Schema; what it says of the whole by `allOf` may stand in any part."""
    root = schema if root is None else root
    waiting, found = [schema], list[Schema]()
    for _ in range(_MOST_STEPS):
        if not waiting:
            return either(found)
        one = waiting.pop()
        if not isinstance(one, Mapping):
            return ANY
        if isinstance(one.get("$ref"), str):
            found_there = follow(root, one["$ref"])
            waiting.append(True if found_there is None else found_there)
            continue
        parts = [part for key in ("anyOf", "oneOf", "allOf") if isinstance(one.get(key), list) for part in one[key]]
        waiting += parts
        found += [] if parts and not one.keys() & {"properties", "items"} else [Schema(one, root)]
    return ANY


class Example(Shape):
    """Values of an example: what none of them has is there in no other."""

    is_example = True

    def __init__(self, values: Sequence[Json]) -> None:
        self._values = values[:_MOST]
        keys = dict.fromkeys(key for value in self._values if isinstance(value, dict) for key in value)
        super().__init__(map(kind, self._values) if values else None, keys)

    @override
    def member(self, key: Key) -> Shape | None:
        found: list[Json] = []
        for value in self._values:
            if isinstance(value, dict):
                found += value.values() if key is None else [value[str(key)]] if str(key) in value else []
            elif isinstance(value, list | str) and not isinstance(key, str):
                found += value
        is_known = key is not None and any(value for value in self._values if isinstance(value, dict | list))
        return Example(found) if found else None if is_known else ANY
