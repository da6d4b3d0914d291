"""Records and keys of forward execution (ToolGate, algorithm 1): `create_toolgate`."""

# annotations are evaluated here: LangGraph evaluates those that are texts again at each compilation
from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from pydantic import Field
from typing_extensions import TypedDict

from ..contracts.run import Word
from ..state import Call, Category, JsonObject, MadeUp, Origins, Patch, Step, Stop, Usage
from ..world.channels import TASK_STATE_HELP, AttemptState, GeckoState, delta, extend

MOST_TRIES = 3
"""Sets of arguments that a candidate may have refused for one need."""

Status = Literal["answered", "failed", "ended"]
"""`failed`: no tool was left for a need, or the models did not answer; `ended`: a budget or `max_steps` is spent."""


class Candidate(TypedDict):
    """A tool for the need at hand, with its probability among those that the state admits (equation 9)."""

    tool: str
    p: float
    admissible: Word
    reason: NotRequired[str]
    """Why the state does not admit it."""


class Rejection(TypedDict):
    """A tool, or a call of it, that was refused for a need, before it ran (P) or by its result (Q)."""

    tool: str
    phase: Literal["P", "Q"]
    reason: str
    category: NotRequired[Category]
    """Table 3's; missing where a model declined to call the tool, or the tool's own error was its result."""
    call: NotRequired[str]
    """The call's id, where arguments were written."""


class Need(TypedDict):
    """One step of the reasoner's: what was needed, the tools for it, what was refused, and the call that met it."""

    need: str
    candidates: list[Candidate]
    """All that were ranked, in the order in which they are tried."""
    rejections: list[Rejection]
    """Of tools that come before the one that met the need; of all, where none did."""
    call: NotRequired[str]
    """Id of the committed call; missing where none met the need."""


class ToolGateRecord(TypedDict):
    """The result of forward execution."""

    v: int
    status: Status
    reason: str
    """Why it ended: `answered`, or the message of `stop`."""
    stop: Stop
    plan: list[Call]
    """The committed calls, in order."""
    origins: NotRequired[Origins]
    """Where the values of the plan come from."""
    made_up: NotRequired[list[MadeUp]]
    """What the plan rests on that a model made up."""
    unclear: NotRequired[list[str]]
    unsimulated: NotRequired[list[str]]
    """What nothing could check of the plan: writes of which nothing says what they change."""
    answer: str
    needs: list[Need]
    rejected: dict[str, int]
    """Refusals by category (table 3)."""
    steps: list[Step]
    """All calls, refused ones included."""
    change: Patch
    """The net change of the task state."""
    start_digest: str
    end_digest: str
    usage: Usage


class ToolGateInput(TypedDict):
    """The input of forward execution. `messages` ends with the request: the last human turn."""

    messages: Annotated[list[AnyMessage], add_messages]
    task_state: NotRequired[Annotated[JsonObject, Field(description=TASK_STATE_HELP)]]


class ToolGateOutput(TypedDict):
    """The output of forward execution; the task state holds every committed call, also where it failed."""

    messages: Annotated[list[AnyMessage], add_messages]
    task_state: JsonObject
    record: ToolGateRecord


class ToolGateState(GeckoState, total=False):
    """The outer graph's keys, beside those of a rehearsal's."""

    needs: list[Need]
    """`attempt`."""
    record: ToolGateRecord
    """`conclude`."""


class ForwardState(AttemptState, total=False):
    """The inner graph's keys, beside those of an attempt's: its nodes are the same."""

    need: str
    """`reasoner`: what the next call has to achieve."""
    ranked: list[Candidate]
    """`reranker`: all tools that were ranked for the need, in the order of their trial."""
    candidates: list[str]
    """`reranker`, then `accept`: tools that are left for the need."""
    tries: int
    """`reranker`, `accept`, `arguments`: sets of arguments that the first candidate had refused; or it was declined."""
    rejections: list[Rejection]
    """`reranker`, `accept`: of the need at hand."""
    needs: Annotated[list[Need], delta(extend, list)]
    """`reranker`, `arguments`, `accept`: what is over."""


def close_need(state: ForwardState) -> Need:
    """Return the record of the need at hand, as far as it has come."""
    return {"need": state["need"], "candidates": state["ranked"], "rejections": state["rejections"]}


def explain(need: str, rejections: Sequence[Rejection]) -> str:
    """Return why a need cannot be met, for the record and the user."""
    why = "; ".join(f"{each['tool']}: {each['reason']}" for each in rejections[:3])
    return f"no tool can meet the need: {need}" + (f" ({why})" if why else "")
