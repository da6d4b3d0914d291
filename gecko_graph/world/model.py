"""The rung `model`: a helper model answers in place of the tool (paper, section 3.2 and appendices A.4 and A.5).

It also keeps supposed facts, the inventions of simulated reads, so that a second read and the next attempt agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Generator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from pydantic import BaseModel

from ..errors import PatchConflict, StateError
from ..models.ask import Ask, Reply
from ..models.focus import focus_words, split_term
from ..models.formatting import cut, format_json
from ..models.reply import schema_of
from ..models.roles import SimulatedEffect, SimulatedResponse, SimulatedWrite, StateChange
from ..models.view import StateView, view
from ..schemas.complaints import find_faults
from ..state import Call, CallStatus, Json, JsonObject, Outcome, Patch, SupposedFact
from ..tools.spec import ToolSpec
from ..values.digest import check_json, digest
from ..values.identity import cache_by_identity
from ..values.notes import notes_of, warning, with_notes
from ..values.patch import apply_patch, booked_patch, find, tokens
from ..values.places import as_text, scalars_of
from .model_patch import read_patch, view_for
from .rung import NO_ANSWER, Answer, Pass, RungRequest, RungResult, refuse

CALL_CHARS = 8_000
TOOL_CHARS = 16_000
PROBLEM_CHARS = 4_000
NAMES_CHARS = 600
ABOUT_CHARS = 4_000
MOST_SCHEMA_CHARS = 6_000
"""A longer result schema is not part of the reply's schema; the result is still checked against it."""

NOT_KNOWN = "not known in this rehearsal"
NOT_GUESSED = "Do not guess it: ask the user, or go on without it."
ONLY_READS = "the status of a write is ok or error"

_KEPT = ("type", "required", "enum", "const")
_UNKNOWN = ("$ref", "allOf", "not", "if", "patternProperties")
_TEXT: JsonObject = {"type": "string"}
_SHARES = 3
"""Most facts that share a budget; unused characters go to the others."""
_MOST_KEPT = 20
"""Number of latest facts kept over a change; each is stored again."""
_MOST_OLD = 200
"""Most removed values of a change that are searched in a fact."""
_SHORT = 200
_CODE = re.compile(r"(?=\S*\d|[A-Z]{3})[\w.:#-]{2,40}")
_BREAK = re.compile(r"\n *")


def model_rung(request: RungRequest) -> Generator[list[Ask], list[Reply], RungResult]:
    """Ask the simulator; if its answer does not fit, ask once more with the problem, then pass.

    If it fails for a write, the call is an error, since a made-up answer would promise a change that the state does not
    contain. A fitting result is kept while its patch is repaired.
    """
    if not request.has_simulator:
        return Pass("no model configured for role 'simulator'")
    kept: Answer | None = None
    problem, last = "", request.hint
    for _ in range(2):
        shown = view_for(request, kept.patch or [] if kept else [])
        (reply,) = yield [_ask_simulator(request, shown, last)]
        if reply.value is None:
            problem = f"no reply: {reply.failure}"
            break
        answer, wrong, wrong_patch = _answer_of(request, reply.value, shown)
        if kept is not None and answer.status == "ok":
            answer, wrong = replace(answer, result=kept.result), ""
        problem = wrong or wrong_patch
        if not problem:
            return answer
        kept = None if wrong else answer
        keep = "Keep status and result, correct the patch: " if kept else ""
        last = f"{format_json(reply.value.model_dump(exclude_unset=True), budget=PROBLEM_CHARS // 2)}\n{keep}{problem}"
    return Pass(f"the simulator gave no usable answer: {problem}", final=not request.tool.reads)


def _ask_simulator(request: RungRequest, shown: StateView, problem: str) -> Ask:
    """Return the question; for a write without a contract also for the tool's own rules, with names of other writes.

    The task is never shown: a model that sees it confirms the user's claims.
    """
    tool = request.tool
    fused = request.context.simulation == "fused" and not tool.reads
    reply = SimulatedResponse if tool.reads else SimulatedEffect if fused else SimulatedWrite
    variables = _variables(request, shown, problem) | {
        "tool": format_tool(tool, focus=list(request.call["args"]), writes=request.writes, warned=request.warned),
        "wants": "effect" if fused else "response",
        "rules": "ask" if _may_be_refused(request) else "",
    }
    return Ask("simulator", variables, reply, request.where, schema=reply_schema(reply, tool.result))


def _variables(request: RungRequest, shown: StateView, problem: str) -> dict[str, str]:
    """Return the variables of every question about a call: the call, a view of the state, real and supposed facts."""
    call = request.call
    some: Any = {"call": call, "state": request.state, "budget": request.context.view_chars // 2}
    return {
        "call": format_json({"name": call["name"], "args": call["args"]}, budget=CALL_CHARS),
        "state": shown.text,
        "real": format_facts(real_facts(request), **some),
        "facts": format_facts(request.facts.values(), **some),
        "problems": cut(problem, budget=PROBLEM_CHARS),
    }


def format_tool(tool: ToolSpec, *, focus: Sequence[str], writes: Sequence[str] = (), warned: Sequence[str] = ()) -> str:
    """Return a tool's description for the simulator; a very long schema is cut to the parts that match the focus.

    Parameters are reduced to their descriptions, since the call's arguments are valid.
    """
    result = {} if tool.result is None else {"result": tool.result}  # null would look like a null result
    others = cut(", ".join(name for name in writes if name != tool.name), budget=NAMES_CHARS)
    shown: JsonObject = {"name": tool.name, "description": tool.about, "effect": tool.effect or "unknown"}
    parameters = tool.parameters if "$defs" in tool.parameters else tool.parameters.get("properties", {})
    shown |= {"parameters": parameters, **result, **({"other writes": others} if others else {})}
    shown |= {"may refuse": [*warned]} if warned else {}
    text = json.dumps(shown, ensure_ascii=False)
    return text if len(text) <= TOOL_CHARS else view(shown, focus=focus, budget=TOOL_CHARS)


def _answer_of(request: RungRequest, reply: Any, shown: StateView) -> tuple[Answer, str, str]:
    """Return the reply as an answer, with the problems of its result and of its patch.

    Reads and errors change nothing; a separate reply leaves the change to the state updater.
    """
    if reply.status == "unknown":
        why = as_text(reply.result)
        answer = Answer("error", f"{NOT_KNOWN}{f': {why}' if why else ''}. {NOT_GUESSED}", [])
        return answer, ONLY_READS if request.tool.effect == "write" else "", ""
    status: CallStatus = "error" if reply.status == "error" else "ok"
    result, wrong = read_result(request.tool, reply)
    if request.tool.reads or reply.status == "error":
        return Answer(status, result, []), wrong, ""
    more: JsonObject = {}
    if reply.may_refuse and _may_be_refused(request):
        more["notes"] = [warning(reply.may_refuse)]
    if not isinstance(reply, SimulatedEffect):
        return Answer(status, result, more=more), wrong, ""
    try:
        return Answer(status, result, read_patch(reply, request, shown), more=more), wrong, ""
    except (PatchConflict, StateError) as problem:
        return Answer(status, result, reply.patch, more=more), wrong, str(problem)


def _may_be_refused(request: RungRequest) -> bool:
    """Return whether a write may break unwritten rules, since no contract states its conditions in this case."""
    tool, run = request.tool, request.contract
    rules = tool.contract.data.get("requires", ()) if tool.contract and not tool.is_learned else ()
    is_ruled = run is not None and run.unknown is None and any("evidence" not in each for each in rules)
    return not tool.reads and not is_ruled


def read_result(tool: ToolSpec, reply: Any) -> tuple[Json, str]:
    """Return the reply's result, parsed if it is JSON written as text, with its problem."""
    wrong = result_problem(tool, reply.status, reply.result)
    if wrong and isinstance(reply.result, str):
        with suppress(ValueError, RecursionError):
            inner = json.loads(reply.result)
            if not result_problem(tool, reply.status, inner):
                return inner, ""
    return reply.result, wrong


def result_problem(tool: ToolSpec, status: str, result: Json) -> str:
    try:
        check_json(result, what="the result")
    except StateError as problem:
        return str(problem)
    return "" if status == "error" or tool.result is None else "\n".join(find_faults(tool.result, result))


def ask_patch(request: RungRequest, outcome: Outcome) -> Generator[list[Ask], list[Reply], Outcome]:
    """Ask for a call's changes; if they cannot be used, ask once more with the problem.

    A write whose change stays unknown becomes an error: its result would promise a change that the state does not
    contain.
    """
    patch: Patch = []
    problem = previous = ""
    for _ in range(2):
        shown = view_for(request, patch, outcome["result"])
        variables = _variables(request, shown, previous) | {
            "tool": format_json({"name": request.tool.name, "description": request.tool.about}, budget=ABOUT_CHARS),
            "result": format_json(outcome["result"], budget=CALL_CHARS),
        }
        (reply,) = yield [Ask("state_updater", variables, StateChange, request.where)]
        if not isinstance(reply.value, StateChange):
            problem = f"no model described the call's change: {reply.failure}"
            break
        try:
            return {**outcome, "patch": read_patch(reply.value, request, shown), "supposed": True}
        except (PatchConflict, StateError) as conflict:
            patch, problem = reply.value.patch, str(conflict)
            previous = f"{format_json(patch, budget=PROBLEM_CHARS // 2)}\n{problem}"
    return {**refuse(outcome, problem, "state_update"), "result": NO_ANSWER}


def reply_schema(reply: type[BaseModel], result: JsonObject | None) -> JsonObject | None:
    """Return the reply's schema with the tool's result schema in it, or text, which is the form of errors.

    Returns:
        The same object for the same arguments; None if the result schema is missing or too long.
    """
    return None if result is None else _combined(reply, result)


@cache_by_identity(1024)
def _combined(reply: type[BaseModel], result: JsonObject) -> JsonObject | None:
    form, general = form_of(result), schema_of(reply)
    if not form or len(json.dumps(form)) > MOST_SCHEMA_CHARS:
        return None
    forms = form["anyOf"] if form.keys() == {"anyOf"} else [form]
    either = {"anyOf": [*forms, *([] if _TEXT in forms else [_TEXT])]}
    return {**general, "properties": {**general["properties"], "result": either if len(either["anyOf"]) > 1 else _TEXT}}


def form_of(schema: Any) -> JsonObject:
    """Return a weaker schema with only those keywords that every guided decoder supports."""
    if not isinstance(schema, dict) or any(key in schema for key in _UNKNOWN):
        return {}
    form = {key: schema[key] for key in _KEPT if key in schema}
    if schema.get("additionalProperties") is False:
        form["additionalProperties"] = False
    if isinstance(schema.get("properties"), dict):
        form["properties"] = {name: form_of(each) for name, each in schema["properties"].items()}
    if isinstance(schema.get("items"), dict) and "prefixItems" not in schema:
        form["items"] = form_of(schema["items"])
    either = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(either, list) and either:
        form["anyOf"] = [form_of(each) for each in either]
    return form


def fact_key(call: Call, digest: str) -> str:
    """Return the key of a fact: the call's tool and arguments, and the task state it was supposed in."""
    return f"{call['name']} {json.dumps(call['args'], sort_keys=True, ensure_ascii=False)} {digest}"


def suppose(request: RungRequest, outcome: Outcome) -> dict[str, SupposedFact]:
    """Return the fact that a committed answer supposes, if a rung made it up for a read.

    Also for a tool of unknown effect that changed nothing: an equal call in the same state will change nothing either.
    """
    unchanged = request.tool.effect is None and outcome["status"] == "ok" and outcome["patch"] == []
    filled = outcome.get("filled", {})
    invented = outcome.get("invented") or (filled.get("invented") and outcome["status"] == "ok")
    if notes_of(outcome, "refused") or not invented or not (request.tool.reads or unchanged):
        return {}
    now = digest(request.state)
    key = fact_key(request.call, now)
    if key in request.facts:
        return {}
    fact: SupposedFact = {
        "tool": request.call["name"],
        "args": request.call["args"],
        "status": outcome["status"],
        "result": outcome["result"],
        "rung": filled.get("rung", outcome["rung"]),
        "digest": now,
    }
    return {key: with_notes(fact, notes_of(outcome, "may_refuse"))}


def keep_facts(request: RungRequest, patch: Patch, after: JsonObject) -> dict[str, SupposedFact]:
    """Return the facts that a change does not touch, as facts of the new state.

    By rule they answer an equal call only if they contain nothing but codes, such as a zip code. Figures, booleans and
    words may depend on anything; such facts are only shown in later prompts.
    """
    if not patch or not request.facts or not request.has_simulator:
        return {}
    now, then = digest(request.state), digest(after)
    held = [each for each in request.facts.values() if each["digest"] == now]
    kept = [each for each in held if not is_touched(each, patch, request.state)][-_MOST_KEPT:]
    ends = ("" if _is_code(each["result"]) else " kept" for each in kept)
    keys = [fact_key(_call_of(each), then) + end for each, end in zip(kept, ends, strict=True)]
    return {key: {**each, "digest": then} for key, each in zip(keys, kept, strict=True)}


def _is_code(result: Json) -> bool:
    """Return whether a result contains only codes: texts with a digit, or in capitals."""
    return all(isinstance(each, str) and _CODE.fullmatch(each) is not None for each in scalars_of(result) or [None])


def is_touched(fact: SupposedFact, patch: Patch, state: JsonObject) -> bool:
    """Return whether a change may affect a read's result: both contain the same name, or a removed value.

    A result that consists of booleans may have been computed from anything.
    """
    if all(isinstance(each, bool) for each in scalars_of(fact["result"])):
        return True
    text = json.dumps([fact["args"], fact["result"]], ensure_ascii=False).casefold()
    shown = scalars_of([fact["tool"], fact["args"], fact["result"]], keys=True)
    words = {word for each in shown for word in split_term(str(each)[:_SHORT])}
    for operation in patch:
        ways = [tokens(operation[key]) for key in ("path", "from") if key in operation]
        if any(word in words for way in ways for token in way for word in split_term(token)):
            return True
        gone = [each for way in ways for each in islice(scalars_of(_old(state, way)), _MOST_OLD)]
        named = [str(each).casefold() for each in (*gone, *(token for way in ways for token in way))]
        if any(each in text for each in named if len(each) > 1 and each != "none"):
            return True
    return False


def _old(state: JsonObject, way: list[str]) -> Json:
    with suppress(PatchConflict):
        return find(state, way)
    return None


def _call_of(fact: SupposedFact) -> Call:
    return {"id": "", "name": fact["tool"], "args": fact["args"]}


def real_facts(request: RungRequest) -> list[SupposedFact]:
    """Return the results of real calls as facts; facts touched by a later change belong to another state."""
    found: list[Any] = [*request.earlier]
    state, now = request.before, digest(request.state) if request.steps else ""
    for step in request.steps:
        call, outcome = step["call"], step.get("outcome")
        if outcome and (patch := outcome["patch"]):
            found = [{**each, "digest": ""} if is_touched(each, patch, state) else each for each in found]
        if outcome and not outcome["simulated"]:
            found.append({**outcome, "tool": call["name"], "args": call["args"], "digest": now})
        state = apply_patch(state, booked_patch(outcome)) if outcome else state
    return found


def format_facts(facts: Collection[SupposedFact], *, call: Call, state: JsonObject, budget: int) -> str:
    """Return the facts as lines of JSON for a prompt, within `budget` characters.

    Facts that contain the call's arguments come first, then those of its tool. A fact that exceeds its share is cut to
    a view: of a list of fifty flights, the one that is being booked. Of equal calls the one in this state is used, else
    the latest; a fact from another state is marked, since a write may have changed it.
    """
    scalars = (each for each in scalars_of(call["args"]) if each is not None and not isinstance(each, bool))
    wanted = [text for text in (str(each).lower() for each in scalars) if len(text) > 1]
    now = digest(state) if facts else ""

    def rank(fact: SupposedFact) -> tuple[bool, bool, bool]:
        text = json.dumps([fact["args"], fact["result"]], ensure_ascii=False).lower()
        return not any(each in text for each in wanted), fact["tool"] != call["name"], fact["digest"] != now

    latest = {fact_key(_call_of(fact), ""): fact for fact in sorted(facts, key=lambda fact: fact["digest"] == now)}
    focus = focus_words(call["args"], call["name"])
    share = budget // min(max(len(latest), 1), _SHARES)
    lines: list[str] = []
    left = budget + 1  # the last line has no line break
    for fact in sorted(latest.values(), key=rank):
        line = _format_fact(fact, old=fact["digest"] != now, focus=focus, budget=share)
        if len(line) < left:
            lines.append(line)
            left -= len(line) + 1
    return "\n".join(lines)


def _format_fact(fact: SupposedFact, *, old: bool, focus: Sequence[str], budget: int) -> str:
    age = {"before_a_change": True} if old else {}
    failed = {"status": "error"} if fact["status"] == "error" else {}
    shown = {"call": {"name": fact["tool"], "args": fact["args"]}, **age, **failed, "result": fact["result"]}
    line = json.dumps(shown, ensure_ascii=False)
    return line if len(line) <= budget else _BREAK.sub(" ", view(shown, focus=focus, budget=budget))
