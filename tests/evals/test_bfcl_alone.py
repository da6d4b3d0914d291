"""BFCL multi-turn, each turn judged alone on the truth of the turns before: marks, and the first difference."""

from __future__ import annotations

import asyncio

import pytest

from evals.bfcl import cause
from evals.bfcl.agreement import marks_of
from evals.bfcl.arms import by_model, by_record, by_truth
from evals.bfcl.oracle import apart
from evals.bfcl.simulated import Stage
from evals.bfcl.tasks import FILE, task_of
from evals.harness import datasets
from evals.harness.options import Options, Planner
from evals.suites.bfcl_multi_turn import RECORDED
from gecko_graph.models.recorded import RecordedModel
from tests.evals.kept import kept_cases, start_bfcl


@pytest.fixture(scope="module")
def turns_of(official, shared_data):
    """The turns of a recorded row (`miss_param_88 S`: task and model), on answers that are made up."""
    tasks = {row["id"]: row for row in datasets.read_jsonl(shared_data / FILE)}
    rows = {
        f"{row['task_id'].removeprefix('multi_turn_')} {row['model'][0]}": row
        for row in datasets.read_jsonl(shared_data / RECORDED)
    }

    def play(name):
        row = rows[name]
        task = task_of(tasks[row["task_id"]], other=row["v3_task"])
        return asyncio.run(by_record(Stage(task, "schema", alone=True), Options(), row=row))["by_turn"]

    return play


@pytest.mark.parametrize(
    ("name", "number", "what", "call"),
    [
        ("miss_param_88 S", 3, cause.MISSING_REFUSAL, "startEngine("),  # accepted: the brake is not pressed
        ("base_69 S", 1, cause.MISSING_REFUSAL, "estimate_distance("),  # three of its values are made up
        ("miss_param_88 m", 2, cause.MISSING_WRITE, "lockDoors("),  # one is, and is right
        ("miss_func_173 S", 2, cause.EXTRA_WRITE, "set_budget_limit("),  # the truth of this turn is empty
        ("base_184 m", 4, cause.WRITE_ARGUMENTS, "send_message("),
        ("miss_param_173 S", 3, cause.WRITE_ARGUMENTS, "set_budget_limit("),  # the truth's changes nothing
        ("miss_func_42 m", 4, cause.MISSING_RESULT, "wc("),
        ("miss_param_33 m", 1, cause.UNDOCUMENTED, "ls("),
        ("base_121 S", 4, cause.LEFT_OUT, "make_transaction("),
    ],
)
def test_a_wrong_plan_is_told_by_the_first_difference_that_matters(turns_of, name, number, what, call):
    turn = turns_of(name)[number - 1]
    assert not turn["valid"]
    assert turn["cause"] == what
    assert turn["call"].startswith(call)


def test_of_a_right_plan_that_is_refused_the_missing_refusal_comes_before_earlier_wrong_results(turns_of):
    turn = turns_of("miss_func_90 S")[0]  # liters into gallons, fuel, and the engine before the brake
    assert (turn["status"], turn["valid"]) == ("failed", True)
    assert (turn["cause"], turn["call"]) == (cause.MISSING_REFUSAL, "startEngine(ignitionMode='START')")


def test_a_turn_after_a_wrong_one_is_judged_alone(turns_of):
    assert [turn["valid"] for turn in turns_of("miss_param_113 m")] == [False, True, False]


def test_what_earlier_turns_have_really_given_is_not_made_up(tasks):
    """The booking's number comes from the real result of the turn before, which made-up answers had hidden."""
    task = tasks["multi_turn_base_151"]
    assert "3426812" in task.turns[1].truth[0]
    alone, after = (
        asyncio.run(by_truth(Stage(task, "schema", alone=alone), Options()))["by_turn"][1] for alone in (True, False)
    )
    assert "made_up" not in alone["marks"]
    assert [each["value"] for each in after["marks"]["made_up"]] == ["3426812"]


@pytest.mark.parametrize("kind", ["contract", "hybrid"])
def test_alone_contracts_go_on_from_the_truth_and_what_they_draw_is_scored_with_the_real_numbers(tasks, kind):
    task = tasks["multi_turn_base_151"]
    told = asyncio.run(by_truth(Stage(task, kind, alone=True), Options()))
    assert told["valid"]
    assert all(told["accepted"])
    assert [turn["cause"] for turn in told["by_turn"]] == [""] * len(task.turns)
    assert "booking_id='3426812'" in str(told["plan"])


def test_a_turn_alone_begins_with_the_state_and_the_conversation_of_the_truth(tasks):
    task = tasks["multi_turn_miss_func_2"]
    alone = apart(task)
    assert [each.turns[0].truth for each in alone] == [turn.truth for turn in task.turns]
    assert alone[0].real.initial_state == task.real.initial_state
    assert alone[-1].real.initial_state != task.real.initial_state
    assert {spec.name for spec in alone[-1].specs(0)} == {spec.name for spec in task.specs(len(task.turns) - 1)}
    before = alone[-1].turns[0].before
    answered = [message for message in before if getattr(message, "type", "") == "tool"]
    assert len(answered) == sum(len(turn.truth) for turn in task.turns[:-1])
    assert "Something is missing: I can not do this yet." in [getattr(message, "content", "") for message in before]


def test_a_live_planner_is_asked_alone_after_the_results_of_the_truth(tasks, monkeypatch):
    task = tasks["multi_turn_base_151"]
    prompts = []

    class Listening(RecordedModel):
        def _reply(self, messages, run_manager, kwargs):
            prompts.append(messages)
            return super()._reply(messages, run_manager, kwargs)

    judged = {"checklist": [{"items": [{"description": "it is done"}]}], "validator": [{"problems": []}] * 20}
    judged["judge"] = [{"items": [{"id": "item-1", "status": "success", "reason": "seen"}]}]
    turns = [{"planner": [[{"say": "I did nothing."}]], **judged} for _ in task.turns]
    monkeypatch.setattr("evals.harness.options.patient_model", lambda name, **knobs: Listening(turns=turns))
    options = Options(planner=Planner("model", model="any:thing"), model="any:thing", max_retries=0)
    asyncio.run(by_model(Stage(task, "schema", alone=True), options))
    shown = [[str(message.content) for message in prompt if message.type == "tool"] for prompt in prompts]
    booked = str(alone_answer(task))
    assert any(booked in results for results in shown)


def alone_answer(task):
    """What the real booking of the first turn has answered."""
    before = apart(task)[1].turns[0].before
    return next(message.content for message in before if getattr(message, "name", "") == "book_flight")


def test_every_list_of_a_verdict_beside_its_items_is_a_mark():
    verdict = {
        "status": "accepted",
        "items": [{"id": "item-1"}],
        "unclear": [],
        "made_up": [{"tool": "pay", "argument": "$.amount"}],
        "may_refuse": [{"call": "c1", "tool": "startEngine", "rule": "the brake"}],
    }
    assert marks_of(verdict) == {"made_up": verdict["made_up"], "may_refuse": verdict["may_refuse"]}


def test_the_command_plays_recorded_turns_alone_and_tells_marks_of_right_and_wrong_turns(
    official, shared_data, tmp_path, capsys
):
    planner = f"recorded:{shared_data / RECORDED}"
    words = ["--category", "multi_turn_miss_param", "--tools", "schema", "--only", "multi_turn_miss_param_88:*"]
    assert start_bfcl(shared_data, tmp_path, *words, "--planner", planner) == 0
    out = capsys.readouterr().out
    told = [
        line for line in out.splitlines() if line.startswith(("| accepted, wrong", "| refused, right", "| made_up"))
    ]
    turns = [turn for case in kept_cases(tmp_path) for turn in case["values"]["by_turn"]]
    right, wrong = ([turn for turn in turns if turn["valid"] is valid] for valid in (True, False))
    marked = [sum("made_up" in turn["marks"] for turn in some) for some in (right, wrong)]
    assert f"{marked[0]}/{len(right)} |" in " ".join(told)
    assert f"{marked[1]}/{len(wrong)} |" in " ".join(told)
    accepted = [turn for turn in wrong if turn["status"] == "accepted"]
    counts = [sum(bool(turn["marks"]) is is_marked for turn in accepted) for is_marked in (True, False)]
    assert f"| accepted, wrong | {counts[0]} | {counts[1]} |" in out
    assert "| accepted, wrong | missing refusal: the real tool refuses the call | 1 |" in out


def test_turns_alone_are_for_simulated_tools(official, shared_data, tmp_path, capsys):
    assert start_bfcl(shared_data, tmp_path, "--category", "multi_turn_base", "--alone") == 2
    assert "--alone is for --tools" in capsys.readouterr().err
