"""The tests of the contract language, used after `is`: Jinja2's, and three for texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .functions import endswith, startswith
from .operators import COMPARISONS, contains
from .sandbox import Fault, Missing, a_text, kind

Predicate = Callable[..., bool]


def _of(*types: type) -> Predicate:
    return lambda _, value: type(value) in types


def _comparison(name: str) -> Predicate:
    compare = COMPARISONS[name]

    return lambda scope, value, other: bool(compare(scope, value, other))


def _whole(value: Any, what: str) -> int:
    if type(value) is int:
        return value
    raise Fault(f"{what} needs a whole number, not {kind(value)}")


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
    "defined": lambda _, value: type(value) is not Missing,
    "undefined": lambda _, value: type(value) is Missing,
    "none": _of(type(None)),
    "boolean": _of(bool),
    "true": lambda _, value: value is True,
    "false": lambda _, value: value is False,
    "integer": _of(int),
    "float": _of(float),
    "number": _of(int, float, bool),
    "string": _of(str),
    "mapping": _of(dict),
    "sequence": _of(list, str, dict),
    "iterable": _of(list, str, dict),
    "odd": lambda _, value: _whole(value, "odd") % 2 == 1,
    "even": lambda _, value: _whole(value, "even") % 2 == 0,
    "divisibleby": lambda _, value, num: _whole(value, "divisibleby") % _whole(num, "divisibleby") == 0,
    "containing": lambda scope, value, part: contains(scope, part, value),
    "startingwith": startswith,
    "endingwith": endswith,
    "lower": lambda _, value: a_text(value, "lower").islower(),
    "upper": lambda _, value: a_text(value, "upper").isupper(),
    **{alias: _comparison(name) for name, aliases in _COMPARED.items() for alias in aliases},
}

TAKES_MISSING: Final = frozenset(("defined", "undefined"))
"""Tests that accept undefined values."""
