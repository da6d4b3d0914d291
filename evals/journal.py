"""The journal of a run: a JSONL file whose first line says what it is of, and then a line for every finished case.

A process that dies leaves a journal that the same command goes on with; a torn last line is cut off. One process
writes to it at a time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, Any, TypeAlias

from gecko_graph.state import JsonObject

from .suite import EvalError, Record

if sys.platform != "win32":
    import fcntl

VERSION = 1

Head: TypeAlias = dict[str, Any]
"""`v`, `suite`, `options` (whatever a record depends on), `planner`, `models`, `command`, `commit`, `code`, `date`."""

_FIELDS = tuple(each.name for each in fields(Record))


class Journal:
    """An open journal. `finished` has the records that it held, by id; `sessions` the heads of all its sessions.

    Args:
        path: The file.
        head: What is about to run.
        mixed: Go on although the code is another one than that of the finished cases.

    Raises:
        EvalError: Another process writes to it; it is of another suite, of other options or of other code; or a line
            before the last is broken.
    """

    def __init__(self, path: Path, head: Head, *, mixed: bool = False) -> None:
        self.path = path
        self.finished: dict[str, Record] = {}
        self.sessions: list[Head] = []
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = path.open("a+b")
        try:
            _lock(self._file, path)
            self._read()
            if self.sessions:
                _check(self.sessions, head, path, mixed=mixed, finished=len(self.finished))
        except EvalError:
            self._file.close()
            raise
        self.sessions.append(head)
        self._write({"kind": "head" if len(self.sessions) == 1 else "resumed", **head})

    def add(self, record: Record) -> None:
        """Keep the record of a finished case."""
        self._write({"kind": "case", **asdict(record)})

    def close(self) -> None:
        """Close the file and let others have it."""
        self._file.close()

    def _write(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line, ensure_ascii=False, allow_nan=False)
        self._file.write(text.encode("utf-8", "backslashreplace") + b"\n")
        self._file.flush()

    def _read(self) -> None:
        self._file.seek(0)
        whole = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break  # the process died while it wrote
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError):
                raise EvalError(f"{self.path}: line {number} cannot be read; --fresh begins anew") from None
            whole += len(line)
        self._file.truncate(whole)

    def _take(self, line: JsonObject) -> None:
        kind = line.pop("kind")
        if kind == "case":
            record = Record(**{name: line[name] for name in _FIELDS})
            self.finished[record.id] = record
        else:
            self.sessions.append(line)


def _check(sessions: list[Head], head: Head, path: Path, *, mixed: bool, finished: int) -> None:
    then = sessions[0]
    if then.get("v") != VERSION or then.get("suite") != head["suite"]:
        raise EvalError(f"{path} is the journal of another suite ({then.get('suite')}): give another --out, or --fresh")
    other = _differences(then["options"], head["options"])
    if other:
        raise EvalError(
            f"{path} holds {finished} cases that ran with other options ({other}): give the same options to go on, "
            "--out for another folder, or --fresh to begin anew"
        )
    if finished and not mixed and {each["code"] for each in sessions} != {head["code"]}:
        raise EvalError(
            f"{path} holds {finished} cases that ran with other code (commit {sessions[-1]['commit']}, now "
            f"{head['commit']}): --fresh begins anew, --resume goes on all the same and says so in the report"
        )


def _differences(then: JsonObject, now: JsonObject) -> str:
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    return ", ".join(f"{name} {then.get(name)!r}, now {now.get(name)!r}" for name in names)


def _lock(file: IO[bytes], path: Path) -> None:
    if sys.platform != "win32":
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise EvalError(f"{path} is being written by another run: wait for it, or give another --out") from None
