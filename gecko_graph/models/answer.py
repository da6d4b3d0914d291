"""Answers the asks of nodes, sync and async from one code: models and users' functions are called here.

A model's failure becomes a `Reply` with `failure`, never an exception, except for a wrong key, address or name
(`NoReply`). An exception of a user's function becomes a `Reply` as well. Threads and event loops share a fair lock
(first come, first served).
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import partial
from threading import Lock, Thread
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig
from langchain_core.runnables.config import ContextThreadPoolExecutor
from langgraph.errors import GraphBubbleUp

from ..errors import GeckoError, ModelError, RunFailure
from ..masking import mask
from .ask import AnyAsk, Dialogue, FunctionCall, ModelAsk, ModelCall, PlannerAsk, Reply
from .cache import ASKED, Unkept
from .factory import Models
from .failure import failure_of, is_in_doubt, message_of

_HELD: ContextVar[tuple[WaitingLine, ...]] = ContextVar("gecko_held", default=())
"""The lines that this thread or task holds; a tool that runs in another thread inherits them."""


class WaitingLine:
    """A fair lock for threads and event loops: `with line.turn():` or `async with line.aturn():`."""

    def __init__(self) -> None:
        self._mutex = Lock()
        self._tickets: deque[_Ticket] = deque()

    def turn(self) -> _Turn:
        """Wait for the turn, and hold it. Raises GeckoError instead of a deadlock."""
        return _Turn(self)

    @asynccontextmanager
    async def aturn(self) -> AsyncIterator[None]:
        """Wait for the turn without blocking the event loop."""
        ticket = self._enter(blocking=False)
        try:
            if ticket.turn:
                await asyncio.wrap_future(ticket.turn)
            held = _HELD.set((*_HELD.get(), self))
            try:
                yield
            finally:
                _HELD.reset(held)
        finally:
            self._leave(ticket)

    def _enter(self, *, blocking: bool) -> _Ticket:
        if self in _HELD.get():
            raise GeckoError("a tool called the world that is waiting for the tool's own result: call a fork instead")
        ticket = _Ticket()
        with self._mutex:
            if blocking and ticket.loop and any(ticket.loop is other.loop for other in self._tickets):
                raise GeckoError(
                    "this call would block the event loop that an earlier call needs: await world.acall(...) instead"
                )
            ticket.turn = Future() if self._tickets else None
            self._tickets.append(ticket)
        return ticket

    def _leave(self, ticket: _Ticket) -> None:
        if ticket.turn and ticket.turn.cancel():  # it stopped waiting before its turn
            return
        with self._mutex:
            self._tickets.popleft()
            while self._tickets and not self._tickets[0].wake():
                self._tickets.popleft()


class _Turn:
    """One holder's turn; a class, as a generator costs more, and each call of a world holds one."""

    __slots__ = ("_held", "_line", "_ticket")

    def __init__(self, line: WaitingLine) -> None:
        self._line = line

    def __enter__(self) -> None:
        self._ticket = self._line._enter(blocking=True)
        try:
            if self._ticket.turn:
                self._ticket.turn.result()
            self._held = _HELD.set((*_HELD.get(), self._line))
        except BaseException:
            self._line._leave(self._ticket)
            raise

    def __exit__(self, *error: object) -> None:
        try:
            _HELD.reset(self._held)
        finally:
            self._line._leave(self._ticket)


class _Ticket:
    """One caller's place in the line; `turn` completes at the caller's turn, and is None for the first one."""

    __slots__ = ("loop", "turn")

    def __init__(self) -> None:
        self.turn: Future[None] | None = None
        try:
            self.loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self.loop = None

    def wake(self) -> bool:
        """Wake the waiting caller; return False if it no longer waits."""
        if self.turn is None or not self.turn.set_running_or_notify_cancel():
            return False
        self.turn.set_result(None)
        return True


class Driver(NamedTuple):
    """Runs the steps of a coroutine, each called or awaited, so that sync and async share one code."""

    is_async: bool

    async def do(self, function: Callable[..., Any], afunction: Callable[..., Any], *args: Any, **named: Any) -> Any:
        return await afunction(*args, **named) if self.is_async else function(*args, **named)

    @asynccontextmanager
    async def turn(self, line: WaitingLine) -> AsyncIterator[None]:
        if self.is_async:
            async with line.aturn():
                yield
        else:
            with line.turn():
                yield


AT_ONCE, AWAITED = Driver(False), Driver(True)


def finish(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a coroutine that is driven by `AT_ONCE`, and so never waits for an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("a step of a sync hook waited for an event loop")


_MOST_THREADS = 16
TIME_IS_OVER = "no reply within the rest of time_budget_s"


def answer(
    asks: Sequence[AnyAsk], models: Models, config: RunnableConfig | None = None, *, deadline: float | None = None
) -> list[Reply]:
    """Answer all asks, in parallel if there are several.

    Callbacks, tags and metadata of the node's config are passed to the models. Models may answer until the deadline (as
    `time.time()`).

    Returns:
        One reply per ask, in order; a model's failure is in its reply.
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
    if isinstance(ask, FunctionCall):
        came: Reply = await driver.do(perform, aperform, ask)
        return came
    dialogue, own = models.open(ask), _config(ask, config)
    asked = ASKED.set((ask.role, ask.where.turn, ask.where.attempt, ask.where.question))
    try:
        call = next(dialogue)
        while True:
            call = _resume(dialogue, await _invoke_until(deadline, call, own, driver))
    except StopIteration as done:
        reply: Reply = done.value
        return reply
    finally:
        ASKED.reset(asked)


def _resume(dialogue: Dialogue, message: Any) -> ModelCall:
    """Send a model's reply into the dialogue; an unexpected exception becomes a failure."""
    try:
        return dialogue.send(message)
    except (StopIteration, ModelError):
        raise
    except Exception as error:
        failure = f"the model's reply could not be read ({failure_of(error)})"
        raise StopIteration(Reply(None, failure)) from error


async def _invoke_until(deadline: float | None, call: ModelCall, config: RunnableConfig, driver: Driver) -> Any:
    """Call the model; after the deadline (client retries included) the call is abandoned in its thread."""
    if deadline is None:
        return await _invoke(call, config, driver)
    left, made = deadline - time.time(), partial(_invoke, call, config, driver)
    work = FunctionCall(function=made if driver.is_async else lambda: finish(made()), timeout_s=left)
    done = await driver.do(perform, aperform, work) if left > 0 else Reply(late=True)
    return RunFailure(TIME_IS_OVER) if done.late else done.value


async def _invoke(call: ModelCall, config: RunnableConfig, driver: Driver) -> Any:
    runnable, options = _unbind(call.runnable)
    messages = call.messages
    if isinstance(messages, list) and (type(runnable).invoke, type(runnable).ainvoke) == _STOCK:
        # the prompt value that LangChain would build, without validating a long conversation at each call
        messages = ChatPromptValue.model_construct(messages=messages)
    try:
        return await driver.do(runnable.invoke, runnable.ainvoke, messages, config, **options)
    except (GraphBubbleUp, Unkept):
        raise
    except Exception as error:  # noqa: BLE001 - the boundary to models: any exception becomes data
        return error


def _unbind(runnable: Runnable[Any, Any]) -> tuple[Runnable[Any, Any], dict[str, Any]]:
    """Return the bound model and its options: merging a binding's empty config takes 0.1 ms per call."""
    options: dict[str, Any] = {}
    while (
        isinstance(runnable, RunnableBinding)
        and (type(runnable).invoke, type(runnable).ainvoke) == (RunnableBinding.invoke, RunnableBinding.ainvoke)
        and not (runnable.config or runnable.config_factories)
    ):
        options, runnable = {**runnable.kwargs, **options}, runnable.bound
    return runnable, options


_STOCK = (BaseChatModel.invoke, BaseChatModel.ainvoke)


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


def perform(call: FunctionCall) -> Reply:
    """Run the function in a thread of its own, which is abandoned after the timeout."""
    try:
        return _start(call).result(call.timeout_s)
    except TimeoutError:
        return _too_late(call)


async def aperform(call: FunctionCall) -> Reply:
    """Run the function as `perform` does, without blocking the event loop; coroutine functions run in the loop."""
    if is_async(call.function):
        return await _await(call)
    future = asyncio.wrap_future(_start(call))
    try:
        return await asyncio.wait_for(future, call.timeout_s)
    except TimeoutError:
        return _too_late(call)


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a function, or an object's `__call__`, is a coroutine function."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _start(call: FunctionCall) -> Future[Reply]:
    # a thread of its own, not a pool: a hanging tool must neither exhaust a pool nor prevent the process from exiting
    future: Future[Reply] = Future()
    future.set_running_or_notify_cancel()  # from here on it cannot be cancelled
    context = copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(finish, _call(call, AT_ONCE)))
        except BaseException as error:  # noqa: BLE001 - LangGraph's control flow is passed to the caller
            future.set_exception(error)

    Thread(target=run, daemon=True, name="gecko-tool").start()
    return future


async def _call(call: FunctionCall, driver: Driver) -> Reply:
    try:
        value = call.function(*call.args, **call.kwargs)
        if inspect.isawaitable(value):
            value = await value if driver.is_async else asyncio.run(_finished(value))
        return Reply(value if call.then is None else call.then(value))
    except GraphBubbleUp:
        raise
    except BaseException as error:
        if driver.is_async and _is_cancelled(error):
            raise
        return _failed(call, error)


async def _finished(value: Any) -> Any:
    return await value


async def _await(call: FunctionCall) -> Reply:
    task = asyncio.ensure_future(_call(call, AWAITED))
    try:
        await asyncio.wait({task}, timeout=call.timeout_s)
        return task.result() if task.done() else _too_late(call)
    finally:
        task.cancel()  # not awaited: a coroutine that ignores cancellation would block the run


def _is_cancelled(error: BaseException) -> bool:
    """Return whether the task was cancelled from outside; a tool may raise the same exception itself."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _too_late(call: FunctionCall) -> Reply:
    return Reply(failure=f"did not answer within {call.timeout_s:g} s", late=True)


def _failed(call: FunctionCall, error: BaseException) -> Reply:
    function, trace = getattr(call.function, "__func__", call.function), error.__traceback__
    has_begun = trace is None or trace.tb_next is not None or not inspect.isfunction(function)
    is_unbound = isinstance(error, TypeError) and not has_begun  # a running function has a frame of its own
    return Reply(None, error_text(error), in_doubt=is_in_doubt(error) and not is_unbound, error=error)


def error_text(error: BaseException) -> str:
    """Return an error's class and message, without secrets."""
    text = mask(message_of(error).strip())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
