"""Answer calls by the ladder (paper, section 3.2): the first rung that can answer does, and the outcome names it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from types import GeneratorType
from typing import Any, TypeAlias, cast

from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp

from ..context import GeckoContext
from ..errors import GeckoError, StateError, ToolkitError
from ..events import RESULT_MARKS, event
from ..models.answer import error_text
from ..models.ask import AnyAsk, Ask, Reply
from ..models.conversation import build_step_message
from ..models.node import NodeScope
from ..schemas.complaints import find_faults, is_error_body
from ..state import Call, Filled, JsonObject, Outcome, PassedRung, Step
from ..tools import Toolkit
from ..tools.spec import ToolSpec
from ..values.digest import check_json, clone, digest
from ..values.media import set_media_aside
from ..values.notes import join, note, notes_of, warning, with_notes
from .by_document import derived_rung
from .channels import AttemptState, Proposal
from .filled import PartialAnswer, complete
from .made import gated_request
from .model import fact_key, model_rung
from .rung import NO_ANSWER, Answer, Gated, Pass, Rung, RungGenerator, RungRequest, gate, runs_for_real
from .rungs import contract_rung, example_rung, python_rung, real_rung, schema_rung
from .turn import spent_budget

Climb: TypeAlias = Generator[Sequence[AnyAsk], list[Reply], Outcome]
Rungs: TypeAlias = Mapping[str, Rung]

CONTRACT = Rung("contract", contract_rung)

RUNGS: Rungs = {
    "real": Rung("real", real_rung, simulated=False),
    "contract": CONTRACT,
    "python": Rung("python", python_rung),
    "derived": Rung("derived", derived_rung),
    "example": Rung("example", example_rung),
    "model": Rung("model", model_rung, invents=True),
    "schema": Rung("schema", schema_rung, invents=True),
}
"""The built-in rungs, by name."""


def rungs_of(own: Iterable[Rung]) -> Rungs:
    """Return the rungs by name: the built-in ones, and the user's own, which replace those of the same name.

    Raises:
        GeckoError: An item is not a Rung, or two have the same name.
    """
    if not isinstance(own, Iterable):
        raise GeckoError(f"rungs: expected a list of Rung objects, got {type(own).__name__}")
    found: dict[str, Rung] = {}
    for rung in own:
        if not isinstance(rung, Rung):
            raise GeckoError(f"rungs: expected a Rung, got {type(rung).__name__}: Rung(name, answer)")
        if rung.name in found:
            raise GeckoError(f"rungs: two rungs are called {rung.name!r}")
        found[rung.name] = rung
    return {**RUNGS, **found}


def ladder_of(context: GeckoContext, rungs: Rungs) -> list[Rung]:
    """Return the rungs in the order of `context.ladder`; the user's unnamed ones come after `real`.

    Raises:
        GeckoError: The ladder is empty, or names an unknown rung.
    """
    unknown = [name for name in context.ladder if name not in rungs]
    if unknown or not context.ladder:
        what = f"unknown rung {unknown[0]!r}" if unknown else "it is empty"
        raise GeckoError(f"ladder: {what}; the rungs are {', '.join(rungs)}")
    named = [rungs[name] for name in context.ladder]
    own = [rung for name, rung in rungs.items() if name not in RUNGS and rung not in named]
    first = 1 + max((at for at, rung in enumerate(named) if not rung.simulated), default=-1) if own else 0
    return [*named[:first], *own, *named[first:]]


def simulator(
    state: AttemptState, scope: NodeScope, *, toolkit: Toolkit, rungs: Rungs = RUNGS
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Answer the next call (`serial`), or all calls of the planner's message from one state (`snapshot`, `strict`).

    Consecutive reads, unless a user's function answers them, are asked about in parallel, since none changes the state.
    If the earlier calls have spent a budget, the message's other calls are not made, and the planner ends the attempt.

    Raises:
        ToolkitError: A call's tool is missing, since the run was resumed with other tools.
    """
    pending = state["pending"]
    began = isinstance(next(reversed(state.get("trace", [])), None), ToolMessage)
    if began and spent_budget(state, scope.context):
        return {"pending": [], "proposals": []}
    for call in pending:
        if call["name"] not in toolkit:  # the validator refuses these
            raise ToolkitError(
                f"unknown tool {call['name']!r} in a resumed run: pass the toolkit that the run began with"
            )
    calls = pending
    if len(pending) > 1 and scope.context.parallel_calls == "serial":
        calls = pending[: max(1, count_reads([toolkit[call["name"]] for call in pending], scope.context))]
    # equal reads share a request, so that their answers agree
    keys = [
        fact_key(call, "") if len(calls) > 1 and toolkit[call["name"]].reads else f"call {call['id']}" for call in calls
    ]
    gated = [gated_request(call, state, scope, toolkit) for call in calls]
    climbs = {key: climb(each[0], rungs, each) for key, each in zip(keys, gated, strict=True)}
    answers = yield from run_concurrently([*climbs.values()], asked=state.get("asked", {}).get("simulator", 0))
    outcomes = dict(zip(climbs, answers, strict=True))
    proposals: list[Proposal] = [
        {"call": call, "outcome": outcomes[key]} for call, key in zip(calls, keys, strict=True)
    ]
    for proposal in proposals:
        emit_result(scope, state["number"], proposal["call"], proposal["outcome"])
    return {"pending": pending[len(calls) :], "proposals": proposals}


def count_reads(tools: Sequence[ToolSpec], context: GeckoContext) -> int:
    """Return how many tools at the beginning of a message are reads without a user's function."""
    runs = (not tool.reads or tool.simulate is not None or runs_for_real(tool, context) for tool in tools)
    return next((count for count, other in enumerate(runs) if other), len(tools))


def build_trace(steps: Sequence[Step], state: AttemptState, scope: NodeScope) -> list[ToolMessage]:
    shown, budget = steps if scope.watched else (), scope.context.view_chars
    return [build_step_message(step, task=state["task"], budget=budget) for step in shown]


def emit_result(scope: NodeScope, attempt: int, call: Call, outcome: Outcome) -> None:
    """Stream a call's outcome, before it is committed."""
    if not scope.watched:
        return
    kept = ("status", "result", "rung", "simulated", "passed", *RESULT_MARKS)
    fields: dict[str, Any] = {key: outcome[key] for key in kept if key in outcome}  # type: ignore[literal-required]
    scope.emit(event("gecko.result", attempt=attempt, call=call, **fields))


def climb(request: RungRequest, rungs: Rungs = RUNGS, gated: Gated | None = None) -> Climb:
    """Try the rungs in the order of the ladder; the first fitting answer is the outcome.

    A broken precondition is the tool's own error, regardless of the rung (ToolGate, section 3.4). Made-up answers must
    fit the tool's result schema, or the next rung is tried. Real answers, and those that a user has written (contract,
    simulation, example), are kept with a note, since the document may be wrong.

    Args:
        request: The call and its state.
        rungs: The rungs by name.
        gated: The gate's result for the request, if it is known.

    Raises:
        GeckoError: The ladder is empty, or names an unknown rung.
    """
    passed: list[PassedRung] = []
    ladder = ladder_of(request.context, rungs)
    request, refusal = gated or gate(request)
    if refusal is not None:
        return (yield from _word(outcome_of(refusal, CONTRACT, request, passed), request, ladder))
    asked, held = request, cast("PartialAnswer | None", None)
    for rung in ladder:
        if rung.invents and (known := recall(request, rung, passed)) is not None:
            return complete(held, known)
        reply = yield from run_rung(rung, asked)
        reply = held.check(reply) if held else reply
        if isinstance(reply, Answer):
            outcome = outcome_of(reply, rung, request, passed)
            if not rung.invents and (problem := check_result_schema(request, reply)):
                outcome = with_notes(outcome, [note("undocumented", problem)])
            return complete(held, outcome)
        passed.append({"rung": rung.name, "reason": reply.reason})
        if reply.known is not None:
            held = PartialAnswer.of(request, reply.known)
            asked = held.request
        elif reply.final:
            return outcome_of(Answer("error", NO_ANSWER, []), rung, request, passed)
    answer = Answer("error", "nothing could simulate this call", [])
    return {**outcome_of(answer, CONTRACT, request, passed), "rung": "none"}


def _word(outcome: Outcome, request: RungRequest, ladder: Sequence[Rung]) -> Climb:
    """Return a refusal; if its contract does not know the error's text, the next suitable rung words it."""
    filled = outcome.get("filled", {})
    why = "".join(filled.get("places", {}).values())
    hint = f"The call is refused: {why}. Give the tool's own error, with the status error."
    for rung in ladder if filled else ():
        if rung.simulated and rung.name not in ("contract", "derived", "example", "schema"):  # these word none
            reply = yield from run_rung(rung, replace(request, hint=hint))
            if isinstance(reply, Answer) and reply.status == "error":
                made: Filled = {**filled, "rung": rung.name, "invented": rung.invents}
                return {**outcome, "result": reply.result, "filled": made}
            why = reply.reason if isinstance(reply, Pass) else "it answered as if the call succeeded"
            outcome["passed"].append({"rung": rung.name, "reason": why})
    return outcome


def run_rung(rung: Rung, request: RungRequest) -> RungGenerator:
    """Run one rung; any exception or return value becomes an Answer or a Pass.

    A user's rung gets copies, and its answer is copied, since it may mutate its objects later. An error body becomes an
    error; a made-up answer must fit its schema, and a made-up error changes nothing.
    """
    # contracts return only JSON, and copies
    is_ours = rung in (CONTRACT, RUNGS["derived"]) and request.made is None
    try:
        if RUNGS.get(rung.name) is not rung:
            request = replace(request, state=clone(request.state), call=clone(request.call))
        run = rung.answer(request)
        reply: Any = (yield from _ask(run)) if isinstance(run, GeneratorType) else run
        problem = None if is_ours else validate_answer(reply)
        if problem is None and isinstance(reply, Answer) and rung.invents:
            problem = check_result_schema(request, reply)
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary to users' rungs
        problem = f"the rung failed: {error_text(error)}"
    if problem is not None:
        return Pass(problem) if rung.simulated else Answer("error", problem, [])
    return reply if isinstance(reply, Pass) else _own_answer(reply, rung, request, is_ours=is_ours)


def _own_answer(reply: Answer, rung: Rung, request: RungRequest, *, is_ours: bool) -> Answer:
    """Return a rung's answer as a copy, with media set aside; an error body becomes an error."""
    parts = [reply.result, reply.patch, reply.more if rung is RUNGS.get(rung.name) else {}]
    result, patch, more = parts if is_ours else clone(parts)
    result = result if is_ours else set_media_aside(result, simulated=rung.invents)
    if reply.status == "error" or (request.tool.result and is_error_body(request.tool.result, result)):
        more.pop("observed", None)
        return Answer("error", result, [] if rung.invents else patch, more=more)
    return Answer("ok", result, patch, more=more)


def _ask(run: Any) -> Generator[Sequence[AnyAsk], list[Reply], Any]:
    """Run a rung's asks, and reject yielded values that are not asks."""
    replies: list[Reply] | None = None
    try:
        while True:
            asks = run.send(replies)
            if not isinstance(asks, list | tuple) or not all(isinstance(ask, AnyAsk) for ask in asks):
                raise TypeError(f"expected it to yield lists of Ask and FunctionCall, got {type(asks).__name__}")
            replies = yield asks
    except StopIteration as done:
        return done.value
    finally:
        run.close()


def validate_answer(reply: Any) -> str | None:
    """Return why a rung's result is unusable: neither Answer nor Pass, or not JSON; None if it is usable."""
    if isinstance(reply, Pass) and isinstance(reply.reason, str):
        return None
    if not isinstance(reply, Answer):
        wrong = "one without a reason" if isinstance(reply, Pass) else type(reply).__name__
        return f"expected an Answer or a Pass with a reason from the rung, got {wrong}"
    if reply.status not in ("ok", "error") or not isinstance(reply.patch, list | None):
        return "the rung's Answer must have the status 'ok' or 'error', and a list or None as patch"
    try:
        check_json(reply.result, what="the result")
        check_json(reply.patch, what="the change")
    except StateError as error:
        return str(error)
    return None


def check_result_schema(request: RungRequest, answer: Answer) -> str | None:
    """Return how a result violates the tool's result schema, or None. Errors are not checked."""
    if answer.status == "error" or request.tool.result is None:
        return None
    found = find_faults(request.tool.result, answer.result)
    return "the result breaks its schema: " + "; ".join(found[:3]) if found else None


def outcome_of(answer: Answer, rung: Rung, request: RungRequest, passed: Sequence[PassedRung]) -> Outcome:
    outcome: Outcome = {
        "status": answer.status,
        "result": answer.result,
        "patch": answer.patch,
        "rung": rung.name,
        "simulated": rung.simulated,
        "passed": list(passed),
    }
    if rung.invents:
        outcome["invented"] = True
    notes = [note("unclear", each) for each in request.unclear]
    notes += [note("overruled", each) for each in request.overruled]
    notes += [warning(each) for each in request.warned if rung.simulated and answer.status == "ok"]
    own, lessons = notes_of(answer.more), request.tool.lessons
    more: JsonObject = {**answer.more, "notes": lessons.leave_open(own) if lessons else own}
    more["passed"] = [*passed, *answer.more.get("passed", ())]
    return join(with_notes(outcome, notes), more)


def recall(request: RungRequest, rung: Rung, passed: Sequence[PassedRung]) -> Outcome | None:
    """Return the outcome supposed earlier in the turn for the same read in the same task state, by any rung.

    Also for a tool of unknown effect that changed nothing.
    """
    if request.tool.effect == "write" or not request.facts:
        return None
    fact = request.facts.get(fact_key(request.call, digest(request.state)))
    if fact is None:
        return None
    answer = Answer(fact["status"], fact["result"], [], more={"notes": notes_of(fact)})
    return outcome_of(answer, replace(rung, name=fact["rung"]), request, passed)


def run_concurrently(climbs: Sequence[Climb], *, asked: int = 0) -> Generator[list[AnyAsk], list[Reply], list[Outcome]]:
    """Run several climbs in parallel: the asks of a round form one list, and are answered together.

    Questions are numbered in the order of asking, starting at `asked`.
    """
    done: dict[int, Outcome] = {}
    sent: dict[int, list[Reply] | None] = dict.fromkeys(range(len(climbs)))
    while sent:
        wanted: dict[int, Sequence[AnyAsk]] = {}
        for index, replies in sent.items():
            try:
                wanted[index] = next(climbs[index]) if replies is None else climbs[index].send(replies)
            except StopIteration as stop:
                done[index] = stop.value
        if not wanted:
            break
        requests: list[AnyAsk] = []
        for request in (request for each in wanted.values() for request in each):
            if isinstance(request, Ask):
                request = replace(request, where=replace(request.where, question=asked))
                asked += 1
            requests.append(request)
        answers = iter((yield requests))
        sent = {index: [next(answers) for _ in each] for index, each in wanted.items()}
    return [done[index] for index in range(len(climbs))]
