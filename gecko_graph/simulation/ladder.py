"""The ladder: the first rung that can answer a call does, and says which rung it was."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..errors import StateError
from ..models.ask import AnyAsk, Ask, Reply
from ..schemas.complaints import faults
from ..state import Outcome, PassedRung, SupposedFact
from ..task_state.digest import check_json, digest
from .contract import Gate
from .example import example_rung
from .facts import fact_key
from .model import model_rung
from .python import python_rung
from .real import real_rung
from .rung import Answer, Pass, Rung, RungGenerator, RungRequest
from .schema import schema_rung

Climb: TypeAlias = Generator[Sequence[AnyAsk], list[Reply], "Climbed"]

INVENTING = frozenset({"model", "schema"})
"""Rungs that make things up: what they say of a read is kept as a supposed fact."""

RUNGS: Mapping[str, Rung] = {
    "real": real_rung,
    "python": python_rung,
    "example": example_rung,
    "model": model_rung,
    "schema": schema_rung,
}


@dataclass(frozen=True, slots=True)
class Climbed:
    """The outcome of one call, and what was supposed on the way, by `fact_key`."""

    outcome: Outcome
    facts: dict[str, SupposedFact]


def climb(request: RungRequest) -> Climb:
    """Try the rungs of `request.context.ladder` in order; the first fitting answer is the outcome.

    A broken precondition is the tool's own error, whichever simulated rung would have answered (ToolGate, section 3.4).
    An answer that breaks the tool's result schema never leaves the ladder: the next rung is tried.
    """
    passed: list[PassedRung] = []
    gate = Gate(request)
    for name in request.context.ladder:
        if name != "real" and (refusal := gate.refusal(passed)) is not None:
            return Climbed(outcome_of(refusal, rung="contract", passed=passed), {})
        if name in INVENTING and (known := recall(request, passed)) is not None:
            return Climbed(known, {})
        said = gate.answer() if name == "contract" else (yield from run_rung(RUNGS[name], request))
        if isinstance(said, Answer) and (problem := validate_answer(request, said)):
            said = Pass(problem)
        if isinstance(said, Pass):
            note: PassedRung = {"rung": name, "reason": said.reason}
            passed += [] if note in passed else [note]
            continue
        outcome = outcome_of(said, rung=name, passed=passed)
        return Climbed(outcome, suppose(request, outcome))
    return Climbed(unanswered(passed), {})


def run_rung(rung: Rung, request: RungRequest) -> RungGenerator:
    """Ask one rung, whether it answers at once or asks a model first."""
    said = rung(request)
    return said if isinstance(said, Answer | Pass) else (yield from said)


def validate_answer(request: RungRequest, answer: Answer) -> str | None:
    """Why an answer may not reach the planner: no JSON, or not of the result schema. Errors have their own form."""
    try:
        check_json(answer.result, what="the result")
    except StateError as error:
        return str(error)
    if answer.status == "error" or request.tool.result is None:
        return None
    found = faults(request.tool.result, answer.result)
    return "the result breaks its schema: " + "; ".join(found[:3]) if found else None


def outcome_of(answer: Answer, *, rung: str, passed: Sequence[PassedRung]) -> Outcome:
    """The outcome record of an answer."""
    return {
        "status": answer.status,
        "result": answer.result,
        "patch": answer.patch,
        "rung": rung,
        "simulated": rung != "real",
        "passed": list(passed),
    }


def unanswered(passed: Sequence[PassedRung]) -> Outcome:
    """The outcome where no rung could answer: an error that says so."""
    text = "no rung of the ladder could answer this call"
    return outcome_of(Answer("error", text, []), rung="none", passed=passed)


def recall(request: RungRequest, passed: Sequence[PassedRung]) -> Outcome | None:
    """What was supposed of the same read in the same task state."""
    if not request.tool.reads or not request.facts:
        return None
    fact = request.facts.get(fact_key(request.call, digest(request.state)))
    if fact is None:
        return None
    return outcome_of(Answer(fact["status"], fact["result"], []), rung=fact["rung"], passed=passed)


def suppose(request: RungRequest, outcome: Outcome) -> dict[str, SupposedFact]:
    """The fact that an invented answer of a read leaves behind.

    A tool of which nobody said whether it reads, and whose success changed nothing, is told of in later prompts as well
    (else its next answer would contradict this one), but never answered from it.
    """
    looked = request.tool.effect is None and outcome["status"] == "ok" and outcome["patch"] == []
    if outcome["rung"] not in INVENTING or not (request.tool.reads or looked):
        return {}
    seen = digest(request.state)
    fact: SupposedFact = {
        "tool": request.call["name"],
        "args": request.call["args"],
        "status": outcome["status"],
        "result": outcome["result"],
        "rung": outcome["rung"],
        "digest": seen,
    }
    return {fact_key(request.call, seen): fact}


def run_concurrently(climbs: Sequence[Climb], *, asked: int = 0) -> Generator[list[AnyAsk], list[Reply], list[Climbed]]:
    """Several climbs at once: what they ask in one round is asked in one list, so that it is answered at the same time.

    Args:
        climbs: The climbs, in the order of their calls.
        asked: How many questions the simulator was asked before; they are numbered on from there, as they are asked.
    """
    done: dict[int, Climbed] = {}
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
        requests = numbered([request for each in wanted.values() for request in each], first=asked)
        asked += sum(isinstance(request, Ask) for request in requests)
        answers = iter((yield requests))
        sent = {index: [next(answers) for _ in each] for index, each in wanted.items()}
    return [done[index] for index in range(len(climbs))]


def numbered(requests: Sequence[AnyAsk], *, first: int) -> list[AnyAsk]:
    """The requests with their questions numbered from `first` on: no two questions of a turn have one number."""
    told: list[AnyAsk] = []
    for request in requests:
        if isinstance(request, Ask):
            request = replace(request, where=replace(request.where, question=first))
            first += 1
        told.append(request)
    return told
