"""Infer the known shape of a value before any call, by schema, example or text, and find impossible expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from typing_extensions import override

from ...errors import did_you_mean
from ...schemas.reading import COMPOSED, Said, leads_nowhere
from ...schemas.strict import leave_room
from ...state import Json, JsonObject
from ...values.places import pointer_step
from .sandbox import kind, shown
from .syntax import names_of

Key = str | int | None
"""A key or an index; None if it is computed."""

_TYPES = {
    "string": "a text", "integer": "a number", "number": "a number", "boolean": "true or false", "null": "None",
    "array": "a list", "object": "an object",
}  # fmt: skip
_MOST = 200
_MOST_STEPS = 100
_MOST_CHOICES = 16
_NEAR = 0.75


class AnyShape:
    """A value of unknown shape.

    `kinds` are its possible types, as named by `sandbox.kind`, None if unknown; `keys` are its known keys.
    """

    is_example = False
    required: Sequence[str] = ()

    def __init__(self, kinds: Iterable[str] | None = None, keys: Iterable[str] = ()) -> None:
        self.kinds = frozenset(kinds) if kinds is not None else None
        self.keys = list(keys)

    def member(self, key: Key) -> AnyShape | None:
        """Return the shape under a key; None if there can be no value."""
        return ANY


ANY = AnyShape()


class Plain(AnyShape):
    """A value of known types, with one shape for all members, or a shape for each by name."""

    def __init__(self, *kinds: str, inner: AnyShape = ANY, members: Mapping[Any, AnyShape] | None = None) -> None:
        super().__init__(kinds, members or ())
        self._inner, self._members = inner, members

    @override
    def member(self, key: Key) -> AnyShape | None:
        if self._members is not None and key is not None:
            return self._members.get(key, ANY if isinstance(key, int) else None)
        return self._inner if {"a list", "an object", "a text"} & (self.kinds or set()) else None


class _Either(AnyShape):
    def __init__(self, shapes: Sequence[AnyShape]) -> None:
        kinds = [shape.kinds for shape in shapes]
        known = None if None in kinds else frozenset[str]().union(*filter(None, kinds))
        super().__init__(known, (key for shape in shapes for key in shape.keys))
        self.shapes = shapes
        self.is_example = any(shape.is_example for shape in shapes)

    @override
    def member(self, key: Key) -> AnyShape | None:
        found = [one for shape in self.shapes if (one := shape.member(key)) is not None]
        return either(found) if found else None


def either(shapes: Sequence[AnyShape]) -> AnyShape:
    """Return the shape of one of several values; ANY for many, since each part of each would have to be followed."""
    flat = [one for shape in shapes for one in (shape.shapes if isinstance(shape, _Either) else [shape])]
    if len(flat) == 1:
        return flat[0]
    return _Either(flat) if 1 < len(flat) <= _MOST_CHOICES and ANY not in flat else ANY


class Schema(AnyShape):
    """A value that satisfies a JSON Schema without alternatives.

    An object has no keys beyond its properties if the schema forbids them, and none that look like a misspelt property.
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
    def member(self, key: Key) -> AnyShape | None:
        found = list(self._members(key))
        return of_schema({"anyOf": found}, self._root) if found else None

    def _members(self, key: Key) -> Iterator[Any]:
        """Yield the schemas of the possible values under a key; True if any value is possible."""
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


def of_state(schema: JsonObject | None) -> AnyShape:
    return ANY if schema is None else of_schema(leave_room(schema))


def of_schema(schema: Any, root: Any = None) -> AnyShape:
    """Return the shape of values that satisfy a JSON Schema, including all parts of an `allOf`."""
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


class Example(AnyShape):
    """The values of an example; a key that none of them has is unknown."""

    is_example = True

    def __init__(self, values: Sequence[Json]) -> None:
        self._values = values[:_MOST]
        keys = dict.fromkeys(key for value in self._values if isinstance(value, dict) for key in value)
        super().__init__(map(kind, self._values) if values else None, keys)

    @override
    def member(self, key: Key) -> AnyShape | None:
        found: list[Json] = []
        for value in self._values:
            if isinstance(value, dict):
                found += value.values() if key is None else [value[str(key)]] if str(key) in value else []
            elif isinstance(value, list | str) and not isinstance(key, str):
                found += value
        is_known = key is not None and any(value for value in self._values if isinstance(value, dict | list))
        return Example(found) if found else None if is_known else ANY


def find_misfit(made: AnyShape, wanted: AnyShape, place: str = "") -> str | None:
    """Return the first place where a value of one shape can never satisfy another, and why; None if it may."""
    if isinstance(made, _Either):
        return next(filter(None, (find_misfit(one, wanted, place) for one in made.shapes)), None)
    if made.kinds and wanted.kinds and not made.kinds & wanted.kinds:
        return f"expected {' or '.join(sorted(wanted.kinds))}{place and f' at {place}'}"
    if made.kinds != _OBJECT or made.member("") is not None:
        return None  # its keys are unknown
    if missing := [name for name in wanted.required if name not in made.keys]:
        return f"expected a value at {place}{pointer_step(missing[0])}: it is required"
    members = ((key, made.member(key) or ANY, wanted.member(key)) for key in made.keys)
    found = (find_misfit(inner, rule, place + pointer_step(key)) for key, inner, rule in members if rule is not None)
    return next(filter(None, found), None)


Names = Mapping[str, Any]
"""Name to shape, or to a function that returns it."""

TEXT, NUMBER, TRUTH, LIST = Plain("a text"), Plain("a number"), Plain("true or false"), Plain("a list")
_TEXTS, _NUMBERS = Plain("a list", inner=TEXT), Plain("a list", inner=NUMBER)
_OBJECT = frozenset(("an object",))
_ORDER = frozenset(("a number", "a text"))
_COUNTED = frozenset(("a list", "a text", "an object"))


def _inner(shape: AnyShape) -> AnyShape:
    return shape.member(None) or ANY


_Gives = Callable[[AnyShape], AnyShape]
_FUNCTIONS: Final[dict[str, tuple[frozenset[str] | None, AnyShape | _Gives]]] = {
    **dict.fromkeys(("date", "time", "shift", "weekday", "new_id"), (TEXT.kinds, TEXT)),
    **dict.fromkeys(("money", "random_int", "random_float", "abs", "round"), (NUMBER.kinds, NUMBER)),
    **dict.fromkeys(("str", "json"), (None, TEXT)),
    **dict.fromkeys(("any", "all"), (LIST.kinds, TRUTH)),
    **dict.fromkeys(("bool", "isinstance", "defined"), (None, TRUTH)),
    "unique": (LIST.kinds, lambda shape: shape), "list": (_COUNTED, LIST), "len": (_COUNTED, NUMBER),
    "between": (TEXT.kinds, NUMBER), "range": (NUMBER.kinds, _NUMBERS), "zip": (LIST.kinds, LIST),
    "index": (None, NUMBER), "sum": (LIST.kinds, NUMBER), "fixed": (NUMBER.kinds, TEXT),
    "byte_count": (TEXT.kinds, NUMBER),
    "walk": (None, Plain("a list", inner=Plain("an object", members={"path": LIST, "key": ANY, "value": ANY}))),
}  # fmt: skip
"""Function to the types of its arguments and the shape of its result, which may depend on the first argument."""

_METHODS: Final[dict[str, tuple[frozenset[str] | None, AnyShape | _Gives]]] = {
    **dict.fromkeys(("split", "splitlines"), (TEXT.kinds, _TEXTS)),
    **dict.fromkeys(("startswith", "endswith", "isdigit"), (TEXT.kinds, TRUTH)),
    "keys": (_OBJECT, _TEXTS), "get": (_OBJECT, ANY),
    "values": (_OBJECT, lambda owner: Plain("a list", inner=_inner(owner))),
    "items": (_OBJECT, lambda owner: Plain("a list", inner=Plain("a list", members={0: TEXT, 1: _inner(owner)}))),
}  # fmt: skip
"""Method to the types of its object and the shape of its result; other methods map text to text."""


def _known(named: Any) -> AnyShape:
    shape: AnyShape = named if isinstance(named, AnyShape) else named()
    return shape


def name_parts(names: Sequence[str], item: AnyShape) -> dict[str, AnyShape]:
    """Return the known shapes of a loop's variables: of the item, or of each of its parts."""
    if len(names) == 1:
        return {names[0]: item}
    return {name: item.member(place) or ANY for place, name in enumerate(names)}


class Inference:
    """Infers the shapes of one expression's parts, and reports parts that can never be evaluated."""

    def __init__(self, names: Names, report: Callable[[str], None]) -> None:
        self._names = names
        self._report = report

    def shape(self, node: ast.AST | None, guarded: bool = False) -> AnyShape:
        """Return the known shape of a node's value; if it is `guarded`, its absence in an example is no mistake."""
        if node is None:
            return ANY
        if handler := _HANDLERS.get(type(node)):
            return handler(self, node, guarded)
        for child in ast.iter_child_nodes(node):
            self.shape(child)
        return TRUTH if isinstance(getattr(node, "op", None), ast.Not) else ANY

    def member(self, owner: AnyShape, key: Any, what: str | ast.expr, *, guarded: bool) -> AnyShape:
        """Return the shape under a key, and report a key that cannot exist."""
        found = owner.member(key)
        if found is not None:
            return found
        hint = did_you_mean(str(key), owner.keys)
        if not (owner.is_example and guarded and not hint):
            known = f"; its keys are {', '.join(owner.keys[:12]) or 'none'}" if not owner.is_example else ""
            text = shown(what)
            noun = "argument" if text.startswith("args.") and text.count(".") == 1 else "key"
            self._report(f"unknown {noun} {text}{hint or known}")
        return ANY

    def expect(self, shape: AnyShape, kinds: frozenset[str] | None, what: str) -> None:
        """Report a value that has none of these types."""
        if kinds is not None and shape.kinds is not None and not shape.kinds & (kinds | {"something undefined"}):
            self._report(f"{what} needs {' or '.join(sorted(kinds))}, not {' or '.join(sorted(shape.kinds))}")

    def _name(self, node: ast.Name, _: bool) -> AnyShape:
        return _known(self._names.get(node.id, ANY))

    def _part(self, node: ast.Attribute | ast.Subscript, guarded: bool) -> AnyShape:
        owner = self.shape(node.value, guarded)
        if isinstance(node, ast.Attribute):
            return self.member(owner, node.attr, node, guarded=guarded)
        self.shape(node.slice)
        if isinstance(node.slice, ast.Slice):
            return owner
        key: Any = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return self.member(owner, key, node, guarded=guarded)

    def _call(self, node: ast.Call, guarded: bool) -> AnyShape:
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        name = getattr(node.func, "id", "")
        if name in ("sorted", "min", "max") and node.args:
            return self._ordered(node, name)
        for keyword in node.keywords:
            self.shape(keyword.value)
        if name == "at":
            return self._at(name, node.args, guarded, len(node.args) + len(node.keywords) > 2)
        if name == "trusted":
            self._at(name, [ast.Name("state"), *node.args], True, False)
            return TRUTH
        shapes = [self.shape(argument, guarded or name in ("defined", "default")) for argument in node.args]
        if name == "default":
            return either(shapes)
        takes, gives = _FUNCTIONS.get(name) or (None, _known(self._names.get(f"{name}/{len(node.args)}", ANY)))
        for shape in shapes:
            self.expect(shape, takes, name)
        return gives if isinstance(gives, AnyShape) else gives(shapes[0])

    def _method(self, node: ast.Call, func: ast.Attribute) -> AnyShape:
        owner = self.shape(func.value)
        shapes = [self.shape(argument) for argument in (*node.args, *(each.value for each in node.keywords))]
        takes, gives = _METHODS.get(func.attr, (TEXT.kinds, TEXT))
        self.expect(owner, takes, f".{func.attr}()")
        if func.attr == "join":
            self.expect(shapes[0], LIST.kinds, ".join()")
        return gives if isinstance(gives, AnyShape) else gives(owner)

    def _ordered(self, node: ast.Call, name: str) -> AnyShape:
        items, *more = [self.shape(argument) for argument in node.args]
        inner = _inner(items)
        if not more:
            self.expect(items, LIST.kinds, name)
        for value in (each.value for each in node.keywords):
            if isinstance(value, ast.Lambda):
                inside = Inference({**self._names, value.args.args[0].arg: inner}, self._report)
                inside.shape(value.body)
            elif name != "sorted":
                inner = either([inner, self.shape(value)])
        return items if name == "sorted" else either([items, *more]) if more else inner

    def _loop(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp, _: bool) -> AnyShape:
        inside = self
        for clause in node.generators:
            items = inside.shape(clause.iter)
            inside.expect(items, LIST.kinds, "a loop")
            parts = name_parts(names_of(clause.target), _inner(items))
            inside = Inference({**inside._names, **parts}, self._report)
            for test in clause.ifs:
                inside.shape(test)
        if isinstance(node, ast.DictComp):
            inside.shape(node.key)
            return Plain("an object", inner=inside.shape(node.value))
        return Plain("a list", inner=inside.shape(node.elt))

    def _at(self, name: str, args: Sequence[ast.expr], guarded: bool, has_default: bool) -> AnyShape:
        value = self.shape(args[0] if args else None, guarded=True)
        path: Any = args[1] if len(args) > 1 else ast.List([])
        if not isinstance(path, ast.List):
            self.expect(self.shape(path), LIST.kinds, f"{name}: write [{shown(path)}]: a path")
            return ANY
        for token in path.elts:
            literal = token.value if isinstance(token, ast.Constant) else None
            kinds = self.shape(token).kinds
            if kinds is None or "a list" in kinds:
                value = ANY  # it may be several tokens
            value = self.member(value, literal, f"{literal!r} of {name}", guarded=guarded or has_default)
        for default in args[2:]:
            self.shape(default)
        return value if path.elts and not has_default else ANY

    def _arithmetic(self, node: ast.BinOp, _: bool) -> AnyShape:
        left, right = self.shape(node.left), self.shape(node.right)
        is_sum = isinstance(node.op, ast.Add)
        allowed = frozenset(("a number", "a text", "a list")) if is_sum else NUMBER.kinds
        for side in (left, right):
            self.expect(side, allowed, _SIGNS.get(type(node.op), "+"))
        if is_sum:
            self._match(left, right, allowed, "+ cannot add")
            return left if left.kinds == right.kinds else ANY
        return NUMBER

    def _match(self, left: AnyShape, right: AnyShape, allowed: frozenset[str] | None, what: str) -> None:
        if left.kinds and right.kinds and not left.kinds & right.kinds & (allowed or set()):
            self._report(f"{what} {' or '.join(sorted(left.kinds))} and {' or '.join(sorted(right.kinds))}")

    def _compare(self, node: ast.Compare, _: bool) -> AnyShape:
        left = self.shape(node.left)
        for op, side in zip(node.ops, node.comparators, strict=True):
            right = self.shape(side)
            if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                self._match(left, right, _ORDER, "cannot compare")
            elif isinstance(op, ast.In | ast.NotIn):
                self.expect(right, _COUNTED, "`in`")
            left = right
        return TRUTH

    def _conditional(self, node: ast.IfExp, _: bool) -> AnyShape:
        self.shape(node.test)
        return either([self.shape(node.body), self.shape(node.orelse)])


_SIGNS = {ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"}

_HANDLERS: dict[type, Callable[..., AnyShape]] = {
    ast.Name: Inference._name, ast.Constant: lambda _, node, __: Plain(kind(node.value)),
    ast.JoinedStr: lambda self, node, _: [TEXT, *map(self.shape, node.values)][0],
    ast.Attribute: Inference._part, ast.Subscript: Inference._part, ast.Call: Inference._call,
    ast.Compare: Inference._compare, ast.IfExp: Inference._conditional, ast.BinOp: Inference._arithmetic,
    **dict.fromkeys((ast.ListComp, ast.GeneratorExp, ast.DictComp), Inference._loop),
}  # fmt: skip
