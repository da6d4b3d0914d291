"""A fast test whether a value fits a schema, by `jsonschema-rs`, for schemas on which it agrees with `rules`.

It uses the schema as written, with our own functions for some keywords. If the two may differ, or if the work could
grow faster than the value, there is no test, and `rules` decides; the same without the extra `fast`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from referencing.exceptions import Unresolvable

from ..state import Json
from ..values.digest import find_non_json
from .formats import compile_pattern, fits_format
from .subschemas import BOUNDS, is_number
from .work import CHECKS_PER_PART, COSTS, MAX_CHECKS, BudgetSpent, begin, count_parts, is_multiple, is_spent, matches

MOST_WORK = 2_000
"""Most work on one part of a value, in type checks."""
MOST_GROUPS = 2_000
"""Most groups of schemas to examine; each group applies to one part of a value."""
EXACT = 1 << 53
"""Smaller integers are exact as floats."""

_UNSURE = frozenset(
    {"$id", "$dynamicRef", "patternProperties", "unevaluatedProperties", "unevaluatedItems", "dependencies"}
)
_ITEM, _OTHER, _NAME = 0, None, True
_INSIDE: Mapping[str, Any] = {
    "items": _ITEM, "prefixItems": _ITEM, "contains": _ITEM, "additionalProperties": _OTHER, "propertyNames": _NAME,
}  # fmt: skip
"""Keyword to the name of the members that it applies to; a property has its own name."""
_HERE = frozenset(["dependentSchemas", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"])
_DEFINITIONS = ("$defs", "definitions", "components")


Test: TypeAlias = Callable[[Json], bool]
"""Tests whether a JSON value fits a schema; True is certain."""


class Unsure(Exception):
    """The two validators may disagree on a schema."""


def compile_quick(schema: Any, follow: Callable[[str], Any]) -> Test | None:
    """Return a test that is true only if a JSON value fits; None if it is unsafe, or `jsonschema-rs` is missing.

    Args:
        schema: A schema without malformed parts, or a part of one.
        follow: Returns the target of a reference, for `#` the whole schema.
    """
    try:
        from jsonschema_rs import Draft202012Validator  # 15 MB: an extra, so that the core stays small

        outside: Any = follow  # fetches nothing
        work, root = _Nodes(schema, follow).find_work(), follow("#")
        if root is not schema:
            schema = {**{key: root[key] for key in _DEFINITIONS if key in root}, "allOf": [schema]}
        if find_non_json(schema):
            return None
        return partial(_fits, Draft202012Validator(schema, keywords=_KEYWORDS, retriever=outside), work)
    except (ImportError, Unsure, Unresolvable, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return None


def _fits(validator: Any, work: int, value: Json) -> bool:
    if work > CHECKS_PER_PART and work * (1 + count_parts(value)) > MAX_CHECKS:
        return False
    begin(value)
    try:
        return bool(validator.is_valid(value)) and not is_spent()
    except ValueError:
        return False


def _own(prepare: Callable[[Any], Callable[[Any], bool]]) -> type:
    """Return a keyword class for `jsonschema-rs`; it raises ValueError if a value violates the rule."""

    class Keyword:
        def __init__(self, _: Any, rule: Any, path: Any) -> None:
            self._fits = prepare(rule)

        def validate(self, value: Json) -> None:
            try:
                if self._fits(value):
                    return
            except BudgetSpent:  # seen by `is_spent`
                pass
            raise ValueError

    return Keyword


def _prepare_pattern(source: str) -> Callable[[Json], bool]:
    pattern = compile_pattern(source)
    return lambda value: not isinstance(value, str) or pattern is None or matches(pattern, value)


_KEYWORDS = {
    "pattern": _own(_prepare_pattern),
    "format": _own(lambda name: partial(fits_format, name)),
    "multipleOf": _own(lambda step: lambda value: not is_number(value) or is_multiple(value, step)),
}


class _SchemaNode:
    """A schema's own work on a value, the schemas for the same value, and those for its members by name."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.work = 1 + sum(COSTS[key](schema[key]) for key in schema.keys() & COSTS)
        self.here: list[int] = []
        self.members: dict[Any, list[int]] = {}


class _Nodes:
    """All schemas reachable from a schema. Raises Unsure."""

    def __init__(self, schema: Any, follow: Callable[[str], Any]) -> None:
        self._follow = follow
        self._nodes: dict[int, _SchemaNode] = {}
        self._root = (*self._read(schema),)

    def _read(self, schema: Any) -> list[int]:
        """Read a schema, and return its key; nothing for a boolean schema."""
        if not isinstance(schema, dict):
            return []
        if id(schema) in self._nodes:
            return [id(schema)]
        if _UNSURE & schema.keys() or not _is_exact(schema):
            raise Unsure
        node = self._nodes[id(schema)] = _SchemaNode(schema)
        node.here += self._read(self._follow(schema["$ref"])) if "$ref" in schema else []
        for name, each in schema.get("properties", {}).items():
            node.members[name] = self._read(each)
        for key in schema.keys() & (_HERE | _INSIDE.keys()):
            place = node.here if key in _HERE else node.members.setdefault(_INSIDE[key], [])
            rule = schema[key]
            for each in rule.values() if key == "dependentSchemas" else rule if isinstance(rule, list) else [rule]:
                place += self._read(each)
        return [id(schema)]

    def find_work(self) -> int:
        """Return the most work on one part of a value, over all groups of schemas that may apply to one part."""
        most, waiting, seen = 0, [self._root], set[tuple[int, ...]]()
        while waiting:
            group = waiting.pop()
            if group in seen:
                continue
            seen.add(group)
            applying = self._find_applying(group)
            most = max(most, sum(node.work for node in applying))
            names = {name for node in applying for name in node.members if name is not _NAME} | {_OTHER}
            inside = ((one for node in applying for one in _inside(node, name)) for name in names)
            waiting += (tuple(sorted(each)) for each in inside)
            if len(seen) > MOST_GROUPS:
                raise Unsure
        return most

    def _find_applying(self, group: tuple[int, ...]) -> list[_SchemaNode]:
        applying, waiting, work = list[_SchemaNode](), [*group], 0
        while waiting:
            applying.append(self._nodes[waiting.pop()])
            waiting += applying[-1].here
            work += applying[-1].work
            if work > MOST_WORK:
                raise Unsure
        return applying


def _inside(node: _SchemaNode, name: Any) -> list[int]:
    if name == _ITEM:
        return node.members.get(_ITEM, [])
    return [*node.members.get(name, node.members.get(_OTHER, ())), *node.members.get(_NAME, ())]


def _is_exact(schema: Mapping[str, Any]) -> bool:
    """Return whether both validators agree on equality: small numbers, and text items if they must be unique."""
    items = schema.get("items")
    is_of_texts = isinstance(items, dict) and items.get("type") == "string" and "prefixItems" not in schema
    if schema.get("uniqueItems") and not is_of_texts:
        return False
    return all(_is_small(schema[key]) for key in ("enum", "const", *BOUNDS) if key in schema)


def _is_small(value: Json) -> bool:
    if isinstance(value, dict | list):
        return all(map(_is_small, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int | float) or abs(value) < EXACT
