"""The planner's message, made fit to be kept: what no checkpoint can hold never gets into the state."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall
from langchain_core.messages.tool import invalid_tool_call

from .structured import MAX_REPLY_CHARS, unkeepable


def readable(message: AIMessage) -> tuple[AIMessage | None, str | None]:
    """The message as it can be kept, or why it cannot be used.

    A call whose arguments no checkpoint can keep (an integer over 64 bits, half a surrogate pair, NaN) becomes an
    invalid call, for the validator to refuse. A refusal that the provider tells beside an empty text becomes the text.
    """
    size = _size(message)
    if size > MAX_REPLY_CHARS:
        return None, f"the reply is {size:,} characters long, {MAX_REPLY_CHARS:,} are allowed"
    changes: dict[str, Any] = {}
    told = {id(call): wrong for call in message.tool_calls if (wrong := unkeepable(call["args"])) is not None}
    if told:
        broken = [_broken(call, told[id(call)]) for call in message.tool_calls if id(call) in told]
        changes["tool_calls"] = [call for call in message.tool_calls if id(call) not in told]
        changes["invalid_tool_calls"] = [*message.invalid_tool_calls, *broken]
        changes["additional_kwargs"] = {}
    text = _refusal_or_text(message)
    if text != message.content:
        changes["content"] = text
    return (message.model_copy(update=changes) if changes else message), None


def _size(message: AIMessage) -> int:
    calls = sum(len(str(call["args"])) for call in (*message.tool_calls, *message.invalid_tool_calls))
    return len(str(message.text)) + calls


def _broken(call: ToolCall, wrong: str) -> InvalidToolCall:
    # escaped as ASCII the arguments are text that can be kept, whatever is in them
    return invalid_tool_call(name=call["name"], args=json.dumps(call["args"]), id=call["id"], error=wrong)


def _refusal_or_text(message: AIMessage) -> Any:
    content = message.content
    if not isinstance(content, str):
        return content
    if not content and not message.tool_calls:
        content = str(message.additional_kwargs.get("refusal") or "")
    return content.encode("utf-8", "replace").decode("utf-8")
