"""Where data lie, and where to get them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .record import EvalError

ROOT = Path(__file__).resolve().parents[2]

SHARED = ROOT.parent / "shared" / "data"

OUT = ROOT / "evals" / "out"

# beginnings of file names, and what the file was made from
SOURCES = {
    "bfcl": "the Berkeley Function Calling Leaderboard (github.com/ShishirPatil/gorilla, or the package bfcl-eval)",
    "tau": "tau-bench (github.com/sierra-research/tau-bench)",
}


def find(name: str, folder: Path = SHARED) -> Path:
    """Return the path of a data set's file.

    Raises:
        EvalError: It is not there; the message says where to get it.
    """
    path = folder / name
    if path.is_file():
        return path
    source = next((text for start, text in SOURCES.items() if name.startswith(start)), "the project's recorded data")
    raise EvalError(
        f"no data set {name} in {folder}: it comes with the project's recorded data (the folder shared/data beside the "
        f"checkout; --data DIR says where else), made from {source}"
    )


def read_jsonl(path: Path) -> Iterator[Any]:
    """Yield the rows of a JSONL file, one at a time; gzipped where its name ends in `.gz`.

    Raises:
        EvalError: A line is not JSON, or the file is cut off.
    """
    number = 0
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        try:
            for number, line in enumerate(lines, 1):  # noqa: B007 - named where a line is broken
                if line.strip():
                    yield json.loads(line)
        except (ValueError, EOFError, gzip.BadGzipFile) as error:
            raise EvalError(f"{path}: line {number} cannot be read: {error}; fetch the file anew") from None
