"""The shared world of a message's real calls, which run in parallel tasks."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple

from langchain_core.messages import ToolMessage

from ..errors import GeckoError, StateError
from ..models.answer import Driver, WaitingLine, aperform, perform
from ..models.ask import FunctionCall, Reply
from ..real.questions import Standing
from ..state import JsonObject
from ..world.records import ExecutedCall
from ..world.refusals import is_same_call
from ..world.world import World
from .turns import keys_of

MOST_LIVE = 256
"""Most messages with running real calls in this process, over all threads."""
PATIENCE_S = 10.0
"""Seconds that a call waits for an earlier one in the message if LangGraph does not tell whether that is running."""
POLL_S = 0.005


class Live(NamedTuple):
    """The world of one message's real calls, updated as they end."""

    world: World
    first: int
    """Number of the message's first call in the world's log."""
    closed: set[str | None]
    """Ids of its answered calls."""
    line: WaitingLine
    made: dict[str, Any]
    """The outcomes of its calls by task: an answer that is sent twice starts the same task in two runs."""
    booked: Mapping[str, ExecutedCall]
    """The journal's entries, by id, of its calls that another run has recorded and this one may be asked to make."""
    keys: dict[str, str]
    """The known claims of its calls, by id."""

    def records(self) -> list[JsonObject]:
        """Return the outcomes of the message's calls so far, with their places in the log and the models' usage."""
        records = enumerate(self.world.records(self.first), self.first)
        return [{**record, "at": at, "usage": self.world.usage} for at, record in records]

    def find_stored(self, call: Mapping[str, Any], answers: Sequence[JsonObject]) -> JsonObject | None:
        """Return the rehearsal of the message's next call, as long as calls come in the rehearsed order."""
        made = self.records()
        is_kept = all(one["step"] == other["record"]["step"] for one, other in zip(made, answers, strict=False))
        after = answers[len(made) : len(made) + 1] if is_kept else ()
        return next((each["record"] for each in after if is_same_call(each["call"], call)), None)

    async def wait_for(self, earlier: set[str | None], known: Mapping[str, Any], driver: Driver) -> bool:
        """Wait while earlier calls are running; return whether all of them have an answer.

        Calls that another middleware answers, or holds back for a person, never arrive here.
        """
        deadline = time.monotonic() + PATIENCE_S
        while (left := earlier - self.closed) and find_checkpoint(known):
            if siblings := look_at_siblings(known):
                deadline = time.monotonic() + PATIENCE_S
            running, has_failed = siblings or (left, True)
            if not left & running or time.monotonic() > deadline:
                return not has_failed or left <= find_answered(await read_writes(known, driver))
            await driver.do(time.sleep, asyncio.sleep, POLL_S)
        return True


def config_of(request: Any) -> dict[str, Any]:
    return (request.runtime.config or {}).get("configurable", {})  # type: ignore[no-any-return]


class LiveWorlds:
    """The live worlds of a process, by the checkpoint at which a message's calls start.

    So they survive an interrupt, and a run from an earlier checkpoint starts there.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[Any, Live] = OrderedDict()
        self._mutex = Lock()

    async def find(self, request: Any, fork: Callable[[], World], driver: Driver) -> Live:
        """Return the message's world; outside of a graph each call has its own.

        In a process that continues a message, the world starts with the calls that another process has made of it.
        `fork` returns a world at the request's snapshot.

        Raises:
            GeckoError: The calls that were made cannot be read.
        """
        known = config_of(request)
        key = find_checkpoint(known) or object()
        live = self._known.get(key)
        if live is None:
            writes = await read_writes(known, driver)
            made = [record for name, value in writes if name == "gecko_done" for record in (value or {}).values()]
            made.sort(key=lambda record: int(record["at"]))
            first, world = len(request.state["gecko"]["log"]), fork()
            world.replay(made, made[-1]["usage"] if made else {})
            entries = (entry for name, value in writes if name == "gecko_journal" for entry in value or ())
            booked = {entry["call"]["id"]: entry for entry in entries}
            keys = keys_of(booked.values())
            for told in (value["told"] for name, value in writes if name == "gecko_turn"):
                keys |= told
            with self._mutex:
                new = Live(world, first, find_answered(writes), WaitingLine(), {}, booked, keys)
                live = self._known.setdefault(key, new)
                while len(self._known) > MOST_LIVE:
                    self._known.popitem(last=False)
        return live


def find_checkpoint(known: Mapping[str, Any]) -> str | None:
    """Return the agent's checkpoint at which its tasks started, saved or not; None outside of a graph."""
    namespace = str(known.get("checkpoint_ns", "")).rpartition("|")[0]
    return (known.get("checkpoint_map") or {}).get(namespace)


async def read_writes(known: Mapping[str, Any], driver: Driver) -> list[tuple[str, Any]]:
    """Return the writes of the message's ended tasks, by channel; no state has them yet."""
    standing = Standing.of(known)
    if standing is None:
        return []
    work = FunctionCall(function=standing.saver.get_tuple, args=(standing.config(standing.graph),))
    done: Reply = await driver.do(perform, aperform, work)
    if done.failure:
        raise GeckoError(f"the earlier calls of this message cannot be read: {done.failure}")
    return [(key, value) for _, key, value in (done.value.pending_writes if done.value else None) or ()]


def find_answered(writes: Sequence[tuple[str, Any]]) -> set[str | None]:
    said = [value if isinstance(value, list) else [value] for key, value in writes if key == "messages"]
    return {message.tool_call_id for message in chain(*said) if isinstance(message, ToolMessage)}


def look_at_siblings(known: Mapping[str, Any]) -> tuple[set[str | None], bool] | None:
    """Return the running calls of this superstep, and whether one has ended without an answer.

    None if LangGraph's runner does not tell (yet): an ended task is for a moment in no list.

    Raises:
        StateError: Another run makes the message's calls; an answer of this one would conflict with that one's result.
    """
    try:
        tasks = known["__pregel_call"].keywords["futures"]()
        open_ = [task for future, task in list(tasks.items()) if task is not None and future not in tasks.done]
        errors = [future.exception() for future in list(tasks.done) if not future.cancelled()]
        if refused := [str(error) for error in errors if isinstance(error, StateError)]:
            raise StateError(refused[0])
        has_failed = any(future.cancelled() for future in list(tasks.done)) or any(errors)
        running = {call["id"] for task in open_ if isinstance(task.input, list) for call in task.input}
        return (running, has_failed) if len(open_) == tasks.counter else None
    except (AttributeError, LookupError, TypeError):
        return None
