"""Attempts rebuilt from streamed events: what the live view draws while a run goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from .. import events
from ..errors import GeckoError
from ..state import Rehearsal

Draft: TypeAlias = dict[str, Any]
"""An unfinished `Attempt` record: steps may lack complaints and outcome, the verdict may be missing."""

REAL = ("gecko.execute", "gecko.executed", "gecko.sync")
"""Events of calls that an agent makes for real."""

ANSWER_KEYS = ("status", "result", "rung", "simulated", "passed")
CHANGE_KEYS = ("refused", "race", "observed", "unclear", "violations")
VERDICT_KEYS = ("verdict", "answer", "stop_reason", "stop")


class Drafts:
    """The attempts of one turn, rebuilt from its events."""

    def __init__(self) -> None:
        self._attempts: dict[int, Draft] = {}
        self._real: dict[str, Draft] = {}

    @property
    def attempts(self) -> list[Draft]:
        """The attempts so far, by number."""
        return [self._attempts[number] for number in sorted(self._attempts)]

    @property
    def execution(self) -> Draft:
        """The real calls so far, as an unfinished `Execution` record."""
        return {"status": "", "calls": [*self._real.values()], "left": []}

    def add_real(self, event: Mapping[str, Any]) -> None:
        """Add an event of a real call."""
        entry = self._real.setdefault(event["call"]["id"], {"status": "started"})
        entry.update({key: event[key] for key in ("call", "status", "result", "drift") if key in event})

    def add(self, event: Mapping[str, Any]) -> Draft:
        """Add one event; return its attempt, the same object each time.

        An attempt that begins again, after a resume, starts empty.
        """
        number = event["attempt"]
        if event["type"] == "gecko.attempt" or number not in self._attempts:
            self._attempts[number] = {"number": number, "steps": []}
        _update(self._attempts[number], event)
        return self._attempts[number]


def is_complete(draft: Mapping[str, Any]) -> bool:
    """Return whether an attempt was seen from its beginning."""
    return "start_digest" in draft


def pending_calls(draft: Mapping[str, Any]) -> str:
    """Return the names of the calls without a result; empty while models think."""
    open_calls = [step["call"]["name"] for step in draft["steps"] if "outcome" not in step and "complaints" not in step]
    return ", ".join(open_calls)


def list_opening_events(rehearsal: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events that open a turn: the supposed state and the checklist."""
    if supposed := rehearsal.get("supposed_state"):
        yield events.event("gecko.state", attempt=0, **supposed)
    if items := rehearsal.get("checklist"):
        yield events.event("gecko.checklist", attempt=0, items=items, failure="")


def list_events(attempt: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of an attempt, finished or not; `Drafts` rebuilds the attempt from them."""
    number = attempt["number"]
    yield events.event("gecko.attempt", attempt=number, digest=attempt["start_digest"], feedback="")
    for step in attempt["steps"]:
        call = step["call"]
        yield events.event("gecko.call", attempt=number, call=call)
        if "complaints" in step:
            yield events.event("gecko.complaint", attempt=number, call=call, complaints=step["complaints"])
        outcome = step.get("outcome")
        if not outcome:
            continue
        answer = {key: outcome[key] for key in ANSWER_KEYS}
        answer |= {"unclear": outcome.get("unclear", []), "stale": outcome.get("stale", False)}
        answer |= {key: outcome[key] for key in events.RESULT_MARKS if key in outcome}
        yield events.event("gecko.result", attempt=number, call=call, **answer)
        if outcome["patch"] or "refused" in outcome or "observed" in outcome:
            change = {"patch": outcome["patch"], "refused": outcome.get("refused"), "race": outcome.get("race", [])}
            more = ("status", "result") if "refused" in outcome else ()
            change |= {key: outcome[key] for key in ("observed", *more) if key in outcome}
            yield events.event("gecko.change", attempt=number, call=call, **change)
    if "verdict" in attempt:
        yield events.event(
            "gecko.verdict", attempt=number, **{key: attempt[key] for key in VERDICT_KEYS if key in attempt}
        )


def _update(draft: Draft, event: Mapping[str, Any]) -> None:
    match event["type"]:
        case "gecko.attempt":
            draft["start_digest"] = event["digest"]
        case "gecko.call":
            draft["steps"].append({"call": event["call"]})
        case "gecko.complaint":
            _step(draft, event)["complaints"] = event["complaints"]
        case "gecko.result":
            marks = {key: event[key] for key in ("unclear", "stale", *events.RESULT_MARKS) if event.get(key)}
            _step(draft, event)["outcome"] = {**{key: event[key] for key in ANSWER_KEYS}, "patch": [], **marks}
        case "gecko.change":
            marks = {key: event[key] for key in CHANGE_KEYS if event.get(key)}
            marks |= {key: event[key] for key in ("status", "result") if key in event}
            _step(draft, event).setdefault("outcome", {}).update({"patch": event["patch"] or [], **marks})
        case "gecko.verdict":
            draft.update({key: event[key] for key in VERDICT_KEYS if key in event})


def _step(draft: Draft, event: Mapping[str, Any]) -> Draft:
    """Return the step of the event's call; added where the stream was joined after the call."""
    for step in reversed(draft["steps"]):
        if step["call"]["id"] == event["call"]["id"]:
            return step  # type: ignore[no-any-return]
    step = {"call": event["call"]}
    draft["steps"].append(step)
    return step


def rehearsal_of(run: Any) -> Rehearsal:
    """Return the rehearsal of a graph's output, or of LangGraph's `GraphOutput` (`invoke(version="v2")`).

    Of an agent's output it has what followed as well: `asked` or `execution`.

    Raises:
        GeckoError: `run` holds no rehearsal.
    """
    value, waiting = getattr(run, "value", None), getattr(run, "interrupts", ())
    run = {**value, **({"__interrupt__": waiting} if waiting else {})} if isinstance(value, Mapping) else run
    rehearsal = run.get("rehearsal", run) if isinstance(run, Mapping) else None
    if not isinstance(rehearsal, Mapping) or "attempts" not in rehearsal:
        hint = "; pass the items of a list one by one" if isinstance(run, list | tuple) else ""
        hint = "; the run is paused" if isinstance(run, Mapping) and "__interrupt__" in run else hint
        raise GeckoError(f"expected the graph's output or its 'rehearsal', got {type(run).__name__} without one{hint}")
    return {**rehearsal, **follow_up(run)}  # type: ignore[typeddict-item]


def follow_up(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return what followed the rehearsal in an agent's output.

    While the run waits for a person that is `asked`, the actions to be decided on; else its `execution`, if any.
    """
    if "__interrupt__" in run:
        values = [paused.value for paused in run["__interrupt__"]]
        requests = [value for value in values if isinstance(value, Mapping) and "action_requests" in value]
        return {"asked": [action for request in requests for action in request["action_requests"]]}
    return {"execution": run["execution"]} if run.get("execution") else {}
