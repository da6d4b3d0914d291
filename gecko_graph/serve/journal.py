"""The file of `--save`: what changed a session, one row each, written before it is acknowledged.

Rows are chained by a digest: a file that was damaged or edited opens nothing. SQLite's exclusive lock, which ends with
the process, keeps a second server out. What was acknowledged outlasts the death of the process; a power cut may lose
the last moments (`synchronous=NORMAL`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from ..errors import GeckoError
from ..state import Json

_FORMAT = "1"


class Row(NamedTuple):
    """A change: of which session, of which kind (`call`, `new`, `fork`, `reset`, `state`, `close` ...), and what."""

    session: str
    kind: str
    data: Json


class Journal:
    """The rows of one file, which belong to tools and a start state of one digest.

    Raises:
        GeckoError: The file is another process's, damaged, of other tools, or no file of this kind.
    """

    def __init__(self, file: str | Path, *, identity: str) -> None:
        self._file = file
        try:
            self._base = sqlite3.connect(file, isolation_level=None, timeout=0.2, check_same_thread=False)
            self._base.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute("PRAGMA synchronous=NORMAL")
            self._base.execute("BEGIN EXCLUSIVE")
            if self._base.execute("PRAGMA quick_check").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("quick_check")
            self._base.execute("CREATE TABLE IF NOT EXISTS head (format TEXT, identity TEXT)")
            self._base.execute(
                "CREATE TABLE IF NOT EXISTS rows (n INTEGER PRIMARY KEY, session TEXT, kind TEXT, data TEXT, mark TEXT)"
            )
            head = self._base.execute("SELECT format, identity FROM head").fetchone()
            if head is None:
                self._base.execute("INSERT INTO head VALUES (?, ?)", (_FORMAT, identity))
            self._base.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise GeckoError(f"--save {file}: another process serves this file") from None
            raise GeckoError(f"--save {file}: cannot be opened: {error}") from None
        except sqlite3.DatabaseError:
            raise GeckoError(f"--save {file}: it is damaged, or no file of --save") from None
        if head is not None and head != (_FORMAT, identity):
            raise GeckoError(f"--save {file}: it belongs to other tools or another start state")
        self._mark = identity

    def read(self) -> Iterator[Row]:
        """Yield all rows in their order. Raises GeckoError where one was changed or is missing."""
        try:
            for at, (number, session, kind, data, mark) in enumerate(
                self._base.execute("SELECT n, session, kind, data, mark FROM rows ORDER BY n"), 1
            ):
                self._mark = self._next(session, kind, data)
                if number != at or mark != self._mark:
                    raise ValueError(number)
                yield Row(session, kind, json.loads(data))
        except (sqlite3.DatabaseError, ValueError, TypeError, AttributeError, RecursionError):
            raise GeckoError(f"--save {self._file}: it is damaged or was edited: nothing of it is served") from None

    def append(self, row: Row) -> None:
        """Write a row; it outlasts the process when this returns."""
        data = json.dumps(row.data, ensure_ascii=False, separators=(",", ":"))
        mark = self._next(row.session, row.kind, data)
        self._base.execute(
            "INSERT INTO rows (session, kind, data, mark) VALUES (?, ?, ?, ?)", (row.session, row.kind, data, mark)
        )
        self._mark = mark

    def _next(self, session: str, kind: str, data: str) -> str:
        return sha256("\0".join((self._mark, session, kind, data)).encode("utf-8", "surrogatepass")).hexdigest()

    def close(self) -> None:
        """Give the file back."""
        self._base.close()
