"""Makes the planner's message storable: what no checkpoint can hold never gets into the state."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from ..values.leaves import map_texts
from .json_text import MAX_REPLY_CHARS
from .structured import find_storage_problem

_SERDE = JsonPlusSerializer()
_TEXT = frozenset((str, type(None)))


def read_message(message: AIMessage) -> tuple[AIMessage | None, str | None]:
    """Return the message as it can be stored, or why it cannot be used.

    A refusal that the provider sends beside an empty text becomes the text.
    """
    message = sanitize_message(message)
    size = _size(message)
    if size > MAX_REPLY_CHARS:
        return None, f"the reply is {size:,} characters long, {MAX_REPLY_CHARS:,} are allowed"
    if not message.content and not message.tool_calls and (refusal := message.additional_kwargs.get("refusal")):
        message = message.model_copy(update={"content": str(_clean(refusal))})
    return message, None


def sanitize_message(message: AIMessage) -> AIMessage:
    """Return the message without what no checkpoint can store; one without faults is returned as it is.

    A call whose arguments cannot be kept (an integer over 64 bits, half a surrogate pair, NaN) becomes an invalid
    call, for the validator to refuse.
    """
    if _is_storable(message):
        return message
    calls = [_named(call) for call in message.tool_calls or ()]
    wrong = [_unusable(call["args"]) for call in calls]
    storable: dict[str, Any] = {
        "content": _content(message.content),
        "tool_calls": [call for call, why in zip(calls, wrong, strict=True) if not why],
        "invalid_tool_calls": [
            *(_broken(_named(call), call.get("error")) for call in message.invalid_tool_calls or ()),
            *(_broken(call, why) for call, why in zip(calls, wrong, strict=True) if why),
        ],
        "additional_kwargs": {} if any(wrong) else _kept(message.additional_kwargs, {}),
        "response_metadata": _kept(message.response_metadata, {}),
        "usage_metadata": _kept(message.usage_metadata, None),
        "id": _text(message.id),
        "name": _text(message.name),
    }
    changes = {key: value for key, value in storable.items() if value != getattr(message, key)}
    return message.model_copy(update=changes) if changes else message


def _is_storable(message: AIMessage) -> bool:
    """Return whether a message is known to have no fault, by one look at all of it: most have none."""
    kept = [message.additional_kwargs, message.response_metadata, message.usage_metadata or {}]
    if any(type(each) is not dict for each in kept) or {type(message.id), type(message.name)} - _TEXT:
        return False
    calls = message.tool_calls
    kinds = {
        (call.get("type") == "tool_call", type(call.get("name")), type(call.get("args")), type(call.get("id", 0)))
        for call in calls
    }
    if message.invalid_tool_calls or type(message.content) is not str:
        return False
    plain = kinds <= {(True, str, dict, str), (True, str, dict, type(None))}
    return plain and find_storage_problem([message.content, message.id, message.name, calls, *kept]) is None


def _size(message: AIMessage) -> int:
    calls = sum(len(str(call["args"])) for call in (*message.tool_calls, *message.invalid_tool_calls))
    return len(str(message.text)) + calls


def _named(call: ToolCall | InvalidToolCall) -> ToolCall:
    args: Any = call.get("args")
    return tool_call(name=_text(call.get("name")) or "", args=args, id=_text(call.get("id")))


def _unusable(args: Any) -> str | None:
    return find_storage_problem(args) if isinstance(args, dict) else "the arguments are not an object"


def _broken(call: ToolCall, why: object) -> InvalidToolCall:
    args: Any = call["args"]
    if args is not None and not isinstance(args, str):  # escaped as ASCII they can be kept, whatever is in them
        with suppress(ValueError, RecursionError):
            args = json.dumps(args, default=lambda each: type(each).__name__, skipkeys=True)
    return invalid_tool_call(name=call["name"], args=_text(args), id=call["id"], error=_text(why))


def _content(content: Any) -> Any:
    if isinstance(content, list):
        blocks = (_clean(block) for block in content if isinstance(block, str | dict))
        return [block for block in blocks if _packs(block)]
    return _clean(content) if isinstance(content, str) else ""


def _text(value: object) -> str | None:
    return None if value is None else str(_clean(value))


def _kept(value: Any, otherwise: Any) -> Any:
    return value if isinstance(value, Mapping) and _packs(value) else otherwise


def _packs(value: Any) -> bool:
    try:
        _SERDE.dumps_typed(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _clean(value: Any) -> Any:
    """Return the value with half surrogate pairs replaced, at any depth: they cannot be written as UTF-8."""
    return map_texts(value, lambda text: text.encode("utf-8", "replace").decode(), keys=True)
