"""The calls of an agent's last message, what a real one came to, and the answers to those that are not made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import ToolCall, ToolMessage
from langgraph.types import Command

from ..models.conversation import build_complaint_message
from ..real.decisions import Decision
from ..state import Call, Step
from ..tools.check import Rejection
from ..tools.real import Answer, as_answer, block_value
from ..values.leaves import as_text
from ..world.as_tools import add_marks, find_pending, is_same, name_call

NOT_APPROVED = "{name} was not carried out: this call was not approved as it is now."
REJECTED = "{name} was not carried out: the user rejected it{reason}. Do not make the same call again."


def read_result(result: ToolMessage | Command[Any]) -> Answer:
    """Return what a real tool answered; a text that is a JSON object or list is read as that."""
    answer = as_answer(result)
    if isinstance(answer.result, str):
        return replace(answer, result=block_value({"type": "text", "text": answer.result}))
    return answer


def refuse(call: ToolCall, rejection: Rejection) -> ToolMessage:
    """Return the answer to a call that must not be made."""
    if complaints := rejection.get("complaints"):
        message = build_complaint_message(name_call(call), complaints)
    else:
        content = as_text(rejection.get("error"))
        message = ToolMessage(content, tool_call_id=call["id"], name=call["name"], status="error")
    return add_marks(message, {"simulated": False, "rung": "contract", "made_up": False, "refused": True})


def answer_as_decided(call: Call, decision: Decision) -> ToolMessage:
    """Return the answer to a call that a person has rejected, or responded to in the tool's place."""
    if decision["type"] == "respond":
        return ToolMessage(decision["message"], tool_call_id=call["id"], name=call["name"])
    return reject(call, f": {decision['message']}" if decision.get("message") else "")


def reject(call: Call | ToolCall, reason: str | None) -> ToolMessage:
    """Return the answer to a call that was not made: rejected, or where there is no reason, not approved as it is."""
    content = (NOT_APPROVED if reason is None else REJECTED).format(name=call["name"], reason=reason)
    return ToolMessage(content, tool_call_id=call["id"], name=call["name"], status="error")


def as_edited(call: ToolCall, state: Any) -> Any:
    """Return a call as LangChain's `HumanInTheLoopMiddleware` will make it: its message keeps the model's own."""
    return {**call, **(state.get("hitl_edited_tool_calls") or {}).get(call["id"], {})}


def find_calls(state: Any) -> list[Any]:
    """Return the last message's calls that are unanswered, as a person has edited them."""
    return [as_edited(call, state) for call in find_pending(state["messages"])[1]]


def find_rehearsed(state: Any, call: ToolCall) -> Step | None:
    """Return the step that was simulated of this very call."""
    for answer in (state.get("gecko_batch") or {"answers": ()})["answers"]:
        if answer["call"]["id"] == call["id"] and is_same(answer["call"], call):
            step: Step = answer["record"]["step"]
            return step
    return None


def find_place(calls: Sequence[Any], own: ToolCall, id_: str | None) -> int:
    """Return the place of a task's call among its message's; of several under one id, that of the same arguments."""
    places = [place for place, call in enumerate(calls) if call["id"] == id_]
    return next((place for place in places if is_same(calls[place], own)), places[0] if places else len(calls))
