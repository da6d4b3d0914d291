"""The request of a call, the contract gate in front of the rungs, and the interface of a rung.

A contract gates every rung (ToolGate, sections 3.2 and 3.4); without arguments it tells which tools a state admits.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, cast

from ..context import GeckoContext
from ..contracts.clauses import tell_rule
from ..contracts.contract import Contract
from ..contracts.run import Admissibility, ContractAnswer, ContractRun, Refusal, subtree
from ..errors import GeckoError
from ..models.ask import AnyAsk, QuestionId, Reply
from ..models.formatting import cut, join_lines, one_line
from ..models.memory import real_results
from ..models.node import NodeScope
from ..state import Call, Category, JsonObject, Outcome, Step, SupposedFact
from ..tools import Toolkit
from ..tools.descriptions import pick_tools
from ..tools.lessons import REFUSED
from ..tools.real import Answer, Pass
from ..tools.spec import ToolSpec
from ..values.digest import clone, digest
from ..values.notes import note, without_change
from ..values.origins import Untrusted, find_untrusted
from ..values.patch import apply_patch, booked_patch
from ..values.places import clock, scalars_of
from .channels import AttemptState
from .refusals import REJECTED, find_refusal, is_same_call

__all__ = ["NO_ANSWER", "Answer", "Pass", "Reality", "Rung", "RungGenerator", "RungRequest", "RungResult", "clock"]

DECIDING = ("contract", "python")
"""Rungs that know a call's changes: by the tool's contract, or by its `simulate` function."""

REASON_CHARS = 300

_KEY_ERROR = re.compile(r"(?:KeyError[:(] ?)?(?P<key>'[^']{1,60}')\)?")

AGAIN = "Only if the user wants it all the same, make the same call again: a person decides about it."

NO_ANSWER = "the simulated tool gave no usable answer"
"""The error of a call that a rung failed to answer and no other rung may answer."""


class Reality(NamedTuple):
    """The known part of the task state without the changes by the attempt's simulated calls."""

    state: JsonObject
    is_whole: bool
    """False if a simulated call has succeeded whose changes no rung knows."""


@dataclass(slots=True, kw_only=True, eq=False)  # frozen takes three times as long, several times per call
class RungRequest:
    """A validated call that is to be answered. It must not be mutated.

    Args:
        tool: The called tool.
        call: The call; its arguments are valid.
        state: The task state before the call; a user's rung gets a copy.
        facts: Facts supposed by earlier simulated reads, by `fact_key`.
        context: The run's knobs.
        where: Turn and attempt, for the models; their questions are numbered if they are asked.
        has_simulator: Whether there is a model for the role `simulator`.
        contract: The tool's contract on this call, with its preconditions met or unclear; None if it has none.
        unclear: Preconditions that could not be evaluated, with the reason.
        reality: For a read that runs for real, the known state without the attempt's own changes; None if it has none.
        steps: The turn's steps before the call.
        untrusted: Returns the supposed places of the state.
        writes: Names of the turn's tools that are known to change something.
        earlier: Results of real calls of earlier turns.
        before: The task state before the steps; must not be mutated.
        warned: Refusals that the call may meet; none is certain.
        overruled: Learned rules that refuse the call, which is made in spite of them.
        hint: A further hint for a model.
        unread: Places missing in the state that reads which run for real would show; `shows` names these reads.
        made: The real answer, which fills the open parts of a contract's answer; None before the call is made.
    """

    tool: ToolSpec
    call: Call
    state: JsonObject
    facts: Mapping[str, SupposedFact]
    context: GeckoContext
    where: QuestionId
    has_simulator: bool = False
    contract: ContractRun | None = None
    unclear: tuple[str, ...] = ()
    reality: Reality | None = None
    steps: Sequence[Step] = ()
    untrusted: Untrusted = tuple
    writes: Sequence[str] = ()
    earlier: Sequence[SupposedFact] = ()
    before: JsonObject = field(default_factory=dict)
    warned: Sequence[str] = ()
    overruled: Sequence[str] = ()
    hint: str = ""
    unread: Sequence[tuple[str, ...]] = ()
    shows: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    made: Answer | None = None

    @property
    def calls(self) -> list[JsonObject]:
        """The turn's earlier calls that ran, oldest first, each `{"name", "args", "status", "result"}`."""
        return clone(answered_calls(self.steps))


def request_of(call: Call, state: AttemptState, scope: NodeScope, toolkit: Toolkit) -> RungRequest:
    tool, steps = toolkit[call["name"]], state.get("steps", [])
    is_real, shown = runs_for_real(tool, scope.context), state.get("offered_tools")
    silent = tool.contract is None or (tool.is_learned and not tool.contract.answers)  # it only guards; a model answers
    asked = silent and not tool.reads and scope.has_model("simulator")
    others = (toolkit if shown is None else pick_tools(toolkit, shown)) if asked else ()
    reads = {each.name for each in toolkit if each.reads} if asked else ()
    return RungRequest(
        tool=tool,
        call=call,
        state=state["task_state"],
        facts=state.get("facts", {}),
        context=scope.context,
        where=QuestionId(turn=state["turn"], attempt=state["number"]),
        has_simulator=scope.has_model("simulator"),
        reality=find_reality(state["before"], steps, toolkit) if is_real else None,
        steps=steps,
        untrusted=untrusted_of(state),
        writes=find_writes(others, steps) if asked else (),
        earlier=real_results(state.get("conversation", ()), reads=reads, now=digest(state["before"])) if asked else (),
        before=state["before"],
        unread=_find_unread(state["task_state"], toolkit, scope.context),
        shows=_find_shows(toolkit),
        warned=[] if tool.reads else find_warnings(call, state, tool, toolkit),
    )


Gated: TypeAlias = tuple[RungRequest, Answer | None]
"""A request with its contract opened, and the error of a call that must not run."""


def find_writes(tools: Iterable[ToolSpec], steps: Sequence[Step]) -> list[str]:
    """Return the names of the tools that are known to write: by their effect, or by a change they have made."""
    perhaps = [tool for tool in tools if not tool.reads]
    is_open = any(tool.effect is None for tool in perhaps)
    made = ((step["call"]["name"], step.get("outcome")) for step in (steps if is_open else ()))
    changed = {name for name, outcome in made if outcome and outcome["patch"]}
    return [tool.name for tool in perhaps if tool.effect == "write" or tool.name in changed]


def find_warnings(call: Call, state: AttemptState, tool: ToolSpec, toolkit: Toolkit) -> list[str]:
    """Return refusals that a write may meet, as seen in real calls of this thread or others."""
    known = find_refusal(call, state, toolkit.get)
    told = [REFUSED + known[0]] if known and not known[0].startswith(REJECTED) else []
    return list(dict.fromkeys([*told, *(tool.lessons.warnings(call["args"]) if tool.lessons else ())]))


def _find_unread(state: JsonObject, toolkit: Toolkit, context: GeckoContext) -> list[tuple[str, ...]]:
    """Return places that only reads can show and none has shown; their content is unknown, not empty."""
    observing = [tool for tool in toolkit.observing if runs_for_real(tool, context)]
    if not observing:
        return []
    places = {place for tool in observing if tool.contract for place in tool.contract.observed}
    parts = ((place, subtree(state, place[:-1])) for place in sorted(places))
    return [place for place, part in parts if isinstance(part, dict) and place[-1] not in part]


def _find_shows(toolkit: Toolkit) -> dict[tuple[str, ...], str]:
    found: dict[tuple[str, ...], str] = {}
    for tool in toolkit.observing:
        for place in tool.contract.observed if tool.contract else ():
            found[place] = f"{found[place]} or {tool.name}" if place in found else tool.name
    return found


def find_reality(before: JsonObject, steps: Iterable[Step], toolkit: Toolkit) -> Reality | None:
    """Return the known reality since the attempt's start, `before`; None if no simulated call changed it."""
    state, changed, is_whole = before, False, True
    for step in steps:
        outcome = step.get("outcome")
        if outcome is None:
            continue
        if not outcome["simulated"]:
            state = apply_patch(state, booked_patch(outcome))
        elif outcome["patch"]:
            changed = True
        elif outcome["status"] == "ok" and outcome["rung"] not in DECIDING and not toolkit[step["call"]["name"]].reads:
            changed, is_whole = True, False
    return Reality(state, is_whole) if changed else None


def untrusted_of(state: AttemptState) -> Untrusted:
    """Return a function that finds the supposed places of an attempt's state, once."""
    found: list[Sequence[str]] = []

    def look() -> Sequence[str]:
        if not found:
            found.append(find_untrusted(state["before"], state.get("supposed") or [], state.get("steps") or []))
        return found[0]

    return look


def runs_for_real(tool: ToolSpec, context: GeckoContext) -> bool:
    """Return whether a rehearsal may run the tool: a read that is opened, or stated as one under `reads="real"`."""
    opened = tool.opened or (context.reads == "real" and tool.stated)
    return opened and tool.reads and tool.real is not None


def is_real(step: Step) -> bool:
    return "outcome" in step and not step["outcome"]["simulated"]


def answered_calls(steps: Sequence[Step]) -> list[JsonObject]:
    """Return the calls that ran, in the form for checks and contracts: name, args, status, result."""
    ran = ((step["call"], step["outcome"]) for step in steps if "outcome" in step)
    return [
        {"name": call["name"], "args": call["args"], "status": outcome["status"], "result": outcome["result"]}
        for call, outcome in ran
    ]


def refuse(outcome: Outcome, reason: str, category: Category) -> Outcome:
    """Return the outcome of a result that is not committed: an error without changes."""
    kept = cast("Outcome", {key: value for key, value in outcome.items() if key != "observed"})
    return {**without_change(kept, reason), "status": "error", "result": f"refused: {reason}", "category": category}


def open_contract(request: RungRequest, contract: Contract | None = None) -> ContractRun:
    """Return a contract opened on the request's call and state; by default the tool's own."""
    contract = contract or request.tool.contract
    assert contract is not None
    opened = contract.open(
        args=request.call["args"],
        parameters=request.tool.parameters,
        state=request.state,
        call=request.call,
        now=clock(request.state),
        seed=request.context.seed,
        calls=answered_calls(request.steps) if contract.reads_calls else (),
    )
    run = opened.trust(request.untrusted)
    return run.without(request.unread, request.shows) if request.unread or request.shows else run


def gate(request: RungRequest, *, overruled: bool = False) -> Gated:
    """Return the request with its contract opened, and the error of a call that must not run.

    The contract is set in the request itself. A broken precondition is the tool's own error, on every rung. A
    precondition that cannot be evaluated refuses the call only under `unclear="refuse"` or `gate="strict"`; otherwise
    it is noted in the request, and the answering rung decides. So are those that the contract skips by `pass`, unless
    the tool only reads. A learned rule no longer refuses if the same call is repeated, or was `overruled`.
    """
    if request.tool.contract is None:
        return request, None
    run, is_done = open_contract(request), request.made is not None and request.made.status == "ok"
    refusal = run.refusal(learned=not is_done)
    if request.tool.is_learned:
        return _gate_learned(request, run, refusal, overruled=overruled)
    skipped = () if request.tool.reads else run.skipped
    request.contract, request.unclear = run, (*run.unclear, *skipped)
    if refusal is not None:
        more: JsonObject = {"violations": [*refusal.violations], **evidence_mark(run, refusal)}
        if refusal.reason:
            more["filled"] = {"rung": "none", "invented": False, "places": {"": refusal.reason}}
        return request, Answer("error", refusal.error, refusal.patch, more=more)
    if request.unclear and (request.context.unclear == "refuse" or request.context.gate == "strict"):
        return request, unchecked(request.unclear)
    return request, None


def _gate_learned(request: RungRequest, run: ContractRun, refusal: Refusal | None, *, overruled: bool) -> Gated:
    """Return as `gate`; unknown parts of a learned contract stay open, without a note of doubt."""
    request.contract, run.unknown = run, run.unknown or next(iter(run.unclear), None)
    warned, rules = [*request.warned, *map(tell_rule, run.warned)], list[str]()
    if refusal is not None:
        rules = [tell_rule(each) for each in refusal.violations]
        if not (overruled or _is_made_again(request)):
            more: JsonObject = {"violations": [*refusal.violations], **evidence_mark(run)}
            return request, Answer("error", f"{rules[0]}. {AGAIN}", [], more=more)
        run.unknown = rules[0]
    request.warned, request.overruled = [] if request.tool.reads else warned, rules
    return request, None


def _is_made_again(request: RungRequest) -> bool:
    same = (step for step in request.steps if "outcome" in step and is_same_call(step["call"], request.call))
    found = (each for step in same if step["outcome"]["simulated"] for each in step["outcome"].get("violations", ()))
    return any("evidence" in each for each in found)


def evidence_mark(run: ContractRun, said: Refusal | ContractAnswer | None = None) -> JsonObject:
    """Return the marks of an answer: the contract's evidence, its HTTP response, its blanks."""
    more: JsonObject = {} if run.status == "written" else {"evidence": run.status}
    if said is not None and said.http:
        more["http"] = dict(said.http)
    if said is not None and said.blanks:
        by = "derived" if run.status == "derived" else "contract"
        more["filled"] = {"rung": by, "invented": True, "places": dict(said.blanks)}
    return more


def unchecked(unclear: Sequence[str]) -> Answer:
    more = {"notes": [note("unclear", each) for each in unclear], "category": "state_dependency"}
    return Answer("error", f"refused: a precondition could not be evaluated: {'; '.join(unclear[:3])}", [], more=more)


def find_gated(tools: Iterable[ToolSpec]) -> tuple[ToolSpec, ...]:
    """Return the tools whose contracts have requirements that do not depend on arguments."""
    return tuple(tool for tool in tools if tool.contract is not None and tool.contract.is_gated and not tool.is_learned)


def find_closed(
    gated: Iterable[ToolSpec],
    state: JsonObject,
    *,
    seed: int = 0,
    steps: Sequence[Step] = (),
    untrusted: Untrusted = tuple,
) -> dict[str, Admissibility]:
    """Return the tools that are not known to be admissible in a task state, by name (ToolGate, equation 9).

    Args:
        gated: The result of `find_gated`; other tools need no check.
        state: The task state.
        seed: As for `Contract.open`.
        steps: The turn's steps so far.
        untrusted: Returns the supposed places of the state.
    """
    contracts = {tool.name: tool.contract for tool in gated if tool.contract}
    calls = answered_calls(steps) if any(one.reads_calls for one in contracts.values()) else ()
    more: Any = {"now": clock(state), "seed": seed, "calls": calls, "untrusted": untrusted}
    judged = {name: one.admissible(state, **more) for name, one in contracts.items()}
    return {name: found for name, found in judged.items() if found.word != "yes"}


def find_masked(closed: Mapping[str, Admissibility], context: GeckoContext) -> dict[str, str]:
    """Return the tools that are not bound for the planner's next message: name to reason."""
    words = {"note": (), "mask": ("no",), "strict": ("no", "unknown")}[context.gate]
    return {name: found.reason for name, found in closed.items() if found.word in words}


def format_closed(closed: Mapping[str, Admissibility], *, budget: int) -> str:
    """Return the tools that the state does not admit, with all reasons; unknown ones are left out."""
    reasons: dict[str, list[str]] = {}
    for name, found in closed.items():
        if found.word == "no":
            why = "; ".join(dict.fromkeys(one_line(explain_error(each)) for each in (found.reason, *found.more)))
            reasons.setdefault(why, []).append(name)
    lines = (f"{', '.join(names)}: {cut(reason, budget=REASON_CHARS)}" for reason, names in reasons.items())
    return join_lines(lines, budget=budget)


def explain_error(error: str) -> str:
    """Return a tool's error in words: the texts of a JSON object, or an explanation of a KeyError's bare `'id'`."""
    with suppress(ValueError, RecursionError):
        fields = json.loads(error)
        if isinstance(fields, dict) and fields:
            pairs = ", ".join(f"{key} {value}" for key, value in fields.items())
            error = "; ".join(each for each in scalars_of(fields) if isinstance(each, str)) or pairs
    found = _KEY_ERROR.fullmatch(error.strip())
    return f"an entry {found['key']} that it needs is missing" if found else error


RungResult: TypeAlias = Answer | Pass
RungGenerator: TypeAlias = Generator[Sequence[AnyAsk], list[Reply], RungResult]


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of the ladder, which may answer a call.

    Args:
        name: Its name in contexts and records. The name of a built-in rung replaces that rung.
        answer: A plain function of a `RungRequest`. It returns an `Answer` or a `Pass`, or is a generator that yields
            lists of `Ask` and `FunctionCall` and receives their replies. Blocking work goes into a `FunctionCall`.
        invents: Whether its answers are made up: they are marked and kept as supposed facts, and an error changes
            nothing.
        simulated: False if the real tool runs; its failure is the tool's error, and no other rung is tried.

    Raises:
        GeckoError: The name is empty, or `answer` is not such a function.
    """

    name: str
    answer: Callable[[RungRequest], RungResult | RungGenerator]
    invents: bool = False
    simulated: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not callable(self.answer):
            raise GeckoError(f"Rung({self.name!r}, {self.answer!r}): expected a name and a function")
        if inspect.iscoroutinefunction(self.answer):
            raise GeckoError(f"Rung {self.name!r}: answer must not be async: yield [FunctionCall(function=...)]")
