"""A call on its way to an answer: its request, the contract that gates it, and what a rung is.

A contract gates every rung (ToolGate, sections 3.2 and 3.4); without arguments it says which tools a state admits.
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
from ..contracts.run import Admissibility, ContractAnswer, ContractRun, Refusal, part_of
from ..errors import GeckoError
from ..models.ask import AnyAsk, Reply, Where
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
"""Rungs that know what a call changes: by the tool's contract, or by its `simulate` function."""

REASON_CHARS = 300
"""Of one reason why tools are closed."""

_KEY_ERROR = re.compile(r"(?:KeyError[:(] ?)?(?P<key>'[^']{1,60}')\)?")

AGAIN = "Only if the user wants it all the same, make the same call again: a person decides about it."

NO_ANSWER = "the simulated tool gave no usable answer"
"""The error of a call that a rung failed to answer, and no other may."""


class Reality(NamedTuple):
    """What is known of the task state without what the attempt's simulated calls have changed."""

    state: JsonObject
    is_whole: bool
    """False if such a call has succeeded whose change no rung knows."""


@dataclass(slots=True, kw_only=True, eq=False)  # not frozen: that makes one three times as slowly, several a call
class RungRequest:
    """One validated call to be answered. It is not to be changed.

    Args:
        tool: The tool that is called.
        call: The call; its arguments passed the rules.
        state: The task state before the call; a user's rung is given a copy.
        facts: What earlier simulated reads supposed, by `fact_key`.
        context: The run's knobs.
        where: Turn and attempt, for the models; their questions are numbered if they are asked.
        has_simulator: True if a model can be asked for the role `simulator`.
        contract: The tool's contract on this call, with its preconditions met or unclear; None if it has none.
        unclear: Preconditions that could not be evaluated, each with the reason.
        reality: Of a read that runs for real, what is known without the attempt's own changes; None if it has none.
        steps: The turn's steps before the call.
        untrusted: Returns the places of the state that are only supposed.
        writes: Names of the turn's tools that are known to change something.
        earlier: What real calls of earlier turns have shown.
        before: The task state before the steps; not to be changed.
        warned: Refusals that the call may meet, of which none is certain.
        overruled: Learned rules that refuse it, and that it is made in spite of.
        told: What else the rung must know, for a model.
        unread: Places that reads which run for real would show, not in the state; `shows` names the reads by place.
        made: What the call has really come to: it fills what the contract leaves open. None before it is made.
    """

    tool: ToolSpec
    call: Call
    state: JsonObject
    facts: Mapping[str, SupposedFact]
    context: GeckoContext
    where: Where
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
    told: str = ""
    unread: Sequence[tuple[str, ...]] = ()
    shows: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    made: Answer | None = None

    @property
    def calls(self) -> list[JsonObject]:
        """The turn's calls before this one that ran, oldest first, each `{"name", "args", "status", "result"}`."""
        return clone(answered_calls(self.steps))


def request_of(call: Call, state: AttemptState, scope: NodeScope, toolkit: Toolkit) -> RungRequest:
    tool, steps = toolkit[call["name"]], state.get("steps", [])
    is_real, shown = runs_for_real(tool, scope.context), state.get("offered_tools")
    silent = tool.contract is None or (tool.is_learned and not tool.contract.answers)  # it only guards: a model answers
    asked = silent and not tool.reads and scope.has_model("simulator")
    others = (toolkit if shown is None else pick_tools(toolkit, shown)) if asked else ()
    reads = {each.name for each in toolkit if each.reads} if asked else ()
    return RungRequest(
        tool=tool,
        call=call,
        state=state["task_state"],
        facts=state.get("facts", {}),
        context=scope.context,
        where=Where(turn=state["turn"], attempt=state["number"]),
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
    """Return the names of the tools that are known to write: it is stated, or they have changed something."""
    perhaps = [tool for tool in tools if not tool.reads]
    is_open = any(tool.effect is None for tool in perhaps)
    made = ((step["call"]["name"], step.get("outcome")) for step in (steps if is_open else ()))
    changed = {name for name, outcome in made if outcome and outcome["patch"]}
    return [tool.name for tool in perhaps if tool.effect == "write" or tool.name in changed]


def find_warnings(call: Call, state: AttemptState, tool: ToolSpec, toolkit: Toolkit) -> list[str]:
    """Return refusals that a write may meet, as real calls have met them, here or in other threads."""
    known = find_refusal(call, state, toolkit.get)
    told = [REFUSED + known[0]] if known and not known[0].startswith(REJECTED) else []
    return list(dict.fromkeys([*told, *(tool.lessons.warnings(call["args"]) if tool.lessons else ())]))


def _find_unread(state: JsonObject, toolkit: Toolkit, context: GeckoContext) -> list[tuple[str, ...]]:
    """Return the places that only reads show and none has shown: what they hold is unknown, not empty."""
    observing = [tool for tool in toolkit.observing if runs_for_real(tool, context)]
    if not observing:
        return []
    places = {place for tool in observing if tool.contract for place in tool.contract.observed}
    parts = ((place, part_of(state, place[:-1])) for place in sorted(places))
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
    """Return the function that finds what is only supposed of an attempt's state; it looks once."""
    found: list[Sequence[str]] = []

    def look() -> Sequence[str]:
        if not found:
            found.append(find_untrusted(state["before"], state.get("supposed") or [], state.get("steps") or []))
        return found[0]

    return look


def runs_for_real(tool: ToolSpec, context: GeckoContext) -> bool:
    """Return whether a rehearsal may run the tool: a read opened by name, or stated to be one under `reads="real"`."""
    opened = tool.opened or (context.reads == "real" and tool.stated)
    return opened and tool.reads and tool.real is not None


def is_real(step: Step) -> bool:
    """Return whether a step is a call that was really made."""
    return "outcome" in step and not step["outcome"]["simulated"]


def answered_calls(steps: Sequence[Step]) -> list[JsonObject]:
    """Return the calls that ran, as checks and contracts see them: name, args, status, result."""
    ran = ((step["call"], step["outcome"]) for step in steps if "outcome" in step)
    return [
        {"name": call["name"], "args": call["args"], "status": outcome["status"], "result": outcome["result"]}
        for call, outcome in ran
    ]


def refuse(outcome: Outcome, reason: str, category: Category) -> Outcome:
    """Return the outcome of a result that is not committed: an error, and no change."""
    kept = cast("Outcome", {key: value for key, value in outcome.items() if key != "observed"})
    return {**without_change(kept, reason), "status": "error", "result": f"refused: {reason}", "category": category}


def open_contract(request: RungRequest, contract: Contract | None = None) -> ContractRun:
    """Return a contract of the request's tool opened on its call and state: its own, which it has, or the derived."""
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

    The contract is opened in the request itself. A broken precondition is the tool's own error, on every rung. One that
    cannot be evaluated refuses the call only under `unclear="refuse"` or `gate="strict"`; else it goes with the
    request, and the rung that answers decides. So do those that the contract skips by `pass`, unless the tool only
    reads. What was learned refuses no more once the same call is made again, or it was `overruled`.
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
        more: JsonObject = {"violations": [*refusal.violations], **standing(run, refusal)}
        if refusal.reason:
            more["filled"] = {"rung": "none", "invented": False, "places": {"": refusal.reason}}
        return request, Answer("error", refusal.error, refusal.patch, more=more)
    if request.unclear and (request.context.unclear == "refuse" or request.context.gate == "strict"):
        return request, unchecked(request.unclear)
    return request, None


def _gate_learned(request: RungRequest, run: ContractRun, refusal: Refusal | None, *, overruled: bool) -> Gated:
    """Return as `gate`: what a learned contract does not know stays open, and is no doubt about the call."""
    request.contract, run.unknown = run, run.unknown or next(iter(run.unclear), None)
    warned, rules = [*request.warned, *map(tell_rule, run.warned)], list[str]()
    if refusal is not None:
        rules = [tell_rule(each) for each in refusal.violations]
        if not (overruled or _is_made_again(request)):
            more: JsonObject = {"violations": [*refusal.violations], **standing(run)}
            return request, Answer("error", f"{rules[0]}. {AGAIN}", [], more=more)
        run.unknown = rules[0]
    request.warned, request.overruled = [] if request.tool.reads else warned, rules
    return request, None


def _is_made_again(request: RungRequest) -> bool:
    """Return whether a learned rule has refused this very call in the same attempt."""
    same = (step for step in request.steps if "outcome" in step and is_same_call(step["call"], request.call))
    found = (each for step in same if step["outcome"]["simulated"] for each in step["outcome"].get("violations", ()))
    return any("evidence" in each for each in found)


def standing(run: ContractRun, said: Refusal | ContractAnswer | None = None) -> JsonObject:
    """Return the marks of an answer: the evidence that it rests on, how it goes out over HTTP, its blanks."""
    more: JsonObject = {} if run.status == "written" else {"evidence": run.status}
    if said is not None and said.http:
        more["http"] = dict(said.http)
    if isinstance(said, ContractAnswer) and said.blanks:
        by = "derived" if run.status == "derived" else "contract"
        more["filled"] = {"rung": by, "invented": True, "places": dict(said.blanks)}
    return more


def unchecked(unclear: Sequence[str]) -> Answer:
    """Return the error of a call whose conditions cannot be evaluated."""
    more = {"notes": [note("unclear", each) for each in unclear], "category": "state_dependency"}
    return Answer("error", f"refused: a precondition could not be evaluated: {'; '.join(unclear[:3])}", [], more=more)


def find_gated(tools: Iterable[ToolSpec]) -> tuple[ToolSpec, ...]:
    """Return the tools whose contracts have requirements that need no arguments."""
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

    `gated` is what `find_gated` returned: no other tool needs a look. `steps` are the turn's so far, the rest is as for
    `Contract.open`.
    """
    contracts = {tool.name: tool.contract for tool in gated if tool.contract}
    calls = answered_calls(steps) if any(one.reads_calls for one in contracts.values()) else ()
    more: Any = {"now": clock(state), "seed": seed, "calls": calls, "untrusted": untrusted}
    judged = {name: one.admissible(state, **more) for name, one in contracts.items()}
    return {name: found for name, found in judged.items() if found.word != "yes"}


def find_masked(closed: Mapping[str, Admissibility], context: GeckoContext) -> dict[str, str]:
    """Return the tools that are not bound for the planner's next message, by name with the reason."""
    words = {"note": (), "mask": ("no",), "strict": ("no", "unknown")}[context.gate]
    return {name: found.reason for name, found in closed.items() if found.word in words}


def format_closed(closed: Mapping[str, Admissibility], *, budget: int) -> str:
    """Return which tools the state does not admit, with all reasons; those that are unknown are left out."""
    reasons: dict[str, list[str]] = {}
    for name, found in closed.items():
        if found.word == "no":
            why = "; ".join(dict.fromkeys(one_line(in_words(each)) for each in (found.reason, *found.more)))
            reasons.setdefault(why, []).append(name)
    lines = (f"{', '.join(names)}: {cut(reason, budget=REASON_CHARS)}" for reason, names in reasons.items())
    return join_lines(lines, budget=budget)


def in_words(error: str) -> str:
    """Return a tool's error as words: a JSON object's texts, and of a bare `'id'`, a KeyError's text, what it means."""
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
        name: Its name in contexts and records. The name of a built-in rung replaces that one.
        answer: A plain function of a `RungRequest`. It returns an `Answer` or a `Pass`, or is a generator that yields
            lists of `Ask` and `Work` and is sent their replies. Whatever waits goes into a `Work`.
        invents: True if its answers are made up: they are marked, kept as supposed facts, and an error changes
            nothing.
        simulated: False if the real tool runs. What goes wrong there is the tool's error: no other rung is tried.

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
            raise GeckoError(f"Rung {self.name!r}: answer must not be async: yield [Work(function=...)]")
