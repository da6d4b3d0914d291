"""Lets: named values of a contract, evaluated lazily, once per call, on the state before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from graphlib import CycleError, TopologicalSorter
from typing import Any
from weakref import ref

from .language.examine import ANY, AnyShape
from .language.expression import Expression, Location, Scope
from .language.functions import FUNCTIONS, TAKEN
from .language.sandbox import bound
from .language.syntax import NAMED_HERE, is_name
from .language.template import ITEM, Template

RESERVED = frozenset(("args", "call", "before", "now", "state", "result", ITEM))

_HEAD = re.compile(r"(\w+)\(\s*(\w+(?:\s*,\s*\w+)*)\s*\)")

Lets = Mapping[str, Template]
"""The lets by name; one with two parameters as `name/2`."""


class Function(Template):
    """A let with parameters; like every let it sees the state before the call, and no local names of its caller."""

    parameters: Sequence[str]

    def __call__(self, scope: Scope, values: Sequence[Any]) -> Any:
        """Return the let's value for these arguments; it may be Missing. Raises EvaluationFailed."""
        outer, scope.values, scope.holes = (scope.values, scope.holes), scope.lets, None
        try:
            with bound(scope.lets, *self.parameters):
                scope.lets.update(zip(self.parameters, values, strict=True))
                return self.raw(scope)
        finally:
            scope.values, scope.holes = outer


def read_head(name: Any) -> tuple[Any, tuple[str, ...]]:
    """Return a let's key among the names, and its parameters: `price/2` and both for `price(flight, cabin)`."""
    found = _HEAD.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        return name, ()
    parameters = tuple(each.strip() for each in found[2].split(","))
    return f"{found[1]}/{len(parameters)}", parameters


def load_lets(
    own: Any, shared: Mapping[str, Any], whole: Location, loaded: Lets | None = None
) -> tuple[Lets, Location]:
    """Check the lets of one contract.

    Args:
        own: The contract's `let`.
        shared: The document's `x-contract-let`.
        whole: The contract, with the names that lets may use besides each other.
        loaded: The same lets, if they were loaded before; inferred shapes do not change them.

    Returns:
        The lets by name, and the contract's location with their names.

    Raises:
        ContractError: A name is taken, a value is invalid, or lets use one another in a cycle.
    """
    sources: dict[Any, tuple[Any, Location, tuple[str, ...]]] = {}
    if not isinstance(own, Mapping):
        raise whole.part("let").error(f"expected an object of names and values, got {type(own).__name__}")
    for above, members in (("x-contract-let", shared), ("let", own)):
        for name, value in members.items():
            place = whole.part(above, name)
            key, parameters = read_head(name)
            check_let_name(name if key == name else key.partition("/")[0], place, is_function=bool(parameters))
            if key in sources:
                raise place.error("the name is already used in x-contract-let; choose another")
            sources[key] = (value, place, parameters)
    names = {**whole.names, **dict.fromkeys(sources, ANY)}
    lets = loaded if loaded is not None else {key: _load_let(*source, names) for key, source in sources.items()}
    if loaded is None:
        _check_cycles(lets, {key: place for key, (_, place, _) in sources.items()})
    if whole.report is not None:
        for key, (value, place, parameters) in sources.items():
            names[key] = cache(partial(_infer_let, value, place, names, parameters))
    return lets, replace(whole, names=names)


def _infer_let(value: Any, place: Location, names: Mapping[str, Any], parameters: Sequence[str]) -> AnyShape:
    return Template(value, replace(place, names={**names, **dict.fromkeys(parameters, ANY)})).shape


def _load_let(value: Any, place: Location, parameters: tuple[str, ...], names: Mapping[str, Any]) -> Template:
    place = replace(place, names=names, report=None)
    if not parameters:
        return Template(value, place)
    for number, name in enumerate(parameters):
        check_let_name(name, place)
        if name in names or name in parameters[:number]:
            raise place.error(f"the name {name!r} is already taken; choose another")
    function = Function(value, place.with_names(**dict.fromkeys(parameters, ANY)))
    function.parameters = parameters
    return function


def check_let_name(name: Any, place: Location, *, is_function: bool = False) -> None:
    """Raise ContractError if expressions cannot use this name, or if it is already taken."""
    if not is_name(name) or name in NAMED_HERE:
        raise place.error(f"{name!r} is not a valid name")
    if name in RESERVED or name in (FUNCTIONS if is_function else TAKEN):
        raise place.error(f"{name!r} is reserved; choose another name")


def find_used_lets(expressions: Iterable[Expression], lets: Lets) -> set[str]:
    """Return the lets that expressions use, directly or through others."""
    found: set[str] = set()
    waiting = [name for expression in expressions for name in expression.names if name in lets]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(_find_references(lets, name))
    return found


def _find_references(lets: Lets, name: str) -> Iterator[str]:
    return (other for expression in lets[name].expressions for other in expression.names if other in lets)


def _check_cycles(lets: Lets, places: Mapping[str, Location]) -> None:
    try:
        TopologicalSorter({name: list(_find_references(lets, name)) for name in lets}).prepare()
    except CycleError as error:
        cycle = error.args[1][::-1]
        raise places[cycle[0]].error(f"lets use one another in a cycle: {' -> '.join(cycle)}") from None


class LetScope(dict[str, Any]):
    """The values of a scope, with lets that are evaluated on first use."""

    def __init__(self, values: Mapping[str, Any], resolve: Callable[[str], Any]) -> None:
        super().__init__(values)
        self._resolve = resolve

    def __missing__(self, name: str) -> Any:
        value = self[name] = self._resolve(name)
        return value


class LazyLets(dict[str, Any]):
    """The names at the start of a call, and its lets; each is evaluated at most once, on these names.

    The reference to the scope is weak, since cycles would leave the states of thousands of calls to the garbage
    collector.
    """

    def __init__(self, lets: Lets, scope: Scope) -> None:
        super().__init__(scope.values)
        self._lets = lets
        self._scope = ref(scope)
        scope.values = scope.lets = self

    def __missing__(self, name: str) -> Any:
        """Return a let's value; it may be Missing. Raises KeyError for an unknown name, EvaluationFailed."""
        let, scope = self._lets[name], self._scope()
        if isinstance(let, Function):
            return let
        if scope is None:
            raise KeyError(name)
        outer = scope.values, scope.place, scope.holes
        scope.values, scope.place, scope.holes = self, name, None  # expressions cannot use an OpenPart
        try:
            value = self[name] = let.raw(scope)
        finally:
            scope.values, scope.place, scope.holes = outer
        return value

    def names(self, **changed: Any) -> LetScope:
        """Return the names later in the call: the same lets, with the changed values."""
        names = LetScope(self, self.__getitem__)
        names.update(changed)
        return names
