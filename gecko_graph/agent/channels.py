"""The agent's keys, how writes to one come together, and who owns each."""

# annotations are evaluated here: LangGraph evaluates those that are texts again at each compilation
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
    """Reducer of the journal: a later entry of a call takes the place of the earlier one."""
    entries = {entry["call"]["id"]: entry for entry in [*old, *new]}
    return [*entries.values()]


class AgentOutput(TypedDict):
    """The output of an agent's turn."""

    messages: Annotated[list[AnyMessage], add_messages]
    rehearsal: Rehearsal
    execution: Execution
    task_state: JsonObject


class AgentRecord(Bookkeeping, total=False):
    """The agent's own bookkeeping, each key with its owner; for one turn unless stated otherwise."""

    turn: int
    """`open_turn`: human turns of the conversation."""
    turn_id: str
    """`open_turn`: id of the turn's human message."""
    agent: str
    """`open_turn`: which agent the turn is of, as several may share a thread."""
    is_over: bool
    """`open_turn`: whether it has answered the turn before."""
    found: list[JsonObject]
    """`open_turn`, `recover`: claims of real calls that are not in the state yet; the first is being booked."""
    rehearsals: dict[str, int]
    """`rehearse`: how many there were in this turn, by cause: `task`, `resumed`, `rejected`, `departed`,
    `stale`."""
    next_rehearsal_reason: str
    """`open_turn`, `review`, `sync`: why it is rehearsed, or the rest is again, a key of `rehearsals`; empty if it
    is not; `edited` if a person has edited the plan, which is reviewed again."""
    risks: dict[str, Risk]
    """`risk`: verdicts on calls of this turn's plans, by the digest of their evidence."""
    steps: list[Step]
    """`sync`: the turn's real calls with their outcomes."""
    supposed: list[str]
    """`open_turn`, `rehearse`: JSON Pointers into `start` to made-up values; lives as long as the thread."""
    real_digest: str
    """`sync`: digest of the task state, once reality has broken a rule of it; lives as long as the thread."""
    unreported: list[ExecutedCall]
    """`open_turn`, `recover`: real calls of turns that have no answer: they were interrupted, or the person said
    something else; `answer` reports them."""
    undoable: list[DoneWrite]
    """`open_turn`: the writes of the last turn that made any, if it was no undo, less what was undone since; `rehearse`
    how an undo takes them back; lives as long as the thread."""
    undoes: bool
    """`open_turn`: whether the turn's message asks to undo."""
    fidelity: dict[str, dict[str, int]]
    """`sync`, as long as the thread: tool to how many of its real calls there were, and how many drifted."""


def fold_record(old: AgentRecord, new: AgentRecord) -> AgentRecord:
    """Merge a write key by key (reducer): costs add up, the last write of any other key stands.

    No delta: LangGraph folds one from all that stands at a thread's checkpoints, also what another process wrote at one
    that both went on from. What decides on a real call may not rest on that.
    """
    return cast("AgentRecord", fold_bookkeeping(old, [new]))


class AgentChannels(TypedDict, total=False):
    """The agent's keys. `messages` and `task_state` live as long as the thread, the others for one turn."""

    messages: Annotated[list[AnyMessage], add_messages]
    """Caller; `answer` adds the answer."""
    task_state: Annotated[JsonObject, delta(replace, dict, SNAPSHOT_EVERY_TURNS)]
    """Caller; `rehearse` a model's suppositions before the first call, `sync` after each real call."""
    turn_start_state: Annotated[JsonObject, delta(replace, dict, SNAPSHOT_EVERY_TURNS)]
    """`open_turn`, `recover`, `rehearse`: the task state at the turn's start."""
    checklist: list[ChecklistItem] | None
    """Caller: conditions for the end of this turn; `rehearse` takes them."""
    rehearsal: Rehearsal
    """`rehearse`: the last one of the turn."""
    preview: Preview | None
    """`rehearse`; `review` if the plan was edited."""
    approval: Approval | None
    """`review`."""
    journal: Annotated[list[ExecutedCall], by_call]
    """`recover`, `call_tool`, `resolve_doubt`, `sync`; `open_turn` empties it."""
    execution: Execution
    """`answer`."""
    bookkeeping: Annotated[AgentRecord, fold_record]
    """All nodes: internal bookkeeping. A write holds only the keys that it changes."""


class AgentState(AgentChannels, AgentRecord, total=False):
    """The keys that the agent's nodes and routers read and write, bookkeeping included."""


def last_entry(state: AgentState) -> ExecutedCall | None:
    """The journal's latest entry."""
    journal = state.get("journal") or []
    return journal[-1] if journal else None


def calls_left(state: AgentState) -> list[PlannedCall]:
    """The approved plan's calls that have no entry in the journal, in order."""
    preview = state.get("preview")
    if not preview:
        return []
    # a call that was given up before the plan was made may have left its id to another one
    begun = {
        entry["call"]["id"]
        for entry in state.get("journal") or []
        if entry["status"] not in ("skipped", "refused") or entry["started_at"] >= preview["made_at"]
    }
    return [each for each in preview["calls"] if each["call"]["id"] not in begun]


def has_moved(state: AgentState) -> bool:
    """Return whether a new turn was begun, or the task state is not the turn's start with its real calls' changes."""
    return state["turn"] != human_turns(state["messages"]) or is_edited(state)


def is_edited(state: AgentState) -> bool:
    """Return whether the task state is not the turn's start with its real calls' changes."""
    try:
        expected = fold_patches(state["turn_start_state"], [booked_patch(step["outcome"]) for step in state["steps"]])
    except PatchConflict:
        return True
    return not json_equal(expected, state["task_state"])


def still_supposed(state: AgentState) -> list[str]:
    """Return the places of the task state that are still made up; an edited state is its editor's."""
    if state.get("turn_start_state") is None or is_edited(state):
        return []
    return find_untrusted(state["turn_start_state"], state.get("supposed") or [], state["steps"])


def booked_keys(state: AgentState) -> set[str]:
    """Return the claims of calls that the task state has, or that were left in doubt."""
    booked = {step["call"]["id"] for step in state.get("steps") or ()}
    done = [
        entry
        for entry in state.get("journal") or ()
        if entry["call"]["id"] in booked or (entry["status"] == "in_doubt" and "ended_at" in entry)
    ]
    return {entry["key"] for entry in (*done, *(state.get("unreported") or ())) if entry["key"]}


def as_attempt(state: AgentState) -> AttemptState:
    """Return the turn's real calls in the form of an attempt."""
    return {
        "turn": state["turn"] - 1,
        "number": 0,
        "before": state["turn_start_state"],
        "supposed": state.get("supposed") or [],
        "task_state": state["task_state"],
        "steps": state["steps"],
    }
