"""Plain JSON values: as a text, their scalars in order, or a copy with these changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

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
        if isinstance(each, dict):
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
