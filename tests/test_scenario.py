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
from tests.every_place import every_place
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


def test_contracts_come_from_files_beside_the_scenario_or_inline(tmp_path):
    (tmp_path / "api.json").write_text(json.dumps(OPENAPI))
    (tmp_path / "more.yaml").write_text("contracts: {put: {returns: 1}}")
    for contracts in ("more.yaml", ["more.yaml"], {"contracts": {"put": {"returns": 1}}}):
        made = Scenario.from_dict(case(tools="api.json", contracts=contracts), folder=tmp_path)
        assert made.tools["put"].contract.data == {"returns": 1}
        assert made.tools_file is None  # a recorded run writes the tools with their contracts
    for contracts, why in (("../x.yaml", "contracts: ../x.yaml leads out"), ("x.yaml", "contracts: no such file"),
                           (5, "contracts: expected a path or an object, got int")):  # fmt: skip
        with pytest.raises(ScenarioError, match=why):
            Scenario.from_dict(case(tools="api.json", contracts=contracts), folder=tmp_path)


def test_tools_inside_may_be_named_by_any_way_there(tmp_path):
    (tmp_path / "api.json").write_text(json.dumps(OPENAPI))
    (tmp_path / "tools").mkdir()
    assert Scenario.from_dict(case(tools="tools/../api.json"), folder=tmp_path).toolkit().names == ("put",)


CALL = ("{call: name", "{say: text}")
WRONG = [
    (("version", "is missing", "version: 1"), {"version": None}),
    (("version", "2 is newer than 1", "update gecko-graph"), {"version": 2}),
    (("version", "expected 1, got '1'"), {"version": "1"}),
    (("version", "expected 1, got True"), {"version": True}),
    (("name", "expected text", "quotes"), {"name": 7}),
    (("name", "is empty"), {"name": " "}),
    (("nmae", "unknown key", "did you mean name?", "version, name, tools"), {"nmae": "x"}),
    (("tools", "expected the path of an OpenAPI document"), {"tools": 5}),
    (("tools", "no such file", "nowhere.yaml", "relative to the scenario's folder"), {"tools": "nowhere.yaml"}),
    (("state", "expected an object"), {"state": [1]}),
    (("turns", "is missing"), {"turns": []}),
    (("turns[0].user", "is missing"), {"turns": [{}]}),
    (("turns[0].user", "is empty"), {"turns": turn(user="\n")}),
    (("turns[0].reply", "did you mean replies?", "user, checklist, replies"), {"turns": turn(reply={})}),
    (("turns[0].replies", "role 'planer'", "planner, validator"), {"turns": turn(replies={"planer": []})}),
    (("turns[0].checklist[0]", "description", "check"), {"turns": turn(checklist=[{"id": "x"}])}),
    (("turns[0].checklist[0].chek", "did you mean check?"), {"turns": turn(checklist=[{"chek": "true"}])}),
    (("turns[0].checklist[1].id", "'pen' is given twice"), {"turns": turn(checklist=[CHECK, CHECK])}),
    (("turns[0].checklist[0].check", "'stat'"), {"turns": turn(checklist=[{"check": "stat.box"}])}),
    (("turns[0].checklist[0].check",), {"turns": turn(checklist=[{"check": "state.box =="}])}),
    (("turns[0].replies.planner[0]", "expected a list"), {"turns": turn(replies={"planner": [PUT]})}),
    (("turns[0].replies.planner[0][0]", *CALL), {"turns": turn(replies={"planner": [[{}]]})}),
    (("turns[0].replies.planner[0][1]", *CALL), {"turns": turn(replies={"planner": [[PUT, PUT | SAY]]})}),
    (
        ("turns[0].replies.planner[0][0].arg", "did you mean args?"),
        {"turns": turn(replies={"planner": [[{"call": "put", "arg": {}}]]})},
    ),
    (
        ("turns[0].replies.planner[0][0].args", "expected an object"),
        {"turns": turn(replies={"planner": [[{"call": "put", "args": "pen"}]]})},
    ),
    (("turns[0].replies.planner[0][0].call", "expected text"), {"turns": turn(replies={"planner": [[{"call": 3}]]})}),
    (("turns[0].replies.planner[0][0].say", "expected text"), {"turns": turn(replies={"planner": [[{"say": 3}]]})}),
    (
        ("turns[0].replies.planner[0][0].calls[0]", "expected an object"),
        {"turns": turn(replies={"planner": [[{"calls": ["put"]}]]})},
    ),
    (("turns[0].replies.judge[0]", "Judgement", "items: is missing"), {"turns": turn(replies={"judge": [{}]})}),
    (
        ("turns[0].replies.judge[0]", "Judgement", "items[0].status", "'success', 'failed'"),
        {"turns": turn(replies={"judge": [{"items": [{"id": "x", "status": "good"}]}]})},
    ),
    (
        ("turns[0].replies.state_updater[0]", "StateChange", "patch", "operation 0", "'value'"),
        {"turns": turn(replies={"state_updater": [{"patch": [{"op": "add", "path": "/x"}]}]})},
    ),
    (("limits.max_retry", "did you mean max_retries?"), {"limits": {"max_retry": 1}}),
    (("limits.max_retries", "greater than or equal to 0"), {"limits": {"max_retries": -1}}),
    (("limits.ladder", "is empty"), {"limits": {"ladder": []}}),
]


@pytest.mark.parametrize(("parts", "changes"), WRONG, ids=str)
def test_what_is_wrong_is_named_with_its_place(parts, changes):
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict(case(**changes), where="s")
    message = str(caught.value)
    assert message.startswith(f"s: {parts[0]}: ")
    assert [part for part in parts if part not in message] == []


@pytest.mark.parametrize("data", [None, [], "text", 3])
def test_a_scenario_is_an_object(data):
    with pytest.raises(ScenarioError, match=r"s: .*object with version, name, tools and turns"):
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
        (["api.yaml"], "case.yaml: tools: .*path.*list"),
        (
            "https://example.org/api.yaml",
            "case.yaml: tools: https://example.org/api.yaml is an address: save it beside",
        ),
        ("none.yaml", "case.yaml: tools: no such file: none.yaml"),
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


OUTER = [path for path, _ in every_place(case()) if path and path[0] != "tools"] + [("tools",)]


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
