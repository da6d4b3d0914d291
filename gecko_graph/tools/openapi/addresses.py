"""Resolve addresses inside a document: base addresses by `$id` and `$self`, and anchors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

from ...schemas.subschemas import DATA
from ...state import Json

Tokens = tuple[str, ...]


class Addresses:
    """A document's `$id`s and anchors, each with the tokens of its place."""

    def __init__(self, value: Json) -> None:
        self.ids: dict[str, Tokens] = {own_address(value): ()}
        self.anchors: dict[str, list[Tokens]] = {}
        self.dynamic: dict[str, list[Tokens]] = {}
        waiting: list[tuple[Any, Tokens, str]] = [(value, (), own_address(value))]
        while waiting:
            one, tokens, base = waiting.pop()
            members = one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
            if isinstance(one, dict):
                base = self._note(one, tokens, base)
            waiting += [
                (each, (*tokens, str(key)), base)
                for key, each in members
                if key not in DATA and isinstance(each, dict | list)
            ]

    def _note(self, one: dict[str, Any], tokens: Tokens, base: str) -> str:
        if isinstance(one.get("$id"), str):
            base = urljoin(base, one["$id"]).partition("#")[0]
            self.ids.setdefault(base, tokens)
        for key, found in (
            ("$anchor", self.anchors),
            ("$dynamicAnchor", self.anchors),
            ("$dynamicAnchor", self.dynamic),
        ):
            if isinstance(one.get(key), str):
                found.setdefault(one[key], []).append(tokens)
        return base


def own_address(value: Json) -> str:
    """Return the document's `$self` (OpenAPI 3.2), or ""."""
    given = value.get("$self") if isinstance(value, dict) else None
    return given.partition("#")[0] if isinstance(given, str) else ""


def find_base(value: Json, tokens: Tokens) -> tuple[str, Tokens]:
    """Return the base address of a reference at a place, and the tokens of the schema that sets it."""
    base, root = own_address(value), Tokens()
    for number, one in enumerate(_along(value, tokens)):
        if isinstance(one.get("$id"), str):
            base, root = urljoin(base, one["$id"]).partition("#")[0], tokens[:number]
    return base, root


def find_recursive(value: Json, tokens: Tokens) -> Tokens | None:
    """Return the target of a `$recursiveRef`: the outermost schema around the place with a `$recursiveAnchor`."""
    for number, one in enumerate(_along(value, tokens)):
        if one.get("$recursiveAnchor") is True:
            return tokens[:number]
    root = find_base(value, tokens)[1]
    return None if not root and {"openapi", "paths"} & value.keys() else root


def _along(value: Any, tokens: Tokens) -> Iterator[dict[str, Any]]:
    """Yield the value at each step of a path; an empty object in place of a non-object."""
    yield value if isinstance(value, dict) else {}
    for token in tokens:
        is_there = isinstance(value, list) and token.isdecimal() and int(token) < len(value)
        value = value.get(token) if isinstance(value, dict) else value[int(token)] if is_there else None
        yield value if isinstance(value, dict) else {}
