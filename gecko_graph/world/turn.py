"""A turn's task, the conversation before it, and its budget."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall

from ..context import GeckoContext
from ..contracts.language.expression import check_expression
from ..errors import PatchConflict, StateError, TaskError
from ..models.conversation import replace_calls
from ..models.formatting import text_of
from ..models.memory import recall_calls
from ..models.usage import total
from ..state import Call, ChecklistItem, JsonObject, Step, Stop, StopCode, UnjudgedAttempt
from ..tools.check import LONGEST_ID, LONGEST_NAME
from ..tools.spec import valid_name
from ..values.patch import apply_patch
from .channels import AttemptState, GeckoState
from .reducers import find

MARK, UNDO = "gecko", "undo"
"""Key and value in `additional_kwargs` of a message that asks to undo."""
TEXT = "Undo what was done."
ITEM_KEYS = ("id", "description", "check", "by")


def task_of(messages: Sequence[AnyMessage]) -> str:
    """Return the task: the text of the last human message. Raises TaskError if it is missing or empty."""
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            if task := text_of(message).strip():
                return task
            raise TaskError("the task is empty: put what the user wants into the last human message")
    raise TaskError('no task: pass {"messages": [("user", "what to do")]}')


def earlier(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the conversation before the task, with its calls, as context that is not judged again."""
    last = max((index for index, message in enumerate(messages) if isinstance(message, HumanMessage)), default=0)
    return recall_calls(messages[:last])


def human_turns(messages: Sequence[AnyMessage]) -> int:
    """Return the number of human messages: the number of the scenario's turn, from 1."""
    return sum(isinstance(message, HumanMessage) for message in messages)


def next_turn(state: GeckoState) -> int:
    """Return the number of the new turn; every run of a thread opens one."""
    kept = state.get("bookkeeping")
    return (kept["ledger"]["turn"] if kept else 0) + 1


def check_start(found: str, expected: str) -> None:
    """Check by digest that the task state is still the start state of the turn's attempts.

    Raises:
        StateError: It was edited in the middle of a turn, or mutated.
    """
    if found != expected:
        raise StateError(
            "the task state was changed in the middle of a turn: all its attempts begin from the same state. To edit "
            "it, go back to the turn's first snapshot whose next is ('start_round',): "
            "update_state(snapshot.config, {'task_state': ...}, as_node='bootstrapper')"
        )


def states_of(before: JsonObject, attempt: UnjudgedAttempt) -> tuple[JsonObject, JsonObject]:
    """Return an attempt's start state including its real observations, and its final state."""
    seen = apply_patch(before, attempt.get("observed", []))
    return seen, apply_patch(seen, attempt["change"])


def observed_state(before: JsonObject, steps: Iterable[Step]) -> JsonObject:
    """Return the state at an attempt's start, including the observations of its real reads."""
    for step in steps:
        try:
            before = apply_patch(before, step.get("outcome", {}).get("observed", []))
        except PatchConflict:  # a place created by a real write of the turn
            continue
    return before


def spent_budget(state: AttemptState, context: GeckoContext) -> Stop | None:
    """Return the budget that an attempt has spent, or None; parallel attempts share the tokens equally."""
    if context.token_budget is not None:
        tokens = total(state.get("usage", {}))
        used = tokens["input_tokens"] + tokens["output_tokens"]
        share = (context.token_budget - state.get("spent_tokens", 0)) // state.get("attempts_at_once", 1)
        if used >= share:
            left = f"{max(share, 0)} that were left of {context.token_budget}"
            return {"code": "token_budget", "message": f"token_budget: {used} tokens were used, of {left}"}
    deadline = state.get("deadline")
    if deadline is not None and time.time() >= deadline:
        return {"code": "time_budget", "message": f"time_budget_s: the {context.time_budget_s:g} seconds are over"}
    return None


def read_checklist(given: Sequence[Any]) -> list[ChecklistItem]:
    """Return the caller's items, checked; an item without an id gets one, and a bare text is a description.

    Raises:
        TaskError: It is not a list; an item has no description, an unknown key, or a check that is no text; or two have
            the same id.
        ContractError: A check cannot be parsed.
    """
    if not isinstance(given, list | tuple):
        raise TaskError(f"checklist: expected a list of items, such as ['the file exists'], got {type(given).__name__}")
    items = [_read_item(raw, number) for number, raw in enumerate(given, 1)]
    if len({item["id"] for item in items}) < len(items):
        raise TaskError("two items of the checklist have the same id: give each its own")
    return items


def _read_item(raw: Any, number: int) -> ChecklistItem:
    entry = {"description": raw} if isinstance(raw, str) else raw
    if not isinstance(entry, dict) or not str(entry.get("description") or entry.get("check") or "").strip():
        raise TaskError(f"checklist item {number}: give it a description, such as 'the file exists'")
    if unknown := [key for key in entry if key not in ITEM_KEYS]:  # e.g. a misspelt check
        raise TaskError(f"checklist item {number}: unknown key {unknown[0]!r}; keys: {', '.join(ITEM_KEYS)}")
    check = entry.get("check") or ""
    if not isinstance(check, str):
        raise TaskError(f"checklist item {number}: expected an expression as check, got {type(check).__name__}")
    item: ChecklistItem = {
        "id": str(entry.get("id") or f"item-{number}"),
        "description": str(entry.get("description") or check),
    }
    if entry.get("by") == "model":
        item["by"] = "model"
    if check:
        check_expression(check, where=f"checklist item {item['id']}")
        item["check"] = check
    return item


def stop(code: StopCode, message: str, answer: str = "") -> dict[str, Any]:
    ended: Stop = {"code": code, "message": message}
    return {"pending": [], "answer": answer, "stop_reason": message, "stop": ended}


class TakenIds:
    """The call ids in use; looked up, not collected, since a long attempt has thousands of steps."""

    def __init__(self, conversation: Sequence[AnyMessage], steps: Sequence[Step]) -> None:
        self._conversation, self._steps = conversation, steps
        self._new: set[str] = set()

    def __contains__(self, identifier: object) -> bool:
        if identifier in self._new or find(self._steps, str(identifier), lambda step: step["call"]["id"]) is not None:
            return True
        messages = [each for each in self._conversation if isinstance(each, AIMessage)] if self._conversation else ()
        return any(str(call["id"]) == identifier for each in messages for call in each.tool_calls)

    def __len__(self) -> int:
        return len(self._steps) + len(self._new)

    def add(self, identifier: str) -> None:
        self._new.add(identifier)


def read_calls(message: AIMessage, *, taken: TakenIds) -> tuple[AIMessage, list[Call]]:
    """Return the message with a unique id for each call, and its calls with the same ids.

    Arguments that are not a JSON object are kept as text in `malformed`, for the validator. In the message, which goes
    back to the model, such a call has no arguments, and names are changed to valid ones; otherwise providers reject the
    message.
    """
    calls: list[Call] = []
    for raw in message.tool_calls:
        calls.append(
            {"id": assign_id(raw.get("id"), taken), "name": raw["name"][:LONGEST_NAME], "args": dict(raw["args"])}
        )
    for broken in message.invalid_tool_calls:
        name, wrote = (broken.get("name") or "")[:LONGEST_NAME], str(broken.get("args") or "")
        calls.append({"id": assign_id(broken.get("id"), taken), "name": name, "args": {}, "malformed": wrote})
    sent: list[ToolCall] = [
        {"id": call["id"], "name": valid_name(call["name"]), "args": call["args"], "type": "tool_call"}
        for call in calls
    ]
    return replace_calls(message, sent), calls


def assign_id(given: str | None, taken: TakenIds) -> str:
    """Return the call's own id if it is free, else a new one."""
    identifier = given or ""
    if not identifier or identifier in taken or len(identifier) > LONGEST_ID:
        identifier = next(name for number in count(len(taken) + 1) if (name := f"call_{number}") not in taken)
    taken.add(identifier)
    return identifier


def undo_message(text: str = TEXT) -> HumanMessage:
    """Return the message that asks an agent of `create_gecko_agent` to undo its last turn that changed something.

    The turn has no planner: a search finds the plan. Calls that cannot be undone are reported, with the reason.

    Args:
        text: The message's text.
    """
    return HumanMessage(text, additional_kwargs={MARK: UNDO})


def asks_undo(messages: Sequence[AnyMessage]) -> bool:
    last = next((each for each in reversed(messages) if isinstance(each, HumanMessage)), None)
    return last is not None and last.additional_kwargs.get(MARK) == UNDO
