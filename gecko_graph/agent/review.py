"""review: ask a person about the plan, like LangChain's HumanInTheLoopMiddleware; risk: judge it before that."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from ..models.ask import AnyAsk, Reply
from ..models.formatting import cut, format_call, format_json, format_steps
from ..models.node import NodeScope
from ..real.bindings import fill
from ..real.claims import find_claims, tell_calls, unmade_entry
from ..real.decisions import Decision, ask_person
from ..real.description import describe_calls
from ..real.home import Home
from ..real.policy import ReviewPolicy
from ..real.preview import add_undo, apply_prediction, fence, finish_preview, predict, preview_digest, tell_tool
from ..real.risk import judge_risks
from ..state import VERSION, Call, Json, Patch, Step
from ..tools import Toolkit
from ..undo import UndoFinder
from ..values.difference import json_equal
from ..values.digest import open_json
from ..values.notes import notes_of
from ..values.patch import apply_fitting
from ..values.places import value_at
from ..world.records import Ambiguous, PlannedCall
from ..world.refusals import OTHER_PLAN, REJECTED, is_same_call, rejected_step
from ..world.turn import asks_undo
from .channels import AgentState, calls_left, has_moved

MOST_REJECTS = 2
"""Most rehearsals per turn after a person or a rule rejected a part of the plan."""
MOST_STALE = 3
"""Most rehearsals per turn after the task state was edited from outside."""
MESSAGE_CHARS = 2_000
RESTS = ("bindings", "expects", "ambiguous")
"""Keys of the evidence for a planned call's arguments."""

Updates: TypeAlias = Generator[Sequence[AnyAsk], list[Reply], dict[str, Any]]
AnswerCall: TypeAlias = Callable[..., Generator[Sequence[AnyAsk], list[Reply], Step]]
"""Maps a task state, the scope, a call, the state `before` the plan and its `steps` to the call's simulated step."""


def risk(state: AgentState, scope: NodeScope, *, policy: ReviewPolicy, toolkit: Toolkit) -> Updates:
    """Judge the calls that a person would be asked about; verdicts last for the turn, so a resume asks no model."""
    preview, now, known = state["preview"], state["task_state"], state.get("risks") or {}
    assert preview is not None
    more: Any = {"origins": state["rehearsal"].get("origins", {}), "done": state["steps"], "known": known}
    found = yield from judge_risks(preview, now, state["messages"], scope.context, **more)
    calls: list[Any] = [
        {**each, "risk": found[each["call"]["id"]]} if each["call"]["id"] in found else each
        for each in preview["calls"]
    ]
    risks = {**known, **{each["key"]: each for each in found.values()}}
    return {"preview": finish_preview(calls, now, toolkit=toolkit, policy=policy), "risks": risks}


def review(
    state: AgentState,
    scope: NodeScope,
    *,
    policy: ReviewPolicy,
    toolkit: Toolkit,
    answer_call: AnswerCall,
    home: Home,
    finder: UndoFinder,
) -> Updates:
    """Approve the preview by rule or by a person's decisions; or renew it, or list the changes for the planner.

    Nothing is done before the question, so that a resume, which runs the node again, repeats nothing.
    """
    preview = state["preview"]
    assert preview is not None
    if has_moved(state):
        reason = "stale" if state["rehearsals"].get("stale", 0) < MOST_STALE else ""
        return {"approval": None, "next_rehearsal_reason": reason, "lesson": None}
    left = calls_left(state)
    if known := find_rejected(state, left):
        return reject(state, known, "", scope)
    if refused := [each for each in left if each["review"] == "refuse"]:
        return reject(state, {each["call"]["id"]: f"not allowed: {each['reason']}" for each in refused}, "", scope)
    asked = [each for each in left if each["review"] == "ask" and "answered" not in each]
    decided: dict[str, Decision] = {}
    if asked:
        calls = [each["call"] for each in asked]
        texts, data = describe_calls(preview, left, state["task_state"], state["steps"])
        claims = yield from find_claims(state["messages"], home)
        more = {"gecko": {"calls": [data[call["id"]] for call in calls]}}
        allowed = [policy.allowed(call["name"]) for call in calls]
        options: Any = {"allowed": allowed, "needs_id": policy.needs_id, "more": more}
        first, *others = (texts[call["id"]] for call in calls)
        decisions = yield from ask_person(calls, [add_context(first, state), *others], toolkit, claims, **options)
        decided = {call["id"]: decision for call, decision in zip(calls, decisions, strict=True)}
    if any(each["type"] == "reject" for each in decided.values()):
        return reject_by_person(state, decided, scope)
    new = [apply_decision(each, decided.get(each["call"]["id"]), toolkit) for each in left]
    if all(one["call"] == other["call"] for one, other in zip(new, left, strict=True)):
        calls_now = [*preview["calls"][: -len(new)], *new]
        digest = preview_digest(calls_now, preview["start_digest"])
        approved = {**preview, "calls": calls_now, "digest": digest}
        return {"preview": approved, "approval": {"digest": digest, "at": time.time()}, "next_rehearsal_reason": ""}
    renewed = yield from replay(new, state, scope, answer_call)
    again = finish_preview(renewed, state["task_state"], toolkit=toolkit, policy=policy)
    again = yield from add_undo(again, state["task_state"], finder, scope.context.undo_s)
    return {"preview": again, "approval": None, "next_rehearsal_reason": "edited"}


def add_context(text: str, state: AgentState) -> str:
    """Return a question's first text with the turn's earlier real calls, and the answer's unsupported values."""
    body, _, last = text.rpartition("\n")
    done = "\n".join(tell_calls([*state["unreported"], *state["journal"]]))
    before = f"Already, for real:\n{fence(done)}\n\n" if done else ""
    return f"{before}{body}{unsupported(state)}\n{last}"


def unsupported(state: AgentState) -> str:
    """Return a line on the answer's unsupported values, without those that real results will replace."""
    found = [each["data"] for each in notes_of(state["rehearsal"]["verdict"], "unsupported")]
    left = [each["value"] for each in found if each["origin"]["from"] != "result" or "attempt" in each["origin"]]
    shown = cut(", ".join(map(format_json, left)), budget=MESSAGE_CHARS)
    return f"\n- the answer: made up; nothing real supports {shown}." if left else ""


def apply_decision(planned: PlannedCall, decision: Decision | None, toolkit: Toolkit) -> PlannedCall:
    """Return a call after a decision; edited arguments have the person as their only source."""
    if decision and decision["type"] == "respond":
        return {**planned, "answered": open_json(decision["message"])}
    if not decision or decision["type"] != "edit":
        return planned
    old, edited, records = planned["call"], decision["edited_action"], cast("dict[str, Any]", planned)
    call: Call = {**old, "name": edited["name"], "args": edited["args"]}

    def same(argument: str) -> bool:
        return json_equal(value_at(call["args"], argument), value_at(old["args"], argument))

    kept: Any = {key: [each for each in records.get(key, ()) if same(each["argument"])] for key in RESTS}
    notes = [each for each in notes_of(planned, "made_up") if same(each["where"])]
    new: Any = {"call": call, "sources": [], "notes": notes, **tell_tool(toolkit[call["name"]])}
    return planned if call == old else {**planned, **kept, **new}


def replay(
    calls: Sequence[PlannedCall], state: AgentState, scope: NodeScope, answer_call: AnswerCall
) -> Generator[Sequence[AnyAsk], list[Reply], list[PlannedCall]]:
    """Return the calls with new predictions from the first one on that was decided differently.

    Values from an earlier call of the plan are taken from its new prediction.
    """
    old = {each["call"]["id"]: each for each in calls_left(state)}
    quiet = replace(scope, context=scope.context.model_copy(update={"semantic_validation": False}))
    results: dict[str, Json] = {entry["call"]["id"]: entry.get("result") for entry in state["journal"]}
    before, changed = state["task_state"], False
    renewed: list[PlannedCall] = []
    steps: list[Step] = []
    for planned in calls:
        identifier = planned["call"]["id"]
        changed = changed or planned != old[identifier]
        if changed and "answered" not in planned:
            filled, _ = fill(planned, results)
            step = yield from answer_call(before, quiet, filled["call"], before=state["task_state"], steps=steps)
            planned = renew(filled, step, results, old)
            planned.pop("risk", None)  # a new prediction is judged again
        results[identifier] = planned.get("answered", planned["predicted"]["result"])
        if "answered" not in planned:
            before = apply_prediction(before, planned)
            outcome: Any = {"passed": [], "simulated": planned["predicted"]["rung"] != "real", **planned["predicted"]}
            steps = [*steps, {"v": VERSION, "call": planned["call"], "outcome": outcome}]
        renewed.append(planned)
    return renewed


def renew(
    planned: PlannedCall, step: Step, results: Mapping[str, Json], left: Mapping[str, PlannedCall]
) -> PlannedCall:
    """Return a call with its new prediction; values from real calls become its own.

    An amount from a result that is now predicted differently is no longer supported by it, which is shown to the
    person.
    """
    expects = [each for each in planned.get("expects") or () if each["call"] in left]
    holds = [each for each in expects if json_equal(value_at(results[each["call"]], each["path"]), each["predicted"])]
    lost: list[Ambiguous] = [{"argument": each["argument"], "sources": [each]} for each in expects if each not in holds]
    bindings = [each for each in planned["bindings"] if each["call"] in left]
    ambiguous = [*planned["ambiguous"], *lost]
    renewed: PlannedCall = {**planned, "bindings": bindings, "expects": holds, "ambiguous": ambiguous}
    predicted = predict(step)
    notes = [*notes_of(planned, "made_up"), *notes_of(predicted)]
    return {**renewed, "predicted": predicted, "notes": notes}


def reject_by_person(state: AgentState, decided: Mapping[str, Decision], scope: NodeScope) -> dict[str, Any]:
    """Return the update after a person rejected a part of the plan.

    Other decisions are wishes for the next plan. A person who rejects everything without a message is not asked again.
    One who rejects everything with the same message (as in a terminal) rejects the plan as a whole: its calls may occur
    in the next one.
    """
    rejected = {id_: each for id_, each in decided.items() if each["type"] == "reject"}
    is_whole = len(rejected) == len(decided) > 1 and len({each.get("message") for each in rejected.values()}) == 1
    word = OTHER_PLAN if is_whole and any(each.get("message") for each in rejected.values()) else REJECTED
    reasons = {id_: f"{word}{each.get('message', 'no reason')}" for id_, each in rejected.items()}
    wishes = [
        f"Instead of {format_call(planned['call'])}: {format_json(decided[planned['call']['id']])}"
        for planned in calls_left(state)
        if decided.get(planned["call"]["id"], {"type": "approve"})["type"] in ("edit", "respond")
    ]
    is_final = len(rejected) == len(decided) and not any(each.get("message") for each in rejected.values())
    is_final = is_final or asks_undo(state["messages"])  # another plan would be the same
    return reject(state, reasons, "\n".join(wishes), scope, is_final=is_final)


def find_rejected(state: AgentState, left: Sequence[PlannedCall]) -> dict[str, str]:
    """Return the calls that a person has rejected before in this turn, by id, with the reason.

    Calls of a plan that was rejected as a whole count only if all of them occur again.
    """
    known: dict[str, list[Call]] = {}
    for entry in state["journal"]:
        if entry["status"] == "refused" and "departure" in entry:
            known.setdefault(entry["departure"]["message"], []).append(entry["call"])
    found: dict[str, str] = {}
    for reason, calls in known.items():
        again = [each["call"]["id"] for each in left if any(_is_same(each, call) for call in calls)]
        if reason.startswith(REJECTED) or (reason.startswith(OTHER_PLAN) and len(again) >= len(calls)):
            found |= dict.fromkeys(again, reason)
    return found


def _is_same(planned: PlannedCall, call: Call) -> bool:
    """Return whether a plan's call equals an earlier one, ignoring values that an earlier call provides."""
    args, holes = planned["call"]["args"], [each["argument"] for each in planned["bindings"] if "starts" not in each]
    filled: Patch = [{"op": "replace", "path": place, "value": value_at(args, place)} for place in holes]
    return is_same_call(planned["call"], {**call, "args": apply_fitting(call["args"], filled)})


def reject(
    state: AgentState, reasons: Mapping[str, str], wishes: str, scope: NodeScope, *, is_final: bool = False
) -> dict[str, Any]:
    """Return the update after calls of the plan were rejected: a new rehearsal, a bounded number of times.

    Calls that a person rejected become steps of the turn, with the reason, visible to planner, validator and judge.
    Rejections by a rule do not: the rule's text may contain the very values that are unsupported.
    """
    rejected = [each["call"] for each in calls_left(state) if each["call"]["id"] in reasons]
    is_final = is_final or state["rehearsals"].get("rejected", 0) >= MOST_REJECTS
    why: Any = {id_: {"code": "policy", "message": reason} for id_, reason in reasons.items()}
    own = [call for call in rejected if reasons[call["id"]].startswith((REJECTED, OTHER_PLAN))]
    told = rejected if is_final else own
    update: dict[str, Any] = {
        "approval": None,
        "journal": [unmade_entry(call, status="refused", departure=why[call["id"]]) for call in told],
        "steps": [*state["steps"], *(rejected_step(call, reasons[call["id"]]) for call in own)],
    }
    if is_final:
        return {**update, "next_rehearsal_reason": ""}
    lines = [f"{format_call(call)}: {reasons[call['id']]}" for call in rejected]
    feedback = (
        "This plan was not approved. It must not have these calls, nor calls that depend on them:\n"
        + "\n".join(lines)
        + f"\n{wishes}\nPlan again without them; if the task cannot be done without them, ask the user."
    )
    attempts = state["rehearsal"]["attempts"]
    chosen = next(each for each in attempts if each["number"] == state["rehearsal"]["chosen"])
    new = [step for step in chosen["steps"] if step not in state["steps"]]
    log = format_steps(new, budget=scope.context.view_chars)
    lesson = {"number": 0, "attempt_log": log, "feedback": cut(feedback, budget=MESSAGE_CHARS)}
    return {**update, "next_rehearsal_reason": "rejected", "lesson": lesson}
