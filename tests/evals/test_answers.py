"""Q on data: real answers and wrong ones before postconditions; a lying service; answers as long as the classes'."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest

from evals.bfcl import LONG_CONTEXT
from evals.bfcl.answers import FILES, LIES, RIGHT, judge_task, learn_of
from evals.bfcl.classes import told
from evals.bfcl.contracted import CLASSES, class_toolkit
from evals.bfcl.differential import public
from evals.bfcl.drawn import normal
from evals.bfcl.fidelity import Recorded, compared, is_kept_out, simulated
from evals.bfcl.mathematics import PRINTED
from evals.bfcl.padded import PADDED, padded
from evals.bfcl.simulated import _as_value
from evals.bfcl.tasks import read_tasks
from evals.suites.gate import Gate
from gecko_graph import Toolkit
from gecko_graph.values.digest import clone
from tests.evals.kept import kept_cases

WITHOUT = {"logarithm", "square_root", "get_outside_temperature_from_weather_com"}
"""Tools that answer in prints, or never."""


def test_every_tool_that_answers_has_a_postcondition(official):
    tools = [tool for name in CLASSES for tool in class_toolkit(name)]
    assert {tool.name for tool in tools if not (tool.contract and tool.contract.data.get("ensures"))} == WITHOUT


def test_postconditions_stop_wrong_answers_and_no_right_one_that_is_not_empty(official, shared_data):
    tasks = []
    for name in FILES:
        with gzip.open(shared_data / name) as lines:
            tasks += [json.loads(line) for line in lines]
    learned = learn_of(tasks)
    made = [judge_task(task, learned)["answers"] for task in tasks if is_kept_out(task["id"])]
    asked = {
        kind: [sum(each) for each in zip(*(one[kind] for one in made if kind in one), strict=True)] for kind in made[0]
    }
    count, empty, by_rows, by_hand, both = asked[RIGHT]
    assert count > 2500
    assert by_hand == empty < count / 200, "what is stopped wrongly is a read that truly found nothing"
    assert by_rows <= both <= empty + 2
    for lie in LIES:
        count, _, by_rows, by_hand, both = asked[lie]
        assert by_rows > 0.7 * count
        assert by_hand > 0.9 * count
        assert both >= max(by_rows, by_hand)


@pytest.mark.slow
def test_a_lying_service_is_refused_by_q_and_believed_without(run, tmp_path, official, shared_data, capsys):
    options = ("--service", "lying", "--arms", "toolgate,strict,without Q", "--limit", 12, "--data", shared_data)
    assert run(Gate, *options) == 0
    lied = {arm: [0, 0] for arm in ("toolgate", "strict", "without Q")}
    for case in kept_cases(tmp_path):
        for kind, counts in case["values"]["said"].items():
            found = lied[case["id"].split("@")[1]] if kind != RIGHT else [0, 0]
            found[:] = [sum(pair) for pair in zip(found, counts, strict=True)]
    assert all(given > 5 for given, _ in lied.values())
    assert lied["without Q"][1] == 0
    assert all(refused > 0.8 * given for given, refused in (lied["toolgate"], lied["strict"]))
    assert "Answers of the lying service that were refused" in capsys.readouterr().out


def long_calls(task):
    """Yield the calls of a task's ground truth as its real classes answer them."""
    instances = task.real.load()
    for call in (task.read(text) for turn in task.turns for text in turn.truth):
        kind = task.real.owners[call["call"]]
        before = clone(normal(public(task.real.read(instances))))
        result = told(getattr(instances[kind], call["call"]), call["args"])
        after = clone(normal(public(task.real.read(instances))))
        yield Recorded(kind, call["call"], call["args"], before, after, result, None)


def test_with_a_long_context_contracts_answer_as_the_classes_do(official, shared_data):
    def answering(tool, owner):
        tool = padded(tool, owner)
        return replace(tool, simulate=PRINTED[tool.name], result=None) if tool.name in PRINTED else tool

    kits = {name: Toolkit(answering(tool, name) for tool in class_toolkit(name)) for name in CLASSES}
    differing, seen = [], set()
    for task in read_tasks(shared_data, [LONG_CONTEXT]):
        hidden = {}
        for one in long_calls(task):
            got = simulated(kits[one.kind], one._replace(result=_as_value(one.result)), hidden)
            hidden = got.hidden
            found = compared(one._replace(result=_as_value(one.result)), got)
            seen.add(one.name)
            differing += [] if found["same"] else [found["difference"]]
    assert differing == []
    assert len(seen & PADDED.keys()) >= 11
