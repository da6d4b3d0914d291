"""Reject calls before they run (paper, section 3.1 and appendix A.3).

First by rules. Then a model is asked about arguments whose meaning no rule decides and whose values appear neither in
results nor in the conversation; if it is unsure, silent or fails, the call passes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Protocol

from langchain_core.messages import SystemMessage, ToolMessage

from ..contracts.run import Admissibility
from ..events import event
from ..models.ask import Ask, QuestionId, Reply
from ..models.formatting import format_conversation, format_json, format_policy, format_steps, text_of
from ..models.node import NodeScope
from ..models.prompts import is_secret
from ..models.roles import SemanticVerdict
from ..schemas.complaints import find_chosen, find_undecided, leads_into, prescribes_format, without_hints
from ..state import VERSION, Call, Category, Complaint, Json, JsonObject, Outcome, Step
from ..tools import Toolkit
from ..tools.check import check_by_rule
from ..tools.descriptions import ParameterField
from ..tools.spec import ToolSpec
from ..values.finding import Leaves, number_words
from ..values.notes import note, with_notes
from ..values.places import excerpt, place_at, places, pointer, pointer_tokens, printable, value_at
from .channels import AttemptState, SemanticRecord
from .decided import Decided, day_of
from .ladder import build_trace, emit_result
from .made import gated_request
from .records import unchanged
from .reducers import find
from .refusals import complain
from .rung import clock, find_closed, find_masked, runs_for_real, untrusted_of
from .turn import earlier

ARGUMENT_CHARS = 8_000
TOOL_CHARS = 8_000
DIGEST_CHARS = 1_200
"""Characters of earlier turns, and of results, in a question."""

SHOWN_STEPS = 10
MAX_RESULTS = 100
"""Number of latest results that are searched for values."""


class Tools(Protocol):
    """The part of a toolkit that the validator needs."""

    def get(self, name: str, /) -> ToolSpec | None:
        """Return the tool of this name."""


@dataclass(slots=True)
class _Checked:
    call: Call
    tool: ToolSpec | None
    complaints: list[Complaint]
    places: list[str] = field(default_factory=list)
    """Undecided arguments without a source."""
    key: str = ""
    """`semantic_key`, if there are such arguments."""


def validator(
    state: AttemptState, scope: NodeScope, *, toolkit: Tools, gated: Sequence[ToolSpec] = ()
) -> Generator[list[Ask], list[Reply], dict[str, Any]]:
    """Check the calls of the planner's last message; valid calls stay pending.

    A tool that was hidden from the planner, since the task state does not admit it, answers with its own error: the
    planner cannot know its arguments. `gated` are the tools that a task state may not admit, regardless of arguments.
    """
    checked: list[_Checked] = []
    for call in state["pending"]:
        tool = toolkit.get(call["name"])
        wrong = check_by_rule(call, tool) or complain(call, state, toolkit.get)
        checked.append(_Checked(call, tool, wrong))
    records: list[SemanticRecord] = []
    if scope.context.semantic_validation and scope.has_model("validator"):
        records = yield from _check_by_model(checked, state, scope, toolkit)
    refused = [each for each in checked if each.complaints]
    masked = _find_masked(gated, state, scope) if refused else {}
    steps: list[Step] = []
    for call, complaints in ((each.call, each.complaints) for each in refused):
        if call["name"] in masked:
            outcome = _close(masked[call["name"]])
            emit_result(scope, state["number"], call, outcome)
            steps.append({"v": VERSION, "call": call, "outcome": outcome})
        else:
            scope.emit(event("gecko.complaint", attempt=state["number"], call=call, complaints=complaints))
            steps.append({"v": VERSION, "call": call, "complaints": complaints})
    pending = [each.call for each in checked if not each.complaints]
    return {"pending": pending, "steps": steps, "trace": build_trace(steps, state, scope), "argument_verdicts": records}


def _find_masked(gated: Sequence[ToolSpec], state: AttemptState, scope: NodeScope) -> dict[str, Admissibility]:
    """Return the tools that were hidden from the planner for its last message, by name."""
    if not gated or scope.context.gate == "note":
        return {}
    steps, seed = state.get("steps", []), scope.context.seed
    closed = find_closed(gated, state["task_state"], seed=seed, steps=steps, untrusted=untrusted_of(state))
    return {name: closed[name] for name in find_masked(closed, scope.context)}


def _close(closed: Admissibility) -> Outcome:
    """Return the outcome of a call that the task state does not admit, as its contract would answer."""
    category: Category = "policy" if closed.kind == "policy" else "state_dependency"
    return {**unchanged("error", closed.reason, "contract"), "category": category}


def semantic_key(tool: str, args: JsonObject) -> str:
    """Return a digest of a tool and its arguments (`1` and `True` differ)."""
    written = f"{tool} {json.dumps(args, sort_keys=True)}"
    return sha256(written.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _check_by_model(
    checked: Sequence[_Checked], state: AttemptState, scope: NodeScope, toolkit: Tools
) -> Generator[list[Ask], list[Reply], list[SemanticRecord]]:
    """Ask once per turn about each tool and arguments, all of a message in parallel; return the new records.

    Calls that their contract refuses are skipped; that is known only for a message's first call.
    """
    sources = _Sources(state)
    for each in checked:
        # a tool that runs for real reports more itself
        if each.tool and not each.complaints and not runs_for_real(each.tool, scope.context):
            each.places = sources.find_unsupported(each.tool, each.call["args"])
            each.key = semantic_key(each.call["name"], each.call["args"]) if each.places else ""
    known = state.get("argument_verdicts", [])
    questions = {each.key: each for each in checked if each.places and not _find(known, each.key)}
    if checked[0].key in questions and _is_refused(checked[0], state, scope, toolkit):
        del questions[checked[0].key]
    records: list[SemanticRecord] = []
    if questions:
        where = QuestionId(
            turn=state["turn"], attempt=state["number"], question=state.get("asked", {}).get("validator", 0)
        )
        replies = yield [
            _build_ask(each, state, replace(where, question=where.question + index), scope)
            for index, each in enumerate(questions.values())
        ]
        records = [_record(each, reply) for each, reply in zip(questions.values(), replies, strict=True)]
    for each in checked:
        if each.places:
            each.complaints = _read_complaints(each, _find(known, each.key) or _find(records, each.key))
    return records


def _is_refused(checked: _Checked, state: AttemptState, scope: NodeScope, toolkit: Tools) -> bool:
    if checked.tool is None or checked.tool.contract is None or not isinstance(toolkit, Toolkit):
        return False
    return gated_request(checked.call, state, scope, toolkit)[1] is not None


def _find(records: Sequence[SemanticRecord], key: str) -> SemanticRecord | None:
    return find(records, key, lambda record: record["key"])


class _Sources:
    """The sources of the planner's values: results of tools, and texts of the conversation."""

    def __init__(self, state: AttemptState) -> None:
        messages = state.get("conversation", [])
        outcomes = [step["outcome"] for step in state.get("steps", [])[-MAX_RESULTS:] if "outcome" in step]
        results = [outcome["result"] for outcome in reversed(outcomes) if outcome["status"] == "ok"]
        results += [text_of(each) for each in messages if type(each) is ToolMessage and each.status != "error"]
        self._results = Leaves(results)
        words = [text_of(each) for each in messages if type(each) is not ToolMessage]
        self._words = Leaves(map(number_words, [state["task"], *words]))
        self._decided = Decided([state["task"], *reversed(words)], results, find_now(state))

    def find_unsupported(self, tool: ToolSpec, args: JsonObject) -> list[str]:
        """Return the arguments to ask about: values that no source contains.

        A value from the conversation is asked about as well if its schema prescribes a format, unless rules know the
        format. A value from a tool's result never is, and prose needs a source only for its figures.
        """
        schema = tool.parameters
        open_ = find_undecided(schema, args)
        return [
            place
            for place in [*open_, *find_chosen(schema, args, open_)]
            if not self._results.holds(value_at(args, place), "verbatim")
            if not is_secret(_name_of(place, args))
            if prescribes_format(schema, place) or not self._is_said(_name_of(place, args), value_at(args, place))
            if not self._decided.decides(place, args, schema, tool.about)
        ]

    def _is_said(self, name: str, value: Json) -> bool:
        field = ParameterField(name, "", None, must=False)
        if not isinstance(value, str) or not field.is_prose(""):
            return self._words.holds(value, "normal" if isinstance(value, int | float) else "verbatim")
        figures = [word for word in value.split() if any(map(str.isdigit, word))]
        return all(self._words.holds(each, "normal") or self._results.holds(each, "normal") for each in figures)


def find_now(state: AttemptState) -> str:
    """Return the task state's time, else the current day according to the policy; "" if neither is known."""
    policies = [text_of(each) for each in state.get("conversation", []) if isinstance(each, SystemMessage)]
    return clock(state.get("task_state")) or day_of(policies)


def _build_ask(checked: _Checked, state: AttemptState, where: QuestionId, scope: NodeScope) -> Ask:
    assert checked.tool is not None
    tool, args = checked.tool, checked.call["args"]
    answered = [step for step in state.get("steps", [])[-SHOWN_STEPS:] if "outcome" in step]
    properties = tool.parameters.get("properties", {})
    wanted = [name for name in properties if any(leads_into(place, pointer((name,))) for place in checked.places)]
    parameters = {"type": "object", "properties": {name: properties[name] for name in wanted}}  # tokens cost
    parameters |= {key: tool.parameters[key] for key in ("$defs",) if key in tool.parameters}
    described = {"name": tool.name, "description": tool.about, "parameters": parameters}
    shown = tuple(map(printable, checked.places))  # names with line breaks would be split
    variables = {
        "tool": format_json(described, budget=TOOL_CHARS),
        "task": state["task"],
        "conversation": format_conversation(earlier(state.get("conversation", [])), budget=DIGEST_CHARS),
        "results": format_steps(answered, budget=DIGEST_CHARS) if answered else "",
        "policy": format_policy(state.get("conversation", []), budget=DIGEST_CHARS),
        "now": find_now(state),
        "arguments": format_json(args, budget=ARGUMENT_CHARS),
        "undecided": "\n".join(shown),
    }
    return Ask("validator", variables, SemanticVerdict, where, ids=shown, band=scope.context.band)


def _record(checked: _Checked, reply: Reply) -> SemanticRecord:
    args = checked.call["args"]
    record: SemanticRecord = {"tool": checked.call["name"], "args": args, "problems": [], "key": checked.key}
    if not isinstance(reply.value, SemanticVerdict):
        record["failure"] = reply.failure or "no verdict came back"
        return record
    known = _places_by_name(checked)
    for each in reply.value.problems:
        place = _place_of(each.argument, known)
        if place is not None and each.unsure:
            text = "it is not sure that its value fits" + ("" if each.p is None else f", p {each.p:.2f}")
            record.setdefault("unsure", []).append(note("unclear", text, place))
        elif place is not None and each.problem.strip():
            problem = without_hints(each.problem, known=json.dumps(args, ensure_ascii=False))
            more = {} if each.p is None else {"p": each.p}
            record["problems"].append({"argument": place, "problem": problem, **more})
    return record


def mark_unsure(call: Call, outcome: Outcome, state: AttemptState) -> Outcome:
    """Return the outcome with notes on the arguments of which a decision model was unsure."""
    records = state.get("argument_verdicts", [])
    record = _find(records, semantic_key(call["name"], call["args"])) if records else None
    return with_notes(outcome, record.get("unsure", []) if record else [])


def _name_of(place: str, args: JsonObject) -> str:
    """Return the last property name on the path to a place."""
    return next((token for token in reversed(place_at(args, place)) if isinstance(token, str)), "")


_WORDS = re.compile(r"[^\s.\[\]'\"`/$]+")


def _places_by_name(checked: _Checked) -> dict[str, str]:
    """Return the arguments by the names that a model may write: `$.items[0].id` and `'id'` also match, by words."""
    found: dict[str, str] = {}
    for place in checked.places:
        tokens = pointer_tokens(place)
        paths = [pointer(tokens[:end]) for end in range(1, len(tokens))]
        paths += [path for path, value in places(value_at(checked.call["args"], place), place) if value is not None]
        for path in paths:
            found[printable(path)] = path
            found.setdefault(" ".join(_WORDS.findall(" ".join(pointer_tokens(path)))), path)
    return found


def _place_of(argument: str, known: dict[str, str]) -> str | None:
    """Return the JSON Pointer that the model named; None if it is unknown, or a rule has decided the argument."""
    forms = argument, pointer((argument,)), " ".join(_WORDS.findall(argument)) or argument
    return next((known[form] for form in forms if form in known), None)


def _read_complaints(checked: _Checked, record: SemanticRecord | None) -> list[Complaint]:
    """Return the model's complaints about these arguments, from now or earlier in the turn."""
    return [
        {
            "tool": checked.call["name"],
            "path": each["argument"],
            "expected": f"a plausible value: {each['problem']}",
            "got": excerpt(value_at(checked.call["args"], each["argument"])),
            "source": "model",
        }
        for each in (record["problems"] if record else ())
        if any(leads_into(each["argument"], place) or leads_into(place, each["argument"]) for place in checked.places)
    ]
