"""Some tools of many, toolkits that make it harder, and several toolkits on one state."""

import json

import pytest

from gecko_graph import World
from gecko_graph.context import GeckoContext
from gecko_graph.conversation import augment as under_test
from gecko_graph.errors import ContractError, ToolkitError
from gecko_graph.tools import Toolkit, ToolSpec, problems
from gecko_graph.tools.spec import HttpBinding


def tool(name, path, *tags):
    return ToolSpec(name=name, binding=HttpBinding("get", path), tags=tags, effect="read")


GITHUB = Toolkit(
    [
        tool("issues_list", "/repos/{owner}/issues", "issues"),
        tool("issues_get", "/repos/{owner}/issues/{number}", "issues"),
        tool("repos_get", "/repos/{owner}", "repos"),
        tool("orgs_issues", "/orgs/{org}/issues", "issues", "orgs"),
        ToolSpec(name="local"),
    ],
    title="GitHub",
)


@pytest.mark.parametrize(("chosen", "names"), [
    ({"names": ["local", "repos_get"]}, ["repos_get", "local"]),
    ({"tags": ["orgs", "repos"]}, ["repos_get", "orgs_issues"]),
    ({"paths": ["/repos/**"]}, ["issues_list", "issues_get", "repos_get"]),
    ({"paths": ["/*/*/issues"]}, ["issues_list", "orgs_issues"]),
    ({"tags": ["issues"], "paths": ["/repos/**"], "match": "*_get"}, ["issues_get"]),
    ({}, list(GITHUB.names)),
])  # fmt: skip
def test_tools_are_chosen_in_their_order(chosen, names):
    assert list(GITHUB.select(**chosen).names) == names


@pytest.mark.parametrize(("chosen", "message"), [
    ({"names": ["issues_lst"]}, r"names: 'issues_lst' matches nothing \(did you mean issues_list\?\)"),
    ({"match": ["issues_*", "list*"]}, r"'list\*' matches nothing; there are "),
    ({"tags": ["repos"], "match": "orgs_*"}, "no tool matches all of"),
])  # fmt: skip
def test_what_matches_nothing_is_an_error_with_near_names(chosen, message):
    with pytest.raises(ToolkitError, match=message):
        GITHUB.select(**chosen)


@pytest.fixture
def without_extra(monkeypatch):
    monkeypatch.setattr(problems, "find_spec", lambda name: None)


def sizes(toolkit):
    return [problem.message for problem in toolkit.problems if problem.kind == "size"]


def test_more_tools_than_a_provider_takes_are_a_problem_with_numbers(without_extra):
    many = [ToolSpec(name=f"t{number}", tags=("few",) if number < 3 else ("most",)) for number in range(129)]
    (message,) = sizes(Toolkit(many))
    assert message.startswith("129 tools, and providers accept at most 128")
    assert "pip install '.[retrieval]'" in message
    assert "most (126), few (3)" in message
    (message,) = sizes(Toolkit(many[1:]))
    assert message.startswith("their schemas take about")
    assert "pip install '.[retrieval]'" in message
    assert sizes(Toolkit(many[:64])) == []
    assert GeckoContext().max_tools == problems.SHOWN_TOOLS


NAMES = ("get_wifi", "set_wifi", "get_cellular", "set_cellular", "add", "subtract", "find_contact", "wifi_speed")


def toolkit():
    on = {"type": "boolean", "description": "whether it is on"}
    parameters = {"type": "object", "properties": {"on": on}, "required": ["on"]}
    tools = [{"name": name, "description": f"The tool {name}.", "parameters": parameters} for name in NAMES]
    return Toolkit.from_tools(tools)


def shown(one):
    return {each["function"]["name"]: each["function"] for each in one.as_openai()}


def test_the_nearest_tools_distract():
    assert under_test.distract(toolkit(), ["set_wifi"], 0).names == ("set_wifi",)
    nearest = under_test.distract(toolkit(), ["set_wifi"], 3)
    assert {*nearest.names} == {"get_wifi", "set_wifi", "wifi_speed", "set_cellular"}
    assert under_test.distract(toolkit(), ["set_wifi"], None).names == NAMES
    with pytest.raises(ToolkitError, match="set_wify"):
        under_test.distract(toolkit(), ["set_wify"], 3)


@pytest.mark.parametrize("name", under_test.AUGMENTATIONS)
def test_each_augmentation_leaves_the_tools_as_they_are(name):
    one = under_test.augment(toolkit(), ["set_wifi"], name)
    assert one["set_wifi"] == toolkit()["set_wifi"]
    assert {one.resolve(each) for each in shown(one)} == set(one.names)
    assert json.dumps(one.to_openapi())


def test_scrambled_names_say_nothing_and_hide_the_own_ones():
    one = under_test.augment(toolkit(), ["set_wifi"], "tool_names_scrambled")
    assert not set(shown(one)) & set(NAMES)
    assert one.resolve("set_wifi") == "hidden tool set_wifi"
    tagged = Toolkit(ToolSpec(name=name, tags=tags) for name, tags in (("a", ("x y",)), ("b", ("x_y",)), ("c", ())))
    assert [*shown(under_test.scramble_names(tagged))] == ["x_y_0", "x_y_1", "tool_2"]
    assert one.show("set_wifi: off, set_wifis stays") == f"{one.faces['set_wifi'].name}: off, set_wifis stays"


def test_scrambled_names_stand_in_no_description_either():
    about = {"type": "string", "description": "what find_contact returned", "$comment": "not find_contacts"}
    listed = {"type": "array", "items": about, "enum": [["find_contact"]]}
    parameters = {"type": "object", "properties": {"find_contact": listed}}
    tools = [{"name": "find_contact"}, {"name": "call_contact", "description": "Call: see find_contact."}]
    one = under_test.scramble_names(Toolkit.from_tools([{**each, "parameters": parameters} for each in tools]))
    call = shown(one)["tool_0"]
    assert call["description"] == "Call: see tool_1."
    seen = next(each for each in one.as_tools() if each.name == "tool_0")
    assert (seen.description, seen.args_schema) == (call["description"], call["parameters"])
    items = {**about, "description": "what tool_1 returned"}
    assert call["parameters"]["properties"] == {"find_contact": {**listed, "items": items}}, "names and values stay"
    assert one["call_contact"].parameters["properties"]["find_contact"]["items"] == about, "what answers stays"


def test_a_disguise_stays_when_the_toolkit_is_changed():
    one = under_test.remove_descriptions(under_test.scramble_names(toolkit()))
    other = Toolkit.from_tools([{"name": "tool_0", "parameters": {"type": "object", "properties": {}}}])
    for changed in (one.replace(one["add"]), one.select(names=["add", "set_wifi"]), one.mount("phone"), one + other):
        assert all(shown(changed)[one.faces[name].name]["description"] == "" for name in changed.names if name in one)
    assert (one + other).resolve("tool_0_2") == "tool_0"


NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FILE = """
let: {taken: "{{ args.name in state.names }}"}
invariants: [{check: len(state.names) <= limit, error: "too many: {{ len(state.names) }}"}]
contracts:
  VERB:
    requires:
      - check: not taken
        error: "VERB: {{ args.name }} is there"
        effects: [{op: replace, path: [last], value: 1}]
    effects:
      - {op: add, path: [names, "-"], value: "{{ args.name }}"}
      - {op: copy, from: [names], path: [copy]}
    returns: {count: "{{ len(state.names) }}"}
    ensures: [{check: "len(before.names) + 1 == len(state.names)", error: lost}]
"""
STATE = {"names": ["a"], "last": 0}


def toolkit_of(verb, path, *, limit, at=None):
    file = path / f"{verb}.yaml"
    file.write_text(FILE.replace("VERB", verb).replace("limit", str(limit)))
    return Toolkit.from_tools([{"name": verb, "parameters": NAME}]).with_contracts(file, at=at)


def call(world, name, value):
    outcome = world.call({"name": name, "args": {"name": value}})["outcome"]
    assert outcome["rung"] == "contract"
    return outcome["result"]


def world_of(toolkit, state):
    return World(toolkit, state=state, context=GeckoContext(ladder=("contract",)))


def test_two_mounted_files_live_in_one_state(tmp_path):
    trees = toolkit_of("plant", tmp_path, limit=2, at="trees").mount(["park"])
    toolkit = toolkit_of("hire", tmp_path, limit=3, at="staff") + trees
    assert toolkit.state_keys == {"staff", "park"}
    for tools in (toolkit, Toolkit.from_openapi(toolkit.to_openapi())):
        world = world_of(tools, {"staff": STATE, "park": {"trees": STATE}})
        assert call(world, "hire", "b") == {"count": 2}
        assert call(world, "hire", "b") == "hire: b is there"
        assert call(world, "plant", "b") == {"count": 2}
        assert call(world, "plant", "c") == "refused: too many: 3"
        assert call(world, "hire", "c") == {"count": 3}
        assert world.state["staff"] == {"names": ["a", "b", "c"], "last": 1, "copy": ["a", "b", "c"]}
        assert world.state["park"] == {"trees": {"names": ["a", "b"], "last": 0, "copy": ["a", "b"]}}


def test_the_file_itself_may_say_where_and_the_caller_decides(tmp_path):
    file = tmp_path / "hire.yaml"
    file.write_text("at: staff\ncontracts: {hire: {returns: '{{ len(state.names) }}'}}")
    plain = Toolkit.from_tools([{"name": "hire", "parameters": NAME}])
    state = {"staff": STATE, "other": {"names": []}}
    assert call(world_of(plain.with_contracts(file), state), "hire", "b") == 1
    assert call(world_of(plain.with_contracts(file, at="other"), state), "hire", "b") == 0
    assert plain.with_contracts(file)["hire"].stated  # as by keyword: it says what the tool does, and no change


@pytest.mark.parametrize(("text", "why"), [
    ("contracts: {hyre: {returns: 1}}", "unknown tool 'hyre' (did you mean hire?)"),
    ("contracts: {hire: {at: 5, returns: 1}}", "contract of hire: at: expected a key of the task state"),
    ("contracts: {}\ninvariants: [5]", "invariants[0]: expected an object with check, error, when"),
    ("a: [", "not YAML"),
])  # fmt: skip
def test_a_wrong_file_is_refused_by_its_name(tmp_path, text, why):
    file = tmp_path / "more.yaml"
    file.write_text(text)
    with pytest.raises((ToolkitError, ContractError)) as error:
        Toolkit.from_tools([{"name": "hire", "parameters": NAME}]).with_contracts(file)
    assert why in str(error.value)
    assert "more.yaml" in str(error.value)


def test_a_contract_of_a_file_takes_the_place_of_the_tool_s_own():
    first = {"contracts": {"hire": {"effects": [{"op": "add", "path": ["n"], "value": 1}], "returns": 1}}}
    second = {"contracts": {"hire": {"requires": [{"check": "args.name != 'b'", "error": "not b"}]}}}
    tools = Toolkit.from_tools([{"name": "hire", "parameters": NAME}]).with_contracts(first).with_contracts(second)
    assert tools["hire"].contract.data.keys() == {"requires"}


def test_more_than_half_of_a_context_window_is_a_problem_with_its_estimate(without_extra):
    long = {"type": "object", "properties": {"a": {"description": "d" * 200_000}}}
    toolkit = Toolkit([ToolSpec(name="a", parameters=long), ToolSpec(name="b", parameters=long)])
    (message,) = sizes(toolkit)
    tokens = len(json.dumps(toolkit.as_openai())) // 4000
    assert f"about {tokens}k tokens (estimated: characters / 4)" in message
    assert "78 % of a context window of 128k" in message
    assert sizes(toolkit.select(names="a")) == []
