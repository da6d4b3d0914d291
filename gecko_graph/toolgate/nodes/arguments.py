"""arguments: the next candidate's call for the need, written by the planner's model with that one tool bound.

A set of arguments that was refused comes back with what is wrong, a bounded number of times (see `accept`).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall

from ...events import event
from ...models.ask import PlannerAsk, Reply, Where
from ...models.conversation import (
    build_call_messages,
    build_complaint_message,
    build_conversation,
    build_result_message,
    merge_neighbours,
    replace_calls,
)
from ...models.formatting import cut, text_of
from ...models.node import NodeScope
from ...models.prompts import Prompts, variables_of
from ...state import VERSION, Call, Complaint, JsonObject, Step
from ...tools import Toolkit
from ...tools.names import valid_name
from ...world.provenance import is_planned
from ...world.turn import TakenIds, assign_id, read_calls, spent_budget, stop
from ..channels import MOST_TRIES, ForwardState, close_need

CONVERSATION_VIEWS = 4
REASON_CHARS = 300


def arguments(
    state: ForwardState, scope: NodeScope, *, toolkit: Toolkit, tools: list[JsonObject], prompts: Prompts
) -> Generator[list[PlannerAsk], list[Reply], dict[str, Any]]:
    """Ask for the call of the first candidate; where the model declines, that is a step of its own.

    `tools` are the toolkit's as function dicts, for the model, which is asked by the planner's prompt.
    """
    context, steps, name = scope.context, state.get("steps", []), state["candidates"][0]
    over = close_need(state)
    if spent := spent_budget(state, context):
        return {"needs": [over], **stop(spent["code"], spent["message"])}
    if len(steps) >= context.max_steps:
        return {"needs": [over], **stop("max_steps", f"max_steps: {context.max_steps} calls were tried")}
    where = Where(turn=state["turn"], attempt=state["number"], question=state.get("asked", {}).get("planner", 0))
    bound = [tool for tool in tools if toolkit.resolve(tool["function"]["name"]) == name]
    (reply,) = yield [PlannerAsk(messages=build_messages(state, scope, prompts), tools=bound, where=where)]
    taken = TakenIds(state["conversation"], steps)
    if not isinstance(reply.value, AIMessage):
        return decline(name, reply.failure or "no reply", taken)
    message, calls = read_calls(reply.value, taken=taken)
    fitting = [call for call in calls if toolkit.resolve(call["name"]) == name]
    if not fitting:
        return decline(name, text_of(message).strip() or "no call was made", taken)
    call: Call = {**fitting[0], "name": name}
    scope.emit(event("gecko.call", attempt=state["number"], call=call))
    sent = [each for each in message.tool_calls if each["id"] == call["id"]]
    return {"pending": [call], "trace": [replace_calls(message, sent)]}


def build_messages(state: ForwardState, scope: NodeScope, prompts: Prompts) -> list[BaseMessage]:
    """Return what the model sees: the conversation, what was committed, the need, and what was wrong so far."""
    budget, steps = scope.context.view_chars, state.get("steps", [])
    prompt = prompts.render("planner", dict.fromkeys(variables_of("planner"), "") | {"need": state["need"]})
    seen = build_conversation(prompt.system, state["conversation"], budget=CONVERSATION_VIEWS * budget)
    done = build_call_messages([step for step in steps if is_planned(step)], task=state["task"], budget=budget)
    messages = merge_neighbours([*seen, *done, HumanMessage(prompt.user)])
    for step in steps[len(steps) - state["tries"] :]:
        call = step["call"]
        made = ToolCall(name=valid_name(call["name"]), args=call["args"], id=call["id"])
        messages.append(AIMessage("", tool_calls=[made]))
        if "outcome" in step:
            messages.append(build_result_message(call, step["outcome"], task=state["task"], budget=budget))
        else:
            messages.append(build_complaint_message(call, step["complaints"]))
    return messages


def decline(name: str, why: str, taken: TakenIds) -> dict[str, Any]:
    """Return the update where no call was made: a step without arguments, after which the tool is set aside."""
    call: Call = {"id": assign_id(None, taken), "name": name, "args": {}}
    got = cut(" ".join(why.split()), budget=REASON_CHARS)
    complaint: Complaint = {"tool": name, "path": "$", "expected": "a call for the need", "got": got, "source": "model"}
    step: Step = {"v": VERSION, "call": call, "complaints": [complaint]}
    return {"pending": [], "steps": [step], "tries": MOST_TRIES}
