"""Files of rows, read one by one: JSON lines (also `.gz`), JSON lists and Parquet."""

from __future__ import annotations

import glob
import gzip
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import GeckoError, install
from ..state import Json, JsonObject

ENDINGS = (".jsonl", ".jsonl.gz", ".parquet")
"""Of the files that a folder of rows holds."""
LARGEST = 10_000_000
"""Bytes of a row that is still read."""

_BATCH = 1_000


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


def find_files(source: str | Path, endings: Sequence[str] = ENDINGS) -> list[Path]:
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
        raise GeckoError(f"{source}: no files of rows: expected {', '.join(endings)}")
    return sorted(found)


def read_lines(file: str | Path) -> Iterator[FileRow]:
    """Yield the rows of a file, empty lines left out. Raises GeckoError if it cannot be read (any further)."""
    name = str(file)
    try:
        Path(file).stat()  # a missing file is named before a missing pyarrow
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
            return [FileRow(at, json.dumps(each).encode()) for at, each in enumerate(found, 1)]
    return None


def load_arrow() -> Any:
    """Return pyarrow. Raises GeckoError if it is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise GeckoError(f"Parquet needs pyarrow: {install('training')}") from None
    return pa


def _read_parquet(file: str | Path) -> Iterator[FileRow]:
    pa = load_arrow()
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


def read_json(text: str, *, what: str) -> Any:
    """Return the value of JSON text. Raises ValueError, also for what JSON has no word for."""
    try:
        return json.loads(text, parse_constant=reject_constant)
    except (ValueError, RecursionError):
        raise ValueError(f"{what}: no JSON") from None


def reject_constant(word: str) -> Any:
    """Raise ValueError for NaN and Infinity, which Python's JSON parser accepts."""
    raise ValueError(f"{word} is not a JSON number")
