"""Long work in steps: a step is skipped if its files and a manifest of the same inputs exist."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import GeckoError
from ..models.cache import forget_replies
from ..values.digest import digest
from ..values.rows import read_lines
from .rows import Unwritten

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
