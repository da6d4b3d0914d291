"""Closures for operators, function calls and quantifiers; these run most often, so they are kept short."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jinja2 import nodes

from .operators import ARITHMETIC, COMPARISONS, number
from .sandbox import Missing, Scope, a_list, a_number, given, join, text
from .syntax import NAMES, Run, SyntaxFault, check_name

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


# for each item of a list, under a name: `all(x in list, condition)` ---------------------------------------------------

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
                found.append(given(value(scope)))
        scope.take_items(len(found))
        return found

    return run


def _count(rounds: Rounds, condition: Run, _: Run | None) -> Run:
    found = _each(rounds, lambda _: None, condition)
    return lambda scope: len(found(scope))


Quantifier = Callable[[Rounds, Run, Run | None], Run]
QUANTIFIERS: dict[str, Quantifier] = {
    "all": _all, "any": _any, "count": _count, "each": _each,
}  # fmt: skip


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
        outer = {variable: values[variable]} if variable in values else {}
        try:  # not `bound`: a context manager would take as long as three items
            for item in items:
                scope.tick()
                values[variable] = item
                yield
        finally:
            values.pop(variable, None)
            values.update(outer)

    return rounds
