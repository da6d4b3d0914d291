"""Random pairs of schema and value: all keywords, nested, with formats, references, Unicode and large numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from gecko_graph.state import Json, JsonObject

LARGE = (2**31, 2**31 - 1, 2**53, 2**53 + 1, float(2**53), 2**63, 2**63 - 1, -(2**63), float(2**63), 2**64 - 1, 1e300)
NUMBERS = (0, 1, 2, 3, -1, 10, 0.5, 1.0, 2.0, -0.0, 0.1, 0.3, 19.99, 1e-7, *LARGE)
TEXTS = (
    "", "a", "b", "ab", "abc", "A1", "aaa", "x" * 40, "é", "e\u0301", "日本", "😀", "\u2028", "a\n", "a b", "\x00", "0",
    "1", "٣",
    "2024-02-29", "2023-02-29", "2024-05-01T10:00:00Z", "2024-05-01t10:00:60.5+01:00", "10:00:00Z", "10:00", "a@b.co",
    "https://a.b/c?d#e", "not a uri", "/a/b", "3fa85f64-5717-4562-b3fc-2c963f66afa6", "a.b", "-a", "127.0.0.1", "::1",
    "P1DT2H", "P", "+491234567", "é" * 3, "aab", "a-b", "a/b",
)  # fmt: skip
PATTERNS = (
    "^a", "a$", "^a$", "^[a-z]+$", "^[A-Za-z0-9_.-]{1,3}$", r"^\d+$", r"\d", r"\w", r"^\s*$", r"\p{L}", "(?=a)a",
    "(?!a)", "^(a|b)+$", "^.$", "^.*$", "[^a]", "^[^a]*$", r"\bab\b", "a|b", "^a{2}$", r"^\+[1-9]\d{1,14}$", "^a?b*$",
    "(?i)A", "é", r"^[\w.]+@\S+$", "^😀$", r"\u2028", "^$", "^", "^a*b", "^[a-c]{2,}$",
)  # fmt: skip
FORMATS = (
    "date", "date-time", "time", "email", "uri", "uri-reference", "uuid", "hostname", "ipv4", "ipv6", "duration",
    "int32", "int64", "float", "regex", "password", "unknown",
)  # fmt: skip
TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
NAMES = ("a", "b", "ab", "c", "é", "")
REFERENCES = ("#/$defs/d", "#/$defs/e", "#", "#/$defs/none", "#/properties/a", "#/$defs/tree")


def make_value(chance: Random, depth: int = 0) -> Json:
    drawn = chance.random()
    if depth > 3 or drawn < 0.25:
        return chance.choice(TEXTS)
    if drawn < 0.55:
        return chance.choice((*NUMBERS, *NUMBERS, None, True, False))
    if drawn < 0.8:
        return {name: make_value(chance, depth + 1) for name in NAMES if chance.random() < 0.4}
    return [make_value(chance, depth + 1) for _ in range(chance.choice((0, 1, 2, 2, 3, 20 if depth > 1 else 4)))]


def make_schema(chance: Random, value: Any, depth: int = 0) -> Any:
    """Make a schema of any keywords that probably apply to the value."""
    if depth > 4 or chance.random() < 0.08:
        return chance.choice((True, {}, {"type": type_of(value)}, {"$ref": chance.choice(REFERENCES)}, False))
    inner = _Inner(chance, value, depth)
    makers = {**_FOR_ANY, **_FOR.get(type(value), {})}
    if chance.random() < 0.3:
        makers = {**makers, **chance.choice([*_FOR.values()])}
    chosen = chance.sample(sorted(makers), min(len(makers), chance.choice((1, 1, 2, 3))))
    schema = {key: makers[key](inner) for key in chosen}
    if chance.random() < 0.5:
        schema["type"] = type_of(value) if chance.random() < 0.9 else [chance.choice(TYPES), "null"]
    if depth == 0:
        schema["$defs"] = {"d": make_schema(chance, inner.part(), 3), "e": {"type": ["object", "null", "array"]}}
        schema["$defs"]["tree"] = {"type": "object", "additionalProperties": {"$ref": "#/$defs/tree"}}
    return schema


def make_pair(seed: int) -> tuple[Any, Json]:
    chance = Random(seed)
    value = make_value(chance)
    schema = make_schema(chance, value)
    if chance.random() < 0.3:
        value = change(chance, value)
    return json.loads(json.dumps(schema)), value


def change(chance: Random, value: Any) -> Json:
    """Return a value with one part replaced by a random value."""
    if isinstance(value, dict) and value:
        name = chance.choice(sorted(value))
        return {**value, name: change(chance, value[name])}
    if isinstance(value, list) and value and len(value) < 10:
        return [*value[:-1], change(chance, value[-1])]
    return make_value(chance, 2)


def type_of(value: Json) -> str:
    if isinstance(value, bool) or value is None:
        return "null" if value is None else "boolean"
    return {str: "string", dict: "object", list: "array", int: "integer", float: "number"}[type(value)]


class _Inner:
    """Makes the values of a schema's keywords."""

    def __init__(self, chance: Random, value: Any, depth: int) -> None:
        self.chance, self.value, self.depth = chance, value, depth

    def part(self) -> Any:
        parts = [*self.value.values()] if isinstance(self.value, dict) else self.value
        return self.chance.choice(parts) if isinstance(parts, list) and parts else None

    def same(self) -> Any:
        return make_schema(self.chance, self.value, self.depth + 1)

    def of(self, value: Any) -> Any:
        return make_schema(self.chance, value, self.depth + 1)

    def count(self) -> int:
        """Return the value's size, or about it."""
        size = len(self.value) if isinstance(self.value, str | dict | list) else 1
        return max(0, size + self.chance.choice((-1, 0, 0, 1)))

    def near(self) -> Any:
        """Return a number, often the value itself."""
        return self.value if type(self.value) in (int, float) and self.chance.random() < 0.4 else self.number()

    def number(self) -> Any:
        return self.chance.choice(NUMBERS)

    def names(self) -> list[str]:
        return sorted({self.chance.choice(NAMES) for _ in range(2)})


_Maker = Callable[[_Inner], Any]
_FOR_ANY: Mapping[str, _Maker] = {
    "enum": lambda inner: [inner.value if inner.chance.random() < 0.6 else 1, "a", None, make_value(inner.chance, 3)],
    "const": lambda inner: inner.value if inner.chance.random() < 0.7 else make_value(inner.chance, 3),
    "allOf": lambda inner: [inner.same(), inner.same()],
    "anyOf": lambda inner: [inner.of(inner.part()), inner.same()],
    "oneOf": lambda inner: [inner.same(), inner.of(inner.part())],
    "not": lambda inner: inner.of(inner.part()),
    "if": lambda inner: inner.same(),
    "then": lambda inner: inner.same(),
    "else": lambda inner: inner.of(inner.part()),
    "$ref": lambda inner: inner.chance.choice(REFERENCES),
    "format": lambda inner: inner.chance.choice(FORMATS),
    "default": lambda inner: make_value(inner.chance, 3),
}
_OF_NUMBERS: Mapping[str, _Maker] = {
    "minimum": _Inner.near,
    "maximum": _Inner.near,
    "exclusiveMinimum": _Inner.number,
    "exclusiveMaximum": _Inner.number,
    "multipleOf": lambda inner: inner.chance.choice((1, 2, 3, 0.5, 0.1, 0.01, 1e-7, 7, 1e9)),
}
_OF_OBJECTS: Mapping[str, _Maker] = {
    "properties": lambda inner: {name: inner.of(each) for name, each in as_object(inner.value).items()},
    "patternProperties": lambda inner: {inner.chance.choice(PATTERNS): inner.of(inner.part())},
    "additionalProperties": lambda inner: inner.of(inner.part()),
    "unevaluatedProperties": lambda inner: inner.of(inner.part()),
    "propertyNames": lambda inner: inner.of("a"),
    "required": _Inner.names,
    "dependentRequired": lambda inner: {"a": inner.names()},
    "dependentSchemas": lambda inner: {"a": inner.same()},
    "minProperties": _Inner.count,
    "maxProperties": _Inner.count,
}
_OF_LISTS: Mapping[str, _Maker] = {
    "items": lambda inner: inner.of(inner.part()),
    "prefixItems": lambda inner: [inner.of(inner.part()), True],
    "contains": lambda inner: inner.of(inner.part()),
    "minContains": lambda inner: inner.chance.randrange(3),
    "maxContains": lambda inner: inner.chance.randrange(3),
    "unevaluatedItems": lambda inner: inner.of(inner.part()),
    "uniqueItems": lambda inner: inner.chance.random() < 0.8,
    "minItems": _Inner.count,
    "maxItems": _Inner.count,
}
_OF_TEXTS: Mapping[str, _Maker] = {
    "pattern": lambda inner: inner.chance.choice(PATTERNS),
    "format": lambda inner: inner.chance.choice(FORMATS),
    "minLength": _Inner.count,
    "maxLength": _Inner.count,
}
_FOR: Mapping[type, Mapping[str, _Maker]] = {
    int: _OF_NUMBERS, float: _OF_NUMBERS, dict: _OF_OBJECTS, list: _OF_LISTS, str: _OF_TEXTS,
}  # fmt: skip


def as_object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {"a": value}
