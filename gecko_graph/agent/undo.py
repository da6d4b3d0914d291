"""Undo: a plan of calls that revert a turn's real writes, the newest first.

The search starts from the real task state; the plan is reviewed and carried out like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

from ..errors import GeckoError, PatchConflict
from ..models.ask import FunctionCall
from ..models.formatting import format_call, format_change
from ..nodes.rounds import plan_of
from ..real.claims import Steps
from ..real.preview import CHANGE_CHARS, describe_undo
from ..schemas.subschemas import is_number
from ..state import VERSION, Attempt, Json, JsonObject, Operation, Patch, Rehearsal, Step, Verdict
from ..undo import UndoFinder
from ..values.difference import json_equal, make_patch
from ..values.digest import digest
from ..values.patch import apply_patch, booked_patch, find, tokens
from ..world.provenance import is_planned
from ..world.records import DoneWrite, Undo
from .channels import AgentState

OTHERWISE = "the real result differed from the prediction"
CHANGED = "its result has changed since"
NOTHING = "There is nothing to undo: no earlier call is known to have changed anything."
UNDONE = "There is nothing to undo: the last turn that changed something was an undo."


def list_writes(state: AgentState) -> list[DoneWrite]:
    """Return the turn's real calls that may have changed something, each with the patch that reverts it."""
    entries = {entry["call"]["id"]: entry for entry in state.get("journal") or () if entry["key"]}
    steps = {step["call"]["id"]: step for step in state.get("steps") or ()}
    now, found = state.get("turn_start_state") or {}, list[DoneWrite]()
    for id_ in [*steps, *(id_ for id_ in entries if id_ not in steps)]:
        outcome: Any = steps[id_].get("outcome") if id_ in steps else None
        patch = booked_patch(outcome) if outcome else []
        try:
            before, now = now, apply_patch(now, patch)
        except PatchConflict:  # the task state was edited, so the call's change cannot be identified
            before, patch = now, []
        entry = entries.get(id_)
        if entry is None or entry["status"] not in ("ok", "in_doubt"):
            continue
        reason = OTHERWISE if entry.get("drift") or "departure" in entry else ""
        reason = reason if patch else "its changes are unknown"
        if entry["status"] == "in_doubt":
            reason = "it is unknown whether it took effect"
        inverse = [*invert(before, now)]
        found.append({"call": entry["call"], "result": entry.get("result"), "inverse": inverse, "reason": reason})
    return found


def find_undoable(state: AgentState) -> list[DoneWrite] | None:
    """Return the calls for the next undo after this turn; None if they are as before.

    An undo cannot be undone: calls that it has, or may have, reverted are only removed.
    """
    if not (writes := list_writes(state)):
        return None
    if not state.get("undoes"):
        return writes
    made = {each["call"]["id"] for each in writes}
    return [each for each in state.get("undoable") or () if made.isdisjoint(each.get("undone_by", ()))]


class WayBack(NamedTuple):
    """The result of a search: the simulated calls in order, the state after them, and the report on each write."""

    steps: list[Step]
    end: JsonObject
    ways: list[Undo]
    ids: list[list[str]]
    """For each way, the ids of its steps."""


def invert(before: JsonObject, after: JsonObject) -> Iterator[Operation]:
    """Yield the operations that revert a state, each after a `test` of the value that it replaces."""
    for each in make_patch(after, before, by_members=True):
        if each["op"] != "add":
            yield {"op": "test", "path": each["path"], "value": find(after, tokens(each["path"]))}
        yield each


def aim(now: JsonObject, inverse: Patch, known: set[str]) -> JsonObject:
    """Return the state that undoing a write must lead to. Raises PatchConflict if its result was changed.

    A number that only later calls of its turn have changed, which cannot be undone, is changed back by the difference.
    `known` are places known to be affected by such calls only; those of this write are added.
    """
    written: Json = None
    for each in inverse:
        path = tokens(each["path"])
        if each["op"] == "test":
            written = each["value"]
            continue
        if each["op"] == "add":
            above = find(now, path[:-1])
            if isinstance(above, dict) and path[-1] in above:
                raise PatchConflict(CHANGED)
        else:
            here, old = find(now, path), each.get("value")
            if json_equal(here, written):
                known.add(each["path"])
            elif each["path"] in known and all(map(is_number, (here, written, old))):
                each = {**each, "value": round(here + old - written, 9)}
            else:
                raise PatchConflict(CHANGED)
        now = apply_patch(now, [each])
    return now


def find_way_back(
    finder: UndoFinder,
    writes: Sequence[DoneWrite],
    state: JsonObject,
    limit_s: float,
    taken: Collection[str] = (),
) -> WayBack:
    """Return the calls that revert writes from a state, the newest first; none for a write already reverted.

    A write that cannot be undone does not block earlier ones whose results are unchanged.
    """
    world, ways, known, taking = finder.begin(state), list[Undo](), set[str](), list[list[str]]()
    ids = (id_ for number in count(1) if (id_ := f"undo_{number}") not in taken)
    for write in reversed(writes):
        now = world.state
        undo: Undo = {"call": write["call"], "status": "none", "calls": [], "reason": write["reason"]}
        if not write["reason"]:
            try:
                target = aim(now, finder.without_journals(write["inverse"]), known)
                undo = finder.restore(write["call"], write["result"], target, now, limit_s=limit_s)
            except PatchConflict:
                undo = {**undo, "reason": CHANGED}
        fork = world.fork()
        made = fork.call_all({"name": each["name"], "args": each["args"], "id": next(ids)} for each in undo["calls"])
        if undo["status"] == "found" and not all(map(is_planned, made)):
            # a contract that reads earlier calls allows it only without them
            undo = {"call": write["call"], "status": "none", "calls": []}
        world = fork if undo["status"] == "found" else world
        ways.append(undo)
        taking.append([step["call"]["id"] for step in made] if world is fork else [])
    return WayBack(world.log, world.state, ways, taking)


def rehearse_undo(finder: UndoFinder, state: AgentState, limit_s: float) -> Steps:
    """Return the rehearsal of an undo turn, with the search's result as plan, and `undoable`.

    Raises GeckoError if the search fails.
    """
    before = state["rehearsal"]["attempts"] if state["rehearsals"] else []
    number, start, done = 1 + max((each["number"] for each in before), default=0), state["task_state"], state["steps"]
    # a call of an earlier plan with the same id would count as already made
    taken = {each["call"]["id"] for each in (*state["journal"], *done, *state["unreported"])}
    writes = state.get("undoable") or []
    (reply,) = yield [FunctionCall(function=find_way_back, args=(finder, writes, start, limit_s, taken))]
    if reply.failure:
        raise GeckoError(f"the search for an undo failed: {reply.failure}")
    found: WayBack = reply.value
    lines = [f"{format_call(each['call'])}: {describe_undo(each)}" for each in found.ways]
    nothing = NOTHING if state.get("undoable") is None else UNDONE
    told = "\n".join(lines) or nothing
    steps, answer = [*done, *found.steps], told if found.steps else ""
    verdict: Verdict = {"status": "failed", "score": 0.0, "items": [], "feedback": told}
    if found.steps:
        verdict |= {"status": "accepted", "score": 1.0}
    attempt: Attempt = {
        "v": VERSION, "number": number, "start_digest": digest(start), "end_digest": digest(found.end), "steps": steps,
        "answer": answer, "change": make_patch(start, found.end), "usage": {}, "stop_reason": "answered",
        "verdict": verdict,
    }  # fmt: skip
    changes = format_change(start, found.end, budget=CHANGE_CHARS).splitlines()
    rehearsal: Rehearsal = {
        "v": VERSION, "plan": plan_of(attempt), "verdict": verdict, "answer": answer, "attempts": [attempt],
        "checklist": [], "chosen": number, "changes": changes, "usage": {},
    }  # fmt: skip
    undoable: list[DoneWrite] = []
    for write, ids in zip(writes, reversed(found.ids), strict=True):
        earlier = write.get("undone_by", []) if state["rehearsals"] else []  # of this turn
        undoable.append({**write, "undone_by": [*earlier, *ids]})
    return {"rehearsal": rehearsal, "undoable": undoable} if writes else {"rehearsal": rehearsal}
