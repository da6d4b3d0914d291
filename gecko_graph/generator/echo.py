"""What a result says again of the call's arguments: the same names, and the identity of what was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..state import Json
from .naming import IDENTIFIERS, is_identifier, is_own_identifier, noun, singular, vocabulary, words
from .place import Place

MAX_ECHOED = 2_000
"""Characters of an argument that is said again."""

_WRAPPERS = vocabulary(
    "data result results response payload item items record entity body content value values output details"
)
_GENERIC = vocabulary(
    "id name title type status state description text value message content body note kind code key "
    "number label date time"
)


class Echo:
    """The arguments of a call, as something to be repeated."""

    def __init__(self, args: Mapping[str, Json], *, tool: str) -> None:
        self._args = {words(name): value for name, value in args.items() if words(name) and _is_small(value)}
        self._own = self._identity(tool)
        self._about = {*words(tool), noun(tool)}

    def _identity(self, tool: str) -> Json:
        """The argument that says which thing the tool is about; None where it is a new one, or cannot be told."""
        about = {*words(tool), *singular(tool).split(" "), noun(tool)}
        named = {key: value for key, value in self._args.items() if key[-1] in IDENTIFIERS}
        fitting = [value for key, value in named.items() if len(key) == 1 or set(key[:-1]) <= about]
        makes_new = bool({"create", "add", "post", "new", "book", "register", "place"} & about)
        if fitting:
            return fitting[0]
        return next(iter(named.values())) if len(named) == 1 and not makes_new else None

    def candidates(self, place: Place) -> Iterator[Json]:
        """The arguments that the field there may repeat, the likeliest first."""
        name = place.name
        is_main = not place.in_items and all(self._wraps(each) for each in place.names[:-1])
        own = is_identifier(name) and is_own_identifier(name, place.owner)
        if own and not is_main:
            return
        if (found := self._args.get(words(name))) is not None and (
            is_main or len(words(name)) > 1 or not self._is_generic(name)
        ):
            yield from _forms(found)
        if own and is_main and self._own is not None:
            yield from _forms(self._own)

    def _wraps(self, name: str) -> bool:
        return bool({*words(name), singular(name)} & (_WRAPPERS | self._about))

    def _is_generic(self, name: str) -> bool:
        return bool(set(words(name)) & _GENERIC)


def _is_small(value: Json) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_ECHOED
    if isinstance(value, list):
        return len(value) <= 50 and all(_is_small(item) for item in value)
    if isinstance(value, dict):
        return len(value) <= 50 and all(map(_is_small, value.values()))
    return not isinstance(value, int) or value.bit_length() < 64


def _forms(value: Json) -> Iterator[Json]:
    """The value, and the same identifier as text or number."""
    yield value
    if isinstance(value, int) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        yield int(value)
