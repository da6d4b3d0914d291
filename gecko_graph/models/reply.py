"""Parse structured replies in any form: their JSON Schema, and JSON inside text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, Literal

import ormsgpack
from langchain_core.messages import AIMessage
from langchain_core.utils.json_schema import dereference_refs
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import WithJsonSchema

from ..state import Json, JsonObject
from .drawing import escape

MAX_REPLY_CHARS = 1_000_000
_MOST_VALUES = 64

_STRING = r'"(?:[^"\\]++|\\.?+)*+"?+'  # an unclosed string extends to the end: each character is read once
_OPENING = re.compile(r"[{\[]")
_TOKEN = re.compile(rf"{_STRING}|[{{}}\[\]]", re.DOTALL)
_COMMA = re.compile(rf"{_STRING}|,(?=\s*+[}}\]])", re.DOTALL)
_QUOTE = re.compile(r"<([a-z_]++-[0-9a-f]{8})>.*?(?:</\1>|\Z)", re.DOTALL)
"""Data that a prompt fences (`prompts.fence`): a small model repeats it, but it is no answer."""
_JSON_LIKE = re.compile(r"""\{\s*+(?:["'}]|\w++\s*+:)|\[\s*+["'{\[\]]""")


class Unreadable(ValueError):
    """A reply that does not fit its schema.

    Args:
        why: The reason in one line.
        kind: `prose` if there was no JSON, `final` if asking again is useless.
    """

    def __init__(self, why: str, *, kind: Literal["shape", "prose", "final"] = "shape") -> None:
        super().__init__(why)
        self.prose, self.final = kind == "prose", kind == "final"


def find_json(text: str) -> list[Json]:
    """Return the JSON values in a text, without those in reasoning or fenced data; never a part of a value.

    Raises:
        Unreadable: Empty, too long, truncated inside a value, or without JSON.
    """
    if len(text) > MAX_REPLY_CHARS:
        raise Unreadable(f"the reply is {len(text):,} characters long, {MAX_REPLY_CHARS:,} are allowed")
    with suppress(Unreadable):
        return [parse(text)]
    text = text if _thinks_inside(text) else text.rpartition("</think>")[2]
    if not text.strip():
        raise Unreadable("the reply is empty")
    spans = _spans(text)
    thought = text.find("<think>")  # without an end: only the last value can be the answer
    if thought >= 0 and not any(start < thought < end for start, end in spans):
        spans = [span for span in spans[-1:] if not text[span[1] :].strip("` \n")]
    if len(spans) > _MOST_VALUES:
        raise Unreadable(f"the reply holds {len(spans)} JSON values: give one")
    values: list[Json] = []
    problem = Unreadable("the reply holds no JSON object", kind="prose")
    quotes = [found.span() for found in _QUOTE.finditer(text)]
    for start, end in (each for each in spans if not any(first < each[0] < last for first, last in quotes)):
        try:
            values.append(parse(text[start:end]))
        except Unreadable as wrong:
            problem = problem if not problem.prose else wrong
    if not values:
        raise problem
    return values


def parse(text: str) -> Json:
    """Parse a text that is one JSON value; commas before a closing bracket are accepted.

    Raises:
        Unreadable: It is no JSON value, or an object has two values for one name.
    """
    try:
        return _loads(text)
    except Unreadable:
        repaired = _COMMA.sub(lambda found: "" if found[0] == "," else found[0], text)
        if repaired == text:
            raise
        return _loads(repaired)


def _thinks_inside(text: str) -> bool:
    """Return whether all reasoning tags are inside one JSON value, and so are data."""
    first, last = text.find("think>"), text.rfind("think>")
    with suppress(Unreadable):
        for start, end in _spans(text) if first >= 0 else ():
            if start < first and last < end:
                parse(text[start:end])
                return True
    return False


def _spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of the outermost brackets that look like JSON. Quotes count only inside brackets."""
    opened: list[int] = []
    spans: list[tuple[int, int]] = []
    at = 0
    while found := (_TOKEN if opened else _OPENING).search(text, at):
        start, at = found.span()
        if text[start] in "{[":
            opened.append(start)
        elif text[start] in "}]" and _JSON_LIKE.match(text, start := opened.pop()):
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, at))
    for start in opened:
        if _JSON_LIKE.match(text, start):
            raise Unreadable(f"the JSON that begins at character {start} has no end: it is cut off, or not closed")
    return spans


def _loads(text: str) -> Json:
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_members, strict=False)
    except RecursionError:
        raise Unreadable("the reply is nested too deeply") from None
    except ValueError as error:
        raise Unreadable(f"the reply is not JSON: {error}") from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs) and (twice := [name for name, value in pairs if members[name] != value]):
        raise ValueError(f"two values for {twice[0][:100]!r}")
    return members


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


OutputMethod = Literal["json_schema", "function_calling", "text"]

OUTPUT_METHODS: tuple[OutputMethod, ...] = ("json_schema", "function_calling", "text")

_MAX_ERRORS = 3
_WRAPPERS = frozenset(("reply", "response", "output", "arguments", "args", "parameters"))


def read_reply(message: Any, reply: type[BaseModel], *, ids: Sequence[str] = (), whole: bool = True) -> BaseModel:
    """Read a reply in any form: a tool call's arguments, the text, a fenced block in the text.

    The message is a model's, or its parser's output. The reply's ids may be spelled differently; with `whole` all must
    occur.

    Raises:
        Unreadable: Empty, too long, no JSON, another shape, or several different answers.
    """
    values = [_unwrap(value, reply) for value in _values_in(message)]
    own = [value for value in values if isinstance(value, dict) and names_of(reply) & value.keys()]
    read: list[BaseModel] = []
    problem: Unreadable | None = None
    for value in own or values:
        try:
            fitted = _validate(value, reply, {"ids": tuple(ids), "whole": whole})
        except Unreadable as wrong:
            problem = problem or wrong
        else:
            read += [fitted] if fitted not in read else []
    if len(read) > 1:
        raise Unreadable(f"the reply holds {len(read)} different answers: give one")
    if not read:
        raise problem or Unreadable("the reply is empty")
    return read[0]


def raw_text(message: Any) -> str:
    """Return a model's reply as text to send back in the repair round."""
    if not isinstance(message, AIMessage):
        plain = message.model_dump() if isinstance(message, BaseModel) else message
        return escape(json.dumps(plain, default=str, ensure_ascii=False))
    if calls := message.tool_calls:
        return escape("\n".join(json.dumps(call["args"], ensure_ascii=False) for call in calls))
    text = message.invalid_tool_calls[0].get("args") if message.invalid_tool_calls else message.text
    return str(text or "").encode("utf-8", "replace").decode("utf-8")


@cache
def schema_of(reply: type[BaseModel]) -> JsonObject:
    """Return the reply's JSON Schema for providers: titled with the class name, without references and defaults."""
    schema = _plain(dereference_refs(reply.model_json_schema()))
    if not _has_free_form(schema):
        _make_strict(schema)
    return {"title": reply.__name__, **schema}


@cache
def is_closed(reply: type[BaseModel]) -> bool:
    """Return whether the schema has no free-form JSON, so that a provider's strict mode can be used.

    Free-form parts are a tool's result, an operation's value, a piece of state.
    """
    return not _has_free_form(schema_of(reply))


def _values_in(message: Any) -> list[Json]:
    if isinstance(message, BaseModel) and not isinstance(message, AIMessage):
        message = message.model_dump(by_alias=True)
    if isinstance(message, dict):
        return [message]
    if not isinstance(message, AIMessage):
        raise Unreadable(f"the model replied with {type(message).__name__}, not with a message", kind="final")
    values: list[Json] = [call["args"] for call in message.tool_calls]
    for broken in message.invalid_tool_calls:
        values += find_json(str(broken.get("args") or ""))
    text = str(message.text)
    if not (values or text) and (refusal := message.additional_kwargs.get("refusal")):
        raise Unreadable(f"the model refused: {str(refusal)[:200]}", kind="final")
    return values or find_json(text)


@cache
def names_of(reply: type[BaseModel]) -> frozenset[str]:
    """Return the names of a reply's fields, including old ones."""
    aliases = (field.validation_alias for field in reply.model_fields.values())
    others = {
        name for alias in aliases for name in ([alias] if isinstance(alias, str) else getattr(alias, "choices", []))
    }
    return frozenset({*reply.model_fields, *others})


def _unwrap(value: Json, reply: type[BaseModel]) -> Json:
    name = _only_list(reply)
    if isinstance(value, list) and name:
        return {name: value}
    if not isinstance(value, dict) or names_of(reply) & value.keys():
        return value
    wrapped = [value[key] for key in value if key in _WRAPPERS or key == reply.__name__]
    if len(wrapped) == 1 and isinstance(wrapped[0], dict | list):
        return _unwrap(wrapped[0], reply)
    items = schema_of(reply)["properties"][name].get("items", {}) if name else {}
    return {name: [value]} if items.get("properties", {}).keys() & value.keys() else value


_PLAIN_ONLY = ormsgpack.OPT_PASSTHROUGH_TUPLE | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
_encode = json.JSONEncoder(allow_nan=False).encode  # `json.dumps` would create an encoder per call


def find_storage_problem(value: Json) -> str | None:
    """Return why no checkpoint can store a value (an integer over 64 bits, a lone surrogate, NaN), else None.

    A tuple or an instance of another class is refused, since it would be restored as another value.
    """
    try:
        _encode(value)
        ormsgpack.packb(value, option=_PLAIN_ONLY)
    except (TypeError, ValueError, RecursionError) as error:
        return " ".join(str(error).split())[:200]
    return None


def _validate(value: Json, reply: type[BaseModel], context: Mapping[str, Any]) -> BaseModel:
    try:
        fitted = reply.model_validate(value, context=dict(context))
    except ValidationError as error:
        raise Unreadable(f"the reply does not fit {reply.__name__}: {_format_errors(error)}") from None
    except RecursionError:
        raise Unreadable("the reply is nested too deeply") from None
    if wrong := find_storage_problem(value):
        raise Unreadable(f"the reply cannot be stored: {wrong}")
    return fitted


def _format_errors(error: ValidationError) -> str:
    problems = [
        f"{'.'.join(str(part) for part in each['loc']) or 'all of it'}: {each['msg']}"
        for each in error.errors(include_url=False, include_input=False)
    ]
    more = f" and {len(problems) - _MAX_ERRORS} more" if len(problems) > _MAX_ERRORS else ""
    return "; ".join(problems[:_MAX_ERRORS]) + more


def _only_list(reply: type[BaseModel]) -> str | None:
    required = [name for name, field in reply.model_fields.items() if field.is_required()]
    is_list = len(required) == 1 and schema_of(reply)["properties"][required[0]].get("type") == "array"
    return required[0] if is_list else None


def _plain(schema: Json) -> Json:
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    # an object's description is its class's docstring, which is not for the model
    left_out = {"title", "default", "$defs"} | ({"description"} if schema.get("type") == "object" else set())
    return {
        key: {name: _plain(each) for name, each in value.items()} if key == "properties" else _plain(value)
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


def _make_strict(schema: JsonObject) -> None:
    """Make a schema fit strict modes: all properties required, no others, no length keywords."""
    for keyword in ("minLength", "minItems"):
        schema.pop(keyword, None)
    if schema.get("type") == "object":
        schema["required"], schema["additionalProperties"] = list(schema["properties"]), False
        for each in schema["properties"].values():
            _make_strict(each)
    elif schema.get("type") == "array":
        _make_strict(schema["items"])


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
    """Return why a value is no operation of a JSON Patch, None if it is one."""
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
