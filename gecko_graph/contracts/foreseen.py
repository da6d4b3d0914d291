"""The part of a contract's value that is known before any call.

Expressions are not analysed: nothing is known of the value of a whole expression, and of a text with one in it only
that it is a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..schemas.partial import Partial, Tokens
from ..state import Json
from .language.syntax import is_template, parse_text


def foresee(data: Json) -> list[Partial]:
    """Return the known part of a checked value, one for each of its `cases`."""
    if isinstance(data, Mapping) and "cases" in data and "for_each" not in data:
        return [known for case in data["cases"] if "value" in case for known in foresee(case["value"])]
    unknown: list[Tokens] = []
    partly: list[Tokens] = []
    value = _read(data, (), unknown, partly)
    return [Partial(value, frozenset(unknown), frozenset(partly))]


def _read(data: Any, path: Tokens, unknown: list[Tokens], partly: list[Tokens]) -> Json:
    """Return the value at a path, for `Partial`."""
    kind: Json = None
    if isinstance(data, str) and is_template(data):
        kind = None if len(parse_text(data)) == 1 else ""
    elif isinstance(data, Mapping) and ("for_each" in data or "cases" in data or any(map(is_template, data))):
        kind = [] if "for_each" in data else None if "cases" in data else {}
    elif isinstance(data, Mapping):
        return {key: _read(member, (*path, key), unknown, partly) for key, member in data.items()}
    elif isinstance(data, list | tuple):
        return [_read(item, (*path, index), unknown, partly) for index, item in enumerate(data)]
    else:
        return data
    (unknown if kind is None else partly).append(path)
    return kind
