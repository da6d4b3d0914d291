"""What is left of the rehearsal without each part, on the shipped scenario and on real tasks."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from dataclasses import replace

import pytest

from evals.baselines.methods import without
from evals.baselines.problems import problems
from evals.harness.options import EvalError, Options, Planner
from evals.suites.compare import PAPER, Compare, arms_of, contend, is_live
from gecko_graph import GeckoContext, Models, Scenario
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.scenario import examples
from tests.desk import words
from tests.evals.kept import kept_cases, read_summary, solved_by_arm

FILES = Scenario.load(examples()["files"])
DONE = {"say": "Done."}


def play(parts, attempts, *, retries=1, **roles):
    model = RecordedModel(turns=[{"planner": attempts, **roles}])
    context = GeckoContext(max_retries=retries)
    graph = without(*parts)(FILES.tools, models=Models(model), default=context)
    return graph.invoke(FILES.inputs())


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
    assert [arm.name for arm in arms_of(",".join(PAPER), "")] == list(PAPER)
    assert [arm.retries for arm in arms_of("gats", "0..3")] == [None, 0, 1, 2, 3]
    assert [arm.retries for arm in arms_of("", "2")] == [2]
    for arms, retries in (("without judge", ""), ("gats", "two"), ("gats", "0..x"), ("gats", "3..0")):
        with pytest.raises(EvalError):
            arms_of(arms, retries)


def test_the_scenarios_by_arm(run, tmp_path):
    assert run(Compare, "--arms", ",".join(PAPER), "--retries", "0..1") == 0
    counts = solved_by_arm(tmp_path)
    assert counts["gats"] == counts["1 retry"] == 4
    assert counts["without feedback"] == counts["0 retries"] == 3
    assert counts["without state"] < 4
    assert "not measured" in read_summary(tmp_path)["notes"][0]


def test_real_tasks_by_arm(run, tmp_path, shared_data):
    pytest.importorskip("bfcl_eval")
    assert run(Compare, "--tasks", "multi_turn_base", "--limit", "2", "--arms", "gats,without feedback") == 0
    counts = solved_by_arm(tmp_path)
    assert counts["gats"] == 2
    assert counts["without feedback"] < 2
    assert {record["tools"] for record in kept_cases(tmp_path)} == {"real"}


def test_single_turn_tasks_by_arm_and_by_retries(run, tmp_path):
    pytest.importorskip("bfcl_eval")
    words = ("--tasks", "parallel,irrelevance", "--arms", "gats,without feedback", "--retries", "0..1", "--limit", "5")
    assert run(Compare, *words) == 0
    by_category: dict[str, set[str]] = {}
    for record in kept_cases(tmp_path):
        if record["values"]["solved"]:
            by_category.setdefault(record["group"], set()).add(record["facts"]["arm"])
    assert by_category["parallel"] == {"gats", "1 retry"}  # the first attempt at each is spoilt
    assert by_category["irrelevance"] == {"gats", "without feedback", "0 retries", "1 retry"}
    assert {record["tools"] for record in kept_cases(tmp_path)} == {"simulated"}


# what the ground truth knows reaches no model that plans


def options_of(tmp_path, *, planner: Planner, **roles):
    own = Namespace(tasks="multi_turn_base,simple_python", arms="gats", retries="")
    return Options(planner=planner, role_models=roles, own=own, out=tmp_path)


LIVE = Planner("model", model="any:thing")
TRUTH = Planner("ground-truth")


def test_only_the_ground_truth_has_the_tools_that_it_needs_beyond_the_documents(tmp_path, tasks):
    task = tasks["multi_turn_base_173"]

    def tools(planner):
        found = problems(options_of(tmp_path, planner=planner))
        problem = next(each for each in found if each.id == task.id)
        return [problem.toolkit(turn) for turn in range(len(problem.said))]

    documented = [task.toolkit(turn) for turn in range(len(task.turns))]
    names = [[tool.name for tool in kit] for kit in documented]
    assert [[tool.name for tool in kit] for kit in tools(LIVE)] == names
    assert [[*kit] for kit in tools(LIVE)] != [[*kit] for kit in tools(TRUTH)]


@pytest.mark.parametrize("number", [0, -1])
def test_no_oracle_s_check_reaches_a_live_planner_or_its_judge(tmp_path, shared_data, monkeypatch, number):
    pytest.importorskip("bfcl_eval")
    options = options_of(tmp_path, planner=LIVE)
    problem = list(problems(options))[number]

    def refuse(*_):
        raise AssertionError("the oracle was asked")

    problem = replace(problem, checks=refuse, speakers=refuse)
    turn = {"planner": [[DONE]] * 4, "checklist": [{"items": [{"description": "it is done"}]}]}
    turn["judge"] = [{"items": [{"id": "item-1", "status": "success"}]}] * 4
    model = RecordedModel(turns=[turn] * len(problem.said))
    monkeypatch.setattr("evals.harness.options.patient_model", lambda name, **knobs: model)
    told = asyncio.run(contend(problem, without(), options, context=options.context(semantic_validation=False)))
    assert set(told["usage"]) == {"planner", "checklist", "judge"}
    assert told["verdicts"] == ["accepted"] * len(problem.said)  # by the model alone: nothing was done
    assert not told["solved"]


def test_a_model_that_only_judges_makes_no_accuracy(tmp_path):
    assert is_live(options_of(tmp_path, planner=LIVE))
    assert not is_live(options_of(tmp_path, planner=TRUTH, judge="any:thing"))
