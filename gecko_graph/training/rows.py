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
"""Columns of Parquet whose lists of objects stay what they are, but for arguments."""


Row: TypeAlias = Mapping[str, Any] | str
"""A row to be written, which may be JSON text already."""


class Unwritten(GeckoError):
    """What was done could not be written; the same command goes on."""


def storable(value: Any) -> Any:
    """Return JSON as a file holds it: half a surrogate pair is `?`."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def check_target(file: Path) -> None:
    """Raise GeckoError where files of this kind cannot be written here."""
    if file.suffix == ".parquet":
        load_arrow()


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
    """Return a message or a call whose arguments are JSON text: of objects, Arrow would merge the keys of all rows."""
    if isinstance(value, dict):
        return {key: _pack("", each) if key == "arguments" else _pack_arguments(each) for key, each in value.items()}
    return [_pack_arguments(each) for each in value] if isinstance(value, list) else value
