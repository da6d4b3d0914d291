"""Scenarios: what a file may hold, what is said when it does not, and how its turns run."""

from __future__ import annotations

import copy
import json
import sys

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph import GeckoError, Scenario
from gecko_graph.errors import ScenarioError, ToolkitError
from tests.every_place import every_place
from tests.pen_case import CHECK, OPENAPI, PUT, SAY, case, turn

# reading ---------------------------------------------------------------------------------------------


def test_a_scenario_says_what_its_file_says(tmp_path):
    (tmp_path / "api.yaml").write_text(yaml.safe_dump(OPENAPI))
    (tmp_path / "case.yaml").write_text(yaml.safe_dump(case(tools="api.yaml")))
    read = Scenario.load(tmp_path / "case.yaml")
    assert (read.name, read.tools.names, read.limits.max_retries) == ("box", ("put",), 1)
    assert read.inputs() == {
        "messages": [("user", "Put the pen away.")],
        "task_state": {"box": []},
        "checklist": [CHECK],
    }
    assert read.models().has("planner")


@pytest.mark.parametrize("kind", ["up", "absolute", "link"])
def test_tools_outside_the_scenarios_folder_are_read_only_where_that_is_allowed(tmp_path, kind):
    (tmp_path / "api.json").write_text(json.dumps(OPENAPI))
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "link.json").symlink_to(tmp_path / "api.json")
    tools = {"up": "../api.json", "absolute": str(tmp_path / "api.json"), "link": "link.json"}[kind]
    (folder / "case.yaml").write_text(yaml.safe_dump(case(tools=tools)))
    with pytest.raises(ScenarioError, match=r"is outside the scenario's folder; .*--allow-outside"):
        Scenario.load(folder / "case.yaml")
    with pytest.raises(ScenarioError, match="is outside"):
        Scenario.from_dict(case(tools=tools), folder=folder)
    assert Scenario.load(folder / "case.yaml", allow_outside=True).tools.names == ("put",)


def test_contracts_come_from_files_beside_the_scenario_or_inline(tmp_path):
    (tmp_path / "api.json").write_text(json.dumps(OPENAPI))
    (tmp_path / "more.yaml").write_text("contracts: {put: {returns: 1}}")
    for contracts in ("more.yaml", ["more.yaml"], {"contracts": {"put": {"returns": 1}}}):
        made = Scenario.from_dict(case(tools="api.json", contracts=contracts), folder=tmp_path)
        assert made.tools["put"].contract.data == {"returns": 1}
        assert made.tools_file is None  # a recorded run writes the tools with their contracts
    for contracts in ("../x.yaml", "x.yaml", 5):
        with pytest.raises(ScenarioError, match="contracts: "):
            Scenario.from_dict(case(tools="api.json", contracts=contracts), folder=tmp_path)


BAD_PLANS = [
    ("[0]", "expected a list", PUT),
    ("[0][0]", "expected {call: name", [{}]),
    ("[0][1]", "expected {call: name", [PUT, PUT | SAY]),
    ("[0][0].arg", "did you mean args?", [{"call": "put", "arg": {}}]),
    ("[0][0].args", "expected an object", [{"call": "put", "args": "pen"}]),
    ("[0][0].calls[0]", "expected an object", [{"calls": ["put"]}]),
]
BY_ATTEMPT = {"by_attempt": {"1": {}}}
WRONG = [
    ("version", "should be 1", {"version": 2}),
    ("name", "expected text; put it in quotes", {"name": 7}),
    ("nmae", "unknown key (did you mean name?)", {"nmae": "x"}),
    ("tools", "no such file", {"tools": "nowhere.yaml"}),
    ("tools", "no such file", {"tools": "https://example.org/api.yaml"}),
    ("state", "expected an object", {"state": [1]}),
    ("turns", "missing", {"turns": []}),
    ("turns[0].user", "is empty", {"turns": turn(user="\n")}),
    ("turns[0].reply", "did you mean replies?", {"turns": turn(reply={})}),
    ("turns[0].replies.planer", "should be 'planner'", {"turns": turn(replies={"planer": []})}),
    ("turns[0].checklist[0]", "description", {"turns": turn(checklist=[{"id": "x"}])}),
    ("turns[0].checklist[0].chek", "did you mean check?", {"turns": turn(checklist=[{"chek": "true"}])}),
    ("turns[0].checklist[1].id", "'pen' is not unique", {"turns": turn(checklist=[CHECK, CHECK])}),
    ("turns[0].checklist[0].check", "'stat'", {"turns": turn(checklist=[{"check": "stat.box"}])}),
    *(
        (f"turns[0].replies.planner{at}", why, {"turns": turn(replies={"planner": [one]})})
        for at, why, one in BAD_PLANS
    ),
    ("turns[0].replies.judge[0]", "Judgement: items: is missing", {"turns": turn(replies={"judge": [{}]})}),
    (
        "turns[0].replies.state_updater[0]",
        "'value'",
        {"turns": turn(replies={"state_updater": [{"patch": [{"op": "add", "path": "/x"}]}]})},
    ),
    ("milestones and solution", "only a conversation", {"solution": [{"name": "put", "args": {}}]}),
    ("turns[0].replies.judge[0].by_attempt.1", "items: is missing", {"turns": turn(replies={"judge": [BY_ATTEMPT]})}),
    ("limits.max_retry", "did you mean max_retries?", {"limits": {"max_retry": 1}}),
    ("limits.max_retries", "greater than or equal to 0", {"limits": {"max_retries": -1}}),
]


@pytest.mark.parametrize(("place", "why", "changes"), WRONG, ids=str)
def test_what_is_wrong_is_named_with_its_place(place, why, changes):
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(case(**changes), where="s")
    assert str(caught.value).startswith(f"s: {place}: ")
    assert why in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


OUTER = [path for path, _ in every_place(case()) if path and path[0] != "tools"] + [("tools",)]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(OUTER), JSON)
def test_whatever_stands_anywhere_is_read_or_refused_in_words(path, value):
    data = case()
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    assert read_or_refused(data).startswith(("read", "s: "))


def read_or_refused(data):
    try:
        Scenario.from_dict(data, where="s")
    except GeckoError as error:
        return str(error)
    return "read"


def test_broken_tools_name_the_scenario_and_the_place():
    broken = copy.deepcopy(OPENAPI)
    broken["paths"]["/box"]["post"]["x-contract"]["returns"] = "{{ nothing }}"
    with pytest.raises(ToolkitError, match=r"^s: tools: .*~1box/post/x-contract.*: returns: .*nothing"):
        Scenario.from_dict(case(tools=broken), where="s")


MODULE = """
def look(place: str) -> str:
    'Look.'

TOOLS = [look]
"""


def test_tools_of_a_module_in_the_scenarios_folder(tmp_path, monkeypatch):
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "looking_tools.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    case = {"version": 1, "name": "a", "tools": "looking_tools:TOOLS", "turns": [{"user": "Look."}]}
    read = Scenario.from_dict(case, folder="cases")
    assert (read.tools.names, read.tools_file) == (("look",), None)
    with pytest.raises(ScenarioError, match=r"case.yaml: tools looking_tools:TOLS: .*did you mean TOOLS"):
        Scenario.from_dict({**case, "tools": "looking_tools:TOLS"}, folder="cases", where="case.yaml")
    (tmp_path / "looking_tools.py").write_text(MODULE)
    with pytest.raises(ScenarioError, match="is hidden by"):
        Scenario.from_dict(case, folder="cases")


def test_a_solution_names_known_tools_and_tools_of_ones_own_take_the_files_place():
    read = Scenario.from_dict(case())
    data = {
        "version": 1,
        "name": "s",
        "tools": "elsewhere.yaml",
        "state": {"box": []},
        "user": {"goal": "Put it away."},
    }
    solved = Scenario.from_dict({**data, "solution": [{"name": "put", "args": {"item": "pen"}}]}, tools=read.tools)
    assert (solved.tools, solved.solution) == (read.tools, ({"name": "put", "args": {"item": "pen"}},))
    assert solved.content["tools"] == "elsewhere.yaml"
    with pytest.raises(ScenarioError, match=r"solution\[0\]: unknown tool 'puts' \(did you mean put\?\)"):
        Scenario.from_dict({**data, "solution": [{"name": "puts"}]}, tools=read.tools)
