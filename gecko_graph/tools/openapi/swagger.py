"""Convert Swagger 2.0 to OpenAPI 3.0: servers, parameters, bodies, responses, security schemes."""

from __future__ import annotations

import json
import re
from typing import Any

from ...errors import ToolkitError
from ...state import Json, JsonObject
from .documents import METHODS, Documents, Place, error_at, expect_object, list_items, member
from .request import FORMS

_STYLES: dict[str, JsonObject] = {
    "csv": {"explode": False},
    "multi": {"explode": True},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
}
_MOVED = {"definitions": '"#/components/schemas/', "responses": '"#/components/responses/'}
_OLD = frozenset(
    {"swagger", "schemes", "host", "basePath", "consumes", "produces"}
    | {"parameters", "definitions", "responses", "securityDefinitions"}
)
_NO_SCHEMA = frozenset({"name", "in", "description", "required", "collectionFormat", "allowEmptyValue"})
_VALUES = frozenset({"default", "enum", "example", "examples"})
_URL_FORM, _PARTS_FORM = FORMS


def upgrade(root: JsonObject, documents: Documents) -> tuple[JsonObject, list[tuple[ToolkitError, str]]]:
    """Replace the document by its OpenAPI 3.0 form; return that, and errors with the names of broken operations."""
    place, broken = documents.root, list[tuple[ToolkitError, str]]()
    moved = re.sub(r'"#/(definitions|responses)/', lambda found: _MOVED[found[1]], json.dumps(root))
    given: JsonObject = _modern(json.loads(moved))

    def part(name: str) -> JsonObject:
        return expect_object(member(given, name, {}), place / name)

    schemes = [str(each) for each in member(given, "schemes", [])]
    scheme = "https" if "https" in schemes or not schemes else schemes[0]
    base = str(given.get("basePath") or "/").rstrip("/")
    url = f"{scheme}://{given['host']}{base}" if given.get("host") else base
    components = {
        "schemas": part("definitions"),
        "responses": {name: _response(one, given) for name, one in part("responses").items()},
        "securitySchemes": part("securityDefinitions"),
    }
    new = {key: value for key, value in given.items() if key not in _OLD}
    new |= {"openapi": "3.0.3", "servers": [{"url": url}] if url else [], "components": components}
    documents.replace_root({**new, "parameters": part("parameters")})
    for path, item in [(path, one) for path, one in part("paths").items() if isinstance(one, dict)]:
        for method in [key for key in item if key in METHODS]:
            here, old = place / "paths" / path / method, item.pop(method)
            try:
                item[method] = _operation(expect_object(old, here), item, given, documents, here)
            except ToolkitError as error:
                named = old.get("operationId") if isinstance(old, dict) else None
                broken.append((error, str(named or f"{method} {path}")))
        item.pop("parameters", None)
    documents.replace_root(new)
    return new, broken


def _modern(value: Json) -> Any:
    """Return a copy with files, discriminators, null and basic authentication in their 3.0 form."""
    if isinstance(value, list):
        return [_modern(each) for each in value]
    if not isinstance(value, dict):
        return value
    new = {key: each if key in _VALUES else _modern(each) for key, each in value.items()}
    if new.get("type") == "file":
        new |= {"type": "string", "format": "binary"}
    if new.get("type") == "basic":
        new |= {"type": "http", "scheme": "basic"}
    if isinstance(name := new.get("discriminator"), str) and ("properties" in new or "allOf" in new):
        new["discriminator"] = {"propertyName": name}
    return {**new, "nullable": True} if new.get("x-nullable") is True else new


def _operation(given: JsonObject, item: JsonObject, root: JsonObject, documents: Documents, place: Place) -> JsonObject:
    own = dict[tuple[Any, Any], JsonObject]()
    for listed in (item, given):
        for one, there in list_items(member(listed, "parameters", []), place / "parameters"):
            read = expect_object(documents.follow(one, there)[0], there)
            own[read.get("name"), read.get("in")] = read
    takes = [str(one) for one, _ in list_items(member({**root, **given}, "consumes", []), place / "consumes")]
    new = {key: value for key, value in given.items() if key not in ("consumes", "produces", "schemes")}
    new["parameters"] = []
    names, styles, required = JsonObject(), JsonObject(), list[str]()
    for (name, where), one in own.items():
        schema = {key: each for key, each in one.items() if key not in _NO_SCHEMA and not key.startswith("x-")}
        if where == "body":
            types = [each for each in takes if each not in FORMS] or ["application/json"]
            about = {key: one[key] for key in ("description", "required") if key in one}
            new["requestBody"] = about | {"content": {each: {"schema": one.get("schema", {})} for each in types}}
        elif where == "formData":
            names[name], styles[name] = {**schema, "description": str(one.get("description", ""))}, _style(one, place)
            required += [name] if one.get("required") is True else []
        else:
            kept = {key: one[key] for key in ("name", "in", "description", "required") if key in one}
            new["parameters"].append(kept | {"schema": schema} | _style(one, place))
    if names:
        in_parts = takes == [_PARTS_FORM] or any(each.get("format") == "binary" for each in names.values())
        form: JsonObject = {"schema": {"type": "object", "properties": names, "required": required}, "encoding": styles}
        new["requestBody"] = {"content": {_PARTS_FORM if in_parts else _URL_FORM: form}}
    answers = expect_object(member(given, "responses", {}), place / "responses")
    return {**new, "responses": {code: _response(one, {**root, **given}) for code, one in answers.items()}}


def _style(parameter: JsonObject, place: Place) -> JsonObject:
    kind, where = parameter.get("collectionFormat", "csv"), parameter.get("in")
    if parameter.get("type") != "array" or (kind == "csv" and where in ("path", "header")):
        return {}
    if kind not in _STYLES or where in ("path", "header"):
        raise error_at(place, f"{parameter.get('name')!r}: the collectionFormat {kind!r} in {where} cannot be sent")
    return _STYLES[kind]


def _response(given: Any, holder: JsonObject) -> Any:
    if not isinstance(given, dict) or "$ref" in given:
        return given
    examples = given["examples"] if isinstance(given.get("examples"), dict) else {}
    types = [*map(str, member(holder, "produces", []))] or [*examples] or ["application/json"]
    schema = {"schema": given["schema"]} if "schema" in given else {}
    content = {each: schema | ({"example": examples[each]} if each in examples else {}) for each in types}
    rest = {key: one for key, one in given.items() if key not in ("schema", "examples")}
    return {**rest, "content": content} if schema or examples else rest
