"""Which keywords of JSON Schema llama.cpp's constrained decoding obeys, refuses, or accepts and violates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from langchain_core.language_models import BaseChatModel

from gecko_graph.models.failure import failure_of
from gecko_graph.state import JsonObject

A = {"a": {"type": "string"}}
KEYWORDS: Mapping[str, tuple[Any, Any]] = {
    "type": ({"type": "integer"}, "x"),
    "type, several": ({"type": ["string", "null"]}, 7),
    "const": ({"const": 7}, 8),
    "enum": ({"enum": ["yes", "no"]}, "maybe"),
    "pattern": ({"type": "string", "pattern": "^[A-Z]{3}$"}, "abc"),
    "minLength": ({"type": "string", "minLength": 5}, "ab"),
    "maxLength": ({"type": "string", "maxLength": 2}, "abcd"),
    "format: date": ({"type": "string", "format": "date"}, "tomorrow"),
    "minimum (integer)": ({"type": "integer", "minimum": 1000}, 7),
    "maximum (integer)": ({"type": "integer", "maximum": 5}, 77),
    "minimum (number)": ({"type": "number", "minimum": 1000}, 7),
    "exclusiveMaximum": ({"type": "number", "exclusiveMaximum": 0}, 7),
    "multipleOf": ({"type": "integer", "multipleOf": 10}, 77),
    "items": ({"type": "array", "items": {"type": "integer"}}, ["x"]),
    "minItems": ({"type": "array", "items": {"enum": [1, 2]}, "minItems": 2}, [1]),
    "maxItems": ({"type": "array", "items": {"enum": [1, 2]}, "maxItems": 1}, [1, 2, 1]),
    "uniqueItems": ({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True}, [1, 1]),
    "prefixItems": ({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}]}, [5, 6]),
    "contains": ({"type": "array", "items": {"type": "integer"}, "contains": {"const": 7}}, [1]),
    "required": ({"type": "object", "properties": A, "required": ["a"]}, {}),
    "additionalProperties: false": ({"type": "object", "properties": A, "additionalProperties": False}, {"b": 1}),
    "additionalProperties: schema": ({"type": "object", "additionalProperties": {"type": "integer"}}, {"b": "x"}),
    "patternProperties": ({"type": "object", "patternProperties": {"^b": {"type": "integer"}}}, {"b": "x"}),
    "propertyNames": ({"type": "object", "propertyNames": {"pattern": "^x$"}}, {"b": 1}),
    "minProperties": ({"type": "object", "properties": A, "minProperties": 1}, {}),
    "dependentRequired": ({"type": "object", "properties": A, "dependentRequired": {"a": ["b"]}}, {"a": "x"}),
    "anyOf": ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x"),
    "oneOf": ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, "x"),
    "allOf": ({"allOf": [{"type": "integer"}, {"minimum": 50}]}, 7),
    "not": ({"type": "integer", "not": {"const": 7}}, 7),
    "if, then": ({"if": {"type": "integer"}, "then": {"minimum": 50}}, 7),
    "$ref": ({"$ref": "#/$defs/x"}, "x"),
    "$ref, recursive": ({"$ref": "#/$defs/tree"}, {"of": 7}),
    "true": (True, 7),
    "{}": ({}, 7),
}
"""Per keyword a schema with it, and a value that breaks the schema (except for the last two)."""
DEFS = {"x": {"type": "integer"}, "tree": {"type": "object", "properties": {"of": {"$ref": "#/$defs/tree"}}}}


def try_keyword(name: str, chat: BaseChatModel) -> JsonObject:
    """Ask for a value that breaks a keyword's schema, with the schema bound; return the outcome."""
    schema, wrong = KEYWORDS[name]
    whole = {"type": "object", "properties": {"v": schema}, "required": ["v"], "additionalProperties": False}
    return try_schema(whole | ({"$defs": DEFS} if "$ref" in name else {}), {"v": wrong}, chat)


def try_schema(whole: JsonObject, wrong: JsonObject, chat: BaseChatModel) -> JsonObject:
    """Ask for an object that breaks the schema, with the schema bound; return the outcome."""
    form = {"type": "json_schema", "json_schema": {"name": "value", "schema": whole}}
    text = f"Reply with this JSON and nothing else: {json.dumps(wrong)}"
    try:
        said = chat.bind(response_format=form, temperature=0, max_tokens=40).invoke(text)
    except Exception as error:  # noqa: BLE001 - the server may fail in any way
        is_cut = type(error).__name__ == "LengthFinishReasonError"  # OpenAI's client raises if a schema is bound
        return {"end": "no end within 40 tokens" if is_cut else "refused", "said": failure_of(error)}
    try:
        kept = Draft202012Validator(whole).is_valid(json.loads(str(said.text)))
    except ValueError:
        kept = False
    return {"end": "kept" if kept else "taken and broken", "said": str(said.text)}
