"""One code for sync and async hooks: a coroutine that does each step at once, or awaits it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from ..waiting import WaitingLine


class Driver(NamedTuple):
    """Does the steps of a coroutine."""

    is_async: bool

    async def do(self, function: Callable[..., Any], afunction: Callable[..., Any], *args: Any) -> Any:
        """Call the one or await the other."""
        return await afunction(*args) if self.is_async else function(*args)

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
