"""The worlds on which the real calls of a message are booked: they run in tasks of their own, which share one."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import asynccontextmanager
from threading import Lock
from typing import Any, NamedTuple
from weakref import ref

from langgraph.checkpoint.base import BaseCheckpointSaver

from ..errors import GeckoError, StateError
from ..models.work import Done, Work, aperform, perform
from ..state import JsonObject
from ..threads import OTHER_RUN, look_for_other_runs
from ..waiting import Driver, WaitingLine
from ..world import World

MOST_LIVE = 256
"""Messages whose real calls are under way in this process, over all threads."""
PATIENCE_S = 0.25
"""How long a call waits for one before it in the message that may never come: another middleware may hold it back."""
POLL_S = 0.001


class Live(NamedTuple):
    """The world of one message's real calls, as they end."""

    world: World
    first: int
    """Number of the message's first call in the world's log."""
    begun: set[str | None]
    """Ids of its calls that have had their turn."""
    line: WaitingLine
    made: dict[tuple[str, str | None], tuple[ref[Any], Any]]
    """By task and call: the runtime of the run that has made it, and what came of it."""

    def find_made(self, request: Any) -> Any:
        """Return what came of a call that another run of the same task has made; None where this run is to make it."""
        runtime, came = self.made.get(_key_of(request), (None, None))
        return None if runtime and runtime() is request.runtime else came

    def keep(self, request: Any, came: Any) -> None:
        """Keep what came of a call."""
        self.made[_key_of(request)] = ref(request.runtime), came

    @asynccontextmanager
    async def turn(self, own: str | None, earlier: set[str | None], driver: Driver) -> Any:
        """Hold the turn, behind the calls before this one in the message: tasks come in any order."""
        deadline = time.monotonic() + PATIENCE_S
        while not earlier <= self.begun and time.monotonic() < deadline:
            await driver.do(time.sleep, asyncio.sleep, POLL_S)
        async with driver.turn(self.line):
            self.begun.add(own)
            yield


def _key_of(request: Any) -> tuple[str, str | None]:
    known = (request.runtime.config or {}).get("configurable", {})
    return str(known.get("checkpoint_ns", "")), request.tool_call["id"]


class LiveWorlds:
    """The live worlds of a process: by the checkpoint that a message's calls begin from.

    So they live through an interrupt, and a run that goes back to an earlier checkpoint begins there.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[Any, Live] = OrderedDict()
        self._mutex = Lock()

    async def find(self, request: Any, fork: Callable[[], World], driver: Driver) -> Live:
        """Return the message's world; outside of a graph each call has one of its own.

        In a process that goes on with a message, it begins with the calls that another one has made of it. `fork`
        returns a world at the request's snapshot.

        Raises:
            GeckoError: The calls that were made cannot be read.
        """
        known = (request.runtime.config or {}).get("configurable", {})
        key = find_checkpoint(known)[1] or object()
        live = self._known.get(key)
        if live is None:
            made = await read_made(known, driver)
            with self._mutex:
                live = self._known.get(key)
                if live is None:
                    begun = {record["step"]["call"]["id"] for record in made}
                    first = len(request.state["gecko"]["log"])
                    live = self._known[key] = Live(fork(), first, begun, WaitingLine(), {})
                    live.world.replay(made)
                while len(self._known) > MOST_LIVE:
                    self._known.popitem(last=False)
        return live


def find_checkpoint(known: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the agent's namespace, and the checkpoint that its tasks have begun from, saved or not."""
    namespace = str(known.get("checkpoint_ns", "")).rpartition("|")[0]
    return namespace, (known.get("checkpoint_map") or {}).get(namespace)


async def read_made(known: Mapping[str, Any], driver: Driver) -> list[JsonObject]:
    """Return the message's calls that a run before has made: its other tasks' writes, which no state shows yet."""
    saver, (namespace, own) = known.get("__pregel_checkpointer"), find_checkpoint(known)
    if not isinstance(saver, BaseCheckpointSaver) or not own:
        return []
    config = {"thread_id": known["thread_id"], "checkpoint_ns": namespace, "checkpoint_id": own}
    done: Done = await driver.do(perform, aperform, Work(function=saver.get_tuple, args=({"configurable": config},)))
    if done.failure:
        raise GeckoError(f"the calls of this message that were made already cannot be read: {done.failure}")
    writes = done.value.pending_writes if done.value else None
    made = [record for _, key, value in writes or () if key == "gecko_done" for record in (value or {}).values()]
    return sorted(made, key=lambda record: int(record["at"]))


async def check_alone(driver: Driver) -> None:
    """Raise StateError where another run has written to the thread: an approval that was sent twice is used once."""
    others = look_for_other_runs()
    if others and (await driver.do(perform, aperform, others)).value:
        raise StateError(OTHER_RUN)
