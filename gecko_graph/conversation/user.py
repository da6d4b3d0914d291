"""user: writes the next message of the simulated user, or ends the conversation (ToolSandbox, section 2.2)."""

from __future__ import annotations

from collections.abc import Generator
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from ..errors import ModelError
from ..models.ask import AnyAsk, PlannerAsk, Reply, Where
from ..models.conversation import merge_neighbours
from ..models.formatting import cut, text_of
from ..models.node import NodeScope
from ..models.prompts import Prompts
from ..state import VERSION, Json, JsonObject, Step
from .channels import ConversationState
from .messages import address, read_envelope, swap_sides
from .users import LONGEST_LINE, UserEntry, find_line

END_TOOL: JsonObject = {
    "type": "function",
    "function": {
        "name": "end_conversation",
        "description": "End the conversation: the task is done, or cannot be done.",
        "parameters": {"type": "object", "properties": {}},
    },
}


def user(
    state: ConversationState,
    scope: NodeScope,
    *,
    spec: UserEntry,
    prompts: Prompts,
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Write the user's next message: the opening, a line of the script, or what the role `user` replies.

    Raises:
        ModelError: There is no script, and the role has no model.
    """
    if spec.opening and not has_begun(state):
        return _send(state, spec, spec.opening)
    if spec.script:
        return _follow(state, spec)
    if not scope.has_model("user"):
        raise ModelError("no model configured for role 'user': pass user=..., or write a script into the scenario")
    (reply,) = yield [ask_user(state, spec, prompts)]
    if not isinstance(reply.value, AIMessage):
        return {"end": "user_failed", "reason": f"the user did not answer: {reply.failure}"}
    text = text_of(reply.value).strip()
    if any(call["name"] == "end_conversation" for call in reply.value.tool_calls):
        return {"end": "ended"}
    if not text:
        return {"end": "user_failed", "reason": "the user's reply was empty"}
    return _send(state, spec, cut(text, budget=LONGEST_LINE))


def ask_user(state: ConversationState, spec: UserEntry, prompts: Prompts) -> PlannerAsk:
    """Build the question to the role: its three parts, then the conversation with the sides swapped."""
    shown = {
        "goal": spec.goal,
        "knows": "\n".join(spec.knows),
        "must_not_say": "\n".join(spec.must_not_say),
        "demonstration": "\n".join(f"Assistant: {each.agent}\nUser: {each.user}" for each in spec.demonstration),
    }
    prompt = prompts.render("user", shown)
    talk = swap_sides(state.get("messages", []))
    tools = [END_TOOL] if talk else []
    messages = merge_neighbours([SystemMessage(prompt.system), HumanMessage(prompt.user), *talk])
    where = Where(question=state.get("asked", {}).get("user", 0))
    return PlannerAsk(messages=messages, tools=tools, where=where, role="user")


def _follow(state: ConversationState, spec: UserEntry) -> dict[str, Any]:
    number = find_line(spec.script, state.get("next_line", 0), state)
    line = spec.script[number] if number < len(spec.script) else None
    if line is None or line.say is None:
        return {"end": "ended", "next_line": number}
    return _send(state, spec, line.say) | {"next_line": number + 1} | ({"end": "ended"} if line.end else {})


def _send(state: ConversationState, spec: UserEntry, text: str) -> dict[str, Any]:
    """Return the message; the state's clock has moved on before it, but for the first."""
    ticks = move_clock(state["world"], spec.minutes_a_turn) if has_begun(state) else []
    steps = len(state["world"]["log"]) + len(ticks)
    message = address(HumanMessage(text), "user", "agent", steps=steps)
    moved = {"world": {"records": ticks, "usage": state["world"]["usage"]}} if ticks else {}
    return {"messages": [message], **moved}


def has_begun(state: ConversationState) -> bool:
    """Return whether there is a message; a system prompt does not count."""
    return any(read_envelope(each)["sender"] != "system" for each in state.get("messages", ()))


def move_clock(world: JsonObject, minutes: float) -> list[JsonObject]:
    """Return a record that moves the state's `now` on, where it has one in ISO form."""
    now = world["state"].get("now")
    if (later := add_minutes(now, minutes)) is None:
        return []
    patch = [{"op": "replace", "path": "/now", "value": later}]
    step: Step = {
        "v": VERSION,
        "call": {"id": f"clock-{len(world['log'])}", "name": CLOCK, "args": {}},
        "outcome": {
            "status": "ok", "result": later, "patch": patch, "rung": CLOCK, "simulated": True, "passed": [],
        },
    }  # fmt: skip
    return [{"step": step, "note": {}}]


def add_minutes(now: Json, minutes: float) -> str | None:
    """Return a later date and time as the one before it is written, if that can show it; None for all else."""
    try:
        moment = datetime.fromisoformat(now if minutes and isinstance(now, str) else "")
        later = moment + timedelta(minutes=minutes)
    except (ValueError, OverflowError):
        return None
    for between, precision, zone in product("T ", ("minutes", "seconds", "milliseconds", "microseconds"), UTC):
        before, after = (each.isoformat(between, precision).replace(UTC[0], zone) for each in (moment, later))
        if before == now and datetime.fromisoformat(after) == later:
            return after
    return later.isoformat(timespec="seconds" if later.second else "minutes") if len(now) > LONGEST_DATE else None


UTC, LONGEST_DATE = ("+00:00", "Z"), len("2026-11-22")
CLOCK = "clock"
"""Name and rung of the steps that move the clock."""
