"""A conversation as every provider takes it: one system message, calls with their results, of bounded length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

from ..state import JsonObject
from .formatting import text_of

_CALL_BLOCKS = frozenset(
    {"tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "function_call", "input_json_delta"}
)
_RAW_CALLS = frozenset({"tool_calls", "function_call"})


def under(instructions: str, conversation: Sequence[AnyMessage], *, budget: int) -> list[BaseMessage]:
    """The conversation with our instructions behind its own system messages, as one: many models take no more.

    Args:
        instructions: Ours.
        conversation: As the caller gave it.
        budget: Characters of it that are kept. The last human turn and what follows it always are, however long.
    """
    policies = [text_of(message) for message in conversation if isinstance(message, SystemMessage)]
    spoken = [message for message in conversation if not isinstance(message, SystemMessage)]
    kept = recent(spoken, budget=budget)
    left_out = len(spoken) - len(kept)
    note = [f"(The first {left_out} messages of this conversation are left out.)"] if left_out else []
    return [SystemMessage("\n\n".join(filter(None, [*policies, instructions, *note]))), *alternating(paired(kept))]


def recent(messages: Sequence[AnyMessage], *, budget: int) -> list[AnyMessage]:
    """The last messages that fit into `budget` characters, from a human turn on, so that no call loses its result."""
    sizes = [_size(message) for message in messages]
    if sum(sizes) <= budget:
        return list(messages)
    turns = [index for index, message in enumerate(messages) if isinstance(message, HumanMessage)]
    fitting = [index for index in turns if sum(sizes[index:]) <= budget]
    return list(messages[(fitting or turns[-1:] or [0])[0] :])


def _size(message: AnyMessage) -> int:
    return len(text_of(message)) + (len(str(message.tool_calls)) if isinstance(message, AIMessage) else 0)


def paired(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The messages without calls that have no result right behind them, and results of no call: providers refuse both.

    A parent graph that rehearses before it acts hands over just that: calls that nobody has answered yet.
    """
    kept: list[AnyMessage] = []
    behind: list[ToolMessage] = []
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            behind.append(message)
            continue
        if isinstance(message, AIMessage):
            results = {result.tool_call_id: result for result in behind}
            calls = [call for call in message.tool_calls if call["id"] in results]
            made = {call["id"] for call in calls}
            kept += [each for each in behind if each.tool_call_id in made and results[each.tool_call_id] is each]
            message = message if _same(message, calls) else with_calls(message, calls)
        behind = []
        if not isinstance(message, AIMessage) or message.tool_calls or text_of(message).strip():
            kept.append(message)
    return kept[::-1]


def has_open_calls(messages: Sequence[AnyMessage]) -> bool:
    """True where the conversation ends in calls that have no result yet: what comes next must be their results."""
    answered: set[str] = set()
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            return isinstance(message, AIMessage) and any(call["id"] not in answered for call in message.tool_calls)
        answered.add(message.tool_call_id)
    return False


def alternating(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages with neighbours of one speaker made one: some models' chat templates refuse two in a row."""
    merged: list[BaseMessage] = []
    for message in messages:
        last = merged[-1] if merged else None
        if _is_neighbour(last, message, HumanMessage) or _is_neighbour(last, message, AIMessage):
            merged[-1] = message.model_copy(update={"content": _joined(merged[-1].content, message.content)})
        else:
            merged.append(message)
    return merged


def _is_neighbour(last: BaseMessage | None, message: BaseMessage, kind: type[BaseMessage]) -> bool:
    return isinstance(last, kind) and isinstance(message, kind) and not getattr(last, "tool_calls", None)


def _joined(one: Any, other: Any) -> Any:
    if isinstance(one, str) and isinstance(other, str):
        return "\n\n".join(filter(None, [one, other]))
    blocks = ([{"type": "text", "text": each}] if isinstance(each, str) else each for each in (one, other))
    return [block for content in blocks for block in content]


def with_calls(message: AIMessage, calls: list[ToolCall]) -> AIMessage:
    """The message with these calls in the place of its own, the provider's raw form of which is dropped."""
    content = message.content
    if isinstance(content, list):
        content = [part for part in content if not (isinstance(part, dict) and part.get("type") in _CALL_BLOCKS)]
    extra = {key: value for key, value in message.additional_kwargs.items() if key not in _RAW_CALLS}
    told = {"content": content, "tool_calls": calls, "invalid_tool_calls": [], "additional_kwargs": extra}
    return message if _same(message, calls) else message.model_copy(update=told)


def _same(message: AIMessage, calls: list[ToolCall]) -> bool:
    return not message.invalid_tool_calls and list(map(_made, message.tool_calls)) == list(map(_made, calls))


def _made(call: ToolCall) -> tuple[str | None, str, JsonObject]:
    """A call without what providers add to it."""
    return call["id"], call["name"], call["args"]
