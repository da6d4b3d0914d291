"""Files of long work: rows (JSON lines, also `.gz`, and Parquet), written whole or not at all; steps, done once.

A step is skipped if its files and a manifest of the same inputs exist.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import GeckoError
from ..models.cache import forget_replies
from ..state import Json
from ..values.digest import digest
from ..values.rows import load_arrow, read_lines

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


# steps -----------------------------------------------------------------------------------------------

Counts = Mapping[str, Any]
"""A step's counts: names to numbers."""


def once(
    folder: Path,
    name: str,
    outputs: Sequence[str],
    inputs: Mapping[str, Any],
    work: Callable[[Path], Counts],
    *,
    anew: bool = True,
) -> Counts:
    """Do a step, unless its files exist and were made from the same inputs; return its counts.

    Args:
        folder: The folder of its files and of `NAME.manifest.json`, which is written last.
        name: The step's name.
        outputs: Names of the files, or of the folder, that it writes.
        inputs: Its inputs: paths, compared by content, and plain values.
        work: Does the step; called with the file for cached model replies (`Models.caching`).
        anew: Whether a step with other inputs is done again; else an error.

    Raises:
        GeckoError: The step did not write a file, or its files cannot be written or have other inputs.
    """
    manifest, replies, known = folder / f"{name}.manifest.json", folder / f"{name}.replies", dict[str, Any]()
    of = digest({key: identify(each) if isinstance(each, Path) else each for key, each in inputs.items()})
    with suppress(OSError, ValueError, TypeError):
        known |= json.loads(manifest.read_text(encoding="utf-8"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if known.get("of") != of or known.get("files") != {each: identify(folder / each) for each in outputs}:
            if not anew and known.get("of") not in (None, of):
                raise GeckoError(
                    f"{folder}: its {name} were made with other tools, number, seed or model: use another folder"
                )
            manifest.unlink(missing_ok=True)
            counts = work(replies)
            files = {each: identify(folder / each) for each in outputs}
            for each in (key for key, found in files.items() if found is None):
                raise GeckoError(f"{name}: {folder / each} was not written")
            known = {"v": 1, "of": of, "files": files, "counts": counts}
            write_text(manifest, json.dumps(known, indent=1) + "\n")
        forget_replies(replies)  # last, so that paid replies are never lost
    except OSError as error:
        raise Unwritten(
            f"{folder}: cannot be written: {error.strerror or error}; rerun the same command to resume"
        ) from None
    return dict(known["counts"])


def identify(path: Path) -> str | None:
    """Return a digest of a file's content, or of a folder's file names and sizes; None if there is none."""
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.is_file())
        return digest([[each.relative_to(path).as_posix(), each.stat().st_size] for each in files]) if files else None
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_text(file: Path, text: str) -> None:
    new = file.with_name(file.name + ".new")
    new.write_text(text, encoding="utf-8")
    new.replace(file)


def read_rows(file: Path) -> Iterator[Any]:
    return (line.read() for line in read_lines(file))
