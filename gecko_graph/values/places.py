"""Plain JSON values: their scalars and places, JSON paths and excerpts as people are shown them, the state's clock."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ..state import Json

Place: TypeAlias = tuple[str | int, ...]
"""Keys and indices that lead to a part of a value."""


def as_text(value: Any) -> str:
    """Return a value as it stands in a message: a text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def scalars(value: Any, *, keys: bool = False) -> Iterator[tuple[Place, Any]]:
    """Yield the scalars in a value with their places, in order; with `keys` the names of members as well."""
    waiting: list[tuple[Place, Any]] = [((), value)]
    while waiting:
        place, each = waiting.pop()
        if type(each) is str:  # as most are
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
    """Yield the scalars in a value, in order; with `keys` the names of members as well."""
    if isinstance(value, dict):
        yield from value if keys else ()
    if isinstance(value, dict | list | tuple):
        for member in value.values() if isinstance(value, dict) else value:
            yield from scalars_of(member, keys=keys)
    else:
        yield value


def map_scalars(value: Any, change: Callable[[Any], Any], *, keys: bool = False) -> Any:
    """Return a copy with each scalar in it changed; with `keys` the names of members as well, which stay texts."""
    if isinstance(value, Mapping):
        return {str(change(key)) if keys else key: map_scalars(each, change, keys=keys) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [map_scalars(each, change, keys=keys) for each in value]
    return change(value)


def map_texts(value: Any, change: Callable[[str], Any], *, keys: bool = False) -> Any:
    """Return a copy with each text in it changed; with `keys` the names of members as well."""
    return map_scalars(value, lambda each: change(each) if isinstance(each, str) else each, keys=keys)


EXCERPT_CHARS = 80
_PATH_STEPS = re.compile(r'\.([^.\[]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')


def json_path(tokens: Sequence[str | int], *, exact: bool = False) -> str:
    """Return the JSON path of a place: `$.items[0].name`, `$["odd name"]`; long names are cut unless it is `exact`."""
    return "$" + "".join([_step(token, exact) for token in tokens])


def _step(token: str | int, exact: bool) -> str:
    if isinstance(token, int):
        return f"[{token}]"
    if token.isidentifier() and (exact or len(token) <= EXCERPT_CHARS):
        return f".{token}"
    return f"[{json.dumps(token, ensure_ascii=False) if exact else excerpt(token)}]"


def value_at(value: Json, path: str) -> Json:
    """Return the value at a JSON path made by `json_path`; None if there is none."""
    for token in path_tokens(path):
        holder: Any = value if isinstance(value, dict | list) else {}
        try:
            value = holder[token]
        except (LookupError, TypeError):
            return None
    return value


def path_tokens(path: str) -> list[str | int]:
    """Return the tokens of a JSON path: `$.items[0].name` has `["items", 0, "name"]`."""
    return [int(index) if index else name or json.loads(text) for name, index, text in _PATH_STEPS.findall(path)]


def excerpt(value: Json) -> str:
    """Return the beginning of a value as JSON, at most `EXCERPT_CHARS` characters."""
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
)  # in C where it writes all at once


def shorten(text: str, limit: int) -> str:
    """Return text for a message: at most `limit` characters of it, and a mark if there are more."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def _head(value: Json) -> Json:
    if isinstance(value, int) and value.bit_length() > 1000:
        return f"a whole number of {value.bit_length()} bits"
    return shorten(value, EXCERPT_CHARS) if isinstance(value, str) else value


def places(value: Json, here: str = "$") -> Iterator[tuple[str, Json]]:
    """Yield each value within a value, with its JSON path."""
    yield here, value
    members: Any = value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}
    for key, each in members.items():
        yield from places(each, here + json_path((key,), exact=True)[1:])


def clock(state: Any) -> str | None:
    """Return the task state's clock: its `now`, or its runtime state's; None if it has none."""
    if not isinstance(state, dict):
        return None
    runtime = state.get("runtime_state")
    for place in (state, runtime if isinstance(runtime, dict) else {}):
        if type(now := place.get("now")) is str:
            return str(now)
    return None
