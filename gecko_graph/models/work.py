"""Running a user's function for a node: with a time limit, off the event loop, and with what it raises as data."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

from langgraph.errors import GraphBubbleUp


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A function to be run: `function(*args, **kwargs)`, for at most `timeout_s` seconds; may be a coroutine function."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Done:
    """What came of it: a value, or what went wrong. `late` is True where it was not over in time."""

    value: Any = None
    failure: str | None = None
    late: bool = False


def perform(work: Work) -> Done:
    """Run the work in a thread of its own; a function that hangs is left behind there."""
    try:
        return _settle(_start(work), work.timeout_s)
    except TimeoutError:
        return _too_late(work)


async def aperform(work: Work) -> Done:
    """As `perform`, without blocking the event loop; a coroutine function runs on it."""
    if inspect.iscoroutinefunction(work.function):
        return await _await(work)
    try:
        future = asyncio.wrap_future(_start(work))
        return await asyncio.wait_for(future, work.timeout_s)
    except TimeoutError:
        return _too_late(work)


def _settle(future: Future[Done], timeout_s: float) -> Done:
    return future.result(timeout_s)


def _start(work: Work) -> Future[Done]:
    # a thread of its own, not a pool: a hanging tool must neither use up a pool nor keep the process from ending
    future: Future[Done] = Future()
    context = copy_context()

    def run() -> None:
        try:
            done = context.run(_call, work)
        except BaseException as error:  # noqa: BLE001 - control flow of LangGraph travels on to whoever waits
            _finish(future, error=error)
        else:
            _finish(future, done=done)

    Thread(target=run, daemon=True, name="gecko-tool").start()
    return future


def _finish(future: Future[Done], *, done: Done | None = None, error: BaseException | None = None) -> None:
    if not future.set_running_or_notify_cancel():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(done or Done())


def _call(work: Work) -> Done:
    try:
        value = work.function(*work.args, **work.kwargs)
        return Done(asyncio.run(_finished(value)) if inspect.isawaitable(value) else value)
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary to users' tools: what they raise is their error
        return Done(failure=_words(error))


async def _finished(value: Any) -> Any:
    return await value


async def _await(work: Work) -> Done:
    try:
        return Done(await asyncio.wait_for(work.function(*work.args, **work.kwargs), work.timeout_s))
    except GraphBubbleUp:
        raise
    except TimeoutError:
        return _too_late(work)
    except Exception as error:  # noqa: BLE001 - the boundary to users' tools: what they raise is their error
        return Done(failure=_words(error))


def _too_late(work: Work) -> Done:
    return Done(failure=f"did not answer within {work.timeout_s:g} s", late=True)


def _words(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
