"""Answering what nodes ask: models and users' functions are called here, sync or async.

A model's fault is a `Reply` with a failure, never an exception, but for a wrong key, address or name (`NoReply`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ContextThreadPoolExecutor
from langgraph.errors import GraphBubbleUp

from ..errors import ModelError, RunFailure
from .ask import AnyAsk, Dialogue, ModelAsk, ModelCall, PlannerAsk, Reply, Work
from .factory import Models
from .failure import failure_of
from .waiting import AT_ONCE, AWAITED, Driver, finish
from .work import aperform, perform

_MOST_THREADS = 16
TIME_IS_OVER = "no reply within what was left of time_budget_s"


def answer(
    asks: Sequence[AnyAsk], models: Models, config: RunnableConfig | None = None, *, deadline: float | None = None
) -> list[Reply]:
    """Answer all asks of the list, at once where there are several.

    The callbacks, tags and metadata of the node's config are handed on to the models, which may answer until the
    deadline (as `time.time()`).

    Returns:
        One reply for each ask, in order. A model's fault is a failure in it.
    """
    if len(asks) == 1:
        return [finish(_answer(asks[0], models, config, deadline, AT_ONCE))]
    if not asks:
        return []
    workers = min(len(asks), (config or {}).get("max_concurrency") or _MOST_THREADS)
    with ContextThreadPoolExecutor(max_workers=workers) as executor:
        return list(executor.map(lambda ask: finish(_answer(ask, models, config, deadline, AT_ONCE)), asks))


async def aanswer(
    asks: Sequence[AnyAsk], models: Models, config: RunnableConfig | None = None, *, deadline: float | None = None
) -> list[Reply]:
    """Answer as `answer` does, without blocking the event loop."""
    if len(asks) == 1:
        return [await _answer(asks[0], models, config, deadline, AWAITED)]
    limit = (config or {}).get("max_concurrency")
    gate = asyncio.Semaphore(limit) if limit else nullcontext()
    tasks = [asyncio.create_task(_gated(gate, _answer(ask, models, config, deadline, AWAITED))) for ask in asks]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


async def _gated(gate: AbstractAsyncContextManager[None], reply: Awaitable[Reply]) -> Reply:
    async with gate:
        return await reply


async def _answer(
    ask: AnyAsk, models: Models, config: RunnableConfig | None, deadline: float | None, driver: Driver
) -> Reply:
    if isinstance(ask, Work):
        came: Reply = await driver.do(perform, aperform, ask)
        return came
    dialogue, own = models.open(ask), _config(ask, config)
    try:
        call = next(dialogue)
        while True:
            call = _resume(dialogue, await _invoke_until(deadline, call, own, driver))
    except StopIteration as done:
        reply: Reply = done.value
        return reply


def _resume(dialogue: Dialogue, message: Any) -> ModelCall:
    """Send a model's reply. Whatever it holds raises nothing: what no rule has foreseen becomes a failure."""
    try:
        return dialogue.send(message)
    except (StopIteration, ModelError):
        raise
    except Exception as error:
        failure = f"the model's reply could not be read ({failure_of(error)})"
        raise StopIteration(Reply(None, failure)) from error


async def _invoke_until(deadline: float | None, call: ModelCall, config: RunnableConfig, driver: Driver) -> Any:
    """Call the model; a call that outlasts the deadline, its client's retries included, is left behind in a thread."""
    if deadline is None:
        return await _invoke(call, config, driver)
    left, made = deadline - time.time(), partial(_invoke, call, config, driver)
    work = Work(function=made if driver.is_async else lambda: finish(made()), timeout_s=left)
    done = await driver.do(perform, aperform, work) if left > 0 else Reply(late=True)
    return RunFailure(TIME_IS_OVER) if done.late else done.value


async def _invoke(call: ModelCall, config: RunnableConfig, driver: Driver) -> Any:
    try:
        return await driver.do(call.runnable.invoke, call.runnable.ainvoke, call.messages, config, **call.options)
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary to models: whatever they raise becomes data
        return error


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
