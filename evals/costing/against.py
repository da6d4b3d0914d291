"""Own time beside that of another checkout of this repository, in one run.

Each measurement is made in a process of its own that imports the checkout it runs in, in turn: what slows the machine
down slows both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from gecko_graph.state import JsonObject

from ..harness.figures import Record, Table, mean_of, median_of
from ..harness.options import EvalError
from ..harness.suite import Expectation

HERE = Path(__file__).resolve().parents[2]
MOST_OWN_TIME = 0.8
"""What own time may at most be, beside the other checkout's."""

_TURNS, _PAIRS_A_TURN = 7, 3
_PROGRAM = "import json\nfrom evals.costing import costs\nprint(json.dumps(costs.{}))"


def checked_folder(given: str) -> Path:
    """Return the other checkout.

    Raises:
        EvalError: The folder is not a checkout of this repository.
    """
    folder = Path(given).resolve()
    if not (folder / "evals/costing/costs.py").is_file():
        raise EvalError(f"--against {given}: expected a checkout of this repository, with evals/costing/costs.py")
    return folder


def run_in(folder: Path, *line: str) -> Any:
    """Run a Python program in a new process that imports the checkout in `folder`; returns the JSON that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, *line], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise EvalError(f"{folder}: {' '.join(line)[-80:]} failed: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout.splitlines()[-1])


def own_time(folder: Path, *, calls: int, turns: int = _TURNS, measure: str = "ratio") -> JsonObject:
    """Return own time beside empty nodes, here and in the other checkout: `3 * turns` alternating pairs of each.

    The empty nodes stand in a graph of the same keys, so what fewer keys save shows only in `ms`, the time itself.
    """
    program = _PROGRAM.format(f"own_time(calls={calls}, repeats={_PAIRS_A_TURN})")
    return _both(folder, turns, lambda checkout: run_in(checkout, "-c", program)[measure])


def real_call(folder: Path, *, turns: int = _TURNS) -> JsonObject:
    """Return the milliseconds of a further real call on SQLite, here and in the other checkout, in turn."""
    program = str(HERE / "evals/costing/real_calls.py")
    return _both(folder, turns, lambda checkout: run_in(checkout, program, str(_PAIRS_A_TURN)))


def _both(folder: Path, turns: int, measure: Callable[[Path], list[float]]) -> JsonObject:
    found: dict[str, list[float]] = {"here": [], "there": []}
    for _ in range(turns):
        found["here"] += measure(HERE)
        found["there"] += measure(folder)
    return {**found, "ratio": median(found["here"]) / median(found["there"])}


def tables(records: Sequence[Record]) -> Iterator[Table]:
    """Yield a table of what was measured in both, and its ratio."""
    table = Table("Own time (beside empty nodes, or ms), and in the other checkout", ["", "here", "there", "ratio"])
    for record in records:
        both = (median_of(record.values[key], tools="simulated") for key in ("here", "there"))
        table.add(record.id.partition(": ")[2], *both, mean_of([record.values["ratio"]], tools="simulated"))
    yield table


def met(records: Sequence[Record]) -> Iterator[Expectation]:
    """Yield the expectations: at most so much of the other checkout's."""
    for record in records:
        text = f"{record.id}: at most {MOST_OWN_TIME} times the other checkout's"
        yield Expectation(text, record.values["ratio"] <= MOST_OWN_TIME)
