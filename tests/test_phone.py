"""examples/phone: a living world, and what good and bad agents are worth in it."""

from __future__ import annotations

import pytest

from gecko_graph import Toolkit
from gecko_graph.testing import scripted
from tests.phone import CASES, FOLDER, agents, converse, load, lost, played, stepped_on

pytest.importorskip("scipy")
pytest.importorskip("rouge_score")

BAD = [(name, number) for name in CASES for number in range(len(agents(name)["bad"]))][::3]
DECLINED = {"say": "I am sorry, I cannot help with that."}


# the cases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES[::2])
def test_a_good_agent_scores_one_by_more_than_one_route(name):
    """What another route ends with is in words of its own, which no rule may be sure of."""
    plain, other = (played(name, route)["score"] for route in ("good", "also"))
    assert (plain["similarity"], plain["status"]) == (1.0, "passed")
    assert other["status"] != "failed"
    for score in (plain, other):
        assert (score["end"], score["leaks"], score["races"]) == ("ended", [], 0)


@pytest.mark.parametrize(("name", "number"), BAD)
def test_a_bad_agent_loses_what_it_should(name, number):
    bad = agents(name)["bad"][number]
    score = played(name, "bad", number)["score"]
    assert (lost(score), stepped_on(score)) == (bad["loses"], bad.get("steps_on", [])), bad["what"]
    assert score["status"] != "passed"
    assert score["races"] == bad.get("races", 0)


@pytest.mark.parametrize("name", CASES)
def test_each_milestone_is_lost_and_each_minefield_stepped_on_by_a_bad_agent(name):
    bad, goal = agents(name)["bad"], load(name).goal
    assert {id_ for each in bad for id_ in each["loses"]} == {each.id for each in goal.milestones}
    assert {id_ for each in bad for id_ in each.get("steps_on", [])} == {each.id for each in goal.minefields}


@pytest.mark.parametrize("name", CASES[::6])
def test_doing_nothing_is_worth_nothing(name):
    assert converse(scripted(), load(name))["score"]["similarity"] == 0.0
    assert converse(scripted(*[DECLINED] * 5), load(name))["score"]["similarity"] < 0.5


# the world ---------------------------------------------------------------------------------------


def test_the_toolkit_is_whole():
    toolkit = Toolkit.from_openapi(FOLDER / "cases" / "phone.openapi.yaml")
    assert len(toolkit) >= 20
    assert toolkit.problems == []
    assert all(tool.contract is not None and len(tool.tags) == 1 for tool in toolkit)
    assert {tag for tool in toolkit for tag in tool.tags} >= {"settings", "contacts", "messages", "reminders", "time"}
    assert toolkit.state_keys <= load("wifi-off").state.keys()
