"""The bounded work of one check, counted in type checks, and computations that differ from `jsonschema`'s."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from ..state import Json
from .formats import Pattern

MAX_CHECKS = 50_000
"""Most type checks on one value; for large values `CHECKS_PER_PART` more per part."""

CHECKS_PER_PART = 20

VALUES_PER_CHECK = 20
"""Values of an enum whose comparison takes as long as a type check."""

SECONDS_PER_CHECK = 2e-5
"""Processor time of a pattern that counts as one type check."""

COSTS: Mapping[str, Callable[[Any], int]] = {
    "type": lambda _: 1,
    "$ref": lambda _: 3,  # following a reference takes as long as three type checks
    "anyOf": len,
    "oneOf": len,
    "enum": lambda values: len(values) // VALUES_PER_CHECK,
}
"""Keyword to its own cost."""

_work = threading.local()


class BudgetSpent(Exception): ...


def begin(value: Json) -> None:
    _work.left, _work.value, _work.open = MAX_CHECKS, value, set()


def find_open() -> set[tuple[int, int]]:
    """Return the references that are being followed, each with the value."""
    followed: set[tuple[int, int]] = _work.open
    return followed


def spend(checks: int) -> None:
    """Count work. Raises BudgetSpent."""
    _work.left -= checks
    if _work.left < 0:
        _work.left, _work.value = _work.left + CHECKS_PER_PART * count_parts(_work.value), None
    if _work.left < 0:
        raise BudgetSpent


def is_spent() -> bool:
    return bool(_work.left < 0)


def count_parts(value: Json) -> int:
    count, waiting = 0, [value]
    while waiting:
        inner = waiting.pop()
        members = inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ()
        count += len(members)
        waiting += [each for each in members if isinstance(each, (dict, list))]
    return count


def matches(pattern: Pattern, text: str) -> bool:
    """Return whether a pattern occurs in a text, and count the time. Raises BudgetSpent."""
    begun = time.thread_time()
    found = pattern.matches(text)
    spend(int((time.thread_time() - begun) / SECONDS_PER_CHECK))
    if found is None:
        _work.left = -1
        raise BudgetSpent
    return found


def is_multiple(value: float, step: float) -> bool:
    """Return True if `value` is an integer number of steps, by decimal digits: 0.3 is three times 0.1."""
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    return (Fraction(str(value)) / Fraction(str(step))).denominator == 1
