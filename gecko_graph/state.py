"""Records and channels: what is checkpointed, streamed and returned.

Everything here is plain JSON and messages, so that every checkpointer can keep it. The keys are public: a rename breaks
the resume of somebody's run. Records carry `v`, their version.
"""

# annotations are evaluated here: LangGraph evaluates those that are texts again at each compilation
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, get_args

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

RUNTIME = "runtime_state"
"""The key under which runtime variables stand: cwd, session, current user (paper, appendix A.5: flat)."""
VERSION = 1

LOST = "gecko_lost"
"""The one key of what stands in the place of a value whose checkpoints are missing: the key's name in the graph."""

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
"""`not_asked_for`: the judge has struck an item that the task does not ask for; it does not count in the score."""
_Stop = Literal["answered", "empty_reply", "planner_failed", "max_steps", "token_budget", "time_budget"]
StopCode = Literal[_Stop, "repeated_calls", "broken", "reasoner_failed", "no_candidate"]
_Before = Literal["hallucinated_value", "schema", "state_dependency", "policy"]
Category = Literal[_Before, "empty", "semantic", "state_update"]
"""Why a call or its result was refused (ToolGate, table 3): the first before it runs, `policy` ours; others after."""
CallStatus = Literal["ok", "error"]


class Call(TypedDict):
    """A tool call as the planner made it."""

    id: str
    name: str
    args: JsonObject
    malformed: NotRequired[str]
    """The model's text in the place of arguments, if it is not a JSON object; `args` is then empty."""


class Complaint(TypedDict):
    """Why a call was refused before it ran. Never holds the right value (paper, appendix A.3)."""

    tool: str
    path: str
    """JSON Pointer to the argument: `/items/0/quantity`; empty for the whole object."""
    expected: str
    got: str
    source: Literal["rule", "model"]


class PassedRung(TypedDict):
    """A rung that could not answer, and why."""

    rung: str
    reason: str


class Violation(TypedDict):
    """A clause that a call breaks."""

    clause: str
    """The clause's `id`; without one its place, `requires[2]`."""
    kind: str
    """`policy`, `tool` or `sense`."""
    part: Literal["requires", "ensures", "invariant", "state"]
    error: Json
    evidence: NotRequired[JsonObject]
    """Of a learned clause: its `check`, and its evidence."""


NoteKind = Literal[
    "unclear", "undocumented", "may_refuse", "overruled", "refused", "race", "stale", "unsimulated", "unasked",
    "made_up", "unsupported", "simulated", "ambiguous", "unanswered",
]  # fmt: skip


class Note(TypedDict):
    """One doubt about a record."""

    kind: NoteKind
    where: str
    """JSON Pointer (RFC 6901) to the place in question, "" for all of it; of which value says the kind's `inside`."""
    text: str
    """A sentence for people and models."""
    data: NotRequired[dict[str, Any]]
    """The parts of it that code reads: those of its kind, and in a verdict the `call`, by its id, and the `tool`."""


class Filled(TypedDict, total=False):
    """The parts that a contract has left open and another rung has filled."""

    rung: str
    invented: bool
    places: dict[str, str]
    """The places in the result as JSON Pointers, "" for all of it or for an error's message, each with the reason."""


class Outcome(TypedDict):
    """The outcome of a call."""

    status: CallStatus
    result: Json
    patch: Patch | None
    """The change of the task state; None if no rung has proposed one."""
    rung: str
    simulated: bool
    passed: list[PassedRung]
    invented: NotRequired[bool]
    """True if a rung made it up."""
    supposed: NotRequired[bool]
    """True if a model has described the change, whoever answered."""
    notes: NotRequired[list[Note]]
    """Doubts about the answer: `unclear`, `undocumented`, `may_refuse`, `overruled`, `refused`, `race`, `stale`."""
    undecided: NotRequired[bool]
    """True for a real call's error that is no refusal: the service was too busy, or it may have taken effect."""
    violations: NotRequired[list[Violation]]
    """All clauses that the call breaks; the first one's error is the call's."""
    category: NotRequired[Category]
    """The kind of refusal: of a result that was not committed, or of a precondition in `create_toolgate`."""
    observed: NotRequired[Patch]
    """A call's observation of the task state, of a real read by its contract's `observes`: no change."""
    filled: NotRequired[Filled]
    """The open parts of the contract's own answer, and the rung that has filled them."""
    media: NotRequired[list[JsonObject]]
    """References to images, sounds and files that a real tool gave with its result (`values/media.py`)."""
    evidence: NotRequired[str]
    """Of a contract's answer that rests on evidence: `established`, `derived`, `proposed`, `refuted` or `unknown`."""
    http: NotRequired[JsonObject]
    """The `status` and `headers` that a contract chooses for the answer, if it goes out over HTTP."""


class Step(TypedDict):
    """One call with its complaints or its outcome."""

    v: int
    call: Call
    complaints: NotRequired[list[Complaint]]
    outcome: NotRequired[Outcome]


class ChecklistItem(TypedDict):
    """One thing that must hold at the end."""

    id: str
    description: str
    check: NotRequired[str]
    """An expression over `state`, `before`, `calls` and `answer` that decides the item without a model."""
    by: NotRequired[Literal["model"]]
    """Set if a model wrote the item: the judge may strike it, a caller's never."""


class JudgedItem(TypedDict):
    """A checklist item with its judgement."""

    id: str
    description: str
    status: ItemStatus | Literal["unsure"]
    """`unsure`: a decision model's probability is within the band, or it has given none; the user decides."""
    reason: str
    by: Literal["rule", "model", "nobody"]
    p: NotRequired[float]
    """The probability that it holds, from 0 to 1, if a decision model was asked."""


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
"""Where a value comes from: `path` is the JSON Pointer into the result of a `step` (number of the attempt's call, from
1); a JSON Pointer into the task state, whose `step` wrote it there; or the id of a message. *Stated* stands there,
*derived* follows by the one operation that is `shown` (`29 = 2 × 14.5`); nothing real supports what is *chosen*: by
the step's rung, the model that wrote that place of the state, another agent, or the planner. `attempt` is the earlier
one of a step. Of a place of the state (`blame`) also turn, call and tool are named."""

Origins: TypeAlias = dict[str, dict[str, list[Origin]]]
"""Call id to the JSON Pointer of an argument to the origins of its value, all of them if several hold it."""


class Verdict(TypedDict):
    """The judge's verdict on an attempt (paper, section 3.4 and appendix A.6)."""

    status: VerdictStatus
    score: float
    items: list[JudgedItem]
    feedback: str
    """The judge's feedback, also if it accepts; after a failure the next attempt's planner is shown it."""
    notes: NotRequired[list[Note]]
    """Doubts about the plan and the answer, also if it is accepted; a note on a call names it."""
    rests_on: NotRequired[dict[str, int]]
    """How many calls of the plan rest on branches of contracts that are written, established, proposed, refuted or
    unknown (another rung has answered, or filled a part), if a contract has learned or open ones."""


class RoleUsage(TypedDict):
    """One role's usage. `cost` is in US dollars, None if a price is unknown.

    `estimated` is set if recorded replies are among the calls: their tokens are a quarter of the characters.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    estimated: NotRequired[bool]


Usage: TypeAlias = dict[str, RoleUsage]
"""Role to its usage."""


class Taught(TypedDict):
    """A need in somebody's words, and a tool that has served it."""

    need: str
    tool: str


class SupposedFact(TypedDict):
    """An invention of a simulated read; shared by the attempts of a turn, never part of the task state."""

    tool: str
    args: JsonObject
    status: CallStatus
    result: Json
    rung: str
    digest: str
    """Digest of the task state in which it was supposed."""
    undecided: NotRequired[bool]
    """As an outcome's, for a real result."""
    notes: NotRequired[list[Note]]
    """As an outcome's: `may_refuse`, of a tool of unknown effect."""


class SupposedState(TypedDict):
    """The made-up parts of the state that the turn's attempts begin from."""

    paths: list[str]
    """JSON Pointers into the task state."""
    state: JsonObject
    """The root keys that are made up, as they are before the first attempt."""
    notes: NotRequired[list[Note]]
    """`unclear`: why contracts cannot be evaluated on it, after a repair."""


class Stop(TypedDict):
    """Why an attempt ended, for programs and for people."""

    code: StopCode
    message: str


class UnjudgedAttempt(TypedDict):
    """From one start to the planner's final answer."""

    v: int
    number: int
    start_digest: str
    end_digest: str
    steps: list[Step]
    answer: str
    change: Patch
    """The net change of the task state, from the known part of its start (`observed`) to the attempt's end."""
    observed: NotRequired[Patch]
    """The parts of the task state at the attempt's start that real reads have shown: facts, not changes."""
    usage: Usage
    stop_reason: str
    """`answered`, or why the attempt ended before the planner's answer: the message of `stop`."""
    stop: NotRequired[Stop]


class Attempt(UnjudgedAttempt):
    """An attempt with its verdict; `usage` includes the judge's."""

    verdict: Verdict
    origins: NotRequired[Origins]
    """Where the values of its plan come from."""


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
    """Number of the attempt that plan, verdict and answer come from."""
    usage: Usage
    supposed_state: NotRequired[SupposedState]
    """The parts of the state that were made up before the first attempt, if any."""
    search_words: NotRequired[list[str]]
    """The task, and the words that a model searched tools by."""
    origins: NotRequired[Origins]
    """Where the values of the plan come from."""
    changes: NotRequired[list[str]]
    """An accepted attempt's changes of the task state, a line each: `replace /fuel 5.0 → 45.0`."""
    observed: NotRequired[Patch]
    """The observations of an accepted attempt's real reads: written back as well."""


class RehearsalState(TypedDict):
    """Mixin for a parent graph that embeds the rehearsal.

    A parent that states what must hold adds `checklist: list[ChecklistItem]` (a text alone is an item) and writes it
    before each rehearsal; without one the model writes it. `messages` and `task_state` begin the next rehearsal where
    the last one ended. `rehearsal` is the last one: a parent that runs several at once, as with `Send`, calls the graph
    in a node of its own and writes the results to a key with a reducer.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    rehearsal: Rehearsal
    task_state: JsonObject
