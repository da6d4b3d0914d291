"""What is left of the rehearsal without each part, on the shipped scenario and on real tasks."""

from __future__ import annotations

import json

import pytest

from evals.ablation import PAPER, Ablation, arms_of, without
from evals.suite import EvalError
from gecko_graph import GeckoContext, Scenario
from gecko_graph.models.factory import Models
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.scenario.shipped import examples

FILES = Scenario.load(examples()["files"])
DONE = {"say": "Done."}


def play(parts, attempts, *, retries=1, **roles):
    model = RecordedModel(turns=[{"planner": attempts, **roles}])
    context = GeckoContext(max_retries=retries)
    graph = without(*parts)(FILES.tools, models=Models.bind(model), default=context)
    return graph.invoke(FILES.inputs())


def words(run):
    return [attempt["verdict"]["word"] for attempt in run["rehearsal"]["attempts"]]


def test_the_whole_is_what_create_gecko_builds():
    attempts = FILES.turns[0].replies["planner"]
    run = play((), attempts)
    plain = FILES.gecko().invoke(FILES.inputs())
    assert words(run) == words(plain) == ["failed", "accepted"]
    assert run["task_state"] == plain["task_state"]


def test_without_validation_no_rule_and_no_model_looks_at_arguments():
    mistyped = [{"call": "mkdir", "args": {"dir_name": 7}}, DONE]
    with_it, without_it = play((), [mistyped] * 2), play(("validation",), [mistyped] * 2)
    assert "complaints" in with_it["rehearsal"]["attempts"][0]["steps"][0]
    assert "outcome" in without_it["rehearsal"]["attempts"][0]["steps"][0]
    assert "validator" not in without_it["rehearsal"]["usage"]


def test_without_validation_a_tool_that_does_not_exist_is_no_crash():
    run = play(("validation",), [[{"call": "rmdirs", "args": {}}, DONE]] * 2)
    attempt = run["rehearsal"]["attempts"][0]
    assert attempt["stop_reason"] == "answered"
    assert "complaints" in attempt["steps"][0]


def test_without_state_nothing_is_kept_and_the_judge_sees_none():
    run = play(("state",), FILES.turns[0].replies["planner"])
    assert words(run) == ["failed", "failed"]
    for attempt in run["rehearsal"]["attempts"]:
        assert attempt["change"] == []
        assert attempt["start_digest"] == attempt["end_digest"]
        assert all(step["outcome"]["patch"] == [] for step in attempt["steps"] if "outcome" in step)
    assert run["task_state"] == FILES.state


def test_without_feedback_any_call_is_success_and_none_is_failure():
    wrong = FILES.turns[0].replies["planner"][0]
    run = play(("feedback",), [wrong, wrong])
    assert words(run) == ["accepted"]
    assert not {"checklist", "judge"} & set(run["rehearsal"]["usage"])
    silent = play(("feedback",), [[DONE], [*wrong]])
    assert words(silent) == ["failed", "accepted"]
    refused = play(("feedback",), [[{"call": "nothing_such", "args": {}}, DONE]])
    assert words(refused) == ["accepted"]  # a call was made, whatever became of it


def test_arms_and_their_mistakes():
    assert [arm.name for arm in arms_of("validation,state,feedback", "")] == list(PAPER)
    assert [arm.retries for arm in arms_of("nothing", "0..3")] == [None, 0, 1, 2, 3]
    assert [arm.retries for arm in arms_of("nothing", "2")] == [None, 2]
    for parts, retries in (("judge", ""), ("state", "two"), ("state", "0..x")):
        with pytest.raises(EvalError):
            arms_of(parts, retries)


def records(tmp_path):
    lines = [json.loads(line) for line in (tmp_path / "out" / "cases.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == "case"]


def solved(tmp_path):
    by_arm: dict[str, list[bool]] = {}
    for record in records(tmp_path):
        assert record["status"] == "done", record["reason"]
        by_arm.setdefault(record["facts"]["arm"], []).append(record["values"]["solved"])
    return {arm: sum(some) for arm, some in by_arm.items()}


def test_the_scenarios_by_arm(run, tmp_path):
    assert run(Ablation, "--retries", "0..1", "--json", tmp_path / "told.json") == 0
    counts = solved(tmp_path)
    assert counts["full"] == counts["1 retries"] == 3
    assert counts["without feedback"] == counts["0 retries"] == 2
    assert counts["without state"] < 3
    assert "not measured" in json.loads((tmp_path / "told.json").read_text())["notes"][0]


def test_real_tasks_by_arm(run, tmp_path, shared_data):
    pytest.importorskip("bfcl_eval")
    assert run(Ablation, "--tasks", "multi_turn_base", "--limit", "2", "--without", "feedback") == 0
    counts = solved(tmp_path)
    assert counts["full"] == 2
    assert counts["without feedback"] < 2
    assert {record["tools"] for record in records(tmp_path)} == {"real"}
