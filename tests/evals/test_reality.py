"""A short draw of `evals reality`; the whole is `python -m evals reality`."""

from __future__ import annotations

import pytest

from evals.reality.orders import WRITES, Draw, run


@pytest.mark.parametrize("seed", range(12))
def test_a_killed_and_disturbed_run_ends_as_the_undisturbed_one(seed):
    draw = Draw.of(seed)
    values = run(draw)
    assert values["equal"]
    assert values["writes"] == WRITES
    assert values["state"] or not values["usable"]
    assert values["status"] == "done"
    assert not (draw.idempotent and values["asked"])
