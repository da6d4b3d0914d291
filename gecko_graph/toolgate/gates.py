"""Refusals by the gates P and Q: which tools and calls they exclude, and what the reasoner is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from langchain_core.messages import HumanMessage

from ..models.formatting import cut, format_call, format_complaint, format_json, join_lines, one_line
from ..schemas.complaints import find_faults
from ..state import VERSION, Call, Category, Outcome, Step
from ..tools import Toolkit
from ..values.notes import notes_of, tell
from ..values.places import as_text, clock
from ..world.channels import Proposal
from ..world.commit import category_of, is_void
from ..world.provenance import is_planned, trace_with
from ..world.records import unchanged
from ..world.refusals import is_same_call
from ..world.rung import answered_calls, refuse
from ..world.turn import stop
from .channels import ForwardState, GateRejection, Need

REASON_CHARS = 300
CLEARED: Mapping[str, Any] = {"need": "", "candidates": [], "rejections": [], "tries": 0}
"""The update that clears the current need."""
OUT = "its result was refused before"
OTHERS = "other arguments: the result of this very call was refused"


def check(proposal: Proposal, state: ForwardState, toolkit: Toolkit) -> Outcome:
    """Return the outcome with a malformed result, or a read's empty result, refused (ToolGate, D.2).

    The outcome of an error loses its changes.
    """
    call, outcome = proposal["call"], proposal["outcome"]
    tool, result = toolkit[call["name"]], outcome["result"]
    if outcome["status"] == "ok":
        faults = find_faults(tool.result, result) if tool.result is not None else []
        if faults:
            return refuse(outcome, f"the result breaks its schema: {'; '.join(faults[:3])}", category_of(result))
        if tool.reads and is_void(result):
            return refuse(outcome, f"{format_call(call)} found nothing: {format_json(result)}", "empty")
        return outcome
    kept = cast("Outcome", {key: value for key, value in outcome.items() if key != "observed"})
    error: Outcome = {**kept, "patch": []}
    return (
        {**error, "category": category_of_refusal(proposal, state, toolkit)} if outcome["rung"] == "contract" else error
    )


def category_of_refusal(proposal: Proposal, state: ForwardState, toolkit: Toolkit) -> Category:
    """Return the category of P's refusal: by a written policy, for values without a known source, or by the state.

    A refusal by the state alone, whatever the arguments are, does not blame the arguments.
    """
    call, broken = proposal["call"], proposal["outcome"].get("violations", [])[:1]
    if any(each["kind"] == "policy" for each in broken):
        return "policy"
    tool, now = toolkit[call["name"]], clock(state["task_state"])
    if tool.contract is not None and tool.contract.is_gated:
        found = tool.contract.admissible(state["task_state"], now=now, calls=answered_calls(state.get("steps", [])))
        if found.word == "no" and any(as_text(each["error"]) == found.reason for each in broken):
            return "state_dependency"
    step: Step = {"v": VERSION, "call": call, "outcome": unchanged("ok", None, "contract")}
    known = [*state["conversation"], HumanMessage(state["task"])]
    traced = trace_with(toolkit, [*state.get("steps", []), step], conversation=known, state=state["task_state"])
    blamed = [each for each in notes_of(traced.notes, "made_up") if each["data"]["call"] == call["id"]]
    return "hallucinated_value" if blamed else "state_dependency"


def phase_of(outcome: Outcome) -> Literal["P", "Q"]:
    """Return the gate that refused a call with an error: P if the contract answered, else Q."""
    return "Q" if notes_of(outcome, "refused") or outcome["rung"] != "contract" else "P"


def find_out(steps: Iterable[Step]) -> set[str]:
    """Return the tools of which Q has refused a result: T_failed (ToolGate, algorithm 1, lines 1, 10 and 21)."""
    return {step["call"]["name"] for step in steps if _is_failed(step)}


def _is_failed(step: Step) -> bool:
    return "outcome" in step and step["outcome"]["status"] == "error" and phase_of(step["outcome"]) == "Q"


def is_refused_again(call: Call, steps: Sequence[Step]) -> bool:
    """Return whether Q has refused the result of this call since the last change of the task state."""
    for step in reversed(steps):
        if is_planned(step) and step["outcome"]["patch"] != []:
            return False
        if _is_failed(step) and notes_of(step["outcome"], "refused") and is_same_call(step["call"], call):
            return True
    return False


def complain(call: Call, why: str = "") -> Step:
    """Return the step of a call that Q has refused before, or of a model that made no call and says `why`."""
    expected, got, source = ("a call for the need", why, "model") if why else (OTHERS, format_call(call), "rule")
    got = cut(one_line(got), budget=REASON_CHARS)
    complaint: Any = {"tool": call["name"], "path": "", "expected": expected, "got": got, "source": source}
    return {"v": VERSION, "call": call, "complaints": [complaint]}


def read_rejection(step: Step, *, declined: bool, hands_empty: bool) -> GateRejection:
    """Return why a call was not committed, with its category (table 3).

    With `hands_empty` the reasoner is told of an empty result.
    """
    call, outcome = step["call"], step.get("outcome")
    about: GateRejection = {"tool": call["name"], "phase": "P", "reason": "", "call": call["id"]}
    if outcome is not None:
        about["phase"] = phase_of(outcome)
        refused = notes_of(outcome, "refused")
        about["reason"] = tell(refused[0]) if refused else format_json(outcome["result"])
        if hands_empty and outcome.get("category") == "empty":
            about["told"] = True
        return {**about, "category": outcome["category"]} if "category" in outcome else about
    if declined:
        return {**about, "reason": step["complaints"][0]["got"], "told": True}
    about["reason"] = "; ".join(format_complaint(each) for each in step["complaints"])
    if step["complaints"][0]["expected"] == OTHERS:
        return {**about, "phase": "Q"}
    by_model = all(each["source"] == "model" for each in step["complaints"])
    return {**about, "category": "hallucinated_value" if by_model else "schema"}


def close_need(state: ForwardState) -> Need:
    return {"need": state["need"], "candidates": state["ranked"], "rejections": state["rejections"]}


def give_up(state: ForwardState) -> dict[str, Any]:
    """Return the update if no tool is left for a need: forward execution has failed (algorithm 1, line 25).

    It continues if the reasoner is told something: why a model made no call, or that a read found nothing.
    """
    over = close_need(state)
    if any("told" in each for each in over["rejections"]):
        return {"needs": [over], **CLEARED}
    why = "; ".join(f"{each['tool']}: {each['reason']}" for each in over["rejections"][:3])
    message = f"no tool can meet the need: {over['need']}" + (f" ({why})" if why else "")
    return {"needs": [over], **stop("no_candidate", message)}


def format_undone(needs: Iterable[Need], *, budget: int) -> str:
    """Return the unmet needs, each with what the reasoner is told about it."""
    lines = (
        f"{one_line(need['need'])}: {'; '.join(each['reason'] for each in need['rejections'] if 'told' in each)}"
        for need in needs
        if "call" not in need
    )
    return join_lines(lines, budget=budget)
