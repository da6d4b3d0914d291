"""Corners: unreadable parts of a document's schemas. Schemas that depend on one are relaxed."""

from __future__ import annotations

from typing import Any

from ...errors import ToolkitError
from ...schemas.subschemas import TURNING, rebuild, walk
from ...state import JsonObject
from .simplify import defs_of

CORNER = "x-corner"
"""The key of a schema that, during reading, holds the errors of its omitted parts, by message."""


def find_corners(schema: Any) -> dict[str, ToolkitError]:
    """Return the errors of the omitted parts in a schema and its definitions, by message."""
    return {text: error for part in walk(schema) for text, error in part.get(CORNER, {}).items()}


def open_corners(schema: JsonObject) -> JsonObject:
    """Return a schema without corner marks, relaxed so that an omitted part makes it nowhere stricter.

    A weaker branch of `oneOf` makes the others fail, and a weaker `not` or `if` rejects more.
    """
    defs = schema.get("$defs", {})
    opened = {name for name, one in defs.items() if find_corners(one)}
    while more := {name for name, one in defs.items() if name not in opened and opened.intersection(defs_of(one))}:
        opened |= more

    def change(one: Any) -> Any:
        if not isinstance(one, dict):
            return one
        new = rebuild({key: value for key, value in one.items() if key != CORNER}, change)
        for key in TURNING & new.keys():
            parts = one[key] if isinstance(one[key], list) else [one[key]]
            if any(opened.intersection(defs_of(part)) or find_corners(part) for part in parts):
                _weaken(new, key)
        return new

    changed: JsonObject = change(schema)
    return changed


def _weaken(schema: JsonObject, key: str) -> None:
    """Relax a keyword of the schema, so that it accepts more values."""
    value = schema.pop(key)
    for beside in {"if": ("then", "else"), "contains": ("minContains", "maxContains")}.get(key, ()):
        schema.pop(beside, None)
    if key == "oneOf" and "anyOf" in schema:
        schema["allOf"] = [*schema.get("allOf", []), {"anyOf": value}]
    elif key == "oneOf":
        schema["anyOf"] = value
