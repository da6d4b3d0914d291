"""Values of Python as JSON and back without loss: sets, tuples and numbers as keys are noted beside the JSON.

A benchmark's class holds `{12345: order}` or `set()`; the task state is JSON. What JSON cannot represent stands in
`kinds`, by JSON pointer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gecko_graph.state import Json
from gecko_graph.values.patch import pointer

Kinds = dict[str, str]
"""JSON pointer to what stands there, `set` or `tuple`; after a `#`, where the last token is a number: `int`."""


def encode(value: Any, kinds: Kinds, *, place: tuple[str | int, ...] = ()) -> Json:
    """Return the value as JSON; what JSON cannot represent is added to `kinds`.

    Raises:
        TypeError: It holds something else than Python's own containers and scalars.
    """
    if isinstance(value, dict):
        return _encode_object(value, kinds, place)
    if isinstance(value, set | tuple):
        kinds[pointer(place)] = type(value).__name__
        value = sorted(value, key=repr) if isinstance(value, set) else value
    if isinstance(value, list | tuple):
        return [encode(item, kinds, place=(*place, index)) for index, item in enumerate(value)]
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"{type(value).__name__} at {pointer(place)} cannot be represented in JSON")


def _encode_object(value: Mapping[Any, Any], kinds: Kinds, place: tuple[str | int, ...]) -> Json:
    made: dict[str, Json] = {}
    for key, item in value.items():
        name = key
        if not isinstance(key, str):
            # 1 and "1" may both be keys: the class reads old ones from JSON and adds new ones itself
            name = f"{key} (int)" if str(key) in value else str(key)
            kinds[f"#{pointer((*place, name))}"] = "int"
        made[name] = encode(item, kinds, place=(*place, name))
    return made


def decode(value: Json, kinds: Mapping[str, str], *, place: tuple[str | int, ...] = ()) -> Any:
    """Return the value that `encode` was given; shares nothing with the JSON."""
    if isinstance(value, dict):
        return {
            _key(name, kinds.get(f"#{pointer((*place, name))}")): decode(item, kinds, place=(*place, name))
            for name, item in value.items()
        }
    if isinstance(value, list):
        items = [decode(item, kinds, place=(*place, index)) for index, item in enumerate(value)]
        kind = kinds.get(pointer(place))
        return set(items) if kind == "set" else tuple(items) if kind == "tuple" else items
    return value


def _key(name: str, kind: str | None) -> str | int:
    return int(name.removesuffix(" (int)")) if kind == "int" else name
