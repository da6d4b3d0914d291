"""The keys of a conversation's graph with their owners, its result, and the envelopes of messages.

An envelope is stored in `additional_kwargs`, so that the message stays a plain LangChain message.
"""

# annotations are evaluated here: LangGraph would evaluate texts again at each compilation
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from ..models.formatting import text_of
from ..models.usage import add_usage
from ..state import JsonObject, Usage
from ..world.calls import fold_snapshot, is_snapshot
from ..world.channels import GivenMessages
from ..world.reducers import count_asked, delta
from .milestones.goal import Score

SNAPSHOT_EVERY = 50

End = Literal["", "ended", "max_messages", "failures", "agent_failed", "user_failed", "tools_failed"]

Status = Literal["passed", "failed", "unknown"]


class Leak(TypedDict):
    """A text of `must_not_say` in a message of the user."""

    message: int
    text: str


class JudgedClaim(TypedDict):
    """A claim that the role `claim_judge` has decided, with the quoted sentence, and its key."""

    key: str
    claim: dict[str, str]
    verdict: str
    """`holds`, `broken`, or `unsure` if the decision model was."""
    sentence: str
    reason: str
    p: NotRequired[float]
    """The decision model's probability that the claim holds."""


class ConversationScore(Score):
    """The result of a conversation.

    `status` is unknown if nothing failed, but a claim could not be decided. `end` is the reason why it ended, `reason`
    a description of a party's failure. `turns` counts the messages between user, agent and tools; `races` those with
    parallel calls whose order matters.
    """

    status: Status
    end: End
    reason: str
    turns: int
    calls: int
    failed_calls: int
    races: int
    leaks: list[Leak]
    usage: Usage
    audit: NotRequired[JsonObject]
    """The role `auditor` on the user (`AuditReply`)."""
    claims: NotRequired[list[JudgedClaim]]


class ConversationInput(TypedDict):
    """The input: nothing, or the messages so far and the state that the tools act on."""

    messages: NotRequired[Annotated[GivenMessages, add_messages]]
    task_state: NotRequired[JsonObject]


class ConversationOutput(TypedDict):
    """The output of a conversation."""

    messages: Annotated[list[AnyMessage], add_messages]
    world: JsonObject
    score: ConversationScore


class ConversationState(TypedDict, total=False):
    """The graph's keys, each with its owner."""

    messages: Annotated[list[AnyMessage], add_messages]
    """Caller, `user`, `agent`, `tools`; each with an envelope."""
    task_state: JsonObject
    """Caller: the state at the start; the scenario's by default."""
    world: Annotated[JsonObject, delta(fold_snapshot, dict, SNAPSHOT_EVERY, begins=is_snapshot)]
    """`open_world`: the snapshot of a `World`; `user` (the clock), `agent`, `tools`: the calls since."""
    next_line: int
    """`user`: number of the next line of a scripted user."""
    silent: int
    """`agent`: number of its consecutive turns without effect."""
    races: Annotated[int, lambda old, new: old + new]
    """`agent`, `tools`."""
    end: End
    """Set by the node that ends the conversation; empty before."""
    reason: str
    """With `end`: details of a failure."""
    asked: Annotated[dict[str, int], count_asked]
    """Every node that asks a model."""
    usage: Annotated[Usage, add_usage]
    """Every node that asks a model."""
    score: ConversationScore
    """`score`."""


def record_calls(world: Any, first: int) -> JsonObject:
    """Return a world's calls from number `first` on, as a write to the key `world`."""
    return {"records": world.records(first), "usage": dict(world.usage)}


# envelopes ----------------------------------------------------------------------------------------------------------

Party: TypeAlias = Literal["system", "user", "agent", "tools"]

KEY = "conversation"
"""The key of an envelope in a message's `additional_kwargs`."""

Message = TypeVar("Message", bound=BaseMessage)


class Envelope(TypedDict):
    """Sender and recipient of a message; `steps` is the number of the world's calls before its end."""

    sender: Party
    recipient: Party
    steps: int | None


def address(message: Message, sender: Party, recipient: Party, *, steps: int) -> Message:
    """Return a copy of a message with its envelope."""
    envelope: Envelope = {"sender": sender, "recipient": recipient, "steps": steps}
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, KEY: envelope}})


def read_envelope(message: AnyMessage) -> Envelope:
    """Return a message's envelope; a caller's message without one is addressed by its type."""
    given = message.additional_kwargs.get(KEY)
    if isinstance(given, Mapping) and {"sender", "recipient"} <= given.keys():
        return {**given, "steps": given.get("steps")}  # type: ignore[typeddict-item]
    if isinstance(message, AIMessage):
        return {"sender": "agent", "recipient": "tools" if read_calls(message) else "user", "steps": None}
    if isinstance(message, ToolMessage):
        return {"sender": "tools", "recipient": "agent", "steps": None}
    return {"sender": "system" if isinstance(message, SystemMessage) else "user", "recipient": "agent", "steps": None}


def read_calls(message: AnyMessage) -> list[JsonObject]:
    """Return a message's calls; arguments that are not a JSON object are kept as text, to be refused."""
    if not isinstance(message, AIMessage):
        return []
    broken = [
        {"name": each["name"] or "", "args": each["args"], "id": each["id"]} for each in message.invalid_tool_calls
    ]
    return [*map(dict, message.tool_calls), *broken]


def select_view(messages: Sequence[AnyMessage], party: Party) -> list[AnyMessage]:
    envelopes = ((message, read_envelope(message)) for message in messages)
    return [message for message, envelope in envelopes if party in (envelope["sender"], envelope["recipient"])]


def is_answer(message: AnyMessage) -> bool:
    """Return whether it is the agent's message to the user."""
    envelope = read_envelope(message)
    return (envelope["sender"], envelope["recipient"]) == ("agent", "user")


def find_user_texts(messages: Sequence[AnyMessage]) -> list[str]:
    return [text_of(message) for message in messages if read_envelope(message)["sender"] == "user"]
