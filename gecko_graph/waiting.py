"""A waiting line for threads and event loops alike: one at a time, first come, first served."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from threading import Lock

from .errors import GeckoError

_HELD: ContextVar[tuple[WaitingLine, ...]] = ContextVar("gecko_held", default=())
"""The lines whose turn this thread or task has; a tool that it runs in another thread has them too."""


class WaitingLine:
    """Give `with line.turn():` and `async with line.aturn():` to one holder at a time."""

    def __init__(self) -> None:
        self._mutex = Lock()
        self._places: deque[_Place] = deque()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the turn, and hold it. Raises GeckoError where it would never come."""
        place = self._enter(blocking=True)
        try:
            place.result()
            with self._held():
                yield
        finally:
            self._leave(place)

    @asynccontextmanager
    async def aturn(self) -> AsyncIterator[None]:
        """As `turn`, without blocking the event loop."""
        place = self._enter(blocking=False)
        try:
            if not place.done():
                await asyncio.wrap_future(place)
            with self._held():
                yield
        finally:
            self._leave(place)

    @contextmanager
    def _held(self) -> Iterator[None]:
        held = _HELD.set((*_HELD.get(), self))
        try:
            yield
        finally:
            _HELD.reset(held)

    def _enter(self, *, blocking: bool) -> _Place:
        if self in _HELD.get():
            raise GeckoError("a tool of this world calls the world that waits for its answer: call a fork instead")
        place = _Place()
        with self._mutex:
            if blocking and place.loop and any(place.loop is each.loop for each in self._places):
                raise GeckoError(
                    "this would block the event loop that the call before it needs: await world.acall(...) instead"
                )
            self._places.append(place)
            if len(self._places) == 1:
                place.call_up()
        return place

    def _leave(self, place: _Place) -> None:
        if place.cancel():  # it stopped waiting before its turn came
            return
        with self._mutex:
            self._places.popleft()
            while self._places and not self._places[0].call_up():
                self._places.popleft()


class _Place(Future[None]):
    """A place in the line; done when its turn has come."""

    def __init__(self) -> None:
        super().__init__()
        try:
            self.loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self.loop = None

    def call_up(self) -> bool:
        """Tell that the turn has come; False if nobody waits any more."""
        if not self.set_running_or_notify_cancel():
            return False
        self.set_result(None)
        return True
