"""The state of the two graphs: their keys, and the node that writes each."""

# annotations are evaluated here: LangGraph would evaluate texts again at each compilation
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypeAlias, cast, get_type_hints

from langchain_core.messages import AnyMessage, MessageLikeRepresentation
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
    Note,
    Outcome,
    Rehearsal,
    Step,
    Stop,
    SupposedFact,
    SupposedState,
    Taught,
    UnjudgedAttempt,
    Usage,
)
from .reducers import (
    SNAPSHOT_EVERY_TURNS,
    Grown,
    count_asked,
    delta,
    extend,
    fold_state,
    gather_facts,
    is_whole,
    replace,
)


class SemanticRecord(TypedDict):
    """A model's verdict on a call's arguments; equal arguments are asked about once per turn."""

    tool: str
    args: JsonObject
    problems: list[dict[str, Any]]
    """`argument`, `problem`, and from a decision model the probability `p` that the value fits."""
    unsure: NotRequired[list[Note]]
    """Notes `unclear` on arguments of which a decision model is unsure, with the probability."""
    failure: NotRequired[str]
    key: str
    """Digest of tool and arguments, for fast lookup among thousands of records."""


class Proposal(TypedDict):
    """A call with an outcome that is not committed yet."""

    call: Call
    outcome: Outcome


class Lesson(TypedDict):
    """The lesson for the next round's planner: the failed attempt and the judge's feedback."""

    number: int
    attempt_log: str
    feedback: str


class Ledger(TypedDict):
    """One turn's accounts; a later turn starts a new ledger."""

    turn: int
    started_at: NotRequired[float]
    """Unix time in seconds at which the turn began."""
    usage: Usage
    asked: dict[str, int]


def book(old: Ledger, new: Ledger) -> Ledger:
    """Merge ledgers (reducer): usage adds up within a turn; parallel attempts number questions from the same start."""
    if not old or new["turn"] > old["turn"]:
        return new
    asked = {role: max(old["asked"].get(role, 0), new["asked"].get(role, 0)) for role in {*old["asked"], *new["asked"]}}
    booked: Ledger = {"turn": old["turn"], "usage": add_usage(old["usage"], new["usage"]), "asked": asked}
    starts = [ledger["started_at"] for ledger in (old, new) if "started_at" in ledger]
    return booked | {"started_at": min(starts)} if starts else booked


class Continued(TypedDict):
    """The start of a rehearsal in the middle of a task, after some real calls."""

    steps: list[Step]
    """Real calls since the given task state, with outcomes; every attempt begins with them."""
    lesson: Lesson | None
    """The lesson for the first attempt's planner."""
    attempts: int
    """Number of the turn's earlier attempts; new ones are numbered from there."""
    supposed: NotRequired[list[str]]
    """JSON Pointers to the supposed places of the given task state."""
    search_words: NotRequired[list[str]]
    """A task, and the model's search words for its tools; it is not asked again."""
    real: NotRequired[bool]
    """Whether the given task state was accepted before or contains real changes; then violations do not refuse it."""


if TYPE_CHECKING:  # types for callers; Studio's schema has the parsed ones
    GivenMessages: TypeAlias = Sequence[MessageLikeRepresentation]
    GivenItems: TypeAlias = Sequence[Mapping[str, str] | ChecklistItem | str]
else:
    GivenMessages, GivenItems = list[AnyMessage], list[ChecklistItem]

TASK_STATE_HELP = "The data of the tools, as a JSON object: files, orders, bookings. Left out, a model makes one up."
CHECKLIST_HELP = "Conditions for the end: items with a description, or a check by rule. Left out, a model writes them."


class GeckoInput(TypedDict):
    """The input of a rehearsal. `messages` ends with the task: the last human turn."""

    messages: Annotated[GivenMessages, add_messages]
    task_state: NotRequired[Annotated[JsonObject, Field(description=TASK_STATE_HELP)]]
    checklist: NotRequired[Annotated[GivenItems, Field(description=CHECKLIST_HELP)]]
    continued: NotRequired[Annotated[Continued, SkipJsonSchema()]]


class GeckoOutput(TypedDict):
    """The output of a rehearsal."""

    messages: Annotated[list[AnyMessage], add_messages]
    rehearsal: Rehearsal
    task_state: JsonObject


class Bookkeeping(TypedDict, total=False):
    """The outer graph's bookkeeping, each key with its owner; `facts` last as long as the thread, the rest one turn."""

    ledger: Ledger
    """`bootstrapper` opens it; every node that asks a model books its usage."""
    supposed_state: SupposedState | None
    """`bootstrapper`: the `supposed` places with their values, before the turn's first attempt."""
    replayed: list[Step]
    """`bootstrapper`: the steps that every attempt begins with."""
    numbered_from: int
    """`bootstrapper`: number of the turn's attempts before this rehearsal."""
    real: bool
    """`bootstrapper`: True if every tool that reads runs for real."""
    items_failure: str
    """`bootstrapper`, `checklist`: why there is no checklist."""
    checklist_digest: str
    """`bootstrapper`: digest of the checklist that a parent graph gave."""
    offered_tools: list[str] | None
    """`bootstrapper`: names of the tools that fit the turn; None if all tools are shown."""
    search_words: list[str]
    """`bootstrapper`: a task, and the planner's own words by which tools were searched for it."""
    taught: list[Taught]
    """`finish` appends, as long as the thread: tools that served a need, if an index finds them."""
    round: int
    """`start_round`: 0 for the first."""
    lesson: Lesson | None
    """`start_round`: the last round's lesson."""
    start_digest: str
    """`start_round`: digest of the task state that every attempt of the round begins from."""
    attempts_at_once: int
    """`start_round`: number of parallel attempts."""
    attempts_to_judge: list[UnjudgedAttempt]
    """`attempt` appends, for `judge`; a new round clears it."""
    facts: dict[str, SupposedFact]
    """`attempt`: supposed facts, shared by all attempts."""
    argument_verdicts: list[SemanticRecord]
    """`attempt` appends semantic verdicts."""
    chosen: int
    """`decide`: number of the best attempt so far."""
    is_over: bool
    """`decide`: True if no further round follows."""


def fold_bookkeeping(old: Bookkeeping, writes: Sequence[Bookkeeping]) -> Bookkeeping:
    """Merge writes key by key (reducer): usage and facts add up, lists grow, other keys are replaced.

    Used for the attempt's bookkeeping, too.
    """
    folded: dict[str, Any] = {**old}
    for write in writes:
        if "round" in write:
            folded["attempts_to_judge"] = []
        for key, value in write.items():
            folded[key] = _MERGED[key](folded[key], value) if key in _MERGED and key in folded else value
    return cast("Bookkeeping", folded)


_MERGED: Mapping[str, Callable[[Any, Any], Any]] = {
    "ledger": book,
    "facts": lambda old, new: gather_facts(old, [new]),
    "attempts_to_judge": lambda old, new: extend(old, [new]),
    "argument_verdicts": lambda old, new: extend(old, [new]),
    "asked": count_asked,
    "usage": add_usage,
}


class GeckoState(TypedDict, total=False):
    """The outer graph's keys, each with its owner.

    `messages`, `task_state` and `supposed` live as long as the thread, the others for one turn.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    """Caller; `finish` adds the answer."""
    task_state: Annotated[JsonObject, delta(replace, dict, SNAPSHOT_EVERY_TURNS)]
    """Caller, `bootstrapper`; `finish` writes the state of an accepted attempt."""
    supposed: list[str]
    """`bootstrapper`, `finish`: JSON Pointers into `task_state` to made-up values."""
    checklist: Annotated[list[ChecklistItem], EphemeralValue(list)]
    """Caller: conditions for the end of this turn, gone after the first superstep."""
    continued: Annotated[Continued, EphemeralValue(dict)]
    """`create_gecko_agent`: the turn's real calls so far, gone after the first superstep."""
    items: list[ChecklistItem] | None
    """`bootstrapper`: the given checklist, or None; then `checklist`: the model's, empty if there is none; None if
    there is nothing to judge by it."""
    attempts: Annotated[list[Attempt], delta(extend, list, SNAPSHOT_EVERY_TURNS, begins=lambda write: False)]
    """`judge` appends; `bootstrapper` clears."""
    number: int
    """Number of an attempt among parallel ones; only in what is sent to it."""
    bookkeeping: Annotated[Bookkeeping, delta(fold_bookkeeping, dict, SNAPSHOT_EVERY_TURNS, begins=lambda write: False)]
    """All nodes: internal keys. A write contains only the keys that it changes."""
    rehearsal: Rehearsal
    """`finish`."""


class AttemptRecord(TypedDict, total=False):
    """The attempt graph's bookkeeping. The first group is its input, written once."""

    number: int
    turn: int
    task: str
    start_digest: str
    before: JsonObject
    """The task state at the attempt's start."""
    conversation: list[AnyMessage]
    lesson: Lesson | None
    supposed: list[str]
    """JSON Pointers into `before` to made-up values."""
    replayed: list[Step]
    """Real steps before the attempt."""
    ledger_turn: int
    spent_tokens: int
    """Tokens of the turn before the attempt."""
    attempts_at_once: int
    """Number of parallel attempts."""
    deadline: float | None
    """Unix time in seconds at which the turn's time is over."""

    facts: dict[str, SupposedFact]
    """Input; `state_updater` adds the supposed facts of committed answers."""
    argument_verdicts: list[SemanticRecord]
    """Input; `validator` appends."""
    asked: dict[str, int]
    """Input; every node that asks a model adds."""
    usage: Usage
    """Every node that asks a model adds."""
    offered_tools: list[str] | None
    """Input: the tools that fit the turn, and those called in it; then `planner`: those that it finds and calls."""
    gate_note: str
    """`planner`: the tools that the task state does not admit, as last reported to it."""
    taught: list[Taught]
    """Input: tools that served a need in the thread."""
    searches: int
    """`planner`: searches for tools, each answered by a message of the trace."""
    stop_reason: str
    """`planner`: the message of `stop`, once the attempt is over."""
    proposals: list[Proposal]
    """`simulator`, then `state_updater`, which commits them."""


class AttemptChannels(TypedDict, total=False):
    """The attempt graph's keys; LangGraph visits each in every superstep, so there are few."""

    task_state: Annotated[JsonObject, delta(fold_state, dict, begins=is_whole)]
    """`begin`, `state_updater`: patches, folded."""
    trace: Annotated[list[AnyMessage], delta(extend, list)]
    """`planner`, `validator`, `state_updater`: the planner's messages since the conversation."""
    steps: Annotated[list[Step], delta(extend, list)]
    """`validator` (refused calls), `state_updater` (answered calls)."""
    pending: list[Call]
    """`planner`, then `validator` (calls that passed), then `simulator` (calls left)."""
    answer: str
    """`planner`."""
    stop: Stop
    """`planner`."""
    bookkeeping: Annotated[AttemptRecord, delta(fold_bookkeeping, dict, begins=lambda write: "before" in write)]
    """Input, then all nodes: internal keys. A write contains only the keys that it changes."""


class AttemptState(AttemptChannels, AttemptRecord, total=False):
    """All keys that an attempt's nodes read and write, bookkeeping included."""


class Pending(TypedDict):
    """The keys for the attempt's routers; a router gets only the keys of its annotation, and each costs time."""

    pending: list[Call]
    bookkeeping: NotRequired[AttemptRecord]


def apply_update(state: AttemptState, update: Mapping[str, Any]) -> AttemptState:
    """Return the attempt's state after a node's update, folded as in the graph; keys with a reducer must exist.

    An empty write adds nothing to these, except that an object replaces the task state.
    """
    reducers, news = _reducers(), dict[str, Any](state)
    for key, write in update.items():
        if key not in reducers or (key == "task_state" and isinstance(write, dict)):
            news[key] = write
        elif write:
            news[key] = old.grow(write) if isinstance(old := news[key], Grown) else reducers[key](old, write)
    return news  # type: ignore[return-value]


@cache
def _reducers() -> Mapping[str, Callable[[Any, Any], Any]]:
    hints = get_type_hints(AttemptChannels, include_extras=True)
    channels = {key: hint.__metadata__[0] for key, hint in hints.items() if hasattr(hint, "__metadata__")}
    return {**_MERGED, **{key: partial(_fold, channel.reducer) for key, channel in channels.items()}}


def _fold(reducer: Callable[[Any, Sequence[Any]], Any], old: Any, write: Any) -> Any:
    return reducer(old, [write])
