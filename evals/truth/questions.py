"""The validator's recorded questions, asked again: which do rules now decide, and are wrong values caught?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from gecko_graph import GeckoContext, Toolkit
from gecko_graph.models.node import NodeScope
from gecko_graph.state import JsonObject
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.values.places import place_at, value_at
from gecko_graph.world.check import SHOWN_STEPS, validator

SCOPE = NodeScope(GeckoContext(), lambda event: None, lambda role: True)
OURS = r"\(A note|Carry out the user's latest request"
"""The start of the text that this package has added to a planner's message."""

Replies = Sequence[Mapping[str, Any]]


class Question(NamedTuple):
    """A recorded question: the tool, the call's arguments, the questioned places, and what the planner knew."""

    number: int
    tool: ToolSpec
    args: JsonObject
    asked: Sequence[str]
    state: JsonObject

    def ask(self, args: JsonObject | None = None, tool: ToolSpec | None = None) -> list[str]:
        """Return the places of these arguments, or others, that are asked about or refused."""
        call = {"id": "c", "name": self.tool.name, "args": self.args if args is None else args}
        return places_asked({**self.state, "pending": [call]}, Toolkit([tool or self.tool]))


def places_asked(state: Any, toolkit: Any) -> list[str]:
    """Return the places of a state's pending calls that the validator asks about, or refuses by rule."""
    running = validator(state, SCOPE, toolkit=toolkit)
    try:
        asks = next(running)
    except StopIteration as done:
        return [each["path"] for step in done.value["steps"] for each in step.get("complaints", ())]
    running.close()
    return [place for ask in asks for place in ask.variables["undecided"].split("\n")]


def read_block(text: str, label: str) -> str:
    """Return the block between two marks of a recorded prompt; empty if there is none."""
    found = re.search(rf"<({label}-[0-9a-f]+)>\n(.*?)\n</\1>", text, re.DOTALL)
    return found[2] if found else ""


def text_of_request(row: Mapping[str, Any]) -> str:
    return str(row["request"]["messages"][-1]["content"])


def read_questions(replies: Replies) -> Iterator[Question]:
    """Yield the validator's questions, each with what the planner knew when it made the call."""
    asked = [(at, row) for at, row in enumerate(replies) if row["role"] == "validator"]
    for number, (at, row) in enumerate(asked):
        text = text_of_request(row)
        tool, args = _tool_of(text), json.loads(read_block(text, "call"))
        task = read_block(text, "task")
        shown = [line for line in read_block(text, "results").split("\n") if line]
        known = _known_before(replies, at, [tool.name, args], task, len(shown)) or _known_by(text, shown)
        state: JsonObject = {"task": task, "number": 1, "turn": 0, **known}
        if now := read_block(text, "now"):
            state["task_state"] = {"now": now}
        yield Question(number, tool, args, read_block(text, "undecided").split("\n"), state)


def _tool_of(text: str) -> ToolSpec:
    """Return the tool of a question; arguments that it does not show had been decided by a rule."""
    told, args = json.loads(read_block(text, "tool")), json.loads(read_block(text, "call"))
    shown = told["parameters"].get("properties", {})
    decided = {name: {"enum": [value]} for name, value in args.items() if name not in shown}
    parameters = {**told["parameters"], "properties": {**shown, **decided}, "required": sorted(args)}
    return ToolSpec(name=told["name"], description=told.get("description", ""), parameters=parameters)


def _known_before(replies: Replies, at: int, call: list[Any], task: str, steps: int) -> JsonObject | None:
    """Return the conversation and steps that the planner saw before it made a call; None if not recorded."""
    for row in reversed(replies[:at]):
        made = row["reply"].get("calls") or () if row["role"] == "planner" else ()
        messages = row["request"]["messages"]
        spoken = [str(each["content"]) for each in messages if each["role"] == "user"]
        if call in [list(each[:2]) for each in made] and any(text.startswith(task[:60]) for text in spoken):
            known = _read_messages(messages, task)
            if sum("outcome" in step for step in known["steps"][-SHOWN_STEPS:]) == steps:
                return known
    return None


def _known_by(text: str, shown: Sequence[str]) -> JsonObject:
    """Return the conversation and steps that the question itself shows."""
    kinds: Any = {"user": HumanMessage, "assistant": AIMessage, "tool": partial(ToolMessage, tool_call_id="t")}
    turns = re.split(r"(?m)^(user|assistant|tool): ", read_block(text, "conversation"))[1:]
    conversation = [kinds[role](said) for role, said in zip(turns[::2], turns[1::2], strict=True)]
    steps = [_step(line.partition(" -> ok: ")[2]) for line in shown if " -> ok: " in line]
    return {"conversation": [*conversation, HumanMessage(read_block(text, "task"))], "steps": steps}


def _read_messages(messages: Sequence[Mapping[str, Any]], task: str) -> JsonObject:
    """Return a recorded conversation; messages after the current task are the attempt's steps."""
    conversation: list[AnyMessage] = []
    steps: list[JsonObject] = []
    is_now = False
    for each in messages:
        content = re.split(OURS, str(each["content"] or ""))[0].strip()
        is_now = is_now or (each["role"] == "user" and content.startswith(task[:60]))
        if each["role"] == "tool":
            if is_now:
                steps.append(_step(content))
            else:
                conversation.append(ToolMessage(content, tool_call_id=each["tool_call_id"]))
        elif content:
            kinds: Any = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
            conversation.append(kinds[each["role"]](content))
    return {"conversation": conversation, "steps": steps}


def _step(content: str) -> JsonObject:
    try:
        result = json.loads(content)
    except ValueError:
        result = content
    outcome = {"status": "error" if "error" in content[:12] else "ok", "result": result, "rung": "model"}
    return {"v": 1, "call": {"id": "s", "name": "seen", "args": {}}, "outcome": outcome}


def replaced(args: JsonObject, place: str, value: Any) -> JsonObject:
    """Return arguments with another value at a JSON Pointer."""
    changed: JsonObject = json.loads(json.dumps(args))
    *way, last = place_at(args, place)
    inner: Any = changed
    for token in way:
        inner = inner[token]
    assert value_at(args, place) != value, f"{place}: the twin equals the value"
    inner[last] = value
    return changed


TWINS: Sequence[tuple[int, str, Any]] = (
    (0, "/date_of_birth", "1968-03-22"),
    (0, "/date_of_birth", "1986-03-23"),
    (3, "/travel_date", "2026-04-16"),
    (4, "/travel_date", "2026-10-15"),
    (5, "/travel_date", "2026-11-10"),
    (7, "/fuelAmount", 36.7),
    (7, "/fuelAmount", 63.2),
    (8, "/door/0", "trunk"),
    (9, "/travel_date", "2026-11-14"),
    (10, "/travel_date", "2026-10-03"),
    (11, "/travel_date", "2025-10-10"),
    (12, "/fuelAmount", 45.0),
    (13, "/travel_date", "2026-10-11"),
    (14, "/door/3", "rear_middle"),
    (17, "/travel_date", "2026-12-05"),
    (17, "/travel_from", "LAX"),
    (17, "/travel_to", "JFK"),
    (18, "/expiration_date", "11/2026"),
    (18, "/expiration_date", "12/26"),
    (19, "/door/2", "rear_center"),
    (20, "/travel_date", "2026-10-11"),
    (21, "/travel_date", "2026-12-15"),
    (22, "/travel_date", "2026-12-16"),
    (26, "/mentions/0", "@Jery"),
    (27, "/travel_date", "2025-12-15"),
    (28, "/fuelAmount", 40.0),
    (29, "/fuelAmount", 55.0),
    (30, "/priority", 3),
    (32, "/destination", "Spring, TX, Crescent Hollow"),
    (34, "/travel_date", "2027-12-15"),
    (35, "/travel_date", "10-10-2026"),
    (36, "/fuelAmount", 30.0),
    (37, "/fuelAmount", 60.5),
    (38, "/travel_date", "2026-11-10"),
    (40, "/door/1", "back"),
    (41, "/fuelAmount", 13.3),
    (42, "/door", ["driver", "passenger"]),
    (43, "/fuelAmount", 50.0),
    (44, "/door", ["driver"]),
    (46, "/door", ["driver", "passenger", "rear_left"]),
    (48, "/door/2", "rear"),
    (50, "/destination", "Crescent Hollow, TX"),
    (51, "/start", "2026-12-03T14:00"),
    (52, "/start", "2026-12-11T09:00"),
    (53, "/start", "2026-12-10T10:00"),
    (54, "/start", "2026-12-01T13:00"),
    (56, "/start", "2026-12-01T14:00"),
    (59, "/start", "2026-12-02T15:00"),
    (60, "/start", "2026-12-05T09:00"),
    (61, "/start", "2026-12-02T04:00"),
)
"""Wrong values for right ones that a rule decides: the question's number, the place, the value."""


def missed_twins(questions: Sequence[Question]) -> list[str]:
    """Return the wrong twins that are neither refused nor asked about."""
    missed = []
    for number, place, value in TWINS:
        question = questions[number]
        asked = question.ask(replaced(question.args, place, value))
        if not any(each.startswith(place) for each in asked):
            missed.append(f"{number} {question.tool.name} {place} {json.dumps(value)}")
    return missed
