"""examples/phone: a living world, and what good and bad agents are worth in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from gecko_graph import Scenario, Toolkit, World
from gecko_graph.errors import ScenarioError
from gecko_graph.testing import scripted
from tests.phone import CASES, FOLDER, agents, converse, load, lost, stepped_on

pytest.importorskip("scipy")
pytest.importorskip("rouge_score")

CATEGORIES = {
    *("single_tool_call", "multiple_tool_call", "single_user_turn", "multiple_user_turn", "state_dependency"),
    *("canonicalization", "insufficient_information"),
}
BAD = [(name, number) for name in CASES for number in range(len(agents(name)["bad"]))]
DECLINED = {"say": "I am sorry, I cannot help with that."}


# the cases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ["good", "also"])
@pytest.mark.parametrize("name", CASES)
def test_a_good_agent_scores_one_by_more_than_one_route(name, route):
    score = converse(scripted(*agents(name)[route]), load(name))["score"]
    assert (score["similarity"], score["end"], score["leaks"], score["races"]) == (1.0, "ended", [], 0)


@pytest.mark.parametrize(("name", "number"), BAD)
def test_a_bad_agent_loses_what_it_should(name, number):
    bad = agents(name)["bad"][number]
    score = converse(scripted(*bad["does"]), load(name))["score"]
    assert (lost(score), stepped_on(score)) == (bad["loses"], bad.get("steps_on", [])), bad["what"]
    assert score["similarity"] == pytest.approx(bad["score"], abs=0.001)
    assert score["races"] == bad.get("races", 0)


@pytest.mark.parametrize("name", CASES)
def test_each_milestone_is_lost_and_each_minefield_stepped_on_by_a_bad_agent(name):
    bad, goal = agents(name)["bad"], load(name).goal
    assert {id_ for each in bad for id_ in each["loses"]} == {each.id for each in goal.milestones}
    assert {id_ for each in bad for id_ in each.get("steps_on", [])} == {each.id for each in goal.minefields}


@pytest.mark.parametrize("name", CASES)
def test_doing_nothing_is_worth_nothing(name):
    assert converse(scripted(), load(name))["score"]["similarity"] == 0.0
    assert converse(scripted(*[DECLINED] * 5), load(name))["score"]["similarity"] < 0.5


@pytest.mark.parametrize("name", CASES)
def test_a_conversation_repeats_exactly(name):
    """Whatever the seed: only identifiers are made of it, and answers to questions that have no example."""
    again = [converse(scripted(*agents(name)["good"]), each) for each in (load(name), Scenario.load(load(name).where))]
    texts = [[(each.type, each.text) for each in output["messages"]] for output in again]
    assert (texts[0], again[0]["score"], again[0]["world"]) == (texts[1], again[1]["score"], again[1]["world"])
    limits = load(name).limits.model_copy(update={"seed": 7})
    other = converse(scripted(*agents(name)["good"]), replace(load(name), limits=limits))
    assert other["score"] == again[0]["score"]


def test_there_are_cases_of_every_category():
    found = Counter(category for name in CASES for category in load(name).categories)
    assert len(CASES) == 24
    assert found.keys() == CATEGORIES
    assert min(found.values()) >= 4
    assert min(len(agents(name)["bad"]) for name in CASES) >= 2


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_whole(name):
    case, categories = load(name), set(load(name).categories)
    assert case.name == name
    assert case.goal.milestones
    assert bool(case.goal.minefields) == ("insufficient_information" in categories)
    assert len(categories & {"single_tool_call", "multiple_tool_call"}) == 1
    assert len(categories & {"single_user_turn", "multiple_user_turn"}) == 1
    assert case.needs
    assert case.user.knows or "single_user_turn" in categories


@pytest.mark.parametrize("name", CASES)
def test_a_good_agent_calls_what_is_needed_and_is_answered_in_as_many_turns(name):
    output = converse(scripted(*agents(name)["good"]), load(name))
    called = {step["call"]["name"] for step in output["world"]["log"]} - {"clock"}
    missing = set(load(name).needs) - called
    insufficient = "insufficient_information" in load(name).categories
    assert called <= set(load(name).needs)
    assert not missing or insufficient
    turns = sum(each.type == "human" for each in output["messages"])
    assert (turns > 1) == ("multiple_user_turn" in load(name).categories)


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
        ("wifi", "get_weather", {**POINT, "date": "2027-05-13"}),
        ("wifi", "get_stock", {"symbol": "MSFT"}),
        ("wifi", "find_holiday", {"name": "Easter Monday", "year": 2030}),
        ("wifi", "convert_currency", {"amount": 1, "from": "EUR", "to": "SEK"}),
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


def test_low_battery_mode_turns_the_rest_off(world):
    here = world()
    assert call(here, "set_low_battery", on=True) == ("ok", OFF)


def test_what_is_looked_up_is_the_same_in_every_world(world):
    asked = {"query": "zoo", **POINT}
    first, second = call(world(), "find_places", **asked), call(world(), "find_places", **asked)
    assert first == second
    assert first[0] == "ok"


@pytest.mark.parametrize(
    ("tool", "args", "result"),
    [
        ("get_time", {}, {"time": "2027-05-12T09:00:00", "weekday": "Wednesday"}),
        (
            "shift_time",
            {"time": "2027-05-12T09:00", "days": 1, "hours": -10},
            {"time": "2027-05-12T23:00:00", "weekday": "Wednesday"},
        ),
        (
            "time_between",
            {"start": "2027-05-12", "end": "2027-05-10T12:00", "unit": "hours"},
            {"amount": -36.0, "unit": "hours"},
        ),
        ("find_weekday", {"after": "2027-05-12T09:00", "weekday": "Friday"}, {"date": "2027-05-14"}),
        ("find_weekday", {"after": "2027-05-12T09:00", "weekday": "Wednesday"}, {"date": "2027-05-19"}),
        ("convert_units", {"amount": 212, "from": "fahrenheit", "to": "celsius"}, {"amount": 100.0, "unit": "celsius"}),
        (
            "convert_currency",
            {"amount": 250, "from": "EUR", "to": "USD"},
            {"amount": 284.09, "unit": "USD"},
        ),
        (
            "measure_distance",
            {"from_latitude": 51.05, "from_longitude": 3.72, "to_latitude": 50.85, "to_longitude": 4.35},
            {"amount": 49.35, "unit": "km"},
        ),
    ],
)
def test_clock_dates_units_and_distances_are_computed(world, tool, args, result):
    status, found = call(world(), tool, **args)
    assert status == "ok"
    amount = result.get("amount")
    assert found == result if amount is None else found["amount"] == pytest.approx(amount, rel=0.01)


def test_now_moves_with_the_turns():
    output = converse(scripted(*agents("dinner-at-eight")["good"]), load("dinner-at-eight"))
    (sent,) = [one for key, one in output["world"]["state"]["messages"].items() if key not in ("m-1", "m-2", "m-3")]
    assert (output["world"]["start"]["now"], sent["sent_at"]) == ("2027-05-12T09:00", "2027-05-12T09:01:00")


def test_the_toolkit_is_whole():
    toolkit = Toolkit.from_openapi(FOLDER / "cases" / "phone.openapi.yaml")
    assert len(toolkit) >= 20
    assert toolkit.problems == []
    assert all(tool.contract is not None and len(tool.tags) == 1 for tool in toolkit)
    assert {tag for tool in toolkit for tag in tool.tags} >= {"settings", "contacts", "messages", "reminders", "time"}
    assert toolkit.state_keys <= load("wifi-off").state.keys()


# what a case needs, and what it leaves out ---------------------------------------------------------


def test_tools_that_a_case_is_without_are_not_there():
    assert "get_time" not in load("days-to-the-concert").tools
    assert "get_time" in load("wifi-off").tools


CALL = {"id": "made", "call": {"name": "note"}}
SHOWN = {"message": {"content": "{x}"}, "from": {"milestone": "made", "call": "not", "name": "x"}}


def test_a_minefield_may_name_a_tool_that_the_case_is_without():
    tools = [{"name": name, "description": name, "parameters": {}} for name in ("note", "set_wifi")]
    case = {"version": 1, "name": "a", "tools": tools, "user": {"goal": "x"}, "without": ["note"]}
    assert Scenario.from_dict({**case, "minefields": [{"call": {"name": "note"}}]}).goal.minefields


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"needs": ["set_wfi"]}, r"needs\[0\]: unknown tool 'set_wfi' \(did you mean set_wifi"),
        ({"without": ["note", "nothing"]}, r"without\[1\]: unknown tool 'nothing'"),
        ({"without": ["note", "set_wifi"]}, "without: expected some tools to be left"),
        ({"without": ["note"], "needs": ["note"]}, r"needs\[0\]: unknown tool 'note'"),
        ({"needs": "note"}, "needs: expected a list"),
        ({"milestones": [CALL | {"call": {"name": "not"}}]}, r"milestones\[0\].call\[0\]: unknown tool 'not'"),
        ({"milestones": [CALL | {"call": {"name": "note", "args": {"a": 1}}}]}, "note has no argument 'a'"),
        ({"milestones": [CALL, SHOWN]}, r"milestones\[1\].from\[0\]: unknown tool 'not'"),
        ({"minefields": [{"call": {"name": "not"}}]}, r"minefields\[0\].call\[0\]: unknown tool 'not'"),
        ({"milestones": [{"id": "a", "form": 1}]}, "did you mean from.*; keys: .* from,"),
    ],
)
def test_unknown_tools_are_named_with_their_place(changes, message):
    tools = [{"name": name, "description": name, "parameters": {}} for name in ("note", "set_wifi")]
    with pytest.raises(ScenarioError, match=message):
        Scenario.from_dict({"version": 1, "name": "a", "tools": tools, "user": {"goal": "x"}, **changes})
