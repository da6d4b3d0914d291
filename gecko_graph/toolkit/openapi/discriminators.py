"""The values that a branch of a discriminated union lists itself for the property that tells the branches apart."""

from __future__ import annotations

from typing import Any

from ...schemas.subschemas import IN_PLACE
from .references import Documents, Place, expect_list, list_items


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
