"""Who sends a message to whom, and who sees it: kept beside the message, so that it stays a plain LangChain message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from typing_extensions import TypedDict

from ..models.formatting import text_of
from ..state import JsonObject

Party: TypeAlias = Literal["system", "user", "agent", "tools"]

KEY = "conversation"
"""The key of an envelope in a message's `additional_kwargs`."""

Message = TypeVar("Message", bound=BaseMessage)


class Envelope(TypedDict):
    """Who sent a message to whom; `steps` is how many of the world's calls came before its end."""

    sender: Party
    recipient: Party
    visible_to: list[Party]
    steps: int | None


def address(message: Message, sender: Party, recipient: Party, *, steps: int) -> Message:
    """Return a copy of a message with its envelope; sender and recipient see it."""
    parties: list[Party] = [sender, recipient]
    envelope: Envelope = {"sender": sender, "recipient": recipient, "visible_to": parties, "steps": steps}
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, KEY: envelope}})


def read_envelope(message: AnyMessage) -> Envelope:
    """Return a message's envelope; one that a caller wrote without is addressed by its type."""
    given = message.additional_kwargs.get(KEY)
    if isinstance(given, Mapping) and {"sender", "recipient", "visible_to"} <= given.keys():
        return {**given, "steps": given.get("steps")}  # type: ignore[typeddict-item]
    sender, recipient = _guess(message)
    return {"sender": sender, "recipient": recipient, "visible_to": [sender, recipient], "steps": None}


def read_calls(message: AnyMessage) -> list[JsonObject]:
    """Return a message's calls; one whose arguments are no JSON object has them as text, to be refused."""
    if not isinstance(message, AIMessage):
        return []
    broken = [
        {"name": each["name"] or "", "args": each["args"], "id": each["id"]} for each in message.invalid_tool_calls
    ]
    return [*map(dict, message.tool_calls), *broken]


def name_calls(message: AIMessage, number: int) -> AIMessage:
    """Return a message whose calls all have an id, each its own."""
    taken: set[str | None] = {None, ""}
    update: dict[str, list[JsonObject]] = {"tool_calls": [], "invalid_tool_calls": []}
    for key, named in update.items():
        for at, call in enumerate(getattr(message, key)):
            named.append({**call, "id": f"{key}_{number}_{at}" if call["id"] in taken else call["id"]})
            taken.add(call["id"])
    return message.model_copy(update=update)


def _guess(message: AnyMessage) -> tuple[Party, Party]:
    if isinstance(message, AIMessage):
        return "agent", "tools" if read_calls(message) else "user"
    if isinstance(message, ToolMessage):
        return "tools", "agent"
    return ("system" if isinstance(message, SystemMessage) else "user"), "agent"


def select_view(messages: Sequence[AnyMessage], party: Party) -> list[AnyMessage]:
    """Return the messages that a party sees."""
    return [message for message in messages if party in read_envelope(message)["visible_to"]]


def is_answer(message: AnyMessage) -> bool:
    """Return whether it is the agent's message to the user."""
    envelope = read_envelope(message)
    return (envelope["sender"], envelope["recipient"]) == ("agent", "user")


def find_user_texts(messages: Sequence[AnyMessage]) -> list[str]:
    """Return the texts of the user's messages."""
    return [text_of(message) for message in messages if read_envelope(message)["sender"] == "user"]


def swap_sides(messages: Sequence[AnyMessage]) -> list[BaseMessage]:
    """Return the user's view as a model that plays the user needs it: the agent's texts are its human messages."""
    sides = {"agent": HumanMessage, "user": AIMessage}
    addressed = ((read_envelope(message)["sender"], text_of(message)) for message in select_view(messages, "user"))
    return [sides[sender](text or "(no answer)") for sender, text in addressed if sender in sides]
