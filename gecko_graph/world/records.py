"""Records of review and execution: plain JSON, checkpointed, streamed and returned."""

# annotations are evaluated here: LangGraph would evaluate texts again at each compilation
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from ..state import Call, CallStatus, Filled, Json, JsonObject, Note, Outcome, Patch

Effect = Literal["read", "write", "unknown"]
ReviewWord = Literal["allow", "ask", "refuse"]
CallWord = Literal["ok", "error", "in_doubt", "skipped", "refused", "answered"]
"""`skipped`: not made, due to its `departure`. `refused`: not made, by the person or a rule. `answered`: not made; the
person's words are its result."""
ExecutionWord = Literal["done", "partial", "nothing", "in_doubt"]
DepartureCode = Literal["error", "schema", "ensures", "state", "precondition", "binding", "result", "policy"]


class Binding(TypedDict):
    """An argument, or a part of its text, whose value comes from the result of an earlier call of the plan."""

    argument: str
    """JSON Pointer into the call's arguments: `/order_id`."""
    call: str
    """Id of the earlier call."""
    path: str
    """JSON Pointer into its result: `/id`."""
    predicted: Json
    """The rehearsal's value there."""
    starts: NotRequired[list[int]]
    """The offset of the value in the argument's text, whose rest is kept; missing if it is the whole argument."""


class Ambiguous(TypedDict):
    """An argument that depends on a simulated result without a rule for the exact part, so that a person is asked.

    It is sent as shown, and only if the real results equal the predicted ones there.
    """

    argument: str
    sources: list[Binding]


class Hole(TypedDict):
    """An argument of an undo call whose value comes from the real result of the undone call."""

    argument: str
    """JSON Pointer into the undo call's arguments."""
    path: str
    """JSON Pointer into the result of the undone call."""


class UndoCall(TypedDict):
    """A call that undoes another, with predicted values in its holes."""

    name: str
    args: JsonObject
    bindings: list[Hole]


class Undo(TypedDict):
    call: Call
    """The call to undo."""
    status: Literal["found", "compensated", "none", "timeout"]
    """`found`: a search has seen these calls restore the state. `compensated`: no calls do, but contracts name
    compensating tools. `none`: no undo is known. `timeout`: none was found in time."""
    calls: list[UndoCall]
    reason: NotRequired[str]
    """Why there is none, if known."""


class DoneWrite(TypedDict):
    """A call that was really made and may have changed something."""

    call: Call
    result: Json
    inverse: Patch
    """The patch from the state after it to the state before."""
    reason: str
    """Why no undo is searched; "" if one is."""
    undone_by: NotRequired[list[str]]
    """Ids of the calls by which a turn tried to undo it."""


class Prediction(TypedDict):
    """The rehearsal's answer to a call, and its changes."""

    status: CallStatus
    result: Json
    rung: str
    patch: Patch
    invented: NotRequired[bool]
    """Whether a rung made it up."""
    observed: NotRequired[Patch]
    """The part of the task state that a real read has shown."""
    notes: NotRequired[list[Note]]
    """This and the following keys as in an outcome."""
    supposed: NotRequired[bool]
    evidence: NotRequired[str]
    filled: NotRequired[Filled]


class Risk(TypedDict):
    """The verdict of the role `risk` on a call."""

    word: ReviewWord
    """`allow` below the band, `refuse` above it, `ask` within it or without an answer."""
    reason: str
    p: NotRequired[float]
    key: str
    """Digest of its evidence; the same evidence is judged once per turn."""


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
    """Values of simulated results from which arguments are copied or computed without a binding, such as amounts. If
    the real results differ there, the remaining calls are rehearsed again."""
    notes: NotRequired[list[Note]]
    """Notes on the call: the prediction's, and those of the verdict. `made_up` are arguments without a real source,
    except those that are bound, ambiguous, or chosen from a read."""
    derived: NotRequired[list[str]]
    """Arguments derived from other values by one operation: `amount: 29 = 2 × 14.5`."""
    sources: NotRequired[list[str]]
    """Sources of arguments that are not in the task: `sku: from the result of findItems`."""
    answered: NotRequired[Json]
    """The person's words as the call's result; the call is not made."""
    rehearse_after: bool
    """Whether a later argument was chosen from the results of this simulated read; then a different real result causes
    a new rehearsal of the remaining calls."""
    risk: NotRequired[Risk]
    """The risk verdict, if the policy requires one for writes."""
    undo: NotRequired[Undo]
    """The calls that undo it, if it changes something."""
    review: ReviewWord
    reason: str
    """Why it is asked about or refused; "" if it is allowed."""


class Preview(TypedDict):
    """The calls that will be made after approval."""

    v: int
    digest: str
    """Digest of the calls with their holes, and of their start state."""
    start_digest: str
    made_at: float
    """Unix time in seconds."""
    calls: list[PlannedCall]
    unjudged: NotRequired[list[str]]
    """Ids of the calls whose risk is judged before a person is asked."""
    changes: list[str]
    """The predicted net change of the task state, one line per change."""


class Approval(TypedDict):
    digest: str
    at: float
    """Unix time in seconds."""


class Departure(TypedDict):
    """The way in which reality left the plan."""

    code: DepartureCode
    message: str


class Drift(TypedDict):
    """A place at which a real result, or the state after it, differs from the prediction."""

    kind: Literal["status", "schema", "value", "state"]
    path: str
    """JSON Pointer into the result, or for `state` into the task state."""
    predicted: Json
    real: Json


class ExecutedCall(TypedDict):
    """One real call, from its start on."""

    call: Call
    """With its real arguments."""
    status: CallWord
    key: str
    """Key of its claim, and idempotency key; the same for every try of this call. "" for a call without claim."""
    tries: int
    started_at: float
    ended_at: NotRequired[float]
    result: NotRequired[Json]
    by: NotRequired[Literal["tool", "person"]]
    """The source of the result."""
    departure: NotRequired[Departure]
    drift: NotRequired[list[Drift]]
    notes: NotRequired[list[Note]]
    """`unclear`, `undocumented`, and `may_refuse` for proposed rules that it breaks."""
    refuted: NotRequired[list[str]]
    """Learned rules that would have refused it, and are disabled now."""
    undecided: NotRequired[bool]
    """True for an error that is not a refusal: the service was too busy."""


class Execution(TypedDict):
    """The real calls of a turn."""

    v: int
    turn: int
    status: ExecutionWord
    digest: str
    """Digest of the last approved preview; "" if there is none."""
    calls: list[ExecutedCall]
    left: list[Call]
    """Calls of the last plan that were not made."""
    rehearsals: int
    undo: NotRequired[list[Undo]]
    """The calls that undo the turn's writes, the newest first; `undo_message` requests them."""
    fidelity: NotRequired[dict[str, dict[str, int]]]
    """Tool to the number of the thread's real calls (`calls`), and of those that drifted (`drifted`)."""


def unchanged(status: CallStatus, result: Json, rung: str, *, simulated: bool = True) -> Outcome:
    """Return an outcome that changes nothing."""
    return {"status": status, "result": result, "patch": [], "rung": rung, "simulated": simulated, "passed": []}
