"""What is known of an expression's value before any call, and what in it can never be evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from jinja2 import nodes

from ...errors import did_you_mean
from .closures import QUANTIFIERS
from .sandbox import kind
from .shapes import ANY, Plain, Shape, either
from .syntax import ITS, LOOPS, as_each, attribute_node, describe

Names = Mapping[str, Any]
"""Name to Shape, or to a function that returns it; of a let with parameters from those of its arguments."""

Report = Callable[[str], None]

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

    def __init__(self, names: Names, report: Report) -> None:
        self._names = names
        self._report = report

    def shape(self, node: nodes.Node | None, *, guarded: bool = False) -> Shape:
        """Return what is known of a node's value; of a `guarded` one an example without it proves nothing."""
        if node is None:
            return ANY
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            return handler(self, node, guarded) if handler in _GUARDED else handler(self, node)
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

    def _name(self, node: nodes.Name) -> Shape:
        return _known(self._names.get(node.name, ANY))

    def _part(self, node: nodes.Getattr | nodes.Getitem, guarded: bool) -> Shape:
        owner = self.shape(node.node, guarded=guarded)
        if isinstance(node, nodes.Getattr):
            return self.member(owner, node.attr, describe(node), guarded=guarded)
        self.shape(node.arg)
        if isinstance(node.arg, nodes.Slice):
            return owner
        key = node.arg.value if isinstance(node.arg, nodes.Const) else None
        return self.member(owner, key, describe(node), guarded=guarded)

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
        own = self._names.get(f"{name}/{len(node.args)}", ANY)
        takes, gives = _FUNCTIONS.get(name) or (ANY, own if isinstance(own, Shape) else own(*shapes))
        for shape in shapes:
            self.expect(shape, takes.kinds, name)
        return gives

    def _quantified(self, node: nodes.Call, name: str) -> Shape:
        head: Any = node.args[0]
        value = self._each(name, self.shape(head.ops[0].expr), head.expr.name, node.args[1:])
        return {"each": Plain("a list", inner=value), "count": NUMBER}.get(name, TRUTH)

    def _each(self, name: str, items: Shape, variable: str, parts: Sequence[nodes.Node]) -> Shape:
        self.expect(items, LIST.kinds, name)
        inside = Inference({**self._names, variable: items.member(None) or ANY}, self._report)
        value, *_ = [inside.shape(part) for part in parts]
        return value

    def _at(self, node: nodes.Call, args: Sequence[nodes.Expr], guarded: bool) -> Shape:
        name = getattr(node.node, "name", "")
        value = self.shape(args[0] if args else None, guarded=True)
        path: Any = args[1] if len(args) > 1 else nodes.List([])
        tokens = path.items if isinstance(path, nodes.List) else []
        if tokens is not getattr(path, "items", None):
            self.expect(self.shape(path), LIST.kinds, f"{name}: write [{describe(path)}]: a path")
        has_default = len(args) + len(node.kwargs) > 2
        is_known = bool(tokens) and not has_default
        for token in tokens:
            literal = token.value if isinstance(token, nodes.Const) else None
            kinds = self.shape(token).kinds
            if kinds is None or "a list" in kinds:
                value = ANY  # perhaps several tokens
            value = self.member(value, literal, f"{literal!r} of {name}", guarded=guarded or has_default)
        for default in args[2:]:
            self.shape(default)
        return value if is_known else ANY

    def _filter(self, node: nodes.Filter, guarded: bool) -> Shape:
        value = self.shape(node.node, guarded=guarded or node.name == "default")
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

    def _test(self, node: nodes.Test) -> Shape:
        self.shape(node.node, guarded=node.name in ("defined", "undefined"))
        for argument in node.args:
            self.shape(argument)
        return TRUTH

    def _arithmetic(self, node: nodes.BinExpr) -> Shape:
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

    def _compare(self, node: nodes.Compare) -> Shape:
        left = self.shape(node.expr)
        for operand in node.ops:
            right = self.shape(operand.expr)
            if operand.op in ("lt", "lteq", "gt", "gteq"):
                self._match(left, right, _ORDER, "cannot compare")
            elif operand.op in ("in", "notin"):
                self.expect(right, _COUNTED, "`in`")
            left = right
        return TRUTH

    def _conditional(self, node: nodes.CondExpr) -> Shape:
        self.shape(node.test)
        return either([self.shape(node.expr1), self.shape(node.expr2)])


_HANDLERS: dict[type, Callable[..., Shape]] = {
    nodes.Name: Inference._name,
    nodes.Const: lambda _, node: Plain(kind(node.value)),
    nodes.Getattr: Inference._part,
    nodes.Getitem: Inference._part,
    nodes.Call: Inference._call,
    nodes.Filter: Inference._filter,
    nodes.Test: Inference._test,
    nodes.Compare: Inference._compare,
    nodes.CondExpr: Inference._conditional,
    **dict.fromkeys((nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod), Inference._arithmetic),
}
_GUARDED = frozenset((Inference._part, Inference._call, Inference._filter))
"""Handlers of what may be undefined."""
