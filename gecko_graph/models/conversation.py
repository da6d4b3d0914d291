"""A conversation as every provider takes it: one system message, calls with their results, of bounded length."""

from __future__ import annotations

from collections.abc import Sequence

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
from .telling import text_of

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
    return [SystemMessage("\n\n".join(filter(None, [*policies, instructions, *note]))), *paired(kept)]


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
    """The messages without calls that have no result, and results that have no call: providers refuse both.

    A parent graph that rehearses before it acts hands over just that: calls that nobody has answered yet.
    """
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    made = {call["id"] for message in messages if isinstance(message, AIMessage) for call in message.tool_calls}
    kept: list[AnyMessage] = []
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id not in made:
            continue
        if isinstance(message, AIMessage):
            calls = [call for call in message.tool_calls if call["id"] in answered]
            message = message if _same(message, calls) else with_calls(message, calls)
            if not calls and not text_of(message).strip():
                continue
        kept.append(message)
    return kept


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
