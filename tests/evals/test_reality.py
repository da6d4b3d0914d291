"""A hundred runs of `evals reality`; all of them are `python -m evals reality`."""

from __future__ import annotations

import pytest

pytest.importorskip("mcp.server", reason="the extra `mcp` (2.x) is not installed")

from evals.reality.draws import EMBEDDED, SETTINGS, Draw
from evals.reality.postgres import start_postgres
from evals.reality.runs import run_apart


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_what_is_wanted_is_done_once(seed):
    values = run_apart(seed, start_postgres() if Draw.of(seed).saver == "postgres" else None)
    wrong = {key: values[key] for key in ("doubled", "lost", "false_done", "unnamed") if values[key]}
    assert not wrong, values["story"]
    assert values["ended"] != "unsettled", values["story"]


def test_every_choice_is_dealt_equally_often():
    draws = [Draw.of(seed) for seed in range(600)]
    assert sum(draw.setting in EMBEDDED for draw in draws) == 300
    assert sum(draw.two for draw in draws) == 150
    assert {draw.setting for draw in draws[:100]} == {*SETTINGS}
    pairs = {(draw.setting, draw.tools, draw.end) for draw in draws}
    assert len(pairs) > 100
    assert Draw.of(7) == draws[7]
