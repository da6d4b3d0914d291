"""BFCL multi-turn on simulated tools: plans scored on the real classes, the verdict beside the score, turns alone."""

from __future__ import annotations

import asyncio

import pytest

from evals.bfcl.arms import by_model, by_truth
from evals.bfcl.oracle import apart
from evals.bfcl.simulated import Stage
from evals.harness.options import Options, Planner
from gecko_graph.models.recorded import RecordedModel

BASE = "multi_turn_base"
FILES_ONLY = "multi_turn_base_2"


@pytest.mark.parametrize("number", [33, 60, 171])
def test_contracts_rehearse_several_classes_in_one_state(tasks, number):
    """Mathematics, messages, tickets, tokens; and a booking whose identifier later calls name."""
    task = tasks[f"{BASE}_{number}"]
    assert len(task.classes) > 1
    told = asyncio.run(by_truth(Stage(task, "contract"), Options()))
    assert told["valid"]
    assert [turn["status"] for turn in told["by_turn"]] == ["accepted"] * len(task.turns)
    assert set(told["rungs"]) <= {"contract", "python"}


def test_plans_are_given_the_identifiers_that_contracts_draw_and_scored_with_the_real_ones(tasks):
    task = tasks[f"{BASE}_151"]
    stage = Stage(task, "contract")
    told = asyncio.run(by_truth(stage, Options()))
    assert "booking_id='3426812'" in str(told["plan"])
    ours = {value for value in stage.redrawn._ours.values() if value not in stage.redrawn._real.values()}
    assert ours
    assert not [value for value in ours if str(value) in str(told["plan"])]


def live(folder, monkeypatch, stage, plans, kind=RecordedModel, results=()):
    """A model in every role: a plan for each turn, what the tools are said to answer, a judge that believes it all."""
    judged = {"items": [{"id": "item-1", "status": "success", "reason": "seen"}]}
    replies = {"checklist": [{"items": [{"description": "it is done"}]}], "judge": [judged]}
    replies |= {"validator": [{"problems": []}] * 20}
    replies |= {"simulator": [{"status": "ok", "result": result, "patch": []} for result in results]}
    model = kind(turns=[{**replies, "planner": [[*calls, {"say": "Done."}]]} for calls in plans])
    monkeypatch.setattr("evals.harness.options.patient_model", lambda name, **knobs: model)
    options = Options(planner=Planner("model", model="any:thing"), model="any:thing", max_retries=0, out=folder)
    return asyncio.run(by_model(stage, options))


def test_a_judge_that_is_fooled_disagrees_with_the_real_classes(tasks, tmp_path, monkeypatch):
    for folder, is_made_up in (("F-7731", True), ("TeamNotes.txt", False)):  # the other is the task's word, no folder
        stage, call = Stage(tasks[FILES_ONLY].begin(1), "model"), {"call": "cd", "args": {"folder": folder}}
        results = [{"current_working_directory": folder}]
        told = live(tmp_path / folder, monkeypatch, stage, [[call]], results=results)
        (turn,) = told["by_turn"]
        assert (told["valid"], turn["valid"], turn["status"]) == (False, False, "accepted")
        assert [each["where"] for each in turn["marks"].get("made_up", ())] == ["/folder"] * is_made_up


def test_what_earlier_turns_have_really_given_is_not_made_up(tasks):
    """The booking's number comes from the real result of the turn before, which made-up answers had hidden."""
    task = tasks["multi_turn_base_151"]
    assert "3426812" in task.turns[1].truth[0]
    alone, after = (
        asyncio.run(by_truth(Stage(task, "schema", alone=alone), Options()))["by_turn"][1] for alone in (True, False)
    )
    assert "made_up" not in alone["marks"]
    assert [each["data"]["value"] for each in after["marks"]["made_up"]] == ["3426812"]


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


def test_nothing_of_the_classes_private_state_reaches_a_prompt(tasks, monkeypatch, tmp_path):
    """A task whose class draws random numbers, on real tools: its place in the source is no judge's business."""
    task = next(each for each in tasks.values() if each.category == BASE and "TradingBot" in each.classes)
    assert task.real.initial_state["runtime_state"]["TradingBot"].keys() & {"private", "kinds", "drawn"}
    prompts: list[str] = []

    class Listening(RecordedModel):
        def _reply(self, messages, run_manager, kwargs):
            prompts.extend(str(each.content) for each in messages)
            return super()._reply(messages, run_manager, kwargs)

    plans = [[*map(task.read, turn.truth)] for turn in task.turns]
    told = live(tmp_path, monkeypatch, Stage(task), plans, Listening)
    assert told["valid"]
    assert any("it is done" in each for each in prompts)
    for word in ("runtime_state", "private", '"kinds"', "drawn"):
        assert not [each for each in prompts if word in each], word
