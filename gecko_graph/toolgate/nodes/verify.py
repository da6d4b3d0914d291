"""verify and accept: what a call came to, before and after the commit (ToolGate, equations 11 and 12).

The commit itself, with Q and the invariants, is `state_updater`'s: between the two.
"""

from __future__ import annotations

from typing import Any, cast

from ...models.formatting import format_complaint, format_json, text_of
from ...models.node import NodeScope
from ...schemas.complaints import find_faults
from ...state import Category, Outcome, Step
from ...tools import Toolkit
from ...values.finding import Found
from ...values.leaves import scalars_of
from ...world.channels import Proposal
from ...world.commit import category_of, refuse
from ...world.provenance import is_planned
from ...world.turn import stop
from ..channels import MOST_TRIES, ForwardState, Need, Rejection, close_need, explain


def verify(state: ForwardState, scope: NodeScope, *, toolkit: Toolkit) -> dict[str, Any]:
    """Refuse a result that is not well-formed, and leave an error without effects: only what is accepted commits.

    A precondition that depends on the arguments is a value without a source, or else a state that is not reached yet.
    """
    del scope
    return {"proposals": [{**each, "outcome": check(each, state, toolkit)} for each in state["proposals"]]}


def check(proposal: Proposal, state: ForwardState, toolkit: Toolkit) -> Outcome:
    """Return the outcome as it may be committed."""
    call, outcome = proposal["call"], proposal["outcome"]
    if outcome["status"] == "ok":
        schema = toolkit[call["name"]].result
        faults = find_faults(schema, outcome["result"]) if schema is not None else []
        reason = f"the result breaks its schema: {'; '.join(faults[:3])}"
        return refuse(outcome, reason, category_of(outcome["result"])) if faults else outcome
    kept = cast("Outcome", {key: value for key, value in outcome.items() if key != "observed"})
    error: Outcome = {**kept, "patch": []}
    return {**error, "category": category_of_refusal(proposal, state)} if outcome["rung"] == "contract" else error


def category_of_refusal(proposal: Proposal, state: ForwardState) -> Category:
    """Return whether a call that P refuses has values that neither request nor state nor results hold."""
    done = [step["outcome"]["result"] for step in state.get("steps", []) if is_planned(step)]
    sources = [state["task"], *map(text_of, state["conversation"]), *done, state["task_state"]]
    known, args = Found(sources), list(proposal["call"]["args"].values())
    values = [leaf for leaf in scalars_of(args, keys=True) if leaf is not None and not isinstance(leaf, bool)]
    return "state_dependency" if all(known.holds(each, "verbatim") for each in values) else "hallucinated_value"


def accept(state: ForwardState, scope: NodeScope) -> dict[str, Any]:
    """Close the need that the last call has met; else go on with other arguments, or with the next candidate.

    A result that was refused sets its tool aside at once, arguments only after several tries. Where no candidate is
    left, forward execution has failed.
    """
    del scope
    step, tries = state["steps"][-1], state["tries"]
    over = close_need(state)
    if is_planned(step):
        tools = [each["tool"] for each in state["ranked"]]
        before = tools[: tools.index(step["call"]["name"])]  # of what the state did not admit, only what came first
        tried = [each for each in state["rejections"] if "call" in each or each["tool"] in before]
        met: Need = {**over, "rejections": tried, "call": step["call"]["id"]}
        return {"needs": [met], "need": "", "candidates": [], "rejections": [], "tries": 0}
    rejections = [*state["rejections"], read_rejection(step, declined=tries >= MOST_TRIES)]
    if tries + 1 < MOST_TRIES and "refused" not in step.get("outcome", {}):
        return {"rejections": rejections, "tries": tries + 1}
    update = {"rejections": rejections, "candidates": state["candidates"][1:], "tries": 0}
    if update["candidates"]:
        return update
    lost: Need = {**over, "rejections": rejections}
    return {**update, "needs": [lost], **stop("no_candidate", explain(state["need"], rejections))}


def read_rejection(step: Step, *, declined: bool) -> Rejection:
    """Return why a call was not committed, with its category (table 3)."""
    call, outcome = step["call"], step.get("outcome")
    about: Rejection = {"tool": call["name"], "phase": "P", "reason": "", "call": call["id"]}
    if outcome is not None:
        about["phase"] = "Q" if "refused" in outcome or outcome["rung"] != "contract" else "P"
        about["reason"] = outcome.get("refused") or format_json(outcome["result"])
        return {**about, "category": outcome["category"]} if "category" in outcome else about
    about["reason"] = "; ".join(format_complaint(each) for each in step["complaints"])
    if declined:
        return about
    by_model = all(each["source"] == "model" for each in step["complaints"])
    return {**about, "category": "hallucinated_value" if by_model else "schema"}
