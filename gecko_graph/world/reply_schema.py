"""The schema of a simulator's reply to one tool's calls, so that guided decoding writes results of that tool's form."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from ..models.structured import schema_of
from ..schemas.rules import Same
from ..state import JsonObject

MOST_CHARS = 6_000
"""A result schema that is longer is not part of the reply's schema; the result is checked against it all the same."""

_KEPT = ("type", "required", "enum", "const")
_UNKNOWN = ("$ref", "allOf", "not", "if", "patternProperties")
_TEXT: JsonObject = {"type": "string"}


def reply_schema(reply: type[BaseModel], result: JsonObject | None) -> JsonObject | None:
    """Return the reply's schema with the form of a tool's result in it, or a text, which is how errors look.

    Returns:
        The same object for the same arguments; None where the result's form is unknown, or too long.
    """
    return None if result is None else _combined(reply, Same(result))


@lru_cache(maxsize=1024)
def _combined(reply: type[BaseModel], result: Same) -> JsonObject | None:
    form, general = form_of(result.schema), schema_of(reply)
    if not form or len(json.dumps(form)) > MOST_CHARS:
        return None
    forms = form["anyOf"] if form.keys() == {"anyOf"} else [form]
    either = {"anyOf": [*forms, *([] if _TEXT in forms else [_TEXT])]}
    return {**general, "properties": {**general["properties"], "result": either if len(either["anyOf"]) > 1 else _TEXT}}


def form_of(schema: Any) -> JsonObject:
    """Return the part of a schema that every guided decoder knows; it allows whatever the schema allows."""
    if not isinstance(schema, dict) or any(key in schema for key in _UNKNOWN):
        return {}
    form = {key: schema[key] for key in _KEPT if key in schema}
    if schema.get("additionalProperties") is False:
        form["additionalProperties"] = False
    if isinstance(schema.get("properties"), dict):
        form["properties"] = {name: form_of(each) for name, each in schema["properties"].items()}
    if isinstance(schema.get("items"), dict) and "prefixItems" not in schema:
        form["items"] = form_of(schema["items"])
    either = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(either, list) and either:
        form["anyOf"] = [form_of(each) for each in either]
    return form
