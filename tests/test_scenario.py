"""Scenarios: what a file may hold, what is said when it does not, and how its turns run."""

from __future__ import annotations

import copy
import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph import GeckoError, Scenario
from gecko_graph.errors import ScenarioError, ToolkitError
from tests.pen_case import CHECK, OPENAPI, PUT, SAY, case, turn

# reading ---------------------------------------------------------------------------------------------


def test_a_scenario_says_what_its_file_says(tmp_path):
    (tmp_path / "api.yaml").write_text(yaml.safe_dump(OPENAPI))
    (tmp_path / "case.yaml").write_text(yaml.safe_dump(case(tools="api.yaml")))
    read = Scenario.load(tmp_path / "case.yaml")
    assert (read.name, read.toolkit().names, read.context().max_retries) == ("box", ("put",), 1)
    assert read.inputs() == {
        "messages": [("user", "Put the pen away.")],
        "task_state": {"box": []},
        "checklist": [CHECK],
    }
    assert set(read.models()) == {"planner"}


def test_json_and_yaml_say_the_same(tmp_path):
    (tmp_path / "case.json").write_text(json.dumps(case()))
    (tmp_path / "case.yaml").write_text(yaml.safe_dump(case()))
    one, other = (Scenario.load(tmp_path / f"case.{kind}") for kind in ("json", "yaml"))
    assert (one.name, one.state, one.turns, one.limits) == (other.name, other.state, other.turns, other.limits)


def test_what_is_left_out_has_a_default():
    read = Scenario.from_dict({key: case()[key] for key in ("version", "name", "tools", "turns")})
    assert read.state == {}
    assert read.context().max_retries == 3


def test_inputs_are_copies():
    read = Scenario.from_dict(case())
    given = read.inputs()
    given["task_state"]["box"].append("x")
    given["checklist"][0]["id"] = "y"
    assert read.inputs() == Scenario.from_dict(case()).inputs()


def test_items_may_be_bare_texts_or_bare_checks():
    read = Scenario.from_dict(case(turns=turn(checklist=["it is tidy", {"check": "state.box"}])))
    assert read.inputs()["checklist"] == [
        {"id": "item-1", "description": "it is tidy"},
        {"id": "item-2", "description": "state.box", "check": "state.box"},
    ]


def test_a_path_is_relative_to_the_scenarios_folder(tmp_path, monkeypatch):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "api.json").write_text(json.dumps(OPENAPI))
    (tmp_path / "case.yaml").write_text(yaml.safe_dump(case(tools="tools/api.json")))
    monkeypatch.chdir("/")
    assert Scenario.load(tmp_path / "case.yaml").toolkit().names == ("put",)


@pytest.mark.parametrize("kind", ["up", "absolute", "link"])
def test_tools_outside_the_scenarios_folder_are_read_only_where_that_is_allowed(tmp_path, kind):
    (tmp_path / "api.json").write_text(json.dumps(OPENAPI))
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "link.json").symlink_to(tmp_path / "api.json")
    tools = {"up": "../api.json", "absolute": str(tmp_path / "api.json"), "link": "link.json"}[kind]
    (folder / "case.yaml").write_text(yaml.safe_dump(case(tools=tools)))
    with pytest.raises(ScenarioError, match=r"leads out of .* folder; .*--allow-outside"):
        Scenario.load(folder / "case.yaml")
    with pytest.raises(ScenarioError, match="leads out"):
        Scenario.from_dict(case(tools=tools), folder=folder)
    assert Scenario.load(folder / "case.yaml", allow_outside=True).toolkit().names == ("put",)


def test_tools_inside_may_be_named_by_any_way_there(tmp_path):
    (tmp_path / "api.json").write_text(json.dumps(OPENAPI))
    (tmp_path / "tools").mkdir()
    assert Scenario.from_dict(case(tools="tools/../api.json"), folder=tmp_path).toolkit().names == ("put",)


WRONG = {
    "s: version: is missing": {"version": None},
    "s: version: 2 is newer than 1, which is read here: update gecko-graph": {"version": 2},
    "s: version: should be 1, not '1'": {"version": "1"},
    "s: version: should be 1, not True": {"version": True},
    "s: name: should be text; put it in quotes": {"name": 7},
    "s: name: is empty": {"name": " "},
    "s: nmae: there is no such key, perhaps 'name' is meant; known here: version, name, tools": {"nmae": "x"},
    "s: tools: give the path of an OpenAPI document": {"tools": 5},
    "s: tools: there is no file nowhere.yaml (a path is relative to the scenario's folder)": {"tools": "nowhere.yaml"},
    "s: state: should be an object": {"state": [1]},
    "s: turns: is empty": {"turns": []},
    "s: turns[0].user: is missing": {"turns": [{}]},
    "s: turns[0].user: is empty": {"turns": turn(user="\n")},
    "s: turns[0].reply: there is no such key, perhaps 'replies' is meant; known here: user, checklist, replies": {
        "turns": turn(reply={})
    },
    "s: turns[0].replies: no role is called 'planer'; roles are planner, validator": {
        "turns": turn(replies={"planer": []})
    },
    "s: turns[0].checklist[0]: give it a description, or a check": {"turns": turn(checklist=[{"id": "x"}])},
    "s: turns[0].checklist[0].chek: there is no such key, perhaps 'check' is meant; known here: id, description": {
        "turns": turn(checklist=[{"chek": "true"}])
    },
    "s: turns[0].checklist[1].id: 'pen' is given twice": {"turns": turn(checklist=[CHECK, CHECK])},
    "s: turns[0].checklist[0].check: unknown name 'stat'": {"turns": turn(checklist=[{"check": "stat.box"}])},
    "s: turns[0].checklist[0].check: ": {"turns": turn(checklist=[{"check": "state.box =="}])},
    "s: turns[0].replies.planner[0]: should be a list": {"turns": turn(replies={"planner": [PUT]})},
    "s: turns[0].replies.planner[0][0]: should be {call: name": {"turns": turn(replies={"planner": [[{}]]})},
    "s: turns[0].replies.planner[0][1]: should be {call: name": {
        "turns": turn(replies={"planner": [[PUT, PUT | SAY]]})
    },
    "s: turns[0].replies.planner[0][0].arg: there is no such key, perhaps 'args' is meant": {
        "turns": turn(replies={"planner": [[{"call": "put", "arg": {}}]]})
    },
    "s: turns[0].replies.planner[0][0].args: should be an object": {
        "turns": turn(replies={"planner": [[{"call": "put", "args": "pen"}]]})
    },
    "s: turns[0].replies.planner[0][0].call: should be a tool's name": {
        "turns": turn(replies={"planner": [[{"call": 3}]]})
    },
    "s: turns[0].replies.planner[0][0].say: should be text": {"turns": turn(replies={"planner": [[{"say": 3}]]})},
    "s: turns[0].replies.planner[0][0].calls[0]: should be {call: name": {
        "turns": turn(replies={"planner": [[{"calls": ["put"]}]]})
    },
    "s: turns[0].replies.judge[0]: no Judgement: items: is missing": {"turns": turn(replies={"judge": [{}]})},
    "s: turns[0].replies.judge[0]: no Judgement: items[0].status: should be 'success', 'failed'": {
        "turns": turn(replies={"judge": [{"items": [{"id": "x", "status": "good"}]}]})
    },
    "s: turns[0].replies.state_updater[0]: no StateChange: patch: value error, operation 0: add needs 'value'": {
        "turns": turn(replies={"state_updater": [{"patch": [{"op": "add", "path": "/x"}]}]})
    },
    "s: limits.max_retry: there is no such key, perhaps 'max_retries' is meant": {"limits": {"max_retry": 1}},
    "s: limits.max_retries: should be greater than or equal to 0": {"limits": {"max_retries": -1}},
    "s: limits.ladder: is empty": {"limits": {"ladder": []}},
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_said_with_its_place(message):
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(case(**WRONG[message]), where="s")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("data", [None, [], "text", 3])
def test_a_scenario_is_an_object(data):
    with pytest.raises(ScenarioError, match="s: a scenario is an object with version, name, tools and turns"):
        Scenario.from_dict(data, where="s")


def test_an_openapi_document_in_its_place_is_recognised():
    with pytest.raises(ScenarioError, match="is an OpenAPI document, not a scenario"):
        Scenario.from_dict(OPENAPI)


def test_several_problems_are_told_at_once_but_not_all():
    many = [{"id": f"i{n}"} for n in range(9)]
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(case(turns=turn(checklist=many)), where="s")
    assert len(str(caught.value).splitlines()) == 6
    assert str(caught.value).endswith("s: and 4 more")


def test_a_state_that_is_no_json():
    with pytest.raises(ScenarioError, match=r"s: .*state.*box"):
        Scenario.from_dict(case(state={"box": [float("nan")]}), where="s")


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        (["api.yaml"], "case.yaml: tools: a path stands by itself, not in a list"),
        (
            "https://example.org/api.yaml",
            "case.yaml: tools: https://example.org/api.yaml is on the web: save it beside",
        ),
        ("none.yaml", "case.yaml: tools: there is no file none.yaml"),
    ],
)
def test_paths_of_tools_that_are_none(tools, message):
    with pytest.raises(ScenarioError, match=message):
        Scenario.from_dict(case(tools=tools), where="case.yaml")


def test_broken_tools_name_the_scenario_and_the_place():
    broken = copy.deepcopy(OPENAPI)
    broken["paths"]["/box"]["post"]["x-contract"]["returns"] = "{{ nothing }}"
    with pytest.raises(ToolkitError, match=r"^s: tools: .*~1box/post/x-contract.*: returns: .*nothing"):
        Scenario.from_dict(case(tools=broken), where="s")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.yaml", None, "no such file"),
        ("broken.yaml", "turns: [", "not YAML"),
        ("empty.yaml", "", "is empty"),
        ("twice.yaml", "name: a\nname: b", "appears twice"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, text, message):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ScenarioError, match=message) as caught:
        Scenario.load(tmp_path / name)
    assert name in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


def places(value, path=()):
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, (*path, key))


OUTER = [path for path in places(case()) if path and path[0] != "tools"] + [("tools",)]


@settings(max_examples=200, deadline=None)
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
