"""Operators and loops of the contract language; costs are counted wherever a value could be large."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

from ...state import Json
from .sandbox import MAX_DEPTH, MAX_INT, Fault, Missing, Scope, a_list, a_number, a_text, kind, require, shown
from .syntax import Run

Operator = Callable[[Scope, Any, Any], Any]

NUMBERS = frozenset((int, float))
SCALARS = frozenset((str, int, float, bool, type(None)))
_TOKENS = frozenset((str, int))

_LONG = 200
"""Length from which a text is searched in a list item by item, with a check of the deadline at each."""


def number(value: int | float) -> int | float:
    """Return a result of arithmetic if it is within the limits. Raises Fault."""
    if isinstance(value, int):
        if -MAX_INT <= value <= MAX_INT:
            return value
        raise Fault("a whole number of more than 64 bits")
    if math.isfinite(value):
        return value
    raise Fault("a number that is not finite")


def add(scope: Scope, left: Any, right: Any) -> Json:
    """Add two numbers, two texts or two lists. Raises Fault."""
    if type(left) in NUMBERS and type(right) in NUMBERS:
        return number(left + right)
    if isinstance(left, str) and isinstance(right, str):
        scope.take_text(left, right)
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        scope.take_items(len(left) + len(right))
        return left + right
    raise Fault(f"+ cannot add {kind(require(right))} to {kind(require(left))}")


def _arithmetic(sign: str, compute: Callable[[Any, Any], Any]) -> Operator:
    # numbers only: texts are not repeated or formatted
    def apply(scope: Scope, left: Any, right: Any) -> int | float:
        return number(compute(a_number(left, sign), a_number(right, sign)))

    return apply


def equal(scope: Scope, left: Any, right: Any) -> bool:
    """Compare like `==`, but count costs: values with shared parts can take exponential time. Raises Fault."""
    if type(left) in SCALARS and type(right) in SCALARS:
        return bool(left == right)
    if left is right:
        return require(left) is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(
            _equal_member(scope, ours, theirs) for ours, theirs in zip(left, right, strict=True)
        )
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and all(
            key in right and _equal_member(scope, member, right[key]) for key, member in left.items()
        )
    require(left)
    require(right)
    return False


def _equal_member(scope: Scope, left: Any, right: Any) -> bool:
    scope.tick()
    return equal(scope, left, right)


def _ordering(sign: str, compare: Callable[[Any, Any], bool]) -> Operator:
    def apply(scope: Scope, left: Any, right: Any) -> bool:
        if (type(left) in NUMBERS and type(right) in NUMBERS) or (isinstance(left, str) and isinstance(right, str)):
            return compare(left, right)
        raise Fault(f"{sign} cannot compare {kind(require(left))} with {kind(require(right))}")

    return apply


def key_of(key: Any) -> Any:
    """Return a key of an object; integers become text, since identifiers are often numbers."""
    return str(key) if type(key) is int else key


def contains(scope: Scope, member: Any, container: Any) -> bool:
    """Compute `in`: a part of a text, an item of a list, a key of an object (integers become text).

    Raises:
        Fault: The container is of another type, or cannot contain the member.
    """
    if type(member) is str and type(container) in (str, dict):  # the most frequent case
        return member in container
    if isinstance(container, dict):
        key = key_of(require(member))
        return isinstance(key, str) and key in container
    if isinstance(container, str):
        if isinstance(member, str):
            return member in container
        raise Fault(f"the left side of `in` a text must be text, not {kind(require(member))}")
    if isinstance(container, list):
        if type(member) in SCALARS and not (type(member) is str and len(member) > _LONG):
            return member in container
        return any(_equal_member(scope, member, item) for item in container)
    raise Fault(f"`in` needs a text, a list or an object, not {kind(require(container))}")


OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: add, ast.Sub: _arithmetic("-", operator.sub), ast.Mult: _arithmetic("*", operator.mul),
    ast.Div: _arithmetic("/", operator.truediv), ast.FloorDiv: _arithmetic("//", operator.floordiv),
    ast.Mod: _arithmetic("%", operator.mod),
    ast.USub: lambda _, value: number(-a_number(value, "-")), ast.UAdd: lambda _, value: a_number(value, "+"),
    ast.Eq: equal, ast.NotEq: lambda scope, left, right: not equal(scope, left, right),
    ast.Lt: _ordering("<", operator.lt), ast.LtE: _ordering("<=", operator.le),
    ast.Gt: _ordering(">", operator.gt), ast.GtE: _ordering(">=", operator.ge),
    ast.In: contains, ast.NotIn: lambda scope, member, container: not contains(scope, member, container),
    ast.Is: lambda _, left, __: require(left) is None, ast.IsNot: lambda _, left, __: require(left) is not None,
}  # fmt: skip


def make_list(scope: Scope, *values: Json) -> list[Json]:
    scope.take_items(len(values) + 1)
    return list(values)


def make_object(scope: Scope, *pairs: Json) -> dict[str, Json]:
    """Return an object of alternating keys and values. Raises Fault."""
    scope.take_items(len(pairs) + 1)
    return {a_text(key_of(key), "a key"): value for key, value in zip(pairs[::2], pairs[1::2], strict=True)}


def member(value: Any, key: Any, what: str | ast.expr) -> Any:
    """Return `value.key` or `value[key]`: a key of an object, an index of a list or a text; Missing if it is absent.

    Missing stays Missing. `what` is the expression, for a message.
    """
    if type(value) is Missing:
        return value
    if isinstance(value, dict):
        key = key_of(key)
        return value[key] if isinstance(key, str) and key in value else Missing(what)
    if isinstance(value, list | str) and type(key) is int:
        return value[key] if -len(value) <= key < len(value) else Missing(what)
    return Missing(what)


def part(scope: Scope, value: Any, bounds: slice, what: str | ast.expr) -> Any:
    """Return `value[start:stop:step]` of a list or a text. Raises Fault."""
    if type(value) is Missing:
        return value
    for bound in (bounds.start, bounds.stop, bounds.step):
        if bound is not None and type(bound) is not int:
            raise Fault(f"a slice needs whole numbers, not {kind(require(bound))}")
    if bounds.step == 0:
        raise Fault("a slice cannot have the step 0")
    if isinstance(value, str):
        scope.take_text(value)
        return value[bounds]
    if isinstance(value, list):
        scope.take_items(len(value))
        return value[bounds]
    raise Fault(f"{shown(what)} needs a list or a text, not {kind(value)}")


Rounds = Callable[..., Iterator[None]]
"""Assigns names to each item in turn; called with a scope, and optionally a list that replaces the source."""


def find_rounds(what: str, names: Sequence[str], source: Run, test: Run | None = None) -> Rounds:
    """Return the loop over a list's items that pass the test, with names for the items or their parts."""
    alone = names[0] if len(names) == 1 else None

    def rounds(scope: Scope, own: list[Json] | None = None) -> Iterator[None]:
        items, values = a_list(source(scope), what) if own is None else own, scope.values
        outer = {name: values[name] for name in names if name in values}
        try:  # not `bound`: a context manager costs as much as three items
            for item in items:
                if perf_counter() > scope.deadline:
                    scope.late()
                if alone is not None:
                    values[alone] = item
                elif isinstance(item, list) and len(item) == len(names):
                    values.update(zip(names, item, strict=False))
                else:
                    raise Fault(f"a loop over {', '.join(names)} needs lists of {len(names)} values, not {kind(item)}")
                if test is None or test(scope):
                    yield
        finally:
            for name in names:
                values.pop(name, None)
            values.update(outer)

    return rounds


def nest(outer: Rounds, inner: Rounds) -> Rounds:
    """Return a loop that runs another loop in each of its rounds."""

    def rounds(scope: Scope) -> Iterator[None]:
        for _ in outer(scope):
            yield from inner(scope)

    return rounds


def splice(scope: Scope, path: Any, depth: int = 0) -> list[str | int]:
    """Return the tokens of a path, with lists flattened. Raises Fault for invalid tokens, and for more than 100."""
    scope.tick()
    tokens: list[str | int] = []
    if _TOKENS.issuperset(map(type, a_list(path, "a path"))) and len(path) <= MAX_DEPTH:
        return [*path]
    for token in path:
        if type(token) is str or type(token) is int:
            tokens.append(token)
        elif isinstance(token, list) and depth < MAX_DEPTH:
            tokens += splice(scope, token, depth + 1)
        else:
            raise Fault(f"a path needs texts and whole numbers, not {kind(require(token))}")
        if len(tokens) > MAX_DEPTH:
            raise Fault(f"a path of more than {MAX_DEPTH} tokens")
    return tokens
