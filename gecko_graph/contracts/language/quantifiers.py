"""Functions that evaluate an expression for each item of a list, under a name: `all(x in list, condition)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jinja2 import nodes

from .sandbox import Scope, a_list, bound, given
from .syntax import NAMES, Mentions, Run, SyntaxFault, check_name, no_spread

Rounds = Callable[[Scope], Iterator[None]]
"""Gives the name to each item in turn."""


def _all(rounds: Rounds, condition: Run, _: Run | None) -> Run:
    return lambda scope: all(given(condition(scope)) for _ in rounds(scope))


def _any(rounds: Rounds, condition: Run, _: Run | None) -> Run:
    return lambda scope: any(given(condition(scope)) for _ in rounds(scope))


def _each(rounds: Rounds, value: Run, condition: Run | None) -> Run:
    def run(scope: Scope) -> Any:
        found: list[Any] = []
        for _ in rounds(scope):
            if condition is None or given(condition(scope)):
                scope.take_items(1)
                found.append(given(value(scope)))
        scope.take_items(len(found))
        return found

    return run


def _count(rounds: Rounds, condition: Run, _: Run | None) -> Run:
    found = _each(rounds, lambda _: None, condition)
    return lambda scope: len(found(scope))


QUANTIFIERS: dict[str, Callable[[Rounds, Run, Run | None], Run]] = {
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
    return QUANTIFIERS[name](_rounds(name, variable, source), parts[0], parts[1] if len(parts) > 1 else None)


def _read_items(name: str, node: nodes.Node) -> tuple[str, nodes.Node]:
    """Return the name and the list of `x in list`. Raises SyntaxFault."""
    if isinstance(node, nodes.Compare) and isinstance(node.expr, nodes.Name) and [op.op for op in node.ops] == ["in"]:
        variable = check_name(node.expr.name, "the name")
        if variable in NAMES:
            raise SyntaxFault(f"{name}: the name {variable!r} is reserved; choose another")
        return variable, node.ops[0].expr
    raise SyntaxFault(f"{name}: expected a name and a list first, as in {name}(x in state.orders, x.paid)")


def _rounds(name: str, variable: str, source: Run) -> Rounds:
    def rounds(scope: Scope) -> Iterator[None]:
        items, values = a_list(source(scope), name), scope.values
        with bound(values, variable):
            for item in items:
                scope.tick()
                values[variable] = item
                yield

    return rounds
