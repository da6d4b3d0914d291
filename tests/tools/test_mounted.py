"""Contracts from a file, below a key of the task state, and several toolkits on one state."""

from __future__ import annotations

import pytest

from gecko_graph import Toolkit, World
from gecko_graph.context import GeckoContext
from gecko_graph.errors import ContractError, ToolkitError

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FILE = """
let: {taken: "{{ args.name in state.names }}"}
invariants: [{check: state.names | length <= limit, error: "too many: {{ state.names | length }}"}]
contracts:
  VERB:
    requires:
      - check: not taken
        error: "VERB: {{ args.name }} is there"
        effects: [{op: replace, path: [last], value: 1}]
    effects:
      - {op: add, path: [names, "-"], value: "{{ args.name }}"}
      - {op: copy, from: [names], path: [copy]}
    returns: {count: "{{ state.names | length }}"}
    ensures: [{check: "before.names | length + 1 == state.names | length", error: lost}]
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
    toolkit = toolkit_of("hire", tmp_path, limit=3, at="staff") + toolkit_of(
        "plant", tmp_path, limit=2, at=["park", "trees"]
    )
    assert toolkit.state_keys == {"staff", "park"}
    for tools in (toolkit, Toolkit.from_openapi(toolkit.to_openapi())):
        world = world_of(tools, {"staff": STATE, "park": {"trees": STATE}})
        assert call(world, "hire", "b") == {"count": 2}
        assert call(world, "hire", "b") == "hire: b is there"
        assert call(world, "plant", "b") == {"count": 2}
        assert call(world, "plant", "c") == "not done: too many: 3"
        assert call(world, "hire", "c") == {"count": 3}
        assert world.state["staff"] == {"names": ["a", "b", "c"], "last": 1, "copy": ["a", "b", "c"]}
        assert world.state["park"] == {"trees": {"names": ["a", "b"], "last": 0, "copy": ["a", "b"]}}


def test_what_results_are_computed_from_is_named_by_its_place_in_the_state(tmp_path):
    mounted, bare = (toolkit_of("hire", tmp_path, limit=3, at=at)["hire"].contract for at in (["staff", "all"], None))
    assert (mounted.result_keys, bare.result_keys) == ({"staff"}, {"names"})
    assert (mounted.state_keys, bare.state_keys) == ({"staff"}, {"names", "last", "copy"})
    file = tmp_path / "ping.yaml"
    file.write_text("contracts: {ping: {returns: {pong: true}}, all: {returns: '{{ state }}'}}")
    tools = Toolkit.from_tools([{"name": name, "parameters": {}} for name in ("ping", "all")])
    for at, keys in (("staff", {"staff"}), (None, {""})):
        found = tools.with_contracts(file, at=at)
        assert (found["ping"].contract.result_keys, found["all"].contract.result_keys) == (frozenset(), keys)


def test_a_whole_toolkit_is_mounted_and_mounted_again(tmp_path):
    toolkit = toolkit_of("hire", tmp_path, limit=2, at="staff").mount("town").mount(["land"])
    world = world_of(toolkit, {"land": {"town": {"staff": STATE}}})
    assert call(world, "hire", "b") == {"count": 2}
    assert call(world, "hire", "c") == "not done: too many: 3"
    assert world.state["land"]["town"]["staff"]["names"] == ["a", "b"]


def test_the_file_itself_may_say_where_and_the_caller_decides(tmp_path):
    file = tmp_path / "hire.yaml"
    file.write_text("at: staff\ncontracts: {hire: {returns: '{{ state.names | length }}'}}")
    plain = Toolkit.from_tools([{"name": "hire", "parameters": NAME}])
    state = {"staff": STATE, "other": {"names": []}}
    assert call(world_of(plain.with_contracts(file), state), "hire", "b") == 1
    assert call(world_of(plain.with_contracts(file, at="other"), state), "hire", "b") == 0
    assert plain.with_contracts(file)["hire"].stated  # as by keyword: it says what the tool does, and no change


def test_a_missing_part_of_the_state_is_no_other_part(tmp_path):
    toolkit = toolkit_of("hire", tmp_path, limit=2, at="staff")
    outcome = world_of(toolkit, STATE).call({"name": "hire", "args": {"name": "b"}})["outcome"]
    assert "names" in str(outcome)
    assert not outcome["patch"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("contracts: {hyre: {returns: 1}}", "unknown tool 'hyre' (did you mean hire?)"),
        ("contracts: {hire: {retorns: 1}}", "contract of hire: unknown key 'retorns'"),
        ("contracts: {hire: {returns: '{{ args.nam }}'}}", "contract of hire: returns: unknown argument args.nam"),
        ("contracts: {hire: {at: 5, returns: 1}}", "contract of hire: at: expected a key of the task state"),
        ("contracts: []", "contracts: expected an object"),
        ("contracts: {}\ninvariants: {}", "invariants: expected a list"),
        ("contracts: {}\ninvariants: [5]", "invariants[0]: expected an object with check, error, when"),
        ("contrakts: {}", "unknown key 'contrakts' (did you mean contracts?)"),
        ("a: [", "not YAML"),
    ],
)
def test_a_wrong_file_is_refused_by_its_name(tmp_path, text, why):
    file = tmp_path / "more.yaml"
    file.write_text(text)
    with pytest.raises((ToolkitError, ContractError)) as error:
        Toolkit.from_tools([{"name": "hire", "parameters": NAME}]).with_contracts(file)
    assert why in str(error.value)
    assert "more.yaml" in str(error.value)


def test_two_tools_of_one_name_are_not_merged(tmp_path):
    one = toolkit_of("hire", tmp_path, limit=2)
    with pytest.raises(ToolkitError, match="two tools are called 'hire'"):
        one.merge(one)


def test_a_contract_of_a_file_takes_the_place_of_the_tool_s_own():
    first = {"contracts": {"hire": {"effects": [{"op": "add", "path": ["n"], "value": 1}], "returns": 1}}}
    second = {"contracts": {"hire": {"requires": [{"check": "args.name != 'b'", "error": "not b"}]}}}
    tools = Toolkit.from_tools([{"name": "hire", "parameters": NAME}]).with_contracts(first).with_contracts(second)
    assert tools["hire"].contract.data.keys() == {"requires"}
