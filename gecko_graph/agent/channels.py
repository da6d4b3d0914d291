"""The agent's keys, how writes to one come together, and who owns each."""

# annotations are evaluated here: LangGraph evaluates those that are texts again at each compilation
from collections.abc import Sequence
from functools import cache, partial
from typing import Annotated

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from ..errors import PatchConflict
from ..models.ask import Where
from ..models.node import NodeScope
from ..state import Call, ChecklistItem, JsonObject, Rehearsal, Step
from ..tools import Toolkit
from ..values.difference import json_equal
from ..values.origins import find_untrusted
from ..values.patch import booked_patch, fold_patches
from ..world.channels import SNAPSHOT_EVERY_TURNS, Ledger, Lesson, book, delta, replace
from ..world.records import Approval, ExecutedCall, Execution, PlannedCall, Preview
from ..world.rung import RungRequest
from ..world.turn import human_turns


def by_call(old: Sequence[ExecutedCall], new: Sequence[ExecutedCall]) -> list[ExecutedCall]:
    """Reducer of the journal: a later entry of a call takes the place of the earlier one."""
    entries = {entry["call"]["id"]: entry for entry in [*old, *new]}
    return [*entries.values()]


def add_tallies(old: dict[str, dict[str, int]], new: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Reducer of counts by tool: sums."""
    counts = {tool: {**count} for tool, count in old.items()}
    for tool, count in new.items():
        counts[tool] = {key: counts.get(tool, {}).get(key, 0) + number for key, number in count.items()}
    return counts


class AgentOutput(TypedDict):
    """What a turn of the agent gives back."""

    messages: Annotated[list[AnyMessage], add_messages]
    rehearsal: Rehearsal
    execution: Execution
    task_state: JsonObject


class AgentState(TypedDict, total=False):
    """The agent's keys. `messages` and `task_state` live as long as the thread, the others for one turn."""

    messages: Annotated[list[AnyMessage], add_messages]
    """Caller; `answer` adds the answer."""
    task_state: Annotated[JsonObject, delta(replace, dict, SNAPSHOT_EVERY_TURNS)]
    """Caller; `rehearse` what a model supposed of it before the first call, `sync` after each real call."""
    checklist: list[ChecklistItem] | None
    """Caller: what must hold at the end of this turn; `rehearse` takes it."""
    turn: int
    """`open_turn`: human turns of the conversation."""
    turn_id: str
    """`open_turn`: id of the turn's human message."""
    found: list[JsonObject]
    """`open_turn`, `recover`: claims of real calls that are not in the state yet; the first is being booked."""
    turn_start_state: JsonObject
    """`open_turn`, `recover`, `rehearse`: the task state at the turn's start."""
    rehearsal: Rehearsal
    """`rehearse`: the last one of the turn."""
    rehearsals: dict[str, int]
    """`rehearse`: how many there were in this turn, by what led to them: `task`, `resumed`, `rejected`, `departed`,
    `stale`."""
    next_rehearsal_reason: str
    """`open_turn`, `review`, `sync`: why it is rehearsed, or the rest is again, a key of `rehearsals`; empty where it
    is not; `edited` where a person has edited the plan, which is reviewed again."""
    lesson: Lesson | None
    """`review`, `sync`: what the next rehearsal's planner learns."""
    preview: Preview | None
    """`rehearse`; `review` where the plan was edited."""
    approval: Approval | None
    """`review`."""
    journal: Annotated[list[ExecutedCall], by_call]
    """`recover`, `call_tool`, `resolve_doubt`, `sync`; `open_turn` empties it."""
    steps: list[Step]
    """`sync`: the turn's real calls with their outcomes."""
    supposed: list[str]
    """`open_turn`, `rehearse`: JSON Pointers into `start` of what a model made up; lives as long as the thread."""
    real_digest: str
    """`sync`: digest of the task state, once reality has broken a rule of it; lives as long as the thread."""
    ledger: Annotated[Ledger, book]
    """`rehearse` opens it; `sync` and `answer` book on it."""
    unreported: list[ExecutedCall]
    """`open_turn`, `recover`: real calls of turns that have no answer: they were interrupted, or the person said
    something else; `answer` reports them."""
    fidelity: Annotated[dict[str, dict[str, int]], add_tallies]
    """`sync`, as long as the thread: tool to how many of its real calls there were, and how many drifted."""
    execution: Execution
    """`answer`."""


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
    """Return where the task state still is what a model made up; an edited one is its editor's."""
    if "turn_start_state" not in state or is_edited(state):
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


def build_request(call: Call, state: AgentState, scope: NodeScope, toolkit: Toolkit) -> RungRequest:
    """Return the request for one real call, with the state that reality has left."""
    return RungRequest(
        tool=toolkit[call["name"]],
        call=call,
        state=state["task_state"],
        facts={},
        context=scope.context,
        where=Where(turn=state["turn"] - 1, question=state["ledger"]["asked"].get("state_updater", 0)),
        steps=state["steps"],
        untrusted=cache(
            partial(find_untrusted, state["turn_start_state"], state.get("supposed") or [], state["steps"])
        ),
    )
