"""review: asks a person about the plan, as LangChain's HumanInTheLoopMiddleware does; risk: judges it before that."""

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
"""How often in a turn the plan is rehearsed again because a person or a rule rejected a part of it."""
MOST_STALE = 3
"""How often in a turn it is rehearsed again because the task state was edited from outside."""
MESSAGE_CHARS = 2_000
RESTS = ("bindings", "expects", "ambiguous")
"""Keys of the evidence for a planned call's arguments."""

Updates: TypeAlias = Generator[Sequence[AnyAsk], list[Reply], dict[str, Any]]
AnswerCall: TypeAlias = Callable[..., Generator[Sequence[AnyAsk], list[Reply], Step]]
"""From a task state, the scope, a call, and the state `before` the plan's `steps`, the call's simulated step."""


def risk(state: AgentState, scope: NodeScope, *, policy: ReviewPolicy, toolkit: Toolkit) -> Updates:
    """Judge the calls that a person would be asked about; a verdict holds for the turn: no resume asks again."""
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
        is_bounded = state["rehearsals"].get("stale", 0) < MOST_STALE
        return {"approval": None, "next_rehearsal_reason": "stale" if is_bounded else "", "lesson": None}
    left = calls_left(state)
    if known := find_rejected(state, left):
        return reject(state, known, "", scope)
    if refused := [each for each in left if each["review"] == "refuse"]:
        return reject(state, {each["call"]["id"]: f"not allowed: {each['reason']}" for each in refused}, "", scope)
    asked = [each for each in left if each["review"] == "ask" and "answered" not in each]
    calls, decisions = [each["call"] for each in asked], list[Decision]()
    if asked:
        names = [call["name"] for call in calls]
        texts, data = describe_calls(preview, left, state["task_state"], state["steps"])
        first, *others = (texts[call["id"]] for call in calls)
        own = {"gecko": {"calls": [data[call["id"]] for call in calls]}}
        claims = yield from find_claims(state["messages"], home)
        body, _, last = first.rpartition("\n")
        done = "\n".join(tell_calls([*state["unreported"], *state["journal"]]))
        before = f"Already, for real:\n{fence(done)}\n\n" if done else ""
        first = f"{before}{body}{unsupported(state)}\n{last}"
        told, allowed = [first, *others], [*map(policy.allowed, names)]
        needs_id = policy.needs_id
        decisions = yield from ask_person(calls, told, toolkit, claims, allowed=allowed, needs_id=needs_id, more=own)
    decided = {call["id"]: decision for call, decision in zip(calls, decisions, strict=True)}
    if any(each["type"] == "reject" for each in decisions):
        return reject_by_person(state, decided, scope)
    new = [apply_decision(each, decided.get(each["call"]["id"]), toolkit) for each in left]
    if all(one["call"] == other["call"] for one, other in zip(new, left, strict=True)):
        calls_now = [*preview["calls"][: -len(new)], *new]
        digest = preview_digest(calls_now, preview["start_digest"])
        approval = {"digest": digest, "at": time.time()}
        return {
            "preview": {**preview, "calls": calls_now, "digest": digest},
            "approval": approval,
            "next_rehearsal_reason": "",
        }
    renewed = yield from replay(new, state, scope, answer_call)
    now = state["task_state"]
    again = finish_preview(renewed, now, toolkit=toolkit, policy=policy)
    again = yield from add_undo(again, now, finder, scope.context.undo_s)
    return {"preview": again, "approval": None, "next_rehearsal_reason": "edited"}


def unsupported(state: AgentState) -> str:
    """Return a line on the answer's unsupported values, without those that real results will replace."""
    found = [each["data"] for each in notes_of(state["rehearsal"]["verdict"], "unsupported")]
    left = [each["value"] for each in found if each["origin"]["from"] != "result" or "attempt" in each["origin"]]
    shown = cut(", ".join(map(format_json, left)), budget=MESSAGE_CHARS)
    return f"\n- the answer: made up; nothing real supports {shown}." if left else ""


def apply_decision(planned: PlannedCall, decision: Decision | None, toolkit: Toolkit) -> PlannedCall:
    """Return a call as it was decided; edited arguments rest on the person alone."""
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
    """Return the calls with predictions of their own from the first one that was decided otherwise.

    Values that an earlier call of the plan makes are taken from its new prediction.
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
            planned.pop("risk", None)  # a new prediction is judged anew
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
    """Return a call with its new prediction; values that real calls gave it are its own from now on.

    An amount from a result that is predicted otherwise now is not supported by it any more: the person sees that.
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
    """Return the update after a person has rejected a part of the plan.

    Other decisions are wishes for the next plan. Who rejects all without a word is not asked again; who rejects
    all with the same words, as one does at a terminal, speaks of the plan: a call of it may stand in the next one.
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
    """Return the calls that a person has rejected before in this turn, by their ids, each with the reason.

    For a plan that was rejected as a whole: if all of its calls are there again.
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
    """Return whether a plan's call is one of a plan before; a value that an earlier call gives may be another one."""
    args, holes = planned["call"]["args"], [each["argument"] for each in planned["bindings"] if "starts" not in each]
    filled: Patch = [{"op": "replace", "path": place, "value": value_at(args, place)} for place in holes]
    return is_same_call(planned["call"], {**call, "args": apply_fitting(call["args"], filled)})


def reject(
    state: AgentState, reasons: Mapping[str, str], wishes: str, scope: NodeScope, *, is_final: bool = False
) -> dict[str, Any]:
    """Return the update after calls of the plan were rejected: it is rehearsed again, a bounded number of times.

    Those that a person rejected are steps of the turn from now on, with the reason: whoever plans, checks a call or
    judges sees them. A rule's text is no such word: it may name the very values that nothing supports.
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
