"""Forward execution: the suite, with a service that lies."""

from __future__ import annotations

import pytest

from evals.bfcl.contracted import CLASSES, class_toolkit
from evals.bfcl.forward import RIGHT
from evals.suites.gate import ARMS, PAPER, Gate
from tests.evals.kept import kept_cases

WITHOUT = {"logarithm", "square_root", "get_outside_temperature_from_weather_com"}
"""Tools that answer in prints, or never."""


def test_every_tool_that_answers_has_a_postcondition(official):
    tools = [tool for name in CLASSES for tool in class_toolkit(name)]
    assert {tool.name for tool in tools if not (tool.contract and tool.contract.data.get("ensures"))} == WITHOUT


@pytest.mark.slow
def test_the_truth_is_refused_by_no_arm(run, tmp_path, official, shared_data, capsys):
    assert run(Gate, "--limit", 1, "--data", shared_data) == 0
    made = {case["id"]: case["values"] for case in kept_cases(tmp_path)}
    assert {name.split("@")[1] for name in made} == set(ARMS)
    assert all(values["valid"] and not values["failed"] for values in made.values())
    told = capsys.readouterr().out
    assert all(words in told for words, _ in PAPER.values())


@pytest.mark.slow
def test_a_lying_service_is_refused_by_q(run, tmp_path, official, shared_data, capsys):
    options = ("--service", "lying", "--limit", 7, "--data", shared_data)
    assert run(Gate, *options) == 0
    lied = {arm: [0, 0] for arm in ARMS}
    for case in kept_cases(tmp_path):
        for kind, counts in case["values"]["said"].items():
            found = lied[case["id"].split("@")[1]] if kind != RIGHT else [0, 0]
            found[:] = [sum(pair) for pair in zip(found, counts, strict=True)]
    assert all(given > 5 for given, _ in lied.values())
    assert all(refused > 0.8 * given for given, refused in lied.values())
    assert "Answers of the lying service that were refused" in capsys.readouterr().out
