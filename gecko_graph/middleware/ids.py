"""Unique ids of calls: the middleware stores a call's data under its id.

Some models restart their ids in each message, repeat them, or give none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from ..errors import StateError
from ..tools.check import LONGEST_ID
from ..world.as_tools import find_pending

CALLS = ("tool_call", "tool_use", "function_call", "function")
"""Types of message parts that are calls, in LangChain's and in providers' forms."""
NO_ID = (
    "{name}: another call has the same id ({id!r}), or it has none, so that its answer would be ambiguous; it "
    "was not made. Code that writes calls into the conversation must give each an id of its own"
)


def give_ids(said: Sequence[AnyMessage], state: Mapping[str, Any]) -> list[AnyMessage]:
    """Return a model's messages, with a new id for each call that has none, or one in use.

    Copies of the id are replaced too: in content blocks, in a provider's form of the calls, in existing answers.
    """
    taken, renamed_messages = find_taken(state), list[AnyMessage]()
    given = dict[str | None, list[str | None]]()
    for message in said:
        if isinstance(message, ToolMessage):
            ids = given.get(message.tool_call_id) or [message.tool_call_id]
            renamed_messages.append(message.model_copy(update={"tool_call_id": ids.pop(0)}))
            continue
        given = {}
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            is_free = call["id"] and call["id"] not in taken and len(call["id"]) <= LONGEST_ID
            given.setdefault(call["id"], []).append(call["id"] if is_free else f"call_{uuid4().hex[:24]}")
            taken.add(given[call["id"]][-1])
        is_as_said = all(ids == [old] for old, ids in given.items())
        renamed_messages.append(message if is_as_said else _with_ids(message, given))
    return renamed_messages


def find_taken(state: Mapping[str, Any]) -> set[str | None]:
    """Return the ids of the thread's calls: in its conversation, its world and its journal."""
    spoken = (each.tool_calls for each in state["messages"] if isinstance(each, AIMessage))
    made = (*(state.get("gecko") or {"log": ()})["log"], *(state.get("gecko_journal") or ()))
    return {call["id"] for call in chain.from_iterable(spoken)} | {each["call"]["id"] for each in made}


def _with_ids(message: Any, given: Mapping[str | None, Sequence[str | None]]) -> AnyMessage:
    """Return a message with other ids of its calls, in all places."""

    def renamed(parts: Sequence[Any], key: str = "id") -> list[Any]:
        left, renamed_messages = {old: [*ids] for old, ids in given.items()}, list[Any]()
        for part in parts:
            is_call = isinstance(part, dict) and part.get("type") in CALLS and bool(left.get(part.get(key)))
            renamed_messages.append({**part, key: left[part[key]].pop(0)} if is_call else part)
        return renamed_messages

    update: dict[str, Any] = {"tool_calls": renamed(message.tool_calls)}
    if isinstance(message.content, list):
        update["content"] = renamed(renamed(message.content), "call_id")
    if isinstance(calls := message.additional_kwargs.get("tool_calls"), list):
        update["additional_kwargs"] = {**message.additional_kwargs, "tool_calls": renamed(calls)}
    copy: AnyMessage = message.model_copy(update=update)
    return copy


def check_id(call: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Raise StateError before anything is made if a call's answer would be ambiguous."""
    same = [each for each in find_pending(state["messages"])[1] if each["id"] == call["id"]]
    if not call["id"] or len(same) > 1:
        raise StateError(NO_ID.format(name=call["name"], id=call["id"]))
