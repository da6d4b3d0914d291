"""The rung `derived`: answer simulated calls by a contract derived from a document alone; it refuses no real call.

For a real call it predicts success and the sent members, but no members that the service fills. Real results are known
from then on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..contracts.run import ContractAnswer, ContractRun
from ..errors import EvaluationFailed, PatchConflict
from ..state import RUNTIME, Json, JsonObject, Outcome, Patch
from ..values.difference import make_patch
from ..values.digest import clone
from ..values.patch import apply_patch, find, tokens
from ..values.places import pointer, scalars, scalars_of
from .records import Drift
from .rung import DECIDING, Answer, Pass, RungRequest, RungResult, evidence_mark, open_contract
from .shown import close_read, find_partly_known, note_shown

ASSUMING = ("create", "upsert", "remove", "remove all", "update one", "remove one")
"""Kinds of calls for which an unknown thing is assumed to exist."""

_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")


def derived_rung(request: RungRequest) -> RungResult:
    """Return the answer by the document alone, with its blanks; pass if it needs a value that no read has shown."""
    derived, made = request.tool.derived, request.made
    if derived is None:
        return Pass("nothing was derived of the tool")
    has_model = request.has_simulator and "model" in request.context.ladder
    if derived.kind == "action" and (has_model or made):
        return Pass("a model, or the service itself, knows more of what it does")
    run = open_contract(request, derived.following(request.tool.contract))
    is_assumed = derived.kind in ASSUMING or (derived.kind in ("update", "replace") and not has_model)
    if made.status == "ok" if made else is_assumed:
        run.assume()
    if not request.has_simulator:
        run.trust(tuple)  # no part of the state is made up by a model
    if derived.kind in ("list", "count") and not (made or has_model):
        run.list_parts()  # else a list that the schema makes up lacks what was made before
    try:
        return _answer(request, run)
    except EvaluationFailed as failure:
        return Pass(f"what was derived does not tell: {failure}")


def _answer(request: RungRequest, run: ContractRun) -> RungResult:
    rules = request.tool.contract
    refusal = run.refusal(without=rules.refuted if rules else ())
    if refusal is not None:
        return Answer("error", refusal.error, [], more=evidence_mark(run, refusal))
    answer = None if run.unclear else run.answer_known()
    if answer is None or answer.holes:
        why = [*run.unclear, *(answer.holes.values() if answer else ())]
        return Pass(f"what was derived does not tell: {'; '.join(why)}")
    if rules and (filled := rules.data.get("evidence", {}).get("filled")):
        answer = _fill(answer, filled)
    more = evidence_mark(run, answer)
    found = find_partly_known(request.state, run.found)
    patch = answer.patch
    if found:
        patch = make_patch(request.state, note_shown(request.state, patch, found), by_members=True)
    known = [one for one in patch if one["path"].startswith(f"/{RUNTIME}")]
    if known:
        more["observed"] = known
    return Answer("ok", answer.result, [one for one in patch if one not in known], more=more)


def place_of(path: str) -> str:
    """Return the place of a JSON Pointer in a result, with `*` for list indexes."""
    return "/".join("*" if token.isdecimal() else token for token in path.split("/"))


def _fill(answer: ContractAnswer, filled: Mapping[str, JsonObject]) -> ContractAnswer:
    """Return an answer whose blanks are filled as real calls have shown; they remain blanks.

    Counters are increased in the state, too; other values that the service changes are in doubt.
    """
    result, patch, blanks = clone([answer.result, answer.patch, dict(answer.blanks)])
    for at, old in [*scalars(result)]:
        path, one = pointer(at), filled.get(place_of(pointer(at)))
        if one and (path in blanks or one["by"] != "value"):
            counts = one["by"] == "counts" and type(old) is int
            new = one["value"] if path in blanks else old + 1 if counts else old
            for each in (
                find(result, [*map(str, at[:-1])]),
                *((each.get("value") for each in patch) if counts else ()),
            ):
                if isinstance(each, dict):
                    each[str(at[-1])] = new
            blanks[path] = "the service fills it"
    return answer._replace(result=result, patch=patch, blanks=blanks)


def take_effects(request: RungRequest) -> tuple[JsonObject, JsonObject] | None:
    """Return the states after a call that was really done: by its document, and by its result.

    A new thing has its real key, and is not assumed to be empty. None if no document describes the effect.
    """
    derived, made = request.tool.derived, request.made
    shows = derived.data["evidence"] if derived and derived.kind != "action" else {}
    if derived is None or "depth" not in shows or made is None or made.status == "error" or request.tool.reads:
        return None
    is_new = derived.kind == "create"
    try:
        key = {"id": find(made.result, shows["key"])} if is_new and "key" in shows else {}
        run = open_contract(request, derived.following(request.tool.contract)).assume(**key)
        answer = run.answer_known()
        patch = answer.patch if answer else []
        place = next((one["path"] for one in patch if len(tokens(one["path"])) == shows["depth"]), "")
        if is_new and not key and tokens(place)[-1:] not in [[str(each)] for each in scalars_of(request.call["args"])]:
            return None  # its key was made up
        patch = [one for one in patch if not is_new or f"{place}/".startswith(f"{one['path']}/")]
        state = note_shown(request.state, patch, find_partly_known(request.state, run.found))
        thing: Any = find(made.result, shows["thing"]) if "thing" in shows and place else None
        if not isinstance(thing, dict):
            return state, state
        known: Any = find(state, tokens(place))
        seen: Patch = [{"op": "replace", "path": place, "value": {**known, **thing}}]
        return state, close_read(apply_patch(state, seen), seen)
    except (EvaluationFailed, PatchConflict):
        return None


def keep_what_matters(request: RungRequest, found: Sequence[Drift]) -> list[Drift]:
    """Return drift without values that the service fills or changes: only removed things, and values that were sent."""
    if not (found := [one for one in found if not one["path"].startswith(f"/{RUNTIME}/")]):
        return []
    depth = request.tool.derived.data["evidence"].get("depth") if request.tool.derived else None
    calls = [request.call, *(step["call"] for step in request.steps)]
    sent = {repr(each) for call in calls for each in scalars_of(call["args"])}
    gone = [one for one in found if one["real"] is None and len(tokens(one["path"])) == depth]
    other = (one for one in found if one["real"] is not None and not is_time(one["predicted"], one["real"]))
    return [*gone, *(one for one in other if not sent.isdisjoint(map(repr, scalars_of(one["predicted"]))))]


def is_time(*values: Json) -> bool:
    return all(isinstance(each, str) and _TIME.fullmatch(each) for each in values)


def with_opened(request: RungRequest, outcome: Outcome) -> Outcome:
    """Return a successful write's outcome; if its effect is unknown, the places it may change are open until read."""
    derived = request.tool.derived
    is_told = outcome["rung"] in (*DECIDING, "derived") or not outcome["simulated"]
    if derived is None or derived.kind != "action" or outcome["status"] == "error" or is_told:
        return outcome
    opened: Patch = []
    try:
        answer = open_contract(request, derived.contract).assume().answer_known()
        opened = [one for one in answer.patch if one["path"].startswith(f"/{RUNTIME}")] if answer else []
    except EvaluationFailed:  # the state has another shape
        return outcome
    return {**outcome, "observed": [*outcome.get("observed", []), *opened]} if opened else outcome
