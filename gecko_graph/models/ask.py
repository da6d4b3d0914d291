"""Asking models: what nodes yield, what they get back.

A model's fault is a `Reply` with a failure, never an exception.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ContextThreadPoolExecutor
from langgraph.errors import GraphBubbleUp
from pydantic import BaseModel

from ..state import JsonObject, Role, RoleUsage
from . import usage
from .work import Done, Work, aperform, perform

if TYPE_CHECKING:
    from .factory import Models

__all__ = [
    "AnyAsk",
    "Ask",
    "Dialogue",
    "ModelAsk",
    "ModelCall",
    "PlannerAsk",
    "Reply",
    "Where",
    "Work",
    "aanswer",
    "answer",
]

_MOST_THREADS = 16


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
    """A question to a helper role, answered with an object of class `reply`."""

    role: Role
    variables: Mapping[str, str]
    reply: type[BaseModel]
    where: Where


@dataclass(frozen=True, slots=True)
class PlannerAsk:
    """A question to the planner, answered with an AIMessage. `tools` are OpenAI function dicts."""

    messages: list[BaseMessage]
    tools: list[JsonObject]
    where: Where

    @property
    def role(self) -> Role:
        """Always the planner."""
        return "planner"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: a value, or the reason why there is none.

    Args:
        value: An object of the reply class, or the planner's message; None after a failure.
        failure: Why there is no value, in one short line; None otherwise. For `Work`, what the function raised.
        usage: What the question cost, repairs included.
        absent: True where nobody could be asked: the role has no model; or where the work was not over in time.
    """

    value: Any
    failure: str | None
    usage: RoleUsage = field(default_factory=usage.nothing)
    absent: bool = False


ModelAsk: TypeAlias = Ask | PlannerAsk
AnyAsk: TypeAlias = Ask | PlannerAsk | Work
"""What a node may yield."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model, for whoever does the input and output."""

    runnable: Runnable[Any, Any]
    messages: list[BaseMessage]
    options: Mapping[str, Any] = field(default_factory=dict)


Dialogue: TypeAlias = Generator[ModelCall, Any, Reply]
"""Yields model calls, is sent the reply's message or the exception, returns the Reply. Neither sync nor async."""


def answer(asks: Sequence[AnyAsk], models: Models, config: RunnableConfig | None = None) -> list[Reply]:
    """Answer all asks of the list, at once where there are several.

    Args:
        asks: The questions, and functions to be run.
        models: Which model speaks for which role.
        config: The node's config; its callbacks, tags and metadata are handed on to the models.

    Returns:
        One reply for each ask, in order. A model's fault is a failure in it.
    """
    if len(asks) == 1:
        return [_answer(asks[0], models, config)]
    if not asks:
        return []
    workers = min(len(asks), (config or {}).get("max_concurrency") or _MOST_THREADS)
    with ContextThreadPoolExecutor(max_workers=workers) as executor:
        return list(executor.map(lambda ask: _answer(ask, models, config), asks))


async def aanswer(asks: Sequence[AnyAsk], models: Models, config: RunnableConfig | None = None) -> list[Reply]:
    """As `answer`, without blocking the event loop."""
    if len(asks) == 1:
        return [await _aanswer(asks[0], models, config)]
    limit = (config or {}).get("max_concurrency")
    gate = asyncio.Semaphore(limit) if limit else nullcontext()
    tasks = [asyncio.create_task(_gated(gate, ask, models, config)) for ask in asks]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


async def _gated(
    gate: AbstractAsyncContextManager[None], ask: AnyAsk, models: Models, config: RunnableConfig | None
) -> Reply:
    async with gate:
        return await _aanswer(ask, models, config)


def _answer(ask: AnyAsk, models: Models, config: RunnableConfig | None) -> Reply:
    if isinstance(ask, Work):
        return _told(perform(ask))
    dialogue, own = models.open(ask), _config(ask, config)
    try:
        call = next(dialogue)
        while True:
            call = dialogue.send(_invoke(call, own))
    except StopIteration as done:
        reply: Reply = done.value
        return reply


async def _aanswer(ask: AnyAsk, models: Models, config: RunnableConfig | None) -> Reply:
    if isinstance(ask, Work):
        return _told(await aperform(ask))
    dialogue, own = models.open(ask), _config(ask, config)
    try:
        call = next(dialogue)
        while True:
            call = dialogue.send(await _ainvoke(call, own))
    except StopIteration as done:
        reply: Reply = done.value
        return reply


def _invoke(call: ModelCall, config: RunnableConfig) -> Any:
    try:
        return call.runnable.invoke(call.messages, config, **call.options)
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary to models: whatever they raise becomes data
        return error


async def _ainvoke(call: ModelCall, config: RunnableConfig) -> Any:
    try:
        return await call.runnable.ainvoke(call.messages, config, **call.options)
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary to models: whatever they raise becomes data
        return error


def _told(done: Done) -> Reply:
    return Reply(done.value, done.failure, absent=done.late)


def _config(ask: ModelAsk, config: RunnableConfig | None) -> RunnableConfig:
    given: RunnableConfig = config or {}
    own = [f"gecko:{ask.role}"] if isinstance(ask, PlannerAsk) else ["nostream", f"gecko:{ask.role}"]
    where = {
        "gecko_role": ask.role,
        "gecko_turn": ask.where.turn,
        "gecko_attempt": ask.where.attempt,
        "gecko_question": ask.where.question,
    }
    return {
        **given,
        "tags": [*(given.get("tags") or ()), *own],
        "metadata": {**(given.get("metadata") or {}), **where},
        "run_name": ask.role,
    }
