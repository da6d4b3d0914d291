"""A fast test whether a value fits a schema, by `jsonschema-rs`, for schemas on which it agrees with `rules`.

It uses the schema as written, with our own functions for some keywords. If the two may differ, or if the work could
grow faster than the value, there is no test, and `rules` decides; the same without the extra `fast`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from referencing.exceptions import Unresolvable

from ..state import Json
from ..values.digest import find_non_json
from .formats import EXPECTED, compile_pattern, fits_format
from .subschemas import BOUNDS, DATA, is_number
from .work import CHECKS_PER_PART, COSTS, MAX_CHECKS, BudgetSpent, begin, count_parts, is_multiple, is_spent, matches

MOST_FAULTS = 20
_READ_WITH = {"minContains": "contains", "maxContains": "contains", "then": "if", "else": "if"}
"""Keywords that are evaluated together with another one."""
_NAMED = frozenset({"properties", "prefixItems", "allOf", "dependentSchemas"})
_DEEPER = frozenset({"properties", "prefixItems", "items", "additionalProperties"})
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
        read = _drop_unknown_formats(schema)
        validator = Draft202012Validator(read, keywords=_KEYWORDS, retriever=outside, mask="")
        return Test(validator, work, schema, follow)
    except (ImportError, Unsure, Unresolvable, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return None


def _drop_unknown_formats(part: Any) -> Any:
    """Return a schema without unknown formats, which every value has."""
    if isinstance(part, list):
        return [*map(_drop_unknown_formats, part)]
    if not isinstance(part, dict):
        return part
    return {
        key: each if key in DATA else _drop_unknown_formats(each)
        for key, each in part.items()
        if key != "format" or not isinstance(each, str) or each in EXPECTED
    }


class Mismatch(NamedTuple):
    """A keyword that a value violates: the schema, the keyword, and the place."""

    schema: Any
    keyword: str
    place: Sequence[str | int]
    value: Json
    """The value at the place."""


class Test:
    """Tests whether JSON values fit a schema; True is certain."""

    __test__ = False  # pytest would collect the class

    def __init__(self, validator: Any, work: int, schema: Any, follow: Callable[[str], Any]) -> None:
        self._validator, self._work, self._schema, self._follow = validator, work, schema, follow

    def __call__(self, value: Json) -> bool:
        if self._work > CHECKS_PER_PART and self._work * (1 + count_parts(value)) > MAX_CHECKS:
            return False
        begin(value)
        try:
            return bool(self._validator.is_valid(value)) and not is_spent()
        except ValueError:
            return False

    def find_mismatches(self, value: Json) -> Sequence[Mismatch]:
        """Return all places where a refused value may not fit, in the order of `rules`; empty if unsure."""
        if (self._work + MOST_FAULTS) * (1 + count_parts(value)) > MAX_CHECKS:  # all errors are built at once
            return ()
        begin(value)
        try:
            errors = [*islice(self._validator.iter_errors(value), MOST_FAULTS)]
            found = [self._locate(error, value) for error in errors]
            ranks = [self._rank(error, value) for error in errors] if len(errors) > 1 else [()]
        except (ValueError, LookupError, TypeError):
            return ()
        if is_spent() or len(errors) == MOST_FAULTS:
            return ()
        by_rank = dict(zip(ranks, found, strict=True))
        return [by_rank[rank] for rank in sorted(by_rank)]

    def _locate(self, error: Any, value: Any) -> Mismatch:
        schema, place = self._schema, list[str | int]()
        *path, last = error.schema_path
        for token in path:
            schema = schema[str(token) if isinstance(schema, dict) else token]  # jsonschema-rs reports `1` for "1"
        for token in error.instance_path:
            place.append(str(token) if isinstance(value, dict) else token)
            value = value[place[-1]]
        keyword = _READ_WITH.get(last, last)
        # `false` is reported for the item, not for the list; an empty name is not reported
        if error.kind.name in ("falseSchema", "propertyNames") or keyword not in schema or error.instance != value:
            raise ValueError
        return Mismatch(schema, keyword, place, value)

    def _rank(self, error: Any, value: Any) -> tuple[int, ...]:
        """Return an error's rank in the order of `rules`: keywords as written, items by position."""
        schema, rank, steps, inside = self._schema, list[int](), iter(error.evaluation_path), iter(error.instance_path)
        for keyword in steps:
            rank.append([*schema].index(_READ_WITH.get(keyword, keyword)))
            schema = schema[keyword]
            if keyword == "$ref":
                schema = self._follow(schema)
            elif keyword in _DEFINITIONS:  # our own keywords are reported where they are written, not where they apply
                raise ValueError
            if keyword in _NAMED:
                schema = schema[_add(rank, schema, next(steps))]
            if keyword in _DEEPER and (token := next(inside, None)) is not None:
                value = value[_add(rank, value, token)]
        return tuple(rank)


def _add(rank: list[int], holder: Any, token: Any) -> Any:
    """Return a path token as a key of the holder, and append its position to a rank."""
    token = str(token) if isinstance(holder, dict) else token  # jsonschema-rs reports `1` for "1"
    rank.append([*holder].index(token) if isinstance(holder, dict) else token)
    return token


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

    __slots__ = ("here", "members", "work")

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
