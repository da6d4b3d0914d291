"""BFCL single-turn: right answers, recorded calls, a model that learns from feedback, the official evaluator's word."""

from __future__ import annotations

import json

import pytest

from evals.bfcl.single import Checker, Words
from evals.harness.options import EvalError
from evals.suites.bfcl_single_turn import SUITE
from gecko_graph.testing import recorded
from tests.evals.kept import kept_cases


@pytest.fixture(scope="module")
def official():
    """The official evaluator; the test is skipped where its package is not installed."""
    try:
        return Checker()
    except EvalError as missing:
        pytest.skip(str(missing))


def test_verdicts_are_those_that_were_recorded(official, read_jsonl):
    rows = read_jsonl("bfcl_calls.jsonl.gz")[::40]
    assert len(rows) == 505
    for row in rows:
        calls = [{"call": call["name"], "args": call["arguments"]} for call in row["calls"]]
        task = row["task_id"]
        found = official.check(task.rpartition("_")[0], task, Words(calls, row.get("raw", "")).result)
        assert found.valid == row["official"]["valid"], row
        if row["label"] != "NO_CALL":
            assert found.error_type == (row["official"]["error_type"] or "")


WRONG = {"call": "triangle_properties_get", "args": {"side1": 5, "side2": 4, "side3": 4}}
RIGHT = {"call": "triangle_properties_get", "args": {"side1": 5, "side2": 4, "side3": 3}}
HELPERS = {
    "validator": [{"problems": []}, {"problems": []}],
    "simulator": [{"status": "ok", "result": {"area": 6}, "patch": []}] * 2,
    "checklist": [{"items": [{"description": "the triangle's third side is 3"}]}],
    "bootstrapper": [{"domain": {}, "runtime_state": {}}],
    "judge": [
        {
            "items": [{"id": "item-1", "status": "failed", "reason": "a side is wrong"}],
            "feedback": "Read the sides again.",
        },
        {"items": [{"id": "item-1", "status": "success"}]},
    ],
}


def test_a_model_that_learns_from_feedback_ends_valid(official, run, tmp_path, monkeypatch):
    attempts = [[WRONG, {"say": "Done."}], [RIGHT, {"say": "Done."}]]
    model = recorded(planner=attempts, **HELPERS)
    monkeypatch.setattr("evals.harness.options.patient_model", lambda name, **_: model)
    words = ["--only", "multiple_0", "--planner", "openai:fake", "--model", "openai:fake", "--max-retries", 2]
    assert run(SUITE, "--category", "multiple", *words) == 0
    (case,) = kept_cases(tmp_path)
    values = case["values"]
    assert (values["valid"], values["verdict"], values["judged"], values["attempts"]) == (True, "accepted", "model", 2)
    assert values["result"] == [{"triangle_properties.get": json.dumps(RIGHT["args"])}]
    assert not values["first"]
    assert "planned" not in values
