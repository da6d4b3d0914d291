"""Plain JSON values: scalars and places, JSON Pointers (RFC 6901), excerpts, the state's clock."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ..state import Json

Place: TypeAlias = tuple[str | int, ...]
"""The keys and indices that lead to a part of a value."""


def as_text(value: Any) -> str:
    """Return a text as it is, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def json_type(value: object) -> str:
    """Return the type of a value, for messages."""
    return _TYPES.get(type(value), type(value).__name__)


_TYPES = {
    bool: "true or false", int: "a number", float: "a number", str: "text", dict: "an object", list: "a list",
    type(None): "null",
}  # fmt: skip


def scalars(value: Any, *, keys: bool = False) -> Iterator[tuple[Place, Any]]:
    """Yield the scalars of a value with their places, in order; with `keys` also the names of members."""
    waiting: list[tuple[Place, Any]] = [((), value)]
    while waiting:
        place, each = waiting.pop()
        if type(each) is str:  # the most common case
            yield place, each
        elif isinstance(each, dict):
            if keys:
                yield from (((*place, key), key) for key in each)
            waiting += reversed([((*place, key), inner) for key, inner in each.items()])
        elif isinstance(each, list):
            waiting += reversed([((*place, index), inner) for index, inner in enumerate(each)])
        else:
            yield place, each


def scalars_of(value: Any, *, keys: bool = False) -> Iterator[Any]:
    """Yield the scalars of a value, in order; with `keys` also the names of members."""
    if isinstance(value, dict):
        yield from value if keys else ()
    if isinstance(value, dict | list | tuple):
        for member in value.values() if isinstance(value, dict) else value:
            yield from scalars_of(member, keys=keys)
    else:
        yield value


def map_scalars(value: Any, change: Callable[[Any], Any], *, keys: bool = False) -> Any:
    """Return a copy with each scalar changed; with `keys` also the names of members, which stay text."""
    if isinstance(value, Mapping):
        return {str(change(key)) if keys else key: map_scalars(each, change, keys=keys) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [map_scalars(each, change, keys=keys) for each in value]
    return change(value)


def map_texts(value: Any, change: Callable[[str], Any], *, keys: bool = False) -> Any:
    """Return a copy with each text changed; with `keys` also the names of members."""
    return map_scalars(value, lambda each: change(each) if isinstance(each, str) else each, keys=keys)


EXCERPT_CHARS = 80
_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")


def pointer(tokens: Sequence[str | int]) -> str:
    """Return the JSON Pointer (RFC 6901) of tokens: `/a~1b/0` for `["a/b", 0]`, "" for none."""
    return "".join(map(pointer_step, tokens))


def pointer_step(token: str | int) -> str:
    """Return one escaped token of a JSON Pointer, with its slash."""
    return "/" + str(token).replace("~", "~0").replace("/", "~1")


def short_pointer(tokens: Sequence[str | int]) -> str:
    """Return a JSON Pointer for a message: long names are shortened, line ends escaped."""
    return pointer([printable(shorten(str(token), EXCERPT_CHARS)) for token in tokens])


def printable(text: str) -> str:
    """Return a text for one line: unchanged, or escaped as in JSON if it has unprintable characters."""
    return text if text.isprintable() else json.dumps(text)[1:-1]


def pointer_tokens(pointer: str) -> list[str]:
    """Return the tokens of a JSON Pointer made by `pointer`: `["a/b", "0"]` for `/a~1b/0`."""
    found = pointer.split("/")[1:]
    return [token.replace("~1", "/").replace("~0", "~") for token in found] if "~" in pointer else found


def bare(pointer: str) -> str:
    """Return a JSON Pointer as people write it: `order_id` for `/order_id`, `items/0/id`."""
    return "/".join(pointer_tokens(short_pointer(pointer_tokens(pointer)))) or pointer


def place_at(value: Json, pointer: str) -> Place:
    """Return a JSON Pointer as a place in a value: list indices become numbers, missing parts stay text."""
    place: list[str | int] = []
    for token in pointer_tokens(pointer):
        is_index = isinstance(value, list) and _INDEX.fullmatch(token)
        place.append(int(token) if is_index else token)
        value = _member(value, place[-1])
    return tuple(place)


def value_at(value: Json, pointer: str) -> Json:
    for token in pointer_tokens(pointer):
        value = _member(value, int(token) if isinstance(value, list) and _INDEX.fullmatch(token) else token)
    return value


def _member(value: Json, token: str | int) -> Json:
    try:
        return value[token] if isinstance(value, dict | list) else None  # type: ignore[index]
    except (LookupError, TypeError):
        return None


def excerpt(value: Json) -> str:
    """Return the start of a value as JSON, at most `EXCERPT_CHARS` characters."""
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    is_large = len(members) > EXCERPT_CHARS or any(isinstance(each, dict | list) for each in members)
    text = ""
    for chunk in _ENCODER.iterencode(value) if is_large else [_ENCODER.encode(_head(value))]:
        text += chunk
        if len(text) > EXCERPT_CHARS:
            return text[: EXCERPT_CHARS - 1] + "…"
    return text


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, default=lambda each: f"({type(each).__name__})", check_circular=False
)  # for a single chunk the encoder runs in C


def shorten(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text, and a mark if there are more."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def _head(value: Json) -> Json:
    if isinstance(value, int) and value.bit_length() > 1000:
        return f"a whole number of {value.bit_length()} bits"
    return shorten(value, EXCERPT_CHARS) if isinstance(value, str) else value


def places(value: Json, here: str = "") -> Iterator[tuple[str, Json]]:
    """Yield each nested value with its JSON Pointer."""
    yield here, value
    members: Any = value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}
    for key, each in members.items():
        yield from places(each, here + pointer_step(key))


def clock(state: Any) -> str | None:
    """Return the task state's clock: its `now`, or that of its runtime state; None if it has none."""
    if not isinstance(state, dict):
        return None
    runtime = state.get("runtime_state")
    for place in (state, runtime if isinstance(runtime, dict) else {}):
        if type(now := place.get("now")) is str:
            return str(now)
    return None
