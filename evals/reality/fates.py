"""Where a process ends: at a write of its saver or of the service, and the savers that count theirs."""

from __future__ import annotations

import os
import sqlite3
from collections import UserDict
from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from .draws import Draw
from .killing import Fate, Killed, KillingSaver


NO_SYNC = "PRAGMA synchronous=OFF"
"""What SQLite's file system holds outlives a process."""


class Counted(Fate):
    """The fate of one process: its writes are counted with those of the run's other processes, in the run's folder.

    Attributes:
        stop: Cancels what the caller awaits, or lets its time run out; None where it is not awaited.
        memory: Where threads stand for the process: its own view of the memory saver that the run's processes share.
        over: Set where those have ended.
    """

    def __init__(self, draw: Draw, folder: Path, shared: InMemorySaver | None = None) -> None:
        super().__init__()
        self._draw, self._folder = draw, folder
        self.memory = None if shared is None else in_memory(self, shared)
        self.stop: Callable[[], object] | None = None
        self.over = Event()

    def tell(self, text: str) -> None:
        """Write a line of the run's story."""
        append(self._folder / "story", text)

    def number(self, kind: str) -> int:
        """Return the number, from 1, of the write that begins."""
        self.check()
        return append(self._folder / kind, "")

    def check(self) -> None:
        """Raise Killed where the process has ended."""
        if self.over.is_set():
            raise Killed

    def is_due(self, kind: str, number: int, when: str) -> bool:
        """Return whether the process ends here."""
        return (kind, number, when) in self._draw.points

    def end(self, where: str) -> None:
        """End the process, or what the caller awaits."""
        self.tell(f"  {self._draw.end} {where}")
        if self._draw.is_async:
            stop, self.stop = self.stop, None
            if stop:
                stop()
        elif self.memory is not None:
            self.over.set()
            raise Killed
        else:
            os._exit(9)

    def pass_by(self, kind: str, number: int, when: str) -> None:
        """End here, if it is so drawn."""
        if self.is_due(kind, number, when):
            self.end(f"{when} write {number} of the {kind}")

    def write(self, write: Any, *args: Any, **kwargs: Any) -> Any:
        """Make a write of the saver, unless the process has ended."""
        number = self.number("saver")
        self.pass_by("saver", number, "before")
        result = write(*args, **kwargs)
        self.pass_by("saver", number, "after")
        return result


def append(path: Path, text: str) -> int:
    """Append a line to a file in one write; return how many bytes it has after it."""
    made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(made, f"{text}\n".encode())
        return os.lseek(made, 0, os.SEEK_CUR)
    finally:
        os.close(made)


class Blobs(UserDict[Any, Any]):
    """The values of a memory saver, shared by its processes, each of which counts its own writes."""

    def __init__(self, fate: Fate, shared: dict[Any, Any]) -> None:
        self.data, self._fate = shared, fate

    def __setitem__(self, key: Any, value: Any) -> None:
        self._fate.write(self.data.__setitem__, key, value)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Set what is not there, in one step."""
        return self._fate.write(self.data.setdefault, key, default)


def in_memory(fate: Fate, shared: InMemorySaver) -> InMemorySaver:
    """Return a process's own saver over what the run's processes share."""
    saver = KillingSaver(fate)
    saver.storage, saver.writes = shared.storage, shared.writes
    saver.blobs = Blobs(fate, shared.blobs)  # type: ignore[assignment]
    return saver


def counting_sqlite(fate: Counted) -> type[sqlite3.Connection]:
    """Return a connection that ends with its process."""

    class Connection(sqlite3.Connection):
        def commit(self) -> None:
            fate.write(super().commit) if self.in_transaction else super().commit()

    return Connection


def counting_postgres(fate: Counted) -> type[Any]:
    """Return a cursor that counts what it writes; where the process ends after a write, the server has it."""
    from psycopg import Cursor

    class Counting(Cursor[Any]):
        def execute(self, query: Any, *args: Any, **named: Any) -> Any:
            return self._count(super().execute, query, *args, **named)

        def executemany(self, query: Any, *args: Any, **named: Any) -> Any:
            return self._count(super().executemany, query, *args, **named)

        def _count(self, execute: Any, query: Any, *args: Any, **named: Any) -> Any:
            def made() -> Any:
                result = execute(query, *args, **named)
                if self.connection.pgconn.pipeline_status:
                    with self.connection.pipeline():  # its end waits for the server
                        return result
                return result

            return fate.write(made) if is_write(query) else execute(query, *args, **named)

    return Counting


def counting_async_postgres(fate: Counted) -> type[Any]:
    """Return a cursor as `counting_postgres` does; a caller stops at once, whatever the server has."""
    from psycopg import AsyncCursor

    class Counting(AsyncCursor[Any]):
        async def execute(self, query: Any, *args: Any, **named: Any) -> Any:
            return await self._count(super().execute, query, *args, **named)

        async def executemany(self, query: Any, *args: Any, **named: Any) -> Any:
            return await self._count(super().executemany, query, *args, **named)

        async def _count(self, execute: Any, query: Any, *args: Any, **named: Any) -> Any:
            number = fate.number("saver") if is_write(query) else 0
            fate.pass_by("saver", number, "before")
            result = await execute(query, *args, **named)
            fate.pass_by("saver", number, "after")
            return result

    return Counting


def is_write(query: object) -> bool:
    """Return whether a query changes something; those of a saver's setup do not count."""
    return str(query).lstrip().startswith(("INSERT", "UPDATE", "DELETE"))


@asynccontextmanager
async def saver_of(draw: Draw, fate: Counted, place: str) -> Any:
    """Open the saver of a process, at a path or an address; for an awaited run, its own kind."""
    if fate.memory is not None:
        yield fate.memory
    elif place.startswith("postgresql:"):
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        options: Any = {"autocommit": True, "prepare_threshold": 0, "row_factory": psycopg.rows.dict_row}
        if draw.is_async:
            options["cursor_factory"] = counting_async_postgres(fate)
            async with await psycopg.AsyncConnection.connect(place, **options) as aconnection:
                yield AsyncPostgresSaver(aconnection)
        else:
            options["cursor_factory"] = counting_postgres(fate)
            with psycopg.Connection.connect(place, **options) as connection:
                yield PostgresSaver(connection)
    elif draw.is_async:
        import aiosqlite
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with aiosqlite.connect(place, timeout=20, factory=counting_sqlite(fate)) as kept:
            await kept.execute(NO_SYNC)
            yield AsyncSqliteSaver(kept)
    else:
        from langgraph.checkpoint.sqlite import SqliteSaver

        made = sqlite3.connect(place, check_same_thread=False, timeout=20, factory=counting_sqlite(fate))
        made.execute(NO_SYNC)
        yield SqliteSaver(made)
        made.close()
