"""state_updater: the only place where a change of the task state is committed (paper, section 3.3 and appendix A.5)."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import ToolMessage

from ..channels import AttemptState, Proposal
from ..errors import PatchConflict, StateError
from ..events import event
from ..models.ask import Ask, Reply, Where
from ..models.node import NodeScope
from ..models.roles import StateChange
from ..models.telling import cut, fitting, tell_json
from ..simulation.commit import commit, race_of, refuse
from ..simulation.rung import RungRequest
from ..state import VERSION, JsonObject, Outcome, Patch, Step, SupposedFact
from ..task_state.digest import check_json
from ..task_state.patch import apply_patch
from ..toolkit import Toolkit
from ..view.view import focus_words, view

TOOL_CHARS = 4_000
VALUE_CHARS = 8_000
PROBLEM_CHARS = 2_000


def state_updater(
    state: AttemptState, scope: NodeScope, *, toolkit: Toolkit
) -> Generator[list[Ask], list[Reply], dict[str, Any]]:
    """Commit the proposed outcomes in the order of the calls, each whole or not at all.

    The model is asked for a patch, never for a state, and only where a write was answered without one.
    """
    before = state["task_state"]
    proposals = yield from complete(state, scope, toolkit)
    now: JsonObject = before
    done: list[Proposal] = []
    change: Patch = []
    facts: dict[str, SupposedFact] = {}
    for proposal in proposals:
        request = request_of(proposal, state, scope, toolkit)
        outcome = settle_race(proposal, done, before, strict=scope.context.parallel_calls == "strict")
        booked = commit(request, outcome, invariants=toolkit.invariants, now=now)
        now = booked.state
        facts.update(booked.facts)
        done.append({"call": proposal["call"], "outcome": booked.outcome})
        change += booked.outcome["patch"] or []
        tell_change(scope, state["number"], done[-1])
    steps: list[Step] = [{"v": VERSION, "call": each["call"], "outcome": each["outcome"]} for each in done]
    shown = [tool_message(each, task=state["task"], budget=scope.context.view_chars) for each in done]
    return {"steps": steps, "trace": shown, "task_state": change, "proposals": [], "facts": facts}


def tell_change(scope: NodeScope, attempt: int, booked: Proposal) -> None:
    """Stream what was committed, or why it was not, and the calls of the same message that it meets."""
    outcome = booked["outcome"]
    if outcome["patch"] or "refused" in outcome:
        told = {"patch": outcome["patch"], "refused": outcome.get("refused"), "race": outcome.get("race", [])}
        scope.emit(event("gecko.change", attempt=attempt, call=booked["call"], **told))


def tool_message(booked: Proposal, *, task: str, budget: int) -> ToolMessage:
    """The outcome as the planner sees it: what the real tool would show, within `budget` characters.

    Of a longer result it sees the start and the end of its texts, else an outline with what the task speaks of.
    """
    call, outcome = booked["call"], booked["outcome"]
    result = outcome["result"]
    content = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    if len(content) > budget and isinstance(result, str):
        content = cut(content, budget=budget)
    elif len(content) > budget:
        content = fitting(result, budget=budget) or view(result, focus=focus_words(task), budget=budget)
    status = "success" if outcome["status"] == "ok" else "error"
    return ToolMessage(content, tool_call_id=call["id"], name=call["name"], status=status)


def request_of(proposal: Proposal, state: AttemptState, scope: NodeScope, toolkit: Toolkit) -> RungRequest:
    """The call with the state that it was answered in."""
    call = proposal["call"]
    return RungRequest(
        tool=toolkit[call["name"]],
        call=call,
        state=state["task_state"],
        facts=state.get("facts", {}),
        context=scope.context,
        where=Where(turn=state["turn"], attempt=state["number"]),
    )


def settle_race(proposal: Proposal, done: Sequence[Proposal], before: JsonObject, *, strict: bool) -> Outcome:
    """The outcome with the races it is in; under `strict` the later call of a race is refused."""
    outcome = proposal["outcome"]
    others = [(each["call"], each["outcome"]["patch"] or []) for each in done]
    races = race_of(others, outcome["patch"] or [], state=before)
    if not races:
        return outcome
    if strict:
        return refuse(outcome, f"it changes what another call of the same message changes: {'; '.join(races)}")
    return {**outcome, "race": races}


def complete(
    state: AttemptState, scope: NodeScope, toolkit: Toolkit
) -> Generator[list[Ask], list[Reply], list[Proposal]]:
    """The proposals, with the model's patch where a successful write came without one; one repair round.

    A write whose change nobody could say becomes an error: its result would promise what the state does not hold.
    """
    proposals = list(state["proposals"])
    if not scope.has_model("state_updater"):
        return proposals
    problems = {index: "" for index, proposal in enumerate(proposals) if wants_patch(proposal, toolkit)}
    number = state.get("asked", {}).get("state_updater", 0)
    for _ in range(2):
        if not problems:
            break
        asks = [ask_change(state, proposals[index], toolkit, scope, problem=told) for index, told in problems.items()]
        replies = yield [numbered(ask, number + index) for index, ask in enumerate(asks)]
        number += len(asks)
        for index, reply in zip(list(problems), replies, strict=True):
            outcome, problems[index] = filled(proposals[index]["outcome"], reply, state["task_state"])
            proposals[index] = {**proposals[index], "outcome": outcome}
        problems = {index: problem for index, problem in problems.items() if problem}
    for index, problem in problems.items():
        proposals[index] = {**proposals[index], "outcome": refuse(proposals[index]["outcome"], problem)}
    return proposals


def numbered(ask: Ask, number: int) -> Ask:
    """The ask with its number: how many times the role was asked before."""
    return replace(ask, where=replace(ask.where, question=number))


def wants_patch(proposal: Proposal, toolkit: Toolkit) -> bool:
    """True for a successful write of which no rung said what it changes."""
    outcome = proposal["outcome"]
    return outcome["patch"] is None and outcome["status"] == "ok" and not toolkit[proposal["call"]["name"]].reads


def ask_change(state: AttemptState, proposal: Proposal, toolkit: Toolkit, scope: NodeScope, *, problem: str) -> Ask:
    """The request what a call has changed."""
    call, tool = proposal["call"], toolkit[proposal["call"]["name"]]
    focus = focus_words(call["name"], call["args"], proposal["outcome"]["result"])
    return Ask(
        role="state_updater",
        variables={
            "tool": tell_json({"name": tool.name, "description": tool.description}, budget=TOOL_CHARS),
            "call": tell_json({"name": call["name"], "args": call["args"]}, budget=VALUE_CHARS),
            "result": tell_json(proposal["outcome"]["result"], budget=VALUE_CHARS),
            "state": view(state["task_state"], focus=focus, budget=scope.context.view_chars),
            "problems": cut(problem, budget=PROBLEM_CHARS),
        },
        reply=StateChange,
        where=Where(turn=state["turn"], attempt=state["number"]),
    )


def filled(outcome: Outcome, reply: Reply, state: JsonObject) -> tuple[Outcome, str]:
    """The outcome with the patch of a reply, or as it was, with what is wrong; no reply cannot be repaired."""
    if not isinstance(reply.value, StateChange):
        return refuse(outcome, f"no model said what the call changes: {reply.failure}"), ""
    patch: Patch = [dict(operation) for operation in reply.value.patch]
    try:
        check_json(patch, what="the change")
        apply_patch(state, patch)
    except (PatchConflict, StateError) as conflict:
        return outcome, f"the model's change does not apply: {conflict}"
    return {**outcome, "patch": patch}, ""
