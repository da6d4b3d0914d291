"""The keys of a conversation's graph, with their owners, and its result."""

# annotations are evaluated here: LangGraph evaluates those that are texts again at each compilation
from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from ..models.usage import add_usage
from ..state import JsonObject, Usage
from ..world.channels import count_asked, delta
from ..world.points import fold_snapshot
from .milestones.goal import Score

SNAPSHOT_EVERY = 50

End = Literal["", "ended", "max_messages", "failures", "agent_failed", "user_failed", "tools_failed"]


class Leak(TypedDict):
    """A text of `must_not_say` in a message of the user."""

    message: int
    text: str


class Audit(TypedDict):
    """What the role `auditor` found in a finished conversation: the user's faults, not the agent's."""

    invented: bool
    broke_instructions: bool
    reason: str


class ConversationScore(Score):
    """The result of a conversation.

    `end` is why it ended, `reason` has more where a party failed. `turns` counts the messages between user, agent and
    tools; `races` those in which the agent made calls at once whose order mattered.
    """

    end: End
    reason: str
    turns: int
    calls: int
    failed_calls: int
    races: int
    leaks: list[Leak]
    usage: Usage
    audit: NotRequired[Audit]


class ConversationInput(TypedDict):
    """The input: nothing, or the messages so far and the state that the tools act on."""

    messages: NotRequired[Annotated[list[AnyMessage], add_messages]]
    task_state: NotRequired[JsonObject]


class ConversationOutput(TypedDict):
    """The output of a conversation."""

    messages: Annotated[list[AnyMessage], add_messages]
    world: JsonObject
    score: ConversationScore


class ConversationState(TypedDict, total=False):
    """The graph's keys, each with its owner."""

    messages: Annotated[list[AnyMessage], add_messages]
    """Caller, `user`, `agent`, `tools`; each with an envelope (`messages.py`)."""
    task_state: JsonObject
    """Caller: the state at the start; the scenario's where left out."""
    world: Annotated[JsonObject, delta(fold_snapshot, dict, SNAPSHOT_EVERY)]
    """`open_world`: the snapshot of a `World`; `user` (the clock), `agent`, `tools`: the calls since."""
    next_line: int
    """`user`: which line of a scripted user comes next."""
    silent: int
    """`agent`: how many of its turns in a row came to nothing."""
    races: Annotated[int, lambda old, new: old + new]
    """`agent`, `tools`."""
    end: End
    """Set by the node that ends the conversation; empty while it goes on."""
    reason: str
    """With `end`: more about a failure."""
    asked: Annotated[dict[str, int], count_asked]
    """Every node that asks a model."""
    usage: Annotated[Usage, add_usage]
    """Every node that asks a model."""
    score: ConversationScore
    """`score`."""


def record_calls(world: Any, first: int) -> JsonObject:
    """Return a world's calls from the given one on as a write to the key `world`."""
    return {"records": world.records(first), "usage": dict(world.usage)}
