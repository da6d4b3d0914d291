"""Saved runs: an SQLite file with one thread a run."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace as Options
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver

from ..errors import GeckoError

SHOWN = 20
OUTPUTS = ("json", "html", "log", "write_state")
COMMAND = "gecko_command"
"""Key in the metadata of a run with real calls: its options, by which `do` goes on; no credential is among them."""


@contextmanager
def saver(path: str, *, new: bool) -> Iterator[SqliteSaver]:
    """Open a saver that writes to a file, which may be `new`. Raises GeckoError, also for another program's file."""
    if not new and not Path(path).is_file():
        raise GeckoError(f"{path}: no such file, so there is no run to resume")
    with _translate_errors(path), closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        opened = SqliteSaver(connection)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if tables and "checkpoints" not in tables:
            raise GeckoError(f"{path}: not a file of saved runs: another program's tables are in it; give another file")
        opened.setup()
        try:
            yield opened
        finally:
            opened.lock.acquire()  # for good: the thread of an interrupted run may still try to write


@contextmanager
def reader(path: str) -> Iterator[SqliteSaver]:
    """Open a saver that only reads. Raises GeckoError where there is no file of saved runs."""
    if not Path(path).is_file():
        raise GeckoError(f"{path}: no such file; `gecko-graph run ... --save {path}` creates one")
    with _translate_errors(path), closing(_read_only(Path(path))) as connection:
        opened = SqliteSaver(connection)
        opened.is_setup = True  # setting up would write
        yield opened


def threads(saved: SqliteSaver) -> list[str]:
    """Return the names of a file's threads, the last written first."""
    with saved.cursor(transaction=False) as cursor:
        cursor.execute("SELECT thread_id FROM checkpoints GROUP BY thread_id ORDER BY max(checkpoint_id) DESC")
        return [str(row[0]) for row in cursor.fetchall()]


def describe_command(options: Options) -> dict[str, str]:
    """Return the metadata that a command is found by again."""
    return {COMMAND: json.dumps({**vars(options), **dict.fromkeys(OUTPUTS), "folder": os.getcwd()})}


def read_command(saved: SqliteSaver, thread: str) -> Any:
    """Return the options that a thread goes on by; None where it makes no real calls, or none of a command's."""
    known = saved.get_tuple({"configurable": {"thread_id": thread}})
    return json.loads(dict[str, Any](known.metadata if known else {}).get(COMMAND, "null"))


def check_thread(saved: SqliteSaver, file: str, thread: str) -> None:
    """Raise GeckoError, with the names that are there, where a file has no thread of this name."""
    names = threads(saved)
    if thread not in names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        held = f"{', '.join(map(repr, names[:SHOWN]))}{more}" if names else "no runs"
        raise GeckoError(f"{file}: no thread {thread!r}; it holds {held}")


def write_text(option: str, target: str, text: str) -> None:
    """Write the file of an option; `-` is the standard output. Raises GeckoError."""
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise GeckoError(f"{option} {target}: cannot be written: {error.strerror}") from None


def _read_only(file: Path) -> sqlite3.Connection:
    """Open a connection that cannot write; while no process writes, it creates no `-wal` or `-shm` file either."""
    immutable = not file.with_name(f"{file.name}-wal").exists()
    address = f"{file.resolve().as_uri()}?mode=ro{'&immutable=1' if immutable else ''}"
    return sqlite3.connect(address, uri=True, check_same_thread=False)


@contextmanager
def _translate_errors(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        is_foreign = "not a database" in str(error) or "no such table" in str(error)
        raise GeckoError(f"{path}: {'not a file of saved runs' if is_foreign else error}") from None
