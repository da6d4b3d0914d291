"""JSON Patches in replies: the schema that models are shown, and what is wrong with an operation."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic.json_schema import WithJsonSchema

from ..state import JsonObject

OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")

_OPERATION_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "op": {"enum": list(OPERATIONS)},
        "path": {"type": "string"},
        "from": {"type": "string"},
        "value": {},
    },
    "required": ["op", "path"],
}

PatchReply = Annotated[list[dict[str, Any]], WithJsonSchema({"type": "array", "items": _OPERATION_SCHEMA})]


def find_wrong_operation(operation: Any) -> str | None:
    """Return why a value is no operation of a JSON Patch; None where it is one."""
    if not isinstance(operation, dict) or operation.get("op") not in OPERATIONS:
        return f"op must be one of {', '.join(OPERATIONS)}"
    needed = {"add": "value", "replace": "value", "test": "value", "move": "from", "copy": "from"}.get(operation["op"])
    if needed is not None and needed not in operation:
        return f"{operation['op']} needs {needed!r}"
    for place in ("path", "from"):
        given = operation.get(place, "" if place == "from" else None)
        if not isinstance(given, str) or (given and not given.startswith("/")):
            return f"{place} must be a JSON Pointer, empty or beginning with /"
    return None
