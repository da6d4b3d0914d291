"""The `x-gecko-` keys of an operation: what `Toolkit.to_openapi` could not write otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...schemas.complaints import find_faults
from ...state import JsonObject
from ..spec import HttpBinding, ToolExample, ToolSpec
from .arguments import PLACES
from .references import Place, error_at

_OBJECT: JsonObject = {"type": "object"}
_TEXT: JsonObject = {"type": "string"}
_SCHEMA: JsonObject = {"type": ["object", "boolean"]}
_BINDING: JsonObject = {
    "type": ["object", "null"],
    "required": ["method", "path"],
    "properties": {
        "method": _TEXT,
        "path": _TEXT,
        "places": {
            "additionalProperties": {
                "prefixItems": [{"enum": [*PLACES, "body"]}, _TEXT],
                "type": "array",
                "minItems": 2,
                "maxItems": 2,
            },
            **_OBJECT,
        },
        "styles": {
            "additionalProperties": {"properties": {"style": _TEXT, "content": _TEXT}, **_OBJECT},
            **_OBJECT,
        },
        "body": {"properties": {"media": _TEXT, "encoding": {"additionalProperties": _OBJECT, **_OBJECT}}, **_OBJECT},
        "server": {
            "properties": {"url": _TEXT, "variables": {"additionalProperties": _OBJECT, **_OBJECT}},
            "type": ["object", "null"],
            "required": ["url"],
        },
        "security": {"items": {"additionalProperties": _OBJECT, **_OBJECT}, "type": "array"},
    },
}
_SHAPES: JsonObject = {
    "description": _TEXT,
    "parameters": {
        "type": "object",
        "properties": {
            "type": {"const": "object"},
            "properties": {"additionalProperties": _SCHEMA, **_OBJECT},
            "required": {"type": "array", "items": _TEXT},
        },
    },
    "result": {"type": ["object", "null"]},
    "examples": {
        "type": "array",
        "items": {"properties": {"args": _OBJECT}, "required": ["args", "result"], **_OBJECT},
    },
    "binding": _BINDING,
    "stated": {"type": "boolean"},
    "idempotency": {"type": ["string", "null"]},
}
"""JSON Schemas of the keys, by the tool's field that they stand for."""


def apply_own_keys(tool: ToolSpec, operation: JsonObject, place: Place) -> ToolSpec:
    """Return the tool with the `x-gecko-` keys of its operation.

    Raises:
        ToolkitError: A key does not hold what it should; the message names the place.
    """
    given: dict[str, Any] = {key: operation[f"x-gecko-{key}"] for key in _SHAPES if f"x-gecko-{key}" in operation}
    for key, value in given.items():
        if faults := find_faults(_SHAPES[key], value):
            raise error_at(place / f"x-gecko-{key}", faults[0])
    if "examples" in given:
        given["examples"] = tuple(ToolExample(one["args"], one["result"]) for one in given["examples"])
    if binding := given.get("binding"):
        places = {name: tuple(where) for name, where in binding.get("places", {}).items()}
        more = {key: binding[key] for key in ("styles", "body", "server") if key in binding}
        security = tuple(binding.get("security", ()))
        given["binding"] = HttpBinding(binding["method"], binding["path"], places, security=security, **more)
    return replace(tool, **given)
