"""Book a real call on the task state (paper, step 5): expected result, changes, and the difference from reality."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..contracts.clauses import tell_rule
from ..contracts.words import describe_check
from ..models.ask import AnyAsk, FunctionCall, Reply
from ..models.formatting import format_json
from ..models.node import NodeScope, running_config
from ..schemas.complaints import find_faults
from ..schemas.specimens import is_identifier
from ..state import VERSION, Call, CallStatus, Json, JsonObject, Outcome, Patch, Step, Violation
from ..tools import Toolkit
from ..values.difference import json_equal, make_patch, net_changes
from ..values.digest import digest
from ..values.finding import atoms_of, forms_of, whole_form
from ..values.notes import note, notes_of, tell, warning, with_notes
from ..values.observation import Observation, Observer, kind_of, observe_step
from ..values.patch import apply_fitting, apply_patch, booked_patch, same_value, tokens
from ..values.places import as_text, map_scalars, places, pointer, pointer_tokens
from .by_document import keep_what_matters, take_effects
from .channels import AttemptState
from .commit import Commit, commit
from .followed import withdraw_unfollowed
from .ladder import check_result_schema, climb
from .model import ask_patch
from .records import Departure, Drift, ExecutedCall, PlannedCall, Prediction, unchanged
from .rung import DECIDING, Answer, RungRequest, gate, open_contract, request_of
from .rungs import forget, observe, observing
from .state_rules import StateRules

LOG = logging.getLogger(__name__)
REASON_CHARS = 1_000
SHORTEST = 4
"""Length from which equal values are hardly a coincidence; shorter ones must be identifiers by name or form."""
SPOT = r"(?<![^\W_])(?:{})(?![^\W_])"
MOST_DRIFTS = 20
"""Most places listed for one call."""


def book_call(
    state: AttemptState, scope: NodeScope, *, entry: ExecutedCall, predicted: Outcome | None, toolkit: Toolkit
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Book one real call on a world's state, and store in its entry how reality departed from the expectation."""
    request = request_of(entry["call"], state, scope, toolkit)
    planned: Any = {"predicted": predicted, "rehearse_after": False} if predicted else None
    outcome, departure = yield from booked(request, entry, planned, scope, toolkit)
    if departure:
        entry["departure"] = departure
    return {"steps": [{"v": VERSION, "call": entry["call"], "outcome": outcome}], "task_state": booked_patch(outcome)}


def observe_call(observer: Observer, toolkit: Toolkit, step: Step, done: Sequence[Step], **more: Any) -> FunctionCall:
    """Return an ask that records a step that was really made, after the steps `done`; see `observe_step`.

    The row is built inside the ask, so that no call fails if it cannot be built.
    """
    source = thread_mark()

    def make() -> Observation:
        tool = toolkit[step["call"]["name"]]
        about = (tool.source.document if tool.source else {}).get("info", {})
        versions = {"api": str(about["version"])} if isinstance(about, dict) and "version" in about else {}
        known: Any = {
            "reads": toolkit.is_read,
            "taught": tool.has_learned_answers,
            "versions": versions,
            "source": source,
        }
        lessons = tool.lessons.of(step["call"]["args"]) if tool.lessons else []
        return observe_step(step, done, lessons=lessons, **known, **more)

    return FunctionCall(function=observer, args=(make,))


def thread_mark() -> str:
    """Return a digest that distinguishes this thread's rows without naming it; "" outside of a graph."""
    thread_id = running_config().get("configurable", {}).get("thread_id")
    return f"thread {digest(thread_id)[:12]}" if thread_id else ""


def _expect(
    request: RungRequest, prediction: Prediction | None
) -> Generator[Sequence[AnyAsk], list[Reply], tuple[Outcome, Collection[str] | None]]:
    """Return a call's expected outcome, and JSON Pointers to values of the result that a contract made up.

    Contract and `simulate` are asked again, with the real arguments and state, and the real result for the parts that
    they leave open; if neither answers, the rehearsal's prediction is the expectation. The pointers are None if they
    are unknown. Values that differ under another seed were made up.
    """
    contract = request.tool.contract
    ladder = DECIDING if contract and contract.answers else (*DECIDING, "derived")
    update = {"ladder": ladder, "unclear": "pass", "gate": "note"}  # the call was made in spite of unclear conditions
    deciding = request.context.model_copy(update=update)
    outcome = yield from climb(replace(request, context=deciding))
    if outcome["rung"] == "contract":
        other = yield from climb(replace(request, context=deciding.model_copy(update={"seed": deciding.seed + 1})))
        return outcome, {path for path, *_ in _differing(outcome["result"], other["result"])}
    if outcome["rung"] != "none" or prediction is None or prediction["rung"] == "derived":
        return outcome, None
    predicted = unchanged(prediction["status"], prediction["result"], prediction["rung"])
    return {**predicted, "patch": prediction["patch"]}, None


def booked(
    request: RungRequest, entry: ExecutedCall, planned: PlannedCall | None, scope: NodeScope, toolkit: Toolkit
) -> Generator[list[AnyAsk], list[Reply], tuple[Outcome, Departure | None]]:
    """Return the real outcome with its changes, and its departure from the plan; its drift is stored in the entry.

    Learned rules that the call contradicts are disabled; lessons on the tool are kept.
    """
    if refuted := withdraw_refuted(request, entry):
        entry["refuted"] = refuted
    withdraw_unfollowed(request, entry, toolkit)
    outcome, departure = yield from _book(request, entry, planned, scope, toolkit)
    lessons = request.tool.lessons
    if lessons and entry.get("by") != "person" and "undecided" not in outcome:
        checks = _tried_rules(request, outcome)
        tried = {"confirmed": checks} if outcome["status"] == "error" else {"refuted": [*refuted, *checks]}
        warned = (planned, planned["predicted"]) if planned else ()
        notes = [each for one in warned for each in notes_of(one, "may_refuse")]
        lessons.note(entry["call"], outcome, notes=notes, drift=entry["drift"], **tried)
        lessons.settle(request.tool.contract, may_refuse=not request.tool.reads)
    return outcome, departure


def _tried_rules(request: RungRequest, outcome: Outcome) -> list[str]:
    """Return the learned rules that warned of a call and that its success, or a refusal of their kind, decides on."""
    if request.tool.contract is None or not request.tool.is_learned:
        return []
    run, args = open_contract(request), request.call["args"]
    run.refusal()
    kind, is_tried = kind_of(outcome["result"], args), outcome["status"] == "ok"
    alike = (each for each in run.warned if kind and kind_of(each["error"], args).endswith(kind))
    told = [each for each in run.warned if each["evidence"].get("by") == "document"]  # their wording is unknown
    return list(dict.fromkeys(str(each["evidence"]["check"]) for each in (run.warned if is_tried else [*alike, *told])))


def _book(
    request: RungRequest, entry: ExecutedCall, planned: PlannedCall | None, scope: NodeScope, toolkit: Toolkit
) -> Generator[list[AnyAsk], list[Reply], tuple[Outcome, Departure | None]]:
    word: CallStatus = "ok" if entry["status"] == "ok" else "error"
    made, is_ok = replace(request, made=Answer(word, entry.get("result"), [])), word == "ok"
    expected, made_up = yield from _expect(made, planned["predicted"] if planned else None)  # type: ignore[misc]
    decided, is_learned = expected["rung"] in DECIDING, any("evidence" in one for one in expected.get("violations", ()))
    effects, is_told = None if decided else take_effects(made), expected["rung"] == "derived" or is_learned
    if is_told or expected["rung"] == "none":  # unwritten rules predict success or failure only
        word = expected["status"] if is_told else word
        expected = {**expected, "status": word, "patch": [], "result": entry.get("result")}
    real = real_values(entry["call"], expected["result"], entry.get("result"), made_up=made_up or ())
    patch = with_real_values(expected["patch"] or [], expected["result"], real)
    outcome = unchanged("ok" if is_ok else "error", entry.get("result"), "real", simulated=False)
    outcome["patch"] = patch if is_ok and expected["status"] == "ok" else []
    request, _ = gate(request)
    outcome = _note_marks(request, outcome, entry, _find_unknown(request, expected) if is_ok else [])
    unforeseeable = real if made_up is None else {path: each for path, each in real.items() if path in made_up}
    entry["drift"] = find_drift(entry["call"], expected, outcome, unforeseeable, request.tool.result)
    is_foreseen = planned is not None and expected["status"] == "ok" and not entry["drift"]
    if is_ok and not (decided or effects or is_foreseen or request.tool.reads) and scope.has_model("state_updater"):
        answered = yield from ask_patch(request, {**outcome, "patch": None})  # type: ignore[misc]
        if answered["status"] == "ok":
            outcome["patch"] = answered["patch"]
            entry["drift"] += _changed(request, patch, answered["patch"] or []) if planned else []
    if outcome["patch"] and (not decided or request.tool.has_learned_answers):
        outcome["supposed"] = True
    if is_ok:
        entry["drift"] += _see(request, outcome, toolkit, None if decided else effects or ())
    done = commit(request, outcome)
    if notes_of(done.outcome, "refused") and apply_fitting(request.state, outcome["patch"] or []) is request.state:
        outcome["patch"] = []  # it conflicts; broken conditions do not matter, since it really happened
    after = apply_patch(request.state, booked_patch(outcome))
    broken = StateRules.of(toolkit).violations(request.state, after)
    if broken:
        outcome["violations"] = broken
    return outcome, _departure_of(entry, planned, done, broken)


def withdraw_refuted(request: RungRequest, entry: ExecutedCall) -> list[str]:
    """Disable the learned rules that would have refused a call that succeeded, and return them."""
    contract, is_tools = request.tool.contract, entry.get("by") != "person"
    if contract is None or not request.tool.is_learned or entry["status"] != "ok" or not is_tools:
        return []
    refusal = open_contract(request).refusal()
    checks = [str(each["evidence"]["check"]) for each in (refusal.violations if refusal else ()) if "evidence" in each]
    for check in checks:
        contract.withdraw(check)
        told = describe_check(check) or check
        LOG.warning("%s: a real call contradicts a learned rule, which refuses no more: %s", request.tool.name, told)
    return checks


def _see(request: RungRequest, outcome: Outcome, toolkit: Toolkit, effects: Sequence[JsonObject] | None) -> list[Drift]:
    """Add to the outcome the places of the state that a call revealed or made unknown; return the drift there.

    `effects` are the states after a write from `take_effects`, () if its changes are unknown; None if a contract knows
    them.
    """
    if (contract := observing(request)) and (request.tool.reads or contract.is_derived):
        outcome |= observe(request, outcome["result"])  # type: ignore[typeddict-item]
        found = _changed(request, [], outcome.get("observed", []))
        return keep_what_matters(request, found) if contract.is_derived else found
    if effects is None or request.tool.reads or outcome["patch"]:
        return []
    if seen := make_patch(request.state, effects[1] if effects else forget(request, toolkit), by_members=True):
        outcome["observed"] = seen
    return keep_what_matters(request, state_drift(*effects)) if effects else []


def _changed(request: RungRequest, expected: Patch, real: Patch) -> list[Drift]:
    return state_drift(apply_fitting(request.state, expected), apply_fitting(request.state, real))


def _find_unknown(request: RungRequest, expected: Outcome) -> list[str]:
    """Return the reasons why a written contract with effects does not know a call's changes."""
    contract = request.tool.contract
    if contract is None or "effects" not in contract.data or request.tool.has_learned_answers:
        return []
    passed = [each["reason"] for each in expected["passed"] if each["rung"] == "contract"]
    return [f"its changes are unknown: {reason}" for reason in passed if expected["rung"] == "none"]


def _note_marks(request: RungRequest, outcome: Outcome, entry: ExecutedCall, unknown: Sequence[str]) -> Outcome:
    """Return the outcome with notes `unclear` and `undocumented`; the entry gets them, and warnings of open rules."""
    problem = check_result_schema(request, Answer(outcome["status"], outcome["result"], []))
    notes = [note("unclear", each) for each in (*request.unclear, *unknown)]
    notes += [note("undocumented", problem)] if problem else []
    warned = request.contract.warned if request.contract and not request.tool.reads else ()
    if noted := [*notes, *(warning(tell_rule(each)) for each in warned)]:
        entry["notes"] = noted
    if entry["status"] == "error" and (entry.get("undecided") or entry.get("by") == "person"):
        outcome = {**outcome, "undecided": True}
    return with_notes(outcome, notes)


def _departure_of(
    entry: ExecutedCall, planned: PlannedCall | None, done: Commit, broken: list[Violation]
) -> Departure | None:
    """Return the departure of a real result from the plan, or None.

    A read that confirms the values on which later arguments depend is no departure.
    """
    if entry["status"] == "error":
        return {"code": "error", "message": format_json(entry.get("result"), budget=REASON_CHARS)}
    if undocumented := notes_of(entry, "undocumented"):
        return {"code": "schema", "message": tell(undocumented[0])}
    if refused := notes_of(done.outcome, "refused"):
        return {"code": "ensures", "message": tell(refused[0])}
    if broken:
        return {"code": "state", "message": broken[0]["error"]}
    if planned and planned["rehearse_after"] and not json_equal(entry.get("result"), planned["predicted"]["result"]):
        return {"code": "result", "message": "the result is not the one that later arguments were chosen from"}
    return None


def real_values(call: Call, predicted: Json, real: Json, *, made_up: Collection[str] = ()) -> dict[str, Json]:
    """Return the made-up values of a prediction: JSON Pointer in the result to the real value there.

    A value is made up if it could not be known before the call: a number, date or identifier not in its arguments.
    """
    known = {whole_form(str(value)) for _, value in places(call["args"]) if not isinstance(value, dict | list)}
    found: dict[str, Json] = {}
    for path, old, new in _differing(predicted, real):
        is_alike = type(old) is type(new) or (path in made_up and type(new) in (str, int))
        if (path in made_up or _is_specific(old, path)) and is_alike and whole_form(str(old)) not in known:
            found[path] = new
    return found


def with_real_values(patch: Patch, predicted: Json, real: Mapping[str, Json]) -> Patch:
    """Return the predicted patch with made-up values replaced by the real ones."""
    values = dict(places(predicted))
    pairs: dict[Any, Json] = {}
    for path, new in real.items():
        pairs[values[path]] = new if pairs.get(values[path], new) == new else values[path]
    return [_with_pairs(operation, pairs) for operation in patch]


def in_reality(text: str, results: Iterable[tuple[Json, Json]]) -> str | None:
    """Return a text about predicted results, rewritten with the real values; `results` are pairs of both.

    None if no rule decides: two real values for one, none, or a predicted value in another notation.
    """
    values: dict[str, set[str]] = {}
    for _, old, new in (each for pair in results for each in _differing(*pair)):
        if old not in (None, "") and not isinstance(old, bool | dict | list):
            values.setdefault(as_text(old), set()).add("" if isinstance(new, dict | list | None) else as_text(new))
    if not values:
        return text
    spots = re.compile(SPOT.format("|".join(map(re.escape, sorted(values, key=len, reverse=True)))))
    said, left = set(spots.findall(text)), set(forms_of(spots.sub(" ", text)))
    is_known = all(len(values[each]) == 1 and "" not in values[each] for each in said)
    others = (atom.wholes for each in values for atom in atoms_of(each) if atom.is_specific)
    return spots.sub(lambda at: min(values[at[0]]), text) if is_known and all(map(left.isdisjoint, others)) else None


def find_drift(
    call: Call, predicted: Outcome, outcome: Outcome, real: Mapping[str, Json], schema: JsonObject | None
) -> list[Drift]:
    if predicted["status"] != outcome["status"]:
        return [{"kind": "status", "path": "", "predicted": predicted["status"], "real": outcome["status"]}]
    found: list[Drift] = []
    if outcome["status"] == "ok" and schema is not None:
        faults = find_faults(schema, outcome["result"])
        found += [{"kind": "schema", "path": "", "predicted": None, "real": fault} for fault in faults[:3]]
    for path, old, new in _differing(predicted["result"], outcome["result"]):
        if path not in real:
            found.append({"kind": "value", "path": path, "predicted": old, "real": new})
            if outcome["status"] == "ok":
                found += _booked_places(outcome["patch"] or [], path, old, new)
    return found[:MOST_DRIFTS]


def _booked_places(patch: Patch, at: str, old: Json, new: Json) -> Iterator[Drift]:
    """Yield the places of the state at which a change has a predicted value that the real result contradicts."""
    for operation in patch:
        where = tokens(operation["path"])
        if isinstance(old, str) and old in where and _is_specific(old, at):  # a key that was made up
            yield {"kind": "state", "path": pointer(where[: where.index(old) + 1]), "predicted": old, "real": new}
            continue
        for path, value in places(operation.get("value")):
            place = [*where, *pointer_tokens(path)]
            if place[-1:] == pointer_tokens(at)[-1:] and new is not None and type(value) is type(old) and value == old:
                yield {"kind": "state", "path": pointer(place), "predicted": old, "real": new}


def state_drift(expected: JsonObject, real: JsonObject) -> list[Drift]:
    """Return the places where the task state differs from the expectation: changed or removed, not added."""
    return [
        {"kind": "state", "path": each.path, "predicted": each.old, "real": each.new}
        for each in net_changes(expected, real)[:MOST_DRIFTS]
        if each.kind != "add"
    ]


def _differing(predicted: Json, real: Json, here: str = "") -> Iterator[tuple[str, Json, Json]]:
    """Yield the places where two results differ, with both values; None for a missing one."""
    old, new = dict(places(predicted, here)), dict(places(real, here))
    for path in dict.fromkeys([*old, *new]):
        one, other = old.get(path), new.get(path)
        both = isinstance(one, dict | list) and type(one) is type(other)
        if not both and not (same_value(one, other) and (path in old) == (path in new)):
            yield path, one, other


def _is_specific(value: Json, path: str = "") -> bool:
    """Return whether equality identifies a value: it is not an ordinary word, or its name is that of an identifier."""
    is_named = any(is_identifier(str(token)) for token in pointer_tokens(path)[-1:])
    is_long = isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) >= SHORTEST
    return is_long and (is_named or any(atom.is_specific for atom in atoms_of(value)))


def _with_pairs(operation: Mapping[str, Any], pairs: Mapping[Any, Json]) -> JsonObject:
    """Return an operation with values replaced, also as keys in its path and value."""

    def change(each: Json) -> Json:
        return pairs.get(each, each) if isinstance(each, str | int) and not isinstance(each, bool) else each

    names = {str(old): str(new) for old, new in pairs.items()}
    moved = {**operation, "path": pointer([names.get(token, token) for token in tokens(operation["path"])])}
    return moved | {key: map_scalars(operation[key], change, keys=True) for key in ("value",) if key in operation}
