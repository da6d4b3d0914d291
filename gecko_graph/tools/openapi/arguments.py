"""Parameters and body of an OpenAPI operation as one argument object.

Each parameter and each property of a JSON or form body is one argument, under its own name. Names that more than one
place uses get the place behind them: `id` in path and body becomes `id_path` and `id_body`. A body that is no plain
object (a list, text, a map, a choice of schemas, an object with further conditions) is one argument, `body`. The tool's
binding says where each argument travels. Headers that the protocol or the security scheme sets (Accept, Content-Type,
Authorization, API keys) are left out: the client sets them. So is an idempotency key's: the executor fills it.

What a body requires is required, also where the document forgets to say that the body itself is; only where it says
`required: false`, all of it may be left out, and any of it asks for the rest.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...errors import ToolkitError
from ...schemas.subschemas import ANNOTATIONS, rebuild
from ...state import Json, JsonObject
from ..names import path_variables, unique_name
from ..spec import ToolExample
from .references import Documents, Place, error_at, expect_object, list_items, member
from .request import CLIENT_HEADERS, JSON_MEDIA, STYLES
from .schema_reader import Direction, SchemaReader
from .simplify import PREFIX, defs_of


def pair_examples(arguments: dict[str, Argument], response: Body) -> tuple[ToolExample, ...]:
    """Return the examples whose arguments are known.

    A response example belongs to the request examples of the same name; an optional argument without one is absent. One
    without a partner of its name belongs to the examples without a name, if it is the only one, or to a call without
    arguments. Of several answers to the same arguments the first counts. A text that holds JSON is opened unless the
    result is text.
    """
    found: dict[str, ToolExample] = {}
    for name, value in response.examples.items():
        args = _example_args(arguments, name, only=len(response.examples) == 1)
        if args is not None:
            answer = value if _is_text(response.schema) else parse_if_json(value)
            found.setdefault(json.dumps(args, sort_keys=True), ToolExample(args, answer))
    return tuple(found.values())


def _example_args(arguments: dict[str, Argument], name: str, *, only: bool) -> JsonObject | None:
    """Return the arguments that an example of this name is for; None where that is not known."""
    named = any(name in one.examples for one in arguments.values())
    if name and not named and not only and any(one.examples for one in arguments.values()):
        return None
    chosen = name if named else ""
    if any(one.required and chosen not in one.examples for one in arguments.values()):
        return None
    return {key: _as_schema_type(one, one.examples[chosen]) for key, one in arguments.items() if chosen in one.examples}


def _as_schema_type(argument: Argument, value: Json) -> Json:
    """Return the value as the schema wants it: numbers as text and text as JSON, where only the writing differs."""
    if not _is_text(argument.schema):
        return parse_if_json(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number and argument.place != "body" else value


def _is_text(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "string"


PLACES = ("path", "query", "header", "cookie")
_NOT_ARGUMENTS = CLIENT_HEADERS | {"accept", "content-type", "authorization"}
_KEY_HEADER = re.compile(r"(?i)(x-)?idempotency[-_]?key")
_SECRET_NAME = re.compile(
    r"(?i)(?:api|access|auth|secret|private|session|csrf|xsrf)[_-]?(?:key|token)|password|secret|credential"
)
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_PLAIN_BODY = ANNOTATIONS | {"type", "properties", "required", "additionalProperties", "$defs"}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument, and the examples that the document gives for it."""

    place: str
    wire: str
    schema: Any
    required: bool
    examples: dict[str, Json] = field(default_factory=dict)
    """By name; an unnamed one under the empty name."""
    style: JsonObject = field(default_factory=dict)
    """How it is written, as an `HttpBinding` has it."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """All arguments of an operation, by their names."""

    parameters: JsonObject
    named: dict[str, Argument]
    body: JsonObject
    """How the body is written, as an `HttpBinding` has it."""
    key_header: str | None = None
    """The header that takes an idempotency key."""

    @property
    def styles(self) -> dict[str, JsonObject]:
        """Argument name to style, where it is not the default."""
        return {name: one.style for name, one in self.named.items() if one.style}

    @property
    def places(self) -> dict[str, tuple[str, str]]:
        """Argument name to place and name on the wire, as an `HttpBinding` has it."""
        return {name: (one.place, one.wire) for name, one in self.named.items()}


@dataclass(frozen=True, slots=True)
class Body:
    """A request body's or a response's schema, and its examples by name."""

    schema: JsonObject | None
    examples: dict[str, Json]
    where: Place

    @property
    def media(self) -> str:
        """The media type."""
        return str(self.where.tokens[-1])


class ArgumentReader:
    """Reads the arguments of a document's operations.

    `keys` are place and lower-case name of parameters that are credentials.
    """

    def __init__(self, documents: Documents, schemas: SchemaReader, *, keys: Iterable[tuple[str, str]] = ()) -> None:
        self._documents = documents
        self._schemas = schemas
        self._keys = frozenset(keys)

    def read(self, operation: JsonObject, place: Place, *, item: JsonObject, item_place: Place, path: str) -> Arguments:
        """Return the arguments of one operation; the parameters of the path item that holds it count too.

        A variable in the path that no parameter declares becomes a text argument.
        """
        found = {**self._parameters(item, item_place), **self._parameters(operation, place)}
        for name in path_variables(path):
            found.setdefault(("path", name), Argument("path", name, {"type": "string"}, True))
        given = [one for key, one in found.items() if not self._is_credential(*key)]
        headers = [one.wire for one in given if one.place == "header" and _KEY_HEADER.fullmatch(one.wire)]
        given = [one for one in given if one.place != "header" or one.wire not in headers]
        body, rest, form = self._body(operation, place)
        named = _name_arguments([*given, *body])
        parameters = self._schemas.restore_names(self._schemas.simplify(_merge_arguments(named, rest)))
        return Arguments(parameters, named, form, headers[0] if headers else None)

    def _is_credential(self, place: str, name: str) -> bool:
        plain = name.lower()
        return (place == "header" and plain in _NOT_ARGUMENTS) or (place, plain) in self._keys

    def _parameters(self, holder: JsonObject, place: Place) -> dict[tuple[str, str], Argument]:
        here = place / "parameters"
        found: dict[tuple[str, str], Argument] = {}
        for one, there in list_items(member(holder, "parameters", []), here):
            argument = self._parameter(*self._documents.follow(one, there))
            found[argument.place, argument.wire] = argument
        return found

    def _parameter(self, value: Any, place: Place) -> Argument:
        parameter = expect_object(value, place)
        name, where = parameter.get("name"), parameter.get("in")
        if not isinstance(name, str) or not name:
            raise error_at(place, "a parameter must have a name")
        if where not in PLACES:
            raise error_at(place / "in", f"must be one of {', '.join(PLACES)}, not {where!r}")
        media = self.media(parameter, place) if "content" in parameter else None
        if media is not None:
            schema, examples = dict(media.schema or {}), media.examples
        else:
            schema = self._schemas.read(parameter.get("schema", {}), place / "schema", direction="request")
            examples = self.examples(parameter, place)
        for key in ("description", "deprecated"):
            if isinstance(parameter.get(key), str) or parameter.get(key) is True:
                schema = {**schema, key: parameter[key]}
        if "" in examples and media is None:
            schema = {**schema, "examples": schema.get("examples", [examples[""]])}
        if where == "cookie" or (where in ("header", "query") and _SECRET_NAME.search(name)):
            schema, examples = _without_values(schema), {}
        required = where == "path" or parameter.get("required") is True
        style = _read_style(parameter, str(where)) if media is None else {"content": media.media}
        return Argument(str(where), name, schema, required, examples, style)

    def _body(self, operation: JsonObject, place: Place) -> tuple[list[Argument], JsonObject, JsonObject]:
        """Return the body's arguments, the keywords that concern the whole, and how it is written."""
        if operation.get("requestBody") is None:
            return [], {}, {}
        value, here = self._documents.follow(operation["requestBody"], place / "requestBody")
        request = expect_object(value, here)
        media = self.media(request, here)
        if media is None:
            return [], {}, {}
        form: JsonObject = {"media": media.media} if media.media != JSON_MEDIA else {}
        encoding = _read_encoding(self._documents.at(media.where))
        form |= {"encoding": encoding} if encoding else {}
        schema = _inline_root_ref(media.schema or {})
        required = request.get("required") is True
        if _is_plain(schema):
            arguments, rest = _members(schema, media.examples, optional=request.get("required") is False)
            is_unsaid = required and not any(one.required for one in arguments)
            return arguments, rest, form | ({"required": True} if is_unsaid else {})
        if isinstance(request.get("description"), str):
            schema.setdefault("description", request["description"])
        return [Argument("body", "", schema, required, media.examples)], {}, form

    def media(self, holder: JsonObject, place: Place, *, direction: Direction = "request") -> Body | None:
        """Return the best of the media types that a body comes in: JSON, then forms and text, then anything."""
        content = expect_object(member(holder, "content", {}), place / "content")
        if not content:
            return None
        name = min(content, key=lambda one: _preference(one, list(content)))
        here = place / "content" / name
        media = expect_object(content[name] if content[name] is not None else {}, here)
        schema = (
            self._schemas.read(media["schema"], here / "schema", direction=direction) if "schema" in media else None
        )
        return Body(schema, self.examples(media, here), here)

    def examples(self, holder: JsonObject, place: Place) -> dict[str, Json]:
        """Return the examples of a parameter or media type, by name; an unnamed one under the empty name."""
        found: dict[str, Json] = {"": self._example_value(holder["example"], place)} if "example" in holder else {}
        examples, here = self._documents.follow(holder.get("examples"), place / "examples")
        for name, one in examples.items() if isinstance(examples, dict) else ():
            example, where = self._documents.follow(one, here / name)
            if isinstance(example, dict) and "value" in example:
                found[name] = self._example_value(example["value"], where / "value")
        return found

    def _example_value(self, value: Json, place: Place) -> Json:
        # some documents keep example values in files of their own; a lone `$ref` that leads somewhere is meant so
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


def _read_encoding(media: Any) -> JsonObject:
    given = media.get("encoding") if isinstance(media, dict) else None
    rules = {name: one for name, one in given.items() if isinstance(one, dict)} if isinstance(given, dict) else {}
    read = {name: _read_style(one, "query") for name, one in rules.items()}
    for name, one in rules.items():
        if isinstance(one.get("contentType"), str):
            read[name]["contentType"] = one["contentType"]
    return {name: one for name, one in read.items() if one}


def _preference(media_type: str, listed: list[str]) -> tuple[int, int]:
    plain = media_type.partition(";")[0].strip().lower()
    is_text = plain == "*/*" or (plain.startswith("text/") and "xml" not in plain)
    kinds = [plain == JSON_MEDIA, plain.endswith("+json"), plain in _FORMS, is_text, True]
    return kinds.index(True), listed.index(media_type)


def _inline_root_ref(schema: JsonObject) -> JsonObject:
    """Return the schema with a definition that it merely refers to written out: a circular object as a body."""
    name = str(schema.get("$ref", "")).removeprefix(PREFIX)
    defs = schema.get("$defs", {})
    beside = schema.keys() - {"$ref", "$defs"}
    if name not in defs or not isinstance(defs[name], dict) or not beside <= ANNOTATIONS:
        return dict(schema)
    return {**defs[name], **{key: schema[key] for key in beside}, "$defs": defs}


def _is_plain(schema: JsonObject) -> bool:
    return (
        schema.keys() <= _PLAIN_BODY
        and schema.get("type", "object") == "object"
        and isinstance(schema.get("properties"), dict)
        and bool(schema["properties"])
    )


def _without_values(schema: Any) -> Any:
    """Return a credential's schema without the values that its document shows: they may be real."""
    if not isinstance(schema, dict):
        return schema
    plain = {key: value for key, value in schema.items() if key not in ("default", "example", "examples")}
    return rebuild(plain, _without_values)


def _members(schema: JsonObject, examples: dict[str, Json], *, optional: bool) -> tuple[list[Argument], JsonObject]:
    """Return an argument for each member of a plain body, and the keywords that concern the whole.

    It is optional where the document says that the whole body may be left out.
    """
    names, listed = schema.get("required", []), schema["properties"]
    arguments = [
        Argument("body", name, _with_defs_of(one, schema), name in names and not optional, _examples_of(examples, name))
        for name, one in listed.items()
    ]
    arguments += [Argument("body", name, {}, not optional) for name in names if name not in listed]
    rest: JsonObject = {}
    if "additionalProperties" in schema:
        rest["additionalProperties"] = _with_defs_of(schema["additionalProperties"], schema)
    if optional and names:
        rest["dependentRequired"] = names
    elif "required" in schema:
        rest["required"] = []  # an empty list is kept, so that the tool reads back as it was written
    return arguments, rest


def _with_defs_of(part: Any, whole: JsonObject) -> Any:
    """Return a part of a schema with the definitions of the whole that it needs."""
    if isinstance(part, dict) and defs_of(part):
        return {**part, "$defs": whole.get("$defs", {})}
    return part


def _examples_of(examples: dict[str, Json], name: str) -> dict[str, Json]:
    """Return one property's part of the body's examples."""
    opened = {key: parse_if_json(value) for key, value in examples.items()}
    return {key: value[name] for key, value in opened.items() if isinstance(value, dict) and name in value}


def _merge_arguments(named: dict[str, Argument], rest: JsonObject) -> JsonObject:
    defs: dict[str, Any] = {}
    properties = {name: _without_defs(one.schema, defs) for name, one in named.items()}
    parameters: JsonObject = {"type": "object", "properties": properties}
    required = [name for name, one in named.items() if one.required]
    if required or "required" in rest:
        parameters["required"] = required
    parameters["additionalProperties"] = _without_defs(rest.get("additionalProperties", False), defs)
    if "dependentRequired" in rest:
        body = [name for name, one in named.items() if one.place == "body"]
        needed = [name for name in body if named[name].wire in rest["dependentRequired"]]
        parameters["dependentRequired"] = {name: [one for one in needed if one != name] for name in body}
    return {**parameters, "$defs": defs}


def _without_defs(schema: Any, defs: dict[str, Any]) -> Any:
    if not isinstance(schema, dict):
        return schema
    for name, one in schema.get("$defs", {}).items():
        defs.setdefault(name, one)
    return {key: value for key, value in schema.items() if key != "$defs"}


def _name_arguments(arguments: list[Argument]) -> dict[str, Argument]:
    wanted = [one.wire or "body" for one in arguments]
    often = Counter(wanted)
    alone = {name for name, times in often.items() if times == 1}
    named: dict[str, Argument] = {}
    for name, one in zip(wanted, arguments, strict=True):
        chosen = name if often[name] == 1 else unique_name(f"{name}_{one.place}", {*alone, *named})
        named[chosen] = one
    return named


def parse_if_json(value: Json) -> Json:
    """Return the value, or the JSON object or list that a text holds: many documents write their examples so."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
