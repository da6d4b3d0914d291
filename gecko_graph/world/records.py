"""Records of review and execution: plain JSON, checkpointed, streamed and returned."""

# annotations are evaluated here: LangGraph evaluates those that are texts again at each compilation
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from ..state import Call, CallStatus, Filled, Json, JsonObject, Note, Patch

Effect = Literal["read", "write", "unknown"]
ReviewWord = Literal["allow", "ask", "refuse"]
CallWord = Literal["ok", "error", "in_doubt", "skipped", "refused", "answered"]
"""`skipped`: not made, for its `departure`. `refused`: not made, by the person or a rule. `answered`: not made, by the
person, whose words are its result."""
ExecutionWord = Literal["done", "partial", "nothing", "in_doubt"]
DepartureCode = Literal["error", "schema", "ensures", "state", "precondition", "binding", "result", "policy"]


class Binding(TypedDict):
    """An argument, or a part of its text, whose value an earlier call of the plan gives."""

    argument: str
    """JSON Pointer into the call's arguments: `/order_id`."""
    call: str
    """Id of the earlier call."""
    path: str
    """JSON Pointer into its result: `/id`."""
    predicted: Json
    """The rehearsal's value there."""
    starts: NotRequired[list[int]]
    """The offset of its text in the argument's text, whose rest stays as it is; missing if it is the whole."""


class Ambiguous(TypedDict):
    """An argument that rests on a simulated result, and no rule says on which part of which: a person is asked.

    It is sent as it was shown, and only if the real results are as predicted there.
    """

    argument: str
    sources: list[Binding]


class Hole(TypedDict):
    """An argument of a call that takes another back, whose value that call's real result gives."""

    argument: str
    """JSON Pointer into its arguments."""
    path: str
    """JSON Pointer into the result of the call that is taken back."""


class UndoCall(TypedDict):
    """One call that takes another back, with the predicted values in its holes."""

    name: str
    args: JsonObject
    bindings: list[Hole]


class Undo(TypedDict):
    """The calls that undo a call."""

    call: Call
    """The call that is taken back."""
    status: Literal["found", "compensated", "none", "timeout"]
    """`found`: a search has seen these calls restore the state. `compensated`: none does, and contracts name tools that
    compensate. `none`: no way back is known. `timeout`: none was found in time."""
    calls: list[UndoCall]
    reason: NotRequired[str]
    """Why there is none, if that is known."""


class DoneWrite(TypedDict):
    """A call that was really made and may have changed something."""

    call: Call
    result: Json
    inverse: Patch
    """The patch from the state after it to the one before."""
    reason: str
    """Why no way back is looked for; empty if one is."""
    undone_by: NotRequired[list[str]]
    """Ids of the calls that a turn was to take it back with."""


class Prediction(TypedDict):
    """The rehearsal's answer to a call, and its changes."""

    status: CallStatus
    result: Json
    rung: str
    patch: Patch
    invented: NotRequired[bool]
    """True if a rung made it up."""
    observed: NotRequired[Patch]
    """The part of the task state that a real read has shown."""
    notes: NotRequired[list[Note]]
    """This and the following as the outcome's."""
    supposed: NotRequired[bool]
    evidence: NotRequired[str]
    filled: NotRequired[Filled]


class Risk(TypedDict):
    """The verdict of the role `risk` on a call."""

    word: ReviewWord
    """`allow` below the band, `refuse` above it, `ask` within it and without an answer."""
    reason: str
    p: NotRequired[float]
    key: str
    """Digest of its evidence: the same is not asked again in a turn."""


class PlannedCall(TypedDict):
    """One call of the plan that is to be made."""

    call: Call
    effect: Effect
    does: NotRequired[str]
    """The first sentence of the tool's description."""
    where: NotRequired[str]
    """Method and path of an HTTP tool: `POST /orders`."""
    predicted: Prediction
    bindings: list[Binding]
    ambiguous: list[Ambiguous]
    expects: NotRequired[list[Binding]]
    """Values of simulated results that arguments hold or are computed from, never bound, such as amounts: the real
    results must be the predicted ones there, else the remaining calls are rehearsed again."""
    notes: NotRequired[list[Note]]
    """Doubts about it: the prediction's, and of the verdict those on this call. `made_up` are arguments that rest on
    nothing real, without those that are bound, ambiguous, or chosen from a read."""
    derived: NotRequired[list[str]]
    """Arguments that follow from others by one operation, each with it: `amount: 29 = 2 × 14.5`."""
    sources: NotRequired[list[str]]
    """Where arguments come from that do not stand in the task: `sku: from the result of findItems`."""
    answered: NotRequired[Json]
    """The person's words, which are the call's result: it is not made."""
    rehearse_after: bool
    """True for a simulated read among whose results a later argument was chosen: if the real result differs, what
    follows is rehearsed again."""
    risk: NotRequired[Risk]
    """Where the policy has writes judged."""
    undo: NotRequired[Undo]
    """Of a call that changes something: the calls that undo it."""
    review: ReviewWord
    reason: str
    """Why it is asked about or refused; empty if it is allowed."""


class Preview(TypedDict):
    """The calls that will be made if it is approved."""

    v: int
    digest: str
    """Of the calls with their holes, and of the state that they begin from."""
    start_digest: str
    made_at: float
    """Unix time in seconds."""
    calls: list[PlannedCall]
    unjudged: NotRequired[list[str]]
    """Ids of the calls whose risk is to be judged before a person is asked."""
    changes: list[str]
    """The predicted net change of the task state, a line each."""


class Approval(TypedDict):
    """A preview that may be carried out."""

    digest: str
    at: float
    """Unix time in seconds."""


class Departure(TypedDict):
    """How reality left the plan."""

    code: DepartureCode
    message: str


class Drift(TypedDict):
    """One place where a real result, or the state after it, differs from the prediction."""

    kind: Literal["status", "schema", "value", "state"]
    path: str
    """JSON Pointer into the result, or for a `state` into the task state."""
    predicted: Json
    real: Json


class ExecutedCall(TypedDict):
    """One real call, from its start on."""

    call: Call
    """With its real arguments."""
    status: CallWord
    key: str
    """Of its claim, and the idempotency key: the same for every try of this call. Empty for one that is not claimed."""
    tries: int
    started_at: float
    ended_at: NotRequired[float]
    result: NotRequired[Json]
    by: NotRequired[Literal["tool", "person"]]
    """Who gave the result."""
    departure: NotRequired[Departure]
    drift: NotRequired[list[Drift]]
    notes: NotRequired[list[Note]]
    """`unclear`, `undocumented` and `may_refuse`, the last of rules that are only proposed and that it breaks."""
    refuted: NotRequired[list[str]]
    """Learned rules that would have refused it: they refuse no more."""
    undecided: NotRequired[bool]
    """True for an error that is no refusal: the service was too busy."""


class Execution(TypedDict):
    """The real calls of a turn."""

    v: int
    turn: int
    status: ExecutionWord
    digest: str
    """Of the last preview that was approved; empty if none was."""
    calls: list[ExecutedCall]
    left: list[Call]
    """Calls of the last plan that were not made."""
    rehearsals: int
    undo: NotRequired[list[Undo]]
    """The calls that undo the turn's writes, the newest first; `undo_message` asks for them."""
    fidelity: NotRequired[dict[str, dict[str, int]]]
    """Tool to how many of its real calls the thread has made (`calls`), and how many of them drifted (`drifted`)."""
