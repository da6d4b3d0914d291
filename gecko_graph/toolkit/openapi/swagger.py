"""Swagger 2.0 as OpenAPI 3.0: where the API lives, what its calls take and give, its credentials.

Schemas stay where they are, under `definitions`: a reference to them leads there.
"""

from __future__ import annotations

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
_NO_SCHEMA = frozenset(("name", "in", "description", "required", "collectionFormat", "allowEmptyValue"))
_VALUES = frozenset(("default", "enum", "example", "examples"))
_URL_FORM, _PARTS_FORM = _FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def upgrade(root: JsonObject, documents: Documents) -> tuple[JsonObject, list[tuple[ToolkitError, str]]]:
    """Return the document as OpenAPI 3.0, and the operations that it cannot say, each with its error."""
    place, broken = documents.root, list[tuple[ToolkitError, str]]()
    new = {key: value for key, value in _plain(root).items() if key not in ("swagger", "schemes", "host", "basePath")}
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
    listed: list[tuple[Any, Place]] = []
    for holder in (item, given):
        listed += list_items(member(holder, "parameters", []), place / "parameters")
    parameters = [expect_object(_plain(documents.follow(one, there)[0]), there) for one, there in listed]
    own = {(one.get("name"), one.get("in")): one for one in parameters}
    parameters = [*own.values()]
    takes = [*map(str, expect_list(member(given, "consumes", member(root, "consumes", [])), place / "consumes"))]
    new = {key: value for key, value in given.items() if key not in ("consumes", "produces", "schemes")}
    placed: list[JsonObject] = [
        {key: one[key] for key in ("name", "in", "description", "required") if key in one}
        | {"schema": _schema(one), **_style(one, place)}
        for one in parameters
        if one.get("in") not in ("body", "formData")
    ]
    new["parameters"] = placed
    fields = [one for one in parameters if one.get("in") == "formData"]
    for body in [one for one in parameters if one.get("in") == "body"]:
        media = {"schema": body.get("schema", {})}
        content = dict.fromkeys([one for one in takes if one not in _FORMS] or ["application/json"], media)
        new["requestBody"] = {**body, "content": content}
    if fields:
        has_file = any(_schema(one).get("format") == "binary" for one in fields) or takes == [_PARTS_FORM]
        styles = {str(one["name"]): style for one in fields if (style := _style(one, place))}
        names = {str(one["name"]): {**_schema(one), "description": str(one.get("description", ""))} for one in fields}
        required = [str(one["name"]) for one in fields if one.get("required") is True]
        schema: JsonObject = {"type": "object", "properties": names} | ({"required": required} if required else {})
        media = {"schema": schema, **({"encoding": styles} if styles else {})}
        new["requestBody"] = {"content": {_PARTS_FORM if has_file else _URL_FORM: media}}
    answers = expect_object(member(given, "responses", {}), place / "responses")
    return {**new, "responses": {code: _response(one, {**root, **given}) for code, one in answers.items()}}


def _schema(parameter: JsonObject) -> JsonObject:
    return {key: each for key, each in parameter.items() if key not in _NO_SCHEMA and not key.startswith("x-")}


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
    found = given.get("examples")
    examples: JsonObject = found if isinstance(found, dict) else {}
    names = [*map(str, member(holder, "produces", []))] or [*examples] or ["application/json"]
    content: JsonObject = {name: {"schema": given["schema"]} if "schema" in given else {} for name in names}
    content |= {name: {**content.get(name, {}), "example": value} for name, value in examples.items()}
    return {**given, **({"content": content} if "schema" in given or examples else {})}
