"""validator: refuses calls before they run (paper, section 3.1 and appendix A.3).

Rules first. Then, for arguments whose meaning no rule decides and that no result and nobody in the conversation gave, a
model; unsure, silent or failed, it lets the call pass.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol

from langchain_core.messages import ToolMessage

from ..channels import AttemptState, SemanticRecord, find
from ..events import event
from ..models.ask import Ask, Reply, Where
from ..models.formatting import format_conversation, format_json, format_steps, text_of
from ..models.node import NodeScope
from ..models.roles import SemanticVerdict
from ..schemas.complaints import complaints, malformed, unknown_tool
from ..schemas.findings import excerpt, json_path, value_at
from ..schemas.hints import without_hints
from ..schemas.undecided import chosen, leads_into, prescribes_format, undecided
from ..schemas.verbatim import stands
from ..simulation.rung import clock
from ..state import VERSION, Call, Complaint, JsonObject, Step
from ..toolkit.spec import ToolSpec
from ..turn import earlier

ARGUMENT_CHARS = 8_000
TOOL_CHARS = 8_000
DIGEST_CHARS = 1_200
"""Characters of earlier turns, and of results, that a question carries."""

TOLD_STEPS = 10
MAX_RESULTS = 100
"""Latest results in which values are looked for."""


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
    key: str = ""
    """What tells a tool with its arguments from others, exactly (`1` and `True` differ)."""

    def __post_init__(self) -> None:
        self.key = semantic_key(self.tool.name, self.args)


@dataclass(slots=True)
class _Checked:
    """A call on its way through the validator."""

    call: Call
    complaints: list[Complaint]
    tool: ToolSpec | None
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
    records: list[SemanticRecord] = []
    if scope.context.semantic_validation and scope.has_model("validator"):
        sources = _Sources(state)
        for each in checked:
            each.doubt = sources.doubt(each)
        doubts = [each.doubt for each in checked if each.doubt]
        _look_up(doubts, state.get("semantic", []))
        records = yield from _by_model(doubts, state)
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
        return _Checked(call, [unknown_tool(call)], None)
    return _Checked(call, [malformed(call)] if "malformed" in call else complaints(tool, call["args"]), tool)


class _Sources:
    """What the planner can have its values from: the results of tools, and what was written in the conversation."""

    def __init__(self, state: AttemptState) -> None:
        messages = state.get("conversation", [])
        outcomes = [step["outcome"] for step in state.get("steps", [])[-MAX_RESULTS:] if "outcome" in step]
        self._results = [outcome["result"] for outcome in reversed(outcomes) if outcome["status"] == "ok"]
        self._results += [text_of(each) for each in messages if type(each) is ToolMessage and each.status != "error"]
        self._words = [state["task"], *(text_of(each) for each in messages if type(each) is not ToolMessage)]

    def doubt(self, checked: _Checked) -> _Doubt | None:
        """The arguments to ask about; None where a source gives each of them.

        A value that a tool returned is never asked about, so that nothing can be said against its form.
        """
        tool, args = checked.tool, checked.call["args"]
        if tool is None or checked.complaints:
            return None
        open_ = undecided(tool.parameters, args)
        places = [
            place
            for place in (*open_, *chosen(tool.parameters, args, open_))
            if not stands(value_at(args, place), self._results)
        ]
        given = (
            stands(value_at(args, place), self._words) and not prescribes_format(tool.parameters, place)
            for place in places
        )
        return None if all(given) else _Doubt(tool, args, places)


def _by_model(doubts: Sequence[_Doubt], state: AttemptState) -> Generator[list[Ask], list[Reply], list[SemanticRecord]]:
    """Ask about each tool and arguments once in a turn, all of a message at once."""
    doubts = list({each.key: each for each in doubts if each.said is None}.values())
    if not doubts:
        return []
    first = state.get("asked", {}).get("validator", 0)
    wheres = [
        Where(turn=state["turn"], attempt=state["number"], question=first + index) for index in range(len(doubts))
    ]
    replies = yield [_ask(doubt, state, where) for doubt, where in zip(doubts, wheres, strict=True)]
    return [_record(doubt, reply) for doubt, reply in zip(doubts, replies, strict=True)]


def semantic_key(tool: str, args: JsonObject) -> str:
    """The digest of a tool and its arguments."""
    written = f"{tool} {json.dumps(args, sort_keys=True)}"
    return sha256(written.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _look_up(doubts: Sequence[_Doubt], records: Sequence[SemanticRecord]) -> None:
    """Find what was said of these arguments; a record of an older version has no key."""
    for doubt in doubts:
        doubt.said = doubt.said or find(records, doubt.key, lambda record: record.get("key", ""))


def _ask(doubt: _Doubt, state: AttemptState, where: Where) -> Ask:
    tool = doubt.tool
    answered = [step for step in state.get("steps", [])[-TOLD_STEPS:] if "outcome" in step]
    told = {
        "name": tool.name,
        "description": tool.description,
        "parameters": _told_schema(tool.parameters, doubt.places),
    }
    variables = {
        "tool": format_json(told, budget=TOOL_CHARS),
        "task": state["task"],
        "conversation": format_conversation(earlier(state.get("conversation", [])), budget=DIGEST_CHARS),
        "results": format_steps(answered, budget=DIGEST_CHARS) if answered else "",
        "now": clock(state.get("task_state")) or "",
        "arguments": format_json(doubt.args, budget=ARGUMENT_CHARS),
        "undecided": "\n".join(doubt.places),
    }
    return Ask(role="validator", variables=variables, reply=SemanticVerdict, where=where)


def _told_schema(schema: JsonObject, places: Sequence[str]) -> JsonObject:
    """The schema with only those properties that the question is about: tokens are paid for."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return schema
    wanted = {
        name: rule
        for name, rule in properties.items()
        if any(leads_into(place, json_path((name,))) for place in places)
    }
    cut = {**schema, "properties": wanted, "required": [name for name in schema.get("required", ()) if name in wanted]}
    if len(wanted) < len(properties):
        cut.pop("additionalProperties", None)  # of what is not shown it would say that it may not be there
    return cut


def _record(doubt: _Doubt, reply: Reply) -> SemanticRecord:
    record: SemanticRecord = {"tool": doubt.tool.name, "args": doubt.args, "problems": [], "key": doubt.key}
    if not isinstance(reply.value, SemanticVerdict):
        record["failure"] = reply.failure or "no verdict came back"
        return record
    for each in reply.value.problems:
        place = _place_of(each.argument, doubt)
        if place is not None and each.problem.strip():
            problem = without_hints(each.problem, known=json.dumps(doubt.args, ensure_ascii=False))
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
        inside = leads_into(path, place) and value_at(doubt.args, path) is not None
        if inside or (path != "$" and leads_into(place, path)):
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
        if any(leads_into(each["argument"], place) or leads_into(place, each["argument"]) for place in doubt.places)
    ]


def _tool_message(refused: _Checked) -> ToolMessage:
    """The complaints as the planner sees them: the error that a real tool would give."""
    lines = [f"{each['path']}: expected {each['expected']}, got {each['got']}" for each in refused.complaints]
    content = "\n".join([f"{refused.call['name']} was refused before it ran:", *lines])
    return ToolMessage(content, tool_call_id=refused.call["id"], name=refused.call["name"], status="error")
