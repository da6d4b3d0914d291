"""Where a process ends: before, in or after a write of its saver or of the bank, counted over the whole run."""

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


class Counted(Fate):
    """The fate of one process.

    Attributes:
        stop: Cancels the awaited run, or lets its time run out; None if nothing is awaited.
        memory: If threads replace processes: this process's view of the memory saver that the run's processes share.
        over: Set when those threads have ended.
    """

    def __init__(self, draw: Draw, folder: Path, shared: InMemorySaver | None = None) -> None:
        super().__init__()
        self.draw, self._folder, self._last = draw, folder, 0
        self.stop: Callable[[], object] | None = None
        self.over = Event()
        self.memory = None if shared is None else KillingSaver(self)
        if self.memory is not None and shared is not None:
            self.memory.storage, self.memory.writes = shared.storage, shared.writes
            self.memory.blobs = Blobs(self, shared.blobs)  # type: ignore[assignment]

    def tell(self, text: str) -> None:
        append(self._folder / "story", text)

    def number(self, kind: str) -> int:
        """Return the number, from 1, of the write that starts. Raises Killed if the process has ended."""
        if self.over.is_set():
            raise Killed
        return append(self._folder / kind, "")

    def is_due(self, *point: object) -> bool:
        """Return whether the process ends here: `saver` or `service`, the write's number, before, in or after it."""
        return point in self.draw.points

    def pass_by(self, kind: str, number: int, when: str) -> None:
        """End the process, or the awaited run, if this point is drawn."""
        if not self.is_due(kind, number, when):
            return
        self.tell(f"  {self.draw.end} {when} write {number} of the {kind}")
        stop, self.stop = self.stop, None
        if stop:
            stop()
        elif self.memory is not None and not self.draw.is_async:
            self.over.set()
            raise Killed
        elif not self.draw.is_async:
            os._exit(9)

    def write(self, write: Any, *args: Any, **kwargs: Any) -> Any:
        """Make a write of the saver, unless the process has ended."""
        number = self.number("saver")
        self.pass_by("saver", number, "before")
        result = write(*args, **kwargs)
        self.pass_by("saver", number, "after")
        return result

    def begin(self, query: object) -> None:
        """Count a statement; the point after the previous statement is checked here, as the next one starts."""
        self.pass_by("saver", self._last, "after")
        if str(query).lstrip().startswith(("INSERT", "UPDATE", "DELETE")):
            self._last = self.number("saver")
            self.pass_by("saver", self._last, "before")


def append(path: Path, text: str) -> int:
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
        return self._fate.write(self.data.setdefault, key, default)


def counting_sqlite(fate: Counted) -> type[sqlite3.Connection]:
    class Connection(sqlite3.Connection):
        def commit(self) -> None:
            fate.write(super().commit) if self.in_transaction else super().commit()

    return Connection


def counting_postgres(kind: Any, fate: Counted) -> Any:
    """Return a cursor class, sync or async, that counts its writes."""

    class Counting(kind):  # type: ignore[misc]
        def execute(self, query: Any, *args: Any, **named: Any) -> Any:
            fate.begin(query)
            return super().execute(query, *args, **named)

        def executemany(self, query: Any, *args: Any, **named: Any) -> Any:
            fate.begin(query)
            return super().executemany(query, *args, **named)

    return Counting


@asynccontextmanager
async def saver_of(fate: Counted, place: str) -> Any:
    """Open the saver of a process, at a path or an address; for an async run the async saver."""
    # SQLite's file survives the end of a process all the same
    is_async, no_sync = fate.draw.is_async, "PRAGMA synchronous=OFF"
    if fate.memory is not None:
        yield fate.memory
    elif place.startswith("postgresql:"):
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        factory: Any = counting_postgres(psycopg.AsyncCursor if is_async else psycopg.Cursor, fate)
        options: Any = {"autocommit": True, "prepare_threshold": 0, "row_factory": psycopg.rows.dict_row}
        if is_async:
            async with await psycopg.AsyncConnection.connect(place, cursor_factory=factory, **options) as awaited:
                yield AsyncPostgresSaver(awaited)
        else:
            with psycopg.Connection.connect(place, cursor_factory=factory, **options) as connection:
                yield PostgresSaver(connection)
    elif is_async:
        import aiosqlite
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with aiosqlite.connect(place, timeout=20, factory=counting_sqlite(fate)) as kept:
            await kept.execute(no_sync)
            yield AsyncSqliteSaver(kept)
    else:
        from langgraph.checkpoint.sqlite import SqliteSaver

        made = sqlite3.connect(place, check_same_thread=False, timeout=20, factory=counting_sqlite(fate))
        made.execute(no_sync)
        yield SqliteSaver(made)
