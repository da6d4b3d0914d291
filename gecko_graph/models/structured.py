"""Structured replies: their JSON Schemas, and how to read one wherever the model put it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

import ormsgpack
from langchain_core.messages import AIMessage
from pydantic import BaseModel, ValidationError

from ..state import Json, JsonObject

Way = Literal["json_schema", "function_calling", "text"]

WAYS: tuple[Way, ...] = ("json_schema", "function_calling", "text")

MAX_REPLY_CHARS = 1_000_000
_MAX_CANDIDATES = 64
_MAX_ERRORS = 3

_FENCED = re.compile(r"```[a-zA-Z]*[ \t]*\n(.*?)```", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)


class Unreadable(ValueError):
    """A reply that is not what was asked for; the message says why, in one line.

    Args:
        why: One line.
        kind: `prose` if there was no JSON at all, `final` if asking again is of no use.
    """

    def __init__(self, why: str, *, kind: Literal["shape", "prose", "final"] = "shape") -> None:
        super().__init__(why)
        self.prose, self.final = kind == "prose", kind == "final"


def read_reply(said: Any, reply: type[BaseModel]) -> BaseModel:
    """Read a reply, wherever the model put it: a tool call's arguments, the text, a fenced block in the text.

    Raises:
        Unreadable: Empty, huge, not JSON, or of another shape.
    """
    if isinstance(said, AIMessage):
        return _read_message(said, reply)
    if isinstance(said, BaseModel):
        said = said.model_dump(by_alias=True)
    if isinstance(said, dict):
        return _fit(said, reply)
    raise Unreadable(f"the model replied with {type(said).__name__}, not with a message", kind="final")


def raw_text(message: AIMessage) -> str:
    """What the model wrote, as text: for the repair round and for nothing else."""
    if message.tool_calls:
        return json.dumps(message.tool_calls[0]["args"])  # escaped: half a surrogate pair could not be sent back
    if message.invalid_tool_calls:
        return str(message.invalid_tool_calls[0].get("args") or "")
    return str(message.text)


@cache
def schema_of(reply: type[BaseModel]) -> JsonObject:
    """The reply's JSON Schema as providers like it: named after the class, nothing referenced, no defaults."""
    source = reply.model_json_schema()
    schema = _plain(source, source.get("$defs", {}))
    if is_closed(reply):
        _close(schema)
    return {"title": reply.__name__, "description": f"The reply: {reply.__name__}", **schema}


@cache
def is_closed(reply: type[BaseModel]) -> bool:
    """True if every value's shape is known, so that a provider's strict mode can be used.

    Strict modes know no free-form JSON: a tool's result, an operation's value, a piece of state.
    """
    source = reply.model_json_schema()
    return not _has_free_form(_plain(source, source.get("$defs", {})))


def _read_message(message: AIMessage, reply: type[BaseModel]) -> BaseModel:
    for call in message.tool_calls:
        return _fit(call["args"], reply)
    for broken in message.invalid_tool_calls:
        return _fit(_parse(str(broken.get("args") or "")), reply)
    text = str(message.text)
    if not text and (refusal := message.additional_kwargs.get("refusal")):
        raise Unreadable(f"the model refused: {str(refusal)[:200]}", kind="final")
    return _read_text(text, reply)


def unkeepable(value: Json) -> str | None:
    """Why no checkpoint can keep a value: an integer over 64 bits, half a surrogate pair, NaN; None if it can."""
    try:
        json.dumps(value, allow_nan=False)
        ormsgpack.packb(value)
    except (TypeError, ValueError, RecursionError) as error:
        return " ".join(str(error).split())[:200]
    return None


def _read_text(text: str, reply: type[BaseModel]) -> BaseModel:
    if len(text) > MAX_REPLY_CHARS:
        raise Unreadable(f"the reply is {len(text):,} characters long, {MAX_REPLY_CHARS:,} are allowed")
    text = _THOUGHT.sub("", text).strip()
    if not text:
        raise Unreadable("the reply is empty")
    first: Unreadable | None = None
    for value in _values(text):
        try:
            return _fit(value, reply)
        except Unreadable as problem:
            first = first or problem
    raise first or _no_json(text)


def _no_json(text: str) -> Unreadable:
    try:
        _parse(text)
    except Unreadable as problem:
        if text[0] in "{[":
            return problem
    return Unreadable("the reply holds no JSON object", kind="prose")


def _values(text: str) -> Iterator[Json]:
    """JSON values in a text, likeliest first: all of it, fenced blocks, objects between prose."""
    for candidate in (text, *(block.strip() for block in _FENCED.findall(text))):
        try:
            yield _parse(candidate)
        except Unreadable:
            continue
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    start = text.find("{")
    for _ in range(_MAX_CANDIDATES):
        if start < 0:
            return
        try:
            value, start = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start += 1
        else:
            yield value
        start = text.find("{", start)


def _parse(text: str) -> Json:
    if len(text) > MAX_REPLY_CHARS:
        raise Unreadable(f"the reply is {len(text):,} characters long, {MAX_REPLY_CHARS:,} are allowed")
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise Unreadable("the reply is nested too deeply") from None
    except ValueError as error:
        raise Unreadable(f"the reply is not JSON: {error}") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _fit(value: Json, reply: type[BaseModel]) -> BaseModel:
    if isinstance(value, list) and (name := _only_list(reply)):
        value = {name: value}
    try:
        fitted = reply.model_validate(value)
    except ValidationError as error:
        raise Unreadable(f"the reply does not fit {reply.__name__}: {_told(error)}") from None
    except RecursionError:
        raise Unreadable("the reply is nested too deeply") from None
    if wrong := unkeepable(value):
        raise Unreadable(f"the reply cannot be kept: {wrong}")
    return fitted


def _told(error: ValidationError) -> str:
    told = [
        f"{'.'.join(str(part) for part in each['loc']) or 'all of it'}: {each['msg']}"
        for each in error.errors(include_url=False, include_input=False)
    ]
    more = f" and {len(told) - _MAX_ERRORS} more" if len(told) > _MAX_ERRORS else ""
    return "; ".join(told[:_MAX_ERRORS]) + more


def _only_list(reply: type[BaseModel]) -> str | None:
    required = [name for name, field in reply.model_fields.items() if field.is_required()]
    return (
        required[0]
        if len(required) == 1 and schema_of(reply)["properties"][required[0]].get("type") == "array"
        else None
    )


def _plain(schema: Json, definitions: JsonObject) -> Json:
    """A copy without references, titles and defaults."""
    if isinstance(schema, list):
        return [_plain(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _plain(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions)
    # the description of an object is its class's docstring: for us, not for the model
    left_out = {"title", "default", "$defs"} | ({"description"} if schema.get("type") == "object" else set())
    return {
        key: {name: _plain(each, definitions) for name, each in value.items()}
        if key == "properties"
        else _plain(value, definitions)
        for key, value in schema.items()
        if key not in left_out
    }


def _has_free_form(schema: JsonObject) -> bool:
    kind = schema.get("type")
    if kind == "object":
        return "properties" not in schema or any(_has_free_form(each) for each in schema["properties"].values())
    if kind == "array":
        return _has_free_form(schema.get("items", {}))
    return kind is None and "enum" not in schema


def _close(schema: JsonObject) -> None:
    """What strict modes ask for: every property required, no others; no length keywords, which some refuse."""
    for keyword in ("minLength", "minItems"):
        schema.pop(keyword, None)
    if schema.get("type") == "object":
        schema["required"], schema["additionalProperties"] = list(schema["properties"]), False
        for each in schema["properties"].values():
            _close(each)
    elif schema.get("type") == "array":
        _close(schema["items"])
