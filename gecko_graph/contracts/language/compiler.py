"""Compile nodes of the contract language to closures that run on a Scope; they are the hot path, so they are short."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any, TypeVar

from ...errors import did_you_mean
from .builtin import KEYED, METHODS, TYPES
from .functions import FUNCTIONS
from .operators import (
    NUMBERS,
    OPERATORS,
    Rounds,
    find_rounds,
    key_of,
    make_list,
    make_object,
    member,
    nest,
    number,
    part,
)
from .sandbox import Fault, Missing, Scope, a_list, a_text, concatenate, require
from .syntax import Run, StatePath, SyntaxFault, check_arguments, explain_node, names_of, paths_in

Made = TypeVar("Made")

LENIENT = ("at", "default", "defined")
"""Functions that accept undefined values."""

QUANTIFIERS = {"any": True, "all": False}
"""Quantifier to the truth value of an item that decides it."""


@dataclass(frozen=True)
class Code:
    """A checked source: its closure, its parts, and the names in it; `bound` are loop variables."""

    run: Run
    parts: Sequence[str | ast.expr]
    names: frozenset[str]
    bound: frozenset[str]

    @cached_property
    def paths(self) -> frozenset[StatePath]:
        return paths_in(self.parts)


def compile_parts(parts: Sequence[str | ast.expr]) -> Code:
    """Return the closure of a text: the value of a single expression, or the joined parts. Raises SyntaxFault."""
    compiler = _Compiler()
    nodes = [ast.Constant(part) if isinstance(part, str) else part for part in parts]
    run = compiler.build(nodes[0]) if len(nodes) == 1 else compiler.apply(concatenate, nodes)
    return Code(run, parts, frozenset(compiler.names), frozenset(compiler.bound))


def constant(value: Any) -> Run:
    return lambda _: value


def _chain(runs: Sequence[Run], *, is_or: bool = False) -> Run:
    """Return the closure of values joined by `and` or `or`."""
    first, *others = runs
    if len(others) == 1:
        second = others[0]
        return (
            (lambda scope: first(scope) or second(scope)) if is_or else (lambda scope: first(scope) and second(scope))
        )

    def run(scope: Scope) -> Any:
        value = first(scope)
        for other in others:
            if bool(value) is is_or:
                break
            value = other(scope)
        return value

    return run


class _Compiler:
    def __init__(self) -> None:
        self.names: set[str] = set()
        self.bound: set[str] = set()

    def build(self, node: ast.expr) -> Run:
        """Return the closure of a node, by its exact type. Raises SyntaxFault."""
        if (handler := _HANDLERS.get(type(node))) is None:
            raise SyntaxFault(explain_node(node, FUNCTIONS))
        return handler(self, node)

    def each(self, nodes: Sequence[ast.expr]) -> list[Run]:
        return [self.build(node) for node in nodes]

    def apply(
        self,
        function: Callable[..., Any],
        nodes: Sequence[ast.expr],
        keywords: Sequence[ast.keyword] = (),
        *,
        is_lenient: bool = False,
    ) -> Run:
        """Return the closure that calls a function on nodes; only lenient functions get undefined values."""
        args, named = self.each(nodes), {str(keyword.arg): self.build(keyword.value) for keyword in keywords}
        first, last = (args[0], args[-1]) if args else (constant(None), constant(None))
        known = nodes[-1].value if nodes and isinstance(nodes[-1], ast.Constant) else None
        check: Callable[[Any], Any] = (lambda value: value) if is_lenient else require

        def run(scope: Scope) -> Any:
            if perf_counter() > scope.deadline:  # inline: a call would cost as much as most operators
                scope.late()
            values = [value if type(value := each(scope)) is not Missing else check(value) for each in args]
            if not named:
                return function(scope, *values)
            return function(scope, *values, **{name: check(argument(scope)) for name, argument in named.items()})

        def run_one(scope: Scope) -> Any:
            if perf_counter() > scope.deadline:
                scope.late()
            return function(scope, value if type(value := first(scope)) is not Missing else check(value))

        def run_two(scope: Scope) -> Any:  # usually an operator
            if perf_counter() > scope.deadline:
                scope.late()
            return function(scope, first(scope), last(scope) if known is None else known)

        return {1: run_one, 2: run_two if is_lenient else run}.get(0 if named else len(args), run)

    # values and operators

    def name(self, node: ast.Name) -> Run:
        name = node.id
        self.names.add(name)
        return lambda scope: scope.values[name]

    def const(self, node: ast.Constant) -> Run:
        value = node.value
        if not isinstance(value, str | int | float | None):
            raise SyntaxFault(f"{type(value).__name__} is not a JSON value")
        if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise SyntaxFault("a text contains half of a surrogate pair")
        try:
            return constant(number(value) if type(value) in NUMBERS else value)  # type: ignore[arg-type]
        except Fault as fault:
            raise SyntaxFault(str(fault)) from None

    def literal_object(self, node: ast.Dict) -> Run:
        pairs = [each for pair in zip(node.keys, node.values, strict=True) for each in pair if each is not None]
        if len(pairs) < 2 * len(node.keys):
            raise SyntaxFault("objects cannot be spread with **")
        return self.apply(make_object, pairs)

    def formatted(self, node: ast.JoinedStr) -> Run:
        holes = [each for each in node.values if isinstance(each, ast.FormattedValue)]
        if any(hole.conversion >= 0 or hole.format_spec for hole in holes):
            raise SyntaxFault("a text's holes have no format: write {fixed(x, 2)}")
        parts = [each.value if isinstance(each, ast.FormattedValue) else each for each in node.values]
        return self.apply(concatenate, parts)

    def part(self, node: ast.Attribute | ast.Subscript) -> Run:
        place = ast.Constant(node.attr) if isinstance(node, ast.Attribute) else node.slice
        if isinstance(place, ast.Slice):
            bounds = [bound or ast.Constant(None) for bound in (place.lower, place.upper, place.step)]
            return self.apply(
                lambda scope, value, *ends: part(scope, value, slice(*ends), node),
                [node.value, *bounds],
                is_lenient=True,
            )
        if not (isinstance(place, ast.Constant) and isinstance(place.value, str)):
            return self.apply(
                lambda _, value, key: member(value, require(key), node), [node.value, place], is_lenient=True
            )
        owner, key = self.build(node.value), place.value
        name = node.value.id if isinstance(node.value, ast.Name) else None

        def run(scope: Scope) -> Any:
            value = owner(scope) if name is None else scope.values[name]  # usually a plain name
            try:
                return value[key]
            except (KeyError, TypeError):
                return value if type(value) is Missing else Missing(node)

        return run

    def unary(self, node: ast.UnaryOp) -> Run:
        if isinstance(node.op, ast.Not):
            inner = self.build(node.operand)
            return lambda scope: not inner(scope)
        return self._operate(node, node.operand)

    def arithmetic(self, node: ast.BinOp) -> Run:
        return self._operate(node, node.left, node.right)

    def _operate(self, node: ast.UnaryOp | ast.BinOp, *operands: ast.expr) -> Run:
        if (function := OPERATORS.get(type(node.op))) is None:
            raise SyntaxFault(explain_node(node, FUNCTIONS))
        return self.apply(function, operands, is_lenient=True)

    def comparison(self, node: ast.Compare) -> Run:
        runs, left = list[Run](), node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, ast.Is | ast.IsNot) and getattr(right, "value", right) is not None:
                raise SyntaxFault("`is` compares with None alone: write ==, or a function such as isinstance(x, str)")
            runs.append(self.apply(OPERATORS[type(op)], [left, right], is_lenient=True))
            left = right
        return runs[0] if len(runs) == 1 else _chain(runs)

    def conditional(self, node: ast.IfExp) -> Run:
        condition, then, otherwise = self.each([node.test, node.body, node.orelse])
        return lambda scope: then(scope) if condition(scope) else otherwise(scope)

    # loops

    def listed(self, node: ast.ListComp | ast.GeneratorExp) -> Run:
        rounds, element = self._rounds(node.generators, lambda: self.build(node.elt))

        def run(scope: Scope) -> Any:
            found = [require(element(scope)) for _ in rounds(scope)]
            scope.take_items(len(found))
            return found

        return run

    def mapped(self, node: ast.DictComp) -> Run:
        rounds, (key, value) = self._rounds(node.generators, lambda: self.each([node.key, node.value]))

        def run(scope: Scope) -> Any:
            found = {a_text(key_of(key(scope)), "a key"): require(value(scope)) for _ in rounds(scope)}
            scope.take_items(2 * len(found))
            return found

        return run

    def _rounds(self, clauses: Sequence[ast.comprehension], then: Callable[[], Made]) -> tuple[Rounds, Made]:
        """Return the loop of a comprehension's clauses, and the results of `then` with their names."""
        clause, *more = clauses
        if clause.is_async:
            raise SyntaxFault("async is not part of the language")
        source, names = self.build(clause.iter), names_of(clause.target)
        outer, self.names = self.names, set()
        test = _chain(self.each(clause.ifs)) if clause.ifs else None
        inner, made = self._rounds(more, then) if more else (None, then())
        self.names = outer | self.names.difference(names)
        self.bound.update(names)
        rounds = find_rounds("a loop", names, source, test)
        return nest(rounds, inner) if inner else rounds, made

    # calls

    def call(self, node: ast.Call) -> Run:
        if any(isinstance(argument, ast.Starred) for argument in node.args) or not all(k.arg for k in node.keywords):
            raise SyntaxFault("arguments cannot be spread with * or **")
        if isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name not in METHODS:
                raise SyntaxFault(f"unknown method {name[:40]!r}{did_you_mean(name, METHODS)}")
            return self._checked(name, METHODS[name], [node.func.value, *node.args], node.keywords)
        if not isinstance(node.func, ast.Name):
            raise SyntaxFault("only functions and methods can be called")
        name = node.func.id
        return _SPECIAL.get(name, _Compiler._function)(self, name, node)

    def _function(self, name: str, node: ast.Call) -> Run:
        if name in FUNCTIONS:
            return self._checked(name, FUNCTIONS[name], node.args, node.keywords)
        if node.keywords:
            raise SyntaxFault(f"{name}: only the language's own functions take arguments by name")
        key = f"{name}/{len(node.args)}"  # a let with parameters
        self.names.add(key)
        return self.apply(lambda scope, *values: scope.values[key](scope, values), node.args)

    def _checked(
        self, name: str, function: Callable[..., Any], nodes: Sequence[ast.expr], keywords: Sequence[ast.keyword]
    ) -> Run:
        check_arguments(name, function, len(nodes), [str(keyword.arg) for keyword in keywords])
        return self.apply(function, nodes, keywords, is_lenient=name in LENIENT)

    def _at(self, name: str, node: ast.Call) -> Run:
        for path in node.args[1:2]:
            if isinstance(path, ast.Constant | ast.JoinedStr | ast.Compare):
                wrote = f"[{path.value!r}]" if isinstance(path, ast.Constant) else "[...]"
                raise SyntaxFault(f"at: a path is a list of keys and indexes: write {wrote}")
        return self._function(name, node)

    def _instance(self, name: str, node: ast.Call) -> Run:
        kinds = node.args[1] if len(node.args) == 2 and not node.keywords else None
        named = [getattr(one, "id", "") for one in (kinds.elts if isinstance(kinds, ast.Tuple) else [kinds])]
        if not named or not TYPES.keys() >= {*named}:
            raise SyntaxFault(f"{name}: write {name}(x, TYPE), of {', '.join(TYPES)}, or several: (int, float)")
        types = frozenset(kind for one in named for kind in TYPES[one])
        return self.apply(lambda _, value: type(value) in types, node.args[:1])

    def _quantified(self, name: str, node: ast.Call) -> Run:
        loop, decides = node.args[0] if len(node.args) == 1 else None, QUANTIFIERS[name]
        if not isinstance(loop, ast.GeneratorExp) or node.keywords:
            return self._function(name, node)
        rounds, condition = self._rounds(loop.generators, lambda: self.build(loop.elt))

        def run(scope: Scope) -> bool:
            for _ in rounds(scope):
                if bool(condition(scope)) is decides:
                    return decides
            return not decides

        return run

    def _keyed(self, name: str, node: ast.Call) -> Run:
        """Return the closure of `sorted(x, key=lambda one: ...)`, and of min and max."""
        check_arguments(name, FUNCTIONS[name], len(node.args), [str(keyword.arg) for keyword in node.keywords])
        others = [keyword for keyword in node.keywords if keyword.arg != "key"]
        if len(others) == len(node.keywords):
            return self._function(name, node)
        key = next(keyword.value for keyword in node.keywords if keyword.arg == "key")
        named = ast.unparse(key.args) if isinstance(key, ast.Lambda) else ""
        if not isinstance(key, ast.Lambda) or not named.isidentifier() or len(node.args) != 1:
            raise SyntaxFault(f"{name}: write {name}(LIST, key=lambda one: one.field)")
        clause = ast.comprehension(ast.Name(named), ast.List([]), [], 0)
        rounds, value = self._rounds([clause], lambda: self.build(key.body))

        def choose(scope: Scope, values: Any, **more: Any) -> Any:
            keys = [require(value(scope)) for _ in rounds(scope, a_list(values, name))]
            return FUNCTIONS[name](scope, values, key=keys, **more)

        return self.apply(choose, node.args, others)


_SPECIAL: dict[str, Callable[[_Compiler, str, ast.Call], Run]] = {
    "at": _Compiler._at, "isinstance": _Compiler._instance,
    **dict.fromkeys(QUANTIFIERS, _Compiler._quantified), **dict.fromkeys(KEYED, _Compiler._keyed),
}  # fmt: skip

_HANDLERS: dict[type, Callable[[_Compiler, Any], Run]] = {
    ast.Name: _Compiler.name, ast.Constant: _Compiler.const, ast.JoinedStr: _Compiler.formatted,
    **dict.fromkeys((ast.List, ast.Tuple), lambda self, node: self.apply(make_list, node.elts)),
    ast.Dict: _Compiler.literal_object, ast.UnaryOp: _Compiler.unary, ast.BinOp: _Compiler.arithmetic,
    ast.Attribute: _Compiler.part, ast.Subscript: _Compiler.part, ast.Call: _Compiler.call,
    ast.BoolOp: lambda self, node: _chain(self.each(node.values), is_or=isinstance(node.op, ast.Or)),
    ast.Compare: _Compiler.comparison, ast.IfExp: _Compiler.conditional,
    ast.ListComp: _Compiler.listed, ast.GeneratorExp: _Compiler.listed, ast.DictComp: _Compiler.mapped,
}  # fmt: skip
"""The whitelist: any other node of `ast` is refused at load."""
