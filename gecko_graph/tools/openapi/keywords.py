"""Keys of a document: misspelt ones, and what each keyword of JSON Schema 2020-12 may hold.

Also which values a branch of a discriminated union lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...errors import did_you_mean
from ...schemas.subschemas import ANNOTATIONS, IN_PLACE
from ...schemas.tidy import COUNTS, are_names, is_count, is_number
from ...state import JsonObject
from .references import Documents, Place, error_at, expect_list, json_type, list_items

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")

_KEYS = {
    "document": "openapi info servers paths webhooks components security tags externalDocs jsonSchemaDialect "
    "x-contract-let x-contract-requires x-contract-invariants x-state x-gecko",
    "path": f"$ref summary description servers parameters {' '.join(METHODS)}",
    "operation": "tags summary description externalDocs operationId parameters requestBody responses callbacks "
    "deprecated security servers x-effect x-contract x-gecko",
}
_OURS = {key for keys in _KEYS.values() for key in keys.split() if key.startswith("x-")}


def find_misspelt(value: JsonObject, place: Place, part: str) -> Iterator[str]:
    """Yield a message for each key that a `document`, `path` or `operation` does not have, and that is almost one."""
    known = _KEYS[part].split()
    for key in value:
        if key in known:
            continue
        if key in _OURS:
            yield f"{place / key}: is not read here: {part} has no such key"
        elif hint := did_you_mean(key, known, cutoff=0.85):
            yield f"{place / key}: unknown key{hint}"


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


def branch_values(
    documents: Documents, schema: Any, place: Place, name: str, seen: frozenset[Place] = frozenset()
) -> list[Any] | None:
    """Return the values that a schema itself lists for a property; None where it lists none."""
    schema, place = documents.follow(schema, place)
    if not isinstance(schema, dict) or place in seen:
        return None
    members = schema.get("properties")
    member = members.get(name) if isinstance(members, dict) else None
    listed = [_enum_values(documents, member, place / "properties" / name)]
    for key in IN_PLACE & schema.keys():
        parts = list_items(schema[key], place / key)
        found = [branch_values(documents, part, there, name, seen | {place}) for part, there in parts]
        if key == "allOf":
            listed += found
        elif None not in found:
            listed.append([value for values in found for value in values or ()])
    known = [values for values in listed if values is not None]
    return [value for value in known[0] if all(value in values for values in known)] if known else None


def _enum_values(documents: Documents, schema: Any, place: Place) -> list[Any] | None:
    schema, _ = documents.follow(schema, place)
    if not isinstance(schema, dict):
        return None
    if "const" in schema:
        return [schema["const"]]
    return expect_list(schema["enum"], place / "enum") if "enum" in schema else None


def with_property_values(branch: dict[str, Any], name: str, values: list[str]) -> dict[str, Any]:
    """Return the branch, on condition that a property has one of the values."""
    return {**branch, "properties": {name: {"enum": values}}, "required": [name]}
