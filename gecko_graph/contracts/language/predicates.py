"""The tests of the contract language, used after `is`: Jinja2's, and three for texts.

`defined undefined` · `none boolean true false integer float number string mapping sequence iterable` ·
`eq ne lt le gt ge` and their signs · `in containing startingwith endingwith` · `odd even divisibleby` · `lower upper`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .functions import endswith, startswith
from .operators import COMPARISONS, contains
from .sandbox import Fault, Missing, Scope, a_text, kind

Predicate = Callable[..., bool]


def _defined(_: Scope, value: Any) -> bool:
    return type(value) is not Missing


def _undefined(_: Scope, value: Any) -> bool:
    return type(value) is Missing


def _of(*types: type) -> Predicate:
    def test(_: Scope, value: Any) -> bool:
        return type(value) in types

    return test


def _is(wanted: bool) -> Predicate:
    def test(_: Scope, value: Any) -> bool:
        return value is wanted

    return test


def _comparison(name: str) -> Predicate:
    compare = COMPARISONS[name]

    def test(scope: Scope, value: Any, other: Any) -> bool:
        return bool(compare(scope, value, other))

    return test


def _whole(value: Any, what: str) -> int:
    if type(value) is int:
        return value
    raise Fault(f"{what} needs a whole number, not {kind(value)}")


def _odd(_: Scope, value: Any) -> bool:
    return _whole(value, "odd") % 2 == 1


def _even(_: Scope, value: Any) -> bool:
    return _whole(value, "even") % 2 == 0


def _divisibleby(_: Scope, value: Any, num: Any) -> bool:
    return _whole(value, "divisibleby") % _whole(num, "divisibleby") == 0


def _containing(scope: Scope, value: Any, part: Any) -> bool:
    return contains(scope, part, value)


def _lower(_: Scope, value: Any) -> bool:
    return a_text(value, "lower").islower()


def _upper(_: Scope, value: Any) -> bool:
    return a_text(value, "upper").isupper()


_COMPARED: Final = {
    "eq": ("eq", "equalto", "=="),
    "ne": ("ne", "!="),
    "lt": ("lt", "lessthan", "<"),
    "lteq": ("le", "<="),
    "gt": ("gt", "greaterthan", ">"),
    "gteq": ("ge", ">="),
    "in": ("in",),
}

TESTS: dict[str, Predicate] = {
    "defined": _defined,
    "undefined": _undefined,
    "none": _of(type(None)),
    "boolean": _of(bool),
    "true": _is(True),
    "false": _is(False),
    "integer": _of(int),
    "float": _of(float),
    "number": _of(int, float, bool),
    "string": _of(str),
    "mapping": _of(dict),
    "sequence": _of(list, str, dict),
    "iterable": _of(list, str, dict),
    "odd": _odd,
    "even": _even,
    "divisibleby": _divisibleby,
    "containing": _containing,
    "startingwith": startswith,
    "endingwith": endswith,
    "lower": _lower,
    "upper": _upper,
    **{alias: _comparison(name) for name, aliases in _COMPARED.items() for alias in aliases},
}

TAKES_MISSING: Final = frozenset(("defined", "undefined"))
"""Tests that accept undefined values."""
