"""What is known of a value before any call, by schema, example or text, and what in it can never be evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from jinja2 import nodes
from typing_extensions import override

from ...errors import did_you_mean
from ...schemas.reading import COMPOSED, Said, leads_nowhere
from ...schemas.strict import leave_room
from ...state import Json, JsonObject
from .operators import QUANTIFIERS
from .sandbox import kind
from .syntax import ITS, LOOPS, as_each, attribute_node, describe

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
    required: Sequence[str] = ()

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
        self.required = schema["required"] if isinstance(schema.get("required"), list) else ()

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
    parts, found = Said(schema, root).parts(), list[Schema]()
    if not parts or len(parts) > _MOST_STEPS:
        return ANY
    for one in parts:
        choices = [part for key in ("anyOf", "oneOf", "allOf") if isinstance(one.get(key), list) for part in one[key]]
        if leads_nowhere(one, root) or not all(isinstance(part, Mapping) for part in choices):
            return ANY
        found += [] if one.keys() & COMPOSED and not one.keys() & {"properties", "items"} else [Schema(one, root)]
    return either(found) if found else ANY


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


def find_misfit(made: Shape, wanted: Shape, place: str = "$") -> str | None:
    """Return what a value of one shape can never have of another, with its place; None where it may fit."""
    if isinstance(made, _Either):
        return next(filter(None, (find_misfit(one, wanted, place) for one in made.shapes)), None)
    if made.kinds and wanted.kinds and not made.kinds & wanted.kinds:
        return f"expected {' or '.join(sorted(wanted.kinds))} at {place}"
    if made.kinds != _OBJECT or made.member("") is not None:
        return None  # it may have any keys
    if missing := [name for name in wanted.required if name not in made.keys]:
        return f"expected a value at {place}.{missing[0]}: it is required"
    members = ((key, made.member(key) or ANY, wanted.member(key)) for key in made.keys)
    found = (find_misfit(inner, rule, f"{place}.{key}") for key, inner, rule in members if rule is not None)
    return next(filter(None, found), None)


Names = Mapping[str, Any]
"""Name to Shape, or to a function that returns it."""

TEXT, NUMBER, TRUTH, LIST = Plain("a text"), Plain("a number"), Plain("true or false"), Plain("a list")
_OBJECT = frozenset(("an object",))
_ORDER = frozenset(("a number", "a text"))
_COUNTED = frozenset(("a list", "a text", "an object"))
_FUNCTIONS: Final[dict[str, tuple[Shape, Shape]]] = {
    **dict.fromkeys(("date", "time", "shift", "weekday", "new_id"), (TEXT, TEXT)),
    "between": (TEXT, NUMBER),
    **dict.fromkeys(("money", "random_int", "random_float"), (NUMBER, NUMBER)),
    "range": (NUMBER, Plain("a list", inner=NUMBER)), "zip": (LIST, LIST), "object": (LIST, Plain("an object")),
    "index": (ANY, NUMBER),
    "walk": (ANY, Plain("a list", inner=Plain("an object", members={"path": LIST, "key": ANY, "value": ANY}))),
}  # fmt: skip
"""Function to what its arguments must be, and what it gives."""

_SAME, _ITEM = Shape(), Shape()
_FILTERS: Final[dict[str, tuple[frozenset[str] | None, Shape]]] = {
    **dict.fromkeys(("sort", "unique"), (LIST.kinds, _SAME)),
    **dict.fromkeys(("min", "max"), (LIST.kinds, _ITEM)),
    **dict.fromkeys(("first", "last"), (frozenset(("a list", "a text")), _ITEM)),
    **dict.fromkeys(("abs", "round", "money"), (NUMBER.kinds, NUMBER)),
    **dict.fromkeys(("lower", "replace"), (TEXT.kinds, TEXT)),
    **dict.fromkeys(("string", "tojson"), (None, TEXT)),
    "sum": (LIST.kinds, NUMBER), "length": (_COUNTED, NUMBER), "fixed": (NUMBER.kinds, TEXT),
    "join": (LIST.kinds, TEXT), "lines": (TEXT.kinds, Plain("a list", inner=TEXT)), "bytes": (TEXT.kinds, NUMBER),
    "keys": (_OBJECT, Plain("a list", inner=TEXT)), "values": (_OBJECT, LIST), "items": (_OBJECT, LIST),
    "interleave": (LIST.kinds, LIST),
}  # fmt: skip
"""Filter to what it takes, and what it gives."""


def _known(named: Any) -> Shape:
    shape: Shape = named if isinstance(named, Shape) else named()
    return shape


class Inference:
    """Infers the shapes of one expression's parts; what can never be evaluated is reported in a line, with its text."""

    def __init__(self, names: Names, report: Callable[[str], None]) -> None:
        self._names = names
        self._report = report

    def shape(self, node: nodes.Node | None, guarded: bool = False) -> Shape:
        """Return what is known of a node's value; of a `guarded` one an example without it proves nothing."""
        if node is None:
            return ANY
        if handler := _HANDLERS.get(type(node)):
            return handler(self, node, guarded)
        for child in node.iter_child_nodes():
            self.shape(child)
        return TRUTH if isinstance(node, nodes.Not) else ANY

    def member(self, owner: Shape, key: Any, text: str, *, guarded: bool) -> Shape:
        """Return what stands under a key, and report where there can be nothing."""
        found = owner.member(key)
        if found is not None:
            return found
        hint = did_you_mean(str(key), owner.keys)
        if not (owner.is_example and guarded and not hint):
            known = f"; its keys are {', '.join(owner.keys[:12]) or 'none'}" if not owner.is_example else ""
            noun = "argument" if text.startswith("args.") and text.count(".") == 1 else "key"
            self._report(f"unknown {noun} {text}{hint or known}")
        return ANY

    def expect(self, shape: Shape, kinds: frozenset[str] | None, what: str) -> None:
        """Report a value that has none of these types."""
        if kinds is not None and shape.kinds is not None and not shape.kinds & (kinds | {"something undefined"}):
            self._report(f"{what} needs {' or '.join(sorted(kinds))}, not {' or '.join(sorted(shape.kinds))}")

    def _name(self, node: nodes.Name, _: bool) -> Shape:
        return _known(self._names.get(node.name, ANY))

    def _part(self, node: nodes.Getattr | nodes.Getitem, guarded: bool) -> Shape:
        owner = self.shape(node.node, guarded)
        arg = nodes.Const(node.attr) if isinstance(node, nodes.Getattr) else node.arg
        self.shape(arg)
        if isinstance(arg, nodes.Slice):
            return owner
        return self.member(owner, arg.value if isinstance(arg, nodes.Const) else None, describe(node), guarded=guarded)

    def _call(self, node: nodes.Call, guarded: bool) -> Shape:
        if isinstance(node.node, nodes.Getattr):
            self.expect(self.shape(node.node.node), TEXT.kinds, f".{node.node.attr}()")
        name = node.node.name if isinstance(node.node, nodes.Name) else ""
        if name in QUANTIFIERS:
            return self._quantified(node, name)
        for keyword in node.kwargs:
            self.shape(keyword.value)
        if name == "at":
            return self._at(node, node.args, guarded)
        if name == "trusted":
            self._at(node, [nodes.Name("state", "load"), *node.args], True)
            return TRUTH
        shapes = [self.shape(argument) for argument in node.args]
        takes, gives = _FUNCTIONS.get(name) or (ANY, _known(self._names.get(f"{name}/{len(node.args)}", ANY)))
        for shape in shapes:
            self.expect(shape, takes.kinds, name)
        return gives

    def _quantified(self, node: nodes.Call, name: str) -> Shape:
        head: Any = node.args[0]
        value = self._each(name, self.shape(head.ops[0].expr), head.expr.name, node.args[1:])
        return Plain("a list", inner=value) if name == "each" else NUMBER if name == "count" else TRUTH

    def _each(self, name: str, items: Shape, variable: str, parts: Sequence[nodes.Node]) -> Shape:
        self.expect(items, LIST.kinds, name)
        inside = Inference({**self._names, variable: items.member(None) or ANY}, self._report)
        value, *_ = [inside.shape(part) for part in parts]
        return value

    def _at(self, node: nodes.Call, args: Sequence[nodes.Expr], guarded: bool) -> Shape:
        name = getattr(node.node, "name", "")
        value = self.shape(args[0] if args else None, guarded=True)
        path: Any = args[1] if len(args) > 1 else nodes.List([])
        if not isinstance(path, nodes.List):
            self.expect(self.shape(path), LIST.kinds, f"{name}: write [{describe(path)}]: a path")
            return ANY
        has_default = len(args) + len(node.kwargs) > 2
        for token in path.items:
            literal = token.value if isinstance(token, nodes.Const) else None
            kinds = self.shape(token).kinds
            if kinds is None or "a list" in kinds:
                value = ANY  # perhaps several tokens
            value = self.member(value, literal, f"{literal!r} of {name}", guarded=guarded or has_default)
        for default in args[2:]:
            self.shape(default)
        return value if path.items and not has_default else ANY

    def _filter(self, node: nodes.Filter, guarded: bool) -> Shape:
        value = self.shape(node.node, guarded or node.name == "default")
        if node.name in LOOPS:
            made = self._each(node.name, value, ITS, as_each(node.name, node.args, node.kwargs))
            return Plain("a list", inner=made) if node.name == "map" else value
        given = [self.shape(argument) for argument in node.args]
        for keyword in node.kwargs:
            self.shape(keyword.value)
            if keyword.key == "attribute" and isinstance(keyword.value, nodes.Const):
                item = nodes.Name(ITS, "load")
                self._each(node.name, value, ITS, [attribute_node(item, keyword.value)])
        takes, gives = _FILTERS.get(node.name, (None, ANY))
        self.expect(value, takes, node.name)
        inner = value.member(None) or ANY
        if node.name == "items":
            return Plain("a list", inner=Plain("an object", members={"key": TEXT, "value": inner}))
        if node.name == "default":
            return either([value, *given[:1]])
        if node.name == "values":
            return Plain("a list", inner=inner)
        return value if gives is _SAME else inner if gives is _ITEM else gives

    def _test(self, node: nodes.Test, _: bool) -> Shape:
        self.shape(node.node, node.name in ("defined", "undefined"))
        for argument in node.args:
            self.shape(argument)
        return TRUTH

    def _arithmetic(self, node: nodes.BinExpr, _: bool) -> Shape:
        left, right = self.shape(node.left), self.shape(node.right)
        allowed = frozenset(("a number", "a text", "a list")) if isinstance(node, nodes.Add) else NUMBER.kinds
        for side in (left, right):
            self.expect(side, allowed, node.operator)
        if isinstance(node, nodes.Add):
            self._match(left, right, allowed, "+ cannot add")
            return left if left.kinds == right.kinds else ANY
        return NUMBER

    def _match(self, left: Shape, right: Shape, allowed: frozenset[str] | None, what: str) -> None:
        if left.kinds and right.kinds and not left.kinds & right.kinds & (allowed or set()):
            self._report(f"{what} {' or '.join(sorted(left.kinds))} and {' or '.join(sorted(right.kinds))}")

    def _compare(self, node: nodes.Compare, _: bool) -> Shape:
        left = self.shape(node.expr)
        for operand in node.ops:
            right = self.shape(operand.expr)
            if operand.op in ("lt", "lteq", "gt", "gteq"):
                self._match(left, right, _ORDER, "cannot compare")
            elif operand.op in ("in", "notin"):
                self.expect(right, _COUNTED, "`in`")
            left = right
        return TRUTH

    def _conditional(self, node: nodes.CondExpr, _: bool) -> Shape:
        self.shape(node.test)
        return either([self.shape(node.expr1), self.shape(node.expr2)])


_HANDLERS: dict[type, Callable[..., Shape]] = {
    nodes.Name: Inference._name,
    nodes.Const: lambda _, node, __: Plain(kind(node.value)),
    nodes.Getattr: Inference._part,
    nodes.Getitem: Inference._part,
    nodes.Call: Inference._call,
    nodes.Filter: Inference._filter,
    nodes.Test: Inference._test,
    nodes.Compare: Inference._compare,
    nodes.CondExpr: Inference._conditional,
    **dict.fromkeys((nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod), Inference._arithmetic),
}
