"""JSON paths, and the beginning of a value, as people are shown them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..state import Json

EXCERPT_CHARS = 80
_PATH_STEPS = re.compile(r'\.([^.\[]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')


def json_path(tokens: Sequence[str | int], *, exact: bool = False) -> str:
    """Return the JSON path of a place: `$.items[0].name`, `$["odd name"]`; long names are cut unless it is `exact`."""
    return "$" + "".join(_step(token, exact) for token in tokens)


def _step(token: str | int, exact: bool) -> str:
    if isinstance(token, int):
        return f"[{token}]"
    if token.isidentifier() and (exact or len(token) <= EXCERPT_CHARS):
        return f".{token}"
    return f"[{json.dumps(token, ensure_ascii=False) if exact else excerpt(token)}]"


def value_at(value: Json, path: str) -> Json:
    """Return the value at a JSON path made by `json_path`; None where there is none."""
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
    text = ""
    for chunk in json.JSONEncoder(ensure_ascii=False, default=_name_type, check_circular=False).iterencode(
        _head(value)
    ):
        text += chunk
        if len(text) > EXCERPT_CHARS:
            return text[: EXCERPT_CHARS - 1] + "…"
    return text


def shorten(text: str, limit: int) -> str:
    """Return text for a message: at most `limit` characters of it, and a mark where there are more."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def _head(value: Json) -> Json:
    if isinstance(value, int) and value.bit_length() > 1000:
        return f"a whole number of {value.bit_length()} bits"
    return shorten(value, EXCERPT_CHARS) if isinstance(value, str) else value


def _name_type(value: object) -> str:
    return f"({type(value).__name__})"


def places(value: Json, here: str = "$") -> Iterator[tuple[str, Json]]:
    """Yield each value within a value, with its JSON path."""
    yield here, value
    members: Any = value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}
    for key, each in members.items():
        yield from places(each, here + json_path((key,), exact=True)[1:])
