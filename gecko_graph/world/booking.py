"""A real call on the task state: what was expected of it, what it changed, and how it left the plan (paper, step 5)."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import replace
from typing import Any

from ..errors import EvaluationFailed
from ..models.ask import AnyAsk, Reply
from ..models.formatting import format_json
from ..models.node import NodeScope
from ..state import VERSION, Outcome, Patch, Violation
from ..tools import Toolkit
from ..values.difference import json_equal
from ..values.patch import apply_fitting, apply_patch, booked_patch
from .ask_patch import ask_patch
from .channels import AttemptState
from .commit import Commit, commit
from .contract import gate
from .drift import differing, find_drift, real_values, state_drift, with_real_values
from .ladder import check_result_schema, climb
from .observed import DECIDING, observe
from .records import Departure, Drift, ExecutedCall, PlannedCall, Prediction
from .rung import Answer, RungRequest
from .state_rules import StateRules
from .turn import request_of

REASON_CHARS = 1_000


def book_call(
    state: AttemptState, scope: NodeScope, *, entry: ExecutedCall, predicted: Outcome | None, toolkit: Toolkit
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Book one real call on a world's state, and note in its entry how reality departed from what was expected."""
    request = request_of(entry["call"], state, scope, toolkit)
    planned: Any = {"predicted": predicted, "rehearse_after": False} if predicted else None
    outcome, departure = yield from booked(request, entry, planned, scope, toolkit)
    if departure:
        entry["departure"] = departure
    return {"steps": [{"v": VERSION, "call": entry["call"], "outcome": outcome}], "task_state": booked_patch(outcome)}


def expect(
    request: RungRequest, prediction: Prediction | None
) -> Generator[Sequence[AnyAsk], list[Reply], tuple[Outcome, Collection[str]]]:
    """Return what the call should come to, and the JSON paths in the result at which a contract made up a value.

    Contract and `simulate` are asked again, with the real arguments in the real state; where neither answers, the
    rehearsal's prediction is what was expected. What a contract makes up is another value under another seed.
    """
    deciding = request.context.model_copy(update={"ladder": DECIDING})
    outcome = yield from climb(replace(request, context=deciding))
    if outcome["rung"] == "contract":
        other = yield from climb(replace(request, context=deciding.model_copy(update={"seed": deciding.seed + 1})))
        return outcome, differing(outcome["result"], other["result"])
    if outcome["rung"] in DECIDING or prediction is None:
        return outcome, ()
    status, result, rung, patch = prediction["status"], prediction["result"], prediction["rung"], prediction["patch"]
    return {"status": status, "result": result, "patch": patch, "rung": rung, "simulated": True, "passed": []}, ()


def booked(
    request: RungRequest, entry: ExecutedCall, planned: PlannedCall | None, scope: NodeScope, toolkit: Toolkit
) -> Generator[list[AnyAsk], list[Reply], tuple[Outcome, Departure | None]]:
    """Return the real outcome with its change, and how it departs from the plan; its drift is noted in the entry."""
    expected, made_up = yield from expect(request, planned["predicted"] if planned else None)  # type: ignore[misc]
    decided = expected["rung"] in DECIDING
    if expected["rung"] == "none":  # nothing was expected
        expected = {**expected, "status": "ok" if entry["status"] == "ok" else "error", "result": entry.get("result")}
    real = real_values(entry["call"], expected["result"], entry.get("result"), made_up=made_up)
    patch = with_real_values(expected["patch"] or [], expected["result"], real)
    is_ok = entry["status"] == "ok"
    outcome: Outcome = {
        "status": "ok" if is_ok else "error",
        "result": entry.get("result"),
        "patch": patch if is_ok and expected["status"] == "ok" else [],
        "rung": "real",
        "simulated": False,
        "passed": [],
    }
    outcome = note_marks(request, outcome, entry)
    entry["drift"] = find_drift(entry["call"], expected, outcome, real, request.tool.result)
    is_foreseen = planned is not None and expected["status"] == "ok" and not entry["drift"]
    if is_ok and not (decided or is_foreseen or request.tool.reads) and scope.has_model("state_updater"):
        answered = yield from ask_patch(request, {**outcome, "patch": None})  # type: ignore[misc]
        if answered["status"] == "ok":
            outcome["patch"] = answered["patch"]
            entry["drift"] += changed(request, patch, answered["patch"] or []) if planned else []
    if outcome["patch"] and not decided:
        outcome["supposed"] = True
    if is_ok and request.tool.reads:
        outcome = note_observed(request, outcome)
        entry["drift"] += changed(request, [], outcome.get("observed", []))
    done = commit(request, outcome)
    if "refused" in done.outcome and apply_fitting(request.state, outcome["patch"] or []) is request.state:
        outcome["patch"] = []  # it conflicts; else it is booked, whatever condition it breaks: it really happened
    after = apply_patch(request.state, booked_patch(outcome))
    broken = StateRules.of(toolkit).violations(request.state, after)
    if broken:
        outcome["violations"] = broken
    return outcome, departure_of(entry, planned, done, broken)


def changed(request: RungRequest, expected: Patch, real: Patch) -> list[Drift]:
    """Return where a change leaves another task state than the expected change does."""
    return state_drift(apply_fitting(request.state, expected), apply_fitting(request.state, real))


def note_marks(request: RungRequest, outcome: Outcome, entry: ExecutedCall) -> Outcome:
    """Return the outcome with the preconditions that could not be evaluated, and what is undocumented; note both."""
    problem = check_result_schema(request, Answer(outcome["status"], outcome["result"], []))
    marks: Any = {"unclear": [*gate(request)[0].unclear], "undocumented": [problem] if problem else []}
    found: Any = {key: texts for key, texts in marks.items() if texts}
    entry.update(found)
    return {**outcome, **found}


def note_observed(request: RungRequest, outcome: Outcome) -> Outcome:
    """Return the outcome of a real read with what it shows of the task state, or why that is not known."""
    try:
        found = observe(request, outcome["result"])
    except EvaluationFailed as failure:
        why = f"what it shows cannot be evaluated: {failure}"
        return {**outcome, "unclear": [*outcome.get("unclear", []), why]}
    return {**outcome, "observed": found} if found else outcome


def departure_of(
    entry: ExecutedCall, planned: PlannedCall | None, done: Commit, broken: list[Violation]
) -> Departure | None:
    """Return how a real result left the plan; None where the plan can go on.

    A read that confirms what later arguments were chosen from leaves the plan as it was approved.
    """
    if entry["status"] == "error":
        return {"code": "error", "message": format_json(entry.get("result"), budget=REASON_CHARS)}
    if "undocumented" in entry:
        return {"code": "schema", "message": entry["undocumented"][0]}
    if "refused" in done.outcome:
        return {"code": "ensures", "message": done.outcome["refused"]}
    if broken:
        return {"code": "state", "message": broken[0]["error"]}
    if planned and planned["rehearse_after"] and not json_equal(entry.get("result"), planned["predicted"]["result"]):
        return {"code": "result", "message": "the result is not the one that later arguments were chosen from"}
    return None
