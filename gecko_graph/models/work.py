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

from ..masking import mask
from ..state import RoleUsage
from .doubt import is_in_doubt
from .failure import message_of
from .usage import no_usage
from .waiting import AT_ONCE, AWAITED, Driver, finish


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A function to be run, for at most `timeout_s` seconds: `then(function(*args, **kwargs))`.

    Args:
        function: The user's function; may be a coroutine function.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        timeout_s: Seconds for both.
        then: Ours: makes what a node can use of the value, within the same time limit.
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
        failure: Why there is no value, in one short line; None otherwise. For `Work`, what the function raised.
        usage: What the question cost, repairs included.
        absent: True where the role has no model.
        late: True where work was not over in time.
        in_doubt: True where what work raised leaves open if it took effect.
        error: What work raised.
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


def perform(work: Work) -> Reply:
    """Run the work in a thread of its own; a function that hangs is left behind there."""
    try:
        return _start(work).result(work.timeout_s)
    except TimeoutError:
        return _too_late(work)


async def aperform(work: Work) -> Reply:
    """Perform as `perform` does, without blocking the event loop; a coroutine function runs on it."""
    if _is_async(work.function):
        return await _await(work)
    future = asyncio.wrap_future(_start(work))
    try:
        return await asyncio.wait_for(future, work.timeout_s)
    except TimeoutError:
        return _too_late(work)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _start(work: Work) -> Future[Reply]:
    # a thread of its own, not a pool: a hanging tool must neither use up a pool nor keep the process from ending
    future: Future[Reply] = Future()
    future.set_running_or_notify_cancel()  # from here on nobody can cancel it
    context = copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(finish, _call(work, AT_ONCE)))
        except BaseException as error:  # noqa: BLE001 - LangGraph's control flow goes on to the caller
            future.set_exception(error)

    Thread(target=run, daemon=True, name="gecko-tool").start()
    return future


async def _call(work: Work, driver: Driver) -> Reply:
    try:
        value = work.function(*work.args, **work.kwargs)
        if inspect.isawaitable(value):
            value = await value if driver.is_async else asyncio.run(_finished(value))
        return Reply(value if work.then is None else work.then(value))
    except GraphBubbleUp:
        raise
    except BaseException as error:
        if driver.is_async and _is_cancelled(error):
            raise
        return _failed(work, error)


async def _finished(value: Any) -> Any:
    return await value


async def _await(work: Work) -> Reply:
    task = asyncio.ensure_future(_call(work, AWAITED))
    try:
        await asyncio.wait({task}, timeout=work.timeout_s)
        return task.result() if task.done() else _too_late(work)
    finally:
        task.cancel()  # and not waited for: a coroutine that does not let itself be cancelled would hold the run


def _is_cancelled(error: BaseException) -> bool:
    """Return whether the work is cancelled from outside; a tool may raise the same error by itself."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _too_late(work: Work) -> Reply:
    return Reply(failure=f"did not answer within {work.timeout_s:g} s", late=True)


def _failed(work: Work, error: BaseException) -> Reply:
    function, trace = getattr(work.function, "__func__", work.function), error.__traceback__
    has_begun = trace is None or trace.tb_next is not None or not inspect.isfunction(function)
    is_unbound = isinstance(error, TypeError) and not has_begun  # a function that has begun has a frame of its own
    return Reply(None, error_text(error), in_doubt=is_in_doubt(error) and not is_unbound, error=error)


def error_text(error: BaseException) -> str:
    """Return an error in one text: its class and message, without secrets."""
    text = mask(message_of(error).strip())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
