"""Closures for the nodes of the contract language, run on a Scope; they run most often, so they are kept short."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from .builtin import BUILTINS, KEYED, METHODS, TYPES
from .former import NAMES, explain_is, explain_loop, explain_node
from .functions import FUNCTIONS
from .operators import ARITHMETIC, COMPARISONS, Rounds, find_rounds, key_of, member, number, part
from .sandbox import Fault, Missing, Scope, a_list, a_number, a_text, given, join, text
from .syntax import (
    Run,
    StatePath,
    SyntaxFault,
    check_arguments,
    check_name,
    describe,
    known,
    names_of,
    paths_in,
)

Made = TypeVar("Made")

LENIENT = frozenset((FUNCTIONS["at"], BUILTINS["default"], BUILTINS["defined"]))
"""What accepts undefined values."""

_QUANTIFIERS: dict[str, Callable[[Any], bool]] = {"any": any, "all": all}


@dataclass(frozen=True)
class Code:
    """A checked source: its closure, its parts, and the names in it; `bound` are those of items."""

    run: Run
    parts: Sequence[str | ast.expr]
    names: frozenset[str]
    bound: frozenset[str]

    @cached_property
    def paths(self) -> frozenset[StatePath]:
        """The paths of the state that it reads."""
        return paths_in(self.parts)


def compile_parts(parts: Sequence[str | ast.expr]) -> Code:
    """Return the closure of a text: the value of a single expression, or the joined parts. Raises SyntaxFault."""
    compiler = _Compiler()
    runs = [constant(part) if isinstance(part, str) else compiler.build(part) for part in parts]
    run = runs[0] if len(runs) == 1 else _joined(runs)
    return Code(run, parts, frozenset(compiler.names), frozenset(compiler.bound))


def constant(value: Any) -> Run:
    """Return a closure with a constant value."""
    return lambda _: value


def _joined(runs: Sequence[Run]) -> Run:
    return lambda scope: join(scope, [text(scope, given(run(scope))) for run in runs])


class _Compiler:
    def __init__(self) -> None:
        self.names: set[str] = set()
        self.bound: set[str] = set()

    def build(self, node: ast.expr) -> Run:
        """Return the closure of a node, by its exact type. Raises SyntaxFault."""
        if (handler := _HANDLERS.get(type(node))) is None:
            raise SyntaxFault(explain_node(node))
        return handler(self, node)

    # values

    def name(self, node: ast.Name) -> Run:
        name = check_name(node.id, "the name")
        if name in NAMES:
            raise SyntaxFault(f"`{name}` is not a name here: write `{NAMES[name]}`")
        self.names.add(name)

        def run(scope: Scope) -> Any:
            return scope.values[name]

        return run

    def const(self, node: ast.Constant) -> Run:
        value = node.value
        if not isinstance(value, str | int | float | None):
            raise SyntaxFault(f"{type(value).__name__} is not a JSON value")
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                number(value)
            except Fault as fault:
                raise SyntaxFault(str(fault)) from None
        elif isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise SyntaxFault("a text contains half of a surrogate pair")
        return constant(value)

    def literal_list(self, node: ast.List | ast.Tuple) -> Run:
        runs = [self.build(item) for item in node.elts]

        def run(scope: Scope) -> Any:
            scope.take_items(len(runs) + 1)
            return [given(run(scope)) for run in runs]

        return run

    def literal_object(self, node: ast.Dict) -> Run:
        if None in node.keys:
            raise SyntaxFault("objects cannot be spread with **")
        pairs = [(self.build(key), self.build(value)) for key, value in zip(node.keys, node.values, strict=True) if key]

        def run(scope: Scope) -> Any:
            scope.take_items(2 * len(pairs) + 1)
            return {a_text(key_of(key(scope)), "a key"): given(value(scope)) for key, value in pairs}

        return run

    def formatted(self, node: ast.JoinedStr) -> Run:
        runs: list[Run] = []
        for each in node.values:
            if isinstance(each, ast.FormattedValue):
                if each.conversion >= 0 or each.format_spec is not None:
                    raise SyntaxFault("a text's holes have no format: write {fixed(x, 2)}")
                each = each.value
            runs.append(self.build(each))
        return _joined(runs)

    def attribute(self, node: ast.Attribute) -> Run:
        return self._member(node, check_name(node.attr, "the key"))

    def subscript(self, node: ast.Subscript) -> Run:
        if isinstance(node.slice, ast.Slice):
            return self._slice(node, node.slice)
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return self._member(node, check_name(node.slice.value, "the key"))
        owner, key, what = self.build(node.value), self.build(node.slice), describe(node)
        return lambda scope: member(owner(scope), given(key(scope)), what)

    def _member(self, node: ast.Attribute | ast.Subscript, key: str) -> Run:
        owner, what = self.build(node.value), describe(node)

        def run(scope: Scope) -> Any:
            value = owner(scope)
            try:
                return value[key]
            except (KeyError, TypeError):
                return value if type(value) is Missing else Missing(what)

        return run

    def _slice(self, node: ast.Subscript, bounds: ast.Slice) -> Run:
        owner = self.build(node.value)
        start, stop, step = (
            constant(None) if bound is None else self.build(bound)
            for bound in (bounds.lower, bounds.upper, bounds.step)
        )
        what = describe(node.value)

        def run(scope: Scope) -> Any:
            return part(scope, owner(scope), slice(start(scope), stop(scope), step(scope)), what)

        return run

    # operators

    def logic(self, node: ast.BoolOp) -> Run:
        *runs, last = [self.build(value) for value in node.values]
        first = runs[0]
        if len(runs) == 1:
            if isinstance(node.op, ast.And):
                return lambda scope: first(scope) and last(scope)
            return lambda scope: first(scope) or last(scope)
        ends = isinstance(node.op, ast.Or)

        def run(scope: Scope) -> Any:
            for each in runs:
                value = each(scope)
                if bool(value) is ends:
                    return value
            return last(scope)

        return run

    def unary(self, node: ast.UnaryOp) -> Run:
        inner = self.build(node.operand)
        match node.op:
            case ast.Not():
                return lambda scope: not inner(scope)
            case ast.USub():
                return lambda scope: number(-a_number(inner(scope), "-"))
            case ast.UAdd():
                return lambda scope: a_number(inner(scope), "+")
        raise SyntaxFault(explain_node(node))

    def arithmetic(self, node: ast.BinOp) -> Run:
        if (apply := ARITHMETIC.get(type(node.op))) is None:
            raise SyntaxFault(explain_node(node))
        left, right = self.build(node.left), self.build(node.right)

        def run(scope: Scope) -> Any:
            scope.tick()
            return apply(scope, left(scope), right(scope))

        return run

    def comparison(self, node: ast.Compare) -> Run:
        sides = [node.left, *node.comparators]
        for op, left, right in zip(node.ops, sides, sides[1:], strict=False):
            if isinstance(op, ast.Is | ast.IsNot) and getattr(right, "value", right) is not None:
                raise SyntaxFault(explain_is(left, isinstance(op, ast.IsNot), right))
        first = self.build(node.left)
        rest = [(COMPARISONS[type(op)], self.build(side)) for op, side in zip(node.ops, sides[1:], strict=True)]
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

    def conditional(self, node: ast.IfExp) -> Run:
        condition, then, otherwise = self.build(node.test), self.build(node.body), self.build(node.orelse)
        return lambda scope: then(scope) if condition(scope) else otherwise(scope)

    # loops

    def listed(self, node: ast.ListComp | ast.GeneratorExp) -> Run:
        rounds, element = self._rounds(node.generators, lambda: self.build(node.elt))

        def run(scope: Scope) -> Any:
            found = [given(element(scope)) for _ in rounds(scope)]
            scope.take_items(len(found))
            return found

        return run

    def mapped(self, node: ast.DictComp) -> Run:
        rounds, (key, value) = self._rounds(node.generators, lambda: (self.build(node.key), self.build(node.value)))

        def run(scope: Scope) -> Any:
            found = {a_text(key_of(key(scope)), "a key"): given(value(scope)) for _ in rounds(scope)}
            scope.take_items(2 * len(found))
            return found

        return run

    def _rounds(self, clauses: Sequence[ast.comprehension], then: Callable[[], Made]) -> tuple[Rounds, Made]:
        """Return the loop of a comprehension's clauses, and what `then` makes with their names."""
        clause, *more = clauses
        if clause.is_async:
            raise SyntaxFault("async is not part of the language")
        source, names = self.build(clause.iter), names_of(clause.target)
        outer, self.names = self.names, set()
        tests = [self.build(test) for test in clause.ifs]
        inner, made = self._rounds(more, then) if more else (None, then())
        self.names = outer | self.names.difference(names)
        self.bound.update(names)
        return find_rounds("a loop", names, source, tests, inner), made

    # calls

    def call(self, node: ast.Call) -> Run:
        if any(isinstance(argument, ast.Starred) for argument in node.args) or not all(k.arg for k in node.keywords):
            raise SyntaxFault("arguments cannot be spread with * or **")
        if isinstance(node.func, ast.Attribute):
            name = check_name(node.func.attr, "the method")
            return self._apply(name, METHODS[known(name, METHODS, "method")], node, node.func.value)
        if not isinstance(node.func, ast.Name):
            raise SyntaxFault("only functions and methods can be called")
        name = node.func.id
        if why := explain_loop(name, node):
            raise SyntaxFault(why)
        if name == "isinstance":
            return self._instance(node)
        if name in _QUANTIFIERS and isinstance(node.args[:1] and node.args[0], ast.GeneratorExp):
            return self._quantified(name, node)
        if name in KEYED and any(keyword.arg == "key" for keyword in node.keywords):
            return self._keyed(name, node)
        if name == "at":
            _check_path(node.args[1:2])
        return self._apply(name, FUNCTIONS[name], node) if name in FUNCTIONS else self._own_function(node, name)

    def _apply(self, name: str, function: Callable[..., Any], node: ast.Call, *subject: ast.expr) -> Run:
        """Return a closure that calls a function of the language; only a lenient one accepts undefined values."""
        check_arguments(name, function, len(subject) + len(node.args), [str(keyword.arg) for keyword in node.keywords])
        args = [self.build(argument) for argument in (*subject, *node.args)]
        kwargs = {str(keyword.arg): self.build(keyword.value) for keyword in node.keywords}
        check: Callable[[Any], Any] = (lambda value: value) if function in LENIENT else given

        def run(scope: Scope) -> Any:
            scope.tick()
            values = [check(argument(scope)) for argument in args]
            return function(scope, *values, **{key: check(argument(scope)) for key, argument in kwargs.items()})

        def run_plain(scope: Scope) -> Any:
            scope.tick()
            return function(scope, check(args[0](scope)))

        return run_plain if len(args) == 1 and not kwargs else run

    def _instance(self, node: ast.Call) -> Run:
        kinds = node.args[1] if len(node.args) == 2 and not node.keywords else None
        named = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
        names = [one.id for one in named if isinstance(one, ast.Name) and one.id in TYPES]
        if not names or len(names) < len(named):
            raise SyntaxFault(f"isinstance: write isinstance(x, TYPE), of {', '.join(TYPES)}, or several: (int, float)")
        types = frozenset(kind for name in names for kind in TYPES[name])
        value = self.build(node.args[0])
        return lambda scope: type(given(value(scope))) in types

    def _quantified(self, name: str, node: ast.Call) -> Run:
        loop: Any = node.args[0]
        check_arguments(name, FUNCTIONS[name], len(node.args), [str(keyword.arg) for keyword in node.keywords])
        rounds, condition = self._rounds(loop.generators, lambda: self.build(loop.elt))
        decide = _QUANTIFIERS[name]
        return lambda scope: decide(given(condition(scope)) for _ in rounds(scope))

    def _keyed(self, name: str, node: ast.Call) -> Run:
        """Return the closure of `sorted(x, key=lambda one: ...)`, and of min and max."""
        key = next(keyword.value for keyword in node.keywords if keyword.arg == "key")
        others = {str(keyword.arg): self.build(keyword.value) for keyword in node.keywords if keyword.arg != "key"}
        check_arguments(name, FUNCTIONS[name], len(node.args), others)
        named = ast.unparse(key.args) if isinstance(key, ast.Lambda) else ""
        if not isinstance(key, ast.Lambda) or not named.isidentifier() or len(node.args) != 1:
            raise SyntaxFault(f"{name}: write {name}(LIST, key=lambda one: one.field)")
        items = self.build(node.args[0])
        clause = ast.comprehension(ast.Name(named), ast.List([]), [], 0)
        rounds, value = self._rounds([clause], lambda: self.build(key.body))
        function = FUNCTIONS[name]

        def run(scope: Scope) -> Any:
            scope.tick()
            values = a_list(items(scope), name)
            keys = [given(value(scope)) for _ in rounds(scope, values)]
            return function(scope, values, key=keys, **{key: given(other(scope)) for key, other in others.items()})

        return run

    def _own_function(self, node: ast.Call, name: str) -> Run:
        """Return the closure of a let with parameters, which stands among the names as `name/2`."""
        if node.keywords:
            raise SyntaxFault(f"{name}: only the language's own functions take arguments by name")
        key = f"{check_name(name, 'the function')}/{len(node.args)}"
        self.names.add(key)
        args = [self.build(argument) for argument in node.args]

        def run(scope: Scope) -> Any:
            scope.tick()
            values = [given(argument(scope)) for argument in args]
            return scope.values[key](scope, values)

        return run


def _check_path(paths: Sequence[ast.expr]) -> None:
    for path in paths:
        if isinstance(path, ast.Constant | ast.JoinedStr | ast.Compare):
            wrote = f" [{path.value!r}]" if isinstance(path, ast.Constant) else ""
            raise SyntaxFault(f"at: a path is a list of keys and indexes: write{wrote or ' [...]'}")


_HANDLERS: dict[type, Callable[[_Compiler, Any], Run]] = {
    ast.Name: _Compiler.name,
    ast.Constant: _Compiler.const,
    ast.List: _Compiler.literal_list,
    ast.Tuple: _Compiler.literal_list,
    ast.Dict: _Compiler.literal_object,
    ast.JoinedStr: _Compiler.formatted,
    ast.Attribute: _Compiler.attribute,
    ast.Subscript: _Compiler.subscript,
    ast.BoolOp: _Compiler.logic,
    ast.UnaryOp: _Compiler.unary,
    ast.BinOp: _Compiler.arithmetic,
    ast.Compare: _Compiler.comparison,
    ast.IfExp: _Compiler.conditional,
    ast.ListComp: _Compiler.listed,
    ast.GeneratorExp: _Compiler.listed,
    ast.DictComp: _Compiler.mapped,
    ast.Call: _Compiler.call,
}
"""The whitelist: what else `ast` knows is refused at load."""
