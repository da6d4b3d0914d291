"""The requests that nodes yield, to models or functions, and the replies."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from pydantic import BaseModel

from ..context import BAND
from ..masking import mask
from ..state import JsonObject, Role, RoleUsage
from .usage import no_usage


@dataclass(frozen=True, slots=True)
class QuestionId:
    """The place of a question in a run, by which recorded replies are found.

    Args:
        turn: Turn of the thread, from 0.
        attempt: Number of the attempt, from 1; 0 outside attempts (bootstrapper, checklist, converter).
        question: Number of the role's earlier questions in this turn, for the planner in this attempt.
    """

    turn: int = 0
    attempt: int = 0
    question: int = 0


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to a helper role, answered by an object of class `reply` that covers each of `ids`.

    `schema` is a more specific JSON Schema than that of the class, for example with the tool's result schema. `band` is
    the interval of probabilities in which a decision model is unsure.
    """

    role: Role
    variables: Mapping[str, str]
    reply: type[BaseModel]
    where: QuestionId
    schema: JsonObject | None = None
    ids: tuple[str, ...] = ()
    band: tuple[float, float] = BAND


@dataclass(frozen=True, slots=True)
class PlannerAsk:
    """A question that is answered by an AIMessage: to the planner, or another role that sends messages.

    `tools` are OpenAI function dicts. `uncached` bypasses LangChain's cache, if equal prompts need different replies.
    """

    messages: list[BaseMessage]
    tools: list[JsonObject]
    where: QuestionId
    role: Role = "planner"
    uncached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """A function to run, for at most `timeout_s` seconds: `then(function(*args, **kwargs))`.

    Args:
        function: The user's function or coroutine function.
        args: Positional arguments.
        kwargs: Keyword arguments.
        timeout_s: Time limit in seconds, `then` included.
        then: Our conversion of the result for the node.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float = 30.0
    then: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to an ask: a value, or the reason why there is none.

    Args:
        value: An object of the reply class, or the planner's message; None after a failure.
        failure: One line on why there is no value; for a `FunctionCall`, the function's exception.
        usage: The question's usage, repairs included.
        absent: True if the role has no model.
        late: True if a function exceeded its time limit.
        in_doubt: True if a function raised and may have taken effect.
        error: The function's exception.
    """

    value: Any = None
    failure: str | None = None
    usage: RoleUsage = field(default_factory=no_usage)
    absent: bool = False
    late: bool = False
    in_doubt: bool = False
    error: BaseException | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Mask the failure and replace lone surrogates: the text comes from models and users' functions."""
        if self.failure is not None:
            object.__setattr__(self, "failure", mask(self.failure).encode("utf-8", "replace").decode())


ModelAsk: TypeAlias = Ask | PlannerAsk
AnyAsk: TypeAlias = Ask | PlannerAsk | FunctionCall
"""The requests that a node may yield."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model, performed by the driver."""

    runnable: Runnable[Any, Any]
    messages: Any
    """The input: messages for a chat model, a request for a decision model."""


Dialogue: TypeAlias = Generator[ModelCall, Any, Reply]
"""Yields model calls, receives the message or the exception, returns the Reply; neither sync nor async."""
