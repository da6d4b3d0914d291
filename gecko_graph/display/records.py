"""The record that views draw: taken from a run's output, or rebuilt from the events of a running one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from .. import events
from ..errors import GeckoError
from ..state import JsonObject, Rehearsal
from . import rows
from .rows import ViewRow
from .words import Record

Draft: TypeAlias = dict[str, Any]
"""An unfinished `Attempt` record: steps may lack complaints and outcome, and the verdict may be missing."""

REAL = ("gecko.execute", "gecko.executed", "gecko.sync")
"""Events of an agent's real calls."""

ANSWER_KEYS = ("status", "result", "rung", "simulated", "passed")
CHANGE_KEYS = ("status", "result", "notes", "observed", "violations")
VERDICT_KEYS = ("verdict", "answer", "stop_reason", "stop")


@dataclass(frozen=True, slots=True)
class PageTurn:
    """One turn on a page.

    Args:
        record: A `Rehearsal`; for an unfinished turn its `attempts`, which may be drafts.
        task: The user's task.
        start_state: The task state before the attempts, if known.
        note: When the turn ran and how it was saved.
    """

    record: Record
    task: str = ""
    start_state: JsonObject | None = None
    note: str = ""


class Drafts:
    """One turn, rebuilt from its events: `attempts` by number, and `record`, the unfinished `Rehearsal`."""

    def __init__(self) -> None:
        self._turn: dict[str, Any] = {}
        self.attempts: dict[int, Draft] = {}
        self._real: dict[str, Draft] = {}

    @property
    def record(self) -> dict[str, Any]:
        """The record of the turn so far."""
        done = {"execution": {"status": "", "calls": [*self._real.values()], "left": []}} if self._real else {}
        return {**self._turn, **done, "attempts": [self.attempts[number] for number in sorted(self.attempts)]}

    def now(self) -> str:
        """Return the node or call that is running, as far as events show it."""
        started = [f"{each['call']['name']} for real" for each in self._real.values() if each["status"] == "started"]
        open_ = {number: pending_calls(draft) for number, draft in self.attempts.items() if "verdict" not in draft}
        tried = [f"attempt {number}: {calls or 'waiting for a model'}" for number, calls in open_.items()]
        return "; ".join([*started, *tried]) or "waiting for a model"

    def add(self, event: Mapping[str, Any]) -> list[ViewRow]:
        """Add one event and return its rows, as far as they are known; none for an event of an unknown type.

        An attempt that starts again after a resume starts empty.
        """
        if event["type"] in REAL:
            entry = self._real.setdefault(event["call"]["id"], {"status": "started"})
            entry.update({key: event[key] for key in ("call", "status", "result", "drift", "patch") if key in event})
            return [rows.build_real(entry)] if "result" in entry else [ViewRow("real", call=entry["call"])]
        if event["type"] == "gecko.state":
            self._turn["supposed_state"] = dict(event)
            return list(rows.list_supposed(self._turn))
        if event["type"] == "gecko.checklist":
            return list(rows.list_expected(event["items"], event.get("failure", "")))
        number = event["attempt"]
        if event["type"] == "gecko.attempt" or number not in self.attempts:
            self.attempts[number] = {"number": number, "steps": []}
        return list(_update(self.attempts[number], event))


def _update(draft: Draft, event: Mapping[str, Any]) -> Iterator[ViewRow]:
    match event["type"]:
        case "gecko.attempt":
            draft["start_digest"] = event["digest"]
            yield rows.build_attempt(draft)
        case "gecko.verdict":
            draft.update({key: event[key] for key in VERDICT_KEYS if key in event})
            yield from rows.list_end(draft)
        case "gecko.need":
            yield ViewRow("need", event["need"])
            yield from (ViewRow("gate", f"{each['tool']}: {each['reason']}") for each in event["rejections"])
        case "gecko.call" | "gecko.complaint" | "gecko.result" | "gecko.change" as kind:
            step = _find_step(draft, event)
            if kind == "gecko.complaint":
                step["complaints"] = event["complaints"]
            elif kind == "gecko.result":
                marks = {key: event[key] for key in events.RESULT_MARKS if event.get(key)}
                step["outcome"] = {**{key: event[key] for key in ANSWER_KEYS}, "patch": [], **marks}
            elif kind == "gecko.change":
                marks = {key: event[key] for key in CHANGE_KEYS if key in event}
                step.setdefault("outcome", {}).update({"patch": event["patch"] or [], **marks})
            yield rows.build_step(step, {})[0]


def _find_step(draft: Draft, event: Mapping[str, Any]) -> Draft:
    """Return the step of the event's call.

    The call event adds it; if the stream was joined later, it is added here.
    """
    for step in reversed(draft["steps"]) if event["type"] != "gecko.call" else ():
        if step["call"]["id"] == event["call"]["id"]:
            return step  # type: ignore[no-any-return]
    draft["steps"].append({"call": event["call"]})
    return draft["steps"][-1]  # type: ignore[no-any-return]


def is_complete(draft: Mapping[str, Any]) -> bool:
    """Return whether the events of an attempt were seen from its start."""
    return "start_digest" in draft


def pending_calls(draft: Mapping[str, Any]) -> str:
    """Return the names of the calls without a result; empty while only models are asked."""
    open_calls = [step["call"]["name"] for step in draft["steps"] if "outcome" not in step and "complaints" not in step]
    return ", ".join(open_calls)


def is_conversation(run: Any) -> bool:
    """Return whether `run` is the output of a conversation's graph."""
    return isinstance(run, Mapping) and {"messages", "world", "score"} <= run.keys()


def rehearsal_of(run: Any) -> Rehearsal:
    """Return the rehearsal of a graph's output, or of LangGraph's `GraphOutput` (`invoke(version="v2")`).

    For an agent's output it includes the follow-up: `asked` or `execution`.

    Raises:
        GeckoError: `run` contains no rehearsal.
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
    """Return what follows the rehearsal in an agent's output.

    While the run waits for a person that is `asked`, the actions to decide on; else its `execution`, if any.
    """
    if "__interrupt__" in run:
        values = [paused.value for paused in run["__interrupt__"]]
        requests = [value for value in values if isinstance(value, Mapping) and "action_requests" in value]
        return {"asked": [action for request in requests for action in request["action_requests"]]}
    return {"execution": run["execution"]} if run.get("execution") else {}
