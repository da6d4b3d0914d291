"""Swagger 2.0 as OpenAPI 3.0: where the API lives, what its calls take and give, its credentials.

Schemas stay where they are, under `definitions`: a reference to them leads there.
"""

from __future__ import annotations

import json
from typing import Any

from ...errors import ToolkitError
from ...state import Json, JsonObject
from .keywords import METHODS
from .references import Documents, Place, error_at, expect_list, expect_object, list_items, member

_STYLES: dict[str, JsonObject] = {
    "csv": {"explode": False},
    "multi": {"explode": True},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
}
_MOVED = {"definitions": "schemas", "responses": "responses"}
_OLD = frozenset(("parameters", "securityDefinitions", "consumes", "produces"))
_NO_SCHEMA = frozenset(("name", "in", "description", "required", "collectionFormat", "allowEmptyValue"))
_VALUES = frozenset(("default", "enum", "example", "examples"))
_URL_FORM, _PARTS_FORM = _FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def upgrade(root: JsonObject, documents: Documents) -> tuple[JsonObject, list[tuple[ToolkitError, str]]]:
    """Return the document as OpenAPI 3.0, and the operations that it cannot say, each with its error."""
    place, broken = documents.root, list[tuple[ToolkitError, str]]()
    new: JsonObject = {
        key: value for key, value in _plain(root).items() if key not in ("swagger", "schemes", "host", "basePath")
    }
    for path, item in expect_object(member(new, "paths", {}), place / "paths").items():
        for method in [key for key in METHODS if isinstance(item, dict) and key in item]:
            here, given = place / "paths" / path / method, item.pop(method)
            try:
                item[method] = _operation(expect_object(given, here), item, new, documents, here)
            except ToolkitError as error:
                named = given.get("operationId") if isinstance(given, dict) else None
                broken.append((error, str(named or f"{method} {path}")))
        if isinstance(item, dict):
            item.pop("parameters", None)
    for name, response in expect_object(member(new, "responses", {}), place / "responses").items():
        new["responses"][name] = _response(response, new)
    schemes = [str(each) for each in member(root, "schemes", ["https"])]
    chosen = "https" if "https" in schemes else next(iter(schemes), "https")
    base = str(root.get("basePath") or "/").rstrip("/")
    servers = [{"url": f"{chosen}://{root['host']}{base}"}] if root.get("host") else [{"url": base}] if base else []
    security = expect_object(member(new, "securityDefinitions", {}), place / "securityDefinitions")
    for name, scheme in security.items():
        is_basic = isinstance(scheme, dict) and scheme.get("type") == "basic"
        security[name] = {"type": "http", "scheme": "basic"} if is_basic else scheme
    return {**new, "openapi": "3.0.3", "servers": servers, "components": {"securitySchemes": security}}, broken


def as_components(root: JsonObject) -> JsonObject:
    """Return an upgraded document with its definitions and responses among the components, as 3.0 wants them."""
    text = json.dumps(root)
    for old, new in _MOVED.items():
        text = text.replace(f'"#/{old}/', f'"#/components/{new}/')
    moved: JsonObject = json.loads(text)
    for old, new in _MOVED.items():
        moved["components"][new] = moved.pop(old, {})
    return {key: one for key, one in moved.items() if key not in _OLD}


def _plain(value: Json) -> Any:
    """Return a copy with what 2.0 writes otherwise in a schema: files, discriminators, null."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    new = {key: each if key in _VALUES else _plain(each) for key, each in value.items()}
    if new.get("type") == "file":
        new |= {"type": "string", "format": "binary"}
    if isinstance(name := new.get("discriminator"), str) and ("properties" in new or "allOf" in new):
        new["discriminator"] = {"propertyName": name}
    return {**new, "nullable": True} if new.get("x-nullable") is True else new


def _operation(given: JsonObject, item: JsonObject, root: JsonObject, documents: Documents, place: Place) -> JsonObject:
    here, own = place / "parameters", dict[tuple[Any, Any], JsonObject]()
    for listed in (item, given):
        for one, there in list_items(member(listed, "parameters", []), here):
            read = expect_object(_plain(documents.follow(one, there)[0]), there)
            own[read.get("name"), read.get("in")] = read
    takes = [*map(str, expect_list(member(given, "consumes", member(root, "consumes", [])), place / "consumes"))]
    new = {key: value for key, value in given.items() if key not in ("consumes", "produces", "schemes")}
    new["parameters"] = []
    names, styles, required = JsonObject(), JsonObject(), list[str]()
    for (name, where), one in own.items():
        schema = {key: each for key, each in one.items() if key not in _NO_SCHEMA and not key.startswith("x-")}
        if where == "body":
            types = [each for each in takes if each not in _FORMS] or ["application/json"]
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
