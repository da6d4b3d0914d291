"""Agreement of a made-up value with the call's arguments and with the other fields of its object."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..state import Json, JsonObject
from .naming import IDENTIFIERS, is_identifier, is_own_identifier, noun, singular, vocabulary, words

MAX_ECHOED = 2_000
"""Characters of an argument that may be repeated."""

_WRAPPERS = vocabulary(
    "data result results response payload item items record entity body content value values output details"
)
_GENERIC = vocabulary(
    "id name title type status state description text value message content body note kind code key "
    "number label date time"
)
_MAKERS = vocabulary("create add post new book register place")
_COUNTS = vocabulary("count total size")
_ORDER = (("start", "end"), ("begin", "end"), ("from", "to"), ("min", "max"), ("low", "high"), ("lower", "upper"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where in the result a value is generated.

    Args:
        trail: Names and indices from the root.
        item: Trail of the enclosing array item; empty outside arrays.
        near: Names of fields since the root or that item.
        names: Names of fields since the root.
        owner: Name of the enclosing object.
        scope: Trail of that object.
        refs: References that led here, with repetitions.
        tight: True where only required parts are generated.
    """

    trail: tuple[str | int, ...] = ()
    item: tuple[str | int, ...] = ()
    near: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    owner: str = ""
    scope: tuple[str | int, ...] = ()
    refs: tuple[str, ...] = ()
    tight: bool = False

    @property
    def name(self) -> str:
        """The nearest field's name."""
        return self.names[-1] if self.names else ""

    def member(self, name: str) -> Position:
        """Return the position of a member of the object here."""
        owner = self.name or self.owner
        names, near = (*self.names, name), (*self.near, name)
        return replace(self, trail=(*self.trail, name), names=names, near=near, owner=owner, scope=self.trail)


class Echo:
    """Arguments of a call that a result repeats: fields of the same names, and the identity of the requested entity."""

    def __init__(self, args: Mapping[str, Json], *, tool: str) -> None:
        self._args = {words(name): value for name, value in args.items() if words(name) and _is_small(value)}
        self._about = {*words(tool), noun(tool), *singular(tool).split()}
        named = {key: value for key, value in self._args.items() if key[-1] in IDENTIFIERS}
        fitting = [value for key, value in named.items() if set(key[:-1]) <= self._about]
        one = list(named.values()) if len(named) == 1 and not _MAKERS & self._about else []
        self._own = next(iter([*fitting, *one]), None)

    def candidates(self, position: Position) -> Iterator[Json]:
        """Yield the arguments that the field may repeat, the likeliest first."""
        name, found = position.name, words(position.name)
        is_main = not position.item and all(self._wraps(name) for name in position.names[:-1])
        own = is_identifier(name) and is_own_identifier(name, position.owner)
        if own and not is_main:
            return
        if found in self._args and (is_main or len(found) > 1 or not _GENERIC & set(found)):
            yield from _forms(self._args[found])
        if own and self._own is not None:
            yield from _forms(self._own)

    def _wraps(self, name: str) -> bool:
        return bool({*words(name), singular(name)} & (_WRAPPERS | self._about))


def _is_small(value: Json) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_ECHOED
    if isinstance(value, list | dict):
        return len(value) <= 50 and all(map(_is_small, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int) or value.bit_length() < 64


def _forms(value: Json) -> Iterator[Json]:
    yield value
    if isinstance(value, int) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        yield int(value)


def agree(value: JsonObject, *, fixed: Collection[str], fits: Callable[[str, Json], bool]) -> None:
    """Make the numbers of an object agree, in place: counts count, and lower ends lie below upper ones.

    Fields that repeat an argument are fixed: they stay as they are. `fits` says whether a field may have a value.
    """

    def put(name: str, number: Json) -> bool:
        free = name not in fixed and fits(name, number)
        if free:
            value[name] = number
        return free

    lists: list[list[Any]] = [member for member in value.values() if isinstance(member, list)]
    numbers = {words(name): name for name, member in value.items() if type(member) in (int, float)}
    for found, name in numbers.items():
        if len(lists) == 1 and _COUNTS & set(found) and isinstance(value[name], int):
            put(name, len(lists[0]))
        for low, high in _ORDER:
            upper = numbers.get(tuple(high if word == low else word for word in found), name)
            if upper != name and value[name] >= value[upper] and not put(upper, value[name] + 10):
                put(name, value[upper] - 1)
