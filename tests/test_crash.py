"""A run that is killed at any write of its checkpointer, and resumed, ends as the uninterrupted run does."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests import desk, forked
from tests.crash_run import THREAD, connect, gecko

ROOT = Path(__file__).resolve().parents[1]
WRITES = 75  # the run makes about so many
MOST = 9


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["before", "after"])
def test_kill_at_any_write_and_resume(tmp_path, kind):
    points = range(2 if kind == "before" else 3, WRITES, 3)
    names = [f"run{point}.sqlite={point}" for point in points]
    command = [sys.executable, "-m", "tests.crash_run", str(tmp_path), kind, *names]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    forked.run(command, cwd=ROOT, env=environment, check=True, timeout=300)
    whole = tmp_path / "whole.sqlite"
    expected = gecko(whole, connect(whole)).invoke(desk.inputs(), THREAD, durability="sync")
    assert Path(f"{whole}.reads").read_text().count("EUR") == 2
    killed = 0
    for point in points:
        path = tmp_path / f"run{point}.sqlite"
        graph = gecko(path, connect(path))
        snapshot = graph.get_state(THREAD)
        if not snapshot.values:
            continue  # killed before the input was stored: there is no run to resume
        if not snapshot.tasks:  # not `next`: that is empty too where all of a superstep's writes are there
            assert snapshot.values["rehearsal"]["verdict"]["status"] == "accepted"
            continue
        killed += 1
        done = {attempt["number"]: attempt for attempt in snapshot.values.get("attempts", [])}
        reads_before = reads(path)
        run = graph.invoke(None, THREAD, durability="sync")
        assert run["rehearsal"] == expected["rehearsal"], f"killed at write {point}"
        assert run["task_state"] == expected["task_state"]
        for attempt in run["rehearsal"]["attempts"]:
            assert done.get(attempt["number"], attempt) == attempt
        assert reads(path) - reads_before <= 2 - len(done)
        assert reads(path) <= 3, "at most the one read is repeated whose result was not recorded yet"
    assert killed >= MOST


def reads(path: Path) -> int:
    log = Path(f"{path}.reads")
    return log.read_text().count("EUR") if log.exists() else 0
