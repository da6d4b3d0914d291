"""Recorded trajectories as first attempts at multi-turn tasks, judged by a model and retried by a live one."""

from __future__ import annotations

import json

import pytest

from evals.bfcl.single_results import folder_name
from evals.bfcl.tasks import FILE, task_of
from evals.bfcl.written_first import WrittenFirst
from evals.harness import datasets
from evals.suites.bfcl_multi_turn import RECORDED, MultiTurn
from gecko_graph.models.recorded import RecordedModel

BASE = "multi_turn_base"


def test_recorded_trajectories_need_a_judge_to_be_retried(run, shared_data, capsys):
    pytest.importorskip("bfcl_eval")
    words = ["--category", BASE, "--planner", f"recorded:{shared_data / RECORDED}"]
    assert run(MultiTurn, *words, "--then", "openai:x") == 2
    assert "a judge refuses" in capsys.readouterr().err
    assert run(MultiTurn, *words, "--recorded-model", "nobody") == 2
    assert "there are calls of" in capsys.readouterr().err
    assert run(MultiTurn, "--category", BASE, "--planner", f"recorded:{shared_data / 'bfcl_calls.jsonl.gz'}") == 2
    assert "is no recorded trajectory" in capsys.readouterr().err


END = ("Done.", "Which one do you mean?")
"""What a planner says in the end: where the truth has no calls, something is missing."""


def test_a_recorded_attempt_is_judged_and_a_live_model_plans_on(run, shared_data, tmp_path, monkeypatch):
    pytest.importorskip("bfcl_eval")
    rows = {row["id"]: row for row in datasets.read_jsonl(shared_data / FILE)}
    recorded = (row for row in datasets.read_jsonl(shared_data / RECORDED) if not row["recorded_valid"])
    found = ((row, task_of(rows[row["task_id"]], other=row["v3_task"])) for row in recorded)
    row, task = next((row, task) for row, task in found if task.playable and len(row["turns"]) == len(task.turns))
    turns = [
        {
            # what the live model would say first is wrong: the first attempt is the recorded one
            "planner": [
                [{"call": "nothing_such", "args": {}}],
                [*map(task.read, turn.truth), {"say": END[not turn.truth]}],
            ],
            "checklist": [{"items": [{"description": "it is done"}]}],
            "judge": [{"items": [{"id": "item-1", "status": word}]} for word in ("failed", "success")],
            "validator": [{"problems": []}] * 40,
        }
        for turn in task.turns
    ]
    model = RecordedModel(turns=turns)
    monkeypatch.setattr("evals.harness.options.patient_model", lambda name, **knobs: model)
    words = ["--category", task.category, "--planner", f"recorded:{shared_data / RECORDED}", "--then", "any:planner"]
    only = ["--only", f"{task.id}:*", "--recorded-model", row["model"], "--model", "any:judge"]
    assert run(MultiTurn, *words, *only) == 0
    lines = [json.loads(line) for line in (tmp_path / "out" / "cases.jsonl").read_text().splitlines()]
    told = lines[1]["values"]
    assert told["attempts"] == 2 * len(task.turns)
    assert (told["planned"], told["valid"]) == (False, True)
    assert lines[0]["models"]["then"] == "any:planner"
    place = tmp_path / "out" / "result" / folder_name(row["model"]) / f"BFCL_v4_{task.category}_result.json"
    assert json.loads(place.read_text())["id"] == task.id


def test_only_what_was_written_down_is_said_before_the_live_model():
    first = RecordedModel(turns=[{"planner": [[{"say": "a"}, {"say": "b"}]]}])
    then = RecordedModel(turns=[{"planner": [[{"say": "1"}, {"say": "2"}], [{"say": "3"}]]}] * 2)
    planner = WrittenFirst(first=first, then=then, messages=None, turns=1)

    def said(turn, attempt, question):
        place = {"gecko_turn": turn, "gecko_attempt": attempt, "gecko_question": question}
        return planner.invoke("go", {"metadata": {"gecko_role": "planner", **place}})

    told = [said(0, 1, 0), said(0, 1, 1), said(0, 2, 0), said(1, 1, 0)]
    assert [each.text for each in told] == ["a", "b", "3", "1"]
    assert [each.usage_metadata["output_tokens"] > 0 for each in told] == [False, False, True, True]
