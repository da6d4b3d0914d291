"""The database of `--save postgresql://...`: sessions shared by several servers.

A server claims a session by an advisory lock of its only connection, which ends with the process. It reads rows added
by others, and adds its own row before it acknowledges the call and releases the lock: two round trips. What several
calls want of the database at once is sent together: one round trip, one transaction. If the connection is lost in
between, so are the claims: the calls are refused, and nothing is stored.

The rows of a session are numbered from a number that no earlier session of the name has used, so that a process sees
from its last known number whether the session was closed or recreated. An idle session counts as closed.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import dropwhile, islice
from typing import Any, NamedTuple, TypeAlias, cast

from ..errors import GeckoError
from ..state import JsonObject
from .sessions import HttpRefusal
from .store import Found, Row, Store

try:
    import psycopg
    from psycopg.pq import Escaping, ExecStatus
    from psycopg.pq.abc import PGconn, PGresult
except ImportError:
    raise GeckoError(
        "--save postgresql://... needs psycopg: pip install langgraph-checkpoint-postgres 'psycopg[binary]'"
    ) from None

_FORMAT = "1"
_ANSWER_S, _CONNECT_S, _AGAIN_S, _MARGIN_S = 10.0, 5, 0.5, 60
"""Time limits of a statement and of connecting; pause before a new connection; margin before idle rows are deleted."""
_OPTIONS: dict[str, Any] = {
    "autocommit": True, "connect_timeout": _CONNECT_S, "application_name": "gecko-graph serve",
    "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 10_000,
}  # fmt: skip
_ROWS, _BEGINNINGS = "gecko_graph_rows", ("new", "snapshot", "state")
_BEGINS = f"kind IN {_BEGINNINGS}"
_SETUP = f"""
BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('gecko_graph_head', 0));
CREATE TABLE IF NOT EXISTS gecko_graph_head (format text, identity text);
CREATE TABLE IF NOT EXISTS {_ROWS} (
  session text COLLATE "C", n bigint, kind text NOT NULL, steps integer NOT NULL,
  at timestamptz NOT NULL DEFAULT now(), data text NOT NULL, PRIMARY KEY (session, n));
CREATE INDEX IF NOT EXISTS gecko_graph_begun ON {_ROWS} (session) WHERE {_BEGINS};
INSERT INTO gecko_graph_head SELECT %s, %s WHERE NOT EXISTS (SELECT FROM gecko_graph_head);
COMMIT; SELECT format, identity FROM gecko_graph_head
"""
_AGE = "EXTRACT(epoch FROM now() - at)::float8"
# one plan for ever, which is the index: planning anew takes longer than reading
_PREPARE = f"""
SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off;
PREPARE gecko_read (bigint, text) AS SELECT n, kind, CASE WHEN n > $1 THEN data END, {_AGE} FROM {_ROWS}
  WHERE session = $2 AND n >= $1 ORDER BY n;
PREPARE gecko_add (text, bigint, text, integer, text) AS INSERT INTO {_ROWS} (session, n, kind, steps, data)
  VALUES ($1, $2, $3, $4, $5);
PREPARE gecko_claim (text) AS SELECT pg_try_advisory_lock(hashtextextended($1, 0));
PREPARE gecko_free (text) AS SELECT pg_advisory_unlock(hashtextextended($1, 0))
"""
_READ, _ADD = "EXECUTE gecko_read(%s, %s)", "EXECUTE gecko_add(%s, %s, %s, %s, %s)"
_CLAIM, _FREE = "EXECUTE gecko_claim(%s)", "EXECUTE gecko_free(%s)"
_LAST = f"""
SELECT session, steps, idle_s FROM (SELECT DISTINCT session FROM {_ROWS} WHERE {_BEGINS}) AS begun CROSS JOIN LATERAL (
  SELECT steps, {_AGE} AS idle_s FROM {_ROWS} WHERE session = begun.session ORDER BY n DESC LIMIT 1) AS last
"""

Table: TypeAlias = list[tuple[Any, ...]]
Statement: TypeAlias = tuple[Any, ...]
"""A statement with `%s` for its values, and these."""


class _Asked(NamedTuple):
    """Statements of one caller, and its answer."""

    connection: psycopg.AsyncConnection[Any]
    writes: Sequence[Statement]
    reads: Sequence[Statement]
    ended: asyncio.Future[Sequence[Table]]
    is_alone: bool
    """Whether it is sent alone: slow statements must not fail calls whose rows are stored already."""


class Postgres(Store):
    """The rows of one database, for tools and a start state with one digest, the `identity`.

    A session ends after `idle_s` without a change; one that another server uses is waited for up to `wait_s`. Raises
    GeckoError if the database cannot be used, or belongs to other tools.
    """

    is_shared = True

    def __init__(self, address: str, *, identity: str, idle_s: float = 3600, wait_s: float = 30) -> None:
        self._address, self._idle_s, self._wait_s = address, idle_s, wait_s
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._opening, self._again = asyncio.Lock(), 0.0
        self._queue, self._sending = list[_Asked](), cast("asyncio.Task[None] | None", None)
        self._claimed: dict[str, psycopg.AsyncConnection[Any]] = {}
        try:
            with psycopg.connect(address, cursor_factory=psycopg.ClientCursor, **_OPTIONS) as connection:
                cursor = connection.execute(_SETUP, (_FORMAT, identity))
                while cursor.nextset():
                    pass
                held = cursor.fetchone()
        except psycopg.Error as error:
            raise GeckoError(f"--save: the database cannot be used: {_reason(error)}") from None
        if held != (_FORMAT, identity):
            raise GeckoError(
                "--save: the database belongs to other tools, another start state or another version of gecko-graph: "
                "use another one, or a schema of its own: postgresql://...?options=-csearch_path%3DNAME"
            )

    async def claim(self, name: str, seen: int) -> Found:
        """Return the rows added by others, once no other server answers a call of the session."""
        end, pause = time.monotonic() + self._wait_s, 0.002
        while True:
            connection = await self._have()
            ((is_mine,),), found = await self._ask((_CLAIM, name), (_READ, seen, name), on=connection)
            if is_mine == "t":
                break
            if time.monotonic() > end:
                raise HttpRefusal(503, "another server still answers a call of this session")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        self._claimed[name] = connection
        if anew := bool(seen) and (not found or int(found[0][0]) != seen):
            (found,) = await self._ask((_READ, 0, name), on=connection)
        if not found or float(found[-1][3]) > self._idle_s:
            return Found(0, (), anew=True)
        last = int(found[-1][0])
        if not seen or anew:  # a call that continued after its session was closed may have left a row
            found, anew = [(), *dropwhile(lambda row: row[1] not in _BEGINNINGS, found)], True
        return Found(last, [Row(name, kind, json.loads(data)) for _, kind, data, _ in found[1:]], anew)

    async def keep(self, name: str, seen: int, rows: Sequence[Row], steps: int) -> int:
        """Add rows after the last one."""
        claimed = self._claimed.pop(name, None)
        if not rows:
            with suppress(HttpRefusal):  # a claim ends with its connection
                await self._ask((_FREE, name), on=claimed)
            return seen
        if rows[-1].kind == "close":
            await self._ask((_FREE, name), writes=[(f"DELETE FROM {_ROWS} WHERE session = %s", name)])
            return 0
        first = seen + 1 if seen else time.time_ns()
        writes: list[Statement] = [
            (_ADD, name, number, row.kind, steps, json.dumps(row.data, separators=(",", ":")))
            for number, row in enumerate(rows, first)
        ]
        number = first + len(rows) - 1
        if rows[-1].kind == "state" or rows[-1].data == {"step": 0}:  # earlier rows no longer count
            earlier = f"DELETE FROM {_ROWS} WHERE session = %s AND n < %s AND (NOT {_BEGINS} OR %s)"
            writes.append((earlier, name, number, rows[-1].kind == "state"))
        await self._ask((_FREE, name), writes=writes, on=claimed)
        return number

    async def list(self) -> list[JsonObject]:
        """Return the sessions, the last changed one last."""
        (found,) = await self._ask((f"{_LAST} WHERE idle_s <= %s ORDER BY idle_s DESC", self._idle_s), alone=True)
        return [{"id": each[0], "steps": int(each[1]), "idle_s": round(float(each[2]), 1)} for each in found]

    async def count(self) -> int:
        """Return the number of sessions, including idle ones that are not deleted yet."""
        (((count,),),) = await self._ask((f"SELECT count(DISTINCT session) FROM {_ROWS} WHERE {_BEGINS}",), alone=True)
        return int(count)

    async def sweep(self) -> None:
        """Delete sessions that have been idle for so long that nobody claims them any more."""
        idle = f"SELECT session FROM ({_LAST}) AS each WHERE idle_s > %s"
        drop = f"DELETE FROM {_ROWS} WHERE session IN ({idle})", self._idle_s + _MARGIN_S
        await self._ask(writes=[drop], alone=True)

    def close(self) -> None:
        """Close the connection, which ends all claims."""
        if self._connection is not None:
            self._connection.pgconn.finish()

    async def _ask(
        self,
        *reads: Statement,
        writes: Sequence[Statement] = (),
        on: psycopg.AsyncConnection[Any] | None = None,
        alone: bool = False,
    ) -> Sequence[Table]:
        """Return the rows of each statement, with values as text, after the writes; `on` is the connection of a claim.

        What was asked while an answer was awaited is sent together. Any error closes the connection, and ends all
        claims.
        """
        connection = on or await self._have()
        ended: asyncio.Future[Sequence[Table]] = asyncio.get_running_loop().create_future()
        self._queue.append(_Asked(connection, writes, reads, ended, alone))
        if self._sending is None:
            self._sending = asyncio.ensure_future(self._send_queue())
        try:
            return await ended
        except asyncio.CancelledError:  # a cancelled caller does not know whether it has a claim
            connection.pgconn.finish()
            if self._sending is not None:
                self._sending.cancel()
            raise

    async def _send_queue(self) -> None:
        try:
            while self._queue:
                now = self._queue[0]
                some = [each for each in self._queue if each.connection is now.connection and not each.is_alone]
                some = [now] if now.is_alone else some
                self._queue = [each for each in self._queue if not any(each is one for one in some)]
                await _answer_all(some)
        finally:
            self._sending = asyncio.ensure_future(self._send_queue()) if self._queue else None

    async def _have(self) -> psycopg.AsyncConnection[Any]:
        async with self._opening:
            if self._connection is not None and not self._connection.closed:
                return self._connection
            if time.monotonic() < self._again:
                raise HttpRefusal(503, "the database of --save cannot be reached")
            try:
                async with asyncio.timeout(_CONNECT_S):
                    connection = await psycopg.AsyncConnection.connect(self._address, **_OPTIONS)
                    await connection.execute(_PREPARE)
                    self._connection = connection
            except (psycopg.Error, TimeoutError) as error:
                self._again = time.monotonic() + _AGAIN_S
                raise HttpRefusal(503, f"the database of --save cannot be reached: {_reason(error)}") from None
            return self._connection


async def _answer_all(asked: Sequence[_Asked]) -> None:
    """Send statements in one round trip: the writes as one transaction, then the reads."""
    pgconn, begin, commit = asked[0].connection.pgconn, [("BEGIN",)], [("COMMIT",)]
    writes = [statement for each in asked for statement in each.writes]
    reads = [statement for each in asked for statement in each.reads]
    try:
        async with asyncio.timeout(_ANSWER_S):
            tables = iter(await _send(pgconn, [*begin, *writes, *commit, *reads] if writes else reads))
    except BaseException as error:  # a task that ends is no answer either
        pgconn.finish()
        refused = f"the database of --save does not answer: {_reason(error)}"
        for each in asked:
            if not each.ended.done():
                each.ended.set_exception(HttpRefusal(503, refused))
        if not isinstance(error, psycopg.Error | TimeoutError):
            raise
    else:
        for each in asked:
            found = [*islice(tables, len(each.reads))]
            if not each.ended.done():
                each.ended.set_result(found)


async def _send(connection: PGconn, statements: Sequence[Statement]) -> list[Table]:
    """Send statements, and return the rows of those that have some. A cursor would take four times the CPU time."""
    loop = asyncio.get_running_loop()
    ended, found, file, is_sent = loop.create_future(), list[PGresult](), connection.socket, True

    def go_on() -> None:
        nonlocal is_sent
        try:
            if not is_sent and not connection.flush():
                is_sent = True
                loop.remove_writer(file)
            if _take(connection, found) and not ended.done():
                ended.set_result(None)
        except psycopg.Error as error:
            if not ended.done():
                ended.set_exception(error)

    connection.send_query(_write(connection, statements))
    is_sent = not connection.flush()
    loop.add_reader(file, go_on)
    if not is_sent:
        loop.add_writer(file, go_on)
    try:
        await ended
    finally:
        loop.remove_reader(file)
        if not is_sent:
            loop.remove_writer(file)
    return [*_tables_of(found)]


def _write(connection: PGconn, statements: Sequence[Statement]) -> bytes:
    """Return the statements as one query, their values as literals."""
    quote = Escaping(connection).escape_literal
    texts = (
        [quote(each.encode()).decode() if isinstance(each, str) else each for each in rest] for _, *rest in statements
    )
    return "; ".join(one[0] % tuple(given) for one, given in zip(statements, texts, strict=True)).encode()


def _take(connection: PGconn, found: list[PGresult]) -> bool:
    """Read available results; return whether all have arrived."""
    connection.consume_input()
    while not connection.is_busy():
        if (one := connection.get_result()) is None:
            return True
        found.append(one)
    return False


def _tables_of(found: Sequence[PGresult]) -> Iterator[Table]:
    """Yield the rows of each statement that has some. Raises OperationalError if one has failed."""
    if failed := next((one for one in found if one.status == ExecStatus.FATAL_ERROR), None):
        raise psycopg.OperationalError(failed.get_error_message())
    for one in (each for each in found if each.status == ExecStatus.TUPLES_OK):
        values = ([one.get_value(row, column) for column in range(one.nfields)] for row in range(one.ntuples))
        yield [tuple(each if each is None else each.decode() for each in row) for row in values]


def _reason(error: BaseException) -> str:
    """Return the first line of an error."""
    return (str(error) or type(error).__name__).strip().splitlines()[0][:200]
