"""Small fakes for tests of agents and nodes: a recorded model, a failing model, and a driver for one node."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import GeneratorType
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import BaseModel, ConfigDict

from .context import GeckoContext
from .models.ask import AnyAsk, Ask, Reply
from .models.node import NodeFunction, NodeScope
from .models.recorded import RecordedModel, planner_message
from .models.usage import count_tokens
from .state import ROLES, Role


def recorded(*turns: Mapping[str, Any], **roles: Any) -> RecordedModel:
    """Return a model that replays the given replies, by role.

    Args:
        turns: One mapping of roles to replies per turn, as in `RecordedModel`.
        roles: The replies of a single turn: `recorded(planner=[[{"call": "mkdir"}, {"say": "Done."}]])`.

    Raises:
        TypeError: Both forms are given.
    """
    if turns and roles:
        raise TypeError("recorded() takes turns, or the roles of one turn, not both")
    return RecordedModel(turns=list(turns) if turns else [roles])


def scripted(*replies: Mapping[str, Any]) -> BaseChatModel:
    """Return a model that gives these replies in order, whatever the prompt; after the last one it says "".

    The number of its messages in the conversation selects the reply, so that a forked conversation repeats it.

    Args:
        replies: `{"call": name, "args": {...}}`, `{"calls": [...]}` or `{"say": text}`.
    """
    return _FakeModel(replies=replies)


def failing(error: Exception) -> BaseChatModel:
    """Return a model that raises the error at every call."""
    return _FakeModel(error=error)


class Driven(NamedTuple):
    update: Any
    asks: list[AnyAsk]
    events: list[dict[str, Any]]


def drive(
    node: NodeFunction,
    state: Any,
    replies: Sequence[Any] = (),
    *,
    context: GeckoContext | None = None,
    roles: Collection[Role] = ROLES,
) -> Driven:
    """Run a node function without a graph and without models.

    Args:
        node: A plain function or a generator of asks, as for `AskNode`.
        state: The node's input.
        replies: The reply to each ask, in order: a `Reply`; an object or a message; JSON, which becomes an object of
            the ask's reply class, or for the planner a message (`{"call": ...}`, `{"say": ...}`); an exception, which
            becomes a failure.
        context: The knobs; defaults if omitted.
        roles: The roles that have a model.

    Returns:
        The node's update, its asks and its events.

    Raises:
        AssertionError: The numbers of asks and replies differ.
    """
    events: list[dict[str, Any]] = []
    scope = NodeScope(context or GeckoContext.model_validate({}), events.append, lambda role: role in roles)
    asks: list[AnyAsk] = []
    update = node(state, scope)
    if isinstance(update, GeneratorType):
        sent: list[Reply] | None = None
        try:
            while True:
                asked = update.send(sent)
                asks += asked
                if len(asks) > len(replies):
                    break
                given = replies[len(asks) - len(asked) :]
                sent = [reply_to(ask, reply) for ask, reply in zip(asked, given, strict=False)]
        except StopIteration as done:
            update = done.value
    if len(asks) != len(replies):
        raise AssertionError(f"expected {len(replies)} asks, got {len(asks)}: {asks[-1] if asks else 'none'}")
    return Driven(update, asks, events)


def reply_to(ask: AnyAsk, reply: Any) -> Reply:
    """Return a `Reply` made from one of the forms that `drive` accepts."""
    if isinstance(reply, Reply):
        return reply
    usage = count_tokens(0, 0, model_name="")
    if isinstance(reply, Exception):
        return Reply(None, str(reply), usage)
    if isinstance(ask, Ask) and not isinstance(reply, BaseModel):
        return Reply(ask.reply.model_validate(reply), None, usage)
    if isinstance(reply, Mapping) and ("say" in reply or "call" in reply or "calls" in reply):
        return Reply(planner_message(dict(reply), prefix="call"), None, usage)
    return Reply(reply, None, usage)


class _FakeModel(BaseChatModel):
    """A model that gives replies in order, or raises an error, whatever the prompt and the bound tools."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    replies: tuple[Mapping[str, Any], ...] = ()
    error: Exception | None = None

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        if self.error is not None:
            raise self.error
        number = sum(isinstance(message, AIMessage) for message in messages)
        reply = self.replies[number] if number < len(self.replies) else {"say": ""}
        return ChatResult(generations=[ChatGeneration(message=planner_message(dict(reply), prefix=f"call_{number}"))])
