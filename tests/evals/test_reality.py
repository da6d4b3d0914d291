"""A hundred runs of `evals reality`; all of them are `python -m evals reality`. One run is told by `--story SEED`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("mcp.server.mcpserver", reason="the extra `mcp` (2.x) is not installed")

from evals.reality.draws import EMBEDDED, SETTINGS, Draw
from evals.reality.fates import Counted
from evals.reality.postgres import start_postgres
from evals.reality.runs import Run, run_apart

WRONG = ("doubled", "lost", "false_done", "unnamed")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 100, 10))
def test_what_is_wanted_is_done_once(first):
    seeds = range(first, first + 10)
    addresses = [start_postgres() if Draw.of(seed).saver == "postgres" else None for seed in seeds]
    with ThreadPoolExecutor(5) as threads:  # most of a run waits for leases and for processes that are killed
        runs = dict(zip(seeds, threads.map(run_apart, seeds, addresses), strict=True))
    wrong = {seed: run for seed, run in runs.items() if run["ended"] == "unsettled" or any(run[key] for key in WRONG)}
    assert not wrong, "\n".join(f"seed {seed}: {run}" for seed, run in wrong.items())


def test_every_choice_is_dealt_equally_often():
    draws = [Draw.of(seed) for seed in range(600)]
    assert sum(draw.setting in EMBEDDED for draw in draws) == 300
    assert sum(draw.two for draw in draws) == 150
    assert {draw.setting for draw in draws[:100]} == {*SETTINGS}
    assert len({(draw.setting, draw.tools, draw.end) for draw in draws}) > 60
    assert Draw.of(7) == draws[7]


@pytest.mark.parametrize(
    ("made", "status", "wrong"),
    [
        (["ann", "bob"], "done", {}),
        (["ann", "bob", "ann"], "done", {"doubled": 1, "false_done": True}),
        (["ann"], "done", {"lost": 1, "false_done": True}),
        (["ann"], "partial", {}),
        ([], "in_doubt", {"unnamed": 1}),
    ],
)
def test_a_run_is_judged_by_the_bank_s_own_log(tmp_path, made, status, wrong):
    seed = next(seed for seed in range(600) if Draw.of(seed).plan == "equal" and not Draw.of(seed).faults)
    run = Run(Draw.of(seed), tmp_path, None)
    for to in ["ann", *made] if made else []:
        run.bank._make("pay", {"to": to, "amount": 11 if to == "ann" else 22}, "")
    values = run.judge({"status": status, "doubts": []})
    assert {key: values[key] for key in WRONG if values[key]} == wrong


def test_a_key_that_comes_again_is_answered_from_the_log(tmp_path):
    draw = next(draw for draw in map(Draw.of, range(600)) if draw.keyed)
    bank = Run(draw, tmp_path, None).bank
    first = bank._make("pay", {"to": "ann", "amount": 11}, "key-1")
    assert bank._make("pay", {"to": "ann", "amount": 11}, "key-1") == first
    assert bank._make("pay", {"to": "ann", "amount": 11}, "key-2") != first
    assert len(bank.log()) == 2


def test_writes_are_counted_over_all_processes_of_a_run(tmp_path):
    first, second = (Counted(Draw.of(0), tmp_path) for _ in range(2))
    assert [each.number("saver") for each in (first, second, first)] == [1, 2, 3]
    assert first.number("service") == 1
