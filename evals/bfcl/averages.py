"""Averages over categories, as the paper's tables 3 and 4 have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..harness.datasets import read_jsonl
from ..harness.figures import Measured, Published, Table, average, rate
from ..harness.journal import record_of
from ..harness.record import EvalError
from . import MULTI_TURN

NON_LIVE = ("simple_python", "parallel", "multiple", "irrelevance")
LIVE = ("live_simple", "live_multiple", "live_irrelevance")
BASE = MULTI_TURN[0]

PAPER = {"GPT-4o": 0.7693, "GPT-4o with GATS": 0.8462, "GPT-4.1-mini": 0.6620, "GPT-4.1-mini with GATS": 0.7384}
"""Overall accuracy in the paper's table 3, on BFCL v3."""


def table_3(rates: Mapping[str, Measured], *, beside: Measured | None = None) -> Sequence[Table]:
    """Return the averages of the areas of which all categories were run, and the overall one where all areas were.

    Args:
        rates: Accuracy by category.
        beside: Accuracy on the multi-turn base tasks, of another run.

    Returns:
        A table, or nothing where no area is whole.
    """
    areas = {"non-live single turn": NON_LIVE, "live single turn": LIVE}
    found = {
        area: average([rates[name] for name in names]) for area, names in areas.items() if set(names) <= rates.keys()
    }
    if beside is not None:
        found["multi-turn base"] = beside
    if not set(areas) & found.keys():
        return ()
    note = "Each area's is the plain mean over its categories, the overall one the mean of the three areas."
    table = Table("Averages as in the paper's table 3", ["average of", "accuracy"], note=note)
    for area, measured in found.items():
        table.add(area, measured)
    whole = average(list(found.values())) if len(found) == 3 else None
    table.add("overall", whole or "not all three areas were run (--beside)")
    for model, value in PAPER.items():
        table.add(f"overall, paper's {model}", Published(value, "paper, table 3"))
    return [table]


def multi_turn_base(folder: Path) -> Measured:
    """Return the accuracy of a finished multi-turn run on the base tasks, on simulated tools as in the paper.

    Raises:
        EvalError: The folder has no such run.
    """
    path = folder / "cases.jsonl"
    if not path.is_file():
        raise EvalError(f"--beside {folder}: there is no run in it (no cases.jsonl)")
    lines = [line for line in read_jsonl(path) if line.get("kind") == "case" and line.get("group") == BASE]
    records = [record_of(line) for line in lines if "valid" in line["values"] or line["status"] != "done"]
    if not records:
        raise EvalError(f"--beside {folder}: no case of {BASE} in it")
    if any(record.tools != "simulated" for record in records):
        raise EvalError(f"--beside {folder}: it was planned on the real tools: run it with --tools contract or model")
    return rate(records, lambda record: bool(record.values["valid"]))


def table_4(rates: Mapping[str, Measured]) -> Sequence[Table]:
    """Return the mean of retail and airline, where both were run."""
    if not {"retail", "airline"} <= rates.keys():
        return ()
    note = "The plain mean of retail and airline."
    table = Table("Average as in the paper's table 4", ["average of", "success"], note=note)
    table.add("overall", average([rates["retail"], rates["airline"]]))
    for model, value in (("GPT-4o", 0.543), ("GPT-4o with GATS", 0.567)):
        table.add(f"overall, paper's {model}", Published(value, "paper, table 4"))
    return [table]
