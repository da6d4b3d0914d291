"""Real reads beside a rehearsal's own changes: what they show of the task state, and whether they are stale.

`Reality` is the task state without what the attempt's simulated calls have changed. A read's contract or `simulate` is
asked twice, there and in the attempt's state. Where it says the same, the real result stands; where not, the difference
is laid over the real result. What cannot be decided so is marked `stale`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from types import GeneratorType
from typing import Any, TypeAlias

from ..errors import EvaluationFailed, PatchConflict
from ..models.ask import Reply, Work
from ..state import Json, JsonObject, Patch, Step
from ..values.difference import json_equal, make_patch
from ..values.patch import apply_patch, booked_patch, overlap, tokens
from .contract import contract_rung, gate, open_contract
from .python import python_rung
from .rung import Answer, Reality, RungRequest

DECIDING = ("contract", "python")
"""Rungs that know what a call changes: by the tool's contract, or by its `simulate` function."""

_RUNGS: dict[str, Callable[[RungRequest], Any]] = {"contract": contract_rung, "python": python_rung}


def reality_of(before: JsonObject, steps: Iterable[Step], is_read: Callable[[str], bool]) -> Reality | None:
    """Return what is known of reality; None where no simulated call of the attempt may have changed anything.

    `before` is the task state at the attempt's start, `is_read` says of a tool's name whether it only reads.
    """
    state, changed, is_whole = before, False, True
    for step in steps:
        outcome = step.get("outcome")
        if outcome is None:
            continue
        if not outcome["simulated"]:
            state = apply_patch(state, booked_patch(outcome))
        elif outcome["patch"]:
            changed = True
        elif outcome["status"] == "ok" and outcome["rung"] not in DECIDING and not is_read(step["call"]["name"]):
            changed, is_whole = True, False
    return Reality(state, is_whole) if changed else None


def observed_state(before: JsonObject, steps: Iterable[Step]) -> JsonObject:
    """Return the state at an attempt's start as its real reads have shown it."""
    for step in steps:
        try:
            before = apply_patch(before, step.get("outcome", {}).get("observed", []))
        except PatchConflict:  # a place that a real write of the turn has made: part of its change
            continue
    return before


Decided: TypeAlias = tuple[Answer, str] | None
"""What a rule says of a read, and the name of its rung; None where none decides."""


def decide(request: RungRequest) -> Generator[list[Work], list[Reply], Decided]:
    """Return what the tool's contract or `simulate` answers on the request's state, and which; None if neither can."""
    request, refusal = gate(replace(request, contract=None, unclear=()))
    if request.unclear:
        return None
    if refusal is not None:
        return refusal, "contract"
    for name in DECIDING:
        if name not in request.context.ladder:
            continue
        reply = _RUNGS[name](request)
        reply = (yield from reply) if isinstance(reply, GeneratorType) else reply
        if isinstance(reply, Answer):
            return None if "unclear" in reply.more else (reply, name)
    return None


def lay_over(real: Answer, without: Answer, shown: Answer) -> Answer | None:
    """Return a real answer with the attempt's own changes; None where they cannot be laid over it.

    Each change is laid where the real result holds what the tool says without it; in a list, if the whole list is so.
    """
    if "error" in (real.status, without.status, shown.status):
        return None
    patch = make_patch(without.result, shown.result)
    places = [tokens(operation["path"]) for operation in patch]
    anchors = [(_anchor(real.result, place), _anchor(without.result, place)) for place in places]
    if all(real_depth == depth and json_equal(there, known) for (real_depth, there), (depth, known) in anchors):
        return replace(real, result=apply_patch(real.result, patch))
    return None


def _anchor(value: Json, place: Sequence[str]) -> tuple[int, list[Json]]:
    """Return the first list on the way to a place, else what stands there, with its depth; empty where nothing does."""
    for depth, token in enumerate(place):
        if not isinstance(value, dict):
            return depth, [value]
        if token not in value:
            return depth, []
        value = value[token]
    return len(place), [value]


def observe(request: RungRequest, result: Json) -> Patch:
    """Return what a real result shows of the task state that it does not hold yet, by the contract's `observes`.

    Raises:
        EvaluationFailed: It cannot be evaluated on this state, or does not apply to it.
    """
    contract = request.tool.contract
    if contract is None or "observes" not in contract.data:
        return []
    return make_patch(request.state, apply_patch(request.state, open_contract(request, contract).observe(result)))


def mark(request: RungRequest, answer: Answer, *, stale: bool | None) -> Answer:
    """Return a real answer with what it shows of the task state, or the reason why that is not known, and its mark.

    What the attempt itself has changed is not overwritten: a result that shows it otherwise is stale. `stale` is
    whether it may not show these changes; None where only the observation can decide.
    """
    contract, reality = request.tool.contract, request.reality
    more: JsonObject = {}
    if answer.status == "ok" and contract is not None and "observes" in contract.data:
        try:
            found = observe(request, answer.result)
            if reality is not None and hides(found, reality.state, request.state):
                found, stale = [], True
            more = {"observed": found} if found else {}
            stale = bool(stale)
        except EvaluationFailed as failure:
            more = {"unclear": [*request.unclear, f"what it shows cannot be evaluated: {failure}"]}
    return replace(answer, more={**more, "stale": True} if stale is not False else more)


def hides(found: Patch, reality: JsonObject, state: JsonObject) -> bool:
    """Return whether an observation is about a place that the attempt itself has changed."""
    if overlap(make_patch(reality, state), found, document=state):
        return True
    try:
        apply_patch(reality, found)
    except PatchConflict:
        return True
    return False
