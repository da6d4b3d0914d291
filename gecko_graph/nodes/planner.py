"""planner: makes the next calls, or answers (paper, section 4 and algorithm 1).

It sees what it would see with real tools: the conversation, the tools, its earlier calls and their results; on a retry also
the failed attempt's calls and the judge's feedback.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage

from ..channels import PLANNER_FAILED, AttemptState
from ..context import GeckoContext
from ..events import event
from ..models.ask import PlannerAsk, Reply, Where
from ..models.node import NodeScope
from ..models.prompts import render
from ..models.telling import text_of
from ..models.usage import total
from ..state import Call
from ..world.view import focus_words, view


def planner(
    state: AttemptState, scope: NodeScope, *, tools: Sequence[Mapping[str, Any]], resolve: Callable[[str], str]
) -> Generator[list[PlannerAsk], list[Reply], dict[str, Any]]:
    """Ask for the next calls, or end the attempt with its reason.

    Args:
        state: The attempt so far.
        scope: Knobs, events, models.
        tools: The toolkit as function dicts, for the model.
        resolve: From the name that the model was shown to the tool's own.
    """
    spent = spent_budget(state, scope.context)
    if spent:
        return stop(spent)
    trace = state.get("trace", [])
    step = sum(isinstance(message, AIMessage) for message in trace)
    where = Where(turn=state["turn"], attempt=state["number"], question=step)
    (reply,) = yield [PlannerAsk(messages=sight(state, scope.context), tools=list(tools), where=where)]
    if not isinstance(reply.value, AIMessage):
        return stop(f"{PLANNER_FAILED}: {reply.failure}")
    message, calls = read_calls(reply.value, taken=ids_in(trace), room=scope.context.max_steps - len(state.get("steps", [])))
    calls = [call | {"name": resolve(call["name"])} for call in calls]  # type: ignore[misc]
    for call in calls:
        scope.emit(event("gecko.call", attempt=state["number"], call=call))
    if calls:
        return {"trace": [message], "pending": calls}
    answer = text_of(message).strip()
    return {"trace": [message], **stop("answered" if answer else "the planner's reply was empty", answer)}


def stop(reason: str, answer: str = "") -> dict[str, Any]:
    """The update that ends an attempt."""
    return {"pending": [], "answer": answer, "stop_reason": reason}


def spent_budget(state: AttemptState, context: GeckoContext) -> str | None:
    """Which budget is spent, in words."""
    if len(state.get("steps", [])) >= context.max_steps:
        return f"max_steps: {context.max_steps} calls were made"
    tokens = total(state.get("usage", {}))
    used = state.get("spent_tokens", 0) + tokens["input_tokens"] + tokens["output_tokens"]
    if context.token_budget is not None and used >= context.token_budget:
        return f"token_budget: {used} of {context.token_budget} tokens are used"
    deadline = state.get("deadline")
    if deadline is not None and time.time() >= deadline:
        return f"time_budget_s: the {context.time_budget_s:g} seconds are over"
    return None


def sight(state: AttemptState, context: GeckoContext) -> list[BaseMessage]:
    """Everything the planner sees, what never changes first."""
    lesson = state.get("lesson")
    summary = ""
    if context.planner_view == "summary":
        summary = view(state["task_state"], focus=focus_words(state["task"]), budget=context.view_chars)
    prompt = render(
        "planner",
        {
            "feedback": lesson["feedback"] if lesson else "",
            "attempt_log": lesson["attempt_log"] if lesson else "",
            "summary": summary,
        },
    )
    note = [HumanMessage(prompt.user)] if lesson or summary else []
    return [*under(prompt.system, state["conversation"]), *note, *state.get("trace", [])]


def under(instructions: str, conversation: Sequence[AnyMessage]) -> list[BaseMessage]:
    """The conversation with our instructions behind its own system message: many models take only one."""
    if conversation and isinstance(conversation[0], SystemMessage):
        return [SystemMessage(f"{text_of(conversation[0])}\n\n{instructions}"), *conversation[1:]]
    return [SystemMessage(instructions), *conversation]


def ids_in(trace: Sequence[AnyMessage]) -> set[str]:
    """The call ids that the attempt has used."""
    return {str(call["id"]) for message in trace if isinstance(message, AIMessage) for call in message.tool_calls}


def read_calls(message: AIMessage, *, taken: set[str], room: int) -> tuple[AIMessage, list[Call]]:
    """The calls of a planner's message, at most `room`, each with an id of its own, and the message with the same ids.

    Arguments that are no JSON object are kept as text in `malformed`, for the validator.
    """
    tool_calls, invalid = [], []
    calls: list[Call] = []
    for raw in message.tool_calls[:room]:
        identifier = fresh_id(raw.get("id"), taken)
        tool_calls.append({**raw, "id": identifier})
        calls.append({"id": identifier, "name": raw["name"], "args": dict(raw["args"])})
    for broken in message.invalid_tool_calls[: room - len(calls)]:
        identifier = fresh_id(broken.get("id"), taken)
        invalid.append({**broken, "id": identifier})
        calls.append(
            {"id": identifier, "name": broken.get("name") or "", "args": {}, "malformed": str(broken.get("args") or "")}
        )
    return message.model_copy(update={"tool_calls": tool_calls, "invalid_tool_calls": invalid}), calls


def fresh_id(given: str | None, taken: set[str]) -> str:
    """The call's own id if it has one that is not taken, else a new one."""
    identifier = given or ""
    if not identifier or identifier in taken:
        identifier = next(name for number in range(1, len(taken) + 2) if (name := f"call_{number}") not in taken)
    taken.add(identifier)
    return identifier
