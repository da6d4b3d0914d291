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
    reader = _Reader()
    value = reader.read(data, ())
    return [Partial(value, frozenset(reader.unknown), frozenset(reader.open))]


class _Reader:
    def __init__(self) -> None:
        self.unknown: list[Tokens] = []
        self.open: list[Tokens] = []

    def read(self, data: Any, path: Tokens) -> Json:
        """Return the value at a path, for `Partial`."""
        if isinstance(data, str):
            return self._text(data, path)
        if isinstance(data, Mapping):
            return self._mapping(data, path)
        if isinstance(data, list | tuple):
            return [self.read(item, (*path, index)) for index, item in enumerate(data)]
        return data

    def _text(self, source: str, path: Tokens) -> Json:
        if not is_template(source):
            return source
        if len(parse_text(source)) == 1:
            self.unknown.append(path)
            return None
        self.open.append(path)
        return ""

    def _mapping(self, data: Mapping[str, Any], path: Tokens) -> Json:
        if "for_each" in data:
            self.open.append(path)
            return []
        if "cases" in data:
            self.unknown.append(path)
            return None
        if any(map(is_template, data)):
            self.open.append(path)
            return {}
        return {key: self.read(member, (*path, key)) for key, member in data.items()}
