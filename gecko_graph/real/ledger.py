"""The ledger of real calls: rows that are stored with a thread's checkpoints, atomically and before each call.

For SQLite and Postgres they are in a table of their own, through the saver's connection, lock and serializer;
LangGraph's `InMemorySaver`, also the development server's, stores them itself. The methods are called in a thread,
never on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from threading import RLock
from typing import Any, Protocol, runtime_checkable

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from ..errors import GeckoError
from ..state import JsonObject

TABLE = "gecko_claims"
CREATE = (
    f"CREATE TABLE IF NOT EXISTS {TABLE} (thread_id TEXT NOT NULL, key TEXT NOT NULL, scope TEXT NOT NULL, "
    "rev INTEGER NOT NULL, type TEXT NOT NULL, value {blob} NOT NULL, PRIMARY KEY (thread_id, key))"
)
CHECKPOINT = "SELECT 1 FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
NO_LEDGER = (
    "{saver} has no ledger of real calls: use a saver of SQLite, Postgres or memory, or pass ledger=, an object with "
    "the methods of gecko_graph.real.ledger.CallLedger"
)

Run = Callable[[str, tuple[Any, ...]], tuple[list[tuple[Any, ...]], int]]
"""Function of a statement and its parameters: the rows and the number of changed rows. It commits before it returns."""


@runtime_checkable
class CallLedger(Protocol):
    """A store of rows: plain JSON by thread and key, each in one scope. Every method is atomic and durable."""

    def claim(self, thread_id: str, key: str, scope: str, row: JsonObject) -> bool:
        """Store a row under a key that has none; return False if it has one."""

    def swap(self, thread_id: str, key: str, row: JsonObject) -> bool:
        """Replace the row if its `rev` is one less than the new row's; else return False."""

    def read(self, thread_id: str, *, scope: str = "", key: str = "") -> list[JsonObject]:
        """Return the rows of a scope, or the row of a key, in any order."""

    def move(self, thread_id: str, keys: Sequence[str], scope: str) -> None:
        """Move rows to another scope."""


class MemoryLedger:
    """The ledger of an `InMemorySaver`, in its blobs, which its copies share and `delete_thread` clears."""

    NAMESPACE, VERSION, SCOPES = "gecko:claims", "1", "scopes"
    _lock = RLock()

    def __init__(self, saver: InMemorySaver) -> None:
        self._saver = saver

    def claim(self, thread_id: str, key: str, scope: str, row: JsonObject) -> bool:
        with self._lock:
            if self._get(thread_id, key) is not None:
                return False
            self.move(thread_id, [key], scope)
            self._put(thread_id, key, row)
            return True

    def swap(self, thread_id: str, key: str, row: JsonObject) -> bool:
        with self._lock:
            known = self._get(thread_id, key)
            if known is None or known["rev"] != row["rev"] - 1:
                return False
            self._put(thread_id, key, row)
            return True

    def read(self, thread_id: str, *, scope: str = "", key: str = "") -> list[JsonObject]:
        with self._lock:
            scopes = self._get(thread_id, self.SCOPES) or {}
            keys = [key] if key else [each for each in scopes if scopes[each] == scope]
            return [row for each in keys if (row := self._get(thread_id, each))]

    def move(self, thread_id: str, keys: Sequence[str], scope: str) -> None:
        with self._lock:
            scopes = self._get(thread_id, self.SCOPES) or {}
            self._put(thread_id, self.SCOPES, scopes | dict.fromkeys(keys, scope))

    def _get(self, thread_id: str, name: str) -> Any:
        known = self._saver.blobs.get((thread_id, self.NAMESPACE, name, self.VERSION))
        return None if known is None else self._saver.serde.loads_typed(known)

    def _put(self, thread_id: str, name: str, value: Any) -> None:
        place = (thread_id, self.NAMESPACE, name, self.VERSION)
        self._saver.blobs[place] = self._saver.serde.dumps_typed(value)


class SqlLedger:
    """The ledger of a database saver: the table `gecko_claims`, created at its first use."""

    def __init__(self, saver: BaseCheckpointSaver[Any], run: Run, *, blob: str) -> None:
        self._saver, self._run, self._create = saver, run, CREATE.format(blob=blob)

    def claim(self, thread_id: str, key: str, scope: str, row: JsonObject) -> bool:
        statement = f"INSERT INTO {TABLE} VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        return self._do(statement, thread_id, key, scope, row["rev"], *self._saver.serde.dumps_typed(row))[1] == 1

    def swap(self, thread_id: str, key: str, row: JsonObject) -> bool:
        kind, value = self._saver.serde.dumps_typed(row)
        statement = f"UPDATE {TABLE} SET rev = ?, type = ?, value = ? WHERE thread_id = ? AND key = ? AND rev = ?"
        return self._do(statement, row["rev"], kind, value, thread_id, key, row["rev"] - 1)[1] == 1

    def read(self, thread_id: str, *, scope: str = "", key: str = "") -> list[JsonObject]:
        statement = f"SELECT type, value FROM {TABLE} WHERE thread_id = ? AND {'key' if key else 'scope'} = ?"
        rows, _ = self._do(statement, thread_id, key or scope)
        return [self._saver.serde.loads_typed((kind, bytes(value))) for kind, value in rows]

    def move(self, thread_id: str, keys: Sequence[str], scope: str) -> None:
        for key in keys:
            self._do(f"UPDATE {TABLE} SET scope = ? WHERE thread_id = ? AND key = ?", scope, thread_id, key)

    def _do(self, statement: str, *parameters: Any) -> tuple[list[tuple[Any, ...]], int]:
        try:
            return self._run(statement, parameters)
        except Exception as error:
            if TABLE not in str(error):  # the table does not exist yet
                raise
        try:
            self._run(self._create, ())
        except Exception as error:
            if type(error).__name__ not in ("DuplicateTable", "UniqueViolation"):  # another process was faster
                raise
        return self._run(statement, parameters)


def check_ledger(given: object) -> None:
    """Raise GeckoError if a given ledger does not implement `CallLedger`."""
    if given is not None and not isinstance(given, CallLedger):
        methods = "claim, swap, read and move"
        raise GeckoError(f"ledger: expected a CallLedger, with methods {methods}, got {type(given).__name__}")


def find_ledger(saver: Any, given: CallLedger | None) -> CallLedger:
    """Return the given ledger, or that of a saver. Raises GeckoError if there is none."""
    if given is not None:
        return given
    saver = getattr(saver, "inner", saver)  # a LangGraph server wraps its saver
    if isinstance(saver, InMemorySaver):
        return MemoryLedger(saver)
    homes = {kind.__module__ for kind in type(saver).__mro__}  # database packages are extras, so they are not imported
    for home, (run, arun, blob) in DATABASES.items():
        if f"{home}.aio" in homes:
            return SqlLedger(saver, partial(_wait_for, arun, saver), blob=blob)
        if home in homes:
            return SqlLedger(saver, partial(run, saver), blob=blob)
    raise GeckoError(NO_LEDGER.format(saver=type(saver).__name__))


def has_checkpoint(saver: Any, config: Any) -> bool:
    """Return whether a checkpoint is saved; in a database nothing of it is read. Runs in a thread."""
    home, is_async, _ = type(saver).get_tuple.__module__.partition(".aio")  # of a saver that reads in its own way: none
    if home not in DATABASES:
        return saver.get_tuple(config) is not None
    run, arun, _ = DATABASES[home]
    given = saver, CHECKPOINT, tuple(map(config["configurable"].get, ("thread_id", "checkpoint_ns", "checkpoint_id")))
    return bool((_wait_for(arun, *given) if is_async else run(*given))[0])


def _wait_for(run: Callable[..., Any], saver: Any, *given: Any) -> Any:
    return asyncio.run_coroutine_threadsafe(run(saver, *given), saver.loop).result()


def _in_sqlite(saver: Any, statement: str, parameters: tuple[Any, ...]) -> tuple[list[Any], int]:
    with saver.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall(), cursor.rowcount


async def _in_async_sqlite(saver: Any, statement: str, parameters: tuple[Any, ...]) -> tuple[list[Any], int]:
    await saver.setup()
    async with saver.lock, saver.conn.execute(statement, parameters) as cursor:
        found = await cursor.fetchall(), cursor.rowcount
        await saver.conn.commit()
        return found


def _in_postgres(saver: Any, statement: str, parameters: tuple[Any, ...]) -> tuple[list[Any], int]:
    with saver._cursor() as cursor:
        cursor.execute(statement.replace("?", "%s"), parameters)
        rows = cursor.fetchall() if cursor.description else []
        if not cursor.connection.autocommit:
            cursor.connection.commit()
        return [tuple(row.values()) for row in rows], cursor.rowcount


async def _in_async_postgres(saver: Any, statement: str, parameters: tuple[Any, ...]) -> tuple[list[Any], int]:
    async with saver._cursor() as cursor:
        await cursor.execute(statement.replace("?", "%s"), parameters)
        rows = await cursor.fetchall() if cursor.description else []
        if not cursor.connection.autocommit:
            await cursor.connection.commit()
        return [tuple(row.values()) for row in rows], cursor.rowcount


DATABASES = {
    "langgraph.checkpoint.sqlite": (_in_sqlite, _in_async_sqlite, "BLOB"),
    "langgraph.checkpoint.postgres": (_in_postgres, _in_async_postgres, "BYTEA"),
}
