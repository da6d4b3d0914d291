"""Fields of one object that must agree: a lower end below the upper one, a count that counts."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ..state import Json, JsonObject
from .naming import vocabulary, words

_PAIRS = (
    ("start", "end"),
    ("starts", "ends"),
    ("begin", "end"),
    ("begin", "finish"),
    ("start", "finish"),
    ("from", "to"),
    ("from", "until"),
    ("since", "until"),
    ("departure", "arrival"),
    ("departure", "return"),
    ("depart", "arrive"),
    ("checkin", "checkout"),
    ("pickup", "dropoff"),
    ("created", "updated"),
    ("created", "modified"),
    ("opened", "closed"),
    ("min", "max"),
    ("minimum", "maximum"),
    ("low", "high"),
    ("lower", "upper"),
)
_LOWER = frozenset(low for low, _ in _PAIRS)
_COUNTS = vocabulary("count total size")

Fits = Callable[[str, Json], bool]


def agree(made: JsonObject, *, fixed: Collection[str], fits: Fits) -> None:
    """Make the fields of an object agree, in place.

    Args:
        made: An object that nobody else has seen yet.
        fixed: Names of fields that repeat an argument, and stay as they are.
        fits: Whether a field may have a value.
    """
    _count(made, fixed, fits)
    by_words = {words(name): name for name in made}
    for found, name in by_words.items():
        for low, high in _PAIRS if _LOWER & set(found) else ():
            other = by_words.get(tuple(high if word == low else word for word in found))
            if other is not None and other != name:
                _order(made, (name, other), fixed, fits)


def _order(made: JsonObject, pair: tuple[str, str], fixed: Collection[str], fits: Fits) -> None:
    low, high = made[pair[0]], made[pair[1]]
    if type(low) is not type(high) or not _has_order(low) or not _has_order(high) or low < high:
        return
    if not fixed and low != high and fits(pair[0], high) and fits(pair[1], low):
        made[pair[0]], made[pair[1]] = high, low
    elif not isinstance(low, str):
        _move(made, pair, fixed, fits)


def _has_order(value: Json) -> bool:
    """True for numbers, and for texts that begin like a date or a time."""
    return (
        value[:1].isdigit()
        if isinstance(value, str)
        else isinstance(value, int | float) and not isinstance(value, bool)
    )


def _move(made: JsonObject, pair: tuple[str, str], fixed: Collection[str], fits: Fits) -> None:
    """Move the number that is free to the right side of the other."""
    low, high = made[pair[0]], made[pair[1]]
    if pair[1] not in fixed and fits(pair[1], low + 10):
        made[pair[1]] = low + 10
    elif pair[0] not in fixed and fits(pair[0], high - 1):
        made[pair[0]] = high - 1


def _count(made: JsonObject, fixed: Collection[str], fits: Fits) -> None:
    lists: list[list[Any]] = [value for value in made.values() if isinstance(value, list)]
    if len(lists) != 1:
        return
    for name, value in made.items():
        counts = set(words(name)) & _COUNTS and isinstance(value, int) and not isinstance(value, bool)
        if counts and name not in fixed and fits(name, len(lists[0])):
            made[name] = len(lists[0])
