"""Files of rows, written whole or not at all: JSON lines (also `.gz`) and Parquet."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import GeckoError
from ..state import Json
from ..values.rows import load_arrow

_STRUCTURES = {"messages", "prompt", "completion", "chosen", "rejected", "conversations", "label"}
"""Parquet columns that keep their lists of objects, except for arguments."""


Row: TypeAlias = Mapping[str, Any] | str
"""A row to write, possibly already JSON text."""


class Unwritten(GeckoError):
    """The result could not be written; running the same command again resumes the work."""


def storable(value: Any) -> Any:
    """Return JSON as a file can store it: a lone surrogate becomes `?`."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def check_target(file: Path) -> None:
    """Raise GeckoError if files of this type cannot be written here."""
    if file.suffix == ".parquet":
        load_arrow()


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
    pa, read = load_arrow(), (json.loads(row) if isinstance(row, str) else row for row in rows)
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
