"""Read tools from dicts: OpenAI function dicts, MCP and Anthropic tool dicts, BFCL's function documents.

BFCL's own types (`dict`, `float`, `tuple`, `any`, names from Python, Java and JavaScript) become JSON Schema's, its
`response` the result schema. A `default` outside its own `enum` is kept and never filled in; `Toolkit.problems` lists
it. A function dict may also carry the declarations of a `Tool`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import ToolkitError, did_you_mean
from ..schemas.subschemas import IN_PLACE
from ..state import JsonObject
from ..values.places import json_type
from .openapi.documents import Documents, Place, error_at, expect_object, name_format, to_json
from .openapi.schema_reader import SchemaReader
from .spec import NO_PARAMETERS, Effect, ToolSpec, read_tags

TYPES: dict[str, str | None] = {
    **dict.fromkeys(("dict", "hashmap", "hashtable", "map"), "object"),
    **dict.fromkeys(("list", "tuple", "set", "arraylist"), "array"),
    **dict.fromkeys(("str", "char", "bigint"), "string"),
    **dict.fromkeys(("int", "long", "short", "byte"), "integer"),
    **dict.fromkeys(("float", "double"), "number"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("none", "nonetype"), "null"),
    **dict.fromkeys(("any", "unknown"), None),
}
"""BFCL's type names, lower case, to JSON Schema types; None for any type."""

_PARAMETERS = ("parameters", "input_schema", "inputSchema")
_RESULTS = ("response", "output_schema", "outputSchema")
_DECLARED = {
    **{key: key for key in ("effect", "contract", "simulate", "examples", "result", "idempotency", "refuses")},
    "x-contract": "contract",
}
"""Keys of a function dict that are declarations, and their names in `Tool`."""

_KNOWN = ("type", "function", "name", "description", "annotations", "tags", *_PARAMETERS, *_RESULTS, *_DECLARED)
_NOT_PLAIN = IN_PLACE | {"$ref", "if", "dependentSchemas", "unevaluatedProperties"}


def spec_of_dict(tool: Mapping[str, Any], *, where: str) -> ToolSpec:
    """Return the tool of a function dict, bare or wrapped as `{"type": "function", "function": {...}}`.

    Raises:
        ToolkitError: It is not a function dict, or a schema in it is invalid; the message names the place.
    """
    place = Place(where)
    plain = expect_object(to_json(tool, where), place)
    if isinstance(plain.get("function"), dict):
        plain, place = plain["function"], place / "function"
    name = plain.get("name")
    if not isinstance(name, str) or not name.strip():
        raise error_at(place, "a tool must have a name")
    parameters = next((plain[key] for key in _PARAMETERS if plain.get(key)), None)
    result = next((plain[key] for key in _RESULTS if plain.get(key) is not None), None)
    return ToolSpec(
        name=name,
        description=str(plain.get("description") or "").strip(),
        parameters=as_parameters(parameters, where=f"{where} ({name}), parameters"),
        result=None if result is None else as_schema(result, where=f"{where} ({name}), result"),
        effect=effect_of_annotations(plain.get("annotations")),
        tags=read_tags(plain.get("tags")),
    )


def split_declared(tool: Mapping[str, Any], *, where: str) -> tuple[JsonObject, JsonObject]:
    """Split a function dict into the dict without declarations, and the declarations by `Tool`'s names.

    Unknown keys are kept and ignored later.

    Raises:
        ToolkitError: An unknown key is a likely misspelling of a known one.
    """
    for key in tool:
        if key not in _KNOWN and (hint := did_you_mean(str(key), _KNOWN, cutoff=0.8)):
            raise error_at(Place(where), f"unknown key {key!r}{hint}")
    inner = tool.get("function")
    plain, declared = split_declared(inner, where=f"{where}.function") if isinstance(inner, Mapping) else ({}, {})
    declared |= {_DECLARED[key]: one for key, one in tool.items() if key in _DECLARED}
    kept = {key: one for key, one in tool.items() if key not in _DECLARED}
    return {**kept, **({"function": plain} if plain else {})}, declared


def as_schema(schema: Any, *, where: str) -> JsonObject:
    """Return a schema of JSON Schema or BFCL as self-contained JSON Schema 2020-12. Raises ToolkitError."""
    documents = Documents(expect_object(schema, Place(where)), label=where)
    reader = SchemaReader(documents, version="json", types=TYPES)
    return reader.read(documents.at(documents.root), documents.root, direction="request")


def as_parameters(schema: Any, *, where: str) -> JsonObject:
    """Return a schema of arguments: an object, closed unless it sets `additionalProperties`. Raises ToolkitError."""
    if not schema:
        return dict(NO_PARAMETERS)
    read = as_schema(schema, where=where)
    if not read.keys() & _NOT_PLAIN:
        read = {"type": "object", "properties": {}, **read}
        read.setdefault("additionalProperties", False)
    if read.get("type", "object") != "object":
        raise error_at(Place(where) / "type", f"arguments must be an object, not {read['type']!r}")
    return read


def effect_of_annotations(annotations: Any) -> Effect | None:
    """Return the effect that MCP annotations hint at, in either spelling, also nested in LangChain's metadata."""
    if not isinstance(annotations, Mapping):
        return None
    hint = annotations.get("readOnlyHint", annotations.get("read_only_hint"))
    if isinstance(hint, bool):
        return "read" if hint else "write"
    nested = (effect_of_annotations(annotations.get(key)) for key in ("annotations", "tool", "mcp"))
    return next((effect for effect in nested if effect), None)


def tool_descriptions(document: Any, *, where: str) -> list[JsonObject]:
    """Return the function dicts of a file: one, a list, or a mapping by names, nested at any depth.

    Raises:
        ToolkitError: It contains anything else.
    """
    if found := name_format(document):
        raise error_at(Place(where), f"expected an OpenAPI document or descriptions of tools, got {found}")
    return list(_descriptions(document, Place(where)))


def _descriptions(value: Any, place: Place) -> Iterator[JsonObject]:
    if isinstance(value, Mapping) and (
        isinstance(value.get("function"), Mapping) or isinstance(value.get("name"), str)
    ):
        yield dict(value)
        return
    if not isinstance(value, Mapping | list):
        raise ToolkitError(
            f"{place}: expected an OpenAPI document, or descriptions of tools: objects with `name`, `description` and "
            f"`parameters`; got {json_type(value)}"
        )
    for key, one in value.items() if isinstance(value, Mapping) else enumerate(value):
        yield from _descriptions(one, place / key)
