"""BFCL multi-turn on simulated tools: plans scored on the real classes, the verdict beside the score, turns alone."""

from __future__ import annotations

import asyncio
import json
from argparse import Namespace

import pytest

from evals.bfcl import MULTI_TURN, agreement
from evals.bfcl.agreement import marks_of
from evals.bfcl.arms import by_model, by_record, by_truth
from evals.bfcl.drawn import exchanged
from evals.bfcl.oracle import apart
from evals.bfcl.simulated import Stage
from evals.bfcl.tasks import RECORDED, read_recorded
from evals.harness.options import Options, Planner
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.values.notes import note, notes_of, warning
from tests.evals.kept import kept_cases, start_bfcl

BASE = "multi_turn_base"
FILES_ONLY = "multi_turn_base_2"


def outcome(result, *, status="ok"):
    step = {"v": 1, "call": {"id": "1", "name": "cd", "args": {}}}
    return {**step, "outcome": {"status": status, "result": result, "patch": [], "rung": "model", "passed": []}}


@pytest.mark.parametrize(
    ("step", "answer", "differs"),
    [
        (outcome({"a": 1}), '{"a": 1}', ""),
        (outcome(None), "None", ""),
        (outcome([1, 2]), "[1, 2]", ""),
        (outcome({"error": "no"}), '{"error": "no"}', ""),
        (outcome("busy", status="error"), '{"error": "no"}', ""),
        (outcome({"a": 2}), '{"a": 1}', agreement.WRONG_RESULT),
        (outcome({"a": 1}), '{"error": "no such folder"}', agreement.MISSING_REFUSAL),
        (outcome({"a": 1}), "Error during execution: boom", agreement.MISSING_REFUSAL),
        (outcome("no", status="error"), '{"a": 1}', agreement.FALSE_REFUSAL),
        ({"call": {"id": "1", "name": "cd", "args": {}}, "complaints": []}, '{"a": 1}', agreement.UNDOCUMENTED),
        ({"call": {"id": "1", "name": "cd", "args": {}}, "complaints": []}, '{"error": "no"}', ""),
    ],
)
def test_the_difference_of_a_call_from_the_real_answer(step, answer, differs):
    assert agreement.difference(step, answer) == differs


def test_contracts_rehearse_the_file_system_as_the_real_classes_do(tasks):
    told = asyncio.run(by_truth(Stage(tasks[FILES_ONLY], "contract"), Options()))
    assert told["valid"]
    assert all(told["accepted"])
    assert set(told["rungs"]) == {"contract"}
    for turn in told["by_turn"]:
        assert turn["status"] == "accepted"
        assert turn["valid"]
        assert (turn["cause"], turn["marks"]) == ("", {})
    assert {name for turn in told["by_turn"] for name in turn["classes"]} <= {"GorillaFileSystem", "TicketAPI"}


@pytest.mark.parametrize("number", [32, 33, 60, 161, 171])
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


def test_real_reads_are_asked_for_the_real_identifiers(tasks):
    told = asyncio.run(by_truth(Stage(tasks[f"{BASE}_151"], "hybrid"), Options()))
    assert told["valid"]
    assert all(told["accepted"])
    assert {"real", "contract"} <= set(told["rungs"])


def test_drawn_values_are_exchanged_alone_in_texts_and_as_keys():
    words = {'"3426812"': "7770001", "67410": 10000, '"a"': "b"}
    given = {"3426812": ["3426812", "booking 3426812 a", 67410, "67410", "a", {"67410": 1}]}
    other = {"7770001": ["7770001", "booking 7770001 a", 10000, "67410", "b", {"67410": 1}]}
    assert exchanged(given, words) == other
    assert exchanged(given, {}) is given


def test_with_real_reads_the_file_system_is_rehearsed_as_the_real_class_does_it(tasks):
    stage = Stage(tasks[FILES_ONLY], "hybrid")
    told = asyncio.run(by_truth(stage, Options()))
    assert told["valid"]
    assert [turn["status"] for turn in told["by_turn"]][:3] == ["accepted"] * 3
    assert {"real", "contract"} <= set(told["rungs"])
    assert stage.redrawn.instance != stage.task.real.initial_state  # each turn's plan has been carried out
    assert not any("stale" in turn["marks"] for turn in told["by_turn"])


def test_only_reads_of_the_real_classes_are_opened(tasks):
    tools = [tool for task in tasks.values() for tool in Stage(task, "hybrid").toolkit(0)]
    assert all(tool.reads == (tool.real is not None) for tool in tools)
    effects = {tool.name: tool.effect for tool in tools}
    assert {effects.get(name, "write") for name in ("mkdir", "cd", "rm", "touch", "place_order", "lockDoors")} == {
        "write"
    }
    assert {effects.get(name, "read") for name in ("ls", "find", "get_stock_info", "mean", "displayCarStatus")} == {
        "read"
    }


def test_made_up_answers_are_refused_by_rule(tasks):
    told = asyncio.run(by_truth(Stage(tasks[FILES_ONLY], "schema"), Options()))
    assert told["valid"]  # the plan is the ground truth: on the real classes it is right
    assert not any(told["accepted"])
    assert set(told["rungs"]) == {"schema"}
    assert {turn["cause"] for turn in told["by_turn"]} == {agreement.WRONG_RESULT}


def live(monkeypatch, task, planned, simulated):
    """A model in every role: one plan a turn, what the tools are said to answer, and a judge that believes it all."""
    turns = [
        {
            "planner": [[*calls, {"say": "Done."}]],
            "simulator": [{"status": "ok", "result": result, "patch": []} for result in results],
            "checklist": [{"items": [{"description": "it is done"}]}],
            "judge": [{"items": [{"id": "item-1", "status": "success", "reason": "seen"}]}],
            "validator": [{"problems": []}] * 20,
        }
        for calls, results in zip(planned, simulated, strict=True)
    ]
    monkeypatch.setattr("evals.harness.options.patient_model", lambda name, **knobs: RecordedModel(turns=turns))
    options = Options(planner=Planner("model", model="any:thing"), model="any:thing", max_retries=0)
    return asyncio.run(by_model(Stage(task.begin(len(turns)), "model"), options))


def test_a_judge_that_is_fooled_disagrees_with_the_real_classes(tasks, monkeypatch):
    task = tasks[FILES_ONLY]
    lost = [{"call": "cd", "args": {"folder": "F-7731"}}]
    told = live(monkeypatch, task, [lost], [[{"current_working_directory": "F-7731"}]])
    assert not told["valid"]
    assert told["by_turn"][0]["status"] == "accepted"
    assert told["by_turn"][0]["cause"] == agreement.MISSING_REFUSAL  # that nobody spoke of it is a mark, and no cause
    assert [each["where"] for each in told["by_turn"][0]["marks"]["made_up"]] == ["/folder"]
    known = [{"call": "cd", "args": {"folder": "TeamNotes.txt"}}]  # the task's word, and no folder
    told = live(monkeypatch, task, [known], [[{"current_working_directory": "TeamNotes.txt"}]])
    assert "made_up" not in told["by_turn"][0]["marks"]
    assert told["by_turn"][0]["cause"] == agreement.MISSING_REFUSAL


# the command


def test_the_command_tells_agreement_by_rung_and_by_class(official, shared_data, tmp_path, capsys):
    words = ["--category", BASE, "--tools", "contract", "--only", f"{FILES_ONLY},multi_turn_base_31"]
    assert start_bfcl(shared_data, tmp_path, *words) == 0
    out = capsys.readouterr().out
    for told in ("The verdict beside the official score", "rungs: contract", "class: GorillaFileSystem"):
        assert told in out
    assert "simulated tools" in out
    assert "100.0 % [34.2, 100.0] 2/2" in out
    lines = [json.loads(line) for line in (tmp_path / "out" / "cases.jsonl").read_text().splitlines()]
    assert {line["tools"] for line in lines if line["kind"] == "case"} == {"simulated"}


def test_the_command_plays_recorded_plans_on_simulated_tools(official, shared_data, tmp_path, capsys):
    planner = f"recorded:{shared_data / RECORDED}"
    words = ["--category", BASE, "--tools", "contract", "--planner", planner, "--only", f"{FILES_ONLY}:*"]
    assert start_bfcl(shared_data, tmp_path, *words) == 0
    assert "Recorded plans, rehearsed" in capsys.readouterr().out


# each turn alone


def recorded(shared_data, name, stage, **given):
    """A recorded row (`miss_param_88 S`: task and model) as it is rehearsed."""
    number, model = name.split()
    for task, row in read_recorded(shared_data, MULTI_TURN[:3]):
        if row["task_id"] == f"multi_turn_{number}" and row["model"][0] == model:
            return asyncio.run(by_record(Stage(task, stage, **given), Options(), row=row))
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("name", "number", "what", "call"),
    [
        ("miss_param_88 S", 3, agreement.MISSING_REFUSAL, "startEngine("),  # accepted: the brake is not pressed
        ("base_69 S", 1, agreement.MISSING_REFUSAL, "estimate_distance("),  # three of its values are made up
        ("miss_param_88 m", 2, agreement.MISSING_WRITE, "lockDoors("),  # one is, and is right
        ("miss_func_173 S", 2, agreement.EXTRA_WRITE, "set_budget_limit("),  # the truth of this turn is empty
        ("base_184 m", 4, agreement.WRITE_ARGUMENTS, "send_message("),
        ("miss_param_173 S", 3, agreement.WRITE_ARGUMENTS, "set_budget_limit("),  # the truth's changes nothing
        ("miss_func_42 m", 4, agreement.MISSING_RESULT, "wc("),
        ("miss_param_33 m", 1, agreement.UNDOCUMENTED, "ls("),
        ("base_121 S", 4, agreement.LEFT_OUT, "make_transaction("),
    ],
)
def test_a_wrong_plan_is_told_by_the_first_difference_that_matters(official, shared_data, name, number, what, call):
    turn = recorded(shared_data, name, "schema", alone=True)["by_turn"][number - 1]
    assert not turn["valid"]
    assert turn["cause"] == what
    assert turn["call"].startswith(call)


def test_of_a_right_plan_that_is_refused_the_missing_refusal_comes_before_earlier_wrong_results(official, shared_data):
    turn = recorded(shared_data, "miss_func_90 S", "schema", alone=True)["by_turn"][0]
    assert (turn["status"], turn["valid"]) == ("failed", True)  # liters into gallons, fuel, the engine before the brake
    assert (turn["cause"], turn["call"]) == (agreement.MISSING_REFUSAL, "startEngine(ignitionMode='START')")


def test_a_failing_call_of_the_truth_that_the_plan_leaves_out_is_a_cause_of_its_own(official, shared_data):
    """Its echo fails on contracts as on the real classes, whose error text the official checker wants to see."""
    told = recorded(shared_data, "miss_param_20 S", "contract")
    assert [turn["cause"] for turn in told["by_turn"]] == ["", "", agreement.LEFT_OUT]


def test_a_turn_after_a_wrong_one_is_judged_alone(official, shared_data):
    turns = recorded(shared_data, "miss_param_113 m", "schema", alone=True)["by_turn"]
    assert [turn["valid"] for turn in turns] == [False, True, False]


def test_what_earlier_turns_have_really_given_is_not_made_up(tasks):
    """The booking's number comes from the real result of the turn before, which made-up answers had hidden."""
    task = tasks["multi_turn_base_151"]
    assert "3426812" in task.turns[1].truth[0]
    alone, after = (
        asyncio.run(by_truth(Stage(task, "schema", alone=alone), Options()))["by_turn"][1] for alone in (True, False)
    )
    assert "made_up" not in alone["marks"]
    assert [each["data"]["value"] for each in after["marks"]["made_up"]] == ["3426812"]


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
        "notes": [note("made_up", "", "/amount", tool="pay"), warning("the brake")],
    }
    assert marks_of(verdict) == {kind: notes_of(verdict, kind) for kind in ("made_up", "may_refuse")}


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


# what the evaluation keeps for itself


def test_nothing_of_the_classes_private_state_reaches_a_prompt(tasks, monkeypatch):
    """A task whose class draws random numbers, on real tools: its place in the source is no judge's business."""
    task = next(each for each in tasks.values() if each.category == BASE and "TradingBot" in each.classes)
    assert task.real.initial_state["runtime_state"]["TradingBot"].keys() & {"private", "kinds", "drawn"}
    prompts: list[str] = []

    class Listening(RecordedModel):
        def _reply(self, messages, run_manager, kwargs):
            prompts.extend(str(each.content) for each in messages)
            return super()._reply(messages, run_manager, kwargs)

    turns = [
        {
            "planner": [[*map(task.read, turn.truth), {"say": "Done."}]],
            "checklist": [{"items": [{"description": "it is done"}]}],
            "judge": [{"items": [{"id": "item-1", "status": "success", "reason": "seen"}]}],
            "validator": [{"problems": []}] * 20,
        }
        for turn in task.turns
    ]
    monkeypatch.setattr("evals.harness.options.patient_model", lambda name, **knobs: Listening(turns=turns))
    options = Options(planner=Planner("model", model="any:thing"), model="any:thing", own=Namespace())
    told = asyncio.run(by_model(Stage(task), options))
    assert told["valid"]
    assert any("it is done" in each for each in prompts)
    for word in ("runtime_state", "private", '"kinds"', "drawn"):
        assert not [each for each in prompts if word in each], word


def test_trials_of_made_up_answers_differ_by_seed_and_those_of_the_ground_truth_are_refused(
    official, shared_data, tmp_path, capsys
):
    words = ["--category", BASE, "--only", FILES_ONLY, "--trials", "2"]
    assert start_bfcl(shared_data, tmp_path, *words) == 2
    assert "nothing is random here" in capsys.readouterr().err
    assert start_bfcl(shared_data, tmp_path, *words, "--tools", "schema") == 0
    assert "pass^2" in capsys.readouterr().out
