"""The rung `derived`: what follows from a document alone answers a simulated call, and refuses no real one."""

from __future__ import annotations

from ..contracts.run import ContractRun
from ..errors import EvaluationFailed
from ..state import RUNTIME, Outcome, Patch
from ..values.difference import make_patch
from .rung import DECIDING, Answer, Pass, RungRequest, RungResult, open_contract, standing
from .shown import find_partly_known, note_shown

ASSUMING = ("create", "upsert", "remove", "remove all", "update one", "remove one")
"""Kinds of calls for which a thing counts as there of which nothing is known."""


def derived_rung(request: RungRequest) -> RungResult:
    """Return what follows from the document alone, with its blanks; pass if nothing has shown what that needs."""
    derived = request.tool.derived
    if derived is None:
        return Pass("nothing was derived of the tool")
    has_model = request.has_simulator and "model" in request.context.ladder
    if derived.kind == "action" and has_model:
        return Pass("a model knows more of what it does")
    run = open_contract(request, derived.contract)
    if derived.kind in ASSUMING or (derived.kind in ("update", "replace") and not has_model):
        run.assume()
    if not request.has_simulator:
        run.trust(tuple)  # no model has made up a part of the state
    try:
        return _answer(request, run)
    except EvaluationFailed as failure:
        return Pass(f"what was derived does not tell: {failure}")


def _answer(request: RungRequest, run: ContractRun) -> RungResult:
    refusal = run.refusal()
    if refusal is not None:
        return Answer("error", refusal.error, [], more=standing(run, refusal))
    answer = None if run.unclear else run.answer_known()
    if answer is None or answer.holes:
        why = [*run.unclear, *(answer.holes.values() if answer else ())]
        return Pass(f"what was derived does not tell: {'; '.join(why)}")
    more = standing(run, answer)
    found = find_partly_known(request.state, run.found)
    patch = answer.patch
    if found:
        patch = make_patch(request.state, note_shown(request.state, patch, found), by_members=True)
    known = [one for one in patch if one["path"].startswith(f"/{RUNTIME}")]
    if known:
        more["observed"] = known
    return Answer("ok", answer.result, [one for one in patch if one not in known], more=more)


def with_opened(request: RungRequest, outcome: Outcome) -> Outcome:
    """Return an outcome with what a successful write of unknown effect leaves open, until it is read."""
    derived = request.tool.derived
    is_told = outcome["rung"] in (*DECIDING, "derived") or not outcome["simulated"]
    if derived is None or derived.kind != "action" or outcome["status"] == "error" or is_told:
        return outcome
    opened: Patch = []
    try:
        answer = open_contract(request, derived.contract).assume().answer_known()
        opened = answer.patch if answer else []
    except EvaluationFailed:  # the state has another shape
        return outcome
    return {**outcome, "observed": [*outcome.get("observed", []), *opened]} if opened else outcome
