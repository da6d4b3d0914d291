"""Saved runs: an SQLite file with a thread for each."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver

from ..errors import GeckoError

SHOWN = 20


@contextmanager
def saver(path: str, *, new: bool) -> Iterator[SqliteSaver]:
    """A saver that writes to a file.

    Args:
        path: The file.
        new: Whether it may be made.

    Raises:
        GeckoError: It cannot be opened, or is no file of saved runs.
    """
    if not new and not Path(path).is_file():
        raise GeckoError(f"{path}: no such file; there is nothing to resume")
    with _explained(path), closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        made = SqliteSaver(connection)
        made.setup()
        try:
            yield made
        finally:
            made.lock.acquire()  # for good: an interrupted run may still be about to write


@contextmanager
def reader(path: str) -> Iterator[SqliteSaver]:
    """A saver that only reads.

    Raises:
        GeckoError: There is no such file, or it is no file of saved runs.
    """
    if not Path(path).is_file():
        raise GeckoError(f"{path}: no such file; `gecko-graph run ... --save {path}` makes one")
    with _explained(path), closing(_read_only(Path(path))) as connection:
        made = SqliteSaver(connection)
        made.is_setup = True  # setting up would write
        yield made


def threads(saved: SqliteSaver) -> list[str]:
    """The names of the threads in a file, the one that was written last first."""
    with saved.cursor(transaction=False) as cursor:
        cursor.execute("SELECT thread_id FROM checkpoints GROUP BY thread_id ORDER BY max(checkpoint_id) DESC")
        return [str(row[0]) for row in cursor.fetchall()]


def known(saved: SqliteSaver) -> str:
    """The threads in a file, in words."""
    names = threads(saved)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"it holds {', '.join(map(repr, names[:SHOWN]))}{more}" if names else "it holds no runs"


def _read_only(file: Path) -> sqlite3.Connection:
    """A connection that cannot write; where nobody is writing it makes no files of SQLite's own either."""
    quiet = not file.with_name(f"{file.name}-wal").exists()
    address = f"{file.resolve().as_uri()}?mode=ro{'&immutable=1' if quiet else ''}"
    return sqlite3.connect(address, uri=True, check_same_thread=False)


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        what = "it is no file of saved runs" if _is_foreign(error) else str(error)
        raise GeckoError(f"{path}: {what}") from None


def _is_foreign(error: sqlite3.Error) -> bool:
    return "not a database" in str(error) or "no such table" in str(error)
