"""Closures for operators, and for a function applied to a value: what runs most is kept short."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jinja2 import nodes

from .operators import ARITHMETIC, COMPARISONS, number
from .sandbox import Missing, Scope, a_number, given, join, text
from .syntax import Run

Build = Callable[[nodes.Node], Run]


def constant(value: Any) -> Run:
    """Always this value."""
    return lambda _: value


def as_it_is(value: Any) -> Any:
    """The value, also where it is missing."""
    return value


def applied(
    function: Callable[..., Any], value: Run, arguments: tuple[Sequence[Run], dict[str, Run]], lenient: bool
) -> Run:
    """A filter, test or text method on a value; only a lenient one may be given something undefined."""
    args, kwargs = arguments
    check = as_it_is if lenient else given

    def run(scope: Scope) -> Any:
        scope.tick()
        values = [check(one(scope)) for one in args]
        named = {key: check(one(scope)) for key, one in kwargs.items()}
        return function(scope, check(value(scope)), *values, **named)

    def run_plain(scope: Scope) -> Any:
        scope.tick()
        return function(scope, check(value(scope)))

    return run if args or kwargs else run_plain


def conjunction(build: Build, node: nodes.And) -> Run:
    """`and`."""
    left, right = build(node.left), build(node.right)
    return lambda scope: left(scope) and right(scope)


def disjunction(build: Build, node: nodes.Or) -> Run:
    """`or`."""
    left, right = build(node.left), build(node.right)
    return lambda scope: left(scope) or right(scope)


def negation(build: Build, node: nodes.Not) -> Run:
    """`not`."""
    inner = build(node.node)
    return lambda scope: not inner(scope)


def sign(build: Build, node: nodes.Neg | nodes.Pos) -> Run:
    """`-` or `+` before a number."""
    inner = build(node.node)
    if isinstance(node, nodes.Neg):
        return lambda scope: number(-a_number(inner(scope), "-"))
    return lambda scope: a_number(inner(scope), "+")


def binary(build: Build, node: nodes.BinExpr) -> Run:
    """`+ - * / // %`."""
    apply = ARITHMETIC[type(node).__name__]
    left, right = build(node.left), build(node.right)

    def run(scope: Scope) -> Any:
        scope.tick()
        return apply(scope, left(scope), right(scope))

    return run


def concat(build: Build, node: nodes.Concat) -> Run:
    """`~`."""
    runs = [build(one) for one in node.nodes]

    def run(scope: Scope) -> str:
        scope.tick()
        return join(scope, [text(scope, given(run(scope))) for run in runs])

    return run


def comparison(build: Build, node: nodes.Compare) -> Run:
    """One comparison, or several in a row."""
    first = build(node.expr)
    rest = [(COMPARISONS[operand.op], build(operand.expr)) for operand in node.ops]
    compare, second = rest[0]

    def run_one(scope: Scope) -> Any:
        scope.tick()
        return compare(scope, first(scope), second(scope))

    def run_row(scope: Scope) -> bool:
        left = first(scope)
        for holds, other in rest:
            scope.tick()
            right = other(scope)
            if not holds(scope, left, right):
                return False
            left = right
        return True

    return run_one if len(rest) == 1 else run_row


def conditional(build: Build, node: nodes.CondExpr) -> Run:
    """`a if b else c`; undefined where `else` is needed and missing."""
    test, then = build(node.test), build(node.expr1)
    missing = Missing("the value of an `if` without `else`")
    otherwise = constant(missing) if node.expr2 is None else build(node.expr2)
    return lambda scope: then(scope) if test(scope) else otherwise(scope)


OPERATORS: dict[type, Callable[[Build, Any], Run]] = {
    nodes.And: conjunction,
    nodes.Or: disjunction,
    nodes.Not: negation,
    nodes.Neg: sign,
    nodes.Pos: sign,
    nodes.Concat: concat,
    nodes.Compare: comparison,
    nodes.CondExpr: conditional,
    **dict.fromkeys((nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod), binary),
}
