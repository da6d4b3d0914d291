"""Compare processor time with that of another checkout of this repository, in one run.

The measurements alternate between the checkouts, each in a new process, so that a slow machine slows down both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from gecko_graph.state import JsonObject

from ..harness.figures import Record, Table, mean_of, median_of
from ..harness.options import EvalError
from ..harness.suite import Expectation

HERE = Path(__file__).resolve().parents[2]
TURNS = 5


class Row(NamedTuple):
    """The most that a row of `beside` may be: relative to the other checkout, or absolute."""

    beside: float | None = None
    alone: float | None = None


ROWS: Mapping[str, Row] = {
    "World.call, 10 kB, µs": Row(beside=0.6),
    "World.call, 4.9 MB, µs": Row(beside=0.6),
    "calls 9,800 to 10,000 beside 0 to 200": Row(alone=1.1),
    "bytes left by a call, late beside early": Row(alone=1.1),
    "a session of 5,000 calls reset to 4,999, ms": Row(alone=60),
    "a rehearsed call beside empty nodes": Row(beside=0.8),
    "a further real call, ms": Row(beside=1.0),
    "a request to serve, ms": Row(beside=0.6),
    "data verify, a row of eight calls by contract, µs": Row(beside=0.59),
    "data verify, a row by schema alone, µs": Row(beside=0.4),
    "from gecko_graph import create_gecko, s": Row(beside=0.7),
    "gecko-graph --version, s": Row(beside=1.05),
}
"""The bounds, by the names in `beside.MEASURES`."""


def checked_folder(given: str) -> Path:
    """Return the other checkout's folder.

    Raises:
        EvalError: The folder is not a checkout of this repository.
    """
    folder = Path(given).resolve()
    if not (folder / "evals/costing/costs.py").is_file():
        raise EvalError(f"--against {given}: expected a checkout of this repository, with evals/costing/costs.py")
    return folder


def run_in(folder: Path, *line: str) -> Any:
    """Run a Python program in a new process with the checkout in `folder`; return the JSON that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    own = folder / ".venv/bin/python"  # a virtual environment of the checkout
    python = str(own) if own.is_file() else sys.executable
    done = subprocess.run([python, *line], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise EvalError(f"{folder}: {' '.join(line)[-80:]} failed: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout.splitlines()[-1])


def beside(folder: Path, name: str, *, data: Path, turns: int = TURNS) -> JsonObject:
    """Return a row of `beside`, measured alternately here and in the other checkout, each in a new process."""
    program = str(HERE / "evals/costing/beside.py")
    found: dict[str, list[float]] = {"here": [], "there": []}
    for _ in range(turns):
        for side, checkout in (("here", HERE), ("there", folder)):
            found[side].append(run_in(checkout, program, name, str(data)))
    return {**found, "ratio": median(found["here"]) / median(found["there"])}


def table(records: Sequence[Record]) -> Table:
    """Return the measurements in both checkouts, and their ratio."""
    made = Table("Here, and in the other checkout", ["", "here", "there", "ratio"])
    for record in records:
        both = (median_of(record.values[key], tools="simulated") for key in ("here", "there"))
        made.add(record.id.partition(": ")[2], *both, mean_of([record.values["ratio"]], tools="simulated"))
    return made


def met(records: Sequence[Record]) -> Iterator[Expectation]:
    """Yield the expectations: each row within its bound."""
    for record in records:
        row = ROWS[record.id.partition(": ")[2]]
        if row.alone is not None:
            yield Expectation(f"{record.id}: at most {row.alone:g}", median(record.values["here"]) <= row.alone)
        if row.beside is not None:
            text = f"{record.id}: at most {row.beside:g} times the other checkout's"
            yield Expectation(text, record.values["ratio"] <= row.beside)
