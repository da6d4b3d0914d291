"""What threads and event loops share: a fair lock (first come, first served), and one code for sync and async."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, NamedTuple

from ..errors import GeckoError

_HELD: ContextVar[tuple[WaitingLine, ...]] = ContextVar("gecko_held", default=())
"""The lines that this thread or task holds; a tool that it runs in another thread inherits them."""


class WaitingLine:
    """Give `with line.turn():` and `async with line.aturn():` to one holder at a time."""

    def __init__(self) -> None:
        self._mutex = Lock()
        self._tickets: deque[_Ticket] = deque()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the turn, and hold it. Raises GeckoError where it would never come."""
        ticket = self._enter(blocking=True)
        try:
            ticket.result()
            with self._held():
                yield
        finally:
            self._leave(ticket)

    @asynccontextmanager
    async def aturn(self) -> AsyncIterator[None]:
        """Wait for the turn as `turn` does, without blocking the event loop."""
        ticket = self._enter(blocking=False)
        try:
            if not ticket.done():
                await asyncio.wrap_future(ticket)
            with self._held():
                yield
        finally:
            self._leave(ticket)

    @contextmanager
    def _held(self) -> Iterator[None]:
        held = _HELD.set((*_HELD.get(), self))
        try:
            yield
        finally:
            _HELD.reset(held)

    def _enter(self, *, blocking: bool) -> _Ticket:
        if self in _HELD.get():
            raise GeckoError("a tool called the world that is waiting for the tool's own result: call a fork instead")
        ticket = _Ticket()
        with self._mutex:
            if blocking and ticket.loop and any(ticket.loop is other.loop for other in self._tickets):
                raise GeckoError(
                    "this call would block the event loop that an earlier call needs: await world.acall(...) instead"
                )
            self._tickets.append(ticket)
            if len(self._tickets) == 1:
                ticket.wake()
        return ticket

    def _leave(self, ticket: _Ticket) -> None:
        if ticket.cancel():  # it stopped waiting before its turn came
            return
        with self._mutex:
            self._tickets.popleft()
            while self._tickets and not self._tickets[0].wake():
                self._tickets.popleft()


class _Ticket(Future[None]):
    """One caller's place in the line; done when its turn has come."""

    def __init__(self) -> None:
        super().__init__()
        try:
            self.loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self.loop = None

    def wake(self) -> bool:
        """Wake the waiting caller; return False if it has stopped waiting."""
        if not self.set_running_or_notify_cancel():
            return False
        self.set_result(None)
        return True


class Driver(NamedTuple):
    """Does the steps of a coroutine, each at once or awaited: so that sync and async are one code."""

    is_async: bool

    async def do(self, function: Callable[..., Any], afunction: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Call the one or await the other."""
        return await afunction(*args, **named) if self.is_async else function(*args, **named)

    @asynccontextmanager
    async def turn(self, line: WaitingLine) -> AsyncIterator[None]:
        """Hold the turn in a waiting line."""
        if self.is_async:
            async with line.aturn():
                yield
        else:
            with line.turn():
                yield


AT_ONCE, AWAITED = Driver(False), Driver(True)


def finish(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return what a coroutine comes to that is driven by `AT_ONCE`: it never waits for an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("a step of a sync hook waited for an event loop")
