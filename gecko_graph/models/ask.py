"""The requests that nodes yield, for a model or a function, and the replies that they are sent."""

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
class Where:
    """The place of a question in a run: a recorded model looks its reply up by it.

    Args:
        turn: Turn of the thread, from 0.
        attempt: Number of the attempt, from 1; 0 outside of any attempt (bootstrapper, checklist, converter).
        question: How many times this role was asked before in this turn; for the planner, in this attempt. From 0.
    """

    turn: int = 0
    attempt: int = 0
    question: int = 0


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to a helper role, answered with an object of class `reply`, which covers each of `ids`.

    `schema` is the reply's JSON Schema if it is more specific than the class: with the form of a tool's own result.
    `band` are the probabilities between which a decision model is unsure.
    """

    role: Role
    variables: Mapping[str, str]
    reply: type[BaseModel]
    where: Where
    schema: JsonObject | None = None
    ids: tuple[str, ...] = ()
    band: tuple[float, float] = BAND


@dataclass(frozen=True, slots=True)
class PlannerAsk:
    """A question that is answered with an AIMessage: the planner's, or another role's that sends messages.

    `tools` are OpenAI function dicts; `uncached` passes by LangChain's cache, where equal prompts want other replies.
    """

    messages: list[BaseMessage]
    tools: list[JsonObject]
    where: Where
    role: Role = "planner"
    uncached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """A function to be run, for at most `timeout_s` seconds: `then(function(*args, **kwargs))`.

    Args:
        function: The user's function; may be a coroutine function.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        timeout_s: Seconds for both.
        then: Ours: converts the value for the node, within the same time limit.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float = 30.0
    then: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to an ask or to work: a value, or the reason for its absence.

    Args:
        value: An object of the reply class, or the planner's message; None after a failure.
        failure: Why there is no value, in one short line; None otherwise. For `Work`, the function's exception.
        usage: The question's usage, repairs included.
        absent: True if the role has no model.
        late: True if work was not over in time.
        in_doubt: True if work raised and may have taken effect.
        error: The exception of work.
    """

    value: Any = None
    failure: str | None = None
    usage: RoleUsage = field(default_factory=no_usage)
    absent: bool = False
    late: bool = False
    in_doubt: bool = False
    error: BaseException | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Mask the failure and replace half surrogate pairs: whatever models and users' functions say comes through."""
        if self.failure is not None:
            object.__setattr__(self, "failure", mask(self.failure).encode("utf-8", "replace").decode())


ModelAsk: TypeAlias = Ask | PlannerAsk
AnyAsk: TypeAlias = Ask | PlannerAsk | FunctionCall
"""The requests that a node may yield."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model, for the driver that does the input and output."""

    runnable: Runnable[Any, Any]
    messages: Any
    """Its input: messages for a chat model, a request for a decision model."""


Dialogue: TypeAlias = Generator[ModelCall, Any, Reply]
"""Yields model calls, is sent the reply's message or the exception, returns the Reply. Neither sync nor async."""
