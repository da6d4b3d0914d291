"""Messages that checkpoints can store, and conversations that every provider accepts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from ..schemas.complaints import describe_complaint
from ..state import Call, Complaint, Json, JsonObject, Outcome, Step
from ..values.media import show_media
from ..values.places import as_text, map_texts
from .drawing import escape
from .focus import focus_words
from .formatting import clip_texts, cut, text_of
from .reply import MAX_REPLY_CHARS, find_storage_problem
from .view import view

_SERDE = JsonPlusSerializer()


def read_message(message: AIMessage) -> tuple[AIMessage | None, str | None]:
    """Return a sanitized message, or the reason why it is unusable.

    A provider's refusal with an empty text becomes the text.
    """
    size = len(text_of(message)) + sum(len(str(each["args"])) for each in _all_calls(message))
    if size > MAX_REPLY_CHARS:
        return None, f"the reply is {size:,} characters long, {MAX_REPLY_CHARS:,} are allowed"
    if not message.content and not message.tool_calls and (refusal := message.additional_kwargs.get("refusal")):
        message = message.model_copy(update={"content": _clean(str(refusal))})
    return message, None


def sanitize_message(message: AIMessage) -> AIMessage:
    """Return the message without values that no checkpoint can store; a valid message is returned unchanged.

    A call whose arguments cannot be stored (an integer over 64 bits, a lone surrogate, NaN) becomes an invalid call,
    which the validator refuses.
    """
    if _is_storable(message):
        return message
    calls: list[ToolCall] = []
    broken: list[InvalidToolCall] = []
    for call in _all_calls(message):
        name, args, id_ = _text(call.get("name")) or "", call.get("args"), _text(call.get("id"))
        why = find_storage_problem(args) if isinstance(args, dict) else "the arguments are not an object"
        if "error" in call or why:
            broken.append(
                invalid_tool_call(name=name, args=_as_json(args), id=id_, error=_text(call.get("error", why)))
            )
        else:
            calls.append(tool_call(name=name, args=args, id=id_))
    own = len(calls) == len(message.tool_calls or ())
    content = message.content if isinstance(message.content, list) else [message.content]
    blocks = [_clean(each) for each in content if isinstance(each, str | dict) and _packs(_clean(each))]
    storable: dict[str, Any] = {
        "content": blocks if isinstance(message.content, list) else "".join(blocks),
        "tool_calls": calls,
        "invalid_tool_calls": broken,
        "additional_kwargs": message.additional_kwargs if own and _packs(message.additional_kwargs) else {},
        "response_metadata": message.response_metadata if _packs(message.response_metadata) else {},
        "usage_metadata": message.usage_metadata if _packs(message.usage_metadata) else None,
        "id": _text(message.id),
        "name": _text(message.name),
    }
    changes = {key: value for key, value in storable.items() if value != getattr(message, key)}
    return message.model_copy(update=changes) if changes else message


def _all_calls(message: AIMessage) -> list[Any]:
    return [*(message.tool_calls or ()), *(message.invalid_tool_calls or ())]


_CALL_KEYS = frozenset(tool_call(name="", args={}, id=None))


def _is_storable(message: AIMessage) -> bool:
    """Return whether a message is surely storable, by one cheap check: most messages are."""
    calls, kept = message.tool_calls, [message.additional_kwargs, message.response_metadata]
    if message.invalid_tool_calls or type(message.content) is not str or any(type(each) is not dict for each in kept):
        return False
    if any({*call} != _CALL_KEYS or (type(call["name"]), type(call["args"])) != (str, dict) for call in calls):
        return False
    texts = [message.id, message.name, *(call["id"] for call in calls)]
    known = all(each is None or type(each) is str for each in texts)
    return known and find_storage_problem([message.content, *texts, calls, *kept, message.usage_metadata]) is None


def _as_json(args: Any) -> str | None:
    if args is not None and not isinstance(args, str):
        with suppress(ValueError, RecursionError):
            args = json.dumps(args, default=lambda each: type(each).__name__, skipkeys=True, ensure_ascii=False)
            args = escape(args)
    return _text(args)


def _text(value: object) -> str | None:
    return None if value is None else str(_clean(value))


def _packs(value: Any) -> bool:
    try:
        _SERDE.dumps_typed(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return value is None or isinstance(value, Mapping | str)


def _clean(value: Any) -> Any:
    """Return the value with lone surrogates replaced, at any depth: they cannot be encoded as UTF-8."""
    return map_texts(value, lambda text: text.encode("utf-8", "replace").decode(), keys=True)


_CALL_BLOCKS = frozenset(
    {"tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "function_call", "input_json_delta"}
)
_RAW_CALLS = frozenset({"tool_calls", "function_call"})


def build_conversation(instructions: str, conversation: Sequence[AnyMessage], *, budget: int) -> list[BaseMessage]:
    """Build the messages for a model; system messages and instructions become one, because many models accept one only.

    At most `budget` characters of the conversation are kept, but always the last human turn and all messages after it.
    """
    policies = [text_of(message) for message in conversation if isinstance(message, SystemMessage)]
    turns = [message for message in conversation if not isinstance(message, SystemMessage)]
    kept = keep_recent(turns, budget=budget)
    left_out = len(turns) - len(kept)
    note = [f"(The first {left_out} messages of this conversation are left out.)"] if left_out else []
    system = "\n\n".join(filter(None, [*policies, instructions, *note]))
    return [SystemMessage(system), *merge_neighbours(drop_unpaired(kept))]


def build_result_message(call: Call, outcome: Outcome, *, task: str, budget: int) -> ToolMessage:
    """Return the outcome as the planner sees it: like a real tool's result, within `budget` characters.

    A longer result is cut: its texts in the middle, or it becomes an outline with the parts that the task names.
    """
    result = outcome["result"]
    content = as_text(result)
    if len(content) > budget and isinstance(result, str):
        content = cut(content, budget=budget)
    elif len(content) > budget:
        content = clip_texts(result, budget=budget) or view(result, focus=focus_words(task), budget=budget)
    status = "success" if outcome["status"] == "ok" else "error"
    shown: Any = with_media(content, [result, outcome.get("media")])
    return ToolMessage(shown, tool_call_id=call["id"], name=call["name"], status=status)


def with_media(content: str, result: Json) -> str | list[JsonObject]:
    """Return a result's text, followed by the images, sounds and files that it refers to."""
    shown = show_media(result)
    return [{"type": "text", "text": content}, *shown] if shown else content


def build_complaint_message(call: Call, complaints: Sequence[Complaint]) -> ToolMessage:
    lines = list(map(describe_complaint, complaints))
    content = "\n".join([f"{call['name']} was refused before it ran:", *lines])
    return ToolMessage(content, tool_call_id=call["id"], name=call["name"], status="error")


def build_step_message(step: Step, *, task: str, budget: int) -> ToolMessage:
    """Return a step's message for the planner: its outcome, or the complaints."""
    if "outcome" in step:
        return build_result_message(step["call"], step["outcome"], task=task, budget=budget)
    return build_complaint_message(step["call"], step["complaints"])


def build_call_messages(steps: Sequence[Step], *, task: str, budget: int) -> list[AnyMessage]:
    made = [step["call"] for step in steps]
    calls = [ToolCall(name=call["name"], args=call["args"], id=call["id"]) for call in made]
    results = [build_step_message(step, task=task, budget=budget) for step in steps]
    return [AIMessage("", tool_calls=calls), *results] if calls else []


def keep_recent(messages: Sequence[AnyMessage], *, budget: int) -> list[AnyMessage]:
    """Return the latest messages that fit `budget` characters, from a human message on: calls keep their results."""
    sizes = [
        len(text_of(each)) + (len(str(each.tool_calls)) if isinstance(each, AIMessage) else 0) for each in messages
    ]
    if sum(sizes) <= budget:
        return list(messages)
    turns = [index for index, message in enumerate(messages) if isinstance(message, HumanMessage)]
    fitting = [index for index in turns if sum(sizes[index:]) <= budget]
    return list(messages[(fitting or turns[-1:] or [0])[0] :])


def drop_unpaired(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the messages without calls that lack results right after them, and without results that lack calls.

    Providers reject both. A parent graph that rehearses before it acts passes unanswered calls.
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
            message = replace_calls(message, calls)
        behind = []
        if not isinstance(message, AIMessage) or message.tool_calls or text_of(message).strip():
            kept.append(message)
    return kept[::-1]


def has_open_calls(messages: Sequence[AnyMessage]) -> bool:
    """Return whether the conversation ends in calls without results, which must come next."""
    answered: set[str] = set()
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            return isinstance(message, AIMessage) and any(call["id"] not in answered for call in message.tool_calls)
        answered.add(message.tool_call_id)
    return False


def merge_neighbours(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Merge consecutive messages of one role: some models' chat templates reject them."""
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


def replace_calls(message: AIMessage, calls: list[ToolCall]) -> AIMessage:
    """Return the message with other calls, without the provider's raw form of its own."""
    if not message.invalid_tool_calls and [*map(_bare_call, message.tool_calls)] == [*map(_bare_call, calls)]:
        return message
    content = message.content
    if isinstance(content, list):
        content = [part for part in content if not (isinstance(part, dict) and part.get("type") in _CALL_BLOCKS)]
    extra = {key: value for key, value in message.additional_kwargs.items() if key not in _RAW_CALLS}
    update = {"content": content, "tool_calls": calls, "invalid_tool_calls": [], "additional_kwargs": extra}
    return message.model_copy(update=update)


def _bare_call(call: ToolCall) -> tuple[str | None, str, JsonObject]:
    return call["id"], call["name"], call["args"]
