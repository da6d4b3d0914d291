"""Files of rows: JSON lines (also `.gz`), JSON lists and Parquet, read one by one and written whole or not at all."""

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
"""Bytes of a row that is still read."""

_BATCH = 1_000
_ENDINGS = (".jsonl", ".jsonl.gz", ".parquet")
_STRUCTURES = {"messages", "prompt", "completion", "chosen", "rejected", "conversations", "label"}
"""Columns of Parquet whose lists of objects stay what they are, but for arguments."""


Row: TypeAlias = Mapping[str, Any] | str
"""A row to be written, which may be JSON text already."""


class Unwritten(GeckoError):
    """What was done could not be written; the same command goes on."""


class FileRow(NamedTuple):
    """A row as its file has it: text, or of Parquet the row itself; `problem` says why it is neither."""

    number: int
    content: bytes | JsonObject
    problem: str = ""

    def read(self) -> Any:
        """Return the row. Raises ValueError."""
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
    """Return the files of rows that a path, a folder (by `endings`) or a glob names, in the order of their names.

    Raises:
        GeckoError: A folder or a glob has none.
    """
    place = Path(source)
    if place.is_dir():
        found = [each for ending in endings for each in place.glob(f"*{ending}")]
    elif glob.has_magic(str(source)) and not place.exists():
        found = [Path(each) for each in glob.glob(str(source), recursive=True) if Path(each).is_file()]
    else:
        return [place]
    if not found:
        raise GeckoError(f"{source}: no rows there: expected files {', '.join(endings)}")
    return sorted(found)


def read_lines(file: str | Path) -> Iterator[FileRow]:
    """Yield the rows of a file, empty lines left out. Raises GeckoError if it cannot be read (any further)."""
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
    """Return the rows of a JSON list; None if the file is none, but perhaps lines."""
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
    """Drop members that are null: Arrow gives each object of a column the keys of all of them."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def storable(value: Any) -> Any:
    """Return JSON as a file holds it: half a surrogate pair is `?`."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def check_target(file: Path) -> None:
    """Raise GeckoError where files of this kind cannot be written here."""
    if file.suffix == ".parquet":
        _arrow()


def write_rows(file: str | Path, rows: Iterable[Row]) -> int:
    """Write rows as JSON lines (also `.gz`), or as Parquet; the file is there whole or not at all. Returns how many.

    Raises:
        Unwritten: It cannot be written.
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
    told: Any = {"encoding": "utf-8", "errors": "replace"}  # half a surrogate pair is `?`
    with gzip.open(file, "wt", **told) if ending == ".gz" else file.open("w", **told) as stream:
        for row in rows:
            stream.write((row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)) + "\n")
            count += 1
        stream.flush()
    return count


def _write_parquet(file: Path, rows: Iterable[Row]) -> int:
    """Write all rows at once, by the types that they have: messages and calls as they are, the rest as JSON text."""
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
    """Return a message or a call whose arguments are JSON text: of objects, Arrow would merge the keys of all rows."""
    if isinstance(value, dict):
        return {key: _pack("", each) if key == "arguments" else _pack_arguments(each) for key, each in value.items()}
    return [_pack_arguments(each) for each in value] if isinstance(value, list) else value
