"""Closures for the nodes of the contract language, run on a Scope; they run most often, so they are kept short."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jinja2 import nodes

from .filters import FILTERS, TESTS
from .functions import FUNCTIONS, METHODS
from .operators import (
    ARITHMETIC,
    COMPARISONS,
    QUANTIFIERS,
    Quantifier,
    constant,
    find_rounds,
    key_of,
    member,
    number,
    part,
    read_items,
)
from .sandbox import Fault, Missing, Scope, a_number, a_text, bound, given, join, text
from .syntax import (
    ITS,
    LOOPS,
    MAX_DEPTH,
    MAX_NODES,
    Run,
    StatePath,
    SyntaxFault,
    as_each,
    check_arguments,
    check_name,
    describe,
    known,
    no_spread,
    paths_in,
)

Build = Callable[[nodes.Node], Run]


def _logic(build: Build, node: nodes.And | nodes.Or) -> Run:
    left, right = build(node.left), build(node.right)
    if isinstance(node, nodes.And):
        return lambda scope: left(scope) and right(scope)
    return lambda scope: left(scope) or right(scope)


def _unary(build: Build, node: nodes.UnaryExpr) -> Run:
    inner = build(node.node)
    if isinstance(node, nodes.Not):
        return lambda scope: not inner(scope)
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
    **dict.fromkeys((nodes.And, nodes.Or), _logic),
    **dict.fromkeys((nodes.Not, nodes.Neg, nodes.Pos), _unary),
    **dict.fromkeys((nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod), _arithmetic),
    nodes.Concat: _concat,
    nodes.Compare: _comparison,
    nodes.CondExpr: _conditional,
}

ALL_FILTERS = (*FILTERS, *LOOPS)

LENIENT = frozenset((FUNCTIONS["at"], FILTERS["default"], TESTS["defined"], TESTS["undefined"]))
"""What accepts undefined values."""


@dataclass(frozen=True)
class Code:
    """A checked source: its closure, its parts, and the names in it; `bound` are those of items."""

    run: Run
    parts: Sequence[str | nodes.Expr]
    names: frozenset[str]
    bound: frozenset[str]

    @cached_property
    def paths(self) -> frozenset[StatePath]:
        """The paths of the state that it reads."""
        return paths_in(self.parts)


def compile_parts(parts: Sequence[str | nodes.Expr]) -> Code:
    """Return the closure of a text: the value of a single expression, or the joined parts. Raises SyntaxFault."""
    compiler = _Compiler()
    runs = [constant(part) if isinstance(part, str) else compiler.build(part) for part in parts]
    run = runs[0] if len(runs) == 1 else lambda scope: join(scope, [text(scope, run(scope)) for run in runs])
    return Code(run, parts, frozenset(compiler.names), frozenset(compiler.bound))


class _Compiler:
    def __init__(self) -> None:
        self.names: set[str] = set()
        self.bound: set[str] = set()
        self._nodes = 0
        self._depth = 0

    def build(self, node: nodes.Node) -> Run:
        """Return the closure of a node, by its exact type. Raises SyntaxFault."""
        self._nodes += 1
        self._depth += 1
        if self._nodes > MAX_NODES or self._depth > MAX_DEPTH:
            raise SyntaxFault(f"it has more than {MAX_NODES} parts or is nested more than {MAX_DEPTH} levels deep")
        if type(node) in _HANDLERS:
            run = _HANDLERS[type(node)](self, node)
        elif type(node) in OPERATORS:
            run = OPERATORS[type(node)](self.build, node)
        else:
            why = "powers are not supported" if isinstance(node, nodes.Pow) else "it is not part of the language"
            raise SyntaxFault(f"{type(node).__name__.lower()}: {why}")
        self._depth -= 1
        return run

    # values

    def name(self, node: nodes.Name) -> Run:
        name = check_name(node.name, "the name")
        self.names.add(name)

        def run(scope: Scope) -> Any:
            return scope.values[name]

        return run

    def const(self, node: nodes.Const) -> Run:
        value = node.value
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                number(value)
            except Fault as fault:
                raise SyntaxFault(str(fault)) from None
        elif isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise SyntaxFault("a text contains half of a surrogate pair")
        return constant(value)

    def literal_list(self, node: nodes.List | nodes.Tuple) -> Run:
        runs = [self.build(item) for item in node.items]

        def run(scope: Scope) -> Any:
            scope.take_items(len(runs) + 1)
            return [given(run(scope)) for run in runs]

        return run

    def literal_object(self, node: nodes.Dict) -> Run:
        pairs = [(self.build(pair.key), self.build(pair.value)) for pair in node.items]

        def run(scope: Scope) -> Any:
            scope.take_items(2 * len(pairs) + 1)
            return {a_text(key_of(key(scope)), "a key"): given(value(scope)) for key, value in pairs}

        return run

    def attribute(self, node: nodes.Getattr) -> Run:
        key = check_name(node.attr, "the key")
        return self._member(node, constant(key), key)

    def subscript(self, node: nodes.Getitem) -> Run:
        if isinstance(node.arg, nodes.Slice):
            return self._slice(node, node.arg)
        fixed = node.arg.value if isinstance(node.arg, nodes.Const) else None
        if isinstance(fixed, str):
            check_name(fixed, "the key")
        return self._member(node, self.build(node.arg), fixed)

    def _member(self, node: nodes.Getattr | nodes.Getitem, key: Run, fixed: Any) -> Run:
        owner = self.build(node.node)
        what = describe(node)
        if not isinstance(fixed, str):
            return lambda scope: member(owner(scope), given(key(scope)), what)

        def run(scope: Scope) -> Any:
            value = owner(scope)
            try:
                return value[fixed]
            except (KeyError, TypeError):
                return value if type(value) is Missing else Missing(what)

        return run

    def _slice(self, node: nodes.Getitem, bounds: nodes.Slice) -> Run:
        owner = self.build(node.node)
        start, stop, step = (
            constant(None) if bound is None else self.build(bound) for bound in (bounds.start, bounds.stop, bounds.step)
        )
        what = describe(node.node)

        def run(scope: Scope) -> Any:
            return part(scope, owner(scope), slice(start(scope), stop(scope), step(scope)), what)

        return run

    # calls

    def call(self, node: nodes.Call) -> Run:
        no_spread(node)
        if isinstance(node.node, nodes.Name):
            name = node.node.name
            if name in QUANTIFIERS:
                return self._rounds(name, QUANTIFIERS[name], *read_items(name, node), node.args[1:])
            if name not in FUNCTIONS:
                return self._own_function(node, name)
            if name == "at":
                _check_path(node.args[1:2])
            return self._apply(name, FUNCTIONS[name], node)
        if isinstance(node.node, nodes.Getattr):
            name = check_name(node.node.attr, "the method")
            return self._apply(name, METHODS[known(name, METHODS, "text method")], node, node.node.node)
        raise SyntaxFault("only functions and text methods can be called")

    def _apply(self, name: str, function: Callable[..., Any], node: Any, *subject: nodes.Node) -> Run:
        """Return a closure that calls a function of the language; only a lenient one accepts undefined values."""
        check_arguments(name, function, len(subject) + len(node.args), [keyword.key for keyword in node.kwargs])
        args = [self.build(argument) for argument in (*subject, *node.args)]
        kwargs = {keyword.key: self.build(keyword.value) for keyword in node.kwargs}
        check: Callable[[Any], Any] = (lambda value: value) if function in LENIENT else given

        def run(scope: Scope) -> Any:
            scope.tick()
            values = [check(argument(scope)) for argument in args]
            return function(scope, *values, **{key: check(argument(scope)) for key, argument in kwargs.items()})

        def run_plain(scope: Scope) -> Any:
            scope.tick()
            return function(scope, check(args[0](scope)))

        return run_plain if len(args) == 1 and not kwargs else run

    def _rounds(self, name: str, quantifier: Quantifier, variable: str, items: Any, parts: Sequence[nodes.Node]) -> Run:
        source = self.build(items)
        outer, self.names = self.names, set()
        value, *condition = [self.build(part) for part in parts]
        self.names = outer | (self.names - {variable})
        self.bound.add(variable)
        return quantifier(find_rounds(name, variable, source), value, condition[0] if condition else None)

    def _loop(self, node: nodes.Filter) -> Run:
        """Return the closure of `map`, `select` and the like: of `each`, with arguments that are evaluated once."""
        args, once = [*node.args], dict[str, Run]()
        for place, argument in enumerate(args):
            if not isinstance(argument, nodes.Const | nodes.Name):
                name = f"{ITS} {place}"
                args[place], once[name] = nodes.Name(name, "load"), self.build(argument)
        loop = self._rounds(node.name, QUANTIFIERS["each"], ITS, node.node, as_each(node.name, args, node.kwargs))
        self.names -= once.keys()

        def run(scope: Scope) -> Any:
            values = {name: argument(scope) for name, argument in once.items()}
            with bound(scope.values, *values):
                scope.values.update(values)
                return loop(scope)

        return run if once else loop

    def _own_function(self, node: nodes.Call, name: str) -> Run:
        """Return the closure of a let with parameters, which stands among the names as `name/2`."""
        if node.kwargs:
            raise SyntaxFault(f"{name}: only the language's own functions take arguments by name")
        key = f"{check_name(name, 'the function')}/{len(node.args)}"
        self.names.add(key)
        args = [self.build(argument) for argument in node.args]

        def run(scope: Scope) -> Any:
            scope.tick()
            values = [given(argument(scope)) for argument in args]
            return scope.values[key](scope, values)

        return run

    def filtered(self, node: nodes.Filter) -> Run:
        no_spread(node)
        if node.node is None:
            raise SyntaxFault("a filter needs a value")
        if node.name in LOOPS:
            return self._loop(node)
        return self._apply(node.name, FILTERS[known(node.name, ALL_FILTERS, "filter")], node, node.node)

    def tested(self, node: nodes.Test) -> Run:
        no_spread(node)
        return self._apply(node.name, TESTS[known(node.name, TESTS, "test")], node, node.node)


def _check_path(paths: Sequence[nodes.Node]) -> None:
    for path in paths:
        if isinstance(path, nodes.Const | nodes.Concat | nodes.Compare | nodes.Not):
            wrote = f" [{path.value!r}]" if isinstance(path, nodes.Const) else ""
            raise SyntaxFault(f"at: a path is a list of keys and indexes: write{wrote or ' [...]'}")


_HANDLERS: dict[type, Callable[[_Compiler, Any], Run]] = {
    nodes.Name: _Compiler.name,
    nodes.Const: _Compiler.const,
    nodes.List: _Compiler.literal_list,
    nodes.Tuple: _Compiler.literal_list,
    nodes.Dict: _Compiler.literal_object,
    nodes.Getattr: _Compiler.attribute,
    nodes.Getitem: _Compiler.subscript,
    nodes.Call: _Compiler.call,
    nodes.Filter: _Compiler.filtered,
    nodes.Test: _Compiler.tested,
}
