"""What nodes yield to have something asked or done, and what they are sent back."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from pydantic import BaseModel

from ..state import JsonObject, Role
from .work import Reply as Reply  # nodes know both from here
from .work import Work as Work


@dataclass(frozen=True, slots=True)
class Where:
    """Where in a run a question is asked: what a recorded model looks its reply up by.

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

    `schema` is the reply's JSON Schema where it is more specific than the class: with the form of a tool's own result.
    """

    role: Role
    variables: Mapping[str, str]
    reply: type[BaseModel]
    where: Where
    schema: JsonObject | None = None
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannerAsk:
    """A question that is answered with an AIMessage: the planner's, or another role's that sends messages.

    `tools` are OpenAI function dicts.
    """

    messages: list[BaseMessage]
    tools: list[JsonObject]
    where: Where
    role: Role = "planner"


ModelAsk: TypeAlias = Ask | PlannerAsk
AnyAsk: TypeAlias = Ask | PlannerAsk | Work
"""What a node may yield."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model, for the driver that does the input and output."""

    runnable: Runnable[Any, Any]
    messages: LanguageModelInput
    options: Mapping[str, Any] = field(default_factory=dict)


Dialogue: TypeAlias = Generator[ModelCall, Any, Reply]
"""Yields model calls, is sent the reply's message or the exception, returns the Reply. Neither sync nor async."""
