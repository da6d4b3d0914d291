"""Turn the parameters and body of an OpenAPI operation into one argument object.

Each parameter and each property of a JSON or form body is one argument, under its own name. A name that several
locations use gets the location as a suffix: `id` in path and body becomes `id_path` and `id_body`. A body that is not a
plain object (a list, text, a map, a choice of schemas, an object with further conditions) is one argument, `body`. The
tool's binding maps each argument to its location. Headers of the protocol or of a security scheme (Accept,
Content-Type, Authorization, API keys) are left out, since the client sets them; so is an idempotency key, which the
executor fills.

Properties that a body requires are required, even if the document does not mark the body itself as required.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...errors import ToolkitError
from ...schemas.reading import Said
from ...schemas.subschemas import ANNOTATIONS, rebuild
from ...state import Json, JsonObject
from ...values.digest import open_json
from ..spec import ToolExample, path_variables, unique_name
from .composition import Direction
from .documents import Documents, Place, error_at, expect_object, list_items, member
from .request import CLIENT_HEADERS, FORMS, JSON_MEDIA, STYLES
from .schema_reader import SchemaReader
from .simplify import PREFIX, defs_of

_NOT_ARGUMENTS = CLIENT_HEADERS | {"accept", "content-type", "authorization"}
_KEY_HEADER = re.compile(r"(?i)(x-)?idempotency[-_]?key")
_SECRET_NAME = re.compile(
    r"(?i)(?:api|access|auth|secret|private|session|csrf|xsrf)[_-]?(?:key|token)|password|secret|credential"
)
_PLAIN_BODY = ANNOTATIONS | {"type", "properties", "required", "additionalProperties", "$defs"}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument, and its examples in the document."""

    place: str
    wire: str
    schema: Any
    required: bool
    examples: dict[str, Json] = field(default_factory=dict)
    """By name; an unnamed example has the empty name."""
    style: JsonObject = field(default_factory=dict)
    """Its serialization, as in `HttpBinding`."""


class Arguments(NamedTuple):
    """All arguments of an operation by name; its body as in `HttpBinding`; its idempotency header."""

    parameters: JsonObject
    named: dict[str, Argument]
    body: JsonObject
    key_header: str | None


@dataclass(frozen=True, slots=True)
class Media:
    """Schema and named examples of a request body, a response or a parameter."""

    kind: str
    schema: JsonObject | None
    examples: dict[str, Json]
    encoding: JsonObject = field(default_factory=dict)


class ArgumentReader:
    """Reads the arguments of a document's operations.

    Args:
        documents: The document with its referenced files.
        schemas: Reads its schemas.
        keys: Location and lower-case name of parameters that are credentials.
    """

    def __init__(self, documents: Documents, schemas: SchemaReader, *, keys: Iterable[tuple[str, str]]) -> None:
        self._documents = documents
        self._schemas = schemas
        self._left_out = {*keys, *(("header", name) for name in _NOT_ARGUMENTS)}

    def read(self, operation: JsonObject, place: Place, *, item: JsonObject, item_place: Place, path: str) -> Arguments:
        """Return the arguments of one operation, including the parameters of its path item.

        A path variable that no parameter declares becomes a string argument.
        """
        found = {**self._parameters(item, item_place), **self._parameters(operation, place)}
        for name in path_variables(path):
            found.setdefault(("path", name), Argument("path", name, {"type": "string"}, True))
        given = [one for (where, name), one in found.items() if (where, name.lower()) not in self._left_out]
        headers = [one.wire for one in given if one.place == "header" and _KEY_HEADER.fullmatch(one.wire)]
        given = [one for one in given if one.place != "header" or one.wire not in headers]
        body, whole, form = self._body(operation, place, {one.wire for one in given})
        named = _name_arguments([*given, *body])
        parameters = self._schemas.simplify(_merge_arguments(named, whole))
        return Arguments(parameters, named, form, headers[0] if headers else None)

    def _parameters(self, holder: JsonObject, place: Place) -> dict[tuple[str, str], Argument]:
        found: dict[tuple[str, str], Argument] = {}
        for one, there in list_items(member(holder, "parameters", []), place / "parameters"):
            try:
                argument = self._parameter(*self._documents.follow(one, there))
            except ToolkitError as error:
                self._schemas.note(error)
                continue
            found[argument.place, argument.wire] = argument
        return found

    def _parameter(self, value: Any, place: Place) -> Argument:
        parameter = expect_object(value, place)
        name, where = parameter.get("name"), parameter.get("in")
        if not isinstance(name, str) or not name:
            raise error_at(place, "a parameter must have a name")
        places = [*STYLES, "querystring"] if "content" in parameter else [*STYLES]
        if not isinstance(where, str) or where not in places:
            raise error_at(place / "in", f"must be one of {', '.join(places)}, not {where!r}")
        if media := self.media(parameter, place):
            schema, examples, style = dict(media.schema or {}), media.examples, JsonObject(content=media.kind)
        else:
            schema = self._schemas.read(parameter.get("schema", {}), place / "schema", direction="request")
            examples, style = self._examples(parameter, place), _read_style(parameter, where)
            if "" in examples:
                schema = {**schema, "examples": schema.get("examples", [examples[""]])}
        for key in ("description", "deprecated"):
            if isinstance(parameter.get(key), str) or parameter.get(key) is True:
                schema = {**schema, key: parameter[key]}
        if where == "cookie" or (where in ("header", "query") and _SECRET_NAME.search(name)):
            schema, examples = _without_values(schema), {}
        required = where == "path" or parameter.get("required") is True
        return Argument(where, name, schema, required, examples, style)

    def _body(
        self, operation: JsonObject, place: Place, taken: Collection[str]
    ) -> tuple[list[Argument], JsonObject, JsonObject]:
        """Return the body's arguments, its schema if its properties are arguments, and its form.

        `taken` are the names of the other arguments.
        """
        try:
            value, here = self._documents.follow(member(operation, "requestBody", {}), place / "requestBody")
            request = expect_object(value, here)
            media = self.media(request, here)
        except ToolkitError as error:
            self._schemas.note(error)
            return [Argument("body", "", {}, False)], {}, {}
        if media is None:
            return [], {}, {}
        form: JsonObject = {"media": media.kind} if media.kind != JSON_MEDIA else {}
        form |= {"encoding": media.encoding} if media.encoding else {}
        schema = _inline_root_ref(media.schema or {})
        required = request.get("required") is True
        if _is_plain(schema, taken):
            arguments = _members(schema, media.examples)
            schema |= _allow_shown(arguments, schema, media.examples, taken)
            if required != any(one.required for one in arguments):  # otherwise its members imply it
                form["required"] = required
            return arguments, schema, form | ({"closed": True} if schema.get("additionalProperties") is False else {})
        if isinstance(request.get("description"), str):
            schema.setdefault("description", request["description"])
        return [Argument("body", "", schema, required, media.examples)], {}, form

    def media(self, holder: JsonObject, place: Place, *, direction: Direction = "request") -> Media | None:
        """Return the preferred media type of a body: JSON, then forms and text, then any other."""
        content, there = self._documents.part(holder, "content", place)
        if not content:
            return None
        kind, schema = min(content, key=_preference), None
        media, here = self._documents.part(content, kind, there)
        if "itemSchema" in media:  # schema of one value in a sequence, which becomes a list
            items = {"type": "array", "items": media["itemSchema"]}
            schema = self._schemas.read(items, here / "itemSchema", direction=direction)
        elif "schema" in media:
            schema = self._schemas.read(media["schema"], here / "schema", direction=direction)
        return Media(kind, schema, self._examples(media, here), _read_encoding(media))

    def _examples(self, holder: JsonObject, place: Place) -> dict[str, Json]:
        found: dict[str, Json] = {"": self._example_value(holder["example"], place)} if "example" in holder else {}
        examples, here = self._follow(holder.get("examples"), place / "examples")
        for name, one in examples.items() if isinstance(examples, dict) else ():
            example, where = self._follow(one, here / name)
            for key in ("dataValue", "value", "serializedValue") if isinstance(example, dict) else ():
                if key in example and name not in found:
                    found[name] = self._example_value(example[key], where / key)
        return found

    def _follow(self, value: Any, place: Place) -> tuple[Any, Place]:
        """Return the target of a reference to examples; None, and a note, if it cannot be resolved."""
        try:
            return self._documents.follow(value, place)
        except ToolkitError as error:
            self._schemas.note(error)
            return None, place

    def _example_value(self, value: Json, place: Place) -> Json:
        # some documents keep example values in separate files: a lone `$ref` that can be resolved is such a reference
        if not isinstance(value, dict) or value.keys() != {"$ref"} or "//" in str(value["$ref"]):
            return value
        try:
            return self._documents.follow(value, place)[0]
        except ToolkitError:
            return value


def _read_style(parameter: JsonObject, place: str) -> JsonObject:
    default = STYLES[place][0]
    style, explode = parameter.get("style", default), parameter.get("explode")
    read: JsonObject = {"style": style} if style in STYLES[place][1:] else {}
    if isinstance(explode, bool) and explode != (read.get("style", default) == "form"):
        read["explode"] = explode
    if place == "query" and parameter.get("allowReserved") is True:
        read["allowReserved"] = True
    return read


def _read_encoding(media: JsonObject) -> JsonObject:
    given = media.get("encoding")
    read: JsonObject = {}
    for name, rule in given.items() if isinstance(given, dict) else ():
        if isinstance(rule, dict):
            kind = rule.get("contentType")
            style = _read_style(rule, "query") | ({"contentType": kind} if isinstance(kind, str) else {})
            read |= {name: style} if style else {}
    return read


def _preference(media_type: str) -> int:
    plain = media_type.partition(";")[0].strip().lower()
    is_text = plain == "*/*" or (plain.startswith("text/") and "xml" not in plain)
    return [plain == JSON_MEDIA, plain.endswith("+json"), plain in FORMS, is_text, True].index(True)


def _inline_root_ref(schema: JsonObject) -> JsonObject:
    """Return a schema with its root `$ref` replaced by the definition; circular objects as a body need this."""
    name = str(schema.get("$ref", "")).removeprefix(PREFIX)
    defs = schema.get("$defs", {})
    beside = schema.keys() - {"$ref", "$defs"}
    if not isinstance(defs.get(name), dict) or not beside <= ANNOTATIONS:
        return dict(schema)
    return {**defs[name], **{key: schema[key] for key in beside}, "$defs": defs}


def _is_plain(schema: JsonObject, taken: Collection[str]) -> bool:
    """Return whether each property of a body can be an argument beside the `taken` ones."""
    if schema.get("type", "object") != "object" or not schema.get("properties"):
        return False
    if not schema.keys() - _PLAIN_BODY:
        return True
    parts = Said(schema, schema).parts()
    names = {name for part in parts for name in part.get("properties", ())}
    is_open = any(part.keys() & {"additionalProperties", "unevaluatedProperties"} for part in parts[1:])
    return schema.keys() <= _PLAIN_BODY | {"dependentSchemas"} and not (is_open and taken) and not names & {*taken}


def _without_values(schema: Any) -> Any:
    """Return a credential's schema without example values, which may be real."""
    if not isinstance(schema, dict):
        return schema
    plain = {key: value for key, value in schema.items() if key not in ("default", "example", "examples")}
    return rebuild(plain, _without_values)


def _members(schema: JsonObject, examples: dict[str, Json]) -> list[Argument]:
    """Return an argument for each property of a plain body and its branches."""
    names, listed = schema.get("required", []), dict(schema["properties"])
    for part in Said(schema, schema).parts()[1:]:
        for name, one in part.get("properties", {}).items():
            if name not in schema["properties"]:  # if branches differ, the active branch decides
                listed[name] = one if listed.get(name, one) == one else {}
    opened = {key: open_json(value) for key, value in examples.items()}
    arguments: list[Argument] = []
    for name in dict.fromkeys([*listed, *names]):
        own = {key: value[name] for key, value in opened.items() if isinstance(value, dict) and name in value}
        arguments.append(Argument("body", name, _with_defs_of(listed.get(name, {}), schema), name in names, own))
    return arguments


def _allow_shown(
    arguments: list[Argument], schema: JsonObject, examples: dict[str, Json], taken: Collection[str]
) -> JsonObject:
    """Return the rules that let a body have properties of its examples that are not arguments (read-only, unnamed).

    A property with the name of another argument becomes an argument of its own.
    """
    opened = [open_json(value) for value in examples.values()]
    shown = dict.fromkeys(name for value in opened if isinstance(value, dict) for name in value)
    known = {one.wire for one in arguments}
    others = [] if schema.get("additionalProperties") is False else [name for name in shown if name not in known]
    arguments += [Argument("body", name, {}, False) for name in others if name in taken]
    free = "|".join(re.escape(name) for name in others if name not in taken)
    return {"patternProperties": {f"^(?:{free})$": True}} if free else {}


def _with_defs_of(part: Any, whole: JsonObject) -> Any:
    """Return a part of a schema with the definitions that it needs."""
    return {**part, "$defs": whole.get("$defs", {})} if isinstance(part, dict) and defs_of(part) else part


def _merge_arguments(named: dict[str, Argument], body: JsonObject) -> JsonObject:
    defs: JsonObject = {}
    properties = {name: _take_defs(one.schema, defs) for name, one in named.items()}
    parameters: JsonObject = {"type": "object", "properties": properties}
    required = [name for name, one in named.items() if one.required]
    if required or "required" in body:  # keeps an empty list for a lossless round trip
        parameters["required"] = required
    more = _with_defs_of(body.get("additionalProperties", False), body)
    parameters["additionalProperties"] = _take_defs(more, defs)
    if "patternProperties" in body:
        parameters["patternProperties"] = body["patternProperties"]
    if "dependentSchemas" in body:
        parameters |= {"dependentSchemas": body["dependentSchemas"]}
        defs |= body.get("$defs", {})
        is_open = any(part.get("additionalProperties") for part in Said(body, body).parts())
        parameters["additionalProperties"] = parameters["additionalProperties"] or is_open
    return {**parameters, "$defs": defs}


def _take_defs(schema: Any, defs: JsonObject) -> Any:
    """Return a schema without its definitions, and add those to `defs`."""
    if not isinstance(schema, dict):
        return schema
    defs |= schema.get("$defs", {})
    return {key: value for key, value in schema.items() if key != "$defs"}


def _name_arguments(arguments: list[Argument]) -> dict[str, Argument]:
    often = Counter(one.wire or "body" for one in arguments)
    alone = {name for name, times in often.items() if times == 1}
    named: dict[str, Argument] = {}
    for one in arguments:
        name = one.wire or "body"
        named[name if name in alone else unique_name(f"{name}_{one.place}", {*alone, *named})] = one
    return named


def pair_examples(arguments: dict[str, Argument], response: Media) -> tuple[ToolExample, ...]:
    """Return the examples with known arguments.

    A response example belongs to the request examples of the same name; optional arguments without one are absent. If
    no request example has its name, it belongs to the unnamed ones if it is the only response example, or to a call
    without arguments. Of several answers to the same arguments the first is kept.
    """
    found: dict[str, ToolExample] = {}
    shown = [one.examples for one in arguments.values() if one.examples]
    for name, value in response.examples.items():
        has_partner = any(name in examples for examples in shown)
        if name and not has_partner and shown and len(response.examples) > 1:
            continue
        chosen = name if has_partner else ""
        given = {key: one for key, one in arguments.items() if chosen in one.examples}
        if all(key in given for key, one in arguments.items() if one.required):
            args = {key: _as_schema_type(one, one.examples[chosen]) for key, one in given.items()}
            answer = value if _is_text(response.schema) else open_json(value)
            found.setdefault(json.dumps(args, sort_keys=True), ToolExample(args, answer))
    return tuple(found.values())


def _as_schema_type(argument: Argument, value: Json) -> Json:
    """Return the value in the schema's type, if only the notation differs: numbers as text, JSON text as its value."""
    if not _is_text(argument.schema):
        return open_json(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number and argument.place != "body" else value


def _is_text(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "string"
