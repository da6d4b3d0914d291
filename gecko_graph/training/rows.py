"""Files of rows: JSON lines (also `.gz`), JSON lists and Parquet, read row by row and written atomically."""

from __future__ import annotations

import glob
import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ..errors import GeckoError, install
from ..models.drawing import escape
from ..state import Json, JsonObject
from .calls import read_json

LARGEST = 10_000_000
"""Most bytes of a row."""

_BATCH = 1_000
_ENDINGS = (".jsonl", ".jsonl.gz", ".parquet")
_STRUCTURES = {"messages", "prompt", "completion", "chosen", "rejected", "conversations", "label"}
"""Parquet columns that keep their lists of objects, except for arguments."""


Row: TypeAlias = Mapping[str, Any] | str
"""A row to write, possibly already JSON text."""


class Unwritten(GeckoError):
    """The result could not be written; running the same command again resumes the work."""


class FileRow(NamedTuple):
    """A row as read from its file: JSON text, from Parquet an object; `problem` says why it is neither."""

    number: int
    content: bytes | JsonObject
    problem: str = ""

    def read(self) -> Any:
        if self.problem:
            raise ValueError(self.problem)
        if not isinstance(self.content, bytes):
            return self.content
        try:
            text = self.content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"no UTF-8 at byte {error.start}") from None
        return read_json(text, what="the row")


def find_files(source: str | Path, endings: Sequence[str] = _ENDINGS) -> list[Path]:
    """Return the files of rows of a path, a folder (by `endings`) or a glob, sorted by name.

    Raises:
        GeckoError: The folder or glob has none.
    """
    place = Path(source)
    if place.is_dir():
        found = [each for ending in endings for each in place.glob(f"*{ending}")]
    elif glob.has_magic(str(source)) and not place.exists():
        found = [Path(each) for each in glob.glob(str(source), recursive=True) if Path(each).is_file()]
    else:
        return [place]
    if not found:
        raise GeckoError(f"{source}: no files of rows: expected {', '.join(endings)}")
    return sorted(found)


def read_lines(file: str | Path) -> Iterator[FileRow]:
    """Yield the rows of a file without empty lines. Raises GeckoError if reading fails."""
    name = str(file)
    try:
        if name.endswith(".parquet"):
            yield from _read_parquet(file)
            return
        with gzip.open(file, "rb") if name.endswith(".gz") else Path(file).open("rb") as stream:
            if name.removesuffix(".gz").endswith(".json") and (rows := _read_list(stream.read())) is not None:
                yield from rows
                return
            stream.seek(0)
            for number, content in enumerate(iter(lambda: stream.readline(LARGEST + 1), b""), 1):
                if len(content) > LARGEST:
                    while (more := stream.readline(LARGEST)) and not more.endswith(b"\n"):
                        pass
                    yield FileRow(number, b"", f"larger than {LARGEST // 1_000_000} MB")
                elif content.strip():
                    yield FileRow(number, content)
    except (OSError, EOFError) as error:
        raise GeckoError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _read_list(content: bytes) -> list[FileRow] | None:
    """Return the rows of a JSON list, None if the content is no list."""
    with suppress(ValueError, RecursionError):
        found = json.loads(content)
        if isinstance(found, list):
            return [
                FileRow(at, escape(json.dumps(each, ensure_ascii=False)).encode()) for at, each in enumerate(found, 1)
            ]
    return None


def _arrow() -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise GeckoError(f"Parquet needs pyarrow: {install('training')}") from None
    return pa


def _read_parquet(file: str | Path) -> Iterator[FileRow]:
    pa = _arrow()
    try:
        with pa.parquet.ParquetFile(file) as opened:
            rows = (row for batch in opened.iter_batches(_BATCH) for row in batch.to_pylist())
            yield from (FileRow(number, _without_nulls(row)) for number, row in enumerate(rows, 1))
    except pa.ArrowInvalid as error:
        raise GeckoError(f"{file}: cannot be read: {error}") from None


def _without_nulls(value: Json) -> Any:
    """Drop null members: Arrow gives each object of a column the union of all keys."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def storable(value: Any) -> Any:
    """Return JSON as a file can store it: a lone surrogate becomes `?`."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def check_target(file: Path) -> None:
    """Raise GeckoError if files of this type cannot be written here."""
    if file.suffix == ".parquet":
        _arrow()


def write_rows(file: str | Path, rows: Iterable[Row]) -> int:
    """Write rows atomically as JSON lines (also `.gz`) or as Parquet; return their number.

    Raises:
        Unwritten: The file cannot be written.
    """
    target = Path(file)
    new = target.with_name(target.name + ".new")
    check_target(target)
    try:
        count = _write_parquet(new, rows) if target.suffix == ".parquet" else _write_json(new, rows, target.suffix)
        os.replace(new, target)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise Unwritten(f"{file}: cannot be written: {error.strerror or error}") from None
    return count


def _write_json(file: Path, rows: Iterable[Row], ending: str) -> int:
    count = 0
    how: Any = {"encoding": "utf-8", "errors": "replace"}  # a lone surrogate becomes `?`
    with gzip.open(file, "wt", **how) if ending == ".gz" else file.open("w", **how) as stream:
        for row in rows:
            stream.write((row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)) + "\n")
            count += 1
        stream.flush()
    return count


def _write_parquet(file: Path, rows: Iterable[Row]) -> int:
    """Write all rows in one table: messages and calls keep their types, other values become JSON text."""
    pa, read = _arrow(), (json.loads(row) if isinstance(row, str) else row for row in rows)
    packed = [{name: _pack(name, value) for name, value in row.items()} for row in read]
    columns = dict.fromkeys(["id", *(name for row in packed for name in row)])
    table = pa.Table.from_pydict({name: [row.get(name) for row in packed] for name in columns})
    pa.parquet.write_table(table, file)
    return len(packed)


def _pack(name: str, value: Json) -> Json:
    if name in _STRUCTURES and isinstance(value, list):
        return [_pack_arguments(each) for each in value]
    if name == "results" and isinstance(value, list):
        return [_pack("", each) for each in value]
    return value if isinstance(value, str | None) or name == "v" else json.dumps(value, ensure_ascii=False)


def _pack_arguments(value: Any) -> Any:
    """Return a message or call with its arguments as JSON text: Arrow would merge the keys of all rows' objects."""
    if isinstance(value, dict):
        return {key: _pack("", each) if key == "arguments" else _pack_arguments(each) for key, each in value.items()}
    return [_pack_arguments(each) for each in value] if isinstance(value, list) else value
