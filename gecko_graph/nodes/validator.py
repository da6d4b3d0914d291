"""validator: refuses calls before they run (paper, section 3.1 and appendix A.3).

Rules first. Then, for arguments whose meaning no rule decides, a model; unsure, silent or failed, it lets the call
pass.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.messages import ToolMessage

from ..channels import AttemptState, SemanticRecord
from ..events import event
from ..models.ask import Ask, Reply, Where
from ..models.node import NodeScope
from ..models.roles import SemanticVerdict
from ..models.telling import tell_json
from ..schemas.complaints import complaints, malformed, unknown_tool
from ..schemas.findings import excerpt, json_path, value_at
from ..schemas.undecided import undecided
from ..state import VERSION, Call, Complaint, JsonObject, Step
from ..task_state.patch import json_equal
from ..toolkit.spec import ToolSpec

ARGUMENT_CHARS = 8_000
TOOL_CHARS = 8_000
PROBLEM_CHARS = 300


class Tools(Protocol):
    """What the validator needs of a toolkit."""

    def get(self, name: str, /) -> ToolSpec | None:
        """The tool of this name."""


@dataclass(slots=True)
class _Doubt:
    """Arguments that the model is to look at, with the places that no rule decides."""

    tool: ToolSpec
    args: JsonObject
    places: list[str]
    said: SemanticRecord | None = None


@dataclass(slots=True)
class _Checked:
    """A call on its way through the validator."""

    call: Call
    complaints: list[Complaint]
    doubt: _Doubt | None = None


def validator(
    state: AttemptState, scope: NodeScope, *, toolkit: Tools
) -> Generator[list[Ask], list[Reply], dict[str, Any]]:
    """Check the calls of the planner's last message; those that pass stay pending.

    Args:
        state: The attempt so far: `pending`, `task`, `number`, `turn`, `semantic`, `asked`.
        scope: Knobs, events, models.
        toolkit: The tools, by name.
    """
    checked = [_by_rule(call, toolkit) for call in state["pending"]]
    doubts = [each.doubt for each in checked if each.doubt]
    _look_up(doubts, state.get("semantic", []))
    records: list[SemanticRecord] = []
    if scope.context.semantic_validation and scope.has_model("validator"):
        records = yield from _by_model(doubts, state, scope)
        _look_up(doubts, records)
    for each in checked:
        each.complaints += _of_model(each.doubt)
    refused = [each for each in checked if each.complaints]
    for each in refused:
        told = {"call": each.call, "complaints": each.complaints}
        scope.emit(event("gecko.complaint", attempt=state["number"], **told))
    steps: list[Step] = [{"v": VERSION, "call": each.call, "complaints": each.complaints} for each in refused]
    return {
        "pending": [each.call for each in checked if not each.complaints],
        "steps": steps,
        "trace": [_tool_message(each) for each in refused],
        "semantic": records,
    }


def _by_rule(call: Call, toolkit: Tools) -> _Checked:
    tool = toolkit.get(call["name"])
    if tool is None:
        return _Checked(call, [unknown_tool(call)])
    if "malformed" in call:
        return _Checked(call, [malformed(call)])
    found = complaints(tool, call["args"])
    places = [] if found else undecided(tool.parameters, call["args"])
    return _Checked(call, found, _Doubt(tool, call["args"], places) if places else None)


def _by_model(
    doubts: Sequence[_Doubt], state: AttemptState, scope: NodeScope
) -> Generator[list[Ask], list[Reply], list[SemanticRecord]]:
    """Ask about each tool and arguments once in a turn, all of a message at once."""
    doubts = list({_key(each.tool.name, each.args): each for each in doubts if each.said is None}.values())
    if not doubts:
        return []
    first = state.get("asked", {}).get("validator", 0)
    wheres = [
        Where(turn=state["turn"], attempt=state["number"], question=first + index) for index in range(len(doubts))
    ]
    replies = yield [_ask(doubt, state["task"], where) for doubt, where in zip(doubts, wheres, strict=True)]
    return [_record(doubt, reply) for doubt, reply in zip(doubts, replies, strict=True)]


def _key(tool: str, args: JsonObject) -> str:
    return f"{tool} {json.dumps(args, sort_keys=True)}"


def _look_up(doubts: Sequence[_Doubt], records: Sequence[SemanticRecord]) -> None:
    """Find what was said of these arguments.

    Records are compared as Python compares them, and only those found equal more exactly (`1` and `True` differ): a
    long attempt has a thousand of them, and writing each as JSON at every call took longer than all else.
    """
    for doubt in doubts:
        args, name = doubt.args, doubt.tool.name
        alike = (each for each in records if each["args"] == args and each["tool"] == name)
        doubt.said = doubt.said or next((each for each in alike if json_equal(each["args"], args)), None)


def _ask(doubt: _Doubt, task: str, where: Where) -> Ask:
    tool = doubt.tool
    told = {
        "name": tool.name,
        "description": tool.description,
        "parameters": _told_schema(tool.parameters, doubt.places),
    }
    variables = {
        "tool": tell_json(told, budget=TOOL_CHARS),
        "task": task,
        "arguments": tell_json(doubt.args, budget=ARGUMENT_CHARS),
        "undecided": "\n".join(doubt.places),
    }
    return Ask(role="validator", variables=variables, reply=SemanticVerdict, where=where)


def _told_schema(schema: JsonObject, places: Sequence[str]) -> JsonObject:
    """The schema with only those properties that the question is about: tokens are paid for."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return schema
    wanted = {
        name: rule for name, rule in properties.items() if any(_is_in(place, json_path((name,))) for place in places)
    }
    return {**schema, "properties": wanted}


def _is_in(place: str, outer: str) -> bool:
    """True if a JSON path is the other, or leads into it."""
    return place.startswith(outer) and place[len(outer) : len(outer) + 1] in ("", ".", "[")


def _record(doubt: _Doubt, reply: Reply) -> SemanticRecord:
    record: SemanticRecord = {"tool": doubt.tool.name, "args": doubt.args, "problems": []}
    if not isinstance(reply.value, SemanticVerdict):
        record["failure"] = reply.failure or "no verdict came back"
        return record
    for each in reply.value.problems:
        place = _place_of(each.argument, doubt)
        problem = " ".join(each.problem.split())[:PROBLEM_CHARS]
        if place is not None and problem:
            record["problems"].append({"argument": place, "problem": problem})
    return record


def _place_of(argument: str, doubt: _Doubt) -> str | None:
    """The JSON path of what the model named; None if there is no such argument, or a rule has decided it."""
    named = argument.strip()
    if named in doubt.args:
        path = json_path((named,))
    else:
        path = named if named.startswith("$") else f"${'' if named.startswith('[') else '.'}{named}"
    for place in doubt.places:
        inside = _is_in(path, place) and value_at(doubt.args, path) is not None
        if inside or (path != "$" and _is_in(place, path)):
            return path
    return None


def _of_model(doubt: _Doubt | None) -> list[Complaint]:
    """The complaints that the model has made about these arguments, now or earlier in the turn."""
    if doubt is None:
        return []
    return [
        {
            "tool": doubt.tool.name,
            "path": each["argument"],
            "expected": f"a value that makes sense here: {each['problem']}",
            "got": excerpt(value_at(doubt.args, each["argument"])),
            "source": "model",
        }
        for each in (doubt.said["problems"] if doubt.said else ())
    ]


def _tool_message(refused: _Checked) -> ToolMessage:
    """The complaints as the planner sees them: the error that a real tool would give."""
    lines = [f"{each['path']}: expected {each['expected']}, got {each['got']}" for each in refused.complaints]
    content = "\n".join([f"{refused.call['name']} was refused before it ran:", *lines])
    return ToolMessage(content, tool_call_id=refused.call["id"], name=refused.call["name"], status="error")
