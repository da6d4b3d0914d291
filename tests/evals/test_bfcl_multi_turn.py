"""BFCL multi-turn: the oracle, ground truth, spoilt plans."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from evals.bfcl.arms import by_truth, spoilt
from evals.bfcl.oracle import KINDS, Scene, checklist, spoil, truth_of
from evals.bfcl.simulated import Stage
from evals.harness.options import Options
from gecko_graph.contracts.language.expression import Scope, check_expression
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.values.places import scalars
from tests.evals.kept import start_bfcl

BASE = "multi_turn_base"
MISSED = "multi_turn_miss_func"


@pytest.fixture
def some_tasks(tasks):
    """A task for each mixture of classes, and those whose truth breaks the documents."""
    mixtures = {tuple(task.classes): task for task in tasks.values() if task.category == BASE}
    return list(mixtures.values())[::4]


def play(coroutine):
    return asyncio.run(coroutine)


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
            for place in random.Random(0).sample([place for place, _ in scalars(after)], 5):
                other = json.loads(json.dumps(after))
                inner = other
                for token in place[:-1]:
                    inner = inner[token]
                inner[place[-1]] = "another"
                assert not holds(other), place
            before = after


def test_a_truth_that_breaks_its_documents_is_allowed_and_told(tasks):
    told = play(by_truth(Stage(tasks["multi_turn_miss_func_49"]), Options()))
    assert told["valid"]
    (erratum,) = told["errata"]
    assert "is not offered" in erratum


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
    scene = Scene(task.truthful(0), task.real.initial_state)
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
    reads = {spoil(calls, scene=scene, first=len(KINDS) - 1, seed=str(n))[1][0]["call"] for n in range(40)}
    assert {"pwd", "ls"} <= reads
    assert not {"cd", "touch"} & reads


@pytest.mark.parametrize(("retries", "hits"), [(0, 0), (1, 3)])
def test_retries_show_in_what_is_valid(official, shared_data, tmp_path, capsys, retries, hits):
    words = ["--category", BASE, "--sabotage", "--limit", "3", "--max-retries", str(retries)]
    assert start_bfcl(shared_data, tmp_path, *words) == 0
    assert f" {hits}/3 |" in capsys.readouterr().out.partition("Tasks after the last attempt")[2]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--category", BASE, "--sabotage", "--planner", "openai:x"], "corrupts the ground truth"),
        (["--category", "multi_turn_base,simple_python"], "two suites"),
        (["--category", "multi_turn_nothing"], "multi_turn_nothing: single-turn categories are simple_python"),
        (["--category", "all"], "multi-turn ones multi_turn_base, multi_turn_miss_func"),
        (["--category", BASE, "--tools", "model"], "no simulator"),
    ],
)
def test_a_command_that_makes_no_sense_is_told(official, shared_data, tmp_path, capsys, monkeypatch, words, told):
    monkeypatch.setattr("evals.harness.options.patient_model", lambda name, **knobs: RecordedModel())
    assert start_bfcl(shared_data, tmp_path, *words) == 2
    assert told in capsys.readouterr().err
