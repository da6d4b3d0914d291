"""examples/phone: a living world, and what good and bad agents are worth in it."""

from __future__ import annotations

import pytest

from gecko_graph import Toolkit, World
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


@pytest.fixture
def world():
    def make(**settings):
        state = load("wifi-off").state
        known = {"wifi": True, "cellular": True, "location": True, "low_battery": False}
        return World(load("wifi-off").tools, state={**state, "settings": known | settings})

    return make


def call(world, name, /, **args):
    step = world.call({"name": name, "args": args})
    return step["outcome"]["status"], step["outcome"]["result"]


OFF = {"wifi": False, "cellular": False, "location": False, "low_battery": True}
POINT = {"latitude": 1.0, "longitude": 2.0}


@pytest.mark.parametrize(
    ("setting", "tool", "args"),
    [
        ("cellular", "send_message", {"phone": "+32470550123", "text": "Hi"}),
        ("wifi", "find_places", {"query": "bakery", **POINT}),
        ("location", "get_position", {}),
        ("location", "find_places", {"query": "bakery"}),
    ],
)
def test_dependencies_are_nested(world, setting, tool, args):
    """A tool needs a setting, the setting cannot be turned on in low battery mode."""
    here = world(**OFF)
    assert call(here, tool, **args)[0] == "error"
    status, error = call(here, f"set_{setting}", on=True)
    assert (status, "low battery" in error) == ("error", True)
    assert call(here, "set_low_battery", on=False)[0] == "ok"
    if (setting, tool) == ("location", "find_places"):
        assert call(here, "set_wifi", on=True)[0] == "ok"
        assert call(here, tool, **args) == ("error", "the current place is not known: location is off")
    assert call(here, f"set_{setting}", on=True)[0] == "ok"
    assert call(here, tool, **args)[0] == "ok"


def test_the_toolkit_is_whole():
    toolkit = Toolkit.from_openapi(FOLDER / "cases" / "phone.openapi.yaml")
    assert len(toolkit) >= 20
    assert toolkit.problems == []
    assert all(tool.contract is not None and len(tool.tags) == 1 for tool in toolkit)
    assert {tag for tool in toolkit for tag in tool.tags} >= {"settings", "contacts", "messages", "reminders", "time"}
    assert toolkit.state_keys <= load("wifi-off").state.keys()
