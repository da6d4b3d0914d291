"""Whether a value fits a schema, told by `jsonschema-rs`, if it is known to agree with `rules`.

It reads the schema as written, but for keywords that are left to our own functions. Where the two may differ, or where
the work could grow faster than the value, there is no test, and the reference answers; so it does without the extra
`fast`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from referencing.exceptions import Unresolvable

from ..state import Json
from ..values.digest import find_non_json
from .formats import compile_pattern, fits_format
from .subschemas import BOUNDS, is_number
from .work import CHECKS_PER_PART, COSTS, MAX_CHECKS, BudgetSpent, begin, count_parts, is_multiple, is_spent, matches

MOST_FAULTS = 20
_TOGETHER = {"minContains": "contains", "maxContains": "contains"}
MOST_WORK = 2_000
"""Work that one part of a value may cost, in type checks."""
MOST_GROUPS = 2_000
"""How many groups of schemas are looked at, each of which applies to one part of a value."""
EXACT = 1 << 53
"""Whole numbers below this are the same as integers and as floats."""

_UNSURE = frozenset(
    {"$id", "$dynamicRef", "patternProperties", "unevaluatedProperties", "unevaluatedItems", "dependencies"}
)
_ITEM, _OTHER, _NAME = 0, None, True
_INSIDE: Mapping[str, Any] = {
    "items": _ITEM, "prefixItems": _ITEM, "contains": _ITEM, "additionalProperties": _OTHER, "propertyNames": _NAME,
}  # fmt: skip
"""Keyword to the name of the members that it is for; a property has its own."""
_HERE = frozenset(["dependentSchemas", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"])
_DEFINITIONS = ("$defs", "definitions", "components")


class Unsure(Exception):
    """The two may not agree on a schema."""


def compile_quick(schema: Any, follow: Callable[[str], Any]) -> Test | None:
    """Return a test that holds only if a JSON value fits; None if none is sure, or `jsonschema-rs` is missing.

    Args:
        schema: A schema without malformed parts, or a part of one.
        follow: Returns what a reference leads to, `#` to the whole.
    """
    try:
        from jsonschema_rs import Draft202012Validator  # 15 MB: an extra, so that the core stays small

        outside: Any = follow  # which fetches nothing
        work, root = _Nodes(schema, follow).find_work(), follow("#")
        if root is not schema:
            schema = {**{key: root[key] for key in _DEFINITIONS if key in root}, "allOf": [schema]}
        if find_non_json(schema):
            return None
        return Test(Draft202012Validator(schema, keywords=_KEYWORDS, retriever=outside), work, schema)
    except (ImportError, Unsure, Unresolvable, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return None


class Mismatch(NamedTuple):
    """Where a value does not fit: the schema, its keyword, and the place."""

    schema: Any
    keyword: str
    place: Sequence[str | int]
    value: Json
    """What stands there."""


class Test:
    """Whether JSON values fit a schema: a yes is certain."""

    __test__ = False  # for pytest

    def __init__(self, validator: Any, work: int, schema: Any) -> None:
        self._validator, self._work, self._schema = validator, work, schema

    def __call__(self, value: Json) -> bool:
        """Return True only if a value fits."""
        if self._is_large(value):
            return False
        begin(value)
        try:
            return bool(self._validator.is_valid(value)) and not is_spent()
        except ValueError:
            return False

    def _is_large(self, value: Json) -> bool:
        return self._work > CHECKS_PER_PART and self._work * (1 + count_parts(value)) > MAX_CHECKS

    def find_fault(self, value: Json) -> Mismatch | None:
        """Return the one place where a value that is refused may not fit; None if there are several, or none."""
        try:
            errors = () if self._is_large(value) else islice(self._validator.iter_errors(value), MOST_FAULTS)
            first, *more = {(*error.schema_path, "", *error.instance_path): error for error in errors}.values()
        except ValueError:
            return None
        schema, (*path, keyword) = self._schema, first.schema_path or [""]
        for token in path:
            schema = schema[str(token) if isinstance(schema, dict) else token]  # `1` is told for "1"
        keyword = _TOGETHER.get(keyword, keyword)
        if more or not isinstance(schema, dict) or keyword not in schema or "propertyNames" in first.schema_path:
            return None
        found: list[str | int] = []
        for token in first.instance_path:
            found.append(str(token) if isinstance(value, dict) else token)
            value = value[found[-1]]
        if first.instance != value:  # an empty name in a place is not told
            return None
        return Mismatch(schema, keyword, found, value)


def _own(fits: Callable[[Any, Json], bool]) -> type:
    """Return a keyword as `jsonschema-rs` asks for it: what the rule does not fit raises ValueError."""

    class Keyword:
        def __init__(self, _: Any, rule: Any, path: Any) -> None:
            self._rule = rule

        def validate(self, value: Json) -> None:
            try:
                if fits(self._rule, value):
                    return
            except BudgetSpent:  # seen by `is_spent`
                pass
            raise ValueError

    return Keyword


def _has_pattern(source: str, value: Json) -> bool:
    return not isinstance(value, str) or (pattern := compile_pattern(source)) is None or matches(pattern, value)


_KEYWORDS = {
    "pattern": _own(_has_pattern),
    "format": _own(fits_format),
    "multipleOf": _own(lambda step, value: not is_number(value) or is_multiple(value, step)),
}


class _SchemaNode:
    """A schema's own work on a value, the schemas for the same value, and those for its members by name."""

    __slots__ = ("here", "members", "work")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.work = 1 + sum(COSTS[key](schema[key]) for key in schema.keys() & COSTS)
        self.here: list[int] = []
        self.members: dict[Any, list[int]] = {}


class _Nodes:
    """The schemas that a schema leads to. Raises Unsure."""

    def __init__(self, schema: Any, follow: Callable[[str], Any]) -> None:
        self._follow = follow
        self._nodes: dict[int, _SchemaNode] = {}
        self._root = (*self._read(schema),)

    def _read(self, schema: Any) -> list[int]:
        """Read a schema, and return its key; none for a flag."""
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
        """Return the most work that one part of a value can cost: all groups are looked at that may apply to one."""
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
    """Return the schemas that one has for a member."""
    if name == _ITEM:
        return node.members.get(_ITEM, [])
    return [*node.members.get(name, node.members.get(_OTHER, ())), *node.members.get(_NAME, ())]


def _is_exact(schema: Mapping[str, Any]) -> bool:
    """Return whether both find the same values equal: of numbers small ones, of unique items texts."""
    items = schema.get("items")
    is_of_texts = isinstance(items, dict) and items.get("type") == "string" and "prefixItems" not in schema
    if schema.get("uniqueItems") and not is_of_texts:
        return False
    return all(_is_small(schema[key]) for key in ("enum", "const", *BOUNDS) if key in schema)


def _is_small(value: Json) -> bool:
    if isinstance(value, dict | list):
        return all(map(_is_small, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int | float) or abs(value) < EXACT
