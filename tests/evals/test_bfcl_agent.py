"""BFCL multi-turn by the agent: rehearsed on contracts and copies, carried out on the benchmark's own instances."""

from __future__ import annotations

import asyncio

from evals.bfcl.arms import by_record, by_truth
from evals.bfcl.simulated import Stage
from evals.bfcl.tasks import read_recorded
from evals.harness.options import Options

BASE = "multi_turn_base"


def acted(task):
    return asyncio.run(by_truth(Stage(task, "agent"), Options()))


def test_what_was_rehearsed_is_what_really_happens_and_the_task_state_stays_in_step(tasks):
    """Files by contract with a text that names a result (10), doors that are called like their places (98)."""
    rungs = set()
    for number in (10, 98):
        record = acted(tasks[f"{BASE}_{number}"])
        assert record["valid"]
        assert all(record["accepted"])
        for turn in record["acted"]:
            assert turn["as_rehearsed"], turn["differences"]
            assert turn["in_step"], turn["differences"]
            assert (turn["drifts"], turn["departures"], turn["rehearsals"]) == ([], [], 1)
        rungs |= set(record["rungs"])
    assert rungs == {"contract", "python"}


def test_a_recorded_plan_with_an_unknown_tool_is_refused_and_nothing_of_it_is_done(official, shared_data):
    recorded = read_recorded(shared_data, ["multi_turn_miss_func"])
    task, row = next(each for each in recorded if each[0].id == "multi_turn_miss_func_2" and each[1]["model"][0] == "S")
    record = asyncio.run(by_record(Stage(task, "agent"), Options(), row=row))
    assert record["complaints"]
    assert all(turn["in_step"] for turn in record["acted"])
