"""Sessions: one `World` each, begun as a fork; calls of one wait for each other, sessions never."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import uuid4

from starlette.responses import JSONResponse, Response

from ..errors import GeckoError, StateError
from ..state import Json, JsonObject, Step
from ..values.digest import check_json
from ..world.rung import Answer
from ..world.world import World
from .journal import Journal, Row
from .responses import PROBLEM, problem

DEFAULT = "default"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")
_WATCHED = 200
Drifts: TypeAlias = list[Any]


class Refused(GeckoError):
    """What cannot be done, with the HTTP status that says so, and what more is told."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None, **more: Json) -> None:
        super().__init__(message)
        self.status, self.headers, self.more = status, headers, more

    def respond(self) -> Response:
        """Return it as an answer."""
        return JSONResponse(problem(self.status, str(self), **self.more), self.status, self.headers, PROBLEM)


@dataclass(eq=False, slots=True)
class Session:
    """One world, and the one that it began as."""

    name: str
    start: World
    world: World
    steps: int = 0
    used: float = field(default_factory=time.monotonic)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    drifts: dict[int, Drifts] = field(default_factory=dict)
    """By the number of a real call where it was not as simulated."""
    late: asyncio.Task[Any] | None = None
    """What did not end in time: until it does, the session answers nothing else."""

    def reset(self, step: int) -> None:
        """Go back to after the given number of steps; undone ones are gone. Raises Refused."""
        if not 0 <= step <= self.steps:
            raise Refused(422, f"step: expected 0 to {self.steps}")
        self.world, self.steps = self.world.back_to(step), step
        self.drifts = {number: each for number, each in self.drifts.items() if number <= step}

    def begin(self, state: Json) -> None:
        """Replace the state: the session begins anew there. Raises StateError."""
        if not isinstance(state, dict):
            raise StateError("state: expected an object")
        check_json(state, what="state")
        self.start = self.world.begin(state)
        self.world, self.steps, self.drifts = self.start.fork(), 0, {}

    @property
    def log(self) -> list[JsonObject]:
        """The steps, those of real calls with their `drift`."""
        return [
            {**step, "drift": self.drifts[number]} if number in self.drifts else {**step}
            for number, step in enumerate(self.world.log, 1)
        ]


class Sessions:
    """All sessions of a server.

    Args:
        base: The world that each begins as.
        journal: Where changes are kept; what it holds is replayed now.
        most: Sessions at once.
        idle_s: After this long without a request a session is closed.
        call_s: Longest time of an answer.
    """

    def __init__(
        self,
        base: World,
        *,
        journal: Journal | None = None,
        most: int = 10_000,
        idle_s: float = 3600,
        call_s: float = 30,
    ) -> None:
        self.base, self._most, self._idle_s, self.call_s = base, most, idle_s, call_s
        self._all: OrderedDict[str, Session] = OrderedDict()
        self._listening: set[asyncio.Queue[JsonObject]] = set()
        self._journal: Journal | None = None
        self._is_broken = False
        for row in journal.read() if journal else ():
            try:
                self._apply(row)
            except (GeckoError, LookupError, TypeError) as error:
                raise GeckoError(f"--save: a row of session {row.session} cannot be replayed: {error}") from None
        self._journal = journal

    # finding and making ------------------------------------------------------------------------------

    def get(self, name: str) -> Session:
        """Return a session; `default` is made when it is first asked for. Raises Refused."""
        self._sweep()
        if name == DEFAULT and name not in self._all:
            return self.create(DEFAULT)
        if name not in self._all:
            raise Refused(404, "there is no such session (POST /_gecko/sessions makes one)")
        session = self._all[name]
        session.used = time.monotonic()
        self._all.move_to_end(name)
        return session

    def create(self, name: str | None = None, *, state: Json = None) -> Session:
        """Return a new session, in the base's state or a given one. Raises Refused, StateError."""
        name = self._check_name(name)
        return self._change(Row(name, "new", {} if state is None else {"state": state}))

    async def fork(self, source: str, name: str | None = None) -> Session:
        """Return a new session that begins as another is now. Raises Refused."""
        name = self._check_name(name)
        async with self._turn(self.get(source)):
            return self._change(Row(self._check_name(name), "fork", {"from": source}))

    def take(self, snapshot: Json, name: str | None = None) -> Session:
        """Return a new session at a snapshot's point. Raises Refused, StateError."""
        return self._change(Row(self._check_name(name), "snapshot", {"snapshot": snapshot}))

    def list(self) -> list[JsonObject]:
        """Return names and steps, the last used last."""
        self._sweep()
        now = time.monotonic()
        return [{"id": s.name, "steps": s.steps, "idle_s": round(now - s.used, 1)} for s in self._all.values()]

    def _check_name(self, name: Any) -> str:
        name = uuid4().hex if name is None else name
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise Refused(422, "id: expected 1 to 80 letters, digits, '.', '_' or '-'")
        self._sweep()
        if name in self._all:
            raise Refused(409, "there is a session of this id")
        if len(self._all) >= self._most:
            raise Refused(503, f"there are {self._most} sessions: close one")
        return name

    def _sweep(self) -> None:
        limit = time.monotonic() - self._idle_s
        while self._all and (oldest := next(iter(self._all.values()))).used < limit and not oldest.lock.locked():
            self._change(Row(oldest.name, "close", {}))

    # changing ----------------------------------------------------------------------------------------

    async def reset(self, name: str, step: Any) -> Session:
        """Go back to after a step. Raises Refused."""
        if not isinstance(step, int) or isinstance(step, bool):
            raise Refused(422, "step: expected a whole number")
        async with self._turn(self.get(name)):
            return self._change(Row(name, "reset", {"step": step}))

    async def replace(self, name: str, state: Json) -> Session:
        """Begin anew in another state. Raises Refused, StateError."""
        async with self._turn(self.get(name)):
            return self._change(Row(name, "state", {"state": state}))

    async def close(self, name: str) -> None:
        """Forget a session. One that still answers too late is forgotten all the same. Raises Refused."""
        if name not in self._all:
            raise Refused(404, "there is no such session")
        if self._all[name].late is None:
            async with self._turn(self._all[name]):
                pass
        self._change(Row(name, "close", {}))

    async def call(self, name: str, call: Mapping[str, Any]) -> Step:
        """Answer one call. Raises Refused: 504 where it took too long."""
        session = self.get(name)
        step: Step = await self._in_time(session, lambda: session.world.acall(dict(call)))
        return step

    async def record(self, name: str, call: Any, answer: Answer) -> JsonObject:
        """Book a call that was really made, so that the state follows reality. Raises Refused, ToolkitError."""
        session = self.get(name)
        return dict(await self._in_time(session, lambda: session.world.arecord(call, answer)))

    async def shadow(self, name: str, call: Any, answer: Answer) -> Drifts:
        """Simulate a call that was really made on a copy, book it, and return where it was not as simulated."""
        session = self.get(name)

        async def work() -> Drifts:
            step = await session.world.fork().acall({"name": call["name"], "args": call["args"]})
            outcome = step.get("outcome")
            told = outcome if outcome and outcome["rung"] not in ("schema", "none") else None  # noise is no prediction
            drift: Drifts = [*(await session.world.arecord(call, answer, told))["drift"]]
            if outcome is None and answer.status == "ok":
                why = "; ".join(f"{each['path']}: {each['expected']}" for each in step.get("complaints", []))
                drift.append({"kind": "status", "path": "$", "predicted": f"refused: {why}", "real": "ok"})
            if told or drift:
                session.drifts[session.steps + 1] = drift
            return drift

        drift: Drifts = await self._in_time(session, work)
        return drift

    async def _in_time(self, session: Session, work: Callable[[], Awaitable[Any]]) -> Any:
        async def answer() -> Any:
            async with self._turn(session):
                done = await work()
                if self._all.get(session.name) is session:  # else it was closed while a late call went on
                    self._note_calls(session)
                return done

        task = asyncio.ensure_future(answer())
        finished, _ = await asyncio.wait({task}, timeout=self.call_s)
        if finished:
            return task.result()
        session.late = task
        task.add_done_callback(lambda ended: self._end_late(session, ended))
        raise Refused(504, f"no answer within {self.call_s:g} s; the session answers again when the call has ended")

    def _end_late(self, session: Session, task: asyncio.Task[Any]) -> None:
        session.late = None
        with suppress(asyncio.CancelledError):
            task.exception()

    def _note_calls(self, session: Session) -> None:
        if self._journal is None and not self._listening:  # nobody reads what they are
            session.steps = session.world.count
        for record in session.world.records(session.steps):
            session.steps += 1
            if session.steps in session.drifts:
                record["drift"] = session.drifts[session.steps]
            self._write(Row(session.name, "call", record))
            self._tell({"session": session.name, "kind": "call", "number": session.steps, **record})

    @asynccontextmanager
    async def _turn(self, session: Session) -> AsyncIterator[None]:
        if session.late is not None:
            raise Refused(503, "the session still works on a call that took too long")
        async with session.lock:
            if self._all.get(session.name) is not session:
                raise Refused(410, "the session was closed meanwhile")
            yield

    def _change(self, row: Row) -> Session:
        """Apply a change, write it, and tell it. What cannot be applied is not written."""
        session = self._apply(row)
        self._write(row)
        self._tell({"session": row.session, "kind": row.kind, "steps": session.steps})
        return session

    def _write(self, row: Row) -> None:
        """Keep a change. Where the file takes no more, nothing is answered: what is in it stays whole."""
        if self._journal and not self._is_broken:
            try:
                self._journal.append(row)
            except (OSError, sqlite3.Error):
                self._is_broken = True
        if self._is_broken:
            raise Refused(503, "the file of --save cannot be written: what it holds is there at the next start")

    def _apply(self, row: Row) -> Session:
        name, kind, data = row
        if kind in ("new", "fork", "snapshot"):
            session = self._make(name, kind, data)
            self._all[name] = session
            return session
        session = self._all[name]
        if kind == "call":
            session.world.replay([data])
            session.steps += 1
            if "drift" in data:
                session.drifts[session.steps] = data["drift"]
        elif kind == "reset":
            session.reset(data["step"])
        elif kind == "state":
            session.begin(data["state"])
        else:
            del self._all[name]
        return session

    def _make(self, name: str, kind: str, data: JsonObject) -> Session:
        if kind == "fork":
            source = self._all[data["from"]]
            return Session(name, source.start, source.world.fork(), source.steps)
        session = Session(name, self.base, self.base.fork())
        if kind == "snapshot":
            session.world = self.base.resume(data["snapshot"])
            session.start = self.base.begin(data["snapshot"]["start"])
            session.steps = len(data["snapshot"]["log"])
        elif "state" in data:
            session.begin(data["state"])
        return session

    # listening ---------------------------------------------------------------------------------------

    def _tell(self, event: JsonObject) -> None:
        for queue in self._listening:
            with suppress(asyncio.QueueFull):  # a reader that does not keep up misses some
                queue.put_nowait(event)

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[asyncio.Queue[JsonObject]]:
        """Give a queue of what changes from now on."""
        queue: asyncio.Queue[JsonObject] = asyncio.Queue(_WATCHED)
        self._listening.add(queue)
        try:
            yield queue
        finally:
            self._listening.discard(queue)
