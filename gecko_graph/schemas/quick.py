"""Whether a value fits a schema, told by `jsonschema-rs`, where it is known to agree with `rules`.

The schema is written anew for it: references lead to definitions, patterns, formats and multiples are left to our own
functions, bounds stand for int32 and int64. Where the two may differ, or where the work could grow faster than the
value, there is no test, and the reference answers; so it does without the extra `fast`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from referencing.exceptions import Unresolvable

from ..state import Json
from ..values.digest import find_non_json
from .formats import FORMATS, INTEGER_BITS, compile_pattern
from .subschemas import BOUNDS
from .work import CHECKS_PER_PART, COSTS, MAX_CHECKS, BudgetSpent, begin, count_parts, is_multiple, matches

MOST_FAULTS = 20
_TOGETHER = {"minContains": "contains", "maxContains": "contains"}
MOST_WORK = 2_000
"""Work that one part of a value may cost, in type checks."""
MOST_GROUPS = 2_000
"""How many groups of schemas are looked at, each of which applies to one part of a value."""
EXACT = 1 << 53
"""Whole numbers below this are the same as integers and as floats."""

_UNSURE = frozenset({"$id", "$dynamicRef", "patternProperties", "unevaluatedProperties", "unevaluatedItems"})
_SAME = frozenset({
    "type", "enum", "const", "required", "dependentRequired", "minLength", "maxLength", "minItems", "maxItems",
    "minProperties", "maxProperties", "minContains", "maxContains", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "uniqueItems",
})  # fmt: skip
_ITEM, _OTHER, _NAME = 0, None, True
_INSIDE: Mapping[str, Any] = {
    "items": _ITEM, "prefixItems": _ITEM, "contains": _ITEM, "additionalProperties": _OTHER, "propertyNames": _NAME,
}  # fmt: skip
"""Keyword to the name of the members that it is for; a property has its own."""
_HERE = frozenset(["dependentSchemas", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"])


_PART = r"(?:[A-Za-z0-9_ :/@#,;=-]|\\[d.+/-]|\[(?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9_ .:/])+-?\])"
_FIXED = rf"(?:{_PART}(?:\{{\d{{1,3}}\}})?)*"
_PLAIN = re.compile(rf"\^{_FIXED}(?:{_PART}(?:[+*?]|\{{\d{{1,3}},\d{{0,3}}\}}){_FIXED})?\$?")
"""Patterns that all read alike, and in linear time: from the start, and one part at most of any length."""


class Unsure(Exception):
    """The two may not agree on a schema."""


def compile_quick(schema: Any, follow: Callable[[str], Any]) -> Test | None:
    """Return a test that holds only where a JSON value fits; None if none is sure, or `jsonschema-rs` is missing.

    Args:
        schema: A schema without malformed parts.
        follow: Returns what a reference leads to.
    """
    try:
        return _Translation(schema, follow).compile()
    except (ImportError, Unsure, Unresolvable, ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return None


class Fault(NamedTuple):
    """Where a value does not fit: the schema, its keyword, and the place."""

    schema: Any
    keyword: str
    place: Sequence[str | int]
    value: Json
    """What stands there."""


class Test:
    """Whether JSON values fit a schema: a yes is certain."""

    __test__ = False  # for pytest

    def __init__(self, validator: Any, work: int, whole: Any, written: Mapping[int, tuple[Any, Any]]) -> None:
        self._validator, self._work, self._whole, self._written = validator, work, whole, written

    def __call__(self, value: Json) -> bool:
        """Return True only where a value fits."""
        if self._work > CHECKS_PER_PART and self._work * (1 + count_parts(value)) > MAX_CHECKS:
            return False
        begin(value)
        try:
            return bool(self._validator.is_valid(value))
        except (ValueError, BudgetSpent):
            return False

    def find_fault(self, value: Json) -> Fault | None:
        """Return the one place where a value that is refused may not fit; None where there are several, or none."""
        try:
            first, *more = {
                (*error.schema_path, "", *error.instance_path): error for error in self._find(value)
            }.values()
        except (ValueError, BudgetSpent):
            return None
        place, schema = self._whole, None
        for token in first.schema_path[:-1]:
            place = place[str(token) if isinstance(place, dict) else token]  # `1` is told for "1"
            _, schema = self._written.get(id(place), (None, schema))
        keyword = _TOGETHER.get(first.schema_path[-1], first.schema_path[-1])
        if more or not isinstance(schema, dict) or keyword not in schema or "propertyNames" in first.schema_path:
            return None
        found: list[str | int] = []
        for token in first.instance_path:
            found.append(str(token) if isinstance(value, dict) else token)
            value = value[found[-1]]
        if first.instance != value:  # an empty name in a place is not told
            return None
        return Fault(schema, keyword, found, value)

    def _find(self, value: Json) -> Iterator[Any]:
        if self._work > CHECKS_PER_PART and self._work * (1 + count_parts(value)) > MAX_CHECKS:
            return iter(())
        found: Iterator[Any] = islice(self._validator.iter_errors(value), MOST_FAULTS)
        return found


class _Step:
    """The multiples of a number, as `jsonschema-rs` asks for them."""

    def __init__(self, _: Any, step: float, path: Any) -> None:
        self._step = step

    def validate(self, value: Json) -> None:
        """Raise ValueError for what is no multiple."""
        if isinstance(value, int | float) and not isinstance(value, bool) and not is_multiple(value, self._step):
            raise ValueError


class _Node:
    """A schema's own work on a value, the schemas for the same value, and those for its members by name."""

    __slots__ = ("here", "members", "work")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.work = 1 + sum(COSTS[key](schema[key]) for key in schema.keys() & COSTS)
        self.here: list[int] = []
        self.members: dict[Any, list[int]] = {}


class _Translation:
    """A schema as `jsonschema-rs` is to read it. Raises Unsure."""

    def __init__(self, schema: Any, follow: Callable[[str], Any]) -> None:
        self._follow = follow
        self._nodes: dict[int, _Node] = {}
        self._formats: dict[str, Callable[[str], bool]] = {}
        self._targets: dict[int, Any] = {}
        self._written: dict[int, tuple[Any, Any]] = {}
        written, definitions = self._write(schema), dict[str, Any]()
        while len(definitions) < len(self._targets):
            target = [*self._targets.values()][len(definitions)]
            definitions[f"d{id(target)}"] = self._write(target)
        self._whole = {"allOf": [written], "$defs": definitions}
        self._root = [id(schema)] if isinstance(schema, dict) else []

    def compile(self) -> Test:
        """Return the test. Raises Unsure, ValueError, ImportError."""
        from jsonschema_rs import Draft202012Validator  # 15 MB: an extra, so that the core stays small

        if find_non_json(self._whole):
            raise Unsure
        more: Any = {"formats": self._formats, "keywords": {"multipleOf": _Step}}
        validator = Draft202012Validator(self._whole, validate_formats=True, **more)
        return Test(validator, self._find_work(), self._whole, self._written)

    def _write(self, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        if _UNSURE & schema.keys() or not _is_exact(schema):
            raise Unsure
        node = self._nodes[id(schema)] = _Node(schema)
        new = {key: value for key, value in schema.items() if key in _SAME}
        if "$ref" in schema:
            target = self._follow(schema["$ref"])
            self._targets.setdefault(id(target), target)
            new["$ref"] = f"#/$defs/d{id(target)}"
            node.here += [id(target)] if isinstance(target, dict) else []
        for key, rule in schema.items():
            if key == "properties":
                new[key] = {name: self._put(each, node.members.setdefault(name, [])) for name, each in rule.items()}
            elif key in _HERE or key in _INSIDE:
                place = node.here if key in _HERE else node.members.setdefault(_INSIDE[key], [])
                new[key] = self._put_all(rule, place, is_map=key == "dependentSchemas")
        asked = [*self._ask(schema)]
        self._written[id(new)] = new, schema
        return {"allOf": [new, *asked]} if asked else new

    def _put_all(self, rule: Any, place: list[int], *, is_map: bool) -> Any:
        if is_map:
            return {name: self._put(each, place) for name, each in rule.items()}
        return [self._put(each, place) for each in rule] if isinstance(rule, list) else self._put(rule, place)

    def _put(self, schema: Any, place: list[int]) -> Any:
        place += [id(schema)] if isinstance(schema, dict) else []
        return self._write(schema)

    def _ask(self, schema: Mapping[str, Any]) -> Iterator[Any]:
        """Yield what asks our own functions, and bounds."""
        if simple := _PLAIN.fullmatch(schema.get("pattern", "")):
            yield {"pattern": simple[0].replace(r"\d", "[0-9]")}
        elif "pattern" in schema and (pattern := compile_pattern(schema["pattern"])):
            self._formats[f"pattern {schema['pattern']}"] = partial(matches, pattern)
            yield {"format": f"pattern {schema['pattern']}"}
        name = str(schema.get("format"))
        if name in FORMATS:
            self._formats[f"our {name}"] = FORMATS[name]
            yield {"format": f"our {name}"}
        if name in INTEGER_BITS:
            half = 1 << (INTEGER_BITS[name] - 1)
            yield {"minimum": -half, "maximum": half - 1}

    def _find_work(self) -> int:
        """Return the most work that one part of a value can cost: all groups are looked at that may apply to one."""
        most, waiting, seen = 0, [(*self._root,)], set[tuple[int, ...]]()
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

    def _find_applying(self, group: tuple[int, ...]) -> list[_Node]:
        applying, waiting, work = list[_Node](), [*group], 0
        while waiting:
            applying.append(self._nodes[waiting.pop()])
            waiting += applying[-1].here
            work += applying[-1].work
            if work > MOST_WORK:
                raise Unsure
        return applying


def _inside(node: _Node, name: Any) -> list[int]:
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
