"""Addresses inside a document: `$id` and `$self`, which references are relative to, and anchors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

from ...schemas.subschemas import DATA
from ...state import Json

Tokens = tuple[str, ...]


class Addresses:
    """The `$id` and the anchors of a document's schemas, each with the tokens that lead there."""

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
    """Return the document's own address: its `$self`, as OpenAPI 3.2 has it, else nothing."""
    given = value.get("$self") if isinstance(value, dict) else None
    return given.partition("#")[0] if isinstance(given, str) else ""


def find_base(value: Json, tokens: Tokens) -> tuple[str, Tokens]:
    """Return the address that a reference at a place is relative to, and the tokens of the schema that has it."""
    base, root = own_address(value), Tokens()
    for number, one in enumerate(_along(value, tokens)):
        if isinstance(one.get("$id"), str):
            base, root = urljoin(base, one["$id"]).partition("#")[0], tokens[:number]
    return base, root


def find_recursive(value: Json, tokens: Tokens) -> Tokens | None:
    """Return where a `$recursiveRef` at a place leads: the outermost schema around it with a `$recursiveAnchor`."""
    for number, one in enumerate(_along(value, tokens)):
        if one.get("$recursiveAnchor") is True:
            return tokens[:number]
    root = find_base(value, tokens)[1]
    return None if not root and {"openapi", "paths"} & value.keys() else root


def _along(value: Any, tokens: Tokens) -> Iterator[dict[str, Any]]:
    """Yield the value and those that tokens lead to, one by one; an empty object for what is none."""
    yield value if isinstance(value, dict) else {}
    for token in tokens:
        is_there = isinstance(value, list) and token.isdecimal() and int(token) < len(value)
        value = value.get(token) if isinstance(value, dict) else value[int(token)] if is_there else None
        yield value if isinstance(value, dict) else {}
