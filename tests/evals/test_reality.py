"""Thirty runs of `evals reality`; all of them are `python -m evals reality`. One run is told by `--story SEED`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("mcp.server.mcpserver", reason="the extra `mcp` (2.x) is not installed")

from evals.reality.draws import Draw
from evals.reality.postgres import start_postgres
from evals.reality.runs import Run, run_apart

WRONG = ("doubled", "let_through", "lost", "barred", "false_done", "unnamed")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 100, 40))
def test_what_is_wanted_is_done_once(first):
    seeds = range(first, first + 10)
    addresses = [start_postgres() if Draw.of(seed).saver == "postgres" else None for seed in seeds]
    with ThreadPoolExecutor(5) as threads:  # most of a run waits for leases and for processes that are killed
        runs = dict(zip(seeds, threads.map(run_apart, seeds, addresses), strict=True))
    wrong = {seed: run for seed, run in runs.items() if run["ended"] == "unsettled" or any(run[key] for key in WRONG)}
    assert not wrong, "\n".join(f"seed {seed}: {run}" for seed, run in wrong.items())


def find_draw(**wanted):
    """Return the first run that is drawn so."""
    return next(draw for draw in map(Draw.of, range(600)) if all(getattr(draw, key) == wanted[key] for key in wanted))


@pytest.mark.parametrize(
    ("made", "status", "wrong"),
    [
        (["ann", "bob"], "done", {}),
        (["ann", "bob", "ann"], "done", {"doubled": 1, "false_done": True}),
        (["ann"], "done", {"lost": 1, "false_done": True}),
        (["ann"], "partial", {"barred": 1}),
        (["ann", "bob", "mallory"], "done", {"let_through": 1, "false_done": True}),
        ([], "in_doubt", {"barred": 3, "unnamed": 1}),
    ],
)
def test_a_run_is_judged_by_the_bank_s_own_log(tmp_path, made, status, wrong):
    run = Run(find_draw(plan="equal", faults=0.0, leaves=False, extra="none"), tmp_path, None)
    for to in ["ann", *made] if made else []:
        run.bank._make("pay", {"to": to, "amount": 11 if to == "ann" else 22}, "")
    values = run.judge({"status": status, "doubts": []})
    assert {key: values[key] for key in WRONG if values[key]} == wrong


def test_a_key_that_comes_again_is_answered_from_the_log(tmp_path):
    draw = find_draw(keyed=True)
    bank = Run(draw, tmp_path, None).bank
    first = bank._make("pay", {"to": "ann", "amount": 11}, "key-1")
    assert bank._make("pay", {"to": "ann", "amount": 11}, "key-1") == first
    assert bank._make("pay", {"to": "ann", "amount": 11}, "key-2") != first
    assert len(bank.log()) == 2
