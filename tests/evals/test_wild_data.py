"""The parts of `wild` that are no documents: all that is published is read, or named."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals.harness.figures import Record
from evals.wild.data import PARTS

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


class Options:
    """Finds files beside the project."""

    def dataset(self, name):
        return DATA / name


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_each_part_holds(part):
    if part.name != "har" and not DATA.exists():
        pytest.skip("the shared data are not beside the project")
    cases = list(part.cases(Options()))
    records = [Record(case.id, case.group, {}, "done", "", 0.0, "none", part.run(case)) for case in cases]
    summary = part.summarise(records)
    assert [each.text for each in summary.expectations if not each.holds] == []
    assert summary.notes == []
