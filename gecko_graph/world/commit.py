"""Commit changes of the task state; nothing else changes it (paper, section 3.3 and A.5; ToolGate, section 3.4)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from ..errors import PatchConflict, StateError
from ..events import change_event
from ..models.ask import AnyAsk, Reply
from ..models.formatting import format_json
from ..models.node import NodeScope
from ..state import VERSION, Category, Json, JsonObject, Note, Outcome, Patch, Step, SupposedFact, Violation
from ..tools import Toolkit
from ..values.difference import make_patch
from ..values.digest import check_json
from ..values.notes import STALE, join, note, tell, with_notes, without_change
from ..values.patch import apply_patch, booked_patch, overlap
from .by_document import with_opened
from .channels import AttemptState
from .check import mark_unsure
from .ladder import build_trace, run_concurrently
from .made import gated_request
from .model import ask_patch, keep_facts, suppose
from .rung import Answer, RungRequest, gate, open_contract, refuse, request_of, unchecked
from .state_rules import NO_RULES, StateRules


def state_updater(
    state: AttemptState, scope: NodeScope, *, toolkit: Toolkit
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Commit the proposed outcomes in the order of the calls, each completely or not at all.

    The model is asked for a patch, never for a state, and only if a write was answered without one.
    """
    requests = [gated_request(each["call"], state, scope, toolkit)[0] for each in state["proposals"]]
    for each in state["proposals"]:
        scope.made.pop(id(each["call"]), None)
    outcomes = [each["outcome"] for each in state["proposals"]]
    if scope.has_model("validator"):
        outcomes = [mark_unsure(each["call"], each["outcome"], state) for each in state["proposals"]]
    if scope.has_model("state_updater"):
        lacking = [at for at, outcome in enumerate(outcomes) if _lacks_patch(requests[at], outcome)]
        asks = [ask_patch(requests[at], outcomes[at]) for at in lacking]
        found = yield from run_concurrently(asks, asked=state.get("asked", {}).get("state_updater", 0))
        for at, outcome in zip(lacking, found, strict=True):
            outcomes[at] = outcome
    now: JsonObject = state["task_state"]
    done: list[Step] = []
    facts: dict[str, SupposedFact] = {}
    for request, outcome in zip(requests, outcomes, strict=True):
        later = None
        if done:
            after: AttemptState = {**state, "task_state": now, "steps": [*state.get("steps", []), *done]}
            later = request_of(request.call, after, scope, toolkit)
        booked = commit(request, mark_race(request, outcome, done), rules=StateRules.of(toolkit), later=later)
        now = booked.state
        facts.update(booked.facts)
        done.append({"v": VERSION, "call": request.call, "outcome": booked.outcome})
        if scope.watched and (change := change_event(done[-1], state["number"])):
            scope.emit(change)
    return {
        "steps": done,
        "trace": build_trace(done, state, scope),
        # without a saver the state itself is written, to save computing the commit twice
        "task_state": [one for each in done for one in booked_patch(each["outcome"])] if scope.watched else now,
        "proposals": [],
        "pending": state["pending"],  # for the next router
        "facts": facts,
    }


def _lacks_patch(request: RungRequest, outcome: Outcome) -> bool:
    return outcome["patch"] is None and outcome["status"] == "ok" and not request.tool.reads


def mark_race(request: RungRequest, outcome: Outcome, done: Sequence[Step]) -> Outcome:
    """Return the outcome with a note for each earlier call of its message that changes the same place.

    Under `strict` the later call of a race is refused. All calls of a message were answered in the request's state.
    """
    races = list[Note]()
    if not done:
        return outcome
    for call, patch in ((each["call"], each["outcome"]["patch"] or []) for each in done):
        with suppress(PatchConflict):  # an invalid patch: `commit` refuses it
            if places := overlap(patch, outcome["patch"] or [], document=request.state):
                told = f"{call['name']} ({call['id']}) at {', '.join(each or 'the root' for each in places[:3])}"
                races.append(note("race", told, places[0], call=call["id"]))
    if races and request.context.parallel_calls == "strict":
        reason = f"another call of the same message changes the same place: {'; '.join(map(tell, races))}"
        return refuse(outcome, reason, "state_update")
    return with_notes(outcome, races)


@dataclass(frozen=True, slots=True)
class Commit:
    """The state after a call, its outcome with the committed patch, and new supposed facts.

    A refused result leaves no trace (ToolGate, equation 12), so facts are made here.
    """

    state: JsonObject
    outcome: Outcome
    facts: dict[str, SupposedFact] = field(default_factory=dict)


def commit(
    request: RungRequest, outcome: Outcome, *, rules: StateRules = NO_RULES, later: RungRequest | None = None
) -> Commit:
    """Commit the outcome's patch, or refuse it as a whole with the reason.

    A read changes nothing. A result that breaks a postcondition or an invariant is not committed, and becomes an error
    with the reason. If calls of the same message were committed since it was answered, its conditions must hold in both
    states: that of the answer and that of the commit.

    Args:
        request: The call with the state that it was answered in.
        outcome: A rung's answer; a patch of None (a write with unknown changes) changes nothing.
        rules: The invariants of every state.
        later: The call on the current state, if calls before it in its message were committed meanwhile.
    """
    here = later or request
    state = here.state
    proposed = outcome["patch"] or []
    patch = [] if request.tool.reads else proposed
    outcome = with_opened(here, outcome)
    try:
        check_json(patch, what="the change")
        changed = request.contract.changed if request.contract and not later else ([], None)
        after: Any = changed[1] if patch and patch is changed[0] else apply_patch(state, patch)
        alone = after if state is request.state else apply_patch(request.state, patch)
        if not isinstance(after, dict):
            raise PatchConflict("the change replaces the task state with a value that is not an object")
    except (PatchConflict, StateError) as conflict:
        return Commit(state, refuse(outcome, f"the change does not apply: {conflict}", "state_update"))
    acts = patch or (outcome["status"] == "ok" and not request.tool.reads)
    if later and acts:
        outcome, late = _gate_again(later, outcome)
        if late is not None:
            why = f"after the calls before it in its message: {format_json(late.result)}"
            return Commit(state, join(refuse(outcome, why, "state_dependency"), late.more))
    broken = _violations(request, outcome, alone)
    broken += _violations(later, outcome, after) if later and acts and not broken else []
    broken += rules.violations(state, after)
    if broken:
        is_made = request.tool.reads or patch or not (request.tool.contract and "effects" in request.tool.contract.data)
        is_result = broken[0]["part"] == "ensures" and is_made  # otherwise a write without effect
        category: Category = category_of(outcome["result"]) if is_result else "state_update"
        return Commit(state, {**refuse(outcome, broken[0]["error"], category), "violations": broken})
    booked: Outcome = {**outcome, "patch": None if _lacks_patch(request, outcome) else patch}
    if dropped := len(proposed) - len(patch):
        booked = without_change(booked, f"a read changes nothing: {dropped} operations were dropped")
    if outcome.get("observed"):
        after, booked = _book_observed(after, booked, rules, shifted=make_patch(request.state, state))
    return Commit(after, booked, {**suppose(request, outcome), **keep_facts(here, patch, after)})


def _gate_again(later: RungRequest, outcome: Outcome) -> tuple[Outcome, Answer | None]:
    """Check the call again on the current state: return the outcome with notes, and a broken condition's error.

    A contract's own answer is refused if a condition cannot be evaluated, as by its rung.
    """
    later, late = gate(later)
    if later.unclear:
        outcome = with_notes(outcome, [note("unclear", each) for each in later.unclear])
        if late is None and outcome["rung"] == "contract" and later.context.unclear is None:
            late = unchecked(later.unclear)
    return outcome, late


def _book_observed(
    state: JsonObject, outcome: Outcome, rules: StateRules, *, shifted: Patch
) -> tuple[JsonObject, Outcome]:
    """Return the state with a real read's observation, and the outcome; the result is kept in any case.

    An observation is not booked if it breaks a rule or overwrites a change since the read (`shifted`).
    """
    rest = cast("Outcome", {key: value for key, value in outcome.items() if key != "observed"})
    if overlap(shifted, outcome["observed"], document=state):
        return state, with_notes(rest, [note("stale", STALE)])
    seen = apply_patch(state, outcome["observed"])
    if broken := rules.violations(state, seen):
        why = f"its observation is not booked: {broken[0]['error']}"
        return state, with_notes(rest, [note("undocumented", why)])
    return seen, outcome


def category_of(result: Json) -> Category:
    """Return the category of a refused result (ToolGate, table 3): empty or wrong."""
    return "empty" if is_void(result) else "semantic"


def is_void(result: Json) -> bool:
    """Return whether a result has no content: no text, number or boolean at any depth."""
    if isinstance(result, dict | list):
        return all(map(is_void, result.values() if isinstance(result, dict) else result))
    return result is None or result == ""


def _violations(request: RungRequest, outcome: Outcome, after: JsonObject) -> list[Violation]:
    contract = request.tool.contract
    if outcome["status"] == "error" or contract is None or not contract.data.get("ensures"):
        return []
    return (request.contract or open_contract(request)).violations(outcome["result"], after)
