"""Small fakes for tests of agents and nodes: a recorded model, a failing model, and a way to drive a node by hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import GeneratorType
from typing import Any, NamedTuple

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import Runnable
from pydantic import BaseModel, ConfigDict

from .context import GeckoContext
from .models.ask import AnyAsk, Ask, Reply
from .models.node import NodeFunction, NodeScope
from .models.recorded import RecordedModel, planned
from .models.usage import count_tokens
from .state import ROLES, Role


def recorded(*turns: Mapping[str, Any], **roles: Any) -> RecordedModel:
    """A model that says what was written down for it, by role.

    Args:
        turns: One mapping of roles to replies a turn, as in `RecordedModel`.
        roles: The same for a single turn: `recorded(planner=[[{"call": "mkdir"}, {"say": "Done."}]])`.

    Raises:
        TypeError: Both forms at once.
    """
    if turns and roles:
        raise TypeError("recorded() takes turns, or the roles of one turn, not both")
    return RecordedModel(turns=list(turns) if turns else [roles])


def failing(error: Exception) -> BaseChatModel:
    """A model that raises the error at every call, whatever it is asked."""
    return _FailingModel(error=error)


class Driven(NamedTuple):
    """What driving a node came to."""

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
        node: A plain function or a generator of asks, as for `as_node`.
        state: What it is given.
        replies: What is answered, one for each ask in order: a `Reply`; an object or a message; JSON, which becomes an
            object of the ask's reply class, or for the planner a message (`{"call": ...}`, `{"say": ...}`); an
            exception, which becomes a failure.
        context: The knobs; the defaults if left out.
        roles: Which roles have a model.

    Returns:
        The node's update, everything it asked, everything it emitted.

    Raises:
        AssertionError: The node asked more or less than there are replies.
    """
    events: list[dict[str, Any]] = []
    scope = NodeScope(context or GeckoContext.model_validate({}), events.append, lambda role: role in roles)
    made = node(state, scope)
    if not isinstance(made, GeneratorType):
        return _driven(made, [], events, replies)
    asks: list[AnyAsk] = []
    sent: list[Reply] | None = None
    while True:
        try:
            asked = made.send(sent)
        except StopIteration as done:
            return _driven(done.value, asks, events, replies)
        asks += asked
        if len(asks) > len(replies):
            raise AssertionError(f"the node asked {len(asks)} times, {len(replies)} replies are given: {asks[-1]}")
        start = len(asks) - len(asked)
        sent = [reply_to(ask, reply) for ask, reply in zip(asked, replies[start:], strict=False)]


def reply_to(ask: AnyAsk, reply: Any) -> Reply:
    """A reply from whatever a test finds easiest to write; see `drive`."""
    if isinstance(reply, Reply):
        return reply
    usage = count_tokens(0, 0, model_name="")
    if isinstance(reply, Exception):
        return Reply(None, str(reply), usage)
    if isinstance(ask, Ask) and not isinstance(reply, BaseModel):
        return Reply(ask.reply.model_validate(reply), None, usage)
    if isinstance(reply, Mapping) and ("say" in reply or "call" in reply or "calls" in reply):
        return Reply(planned(dict(reply), prefix="call"), None, usage)
    return Reply(reply, None, usage)


def _driven(update: Any, asks: list[AnyAsk], events: list[dict[str, Any]], replies: Sequence[Any]) -> Driven:
    if len(asks) != len(replies):
        raise AssertionError(f"the node asked {len(asks)} times, {len(replies)} replies are given")
    return Driven(update, asks, events)


class _FailingModel(BaseChatModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    error: Exception

    @property
    def _llm_type(self) -> str:
        return "failing"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        raise self.error
