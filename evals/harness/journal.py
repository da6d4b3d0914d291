"""The journal of a run: a JSONL file whose first line says what it is of, and then a line for every finished case.

A process that dies leaves a journal that the same command goes on with; a torn last line is cut off. One process
writes to it at a time.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

from gecko_graph.state import JsonObject

from .figures import Record
from .options import ROOT, EvalError

if sys.platform != "win32":
    import fcntl

VERSION = 1

Head: TypeAlias = dict[str, Any]
"""`v`, `suite`, `options` (whatever a record depends on), `planner`, `models`, `command`, `commit`, `code`, `date`."""


class OtherCode(EvalError):
    """The finished cases ran with other code."""


class Journal:
    """An open journal; when its `with` is over, others may have it.

    `finished` has the records that it held, by id; `sessions` the heads of those who added to it.

    Args:
        path: The file.
        head: What is about to run: the first line, or written before the first record that is added to those there.
        how: Go on with what is there if it ran with the same code, or with any code; or forget it.

    Raises:
        EvalError: Another process writes to it; it is of another suite or of other options; or a line before the last
            is broken.
        OtherCode: It ran with other code.
    """

    def __init__(self, path: Path, head: Head, *, how: Literal["same code", "any code", "anew"] = "same code") -> None:
        self.path = path
        self.finished: dict[str, Record] = {}
        self.sessions: list[Head] = []
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = path.open("a+b")
        except OSError as error:
            raise EvalError(f"--out {path.parent}: {error.strerror}") from None
        try:
            _lock(self._file, path)
            if how == "anew":
                self._file.truncate(0)
            self._read()
            if self.sessions:
                self._check(head, any_code=how == "any code")
        except EvalError:
            self._file.close()
            raise
        self._head: Head | None = head
        if not self.sessions:
            self._begin(head)

    def add(self, record: Record) -> None:
        """Keep the record of a finished case."""
        if self._head:
            self._begin(self._head)
        self._write({"kind": "case", **asdict(record)})

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *failure: object) -> None:
        self._file.close()

    def _begin(self, head: Head) -> None:
        self._write({"kind": "session", **head})
        self.sessions.append(head)
        self._head = None

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

    def _check(self, head: Head, *, any_code: bool) -> None:
        then = self.sessions[0]
        if then.get("v") != VERSION or then.get("suite") != head["suite"]:
            other = then.get("suite")
            raise EvalError(f"{self.path} is the journal of another suite ({other}): give another --out, or --fresh")
        ran = f"{self.path} holds {len(self.finished)} cases that ran with other"
        old, new = then["options"], head["options"]
        if other := [name for name in {**old, **new} if old.get(name) != new.get(name)]:
            told = ", ".join(f"{name} {old.get(name)!r}, now {new.get(name)!r}" for name in other)
            raise EvalError(f"{ran} options ({told}): give the same options, another --out, or --fresh")
        if self.finished and not any_code and {each["code"] for each in self.sessions} != {head["code"]}:
            commit = self.sessions[-1]["commit"]
            raise OtherCode(
                f"{ran} code (commit {commit}, now {head['commit']}): --fresh begins anew, --resume goes on"
            )

    def _take(self, line: JsonObject) -> None:
        if line.pop("kind") == "case":
            self.finished[line["id"]] = Record(**line)
        else:
            self.sessions.append(line)


def _lock(file: IO[bytes], path: Path) -> None:
    if sys.platform != "win32":
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise EvalError(f"{path} is being written by another run: wait for it, or give another --out") from None


# what makes records
_CODE = ("gecko_graph/**/*.py", "prompts/*.md", "evals/**/*.py", "examples/**/*.yaml")


def provenance() -> dict[str, str]:
    """Return what a run is made with.

    Returns:
        `commit`, a short hash, with `+changes` where files differ from it; `code`, the digest of all code, prompts and
        examples that records depend on; `date`, UTC, to the second.
    """
    return {"commit": _commit(), "code": _code(), "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%SZ")}


@cache
def _commit() -> str:
    head = _git("rev-parse", "--short=10", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", "gecko_graph", "prompts", "evals", "examples")
    return (f"{head}+changes" if changed else head) or "unknown"


@cache
def _code() -> str:
    whole = hashlib.sha256()
    for path in sorted({path for pattern in _CODE for path in ROOT.glob(pattern)}):
        if "out" not in path.parts:
            whole.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return whole.hexdigest()[:16]


def _git(*words: str) -> str:
    try:
        ran = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""
