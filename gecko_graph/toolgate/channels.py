"""State keys and records of forward execution (ToolGate, algorithm 1), which `create_toolgate` builds."""

# no `from __future__ import annotations`: LangGraph evaluates annotations that are strings at each compilation
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from pydantic import Field
from typing_extensions import TypedDict

from ..contracts.run import Word
from ..models.formatting import format_call
from ..models.memory import recall_calls
from ..nodes.checks import find_unsimulated
from ..state import (
    VERSION,
    Call,
    Category,
    Json,
    JsonObject,
    Note,
    Origins,
    Patch,
    Step,
    Stop,
    UnjudgedAttempt,
    Usage,
)
from ..tools.declaration import fact_of
from ..tools.spec import ToolSpec
from ..values.notes import gather_notes, with_notes
from ..world.channels import TASK_STATE_HELP, AttemptChannels, AttemptRecord, GeckoState, GivenMessages
from ..world.provenance import is_planned, trace_with
from ..world.reducers import delta, extend

Status = Literal["answered", "failed", "ended"]
"""`failed`: no tool was left for a need, or a model did not reply; `ended`: a budget or `max_steps` was used up."""
STATUS: Mapping[str, Status] = {
    "answered": "answered",
    "max_steps": "ended",
    "token_budget": "ended",
    "time_budget": "ended",
}


class Candidate(TypedDict):
    """A tool for the current need, with its probability among the tools that the state admits (equation 9)."""

    tool: str
    p: float
    admissible: Word
    reason: NotRequired[str]
    """Why the state does not admit the tool."""


class GateRejection(TypedDict):
    """A tool or a call that was refused for a need: before it ran (gate P) or because of its result (gate Q)."""

    tool: str
    phase: Literal["P", "Q"]
    reason: str
    category: NotRequired[Category]
    """A category of table 3; missing if a model declined to call the tool, or the result is the tool's own error."""
    call: NotRequired[str]
    """The call's id, if arguments were written."""
    told: NotRequired[bool]
    """True if the reasoner sees the reason when no tool is left: a model declined, or a read found nothing."""


class Need(TypedDict):
    """One step of the reasoner: the need, its candidates, the rejections, and the call that met it."""

    need: str
    candidates: list[Candidate]
    """All ranked tools, in the order in which they are tried."""
    rejections: list[GateRejection]
    """The rejections of the tools before the one that met the need; of all tools if the need was not met."""
    call: NotRequired[str]
    """Id of the committed call; missing if the need was not met."""


class Fact(TypedDict):
    """A verified result in the symbolic state (ToolGate, equation 2), which conditions of P read as `facts`."""

    value: Json
    type: JsonObject
    """JSON Schema of the tool's result; empty if unknown."""
    call: str
    """The call's id."""


class ToolGateRecord(TypedDict):
    """The result of forward execution."""

    v: int
    status: Status
    reason: str
    """Why the run ended: `answered`, or the message of `stop`."""
    stop: Stop
    plan: list[Call]
    """The committed calls, in order."""
    origins: NotRequired[Origins]
    """The origins of the plan's values."""
    notes: NotRequired[list[Note]]
    """Doubts about the plan: `made_up`, `ambiguous`, `unclear`, `unsimulated`."""
    answer: str
    needs: list[Need]
    facts: dict[str, Fact]
    """The verified results by `fact` of the tool's contract, else by its name; the latest of each."""
    rejected: dict[str, int]
    """Number of rejections by category (table 3)."""
    steps: list[Step]
    """All calls, including refused ones."""
    change: Patch
    """The net change of the task state."""
    start_digest: str
    end_digest: str
    usage: Usage


class ToolGateInput(TypedDict):
    """The input of forward execution; `messages` ends with the request, a human message."""

    messages: Annotated[GivenMessages, add_messages]
    task_state: NotRequired[Annotated[JsonObject, Field(description=TASK_STATE_HELP)]]


class ToolGateOutput(TypedDict):
    """The output of forward execution; the task state includes every committed call, even if the run failed."""

    messages: Annotated[list[AnyMessage], add_messages]
    task_state: JsonObject
    record: ToolGateRecord


class ToolGateState(GeckoState, total=False):
    """The outer graph's keys, in addition to those of a rehearsal."""

    needs: list[Need]
    """Written by `attempt`."""
    record: ToolGateRecord
    """Written by `conclude`."""


class ForwardRecord(AttemptRecord, total=False):
    """The inner graph's own bookkeeping, in addition to that of an attempt, whose nodes it shares."""

    ranked: list[Candidate]
    """Written by `reranker`: all tools that were ranked for the need, in the order of their trial."""
    tries: int
    """Written by `reranker`, `accept`, `arguments`: how many calls of the first candidate were refused; `MOST_TRIES` if
    the model declined."""
    rejections: list[GateRejection]
    """Written by `reranker`, `accept`: the rejections for the current need."""


class ForwardChannels(AttemptChannels, total=False):
    """The inner graph's keys, in addition to those of an attempt."""

    need: str
    """Written by `reasoner`: the goal of the next call."""
    candidates: list[str]
    """Written by `reranker`, then `accept`: the tools left for the need."""
    needs: Annotated[list[Need], delta(extend, list)]
    """Written by `reranker`, `arguments`, `accept`: the finished needs."""


class ForwardState(ForwardChannels, ForwardRecord, total=False):
    """The keys that the inner graph's nodes read and write, bookkeeping included."""


def gather_known(done: Iterable[Step], toolkit: Iterable[ToolSpec]) -> dict[str, Fact]:
    """Return the verified results of committed steps, which are in order, as typed facts."""
    known = {tool.name: fact_of(tool) for tool in toolkit}
    facts: dict[str, Fact] = {}
    for step in done:
        call = step["call"]
        key, schema = known.get(call["name"], (call["name"], {}))
        facts[key] = {"value": step["outcome"]["result"], "type": schema, "call": call["id"]}
    return facts


def tell_undone(steps: Sequence[Step], toolkit: Iterable[ToolSpec]) -> list[str]:
    """Return a line for each writing tool that was called and never committed; every answer includes these lines."""
    writes = {tool.name for tool in toolkit if not tool.reads}
    done = {step["call"]["name"] for step in steps if is_planned(step)}
    last = {step["call"]["name"]: step["call"] for step in steps if step["call"]["name"] in writes - done}
    return [f"Not done: {format_call(call)}" for call in last.values()]


def build_record(
    state: ToolGateState, ran: UnjudgedAttempt, kept: list[Step], seen: JsonObject, toolkit: Iterable[ToolSpec]
) -> ToolGateRecord:
    """Return the record of an execution; `seen` is its start state, as its real reads have shown it."""
    stopped, needs, done = ran["stop"], state.get("needs") or [], [step for step in kept if is_planned(step)]
    status = STATUS.get(stopped["code"], "failed")
    begin: Any = {"conversation": recall_calls(state["messages"]), "supposed": state.get("supposed") or ()}
    origins, notes = trace_with(toolkit, ran["steps"] if done else [], state=seen, **begin)
    calls = [f"- {format_call(step['call'])}" for step in done]
    why = [f"The request was not finished: {stopped['message']}", "Done until then:" if calls else "Nothing was done."]
    said = [ran["answer"], *tell_undone(ran["steps"], toolkit)]
    categories = Counter[str](each["category"] for need in needs for each in need["rejections"] if "category" in each)
    record: ToolGateRecord = {
        "v": VERSION,
        "status": status,
        "reason": stopped["message"],
        "stop": stopped,
        "plan": [step["call"] for step in done],
        "origins": origins,
        "answer": "\n".join(said if status == "answered" else [*why, *calls]),
        "needs": needs,
        "facts": gather_known(done, toolkit),
        "rejected": {**categories},
        "steps": ran["steps"],
        "change": ran["change"],
        "start_digest": ran["start_digest"],
        "end_digest": ran["end_digest"],
        "usage": state["bookkeeping"]["ledger"]["usage"],
    }
    return with_notes(record, [*notes, *gather_notes(done, "unclear"), *find_unsimulated(done)])
