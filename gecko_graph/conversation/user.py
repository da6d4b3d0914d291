"""user: the simulated user's goal, knowledge, secrets and next message (ToolSandbox, section 2.2)."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Self, TypeAlias

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable
from pydantic import Field, model_validator

from ..errors import GeckoError
from ..models.ask import AnyAsk, PlannerAsk, QuestionId, Reply
from ..models.conversation import merge_neighbours
from ..models.factory import ModelLike
from ..models.formatting import cut, text_of
from ..models.node import NodeScope
from ..models.prompts import Prompts
from ..nodes.checks import judge_by_rule
from ..state import VERSION, Json, JsonObject, Step
from .channels import ConversationState, Leak, address, read_envelope, select_view
from .milestones.entry import Check, Entry, read_entry

LONGEST_LINE = 4_000
LONGEST_DATE = len("2026-11-22")
CLOCK = "clock"
"""Name and rung of the steps that advance the clock."""

END_TOOL: JsonObject = {
    "type": "function",
    "function": {
        "name": "end_conversation",
        "description": "End the conversation: the task is done, or cannot be done.",
        "parameters": {"type": "object", "properties": {}},
    },
}


class LineEntry(Entry):
    """A line of a scripted user; it is skipped if its check is false."""

    say: str | None = Field(None, min_length=1)
    when: Check | None = None
    end: bool = False

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, value: Any) -> Any:
        return {"say": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.say is None and not self.end:
            raise ValueError("expected a text, or {say: text} or {end: true}")
        return self


class ExchangeEntry(Entry):
    """A message and its answer, as an example of the user's style."""

    user: str
    agent: str


class UserEntry(Entry):
    """The user of a scenario.

    `knows` are the facts that the user may tell (the knowledge boundary). `must_not_say` are facts by which to judge
    the result, and which must not be given away; a leak is found by rule. With a `script` no model is needed.
    """

    goal: str = Field(pattern=r"\S")
    opening: str | None = Field(None, pattern=r"\S")
    knows: list[str] = Field(default_factory=list)
    must_not_say: list[str] = Field(default_factory=list)
    demonstration: list[ExchangeEntry] = Field(default_factory=list)
    script: list[LineEntry] = Field(default_factory=list)
    max_messages: int = Field(30, ge=1)
    max_failures: int = Field(3, ge=1)
    minutes_a_turn: float = Field(1.0, ge=0)


UserLike: TypeAlias = ModelLike | Mapping[str, Any] | Sequence[Any]


def read_user(user: UserLike | None, scenario: UserEntry | None) -> tuple[UserEntry, ModelLike | None]:
    """Return the user of a conversation, and the model that plays the user, if one was given.

    Raises:
        GeckoError: There is no goal, or a part is invalid; the message names the place.
    """
    if user is None or isinstance(user, str | Runnable):
        if scenario is None:
            raise GeckoError("user: expected a scenario with a user, user={'goal': ...}, or a script")
        return (scenario, None) if user is None else (scenario.model_copy(update={"script": []}), user)
    written = dict(user) if isinstance(user, Mapping) else {"script": list(user)}
    base = {"goal": "follow the script"} if "script" in written else {}
    base = scenario.model_dump(exclude_unset=True) if scenario else base
    return read_entry(UserEntry, {**base, **written}, where="user"), None


def user(
    state: ConversationState, scope: NodeScope, *, spec: UserEntry, prompts: Prompts
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Write the user's next message: the opening, a line of the script, or the reply of the role `user`."""
    if spec.opening and not _has_begun(state):
        return _send(state, spec, spec.opening)
    if spec.script:
        return _follow(state, spec)
    (reply,) = yield [ask_user(state, spec, prompts)]
    if not isinstance(reply.value, AIMessage):
        return {"end": "user_failed", "reason": f"the user did not answer: {reply.failure}"}
    text = text_of(reply.value).strip()
    if any(call["name"] == "end_conversation" for call in reply.value.tool_calls):
        return {"end": "ended"}
    if not text:
        return {"end": "user_failed", "reason": "the user's reply was empty"}
    return _send(state, spec, cut(text, budget=LONGEST_LINE))


def describe_user(spec: UserEntry) -> dict[str, str]:
    """Return the user's description for the prompts of user and auditor."""
    return {"goal": spec.goal, "knows": "\n".join(spec.knows), "must_not_say": "\n".join(spec.must_not_say)}


def ask_user(state: ConversationState, spec: UserEntry, prompts: Prompts) -> PlannerAsk:
    """Build the question to the role: its prompt, then the conversation with the sides swapped."""
    manner = "\n".join(f"Assistant: {each.agent}\nUser: {each.user}" for each in spec.demonstration)
    prompt = prompts.render("user", {**describe_user(spec), "demonstration": manner})
    talk = _swap_sides(state.get("messages", []))
    messages = merge_neighbours([SystemMessage(prompt.system), HumanMessage(prompt.user), *talk])
    where = QuestionId(question=state.get("asked", {}).get("user", 0))
    return PlannerAsk(messages=messages, tools=[END_TOOL] if talk else [], where=where, role="user")


def _swap_sides(messages: Sequence[AnyMessage]) -> list[BaseMessage]:
    """Return the user's view for a model that plays the user: the agent's texts become human messages."""
    sides = {"agent": HumanMessage, "user": AIMessage}
    addressed = ((read_envelope(message)["sender"], text_of(message)) for message in select_view(messages, "user"))
    return [sides[sender](text or "(no answer)") for sender, text in addressed if sender in sides]


def _follow(state: ConversationState, spec: UserEntry) -> dict[str, Any]:
    """Send the next line whose check is true; if there is none, or it only ends, the conversation is over."""
    left = range(state.get("next_line", 0), len(spec.script))
    number = next((each for each in left if _holds(spec.script[each].when, state)), len(spec.script))
    line = spec.script[number] if number < len(spec.script) else LineEntry(end=True)
    if line.say is None:
        return {"end": "ended", "next_line": number}
    return _send(state, spec, line.say) | {"next_line": number + 1} | ({"end": "ended"} if line.end else {})


def _holds(when: str | None, state: ConversationState) -> bool:
    """Return whether a line's check is true; names as in a checklist, with the agent's last message as `answer`."""
    if when is None:
        return True
    world, messages = state["world"], reversed(state.get("messages", []))
    said = next((text_of(message) for message in messages if read_envelope(message)["sender"] == "agent"), "")
    item: Any = {"id": "line", "description": "", "check": when}
    ruled = judge_by_rule([item], before=world["start"], after=world["state"], steps=world["log"], answer=said)
    return ruled["line"][0]


def _send(state: ConversationState, spec: UserEntry, text: str) -> dict[str, Any]:
    """Return the message, after advancing the state's clock, except before the first message."""
    ticks = _move_clock(state["world"], spec.minutes_a_turn) if _has_begun(state) else []
    steps = len(state["world"]["log"]) + len(ticks)
    message = address(HumanMessage(text), "user", "agent", steps=steps)
    moved = {"world": {"records": ticks, "usage": state["world"]["usage"]}} if ticks else {}
    return {"messages": [message], **moved}


def _has_begun(state: ConversationState) -> bool:
    """Return whether there is a message other than a system prompt."""
    return any(read_envelope(each)["sender"] != "system" for each in state.get("messages", ()))


def _move_clock(world: JsonObject, minutes: float) -> list[JsonObject]:
    """Return a record that advances the state's `now`, if it is ISO text."""
    if (later := add_minutes(world["state"].get("now"), minutes)) is None:
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
    """Return a later date and time in the same precision; None for other values."""
    if not minutes or not isinstance(now, str) or len(now) <= LONGEST_DATE:
        return None
    try:
        later = datetime.fromisoformat(now) + timedelta(minutes=minutes)
    except (ValueError, OverflowError):
        return None
    is_exact = later.second or re.search(r":\d\d:\d\d", now)
    precision = "milliseconds" if later.microsecond else "seconds" if is_exact else "minutes"
    text = later.isoformat(" " if " " in now else "T", precision)
    return text.replace("+00:00", "Z") if now.endswith("Z") else text


def find_leaks(state: ConversationState, must_not_say: Sequence[str]) -> list[Leak]:
    """Return the user's messages that contain a secret, ignoring case, spacing and punctuation."""
    secrets = [(text, _plain(text)) for text in must_not_say]
    return [
        {"message": number, "text": text}
        for number, message in enumerate(state.get("messages", ()))
        if read_envelope(message)["sender"] == "user"
        for text, plain in secrets
        if plain and f" {plain} " in f" {_plain(text_of(message))} "
    ]


def _plain(text: str) -> str:
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())
