"""Lets: named values of a contract, lazy, evaluated once a call, on the state before it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any
from weakref import ref

from jinja2 import nodes

from ..errors import ContractError
from .language.expression import Expression, Scope
from .language.functions import FUNCTIONS
from .language.place import Place
from .language.syntax import SyntaxFault, parse_expression
from .language.template import ITEM, Template

RESERVED = frozenset(("args", "call", "before", "now", "state", "result", ITEM))

MAX_CHAIN = 60
"""Lets that may need one another in a row: each takes a few levels of Python's stack."""

Lets = Mapping[str, Template]


def load_lets(own: Any, shared: Mapping[str, Any], *, where: str, base: Collection[str]) -> dict[str, Template]:
    """Check the lets of one contract.

    Args:
        own: What stands under the contract's `let`.
        shared: The document's `x-contract-let`.
        where: Document and tool, for messages.
        base: The names that lets may use besides each other.

    Raises:
        ContractError: A name is taken, a value is wrong, or lets need one another in a circle.
    """
    sources = {name: (value, Place(f"{where}: x-contract-let.{name}", frozenset())) for name, value in shared.items()}
    if not isinstance(own, Mapping):
        raise ContractError(f"{where}: let: must be an object of names and values, not {type(own).__name__}")
    for name, value in own.items():
        place = Place(f"{where}: let.{name}", frozenset())
        if name in shared:
            raise place.wrong("x-contract-let has a let of this name; choose another")
        sources[name] = (value, place)
    for name, (_, place) in sources.items():
        check_let_name(name, place)
    names = frozenset(base) | frozenset(sources)
    lets = {name: Template.load(value, Place(place.where, names)) for name, (value, place) in sources.items()}
    _refuse_circles(lets)
    return lets


def check_let_name(name: Any, place: Place) -> None:
    """Raises ContractError if expressions could not use this name, or would take it for something else."""
    try:
        usable = isinstance(name, str) and isinstance(parse_expression(name), nodes.Name) and "__" not in name
    except SyntaxFault:
        usable = False
    if not usable:
        raise place.wrong(f"{name!r} is no name that an expression can use")
    if name in RESERVED or name in FUNCTIONS:
        raise place.wrong(f"{name!r} is the name of something else; choose another")


def uses(expressions: Iterable[Expression], lets: Lets) -> set[str]:
    """The lets that expressions need, directly or through others."""
    found: set[str] = set()
    waiting = [name for expression in expressions for name in expression.names if name in lets]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(_needs(lets, name))
    return found


def _needs(lets: Lets, name: str) -> Iterator[str]:
    return (other for expression in lets[name].expressions for other in expression.names if other in lets)


def _refuse_circles(lets: Lets) -> None:
    depths: dict[str, int] = {}
    for start in lets:
        _depth(lets, start, (), depths)


def _depth(lets: Lets, name: str, path: tuple[str, ...], depths: dict[str, int]) -> int:
    """How many lets in a row this one needs, itself included; `depths` holds those that are known."""
    if name in path:
        circle = " -> ".join((*path[path.index(name) :], name))
        raise ContractError(f"{lets[name].where}: lets need one another in a circle: {circle}")
    if name not in depths:
        below = (_depth(lets, other, (*path, name), depths) for other in _needs(lets, name))
        depths[name] = 1 + max(below, default=0) if len(path) < MAX_CHAIN else MAX_CHAIN + 1
    if depths[name] > MAX_CHAIN:
        raise ContractError(f"{lets[name].where}: more than {MAX_CHAIN} lets that each need the next")
    return depths[name]


class Names(dict[str, Any]):
    """The values of a scope, with lets that are evaluated when they are first asked for."""

    __slots__ = ("_resolve",)

    def __init__(self, values: Mapping[str, Any], resolve: Callable[[str], Any]) -> None:
        super().__init__(values)
        self._resolve = resolve

    def __missing__(self, name: str) -> Any:
        value = self[name] = self._resolve(name)
        return value


class LazyLets(dict[str, Any]):
    """The names that a call begins with, and its lets: each is evaluated at most once, on these names.

    It does not hold its scope, which holds it: thousands of calls would leave as many states to the garbage collector.
    """

    __slots__ = ("_lets", "_scope")

    def __init__(self, lets: Lets, scope: Scope) -> None:
        super().__init__(scope.values)
        self._lets = lets
        self._scope = ref(scope)
        scope.values = self

    def __missing__(self, name: str) -> Any:
        """A let's value; it may be Missing. Raises KeyError for a name that is no let, EvaluationFailed."""
        let, scope = self._lets[name], self._scope()
        if scope is None:
            raise KeyError(name)
        outer = scope.values, scope.place
        scope.values, scope.place = self, name
        try:
            value = self[name] = let.raw(scope)
        finally:
            scope.values, scope.place = outer
        return value

    def names(self, **changed: Any) -> Names:
        """The names of a later moment of the call: the same lets, and other values where things have changed."""
        return Names({**self, **changed}, self.__getitem__)
