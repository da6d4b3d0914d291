"""What each keyword of JSON Schema 2020-12 may hold, so that a broken schema is found with its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...schemas.subschemas import ANNOTATIONS
from ...schemas.tidy import COUNTS, are_names, is_count, is_number
from ...state import JsonObject
from .references import Place, error_at, json_type

_Check = tuple[Callable[[Any], bool], str]


_TEXT: _Check = (lambda value: isinstance(value, str), "must be text")
_NUMBER: _Check = (is_number, "must be a number")
_COUNT: _Check = (is_count, "must be a whole number from 0")
_FLAG: _Check = (lambda value: isinstance(value, bool), "must be true or false")
_LIST: _Check = (lambda value: isinstance(value, list), "must be a list")
_BOUND: _Check = (lambda value: is_number(value) or isinstance(value, bool), "must be a number")

CHECKS: dict[str, _Check] = {
    **dict.fromkeys(
        ("title", "description", "format", "pattern", "$comment", "contentEncoding", "contentMediaType"), _TEXT
    ),
    **dict.fromkeys(("minimum", "maximum"), _NUMBER),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), _BOUND),
    **dict.fromkeys(COUNTS, _COUNT),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _FLAG),
    **dict.fromkeys(("enum", "examples"), _LIST),
    "multipleOf": (lambda value: is_number(value) and value > 0, "must be a number above 0"),
    "required": (are_names, "must be a list of property names"),
    "dependentRequired": (
        lambda value: isinstance(value, dict) and all(map(are_names, value.values())),
        "must be an object of lists of property names",
    ),
}


def check_keyword(key: str, value: Any, place: Place, *, strict: bool) -> Any:
    """Return the keyword's value, put right where that is plain: numbers as titles, a name required twice.

    Strict is plain JSON Schema, where limits that exclude must be numbers. Raises ToolkitError.
    """
    check, wanted = CHECKS.get(key, (None, ""))
    if check is None:
        return value
    if key in ("title", "description") and isinstance(value, int | float):
        return str(value)
    if key == "examples" and isinstance(value, dict) and not strict:
        return [one["value"] for one in value.values() if isinstance(one, dict) and "value" in one]
    if not check(value) or (strict and key.startswith("exclusive") and isinstance(value, bool)):
        raise error_at(place, f"{wanted}, not {_shown(value)}")
    if key == "required":
        return list(dict.fromkeys(value))
    return int(value) if check is is_count else value


def _shown(value: Any) -> str:
    is_out_of_range = json_type(value) == "a number" and not is_number(value)
    return "one out of range" if is_out_of_range else json_type(value)


def make_nullable(schema: JsonObject) -> JsonObject:
    """Return the schema, which also takes null."""
    kinds = schema.get("type")
    if kinds is None and not schema.keys() - ANNOTATIONS:
        return schema
    if kinds is None or schema.keys() & {"$ref", "allOf", "anyOf", "oneOf", "not", "const"}:
        annotations = {key: value for key, value in schema.items() if key in ANNOTATIONS}
        rest = {key: value for key, value in schema.items() if key not in ANNOTATIONS}
        return {"anyOf": [rest, {"type": "null"}], **annotations}
    kinds = kinds if isinstance(kinds, list) else [kinds]
    listed = {"enum": [*schema["enum"], None]} if None not in schema.get("enum", [None]) else {}
    return {**schema, "type": kinds if "null" in kinds else [*kinds, "null"], **listed}
