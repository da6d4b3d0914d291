"""Functions that evaluate an expression for each item of a list, under a name.

| function | value |
| --- | --- |
| `all(x in list, condition)` | whether the condition holds for each item; true for an empty list |
| `any(x in list, condition)` | whether it holds for at least one |
| `count(x in list, condition)` | for how many it holds |
| `each(x in list, value[, condition])` | the values, of the items for which the condition holds |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import nodes

from .sandbox import Scope, a_list, given
from .syntax import NAMES, Mentions, Run, SyntaxFault, check_name, no_spread

Loop = Callable[[Scope, Callable[[Scope], bool]], bool]
"""Runs a function once an item, until it returns True, and returns whether it did."""

_ABSENT = object()


def _all(loop: Loop, condition: Run, _: Run | None) -> Run:
    return lambda scope: not loop(scope, lambda inner: not given(condition(inner)))


def _any(loop: Loop, condition: Run, _: Run | None) -> Run:
    return lambda scope: loop(scope, lambda inner: bool(given(condition(inner))))


def _each(loop: Loop, value: Run, condition: Run | None) -> Run:
    def run(scope: Scope) -> Any:
        found: list[Any] = []

        def visit(inner: Scope) -> bool:
            if condition is None or given(condition(inner)):
                inner.take_items(1)
                found.append(given(value(inner)))
            return False

        loop(scope, visit)
        scope.take_items(len(found))
        return found

    return run


def _count(loop: Loop, condition: Run, _: Run | None) -> Run:
    found = _each(loop, lambda scope: None, condition)
    return lambda scope: len(found(scope))


QUANTIFIERS: dict[str, Callable[[Loop, Run, Run | None], Run]] = {
    "all": _all,
    "any": _any,
    "count": _count,
    "each": _each,
}


def compile_quantifier(name: str, node: nodes.Call, build: Callable[[nodes.Node], Run], mentions: Mentions) -> Run:
    """Return the closure of a call of a quantifier; its name for an item is none outside. Raises SyntaxFault."""
    no_spread(node)
    most = 3 if name == "each" else 2
    if node.kwargs or not 2 <= len(node.args) <= most:
        raise SyntaxFault(f"{name}: write {name}(x in LIST, {'VALUE' if most > 2 else 'CONDITION'})")
    variable, items = _read_items(name, node.args[0])
    source = build(items)
    outer, mentions.names = mentions.names, set()
    parts = [build(part) for part in node.args[1:]]
    mentions.names = outer | (mentions.names - {variable})
    mentions.bound.add(variable)
    return QUANTIFIERS[name](_loop(name, variable, source), parts[0], parts[1] if len(parts) > 1 else None)


def _read_items(name: str, node: nodes.Node) -> tuple[str, nodes.Node]:
    """Return the name and the list of `x in list`. Raises SyntaxFault."""
    if isinstance(node, nodes.Compare) and isinstance(node.expr, nodes.Name) and [op.op for op in node.ops] == ["in"]:
        variable = check_name(node.expr.name, "the name")
        if variable in NAMES:
            raise SyntaxFault(f"{name}: the name {variable!r} is reserved; choose another")
        return variable, node.ops[0].expr
    raise SyntaxFault(f"{name}: expected a name and a list first, as in {name}(x in state.orders, x.paid)")


def _loop(name: str, variable: str, source: Run) -> Loop:
    def loop(scope: Scope, visit: Callable[[Scope], bool]) -> bool:
        items, values = a_list(source(scope), name), scope.values
        outer = values.get(variable, _ABSENT)
        try:
            for item in items:
                scope.tick()
                values[variable] = item
                if visit(scope):
                    return True
            return False
        finally:
            values.pop(variable, None)
            if outer is not _ABSENT:
                values[variable] = outer

    return loop
