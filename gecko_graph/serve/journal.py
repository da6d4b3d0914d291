"""The file of `--save`: one row per change of a session, written before the change is acknowledged.

Rows are chained by digests, and the end of the chain is recorded: while the server runs in a second file, FILE-head,
after an orderly shutdown in FILE itself. So a file that was damaged, edited, truncated, or copied without the files
next to it is refused. SQLite's exclusive lock, which ends with the process, excludes a second server. Acknowledged rows
survive the death of the process. A power failure may lose the last moments (`synchronous=NORMAL`), which is detected.

FILE-head is written after the row and before the acknowledgement; if the process is killed in between, there are rows
beyond the recorded end.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from io import FileIO
from pathlib import Path

from ..errors import GeckoError
from .sessions import HttpRefusal
from .store import Row, Store

_FORMAT = "2"
_OPEN = ""
"""The value of `end` while FILE-head has the end of the chain."""


class Journal(Store):
    """The rows of one file, for tools and a start state with one digest.

    Raises:
        GeckoError: The file is used by another process, damaged, of other tools, or no file of this kind.
    """

    def __init__(self, file: str | Path, *, identity: str) -> None:
        self._file, self._head_file = file, Path(f"{file}-head")
        self._head: FileIO | None = None
        self._is_broken = False
        self._mark = sha256(identity.encode()).hexdigest()
        try:
            self._base = sqlite3.connect(file, isolation_level=None, timeout=0.2, check_same_thread=False)
            self._base.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._base.execute("BEGIN EXCLUSIVE")
            if self._base.execute("PRAGMA quick_check").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("quick_check")
            if not Path(file).stat().st_size:
                self._create(identity)
            *head, self._end = self._base.execute("SELECT * FROM head").fetchone()
            self._base.execute("COMMIT")
            self._base.execute("PRAGMA journal_mode=WAL")  # not earlier: the new tables must be in the file itself
            self._base.execute("PRAGMA synchronous=NORMAL")
        except (sqlite3.DatabaseError, TypeError, ValueError) as error:
            known = {"locked": "another process serves this file", "unable to open": f"cannot be opened: {error}"}
            why = next(
                (why for part, why in known.items() if part in str(error)), "it is damaged, or no file of --save"
            )
            raise GeckoError(f"--save {file}: {why}") from None
        if head != [_FORMAT, identity]:
            why = "other tools or another start state" if head[:1] == [_FORMAT] else "another version of gecko-graph"
            raise GeckoError(f"--save {file}: it belongs to {why}")

    def _create(self, identity: str) -> None:
        self._base.execute("CREATE TABLE head (format TEXT, identity TEXT, end TEXT)")
        self._base.execute("INSERT INTO head VALUES (?, ?, ?)", (_FORMAT, identity, self._mark))
        self._base.execute("CREATE TABLE rows (n INTEGER PRIMARY KEY, session TEXT, kind TEXT, data TEXT, mark TEXT)")

    def read(self) -> Iterator[Row]:
        """Yield all rows in order. Raises GeckoError if one was changed or is missing."""
        try:
            head = self._head_file.read_text(encoding="ascii") if self._head_file.exists() else ""
            is_reached = head in ("", self._mark)
            for at, (number, session, kind, data, mark) in enumerate(
                self._base.execute("SELECT n, session, kind, data, mark FROM rows ORDER BY n"), 1
            ):
                self._mark = self._next(session, kind, data)
                if number != at or mark != self._mark:
                    raise ValueError(number)
                is_reached = is_reached or mark == head
                yield Row(session, kind, json.loads(data))
        except (sqlite3.DatabaseError, OSError, ValueError, TypeError, AttributeError, RecursionError):
            raise GeckoError(f"--save {self._file}: it is damaged or was edited, and is not served") from None
        if not is_reached or self._end not in (_OPEN, self._mark):
            raise GeckoError(f"--save {self._file}: its last rows are missing, and it is not served")
        if self._end == _OPEN and not head:
            raise GeckoError(
                f"--save {self._file}: it was copied while in use, or its server was killed: it needs the files "
                f"next to it, {self._head_file.name} and {Path(self._file).name}-wal"
            )

    async def keep(self, name: str, seen: int, rows: Sequence[Row], steps: int) -> int:
        """Write rows. After a failure nothing more is written, so that the file stays consistent."""
        try:
            for row in () if self._is_broken else rows:
                self.append(row)
        except (OSError, sqlite3.Error):
            self._is_broken = True
        if self._is_broken:
            raise HttpRefusal(503, "the file of --save cannot be written; its rows are restored at the next start")
        return seen

    def append(self, row: Row) -> None:
        """Write a row; it survives the process when this returns."""
        head = self._head = self._head or self._begin()
        data = json.dumps(row.data, ensure_ascii=False, separators=(",", ":"))
        mark = self._next(row.session, row.kind, data)
        self._base.execute(
            "INSERT INTO rows (session, kind, data, mark) VALUES (?, ?, ?, ?)", (row.session, row.kind, data, mark)
        )
        self._mark = mark
        head.seek(0)
        head.write(mark.encode())

    def _begin(self) -> FileIO:
        """Return FILE-head with the end of the chain, and mark FILE as open."""
        self._head_file.touch()
        head = FileIO(self._head_file, "r+")  # never truncated, so that it always has an end
        head.write(self._mark.encode())
        os.fsync(head.fileno())
        self._base.execute("UPDATE head SET end = ?", (_OPEN,))
        self._base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return head

    def _next(self, session: str, kind: str, data: str) -> str:
        return sha256("\0".join((self._mark, session, kind, data)).encode("utf-8", "surrogatepass")).hexdigest()

    def close(self) -> None:
        """Close the file in an orderly way: FILE-head and FILE-wal are removed."""
        if self._head is not None:
            with suppress(sqlite3.Error, OSError):  # else the files are as after a kill
                self._base.execute("UPDATE head SET end = ?", (self._mark,))
                self._head.close()
                self._head_file.unlink()
        self._base.close()
