"""The two graphs' state: which keys there are, how writes to one key are merged, and which node owns each.

`delta` keeps the big ones out of every checkpoint: a saver stores what a node wrote, not the whole value every time.
"""

# annotations are evaluated here: LangGraph evaluates those that are texts again at each compilation
from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from typing import Annotated, Any, NotRequired, Self, SupportsIndex, TypeVar, cast, get_type_hints

from langchain_core.messages import AnyMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.channels.ephemeral_value import EphemeralValue
from langgraph.graph.message import add_messages
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypedDict

from ..models.usage import add_usage
from ..state import (
    Attempt,
    Call,
    ChecklistItem,
    JsonObject,
    Outcome,
    Patch,
    Rehearsal,
    Step,
    Stop,
    SupposedFact,
    SupposedState,
    UnjudgedAttempt,
    Usage,
)
from ..values.patch import fold_patches
from .facts import merge_facts

SNAPSHOT_EVERY_TURNS = 10
"""Writes of the outer graph between two whole values: a turn writes few, but whole states; a read fetches them all."""

SNAPSHOT_EVERY_CALLS = 400
"""Writes of an attempt between two whole values: it writes a small part at each call, and whole values of long attempts
are what makes a checkpoint large (1,000 calls: 41 MB at 50, 20 MB at 400, and read three times as fast)."""

Item = TypeVar("Item")


class _SharedDelta(DeltaChannel[Any]):
    """A DeltaChannel whose copies share its value: no reducer changes one in place.

    LangGraph copies all channels for each router, which for long lists takes longer than all else.
    """

    def __init__(self, reducer: Any, typ: Any = None, *, snapshot_frequency: int) -> None:
        super().__init__(reducer, typ, snapshot_frequency=snapshot_frequency)
        if reducer is replace:  # a whole value: an empty one that is given is not one that is missing
            self.typ = type(None)

    def copy(self) -> Self:
        new = type(self)(self.reducer, self.typ, snapshot_frequency=self.snapshot_frequency)
        new.key, new.value = self.key, self.value
        return new


def delta(
    reducer: Callable[[Any, Sequence[Any]], Any], kind: type, every: int = SNAPSHOT_EVERY_CALLS
) -> DeltaChannel[Any]:
    """Return a channel that is checkpointed as its writes and folded on read.

    `DeltaChannel` is beta: this is the one place that names it, so that a plain channel can take its place.
    """
    return _SharedDelta(reducer, kind, snapshot_frequency=every)


def extend(old: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    """Append all writes in their order (reducer of lists)."""
    return _Extended(old, writes) if any(writes) else old


class _Extended(list[Any]):
    """A list that grew from another and took over its index for `find`; only one list owns an index.

    Outside of a process it is a plain list.
    """

    __slots__ = ("_indexes",)

    def __init__(self, old: list[Any], writes: Sequence[list[Any]]) -> None:
        super().__init__(old)
        for write in writes:
            self += write
        self._indexes = [old.take_index()] if isinstance(old, _Extended) else []

    def take_index(self) -> tuple[dict[str, Any], int]:
        """Take the items by key, and their number; no other list holds them, since two runs may extend one list."""
        try:
            return self._indexes.pop()
        except IndexError:
            return {}, 0

    def first(self, wanted: str, key: Callable[[Any], str]) -> Any:
        index, count = self.take_index()
        for item in self[count:]:
            index.setdefault(key(item), item)
        self._indexes.append((index, len(self)))
        return index.get(wanted)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[type, tuple[list[Any]]]:
        return list, (list(self),)


def find(items: Sequence[Item], wanted: str, key: Callable[[Item], str]) -> Item | None:
    """Return the first item with this key, of which a channel's list has one kind; each item is read once."""
    if isinstance(items, _Extended):
        return cast("Item | None", items.first(wanted, key))
    return next((item for item in items if key(item) == wanted), None)


def replace(old: Any, writes: Sequence[Any]) -> Any:
    """Return the last write (reducer of whole values)."""
    return writes[-1] if writes else old


def gather_facts(
    old: Mapping[str, SupposedFact], writes: Sequence[Mapping[str, SupposedFact]]
) -> dict[str, SupposedFact]:
    """Merge supposed facts; the first of a key stays (reducer)."""
    return reduce(merge_facts, writes, dict(old))


def fold_state(old: JsonObject, writes: Sequence[Patch | JsonObject]) -> JsonObject:
    """Apply patches to an attempt's task state in their order; an object is the whole state (reducer).

    Nodes write patches; an edit of a paused attempt, as in Studio, writes the whole state.
    """
    for write in writes:
        old = write if isinstance(write, dict) else fold_patches(old, [write])
    return old


def count_asked(old: dict[str, int], new: dict[str, int]) -> dict[str, int]:
    """Sum the questions asked so far, by role (reducer)."""
    return {role: old.get(role, 0) + new.get(role, 0) for role in {*old, *new}}


class SemanticRecord(TypedDict):
    """A model's reply on a call's arguments; the same arguments are asked about once in a turn."""

    tool: str
    args: JsonObject
    problems: list[dict[str, str]]
    failure: NotRequired[str]
    key: str
    """Digest of tool and arguments: a long attempt has thousands of records, and each call is looked up among them."""


class Proposal(TypedDict):
    """A call with an outcome that is not committed yet."""

    call: Call
    outcome: Outcome


class Lesson(TypedDict):
    """What the next round's planner learns of the last one: the failed attempt and the judge's feedback."""

    number: int
    attempt_log: str
    feedback: str


class Ledger(TypedDict):
    """One turn's accounts. A higher turn opens a new ledger."""

    turn: int
    started_at: NotRequired[float]
    """Unix time in seconds at which the turn began."""
    usage: Usage
    asked: dict[str, int]


def book(old: Ledger, new: Ledger) -> Ledger:
    """Merge ledgers (reducer): costs add up within a turn; parallel attempts number questions from the same start."""
    if not old or new["turn"] > old["turn"]:
        return new
    asked = {role: max(old["asked"].get(role, 0), new["asked"].get(role, 0)) for role in {*old["asked"], *new["asked"]}}
    booked: Ledger = {"turn": old["turn"], "usage": add_usage(old["usage"], new["usage"]), "asked": asked}
    starts = [ledger["started_at"] for ledger in (old, new) if "started_at" in ledger]
    return booked | {"started_at": min(starts)} if starts else booked


class Continued(TypedDict):
    """What a rehearsal goes on from: a part of the task that was really carried out."""

    steps: list[Step]
    """Calls that were really made since the given task state, with their outcomes: every attempt begins with them."""
    lesson: Lesson | None
    """What the first attempt's planner learns from it."""
    attempts: int
    """How many attempts the turn has had: theirs are numbered on from there."""
    supposed: NotRequired[list[str]]
    """JSON Pointers to what is only supposed of the given task state."""
    real: NotRequired[bool]
    """True where the given task state was accepted before, or reality has left it: what it breaks is not refused."""


TASK_STATE_HELP = "What the tools act on, as a JSON object: files, orders, bookings. Left out, a model makes one up."
CHECKLIST_HELP = "What must hold at the end: items with a description, or a check by rule. Left out, a model writes it."


class GeckoInput(TypedDict):
    """The input of a rehearsal. `messages` ends with the task: the last human turn."""

    messages: Annotated[list[AnyMessage], add_messages]
    task_state: NotRequired[Annotated[JsonObject, Field(description=TASK_STATE_HELP)]]
    checklist: NotRequired[Annotated[list[ChecklistItem], Field(description=CHECKLIST_HELP)]]
    continued: NotRequired[Annotated[Continued, SkipJsonSchema()]]


class GeckoOutput(TypedDict):
    """The output of a rehearsal."""

    messages: Annotated[list[AnyMessage], add_messages]
    rehearsal: Rehearsal
    task_state: JsonObject


class GeckoState(TypedDict, total=False):
    """The outer graph's keys, each with its owner.

    `messages`, `task_state` and `supposed` live as long as the thread, the others for one turn.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    """Caller; `finish` adds the answer."""
    task_state: Annotated[JsonObject, delta(replace, dict, SNAPSHOT_EVERY_TURNS)]
    """Caller, `bootstrapper`; `finish` writes the state of an accepted attempt."""
    supposed: list[str]
    """`bootstrapper`, `finish`: JSON Pointers into `task_state` of what a model made up."""
    supposed_state: SupposedState | None
    """`bootstrapper`: the same with its values, as it was before the turn's first attempt."""
    checklist: Annotated[list[ChecklistItem], EphemeralValue(list)]
    """Caller: what must hold at the end of this turn, gone after the first superstep."""
    continued: Annotated[Continued, EphemeralValue(dict)]
    """`create_gecko_agent`: what the turn has really done so far, gone after the first superstep."""
    replayed: list[Step]
    """`bootstrapper`: the steps that every attempt begins with."""
    numbered_from: int
    """`bootstrapper`: attempts of the turn before this rehearsal."""
    real: bool
    """`bootstrapper`: True where every tool that reads runs for real."""
    items: list[ChecklistItem] | None
    """`bootstrapper`: the given checklist, or None; then `checklist`: the model's, empty where there is none; None
    where nothing is to be judged by it."""
    items_failure: str
    """`bootstrapper`, `checklist`: why there is no checklist."""
    checklist_digest: str
    """`bootstrapper`: digest of the checklist that a parent graph gave."""
    ledger: Annotated[Ledger, book]
    """`bootstrapper` opens it; every node that asks a model books on it."""
    offered_tools: list[str] | None
    """`bootstrapper`: names of the tools that fit the turn; None where all tools are shown."""
    round: int
    """`start_round`: 0 for the first."""
    lesson: Lesson | None
    """`start_round`: what the last round teaches."""
    start_digest: str
    """`start_round`: digest of the task state that every attempt of the round begins from."""
    attempts_at_once: int
    """`start_round`: how many attempts run at once."""
    is_over: bool
    """`decide`: True where no further round follows."""
    number: int
    """Of the attempt, where several run at once; only in what is sent to them."""
    attempts_to_judge: Annotated[list[UnjudgedAttempt], delta(extend, list, SNAPSHOT_EVERY_TURNS)]
    """`attempt`: the attempts of this round, for `judge`; `start_round` clears."""
    attempts: Annotated[list[Attempt], delta(extend, list, SNAPSHOT_EVERY_TURNS)]
    """`judge` appends; `bootstrapper` clears."""
    facts: Annotated[dict[str, SupposedFact], delta(gather_facts, dict, SNAPSHOT_EVERY_TURNS)]
    """`attempt`: supposed facts, shared by all attempts."""
    argument_verdicts: Annotated[list[SemanticRecord], delta(extend, list, SNAPSHOT_EVERY_TURNS)]
    """`attempt`: semantic verdicts; `bootstrapper` clears."""
    chosen: int
    """`decide`: number of the best attempt so far."""
    rehearsal: Rehearsal
    """`finish`."""


class AttemptState(TypedDict, total=False):
    """The attempt graph's keys. The first group is its input, written once."""

    number: int
    turn: int
    task: str
    start_digest: str
    before: Annotated[JsonObject, delta(replace, dict)]
    """The task state at the attempt's start."""
    conversation: Annotated[list[AnyMessage], delta(extend, list)]
    lesson: Lesson | None
    supposed: list[str]
    """JSON Pointers into `before` of what a model made up."""
    replayed: list[Step]
    """Steps that were really made before the attempt."""
    ledger_turn: int
    spent_tokens: int
    """Of the turn, before the attempt."""
    attempts_at_once: int
    """How many attempts run at once."""
    deadline: float | None
    """Unix time in seconds at which the turn's time is over."""

    task_state: Annotated[JsonObject, delta(fold_state, dict)]
    """`begin`, `state_updater`: patches, folded."""
    trace: Annotated[list[AnyMessage], delta(extend, list)]
    """`planner`, `validator`, `state_updater`: what the planner has seen since the conversation."""
    steps: Annotated[list[Step], delta(extend, list)]
    """`validator` (refused calls), `state_updater` (answered calls)."""
    pending: list[Call]
    """`planner`, then `validator` (calls that passed), then `simulator` (calls left)."""
    proposals: list[Proposal]
    """`simulator`."""
    facts: Annotated[dict[str, SupposedFact], delta(gather_facts, dict)]
    """Input; `state_updater`: what committed answers suppose."""
    argument_verdicts: Annotated[list[SemanticRecord], delta(extend, list)]
    """Input; `validator`."""
    asked: Annotated[dict[str, int], count_asked]
    """Input; every node that asks a model."""
    usage: Annotated[Usage, add_usage]
    """Every node that asks a model."""
    offered_tools: list[str] | None
    """Input: the tools that fit the turn, and those that it has called; then `planner`: what it finds and calls."""
    gate_note: str
    """`planner`: what it was last told that the task state does not admit."""
    searches: int
    """`planner`: searches for tools, each answered by a message of the trace."""
    searching: Annotated[bool, EphemeralValue(bool)]
    """`planner`: True after a message that only searched, gone after the next superstep."""
    answer: str
    """`planner`."""
    stop_reason: str
    """`planner`."""
    stop: Stop
    """`planner`."""


class Pending(TypedDict):
    """What the attempt's routers read: a router is passed the keys of its annotation, and each costs time."""

    pending: list[Call]
    searching: NotRequired[bool]


class Over(TypedDict):
    """What the router after `decide` reads."""

    is_over: bool


def apply_update(state: AttemptState, update: Mapping[str, Any]) -> AttemptState:
    """Return the attempt's state after a node's update, folded as in the graph; keys with a reducer must be there."""
    values = cast("dict[str, Any]", state)
    news = {key: _fold(values[key], write, key) if key in _reducers() else write for key, write in update.items()}
    return cast("AttemptState", {**values, **news})


@cache
def _reducers() -> dict[str, Any]:
    hints = get_type_hints(AttemptState, include_extras=True)
    return {key: hint.__metadata__[0] for key, hint in hints.items() if hasattr(hint, "__metadata__")}


def _fold(old: Any, write: Any, key: str) -> Any:
    reducer = _reducers()[key]
    return reducer.reducer(old, [write]) if isinstance(reducer, DeltaChannel) else reducer(old, write)
