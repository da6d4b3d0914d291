"""Functions that evaluate an expression for each item of a list, under a name: `all(x in list, condition)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jinja2 import nodes

from .sandbox import Scope, a_list, bound, given
from .syntax import NAMES, Run, SyntaxFault, check_name

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


def read_items(name: str, node: nodes.Call) -> tuple[str, nodes.Node]:
    """Return the name and the list of `x in list`, of a quantifier's call. Raises SyntaxFault."""
    most = 3 if name == "each" else 2
    if node.kwargs or not 2 <= len(node.args) <= most:
        raise SyntaxFault(f"{name}: write {name}(x in LIST, {'VALUE' if most > 2 else 'CONDITION'})")
    first: Any = node.args[0]
    if (
        isinstance(first, nodes.Compare)
        and isinstance(first.expr, nodes.Name)
        and [op.op for op in first.ops] == ["in"]
    ):
        variable = check_name(first.expr.name, "the name")
        if variable in NAMES:
            raise SyntaxFault(f"{name}: the name {variable!r} is reserved; choose another")
        return variable, first.ops[0].expr
    raise SyntaxFault(f"{name}: expected a name and a list first, as in {name}(x in state.orders, x.paid)")


def find_rounds(name: str, variable: str, source: Run) -> Rounds:
    """Return the loop over a list, with a name for its items."""

    def rounds(scope: Scope) -> Iterator[None]:
        items, values = a_list(source(scope), name), scope.values
        with bound(values, variable):
            for item in items:
                scope.tick()
                values[variable] = item
                yield

    return rounds
