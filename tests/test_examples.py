"""The shipped examples: each runs as its README says, holds against its own rules, and is in the wheel."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from gecko_graph import Toolkit
from gecko_graph.scenario import examples, run_scenario, shipped

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def runs():
    """Example to its one turn's output and its events."""
    told = {}
    for name in examples():
        events = []
        (output,) = run_scenario(shipped(name), on_event=events.append)
        told[name] = (output, events)
    return told


def attempts(run):
    return run[0]["rehearsal"]["attempts"]


def steps(attempt):
    return [
        (step["call"]["name"], step["outcome"]["status"] if "outcome" in step else "refused")
        for step in attempt["steps"]
    ]


def test_shop_a_contract_refuses_an_overdraft_and_the_planner_recovers(runs):
    (only,) = attempts(runs["shop"])
    assert [status for _, status in steps(only)] == ["ok", "ok", "ok", "ok", "error", "ok", "ok"]
    assert only["steps"][4]["outcome"]["result"]["code"] == "insufficient_credit"
    assert only["verdict"]["status"] == "accepted"
    state = runs["shop"][0]["task_state"]
    assert (state["customer"]["credit"], state["cart"]) == (8.6, {})
    assert (state["products"]["MUG-BLUE"]["stock"], state["products"]["COFFEE-500"]["stock"]) == (5, 11)


@pytest.mark.parametrize("name", examples())
def test_nothing_is_left_unsaid(name):
    toolkit, state = shipped(name).tools, shipped(name).state
    assert toolkit.problems == []
    assert all(tool.contract is not None for tool in toolkit)
    assert toolkit.state_keys <= state.keys(), "else a model would be asked for what is missing"
    read_back = Toolkit.from_openapi(toolkit.to_openapi())
    assert {tool.name: tool.parameters for tool in read_back} == {tool.name: tool.parameters for tool in toolkit}


def test_the_wheel_holds_examples_and_prompts():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {"prompts": "gecko_graph/prompts", "examples": "gecko_graph/examples"}
