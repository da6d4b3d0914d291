"""Tool calls and tool messages of an agent, and the steps of a world."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langgraph.types import Command

from ..errors import GeckoError
from ..execution.decisions import Decision
from ..leaves import as_text
from ..models.conversation import build_complaint_message, build_result_message
from ..state import Call, JsonObject, Step
from ..toolkit.check import Rejection
from ..toolkit.real import Answer, as_answer, block_value

WHOLE = 10**9
"""Characters of a result that the agent is shown: all, as by the real tool."""
NOT_APPROVED = "{name} was not carried out: this call was not approved as it is now."
REJECTED = "{name} was not carried out: the user rejected it{reason}. Do not make the same call again."


def find_pending(messages: Sequence[AnyMessage], untouched: Collection[str] = ()) -> tuple[str | None, list[ToolCall]]:
    """Return the id of the model's last message, and its calls that are unanswered, without those of some tools."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            calls = [call for call in message.tool_calls if call["id"] not in answered]
            return message.id, [call for call in calls if call["name"] not in untouched]
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
    return None, []


def messages_of(state: Any, key: str = "messages") -> list[AnyMessage]:
    """Return the messages of a graph's state: a list, a mapping or an object."""
    if isinstance(state, list):
        return state
    return (state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)) or []


def check_names(untouched: object) -> None:
    """Raise GeckoError where a list of tool names is a text."""
    if isinstance(untouched, str):
        raise GeckoError(f"untouched: expected a list of tool names, got {untouched!r}")


def is_same(one: Any, other: Any) -> bool:
    """Return whether two calls have the same tool and arguments."""
    return bool(one["name"] == other["name"] and one["args"] == other["args"])


def build_message(call: ToolCall, step: Step) -> ToolMessage:
    """Return a step as the answer to the model's call, with its marks in `additional_kwargs["gecko"]`."""
    named = _name(call)
    if "outcome" in step:
        message = build_result_message(named, step["outcome"], task="", budget=WHOLE)
    else:
        message = build_complaint_message(named, step["complaints"])
    return add_marks(message, marks_of(step))


def _name(call: ToolCall) -> Call:
    return {"id": call["id"] or "", "name": call["name"], "args": call["args"]}


def marks_of(step: Step) -> JsonObject:
    """Return what a simulated answer rests on: its rung, whether that made it up, what could not be checked."""
    if "outcome" not in step:
        return {"simulated": True, "rung": "validator", "made_up": False}
    outcome = step["outcome"]
    marks = {"simulated": outcome["simulated"], "rung": outcome["rung"], "made_up": bool(outcome.get("invented"))}
    return {**marks, **{key: outcome[key] for key in ("unclear", "refused", "violations") if outcome.get(key)}}


def add_marks(message: ToolMessage, marks: JsonObject) -> ToolMessage:
    """Return a message with marks; what it had under that key is gone."""
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, "gecko": marks}})


def read_result(result: ToolMessage | Command[Any]) -> Answer:
    """Return what a real tool answered; a text that is a JSON object or list is read as that."""
    answer = as_answer(result)
    if isinstance(answer.result, str):
        return replace(answer, result=block_value({"type": "text", "text": answer.result}))
    return answer


def refuse(call: ToolCall, rejection: Rejection) -> ToolMessage:
    """Return the answer to a call that must not be made."""
    if complaints := rejection.get("complaints"):
        message = build_complaint_message(_name(call), complaints)
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
