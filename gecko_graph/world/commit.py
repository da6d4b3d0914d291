"""Whether an outcome may change the task state (ToolGate, section 3.4, equations 11 and 12). Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from ..errors import PatchConflict, StateError
from ..models.formatting import format_json
from ..state import Call, Category, Json, JsonObject, Outcome, Patch, SupposedFact, Violation
from ..values.digest import check_json
from ..values.patch import apply_patch, make_patch, overlap
from .contract import gate, open_contract, unchecked
from .facts import suppose
from .rung import Answer, RungRequest
from .state_rules import NO_RULES, StateRules


@dataclass(frozen=True, slots=True)
class Commit:
    """The state after a call, its outcome with the patch that was committed, and what is supposed from now on.

    A result that was refused leaves nothing behind (ToolGate, equation 12), so facts are made here.
    """

    state: JsonObject
    outcome: Outcome
    facts: dict[str, SupposedFact] = field(default_factory=dict)


def commit(
    request: RungRequest, outcome: Outcome, *, rules: StateRules = NO_RULES, later: RungRequest | None = None
) -> Commit:
    """Commit the outcome's patch, or refuse it whole with the reason.

    A read changes nothing. A result whose postcondition or whose state's invariant fails is not committed, and becomes
    an error with the reason. Where calls of the same message were committed since this one was answered, its conditions
    must hold in both states: in that of the answer and in that of the commit.

    Args:
        request: The call with the state that it was answered in.
        outcome: What a rung answered; a patch of None, of a write whose change nothing knows, changes nothing.
        rules: What must hold in every state.
        later: The call after those before it in its message, where these were committed since it was answered.
    """
    here = later or request
    state = here.state
    proposed = outcome["patch"] or []
    patch = [] if request.tool.reads else proposed
    try:
        check_json(patch, what="the change")
        after = apply_patch(state, patch)
        alone = after if state is request.state else apply_patch(request.state, patch)
        if not isinstance(after, dict):
            raise PatchConflict("the change replaces the task state with a value that is not an object")
    except (PatchConflict, StateError) as conflict:
        return Commit(state, refuse(outcome, f"the change does not apply: {conflict}", "state_update"))
    acts = patch or (outcome["status"] == "ok" and not request.tool.reads)
    if later and acts:
        outcome, late = gate_again(later, outcome)
        if late is not None:
            why = f"after the calls before it in its message: {format_json(late.result)}"
            return Commit(state, {**refuse(outcome, why, "state_dependency"), **late.more})  # type: ignore[typeddict-item]
    broken = violated_postconditions(request, outcome, alone)
    broken += violated_postconditions(later, outcome, after) if later and acts and not broken else []
    broken += rules.violations(state, after)
    if broken:
        category = category_of(outcome["result"]) if broken[0]["part"] == "ensures" else "state_update"
        return Commit(state, {**refuse(outcome, broken[0]["error"], category), "violations": broken})
    is_unknown = outcome["patch"] is None and outcome["status"] == "ok" and not request.tool.reads
    booked: Outcome = {**outcome, "patch": None if is_unknown else patch}
    if dropped := len(proposed) - len(patch):
        booked["refused"] = f"a read changes nothing: {dropped} operations were dropped"
    if outcome.get("observed"):
        after, booked = book_observed(after, booked, rules, shifted=make_patch(request.state, state))
    return Commit(after, booked, suppose(request, outcome))


def gate_again(later: RungRequest, outcome: Outcome) -> tuple[Outcome, Answer | None]:
    """Return the outcome with what cannot be evaluated after the calls before it, and the error of a broken condition.

    What the contract itself has answered is refused where it cannot be evaluated, as by its rung.
    """
    later, late = gate(later)
    if later.unclear:
        outcome = {**outcome, "unclear": list(dict.fromkeys([*outcome.get("unclear", []), *later.unclear]))}
        if late is None and outcome["rung"] == "contract" and later.context.unclear is None:
            late = unchecked(later.unclear)
    return outcome, late


def book_observed(
    state: JsonObject, outcome: Outcome, rules: StateRules, *, shifted: Patch
) -> tuple[JsonObject, Outcome]:
    """Return the state with what a real read has shown, and the outcome; the result stands, booked or not.

    Args:
        state: The state after the call.
        outcome: The read's outcome with `observed`.
        rules: What must hold in every state; what breaks one is not booked, and marked undocumented.
        shifted: What calls of the same message have changed since the read was answered; that is not overwritten.
    """
    rest = cast("Outcome", {key: value for key, value in outcome.items() if key != "observed"})
    if overlap(shifted, outcome["observed"], document=state):
        return state, {**rest, "stale": True}
    seen = apply_patch(state, outcome["observed"])
    if broken := rules.violations(state, seen):
        why = f"what it shows is not booked: {broken[0]['error']}"
        return state, {**rest, "undocumented": [*outcome.get("undocumented", []), why]}
    return seen, outcome


def refuse(outcome: Outcome, reason: str, category: Category) -> Outcome:
    """Return the outcome of a result that is not committed: an error, and no change."""
    kept = cast("Outcome", {key: value for key, value in outcome.items() if key != "observed"})
    refused: Outcome = {**kept, "status": "error", "result": f"not done: {reason}", "patch": [], "refused": reason}
    return {**refused, "category": category}


def category_of(result: Json) -> Category:
    """Return the category of a refused result (ToolGate, table 3): without content, or with a wrong one."""
    return "semantic" if result or (result in (0, False) and result != []) else "empty"


def violated_postconditions(request: RungRequest, outcome: Outcome, after: JsonObject) -> list[Violation]:
    """Return the postconditions that a successful result breaks; one that cannot be evaluated counts as broken."""
    contract = request.tool.contract
    if outcome["status"] == "error" or contract is None or not contract.data.get("ensures"):
        return []
    return open_contract(request, contract).violations(outcome["result"], after)


def race_of(others: Sequence[tuple[Call, Patch]], patch: Patch, *, state: JsonObject) -> list[str]:
    """Return the calls of the same planner message whose changes overlap with a patch, with the places, in words.

    `others` are the calls before, each with the change that was committed for it; all were answered in `state`.
    """
    races = []
    for other, change in others:
        try:
            places = overlap(change, patch, document=state)
        except PatchConflict:  # not a valid patch: `commit` refuses it
            return []
        if places:
            races.append(f"{other['name']} ({other['id']}) at {', '.join(places[:3])}")
    return races
