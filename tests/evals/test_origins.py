"""The suite `origins`: ground truths traced by kind."""

from __future__ import annotations

from evals.suites.origins import KINDS, Origins
from tests.evals.kept import read_summary


def test_the_airlines_ground_truths_are_hardly_marked(run, shared_data, tmp_path):
    assert run(Origins, "--data", shared_data, "--only", "airline") == 0
    told = read_summary(tmp_path)
    assert [each["holds"] for each in told["expectations"]] == [True]
    (row,) = told["figures"][0]["rows"]
    assert (row[0], row[1]) == ("airline", 305)
    shares = dict(zip(KINDS, row[2:], strict=True))
    assert float(shares["stated"].rstrip("%")) > 95
