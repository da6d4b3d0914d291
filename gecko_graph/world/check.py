"""Refuses calls before they run (paper, section 3.1 and appendix A.3).

Rules first. Then, for arguments whose meaning no rule decides and that neither results nor the conversation hold, a
model is asked; unsure, silent or failed, it lets the call pass.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Protocol

from langchain_core.messages import ToolMessage

from ..events import event
from ..models.ask import Ask, Reply, Where
from ..models.conversation import build_complaint_message, build_result_message
from ..models.formatting import format_conversation, format_json, format_steps, text_of
from ..models.node import NodeScope
from ..models.roles import SemanticVerdict
from ..models.secrets import is_secret
from ..schemas.hints import without_hints
from ..schemas.undecided import find_chosen, find_undecided, leads_into, prescribes_format
from ..state import VERSION, Call, Complaint, Json, JsonObject, Outcome, Step
from ..tools.check import check_by_rule
from ..tools.offered import Field
from ..tools.spec import ToolSpec
from ..values.finding import Found
from ..values.paths import excerpt, json_path, value_at
from .channels import AttemptState, SemanticRecord, find
from .contract import find_closed, find_masked
from .real import runs_for_real
from .rung import clock
from .turn import earlier, untrusted_of

ARGUMENT_CHARS = 8_000
TOOL_CHARS = 8_000
DIGEST_CHARS = 1_200
"""Characters of earlier turns, and of results, that a question carries."""

SHOWN_STEPS = 10
MAX_RESULTS = 100
"""Latest results in which values are looked for."""


class Tools(Protocol):
    """What the validator needs of a toolkit."""

    def get(self, name: str, /) -> ToolSpec | None:
        """Return the tool of this name."""


@dataclass(slots=True)
class _Question:
    """Arguments for the model to check, with the places that no rule decides."""

    tool: ToolSpec
    args: JsonObject
    places: list[str]
    record: SemanticRecord | None = None
    key: str = ""
    """Identifies a tool with its arguments exactly (`1` and `True` differ)."""

    def __post_init__(self) -> None:
        self.key = semantic_key(self.tool.name, self.args)


@dataclass(slots=True)
class _Checked:
    """A call on its way through the validator."""

    call: Call
    complaints: list[Complaint]
    tool: ToolSpec | None
    question: _Question | None = None


def check(
    state: AttemptState, scope: NodeScope, *, toolkit: Tools, gated: Sequence[ToolSpec] = ()
) -> Generator[list[Ask], list[Reply], dict[str, Any]]:
    """Check the calls of the planner's last message; those that pass stay pending.

    The planner cannot know the arguments of a tool that it was not given: such a call answers the tool's own error.

    `gated` are the tools that a task state may not admit, whatever their arguments.
    """
    checked = [_check_by_rule(call, toolkit) for call in state["pending"]]
    records: list[SemanticRecord] = []
    if scope.context.semantic_validation and scope.has_model("validator"):
        sources = _Sources(state)
        for each in checked:
            if each.tool is None or not runs_for_real(each.tool, scope.context):  # what it really finds tells more
                each.question = sources.find_question(each)
        questions = [each.question for each in checked if each.question]
        _find_records(questions, state.get("argument_verdicts", []))
        records = yield from _ask_model(questions, state)
        _find_records(questions, records)
    for each in checked:
        each.complaints += _read_complaints(each.question)
    masked = find_masked_now(gated, state, scope) if any(each.complaints for each in checked) else {}
    closed = [each.call for each in checked if each.complaints and each.call["name"] in masked]
    refused = [each for each in checked if each.complaints and each.call not in closed]
    for each in refused:
        scope.emit(event("gecko.complaint", attempt=state["number"], call=each.call, complaints=each.complaints))
    steps: list[Step] = [{"v": VERSION, "call": each.call, "complaints": each.complaints} for each in refused]
    answered: list[Step] = [answer_closed(call, masked[call["name"]], state, scope) for call in closed]
    shown = [build_complaint_message(each.call, each.complaints) for each in refused]
    task, budget = state["task"], scope.context.view_chars
    shown += [build_result_message(each["call"], each["outcome"], task=task, budget=budget) for each in answered]
    return {
        "pending": [each.call for each in checked if not each.complaints],
        "steps": [*steps, *answered],
        "trace": shown,
        "argument_verdicts": records,
    }


def find_masked_now(gated: Sequence[ToolSpec], state: AttemptState, scope: NodeScope) -> dict[str, str]:
    """Return the tools that the planner was not given for its last message, by name with the reason."""
    if not gated or scope.context.gate == "note":
        return {}
    steps, seed = state.get("steps", []), scope.context.seed
    closed = find_closed(gated, state["task_state"], seed=seed, steps=steps, untrusted=untrusted_of(state))
    return find_masked(closed, scope.context)


def answer_closed(call: Call, reason: str, state: AttemptState, scope: NodeScope) -> Step:
    """Return the step of a call that the task state does not admit, as the contract answers it."""
    outcome: Outcome = {
        "status": "error",
        "result": reason,
        "patch": [],
        "rung": "contract",
        "simulated": True,
        "passed": [],
        "category": "state_dependency",
    }
    fields = {key: outcome[key] for key in ("status", "result", "rung", "simulated", "passed")}
    scope.emit(event("gecko.result", attempt=state["number"], call=call, **fields, unclear=[], stale=False))
    return {"v": VERSION, "call": call, "outcome": outcome}


def _check_by_rule(call: Call, toolkit: Tools) -> _Checked:
    tool = toolkit.get(call["name"])
    return _Checked(call, check_by_rule(call, tool), tool)


class _Sources:
    """Where the planner can have its values from: the results of tools, and the conversation's texts."""

    def __init__(self, state: AttemptState) -> None:
        messages = state.get("conversation", [])
        outcomes = [step["outcome"] for step in state.get("steps", [])[-MAX_RESULTS:] if "outcome" in step]
        results = [outcome["result"] for outcome in reversed(outcomes) if outcome["status"] == "ok"]
        results += [text_of(each) for each in messages if type(each) is ToolMessage and each.status != "error"]
        self._results = Found(results)
        self._words = Found([state["task"], *(text_of(each) for each in messages if type(each) is not ToolMessage)])

    def find_question(self, checked: _Checked) -> _Question | None:
        """Return the arguments to ask about: those that no source gives; None where there is none.

        What stands in the conversation, but has a form that its schema prescribes, is asked about as well. A value that
        a tool returned never is, whatever its form, and of prose only figures need a source.
        """
        tool, args = checked.tool, checked.call["args"]
        if tool is None or checked.complaints:
            return None
        schema = tool.parameters
        open_ = find_undecided(schema, args)
        places = [*open_, *find_chosen(schema, args, open_)]
        places = [place for place in places if not self._results.holds(value_at(args, place), "verbatim")]
        places = [
            place
            for place in places
            if not is_secret(place.rpartition(".")[2])
            if prescribes_format(schema, place) or not self._is_said(place, value_at(args, place))
        ]
        return _Question(tool, args, places) if places else None

    def _is_said(self, place: str, value: Json) -> bool:
        field = Field(place.rpartition(".")[2], "", None, must=False)
        if not isinstance(value, str) or not field.is_prose(""):
            return self._words.holds(value, "normal" if isinstance(value, int | float) else "verbatim")
        figures = [word for word in value.split() if any(map(str.isdigit, word))]
        return all(self._words.holds(each, "normal") or self._results.holds(each, "normal") for each in figures)


def _ask_model(
    questions: Sequence[_Question], state: AttemptState
) -> Generator[list[Ask], list[Reply], list[SemanticRecord]]:
    """Ask about each tool and arguments once in a turn, all of a message at once, and return the records."""
    questions = list({each.key: each for each in questions if each.record is None}.values())
    if not questions:
        return []
    where = Where(turn=state["turn"], attempt=state["number"], question=state.get("asked", {}).get("validator", 0))
    replies = yield [
        _build_ask(question, state, replace(where, question=where.question + index))
        for index, question in enumerate(questions)
    ]
    return [_record(question, reply) for question, reply in zip(questions, replies, strict=True)]


def semantic_key(tool: str, args: JsonObject) -> str:
    """Return the digest of a tool and its arguments."""
    written = f"{tool} {json.dumps(args, sort_keys=True)}"
    return sha256(written.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _find_records(questions: Sequence[_Question], records: Sequence[SemanticRecord]) -> None:
    for question in questions:
        question.record = question.record or find(records, question.key, lambda record: record["key"])


def _build_ask(question: _Question, state: AttemptState, where: Where) -> Ask:
    tool = question.tool
    answered = [step for step in state.get("steps", [])[-SHOWN_STEPS:] if "outcome" in step]
    parameters = _select_properties(tool.parameters, question.places)
    shown = {"name": tool.name, "description": tool.about, "parameters": parameters}
    variables = {
        "tool": format_json(shown, budget=TOOL_CHARS),
        "task": state["task"],
        "conversation": format_conversation(earlier(state.get("conversation", [])), budget=DIGEST_CHARS),
        "results": format_steps(answered, budget=DIGEST_CHARS) if answered else "",
        "now": clock(state.get("task_state")) or "",
        "arguments": format_json(question.args, budget=ARGUMENT_CHARS),
        "undecided": "\n".join(question.places),
    }
    return Ask(role="validator", variables=variables, reply=SemanticVerdict, where=where)


def _select_properties(schema: JsonObject, places: Sequence[str]) -> JsonObject:
    """Return the schema with only those properties that the question is about: tokens cost."""
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
        cut.pop("additionalProperties", None)  # it would forbid what is not shown
    return cut


def _record(question: _Question, reply: Reply) -> SemanticRecord:
    record: SemanticRecord = {"tool": question.tool.name, "args": question.args, "problems": [], "key": question.key}
    if not isinstance(reply.value, SemanticVerdict):
        record["failure"] = reply.failure or "no verdict came back"
        return record
    for each in reply.value.problems:
        place = _place_of(each.argument, question)
        if place is not None and each.problem.strip():
            problem = without_hints(each.problem, known=json.dumps(question.args, ensure_ascii=False))
            record["problems"].append({"argument": place, "problem": problem})
    return record


def _place_of(argument: str, question: _Question) -> str | None:
    """Return the JSON path that the model named; None if there is no such argument, or a rule has decided it."""
    named = argument.strip()
    if named in question.args:
        path = json_path((named,))
    else:
        path = named if named.startswith("$") else f"${'' if named.startswith('[') else '.'}{named}"
    for place in question.places:
        inside = leads_into(path, place) and value_at(question.args, path) is not None
        if inside or (path != "$" and leads_into(place, path)):
            return path
    return None


def _read_complaints(question: _Question | None) -> list[Complaint]:
    """Return the complaints that the model has made about these arguments, now or earlier in the turn."""
    if question is None:
        return []
    return [
        {
            "tool": question.tool.name,
            "path": each["argument"],
            "expected": f"a value that makes sense here: {each['problem']}",
            "got": excerpt(value_at(question.args, each["argument"])),
            "source": "model",
        }
        for each in (question.record["problems"] if question.record else ())
        if any(leads_into(each["argument"], place) or leads_into(place, each["argument"]) for place in question.places)
    ]
