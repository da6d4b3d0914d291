"""The only place where a change of the task state is committed (paper, section 3.3 and appendix A.5)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from ..events import event
from ..models.ask import AnyAsk, Reply
from ..models.conversation import build_result_message
from ..models.node import NodeScope
from ..state import VERSION, JsonObject, Outcome, Patch, Step, SupposedFact
from ..tools import Toolkit
from ..values.patch import booked_patch
from .ask_patch import ask_patch
from .channels import AttemptState, Proposal
from .commit import commit, race_of, refuse
from .ladder import run_concurrently
from .state_rules import StateRules
from .turn import request_of


def book(
    state: AttemptState, scope: NodeScope, *, toolkit: Toolkit
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Commit the proposed outcomes in the order of the calls, each whole or not at all.

    The model is asked for a patch, never for a state, and only where a write was answered without one.
    """
    before = state["task_state"]
    proposals = yield from complete_patches(state, scope, toolkit)
    now: JsonObject = before
    done: list[Step] = []
    change: Patch = []
    facts: dict[str, SupposedFact] = {}
    for proposal in proposals:
        request = request_of(proposal["call"], state, scope, toolkit)
        outcome = mark_race(proposal, done, before, strict=scope.context.parallel_calls == "strict")
        later = None
        if done:
            after: AttemptState = {**state, "task_state": now, "steps": [*state.get("steps", []), *done]}
            later = request_of(proposal["call"], after, scope, toolkit)
        booked = commit(request, outcome, rules=StateRules.of(toolkit), later=later)
        now = booked.state
        facts.update(booked.facts)
        done.append({"v": VERSION, "call": proposal["call"], "outcome": booked.outcome})
        change += booked_patch(booked.outcome)
        emit_change(scope, state["number"], done[-1])
    task, budget = state["task"], scope.context.view_chars
    shown = [build_result_message(each["call"], each["outcome"], task=task, budget=budget) for each in done]
    return {"steps": done, "trace": shown, "task_state": change, "proposals": [], "facts": facts}


def emit_change(scope: NodeScope, attempt: int, booked: Step) -> None:
    """Stream what was committed or why it was not, with what the call comes to then, and the calls that it meets."""
    outcome = booked["outcome"]
    if booked_patch(outcome) or "refused" in outcome:
        fields: dict[str, Any] = {
            "patch": outcome["patch"],
            "refused": outcome.get("refused"),
            "race": outcome.get("race", []),
        }
        more = ("status", "result", "violations") if "refused" in outcome else ()
        fields |= {key: outcome[key] for key in ("observed", "unclear", *more) if key in outcome}  # type: ignore[literal-required]
        scope.emit(event("gecko.change", attempt=attempt, call=booked["call"], **fields))


def mark_race(proposal: Proposal, done: Sequence[Step], before: JsonObject, *, strict: bool) -> Outcome:
    """Return the outcome with the races it is in; under `strict` the later call of a race is refused."""
    outcome = proposal["outcome"]
    others = [(each["call"], each["outcome"]["patch"] or []) for each in done]
    races = race_of(others, outcome["patch"] or [], state=before)
    if not races:
        return outcome
    if strict:
        reason = f"it changes what another call of the same message changes: {'; '.join(races)}"
        return refuse(outcome, reason, "state_update")
    return {**outcome, "race": races}


def complete_patches(
    state: AttemptState, scope: NodeScope, toolkit: Toolkit
) -> Generator[list[AnyAsk], list[Reply], list[Proposal]]:
    """Return the proposals, with the model's patch where a successful write came without one."""
    proposals = list(state["proposals"])
    if not scope.has_model("state_updater"):
        return proposals
    lacking = [index for index, proposal in enumerate(proposals) if lacks_patch(proposal, toolkit)]
    chosen = [proposals[index] for index in lacking]
    asks = [ask_patch(request_of(each["call"], state, scope, toolkit), each["outcome"]) for each in chosen]
    outcomes = yield from run_concurrently(asks, asked=state.get("asked", {}).get("state_updater", 0))
    for index, outcome in zip(lacking, outcomes, strict=True):
        proposals[index] = {**proposals[index], "outcome": outcome}
    return proposals


def lacks_patch(proposal: Proposal, toolkit: Toolkit) -> bool:
    """Return whether a successful write has no patch yet."""
    outcome = proposal["outcome"]
    return outcome["patch"] is None and outcome["status"] == "ok" and not toolkit[proposal["call"]["name"]].reads
