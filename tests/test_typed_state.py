"""`x-state`: no start, no call, no observation and no restored world ever holds a state that breaks it."""

from __future__ import annotations

import copy
import json

import pytest

from gecko_graph import Models, Tool, Toolkit, World
from gecko_graph.errors import ContractError, StateError
from gecko_graph.testing import recorded
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.world.rung import Answer
from gecko_graph.world.state_rules import StateRules
from tests.agents import call, make_agent, thread
from tests.doubts import texts

ORDER = {
    "type": "object",
    "properties": {"amount": {"type": "integer", "minimum": 0}, "paid": {"type": "boolean"}},
    "required": ["amount"],
    "additionalProperties": False,
}
SCHEMA = {
    "type": "object",
    "properties": {
        "orders": {"type": "object", "additionalProperties": {"$ref": "#/$defs/order"}},
        "cash": {"type": "number"},
    },
    "required": ["orders", "cash"],
    "additionalProperties": False,
    "$defs": {"order": ORDER},
}
SET = {"effects": [{"op": "add", "path": "{{ args.path }}", "value": "{{ args.value }}"}], "returns": None}
PARAMETERS = {"type": "object", "properties": {"path": {"type": "array"}, "value": {}}}
START = {"orders": {"7": {"amount": 3}}, "cash": 5}
POOR = {"check": "state.cash >= 0", "error": "the till is empty"}


def shop(**more):
    tools = [ToolSpec(name="set", parameters=PARAMETERS, effect="write"), ToolSpec(name="get", effect="read")]
    given = {"invariants": [POOR], "state_schema": SCHEMA}
    return Toolkit.from_tools(tools, **{**given, **more}).declare(Tool("set", contract=SET))


def put(world, path, value):
    return world.call({"name": "set", "args": {"path": path, "value": value}})["outcome"]


def test_a_change_that_breaks_the_schema_is_refused_whole():
    world = World(shop(), state=START)
    assert put(world, ["orders", "8"], {"amount": 1})["status"] == "ok"
    state = world.state
    for path, value, fault in [
        (["orders", "9"], {"amount": -1}, "/orders/9/amount: expected a number of at least 0, got -1"),
        (["orders", "7", "paid"], "yes", '/orders/7/paid: expected a boolean, got "yes"'),
        (["orders", "7"], {"paid": True}, "/orders/7/amount: expected an integer; it is required"),
        (["oders"], {}, "/oders: expected nothing of this name"),
    ]:
        outcome = put(world, path, value)
        assert outcome["status"] == "error"
        assert fault.split(":")[0] in texts(outcome, "refused")[0]
        (violation,) = outcome["violations"]
        assert (violation["clause"], violation["part"]) == ("x-state", "state")
        assert world.state == state
    assert put(world, ["runtime_state"], {"cwd": "a"})["status"] == "ok"  # room for runtime variables is always there


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"orders": {"7": {"amount": "3"}}, "cash": 5}, 'state: /orders/7/amount: expected an integer, got "3"'),
        ({**START, "cash": -1}, "state: it breaks an invariant: the till is empty"),
        ({}, "/orders: expected an object; it is required"),
    ],
)
def test_a_start_that_breaks_a_rule_is_refused(state, message):
    with pytest.raises(StateError) as caught:
        World(shop(), state=state)
    assert message in str(caught.value).replace("[7]", '["7"]')


def test_a_restored_world_fulfils_its_rules():
    world = World(shop(), state=START)
    put(world, ["orders", "8"], {"amount": 1})
    snapshot = world.snapshot()
    assert World.restore(shop(), snapshot).state == world.state
    edited = copy.deepcopy(snapshot)
    edited["log"][0]["outcome"]["patch"][0]["value"] = {"amount": "none"}
    edited["state"]["orders"]["8"] = {"amount": "none"}
    with pytest.raises(StateError, match="snapshot"):
        World.restore(shop(), edited)
    rules = shop(state_schema=None)
    poor = copy.deepcopy(World(rules, state=START).snapshot())
    poor["log"], poor["notes"] = snapshot["log"], snapshot["notes"]
    poor["log"][0]["outcome"]["patch"] = [{"op": "replace", "path": "/cash", "value": -1}]
    poor["state"]["cash"] = -1
    with pytest.raises(StateError, match="the till is empty"):
        World.restore(rules, poor)


def test_reality_is_kept_and_its_break_is_a_departure():
    world = World(shop(), state=START)
    made = {"id": "1", "name": "set", "args": {"path": ["cash"], "value": "much"}}
    entry = world.record(made, Answer("ok", None))
    assert entry["departure"]["code"] == "state"
    assert world.state["cash"] == "much"
    assert world.log[0]["outcome"]["violations"][0]["part"] == "state"
    # what reality broke is not blamed on later calls, what they break is
    assert put(world, ["orders", "8"], {"amount": 1})["status"] == "ok"
    assert put(world, ["orders", "8"], {"amount": "1"})["status"] == "error"


def test_an_observation_that_breaks_the_schema_is_not_booked():
    contract = {"observes": [{"op": "add", "path": ["orders", "8"], "value": "{{ result }}"}]}
    get = ToolSpec(name="get", effect="read", stated=True, real=lambda: {"amount": "many"})
    toolkit = Toolkit.from_tools([Tool(get, contract=contract)], state_schema=SCHEMA).open("get")
    world = World(toolkit, state=START)
    outcome = world.call({"name": "get", "args": {}})["outcome"]
    assert outcome["result"] == {"amount": "many"}
    assert "its observation is not booked" in texts(outcome, "undocumented")[0]
    assert world.state == START


NEXT = {"$ref": "#/components/schemas/Order"}
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "paths": {"/orders": {"get": {"operationId": "listOrders", "responses": {"200": {"description": "all"}}}}},
    "components": {"schemas": {"Order": {**ORDER, "properties": {**ORDER["properties"], "next": NEXT}}}},
    "x-state": {"type": "object", "properties": {"orders": {"additionalProperties": NEXT}}},
}


@pytest.mark.parametrize(
    ("schema", "fault", "line"),
    [
        ('{"$ref": "#/$defs/a",\n "$defs": {"a": {"$ref": "#/$defs/a"}}}', "to itself", 2),
        ('{"properties": {"a": {},\n "b": {"minimum": "x"}}}', "/properties/b/minimum: expected a number", 3),
    ],
)
def test_a_broken_schema_in_a_file_is_refused_with_the_line(tmp_path, schema, fault, line):
    file = tmp_path / "rules.json"
    file.write_text(f'{{"contracts": {{}},\n"state": {schema}}}')
    with pytest.raises(ContractError) as error:
        shop().with_contracts(file)
    assert str(error.value).startswith(f"{file}: state/")
    assert fault in str(error.value)
    assert str(error.value).endswith(f"(line {line})")
    file.write_text(json.dumps({**DOCUMENT, "x-state": json.loads(schema)}, indent=1))
    with pytest.raises(ContractError, match=r"rules.json#/x-state/.* \(line \d+\)$"):
        Toolkit.from_openapi(file)


def test_mounted_and_merged_toolkits_have_one_schema():
    tools = [ToolSpec(name="look", effect="read")]
    files = Toolkit(tools).with_contracts(
        {"state": {"properties": {"cwd": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "array"}}}}
    )
    both = shop().mount("shop") + files.mount(["a/b", "files"])
    rules = StateRules(both.state_schema)
    assert rules.faults({"shop": START, "a/b": {"files": {"cwd": []}}}) == []
    (fault,) = rules.faults({"shop": START, "a/b": {"files": {"cwd": "x"}}})
    assert "files/cwd: expected an array" in fault
    (fault,) = rules.faults({"shop": {**START, "cash": "x"}, "a/b": {"files": {}}})
    assert "/shop/cash: expected a number" in fault


def test_the_agent_keeps_what_reality_breaks_and_goes_on_from_it():
    def sell(item: str) -> dict:
        """Sell an item."""
        return {"id": "real-1000"}

    def simulated(state: dict, item: str) -> dict:
        state["sold"]["sim-1"] = item
        return {"id": "sim-1"}

    short = {"properties": {"sold": {"propertyNames": {"maxLength": 6}}}, "required": ["sold"]}
    toolkit = Toolkit.from_tools([Tool(sell, simulate=simulated, effect="write")], state_schema=short)
    sells, told = [call("sell", item="ink"), {"say": "Sold."}], [{"say": "It is sold."}]
    planner = recorded({"planner": [sells, told]}, {"planner": [[{"say": "Ink."}]]})
    agent = make_agent(toolkit, model=Models(planner=planner))
    sold = [{"description": "one is sold", "check": "len(state.sold) == 1"}]
    out = agent.invoke({"messages": [("user", "Sell ink")], "task_state": {"sold": {}}, "checklist": sold}, thread())
    assert out["task_state"] == {"sold": {"real-1000": "ink"}}
    (entry,) = out["execution"]["calls"]
    assert entry["departure"]["code"] == "state"
    assert "/sold" in entry["departure"]["message"]
    out = agent.invoke({"messages": [("user", "What was sold?")], "checklist": sold}, thread())
    assert out["messages"][-1].text == "Ink."
    with pytest.raises(StateError, match=r"task_state: /sold"):  # a state of the caller's own is refused
        agent.invoke({"messages": [("user", "And?")], "task_state": {"sold": {"by hand": "ink"}}}, thread())
