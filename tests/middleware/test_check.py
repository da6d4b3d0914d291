"""`Toolkit.check`, `Toolkit.as_tools`, and a world that follows reality."""

from __future__ import annotations

import asyncio

import pytest

from gecko_graph import GeckoContext, Tool, Toolkit, World
from gecko_graph.errors import InDoubt, ToolkitError
from gecko_graph.world.rung import Answer
from tests.doubts import texts
from tests.middleware.bank import STATE, Bank, pay


def call(amount: object, id_: str = "a") -> dict:
    _, name, args = pay(id_, amount)
    return {"id": id_, "name": name, "args": args}


@pytest.mark.parametrize(
    ("given", "key", "words"),
    [
        (call(100), None, ""),
        (call(101), "error", "only 100 left"),
        (call("much"), "complaints", "an integer"),
        ({"name": "transfr", "args": {}}, "complaints", "one of the given tools"),
        ({"name": "transfer", "args": "{"}, "complaints", "one JSON object"),
        ({"name": 5}, "complaints", "call as"),
    ],
)
def test_the_gate_as_a_plain_call(given, key, words):
    state = {**STATE}
    found = Bank().toolkit().check(given, state)
    assert (found and next(iter(found))) == key
    assert words in str(found)
    assert state == STATE


def test_the_gate_agrees_with_a_rehearsed_call():
    toolkit = Bank().toolkit()
    for amount in (1, 100, 101, "x", None):
        step = World(toolkit, state=STATE).call(call(amount))
        refused = "complaints" in step or step["outcome"]["status"] == "error"
        assert bool(toolkit.check(call(amount), STATE)) == refused


def test_a_condition_that_cannot_be_evaluated_refuses_only_where_that_is_wanted():
    toolkit = Bank().toolkit()
    assert toolkit.check(call(1), {}) is None
    assert "could not be evaluated" in str(toolkit.check(call(1), {}, unclear="refuse"))
    assert World(toolkit, context=GeckoContext(unclear="refuse")).check(call(1))


def invoke(tool, args: dict):
    return tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": args})


def test_as_tools_run_the_real_functions():
    bank = Bank()
    transfer, balance = bank.toolkit().as_tools()
    assert transfer.tool_call_schema["properties"]["amount"] == {"type": "integer", "description": "How much."}
    assert invoke(transfer, {"to": "ann", "amount": 3}).content == '{"id": "real-1", "left": 97}'
    assert asyncio.run(balance.ainvoke({})) == '{"balance": 97}'
    refused = invoke(transfer, {"to": "ann"})
    assert (refused.status, len(bank.calls)) == ("error", 2)
    assert "required" in refused.content


def test_a_world_follows_reality():
    world = World(Bank().toolkit(), state=STATE)
    entry = world.record(call(30), Answer("ok", {"id": "real-1", "left": 70}))
    assert world.state == {"balance": 70, "transfers": {"real-1": 30}}
    assert entry["drift"] == []
    assert "departure" not in entry
    wrong = world.record(call(30), Answer("ok", {"id": "real-2", "left": -5}))
    assert wrong["departure"]["code"] == "ensures"
    assert [drift["path"] for drift in wrong["drift"]] == ["/left"]
    assert world.state["balance"] == 40, "it really happened"
    assert world.record(call(5), Answer("error", "closed"))["drift"][0]["kind"] == "status"
    assert World.restore(Bank().toolkit(), world.snapshot()).snapshot() == world.snapshot()
    with pytest.raises(ToolkitError, match="unknown tool 'x'"):
        world.record({"id": "1", "name": "x", "args": {}}, Answer("ok", 1))


def test_records_are_replayed_and_what_does_not_apply_is_left_out():
    world = World(Bank().toolkit(), state=STATE)
    world.call(call(10))
    other = World(Bank().toolkit(), state=STATE)
    other.replay(world.records())
    assert other.snapshot() == world.snapshot()
    broken = World(Bank().toolkit(), state={})
    broken.replay(world.records())
    assert broken.state == {}
    assert "does not apply" in texts(broken.log[0]["outcome"], "refused")[0]
    assert asyncio.run(broken.acall_all([])) == []


def test_as_tools_errors_names_keys_and_arguments_of_any_name():
    keys = []

    def order(config: str, key: str, tags: str = "") -> str:
        keys.append(key)
        if config == "lost":
            raise InDoubt("no answer came")
        return f"{config} {tags}"

    described = {"name": "math.hypot", "description": "", "parameters": {"type": "object", "properties": {}}}
    toolkit = Toolkit.from_tools([Tool(order, idempotency="key", effect="write"), described])
    real, without = toolkit.as_tools()
    assert invoke(real, {"config": "c", "tags": "r"}).content == "c r"
    lost = invoke(real, {"config": "lost"})
    assert lost.status == "error"
    assert "not known whether" in lost.content
    assert len(set(keys)) == 2
    assert without.name == "math_hypot"
    answer = invoke(without, {})
    assert (answer.status, "no real function" in answer.content) == ("error", True)


def test_what_no_rule_predicts_does_not_drift():
    world = World(Bank().bare().declare(Tool("balance", result={"type": "object"})), state=STATE)
    assert world.record({"id": "b", "name": "balance", "args": {}}, Answer("ok", {"balance": 3}))["drift"] == []
    entry = world.record({"id": "c", "name": "balance", "args": {}}, Answer("ok", 3))
    (drift,) = entry["drift"]
    assert drift["kind"] == "schema"
    assert texts(entry, "undocumented") == [f"the result breaks its schema: {drift['real']}"]
    assert texts(entry, "undocumented") == texts(world.log[-1]["outcome"], "undocumented")
    seen = World(Bank().bare()).call(call(1))["outcome"]
    assert world.record(call(1), Answer("ok", {"id": "x", "left": 1}), {**seen, "result": {"left": 2}})["drift"]
