"""Closures for operators and function calls; these run most often, so they are kept short."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jinja2 import nodes

from .operators import ARITHMETIC, COMPARISONS, number
from .sandbox import Missing, Scope, a_number, given, join, text
from .syntax import Run

Build = Callable[[nodes.Node], Run]


def constant(value: Any) -> Run:
    """Return a closure with a constant value."""
    return lambda _: value


def identity(value: Any) -> Any:
    """Return the value, even if it is missing."""
    return value


def apply_function(
    function: Callable[..., Any], args: Sequence[Run], kwargs: dict[str, Run], *, is_lenient: bool
) -> Run:
    """Return a closure that calls a function of the language; only a lenient one accepts undefined values."""
    check = identity if is_lenient else given

    def run(scope: Scope) -> Any:
        scope.tick()
        values = [check(argument(scope)) for argument in args]
        named = {key: check(argument(scope)) for key, argument in kwargs.items()}
        return function(scope, *values, **named)

    def run_plain(scope: Scope) -> Any:
        scope.tick()
        return function(scope, check(args[0](scope)))

    return run_plain if len(args) == 1 and not kwargs else run


def _and(build: Build, node: nodes.And) -> Run:
    left, right = build(node.left), build(node.right)
    return lambda scope: left(scope) and right(scope)


def _or(build: Build, node: nodes.Or) -> Run:
    left, right = build(node.left), build(node.right)
    return lambda scope: left(scope) or right(scope)


def _not(build: Build, node: nodes.Not) -> Run:
    inner = build(node.node)
    return lambda scope: not inner(scope)


def _sign(build: Build, node: nodes.Neg | nodes.Pos) -> Run:
    inner = build(node.node)
    if isinstance(node, nodes.Neg):
        return lambda scope: number(-a_number(inner(scope), "-"))
    return lambda scope: a_number(inner(scope), "+")


def _arithmetic(build: Build, node: nodes.BinExpr) -> Run:
    apply = ARITHMETIC[type(node).__name__]
    left, right = build(node.left), build(node.right)

    def run(scope: Scope) -> Any:
        scope.tick()
        return apply(scope, left(scope), right(scope))

    return run


def _concat(build: Build, node: nodes.Concat) -> Run:
    runs = [build(part) for part in node.nodes]

    def run(scope: Scope) -> str:
        scope.tick()
        return join(scope, [text(scope, given(run(scope))) for run in runs])

    return run


def _comparison(build: Build, node: nodes.Compare) -> Run:
    first = build(node.expr)
    rest = [(COMPARISONS[operand.op], build(operand.expr)) for operand in node.ops]
    compare, second = rest[0]

    def run_one(scope: Scope) -> Any:
        scope.tick()
        return compare(scope, first(scope), second(scope))

    def run_row(scope: Scope) -> bool:
        left = first(scope)
        for test, other in rest:
            scope.tick()
            right = other(scope)
            if not test(scope, left, right):
                return False
            left = right
        return True

    return run_one if len(rest) == 1 else run_row


def _conditional(build: Build, node: nodes.CondExpr) -> Run:
    condition, then = build(node.test), build(node.expr1)
    missing = Missing("the value of an `if` without `else`")
    otherwise = constant(missing) if node.expr2 is None else build(node.expr2)
    return lambda scope: then(scope) if condition(scope) else otherwise(scope)


OPERATORS: dict[type, Callable[[Build, Any], Run]] = {
    nodes.And: _and,
    nodes.Or: _or,
    nodes.Not: _not,
    nodes.Neg: _sign,
    nodes.Pos: _sign,
    nodes.Concat: _concat,
    nodes.Compare: _comparison,
    nodes.CondExpr: _conditional,
    **dict.fromkeys((nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod), _arithmetic),
}
