"""Records and channels: the data that is checkpointed, streamed and returned.

All of it is plain JSON and messages, so that every checkpointer can store it. The keys are public: renaming one breaks
the resumption of stored runs. Records carry `v`, their version.
"""

# annotations are evaluated here, because LangGraph re-evaluates textual ones at each compilation
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, get_args

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

RUNTIME = "runtime_state"
"""The state key of runtime variables: cwd, session, current user (paper, appendix A.5: flat)."""
VERSION = 1

LOST = "gecko_lost"
"""The only key of the object that replaces a value whose checkpoints are missing; its value names the graph's key."""

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list or dict with text keys."""

JsonObject: TypeAlias = dict[str, Any]

Operation: TypeAlias = dict[str, Any]
"""One operation of a JSON Patch (RFC 6902)."""

Patch: TypeAlias = list[Operation]

_Core = Literal["planner", "validator", "simulator", "state_updater", "bootstrapper", "checklist", "judge", "converter"]
_Training = Literal["label_judge", "sample_writer", "variant_writer", "tool_writer", "dialogue_planner"]
Role = Literal[
    _Core, "searcher", "reasoner", "reranker", "user", "auditor", "claim_judge", "contract_writer", "risk", _Training
]

ROLES: tuple[Role, ...] = get_args(Role)

VerdictStatus = Literal["accepted", "needs_user", "failed"]
ItemStatus = Literal["success", "failed", "unknown", "not_asked_for"]
"""`not_asked_for`: the judge has struck an item that the task does not require; it does not count in the score."""
_Stop = Literal["answered", "empty_reply", "planner_failed", "max_steps", "token_budget", "time_budget"]
StopCode = Literal[_Stop, "repeated_calls", "broken", "reasoner_failed", "no_candidate"]
_Before = Literal["hallucinated_value", "schema", "state_dependency", "policy"]
Category = Literal[_Before, "empty", "semantic", "state_update"]
"""Why a call or its result was refused (ToolGate, table 3); those of `_Before` before it ran. `policy` is ours."""
CallStatus = Literal["ok", "error"]


class Call(TypedDict):
    """A tool call as the planner made it."""

    id: str
    name: str
    args: JsonObject
    malformed: NotRequired[str]
    """The model's text instead of arguments, if it is not a JSON object; `args` is then empty."""


class Complaint(TypedDict):
    """Why a call was refused before it ran. Never contains the right value (paper, appendix A.3)."""

    tool: str
    path: str
    """JSON Pointer to the argument: `/items/0/quantity`; "" for the whole object."""
    expected: str
    got: str
    source: Literal["rule", "model"]


class PassedRung(TypedDict):
    """A rung that could not answer, and why."""

    rung: str
    reason: str


class Violation(TypedDict):
    """A contract clause that a call violates."""

    clause: str
    """The clause's `id`, or if it has none its place: `requires[2]`."""
    kind: str
    """`policy`, `tool` or `sense`."""
    part: Literal["requires", "ensures", "invariant", "state"]
    error: Json
    evidence: NotRequired[JsonObject]
    """For a learned clause: its `check`, and its evidence."""


NoteKind = Literal[
    "unclear", "undocumented", "may_refuse", "overruled", "refused", "race", "stale", "unsimulated", "unasked",
    "made_up", "unsupported", "simulated", "ambiguous", "unanswered",
]  # fmt: skip


class Note(TypedDict):
    """One doubt about a record."""

    kind: NoteKind
    where: str
    """JSON Pointer (RFC 6901) to the place in question, "" for the whole; the kind's `inside` names the document."""
    text: str
    """A sentence for people and models."""
    data: NotRequired[dict[str, Any]]
    """Machine-readable parts, by kind; in a verdict also the `call` (its id) and the `tool`."""


class Filled(TypedDict, total=False):
    """The parts of a result that a contract left open and another rung filled."""

    rung: str
    invented: bool
    places: dict[str, str]
    """JSON Pointers to those places in the result, each with the reason; "" for the whole or for an error's message."""


class Outcome(TypedDict):
    status: CallStatus
    result: Json
    patch: Patch | None
    """The change of the task state; None if no rung proposed one."""
    rung: str
    simulated: bool
    passed: list[PassedRung]
    invented: NotRequired[bool]
    """True if a rung invented the result."""
    supposed: NotRequired[bool]
    """True if a model described the change, whichever rung answered."""
    notes: NotRequired[list[Note]]
    """Doubts about the answer: `unclear`, `undocumented`, `may_refuse`, `overruled`, `refused`, `race`, `stale`."""
    undecided: NotRequired[bool]
    """True for a real call's error that is no refusal: the service was busy, or the call may have taken effect."""
    violations: NotRequired[list[Violation]]
    """All clauses that the call violates; the first one's error is the call's."""
    category: NotRequired[Category]
    """The kind of refusal: for a result that was not committed, or a precondition in `create_toolgate`."""
    observed: NotRequired[Patch]
    """The parts of the task state that a real read has shown, by its contract's `observes`; not a change."""
    filled: NotRequired[Filled]
    """The parts that the contract left open, and the rung that filled them."""
    media: NotRequired[list[JsonObject]]
    """References to images, sounds and files that a real tool returned (`values/media.py`)."""
    evidence: NotRequired[str]
    """For a contract's answer based on evidence: `established`, `derived`, `proposed`, `refuted` or `unknown`."""
    http: NotRequired[JsonObject]
    """The `status` and `headers` that a contract sets for the answer over HTTP."""


class Step(TypedDict):
    """One call with its complaints or its outcome."""

    v: int
    call: Call
    complaints: NotRequired[list[Complaint]]
    outcome: NotRequired[Outcome]


class ChecklistItem(TypedDict):
    """A condition on the end of the task."""

    id: str
    description: str
    check: NotRequired[str]
    """An expression over `state`, `before`, `calls` and `answer` that decides the item without a model."""
    by: NotRequired[Literal["model"]]
    """Set if a model wrote the item: the judge may strike it, but never a caller's item."""


class JudgedItem(TypedDict):
    id: str
    description: str
    status: ItemStatus | Literal["unsure"]
    """`unsure`: a decision model's probability is within the band, or missing; the user decides."""
    reason: str
    by: Literal["rule", "model", "nobody"]
    p: NotRequired[float]
    """A decision model's probability that the condition holds, from 0 to 1."""


Origin = TypedDict(
    "Origin",
    {
        "kind": Literal["stated", "derived", "chosen"],
        "from": Literal["task", "conversation", "state", "result", "planner"],
        "step": NotRequired[int],
        "path": str,
        "rung": NotRequired[str],
        "attempt": NotRequired[int],
        "shown": NotRequired[str],
        "turn": NotRequired[int],
        "call": NotRequired[str],
        "tool": NotRequired[str],
    },
)
"""The source of a value.

`path` is, depending on `from`, the JSON Pointer into the result of a `step` (number of the call in the attempt, from
1), the JSON Pointer into the task state (`step` is the call that wrote it), or a message's id. A *stated* value occurs
there, a *derived* one follows by the one operation in `shown` (`29 = 2 × 14.5`), and a *chosen* one has no real source:
it comes from the step's rung, the model that wrote that place of the state, another agent, or the planner. `attempt` is
set for a step of an earlier attempt. For a place of the state (`blame`), turn, call and tool are named too.
"""

Origins: TypeAlias = dict[str, dict[str, list[Origin]]]
"""Call id to JSON Pointer of an argument to the origins of its value: all of them if several contain it."""


class Verdict(TypedDict):
    """The judge's verdict on an attempt (paper, section 3.4 and appendix A.6)."""

    status: VerdictStatus
    score: float
    items: list[JudgedItem]
    feedback: str
    """The judge's feedback, also on acceptance; after a failure it is shown to the next attempt's planner."""
    notes: NotRequired[list[Note]]
    """Doubts about the plan and the answer, also on acceptance; a note on a call names the call."""
    rests_on: NotRequired[dict[str, int]]
    """Number of the plan's calls by the branch of contracts that they rely on.

    Branches are written, established, proposed, refuted or unknown (another rung answered or filled a part). Set only
    if a contract has learned or open branches.
    """


class RoleUsage(TypedDict):
    """One role's usage. `cost` is in US dollars, None if a price is unknown.

    `estimated` is set if recorded replies are among the calls: their tokens are estimated as a quarter of the
    characters.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    estimated: NotRequired[bool]


Usage: TypeAlias = dict[str, RoleUsage]


class Taught(TypedDict):
    """A need in somebody's words, and a tool that served it."""

    need: str
    tool: str


class SupposedFact(TypedDict):
    """An invented answer of a simulated read; shared by the attempts of a turn, never part of the task state."""

    tool: str
    args: JsonObject
    status: CallStatus
    result: Json
    rung: str
    digest: str
    """Digest of the task state at the time of the answer."""
    undecided: NotRequired[bool]
    """As in `Outcome`, for a real result."""
    notes: NotRequired[list[Note]]
    """As in `Outcome`: `may_refuse`, for a tool of unknown effect."""


class SupposedState(TypedDict):
    """The made-up parts of the state from which the turn's attempts start."""

    paths: list[str]
    """JSON Pointers into the task state."""
    state: JsonObject
    """The root keys that are made up, with their values before the first attempt."""
    notes: NotRequired[list[Note]]
    """`unclear`: why contracts cannot be evaluated on the state, even after a repair."""


class Stop(TypedDict):
    """Why an attempt ended, for programs and for people."""

    code: StopCode
    message: str


class UnjudgedAttempt(TypedDict):
    """An attempt before its verdict: from one start state to the planner's final answer."""

    v: int
    number: int
    start_digest: str
    end_digest: str
    steps: list[Step]
    answer: str
    change: Patch
    """The net change of the task state, from its known start (`observed`) to the attempt's end."""
    observed: NotRequired[Patch]
    """The parts of the start state that real reads have shown: facts, not changes."""
    usage: Usage
    stop_reason: str
    """`answered`, or the message of `stop` if the attempt ended before the planner answered."""
    stop: NotRequired[Stop]


class Attempt(UnjudgedAttempt):
    """An attempt with its verdict; `usage` includes the judge's."""

    verdict: Verdict
    origins: NotRequired[Origins]
    """Where the values of the attempt's plan come from."""


class Rehearsal(TypedDict):
    """The result of a rehearsal: one record, so that embedding cannot clash with a parent's keys."""

    v: int
    plan: list[Call]
    """The calls of the chosen attempt whose outcome is ok, in order."""
    verdict: Verdict
    answer: str
    attempts: list[Attempt]
    checklist: NotRequired[list[ChecklistItem]]
    chosen: int
    """Number of the attempt whose plan, verdict and answer these are."""
    usage: Usage
    supposed_state: NotRequired[SupposedState]
    """The parts of the state that were made up before the first attempt, if any."""
    search_words: NotRequired[list[str]]
    """The task, and the words that a model used to search tools."""
    origins: NotRequired[Origins]
    """Where the values of the plan come from."""
    changes: NotRequired[list[str]]
    """The changes of the task state by an accepted attempt, one line each: `replace /fuel 5.0 → 45.0`."""
    observed: NotRequired[Patch]
    """The observations of an accepted attempt's real reads; also written back to the task state."""


class RehearsalState(TypedDict):
    """Mixin for the state of a parent graph that embeds the rehearsal.

    A parent that sets its own conditions adds `checklist: list[ChecklistItem]` (a plain text is an item too) and writes
    it before each rehearsal; otherwise a model writes the checklist. `messages` and `task_state` carry over to the next
    rehearsal. `rehearsal` is the last one. A parent that runs several at once, for example with `Send`, calls the graph
    in a node of its own and writes the results to a key with a reducer.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    rehearsal: Rehearsal
    task_state: JsonObject
