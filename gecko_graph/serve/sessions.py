"""Sessions: one `World` each, started as a fork; calls of one session are serialized, sessions are independent."""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, TypeAlias
from uuid import uuid4

from starlette.responses import JSONResponse, Response

from ..errors import GeckoError, StateError
from ..schemas.complaints import describe_complaint
from ..state import Json, JsonObject, Step
from ..world.rung import Answer
from ..world.world import World
from .responses import PROBLEM, problem
from .store import Found, Row, Store

DEFAULT = "default"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")
_WATCHED = 200
_SWEEP_S = 60.0
_TAKEN, _ABSENT = "a session with this id exists", "no such session (POST /_gecko/sessions creates one)"
_LATE = "the session still works on a call that timed out"
Drifts: TypeAlias = list[Any]
Rows = list[Row]


class HttpRefusal(GeckoError):
    """A refused request, with its HTTP status and further members of the response."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None, **more: Json) -> None:
        super().__init__(message)
        self.status, self.headers, self.more = status, headers, more

    def respond(self) -> Response:
        return JSONResponse(problem(self.status, str(self), **self.more), self.status, self.headers, PROBLEM)


@dataclass(eq=False, slots=True)
class Session:
    """One world, as built from its rows."""

    name: str
    world: World
    is_there: bool = False
    """Whether it was created and not closed."""
    steps: int = 0
    seen: int = 0
    """The number of the last known row."""
    used: float = field(default_factory=time.monotonic)
    users: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    drifts: dict[int, Drifts] = field(default_factory=dict)
    """Differences from the simulation, by number of the real call."""
    late: asyncio.Task[Any] | None = None
    """A call that timed out: until it ends, the session answers nothing else."""

    def forget(self) -> None:
        """Discard the known rows, so that the store returns all."""
        self.is_there, self.seen = False, 0

    def begin(self, world: World) -> None:
        self.world, self.steps, self.drifts, self.is_there = world, world.count, {}, True

    def book(self, records: Sequence[JsonObject]) -> None:
        """Apply calls that were answered in this state."""
        if not self.is_there:
            raise StateError("the session does not exist")
        self.world.replay(records, own=True)
        numbered = enumerate(records, self.steps + 1)
        self.drifts |= {number: record["drift"] for number, record in numbered if "drift" in record}
        self.steps += len(records)

    def reset(self, step: int) -> None:
        """Go back to the state after the given number of steps; later ones are dropped. Raises HttpRefusal."""
        if not 0 <= step <= self.steps:
            raise HttpRefusal(422, f"step: expected 0 to {self.steps}")
        self.world, self.steps = self.world.back_to(step), step
        self.drifts = {number: each for number, each in self.drifts.items() if number <= step}

    @property
    def log(self) -> list[JsonObject]:
        """The steps; those of real calls have a `drift`."""
        return [
            {**step, "drift": self.drifts[number]} if number in self.drifts else {**step}
            for number, step in enumerate(self.world.log, 1)
        ]


class Sessions:
    """All sessions of a server: at most `most`, closed after `idle_s`, each answer within `call_s`.

    `base` is the world at the start of each session, `store` stores the changes. Raises GeckoError if a row cannot be
    replayed.
    """

    def __init__(
        self,
        base: World,
        *,
        store: Store | None = None,
        most: int = 10_000,
        idle_s: float = 3600,
        call_s: float = 30,
    ) -> None:
        self.base, self._most, self._idle_s, self.call_s = base, most, idle_s, call_s
        self._all: OrderedDict[str, Session] = OrderedDict()
        self._listening: set[asyncio.Queue[JsonObject]] = set()
        self.store, self._swept = store or Store(), time.monotonic()
        for row in self.store.read():
            with self._using(row.session) as session:
                self._renew(session, Found(0, [row]))

    # finding and making ------------------------------------------------------------------------------

    async def get(self, name: str) -> Session:
        """Return a session; `default` is created on first use. Raises HttpRefusal."""
        await self._sweep()
        if name in self._all and not self.store.is_shared:
            with self._using(name) as session:
                return session
        async with self._turn(name) as (session, _):
            return session

    async def create(self, name: str | None = None, *, state: Json = None) -> Session:
        """Return a new session in the base's state or a given one. Raises HttpRefusal, StateError."""
        return await self._make(name, "new", {} if state is None else {"state": state})

    async def fork(self, source: str, name: str | None = None) -> Session:
        """Return a new session that starts as a copy of another. Raises HttpRefusal."""
        async with self._turn(source) as (held, _):
            shared = {"snapshot": {**held.world.snapshot(), "usage": {}}} if self.store.is_shared else None
        # rows that other processes read must be complete: the other session may be closed
        return await self._make(name, *(("snapshot", shared) if shared else ("fork", {"from": source})))

    async def take(self, snapshot: Json, name: str | None = None) -> Session:
        """Return a new session at a snapshot's point. Raises HttpRefusal, StateError."""
        return await self._make(name, "snapshot", {"snapshot": snapshot})

    async def list(self) -> list[JsonObject]:
        """Return names and steps, the last used session last. Raises HttpRefusal."""
        await self._sweep()
        if self.store.is_shared:
            return await self.store.list()
        now = time.monotonic()
        return [{"id": s.name, "steps": s.steps, "idle_s": round(now - s.used, 1)} for s in self._all.values()]

    async def _make(self, name: Any, kind: str, data: JsonObject) -> Session:
        await self._sweep()
        name = uuid4().hex if name is None else name
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise HttpRefusal(422, "id: expected 1 to 80 letters, digits, '.', '_' or '-'")
        if name in self._all and not self.store.is_shared:
            raise HttpRefusal(409, _TAKEN)
        if (await self.store.count() if self.store.is_shared else len(self._all)) >= self._most:
            raise HttpRefusal(503, f"the limit of {self._most} sessions is reached: close one")
        async with self._turn(name, Row(name, kind, data)) as (session, _):
            return session

    @contextmanager
    def _using(self, name: str) -> Iterator[Session]:
        """Yield the session object of a name, which may not exist as a session."""
        session = self._all.setdefault(name, Session(name, self.base))
        session.used, session.users = time.monotonic(), session.users + 1
        self._all.move_to_end(name)
        try:
            yield session
        finally:
            session.users -= 1
            if not session.users and not session.is_there and self._all.get(name) is session:
                del self._all[name]

    async def _sweep(self) -> None:
        now = time.monotonic()
        limit = now - self._idle_s
        while self._all and (oldest := next(iter(self._all.values()))).used < limit and not oldest.lock.locked():
            if self.store.is_shared:
                del self._all[oldest.name]  # in this process only
            else:
                await self._drop(oldest)
        if self.store.is_shared and self._swept < now - _SWEEP_S:
            self._swept = now
            await self.store.sweep()

    # changing ----------------------------------------------------------------------------------------

    async def reset(self, name: str, step: Any) -> Session:
        """Go back to the state after a step. Raises HttpRefusal."""
        if not isinstance(step, int) or isinstance(step, bool):
            raise HttpRefusal(422, "step: expected a whole number")
        return await self._change(Row(name, "reset", {"step": step}))

    async def replace(self, name: str, state: Json) -> Session:
        """Restart in another state. Raises HttpRefusal, StateError."""
        return await self._change(Row(name, "state", {"state": state}))

    async def close(self, name: str) -> None:
        """Close a session, even if a late call still runs. Raises HttpRefusal."""
        if (held := self._all.get(name)) is None and not self.store.is_shared:
            raise HttpRefusal(404, _ABSENT)
        if held is not None and held.late is not None:
            await self._drop(held)
        else:
            await self._change(Row(name, "close", {}))

    async def call(self, name: str, call: Mapping[str, Any]) -> Step:
        """Answer one call. Raises HttpRefusal, 504 after the time limit."""
        step: Step = await self._in_time(name, lambda session: session.world.acall(dict(call)))
        return step

    async def record(self, name: str, call: Any, answer: Answer) -> JsonObject:
        """Record a real call, so that the state follows reality. Raises HttpRefusal, ToolkitError."""
        return dict(await self._in_time(name, lambda session: session.world.arecord(call, answer)))

    async def shadow(self, name: str, call: Any, answer: Answer) -> Drifts:
        """Simulate a real call on a copy, record it, and return the differences."""

        async def work(session: Session) -> Drifts:
            step = await session.world.fork().acall({"name": call["name"], "args": call["args"]})
            outcome = step.get("outcome")
            told = outcome if outcome and outcome["rung"] not in ("schema", "none") else None  # noise is no prediction
            drift: Drifts = [*(await session.world.arecord(call, answer, told))["drift"]]
            if outcome is None and answer.status == "ok":
                why = "; ".join(describe_complaint(each) for each in step.get("complaints", []))
                drift.append({"kind": "status", "path": "", "predicted": f"refused: {why}", "real": "ok"})
            if told or drift:
                session.drifts[session.steps + 1] = drift
            return drift

        drift: Drifts = await self._in_time(name, work)
        return drift

    async def _in_time(self, name: str, work: Callable[[Session], Awaitable[Any]]) -> Any:
        async def answer() -> Any:
            async with self._turn(name) as (session, changes):
                done = await work(session)
                self._note_calls(session, changes)
                if self._all.get(name) is not session:  # it was closed while a late call ran
                    changes.clear()
                return done

        await self._sweep()
        with self._using(name) as session:
            task = asyncio.ensure_future(answer())
            finished, _ = await asyncio.wait({task}, timeout=self.call_s)
        if finished:
            return task.result()

        def end(ended: asyncio.Task[Any]) -> None:
            session.late = None
            with suppress(asyncio.CancelledError):
                ended.exception()

        session.late = task
        task.add_done_callback(end)
        raise HttpRefusal(504, f"no answer within {self.call_s:g} s; the session answers again once the call has ended")

    def _note_calls(self, session: Session, changes: Rows) -> None:
        if type(self.store) is Store and not self._listening:  # nobody reads the rows
            session.steps = session.world.count
            return
        for record in session.world.records(session.steps):
            session.steps += 1
            if session.steps in session.drifts:
                record["drift"] = session.drifts[session.steps]
            changes.append(Row(session.name, "call", record))

    async def _change(self, row: Row) -> Session:
        """Apply a change, store and publish it. A change that cannot be applied is not stored."""
        async with self._turn(row.session) as (session, changes):
            self._apply(session, row)
            changes.append(row)
            return session

    async def _drop(self, session: Session) -> None:
        """Close a session without waiting for its turn."""
        row = Row(session.name, "close", {})
        self._apply(session, row)
        await self._keep(session, [row])

    @asynccontextmanager
    async def _turn(self, name: str, first: Row | None = None) -> AsyncIterator[tuple[Session, Rows]]:
        """Yield a session under its lock, and a list of changes, which are stored at the end.

        A missing session is created by `first`; `default` is created by itself.
        """
        if not _NAME.fullmatch(name):  # a database rejects some names, which would end all claims of the connection
            raise HttpRefusal(404, _ABSENT)
        with self._using(name) as session:
            await self._lock(session)
            try:
                if self._all.get(name) is not session:
                    raise HttpRefusal(410, "the session was closed meanwhile")
                found = await self.store.claim(name, session.seen)
                changes, begun, is_lost = Rows(), 0, False
                try:
                    self._renew(session, found)
                    self._begin(session, first, changes)
                    begun = len(changes)
                    yield session, changes
                except BaseException as error:
                    del changes[begun:]
                    is_lost = self.store.is_shared and not isinstance(error, HttpRefusal)
                    raise
                finally:
                    await self._keep(session, changes)
                    if is_lost:  # memory may be ahead of the store
                        session.forget()
            finally:
                session.lock.release()

    async def _lock(self, session: Session) -> None:
        if session.late is not None:
            raise HttpRefusal(503, _LATE)
        try:
            async with asyncio.timeout(self.call_s) if session.lock.locked() else nullcontext():
                await session.lock.acquire()
        except TimeoutError:
            raise HttpRefusal(503, _LATE) from None

    def _renew(self, session: Session, found: Found) -> None:
        """Apply rows from the store. Raises HttpRefusal."""
        if found.anew:
            session.forget()
        try:
            for kind, rows in groupby(found.rows, key=lambda row: row.kind):
                if kind == "call":  # at once: a state is built for all of them, not for each
                    session.book([row.data for row in rows])
                else:
                    for row in rows:
                        self._apply(session, row)
        except (GeckoError, LookupError, TypeError) as error:
            session.forget()
            raise HttpRefusal(500, f"--save: a row of session {session.name} cannot be replayed: {error}") from None
        session.seen = found.seen

    def _begin(self, session: Session, first: Row | None, changes: Rows) -> None:
        if session.is_there:
            if first is not None:
                raise HttpRefusal(409, _TAKEN)
            return
        if first is None and session.name != DEFAULT:
            raise HttpRefusal(404, _ABSENT)
        changes.append(first or Row(DEFAULT, "new", {}))
        self._apply(session, changes[0])

    async def _keep(self, session: Session, changes: Rows) -> None:
        try:
            session.seen = await self.store.keep(session.name, session.seen, changes, session.steps)
        except BaseException:
            if self.store.is_shared:
                session.forget()
            raise
        for queue in self._listening:
            for number, row in enumerate(changes, session.steps - len(changes) + 1):
                more = {"number": number, **row.data} if row.kind == "call" else {"steps": session.steps}
                with suppress(asyncio.QueueFull):  # a slow reader misses events
                    queue.put_nowait({"session": row.session, "kind": row.kind, **more})

    def _apply(self, session: Session, row: Row) -> None:
        kind, data = row.kind, row.data
        if kind == "reset":
            session.reset(data["step"])
        elif kind == "close":
            session.forget()
            del self._all[session.name]
        elif kind == "fork":
            session.begin(self._all[data["from"]].world.fork())
        elif kind == "snapshot":
            session.begin(self.base.resume(data["snapshot"]))
        elif "state" in data:
            session.begin(self.base.begin(data["state"]))
        else:
            session.begin(self.base.fork())

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[asyncio.Queue[JsonObject]]:
        """Yield a queue of the changes from now on."""
        queue: asyncio.Queue[JsonObject] = asyncio.Queue(_WATCHED)
        self._listening.add(queue)
        try:
            yield queue
        finally:
            self._listening.discard(queue)
