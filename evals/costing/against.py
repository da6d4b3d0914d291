"""Own time beside that of another checkout of this repository, in one run.

Each measurement is made in a process of its own that imports the checkout it runs in, in turn: what slows the machine
down slows both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from gecko_graph.state import JsonObject

from ..harness.figures import Figure, Table, mean_of, median_of
from ..harness.suite import EvalError, Expectation, Record

HERE = Path(__file__).resolve().parents[2]
MOST_OWN_TIME = 0.8
"""What own time beside empty nodes may at most be, beside the other checkout's."""

_TURNS, _PAIRS_A_TURN = 7, 3
_PROGRAM = "import json\nfrom {} import costs\nprint(json.dumps(costs.{}))"
_HOMES = {"evals/costing/costs.py": "evals.costing", "evals/costs.py": "evals"}
"""Where a checkout has the measurements: today, and before suites and harness were apart."""


def checked_folder(given: str) -> Path:
    """Return the other checkout.

    Raises:
        EvalError: The folder is not a checkout of this repository.
    """
    folder = Path(given).resolve()
    if not any((folder / path).is_file() for path in _HOMES):
        raise EvalError(f"--against {given}: expected a checkout of this repository, with evals/costing/costs.py")
    return folder


def measure_in(folder: Path, expression: str) -> JsonObject:
    """Run a function of `evals.costing.costs` in a new process that imports the checkout in `folder`."""
    home = next(home for path, home in _HOMES.items() if (folder / path).is_file())
    line = [sys.executable, "-c", _PROGRAM.format(home, expression)]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EvalError(f"{folder}: {expression} failed: {done.stderr.strip()[-300:]}")
    result: JsonObject = json.loads(done.stdout.splitlines()[-1])
    return result


def own_time(folder: Path, *, calls: int, turns: int = _TURNS) -> JsonObject:
    """Return own time beside empty nodes, here and in the other checkout: `3 * turns` alternating pairs of each."""
    ratios: dict[str, list[float]] = {"here": [], "there": []}
    for _ in range(turns):
        for name, checkout in (("here", HERE), ("there", folder)):
            ratios[name] += measure_in(checkout, f"own_time(calls={calls}, repeats={_PAIRS_A_TURN})")["ratio"]
    return {**ratios, "ratio": median(ratios["here"]) / median(ratios["there"])}


def real_call(folder: Path, *, turns: int = _TURNS) -> JsonObject:
    """Return the milliseconds of a further real call on SQLite, here and in the other checkout, in turn."""
    times: dict[str, list[float]] = {"here": [], "there": []}
    for _ in range(turns):
        for name, checkout in (("here", HERE), ("there", folder)):
            line = [sys.executable, str(HERE / "evals/costing/real_calls.py"), str(_PAIRS_A_TURN)]
            environment = {**os.environ, "PYTHONPATH": str(checkout)}
            done = subprocess.run(line, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                raise EvalError(f"{checkout}: a real call failed: {done.stderr.strip()[-300:]}")
            times[name] += json.loads(done.stdout.splitlines()[-1])
    return {**times, "ratio": median(times["here"]) / median(times["there"])}


def tables(records: Sequence[Record]) -> Iterator[Figure]:
    """Yield a table of what was measured in both, and its ratio."""
    table = Table("Own time (of a real call: ms), and in the other checkout", ["", "here", "there", "ratio"])
    for record in records:
        both = (median_of(record.values[key], tools="simulated") for key in ("here", "there"))
        table.add(record.id.partition(": ")[2], *both, mean_of([record.values["ratio"]], tools="simulated"))
    yield table


def met(records: Sequence[Record]) -> Iterator[Expectation]:
    """Yield the expectations: at most so much of the other checkout's."""
    for record in records:
        text = f"{record.id}: at most {MOST_OWN_TIME} times the other checkout's"
        yield Expectation(text, record.values["ratio"] <= MOST_OWN_TIME)
