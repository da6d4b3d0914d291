"""The agent's state keys, their reducers, and the nodes that write them."""

# annotations are evaluated here, because LangGraph re-evaluates textual ones at each compilation
from collections.abc import Sequence
from typing import Annotated, cast

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from ..errors import PatchConflict
from ..state import ChecklistItem, JsonObject, Rehearsal, Step
from ..values.difference import json_equal
from ..values.origins import find_untrusted
from ..values.patch import booked_patch, fold_patches
from ..world.channels import AttemptState, Bookkeeping, fold_bookkeeping
from ..world.records import Approval, DoneWrite, ExecutedCall, Execution, PlannedCall, Preview, Risk
from ..world.reducers import SNAPSHOT_EVERY_TURNS, delta, replace
from ..world.turn import human_turns


def by_call(old: Sequence[ExecutedCall], new: Sequence[ExecutedCall]) -> list[ExecutedCall]:
    """Reducer of the journal: a later entry of a call replaces the earlier one."""
    entries = {entry["call"]["id"]: entry for entry in [*old, *new]}
    return [*entries.values()]


class AgentOutput(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    rehearsal: Rehearsal
    execution: Execution
    task_state: JsonObject


class AgentRecord(Bookkeeping, total=False):
    """The agent's bookkeeping, each key with the nodes that write it; for one turn unless stated otherwise."""

    turn: int
    """`open_turn`: number of human turns of the conversation."""
    turn_id: str
    """`open_turn`: id of the turn's human message."""
    agent: str
    """`open_turn`: name of the turn's agent, as several may share a thread."""
    is_over: bool
    """`open_turn`: whether the agent has already answered this message."""
    found: list[JsonObject]
    """`open_turn`, `recover`: claims of real calls that are missing in the state; the first is being recorded."""
    rehearsals: dict[str, int]
    """`rehearse`: number of rehearsals of this turn by cause: `task`, `resumed`, `rejected`, `departed`, `stale`."""
    next_rehearsal_reason: str
    """`open_turn`, `review`, `sync`: the cause of the next rehearsal, a key of `rehearsals`; "" for none; `edited` if a
    person has edited the plan, which is reviewed again."""
    risks: dict[str, Risk]
    """`risk`: verdicts on calls of this turn's plans, by the digest of their evidence."""
    steps: list[Step]
    """`sync`: the turn's real calls with their outcomes."""
    supposed: list[str]
    """`open_turn`, `rehearse`: JSON Pointers into the start state to made-up values; for the whole thread."""
    real_digest: str
    """`sync`: digest of a task state in which reality violates a rule; for the whole thread."""
    unreported: list[ExecutedCall]
    """`open_turn`, `recover`: real calls of turns without an answer, because they were interrupted or the person sent
    another message; `answer` reports them."""
    undoable: list[DoneWrite]
    """`open_turn`: the writes of the last turn with writes, unless it was an undo, without those undone since;
    `rehearse` adds how an undo reverts them; for the whole thread."""
    undoes: bool
    """`open_turn`: whether the turn's message asks for an undo."""
    fidelity: dict[str, dict[str, int]]
    """`sync`, for the whole thread: numbers of real and of drifted calls by tool."""


def fold_record(old: AgentRecord, new: AgentRecord) -> AgentRecord:
    """Merge a write key by key (reducer): costs are summed, for other keys the last write wins.

    No delta: LangGraph folds deltas from all writes at a thread's checkpoints, including those of another process that
    continued the same checkpoint. The decision on a real call may not depend on that.
    """
    return cast("AgentRecord", fold_bookkeeping(old, [new]))


class AgentChannels(TypedDict, total=False):
    """The agent's keys. `messages` and `task_state` persist for the whole thread, the others for one turn."""

    messages: Annotated[list[AnyMessage], add_messages]
    """Caller; `answer` appends the answer."""
    task_state: Annotated[JsonObject, delta(replace, dict, SNAPSHOT_EVERY_TURNS)]
    """Caller; `rehearse` adds a model's suppositions before the first call, `sync` the changes of real calls."""
    turn_start_state: Annotated[JsonObject, delta(replace, dict, SNAPSHOT_EVERY_TURNS)]
    """`open_turn`, `recover`, `rehearse`: the task state at the turn's start."""
    checklist: list[ChecklistItem] | None
    """Caller: conditions on the end of this turn; consumed by `rehearse`."""
    rehearsal: Rehearsal
    """`rehearse`: the turn's last rehearsal."""
    preview: Preview | None
    """`rehearse`; `review` if the plan was edited."""
    approval: Approval | None
    """`review`."""
    journal: Annotated[list[ExecutedCall], by_call]
    """`recover`, `call_tool`, `resolve_doubt`, `sync`; cleared by `open_turn`."""
    execution: Execution
    """`answer`."""
    bookkeeping: Annotated[AgentRecord, fold_record]
    """All nodes: internal bookkeeping. A write contains only the changed keys."""


class AgentState(AgentChannels, AgentRecord, total=False):
    """The keys that the agent's nodes and routers use, including the bookkeeping."""


def last_entry(state: AgentState) -> ExecutedCall | None:
    journal = state.get("journal") or []
    return journal[-1] if journal else None


def calls_left(state: AgentState) -> list[PlannedCall]:
    """Return the approved plan's calls without an entry in the journal, in order."""
    preview = state.get("preview")
    if not preview:
        return []
    # a call given up before this plan was made may have had the same id
    begun = {
        entry["call"]["id"]
        for entry in state.get("journal") or []
        if entry["status"] not in ("skipped", "refused") or entry["started_at"] >= preview["made_at"]
    }
    return [each for each in preview["calls"] if each["call"]["id"] not in begun]


def has_moved(state: AgentState) -> bool:
    """Return whether a new turn has begun, or the task state was edited."""
    return state["turn"] != human_turns(state["messages"]) or is_edited(state)


def is_edited(state: AgentState) -> bool:
    """Return whether the task state differs from the turn's start state with its real calls' changes."""
    try:
        expected = fold_patches(state["turn_start_state"], [booked_patch(step["outcome"]) for step in state["steps"]])
    except PatchConflict:
        return True
    return not json_equal(expected, state["task_state"])


def still_supposed(state: AgentState) -> list[str]:
    """Return the places of the task state that are still made up; none if the state was edited."""
    if state.get("turn_start_state") is None or is_edited(state):
        return []
    return find_untrusted(state["turn_start_state"], state.get("supposed") or [], state["steps"])


def booked_keys(state: AgentState) -> set[str]:
    """Return the claims of calls that are applied to the task state, or were left in doubt."""
    booked = {step["call"]["id"] for step in state.get("steps") or ()}
    done = [
        entry
        for entry in state.get("journal") or ()
        if entry["call"]["id"] in booked or (entry["status"] == "in_doubt" and "ended_at" in entry)
    ]
    return {entry["key"] for entry in (*done, *(state.get("unreported") or ())) if entry["key"]}


def as_attempt(state: AgentState) -> AttemptState:
    return {
        "turn": state["turn"] - 1,
        "number": 0,
        "before": state["turn_start_state"],
        "supposed": state.get("supposed") or [],
        "task_state": state["task_state"],
        "steps": state["steps"],
    }
