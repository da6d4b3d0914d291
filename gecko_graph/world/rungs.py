"""The rungs without a model: `real`, `contract`, `python`, `example`, `schema` (ToolGate, section 3.2; paper, A.4).

A real read does not show a rehearsal's own changes. So its contract or `simulate` is evaluated twice, in the attempt's
state and in `Reality`. If both agree, the real result is used; if not, their difference is applied to the real result.
If that is impossible, the result is marked `stale`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import replace
from types import GeneratorType
from typing import Any, cast

from langchain_core.messages import ToolMessage

from ..contracts.contract import Contract
from ..contracts.language.sandbox import OpenPart
from ..contracts.run import ContractAnswer, subtree
from ..errors import EvaluationFailed, NotKnown, PatchConflict, StateError
from ..models.ask import FunctionCall, Reply
from ..schemas.complaints import find_faults
from ..schemas.made_up import Impossible, make_value
from ..state import RUNTIME, Json, JsonObject, PassedRung, Patch
from ..tools import Toolkit
from ..tools.real import as_answer, as_json, run_real
from ..tools.spec import ToolSpec
from ..values.difference import json_equal, make_patch
from ..values.digest import check_json, clone, pack, unpack
from ..values.notes import STALE, note, notes_of, with_notes
from ..values.patch import apply_patch, overlap, tokens
from ..values.places import pointer
from .filled import NO_RESULT, fill_really
from .rung import (
    Answer,
    Pass,
    RungGenerator,
    RungRequest,
    RungResult,
    evidence_mark,
    gate,
    open_contract,
    runs_for_real,
    unchecked,
)
from .shown import close_read, find_partly_known, forget_shown, note_shown


def contract_rung(request: RungRequest) -> RungResult:
    """Return the contract's own answer; pass if it has neither effects nor a result.

    If a precondition or the answer could not be evaluated, the call is refused: its effects would be unguarded, and
    another rung would make up an answer.
    """
    run = request.contract
    if run is None:
        return Pass("the tool has no contract")
    try:
        answer = run.answer_known()
    except NotKnown as unknown:
        return Pass(f"the contract does not know: {unknown}")
    except EvaluationFailed as failure:
        return _not_evaluated(request, failure)
    if answer is None:
        return Pass("the contract only guards the call")
    if request.context.unclear is None and request.unclear:
        return unchecked(request.unclear)
    answer = _with_result(request, answer)
    if answer.holes:
        where = "; ".join(f"{place or 'all of it'}: {why}" for place, why in answer.holes.items())
        return Pass(f"the contract leaves its result open: {where}", known=answer)
    return Answer("ok", answer.result, answer.patch, more=evidence_mark(run, answer))


def _not_evaluated(request: RungRequest, failure: EvaluationFailed) -> RungResult:
    """Return why a contract does not answer: a learned one is incomplete, a written one is wrong."""
    if request.tool.has_learned_answers:
        return Pass(f"the contract does not know: {failure}")
    return unchecked([*request.unclear, f"the contract cannot be evaluated: {failure}"])


def _with_result(request: RungRequest, answer: ContractAnswer) -> ContractAnswer:
    """Return an answer with its open places; for a call that was made these are filled from the real result."""
    if answer.result is None and _leaves_result(request):
        answer = answer._replace(result=cast("Json", OpenPart(NO_RESULT)), holes={"": NO_RESULT})
    if answer.holes and request.made is not None:
        answer = fill_really(answer, request.made.result, request.tool.result or {})
    return answer


def _leaves_result(request: RungRequest) -> bool:
    """Return whether a contract has only effects, and its tool a result that is not null, or a real one."""
    tool = request.tool
    if tool.contract is None or "returns" in tool.contract.data:
        return False
    return request.made is not None or (tool.result is not None and bool(find_faults(tool.result, None)))


def python_rung(request: RungRequest) -> Generator[list[FunctionCall], list[Reply], RungResult]:
    """Run `simulate(state, **args)` on a copy: changes of the copy become the patch, an exception the tool's error.

    A returned `ToolMessage` with the status "error" is the tool's error, too.
    """
    if request.tool.simulate is None:
        return Pass("the tool has no simulate function")
    before = pack(request.state)
    state = unpack(before)
    kwargs, timeout_s = clone(request.call["args"]), request.context.tool_timeout_s
    work = FunctionCall(function=request.tool.simulate, args=(state,), kwargs=kwargs, timeout_s=timeout_s, then=_read)
    (reply,) = yield [work]
    if reply.late:
        return Pass(f"the simulate function {reply.failure}")
    if reply.failure is not None:
        return Answer("error", reply.failure, [])
    answer: RungResult = reply.value
    if isinstance(answer, Pass):
        return answer
    try:
        return replace(answer, patch=_changes(request.state, before, state))
    except StateError as error:
        return Pass(str(error))


def _read(value: Any) -> RungResult:
    return as_answer(value) if isinstance(value, ToolMessage) else as_json(value)


def _changes(before: JsonObject, packed: bytes, after: JsonObject) -> Patch:
    try:
        if pack(after) == packed:  # much faster than a comparison; most calls change nothing
            return []
    except TypeError:
        pass
    check_json(after, what="the state that the simulate function left")
    return make_patch(before, after)


def example_rung(request: RungRequest) -> RungResult:
    """Answer a read by the first example with equal arguments; writes pass."""
    if not request.tool.examples:
        return Pass("the tool has no examples")
    if not request.tool.reads:
        return Pass("examples answer reads only")
    for example in request.tool.examples:
        if json_equal(example.args, request.call["args"]):
            return Answer("ok", example.result, [])
    return Pass("no example has these arguments")


def schema_rung(request: RungRequest) -> RungResult:
    """Make up an answer; it depends only on seed, tool and arguments, not on process or state.

    A successful write has a patch of None, since its changes are unknown.
    """
    tool, args = request.tool, request.call["args"]
    key = f"{tool.name}\0{json.dumps(args, sort_keys=True, ensure_ascii=False)}"
    schema = {"const": {"status": "ok"}} if tool.result is None else tool.result
    try:
        some: Any = {"seed": request.context.seed, "key": key, "subject": tool.name}
        result = make_value(schema, hints=_hints(tool, args), examples=_shown_results(tool), **some)
    except Impossible as reason:
        return Pass(f"no made-up result fits the result schema: {reason}")
    return Answer("ok", result, [] if tool.reads else None)


def _hints(tool: ToolSpec, args: JsonObject) -> JsonObject:
    """Return a call's arguments by their names, and by those on the wire: `id_path` of a path is also an `id`."""
    places = tool.binding.places if tool.binding else {}
    given = [(places.get(name, ("body", name)), each) for name, each in args.items()]
    sent = {wire: each for kind in ("body", "path") for (place, wire), each in given if place == kind}
    left = {name for name, (place, _) in places.items() if place in ("header", "cookie")}
    return {**sent, **{name: each for name, each in args.items() if name not in left}}


def _shown_results(tool: ToolSpec) -> list[Json]:
    """Return a document's examples of the tool's success response."""
    responses = tool.binding.responses if tool.binding else {}
    first = next((responses[code] for code in sorted(responses) if code[0] == "2" and responses[code]), {})
    return [*first.get("examples", {}).values()]


def real_rung(request: RungRequest) -> RungResult | RungGenerator:
    """Run the real function of an opened read. Any failure is the tool's own error."""
    if not runs_for_real(request.tool, request.context):
        return Pass("no real function was opened for this tool")
    return _run_real(request)


def _run_real(request: RungRequest) -> RungGenerator:
    timeout_s = request.context.tool_timeout_s
    real, _ = yield from run_real(request.tool, request.call["args"], timeout_s, call_id=request.call["id"])
    reality = request.reality
    if reality is None or not reality.is_whole:
        return with_observation(request, real, stale=reality is not None)
    shown = yield from decide(request)
    if shown is None:
        return with_observation(request, real, stale=None)
    without = yield from decide(replace(request, state=reality.state))
    known = without.status if without else "error"  # if it cannot be evaluated there, it does not exist there
    if known != shown.status:
        only_here = "error" in (shown.status, real.status)  # deleted or created by the attempt only
        return shown if only_here else with_observation(request, real, stale=True if without else None)
    if without is None or json_equal(shown.result, without.result):
        return with_observation(request, real, stale=False)
    laid = lay_over(real, without, shown)
    return with_observation(request, real, stale=True) if laid is None else laid


def decide(request: RungRequest) -> Generator[list[FunctionCall], list[Reply], Answer | None]:
    """Return the answer of contract or `simulate` on the request's state; None if neither can answer."""
    request, reply = gate(replace(request, contract=None, unclear=()))
    if request.unclear:
        return None
    name = "contract"
    for each, rung in (("contract", contract_rung), ("python", python_rung)):
        if each in request.context.ladder and not isinstance(reply, Answer):
            name, said = each, rung(request)
            reply = (yield from said) if isinstance(said, GeneratorType) else said  # type: ignore[assignment]
    if not isinstance(reply, Answer) or notes_of(reply.more, "unclear"):
        return None
    passed: PassedRung = {"rung": "real", "reason": "the attempt's own changes: laid over what is real"}
    return Answer(reply.status, reply.result, [], more={"rung": name, "simulated": True, "passed": [passed]})


def lay_over(real: Answer, without: Answer, shown: Answer) -> Answer | None:
    """Return `shown` with the attempt's changes applied to the real result; None if they cannot be applied.

    A change is applied if the real result equals the tool's own answer without it; in a list, if the whole list does.
    """
    if "error" in (real.status, without.status, shown.status):
        return None
    patch = make_patch(without.result, shown.result)
    places = [tokens(operation["path"]) for operation in patch]
    anchors = [(_anchor(real.result, place), _anchor(without.result, place)) for place in places]
    if all(real_depth == depth and json_equal(there, known) for (real_depth, there), (depth, known) in anchors):
        return replace(shown, result=apply_patch(real.result, patch))
    return None


def _anchor(value: Json, place: Sequence[str]) -> tuple[int, list[Json]]:
    """Return the depth of, and the value at, the first list on a path, or at its end; [] if the path ends earlier."""
    for depth, token in enumerate(place):
        if not isinstance(value, dict):
            return depth, [value]
        if token not in value:
            return depth, []
        value = value[token]
    return len(place), [value]


def observing(request: RungRequest) -> Contract | None:
    tool = request.tool
    if tool.contract is not None and "observes" in tool.contract.data:
        return tool.contract
    return tool.derived.contract if tool.derived is not None and "observes" in tool.derived.data else None


def observe(request: RungRequest, result: Json) -> JsonObject:
    """Return marks of a real result: newly observed parts of the state, or a note why they are unknown."""
    try:
        run = open_contract(request, observing(request))
        patch = run.observe(result)
        found = {**find_partly_known(request.state, run.found), **run.shown(result)}
        after = close_read(note_shown(request.state, patch, found), patch)
        seen = make_patch(request.state, after, by_members=True)
    except EvaluationFailed as failure:
        return {"notes": [note("unclear", f"what it shows cannot be evaluated: {failure}")]}
    return {"observed": seen} if seen else {}


def forget(request: RungRequest, toolkit: Toolkit) -> JsonObject:
    """Return the state without parts that only reads have shown, after a write with unknown changes.

    A thing read by its key is kept without its values, since it probably still exists. A collection is removed: it may
    contain new things, so it is unknown again, not empty.
    """
    done = ((step["call"]["name"], step.get("outcome", {}).get("observed", ())) for step in request.steps)
    ops = [(name, tokens(one["path"]), one["value"]) for name, seen in done for one in seen if "value" in one]
    seen = [(path, value) for _, path, value in ops if path[:1] != [RUNTIME]]
    if not seen:
        return request.state
    kept, given = clone(request.state), request.before
    whole = {place for tool in toolkit.observing if tool.contract for place in tool.contract.observed_whole}
    for path, value in (each for one in seen for each in _things(*one, whole)):
        holder = subtree(kept, path[:-1])
        if not isinstance(holder, dict) or path[-1] not in holder:
            continue
        left = _without_values({path[-1]: holder.pop(path[-1])})
        is_collection = isinstance(value, dict) and all(isinstance(each, dict) for each in value.values())
        if path[0] in given or not is_collection:
            holder |= left
        elif not holder and path[1:]:
            kept.pop(path[0], None)
    # a document's paths tell what is a collection
    told = {tool.name for tool in toolkit if tool.derived} - {tool.name for tool in toolkit.observing}
    things = (path for name, path, value in ops if name in told and isinstance(value, dict) and path[0] != RUNTIME)
    return forget_shown(kept, [pointer(path[: -1 if path[1:] else None]) for path in things])


def _things(
    path: Sequence[str], value: Json, whole: Collection[tuple[str, ...]]
) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Yield the places and values of the things that an operation shows; {} for places that are shown whole."""
    place = next((place for place in whole if tuple(path[: len(place)]) == place), None)
    if place:
        yield place, {}
    elif len(path) == 1 and isinstance(value, dict):
        yield from (((*path, key), each) for key, each in value.items())
    elif path:
        yield tuple(path), value


def _without_values(value: JsonObject) -> JsonObject:
    return {key: _without_values(each) for key, each in value.items() if isinstance(each, dict)}


def with_observation(request: RungRequest, real: Answer, *, stale: bool | None) -> Answer:
    """Return a real answer with its observation of the task state, and its mark.

    Changes by the attempt itself are not overwritten; a result that contradicts them is stale. `stale` tells whether
    the result may lack these changes; None if only the observation can decide.
    """
    beside: JsonObject = {"media": real.more["media"]} if "media" in real.more else {}
    more: JsonObject = {}
    if real.status == "ok" and observing(request):
        more = observe(request, real.result)
        if "notes" not in more:
            hides = _hides(request, more.get("observed", []))
            stale = bool(stale) or hides or _is_part_of_changed(request, real.result)
            more = {} if hides else more
    return replace(real, more=with_notes({**beside, **more}, [note("stale", STALE)] if stale is not False else []))


def _hides(request: RungRequest, found: Patch) -> bool:
    """Return whether an observation concerns a place that the attempt itself has changed."""
    if request.reality is None:
        return False
    reality = request.reality.state
    try:
        apply_patch(reality, found)
    except PatchConflict:
        return True
    return bool(overlap(make_patch(reality, request.state), found, document=request.state))


def _is_part_of_changed(request: RungRequest, result: Json) -> bool:
    """Return whether a derived list shows an unknown part of a collection in which the attempt has changed things."""
    derived = request.tool.derived
    if request.reality is None or derived is None or derived.kind != "list":
        return False
    shown = open_contract(request, derived.contract).shown(result)
    changed = [tokens(one["path"]) for one in make_patch(request.reality.state, request.state)]
    parts = [place for place, values in shown.items() if values is None]
    return any((*path[: len(place)],) == place[: len(path)] for place in parts for path in changed)
