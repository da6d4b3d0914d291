"""BFCL multi-turn: the oracle, ground truth, spoilt plans, a live planner."""

from __future__ import annotations

import asyncio
import json
import random
from argparse import Namespace

import pytest
from hypothesis import given, settings

from evals.__main__ import main
from evals.bfcl import package
from evals.bfcl.arms import by_truth, spoilt
from evals.bfcl.classes import Classes, encode
from evals.bfcl.oracle import as_json, checklist, literal, public, truth_of
from evals.bfcl.sabotage import KINDS, Scene, spoil
from evals.bfcl.simulated import Stage
from evals.bfcl.tasks import RECORDED
from evals.harness.options import Options, Planner
from evals.suites.bfcl_multi_turn import MultiTurn
from gecko_graph.contracts.language.expression import Scope, check_expression
from gecko_graph.models.recorded import RecordedModel
from tests.evals.kept import VALUES, start_bfcl

BASE = "multi_turn_base"
MISSED = "multi_turn_miss_func"


@pytest.fixture
def some_tasks(tasks):
    """A task for each mixture of classes, and those whose truth breaks the documents."""
    mixtures = {tuple(task.classes): task for task in tasks.values() if task.category == BASE}
    return list(mixtures.values())[::4]


def play(coroutine):
    return asyncio.run(coroutine)


# the oracle


@given(VALUES.map(lambda value: encode(value, {})))
@settings(max_examples=60, deadline=None)
def test_a_literal_is_the_value(value):
    if "e+" in repr(value) or "inf" in repr(value) or any(ord(letter) > 0xD7FF for letter in repr(value)):
        return
    source = f"{literal(value)} == state"
    assert check_expression(source, where="test").is_true(Scope({"state": value}))


def leaves(value, place=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*place, index))
    else:
        yield place


def test_checks_hold_of_the_real_end_state_and_of_no_other(some_tasks):
    for task in some_tasks:
        truth, before = truth_of(task), task.real.initial_state
        for after, answers in zip(truth.states, truth.answers, strict=True):
            items = checklist(before, after, answers, seen=[])
            calls = [{"name": "x", "args": {}, "status": "ok", "result": answer} for answer in answers]

            def holds(state, calls=calls, before=before, items=items):
                scope = Scope({"state": state, "before": before, "calls": calls, "answer": ""})
                return all(check_expression(item["check"], where="test").is_true(scope) for item in items)

            assert holds(after)
            assert not holds(after, calls=calls[1:])
            for place in random.Random(0).sample(list(leaves(after)), 5):
                other = json.loads(json.dumps(after))
                inner = other
                for token in place[:-1]:
                    inner = inner[token]
                inner[place[-1]] = "another"
                assert not holds(other), place
            before = after


def test_official_answers_are_json_where_they_are_objects():
    assert as_json('{"a": 1}') == {"a": 1}
    assert as_json("None") == "None"
    assert as_json("{no json") == "{no json"


# ground truth and sabotage


def test_ground_truth_is_officially_valid(tasks, some_tasks):
    missed = next(task for task in tasks.values() if task.category == MISSED)
    for task in [*some_tasks, missed]:
        told = play(by_truth(Stage(task), Options()))
        assert told["valid"], (task.id, told["official"])
        assert all(told["accepted"]), task.id
        assert set(told["rungs"]) <= {"python"}
        assert [len(turn) for turn in told["plan"]] == [len(turn.truth) for turn in task.turns]
        assert told["errata"] == []


@pytest.mark.parametrize("number", [0, 18, 56])  # padded files, a large copy of a folder, a long answer
def test_tasks_with_a_long_context_come_from_the_package(tasks, number):
    task = tasks[f"multi_turn_long_context_{number}"]
    assert task.real.initial_state != Classes(task.classes, task.config).initial_state
    told = play(by_truth(Stage(task), Options()))
    assert told["valid"]
    assert all(told["accepted"])


@pytest.mark.parametrize(
    ("words", "count"),
    [("multi_turn", 405), ("multi_turn_long_context", 200), ("multi_turn,multi_turn_long_context", 605)],
)
def test_the_categories_name_the_tasks(official, shared_data, tmp_path, capsys, words, count):
    assert main(["bfcl", "--data", str(shared_data), "--category", words, "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == count


def test_nobody_was_recorded_on_a_long_context(official, shared_data, tmp_path, capsys):
    planner = f"recorded:{shared_data / RECORDED}"
    assert start_bfcl(shared_data, tmp_path, "--category", "multi_turn_long_context", "--planner", planner) == 2
    assert "no recorded trajectories" in capsys.readouterr().err


@pytest.mark.parametrize("part", ["BFCL_v4_multi_turn", "possible_answer/BFCL_v4_multi_turn"])
def test_a_package_without_the_tasks_says_which_file_is_missing(official, tmp_path, monkeypatch, capsys, part):
    real = package.data_file
    monkeypatch.setattr(package, "data_file", lambda name: real(f"gone/{name}" if name.startswith(part) else name))
    assert main(["bfcl", "--category", "multi_turn_long_context", "--out", str(tmp_path)]) == 2
    assert f"has no data file gone/{part}_long_context.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "why"), [("multi_turn_base_173", "wants an integer"), ("multi_turn_miss_func_49", "is not offered")]
)
def test_a_truth_that_breaks_its_documents_is_allowed_and_told(tasks, name, why):
    told = play(by_truth(Stage(tasks[name]), Options()))
    assert told["valid"]
    assert len(told["errata"]) == 1
    assert why in told["errata"][0]


@pytest.mark.parametrize("first", range(0, len(KINDS), 2))
def test_a_spoilt_attempt_is_judged_as_the_real_classes_do(some_tasks, first):
    for number, task in enumerate(some_tasks[:3]):
        told = play(spoilt(task, Options(seed=first), first=first + number))
        assert told["valid"], task.id
        assert told["judged"]
        for turn in told["judged"]:
            assert turn["accepted"] == turn["done"], (task.id, turn)


def test_each_kind_of_sabotage_does_what_it_says(tasks):
    task = tasks["multi_turn_base_2"]
    calls = [task.read(call) for call in task.turns[0].truth]
    scene = Scene(task, 0, task.real.initial_state)
    made = {}
    for number, kind in enumerate(KINDS):
        name, made[kind] = spoil(calls, scene=scene, first=number, seed="0")
        assert name == kind
    names = [call["call"] for call in calls]
    assert names == ["cd", "touch"]
    assert len(made["dropped"]) == 1
    assert len(made["doubled"]) == 3
    assert [call["call"] for call in made["wrong order"]] == names[::-1]
    assert made["wrong value"] != calls
    assert [call["call"] for call in made["wrong value"]] == names
    assert 7 in [value for call in made["wrong type"] for value in call["args"].values()]
    assert any(call["call"].endswith("_all") for call in made["unknown tool"])
    assert made["whole"] == calls
    assert made["extra read"][1:] == calls
    assert made["extra read"][0]["call"] in scene.reads()
    assert {"pwd", "ls"} <= set(scene.reads())
    assert not {"cd", "touch"} & set(scene.reads())


def test_a_kind_that_cannot_be_gives_way_to_the_next(tasks):
    task = tasks["multi_turn_base_2"]
    one = [task.read(task.turns[1].truth[0])]
    scene = Scene(task, 1, truth_of(task).states[0])
    order = list(KINDS).index("wrong order")
    assert spoil(one, scene=scene, first=order, seed="0")[0] == "wrong value"


# the command


def test_the_command_leaves_plans_in_the_official_format(official, shared_data, tmp_path, capsys):
    assert start_bfcl(shared_data, tmp_path, "--category", f"{BASE},{MISSED}", "--limit", "3") == 0
    assert "Ground truth as planner" in capsys.readouterr().out
    files = list((tmp_path / "out" / "result").iterdir())
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert len(lines) == 3
    assert all(isinstance(call, str) for line in lines for turn in line["result"] for step in turn for call in step)


def test_the_command_spoils_attempts(official, shared_data, tmp_path, capsys):
    assert start_bfcl(shared_data, tmp_path, "--category", BASE, "--sabotage", "--limit", "3") == 0
    out = capsys.readouterr().out
    assert "sensitivity (failed, where wrong)" in out
    assert "never an accuracy of the method" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--category", BASE, "--sabotage", "--planner", "openai:x"], "spoils the ground truth"),
        (["--category", "multi_turn_base,simple_python"], "two suites"),
        (["--category", "multi_turn_nothing"], "multi_turn_nothing: single-turn categories are simple_python"),
        (["--category", "all"], "multi-turn ones multi_turn_base, multi_turn_miss_func"),
        (["--category", BASE, "--alone"], "--alone is for --tools"),
        (["--category", BASE, "--tools", "model"], "nobody simulates"),
        (["--category", BASE, "--planner", "ground-truth", "--model", "openai:x"], "no model is asked"),
    ],
)
def test_a_command_that_makes_no_sense_is_told(official, shared_data, tmp_path, capsys, monkeypatch, words, told):
    monkeypatch.setattr("evals.harness.options.patient_model", lambda name, **knobs: RecordedModel())
    assert start_bfcl(shared_data, tmp_path, *words) == 2
    assert told in capsys.readouterr().err


def test_missing_data_says_where_to_get_it(official, tmp_path, capsys):
    assert main(["bfcl", "--category", BASE, "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "no data set bfcl_multiturn_tasks.jsonl.gz" in capsys.readouterr().err


# a live planner


def spoken(task, *, right):
    """What a live model says: in its first attempt at the first turn the last call is missing where not `right`."""
    turns = []
    for number, turn in enumerate(task.turns):
        calls = [task.read(call) for call in turn.truth]
        first = calls if right or number else calls[:-1]
        word = "success" if right or number else "failed"
        turns.append(
            {
                "planner": [[*first, {"say": "Done."}], [*calls, {"say": "Done."}]],
                "checklist": [{"items": [{"description": "it is done"}]}],
                "judge": [
                    {"items": [{"id": "item-1", "status": word, "reason": "seen"}]},
                    {"items": [{"id": "item-1", "status": "success"}]},
                ],
                "validator": [{"problems": []}] * 20,
            }
        )
    return turns


@pytest.mark.parametrize("right", [True, False])
def test_a_live_planner_is_judged_by_a_model_and_checked_officially(tasks, tmp_path, monkeypatch, right):
    task = tasks["multi_turn_base_2"]
    model = RecordedModel(turns=spoken(task, right=right))
    monkeypatch.setattr("evals.harness.options.patient_model", lambda name, **knobs: model)
    options = Options(
        planner=Planner("model", model="any:thing"),
        model="any:thing",
        only=(task.id,),
        out=tmp_path,
        own=Namespace(category=BASE, tools="real", alone=False, contracts=None, sabotage=False),
    )
    suite = MultiTurn(options)
    case = next(case for case in suite.cases() if case.id == task.id)
    told = play(suite.run_case(case))
    assert told["valid"]
    assert told["attempts"] == len(task.turns) + (0 if right else 1)
    assert set(told["usage"]) == {"planner", "checklist", "judge", "validator"}


def test_a_plan_that_was_not_accepted_leads_to_the_next_turn(tasks, monkeypatch):
    """The judge says no to the first turn; the plan counts all the same, as it would with real tools."""
    from evals.bfcl.arms import knobs, speaker
    from evals.bfcl.rehearse import Player
    from evals.bfcl.rehearse import play as play_turns

    task = tasks["multi_turn_base_2"]
    turns = [[*map(task.read, turn.truth), {"say": "Done."}] for turn in task.turns]

    def never(turn, before, seen):
        return [{"id": "no", "description": "never", "check": "False"}]

    played = play(play_turns(task, Player(speaker(turns), knobs(Options(), 0), task.toolkit, never)))
    truth = truth_of(task)
    assert not any(each.accepted for each in played)
    assert [public(each.after) for each in played] == [public(state) for state in truth.states]
