"""Long work on rows, in shards: complete shards are kept when the work is stopped and resumed."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from .files import Row, Unwritten, check_target, identify, write_rows, write_text

MANIFEST, _ASKED = "manifest.json", 500
_TABLES = "settings (setting)", "shards (at INTEGER PRIMARY KEY, counts)", "ids (id BLOB PRIMARY KEY) WITHOUT ROWID"


class Shards:
    """Complete shards, with their counts, the ids of their rows, and the paid model replies.

    They are kept in a folder next to the output until all of it is written.

    Args:
        output: A file, or a folder for one file per shard and `manifest.json`.
        setting: Digest of the work's inputs; shards of another setting are deleted.
        number: Number of files of an output folder; None if the output is a file.

    Raises:
        Unwritten: The output cannot be written.
    """

    def __init__(self, output: str | Path, setting: str, number: int | None = None) -> None:
        self._output, self._setting, self._number = Path(output), setting, number
        self._folder = Path(f"{self._output}.part")
        check_target(self._output)
        try:
            if number:
                self._output.mkdir(exist_ok=True)
            self._folder.mkdir(exist_ok=True)
            self._base = self._open()
            if self._base.execute("SELECT setting FROM settings").fetchall() != [(setting,)]:
                self._base.close()
                shutil.rmtree(self._folder)
                self._folder.mkdir()
                self._base = self._open()
                self._base.execute("INSERT INTO settings VALUES (?)", [setting])
        except (OSError, sqlite3.Error) as error:
            raise Unwritten(f"{output}: cannot be written: {getattr(error, 'strerror', None) or error}") from None
        self.done: dict[int, Any] = {}
        """The counts of each complete shard."""
        self.done |= {at: json.loads(counts) for at, counts in self._base.execute("SELECT * FROM shards ORDER BY at")}
        self.replies = self._folder / "replies.sqlite"

    def __enter__(self) -> Shards:
        return self

    def __exit__(self, *_: object) -> None:
        self._base.close()

    def _open(self) -> sqlite3.Connection:
        base = sqlite3.connect(self._folder / "shards.sqlite", isolation_level=None)
        base.execute("PRAGMA journal_mode=WAL")
        base.execute("PRAGMA synchronous=NORMAL")
        for table in _TABLES:
            base.execute(f"CREATE TABLE IF NOT EXISTS {table}")
        return base

    def _file(self, at: int) -> Path:
        return self._folder / f"part-{at:05}.jsonl"

    def known(self, ids: Sequence[str]) -> set[str]:
        """Return which of some ids complete shards have."""
        found = set[str]()
        for at in range(0, len(ids) if self.done else 0, _ASKED):
            marks = {_fingerprint(each): each for each in ids[at : at + _ASKED]}
            asked = f"SELECT id FROM ids WHERE id IN ({','.join('?' * len(marks))})"
            found |= {marks[mark] for (mark,) in self._base.execute(asked, [*marks])}
        return found

    def write(self, at: int, rows: Iterable[Row], count: Callable[[int], Any], ids: Iterable[str] = ()) -> None:
        counts = count(write_rows(self._file(at), rows))
        try:
            with self._base:
                self._base.execute("BEGIN")
                self._base.executemany("INSERT OR IGNORE INTO ids VALUES (?)", ([_fingerprint(each)] for each in ids))
                self._base.execute("INSERT INTO shards VALUES (?, ?)", (at, json.dumps(counts)))
        except sqlite3.Error as error:
            raise Unwritten(f"{self._folder}: cannot be written: {error}; rerun the same command to resume") from None
        self.done[at] = counts

    def rows(self) -> Iterator[str]:
        """Yield the rows of all complete shards as JSON text."""
        for at in sorted(self.done):
            with self._file(at).open(encoding="utf-8") as stream:
                yield from (line.rstrip("\n") for line in stream)

    def save(self) -> None:
        """Write the output of all shards."""
        if self._number is None:
            write_rows(self._output, self.rows())
        else:
            self._write_folder(self._number)

    def _write_folder(self, number: int) -> None:
        files = []
        for at in range(number):
            if at not in self.done:
                write_rows(self._file(at), [])
            file = self._output / f"part-{at:05}-of-{number:05}.jsonl"
            shutil.copyfile(self._file(at), f"{file}.new")
            Path(f"{file}.new").replace(file)
            files.append({"file": file.name, "sha256": identify(file), "counts": self.done.get(at)})
        text = json.dumps({"v": 1, "of": self._setting, "files": files}, indent=1, ensure_ascii=False)
        write_text(self._output / MANIFEST, f"{text}\n")


def forget(output: Path) -> None:
    """Remove the shards of an output that was written, or that has no rows."""
    shutil.rmtree(f"{output}.part", ignore_errors=True)


def name_of(file: str, shards: int | None) -> str:
    return file if shards is None else file.removesuffix(".jsonl")


def read_manifest(folder: Path, setting: str) -> list[Any] | None:
    """Return the counts of each file of a folder, None if a file is missing or of another setting."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        known = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = [(folder / each["file"], each["sha256"]) for each in known["files"]]
        if known["of"] == setting and all(identify(file) == mark for file, mark in files):
            return [each["counts"] for each in known["files"] if each["counts"]]
    return None


def _fingerprint(id_: str) -> bytes:
    return blake2b(id_.encode("utf-8", "surrogatepass"), digest_size=12).digest()
