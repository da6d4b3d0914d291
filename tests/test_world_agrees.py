"""Graph and World agree call by call: the same steps and the same states, whoever answers."""

from __future__ import annotations

from typing import Any

import pytest

from gecko_graph import GeckoContext, Models, Tool, Toolkit, World, create_gecko
from gecko_graph.testing import recorded
from gecko_graph.values.patch import apply_patch


def function(name: str, /, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": f"{name} something", "parameters": schema}


def simulated_sell(state: dict, name: str, amount: int) -> dict:
    if state["stock"].get(name, 0) < amount:
        raise ValueError(f"too few of {name}")
    state["stock"][name] -= amount
    return {"left": state["stock"][name]}


NAME = {"type": "string", "minLength": 1}
AMOUNT = {"type": "integer", "minimum": 1}
FUNCTIONS = [
    function("stock_up", name=NAME, amount=AMOUNT),  # contract
    function("sell", name=NAME, amount=AMOUNT),  # python
    function("opening_hours"),  # example
    function("ask_supplier", name=NAME),  # model
    function("send_back", name=NAME),  # model, a write
    function("shelf_of", name={"type": "string", "maxLength": 1}),  # schema
]
STOCK_UP = {
    "requires": [{"check": "args.name in state.stock", "error": "no such thing"}],
    "effects": [
        {"op": "replace", "path": ["stock", "{{ args.name }}"], "value": "{{ state.stock[args.name] + args.amount }}"}
    ],
    "returns": {"now": "{{ state.stock[args.name] }}"},
    "ensures": [{"check": "state.stock[args.name] <= 9", "error": "the shelf is full"}],
}
SHELF = Toolkit.from_tools(
    FUNCTIONS, invariants=[{"check": "sum(state.stock.values()) < 15", "error": "the room is full"}]
).declare(
    Tool("stock_up", contract=STOCK_UP),
    Tool("sell", simulate=simulated_sell),
    Tool("opening_hours", effect="read", examples=[{"args": {}, "result": {"from": "9:00"}}]),
    Tool("ask_supplier", effect="read"),
    Tool("shelf_of", effect="read"),
    Tool("send_back", effect="write"),
)
START = {"stock": {"tea": 3, "milk": 0}, "runtime_state": {}}
WRITES = [
    {"status": "ok", "result": {"back": True}, "patch": [{"op": "add", "path": "/sent", "value": "tea"}]},
    {"status": "ok", "result": {"back": True}, "patch": [{"op": "remove", "path": "/nowhere"}]},
    {"status": "error", "result": "closed", "patch": []},
    "unreadable",
]
TEA, HOURS = {"name": "tea"}, [("opening_hours", {})]
REFUSED = [("sell", '{"name": ')]
EVERY_RUNG = [
    [("stock_up", TEA | {"amount": 1})], [("sell", TEA | {"amount": 2})], HOURS, [("ask_supplier", TEA)],
    [("ask_supplier", TEA)], [("shelf_of", {"name": "m"})],
]  # fmt: skip
ERRORS = [
    [("stock_up", {"name": "gold", "amount": 1}), ("sell", TEA | {"amount": 9})],
    [("stock_up", TEA | {"amount": 9}), ("nope", {}), ("stock_up", {"name": "milk", "amount": 8})],
    [("sell", {"name": "", "amount": "1"}), ("sell", TEA | {"amount": 1, "more": None})],
    *[[("send_back", TEA)]] * 6,
    [("ask_supplier", TEA), ("ask_supplier", TEA | {"more": None})],
]


@pytest.mark.parametrize("simulation", ["fused", "separate"])
@pytest.mark.parametrize("messages", [EVERY_RUNG, ERRORS, [*[REFUSED] * 3, HOURS]])
def test_a_planner_and_a_world_come_to_the_same(messages, simulation):
    """The calls of each message, by a planner's attempt and one by one; a planner that repeats refusals is stopped."""
    replies = [{"status": "ok", "result": {"price": 3}}] if messages is EVERY_RUNG else WRITES * 5
    model = recorded(simulator=replies, validator=[{"problems": []}] * 40, state_updater=WRITES * 5)
    models = dict.fromkeys(("simulator", "validator", "state_updater"), model)
    context = GeckoContext(max_steps=500, max_retries=0, simulation=simulation)
    told = [{"calls": [{"call": name, "args": args} for name, args in calls]} for calls in messages]
    planner = recorded(planner=[[*told, {"say": "done"}]])
    gecko = create_gecko(SHELF, model=Models(**models, planner=planner), context=context)
    checks = [{"id": "any", "description": "anything", "check": "True"}]
    run = gecko.invoke({"messages": [("user", "do it")], "task_state": START, "checklist": checks})
    attempt = run["rehearsal"]["attempts"][0]
    by_id = {step["call"]["id"]: step for step in attempt["steps"]}
    world = World(SHELF, state=START, model=Models(**models), context=context)
    made = [
        {"name": name, "args": args, "id": f"call_1_1_{number}_{index}"}
        for number, calls in enumerate(messages)
        for index, (name, args) in enumerate(calls)
    ]
    assert attempt["stop"]["code"] == ("repeated_calls" if messages[0] is REFUSED else "answered")
    made = [call for call in made if call["id"] in by_id or messages[0] is not REFUSED]
    assert [world.call(call) for call in made] == [by_id[call["id"]] for call in made]
    assert world.state == apply_patch(START, attempt["change"])
    if messages is EVERY_RUNG:
        rungs = [step["outcome"]["rung"] for step in world.log]
        assert rungs == ["contract", "python", "example", "model", "model", "schema"]
