"""Graph and World agree call by call: the same steps and the same states, whoever answers."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from evals.speed import case
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
    {"status": "ok", "result": {"back": False}, "patch": []},
    {"status": "error", "result": "closed", "patch": []},
    "unreadable",
]
TEXT = st.sampled_from(["tea", "milk", "gold", "", 5])
NUMBER = st.sampled_from([1, 2, 9, 0, "1", None])
ARGS = st.fixed_dictionaries({}, optional={"name": TEXT, "amount": NUMBER, "more": st.none()}) | st.just('{"name": ')
FITTING = st.one_of(
    st.builds(lambda tool, name, n: (tool, {"name": name, "amount": n}), st.sampled_from(["stock_up", "sell"]),
              st.sampled_from(["tea", "milk"]), st.integers(1, 5)),
    st.builds(lambda tool, name: (tool, {"name": name}), st.sampled_from(["ask_supplier", "send_back", "shelf_of"]),
              st.sampled_from(["tea", "m"])),
    st.just(("opening_hours", {})),
)  # fmt: skip
ANY = st.tuples(st.sampled_from([*(each["name"] for each in FUNCTIONS), "nope"]), ARGS)
MESSAGES = st.lists(st.lists(FITTING | FITTING | ANY, min_size=1, max_size=3), max_size=6)


def rehearsed(toolkit: Toolkit, messages: list, state: dict, models: dict, context: GeckoContext) -> dict:
    """The attempt in which a planner makes these calls, so many in each message."""
    told = [{"calls": [{"call": name, "args": args} for name, args in calls]} for calls in messages]
    planner = recorded(planner=[[*told, {"say": "done"}]])
    gecko = create_gecko(toolkit, model=Models(**models, planner=planner), context=context)
    checks = [{"id": "any", "description": "anything", "check": "True"}]
    run = gecko.invoke({"messages": [("user", "do it")], "task_state": state, "checklist": checks})
    return run["rehearsal"]["attempts"][0]


def assert_agreement(toolkit: Toolkit, messages: list, state: dict, models: dict, **knobs: Any) -> World:
    context = GeckoContext(max_steps=500, max_retries=0, **knobs)
    attempt = rehearsed(toolkit, messages, state, models, context)
    world = World(toolkit, state=state, model=Models(**models), context=context)
    made = [(name, args) for calls in messages for name, args in calls]
    ids = [f"call_1_1_{number}_{index}" for number, calls in enumerate(messages) for index in range(len(calls))]
    told = [{"name": name, "args": args, "id": each} for (name, args), each in zip(made, ids, strict=True)]
    # the graph refuses a message's bad calls before it answers the others
    by_id = {step["call"]["id"]: step for step in attempt["steps"]}
    if attempt["stop"]["code"] == "repeated_calls":  # a planner that repeats refused calls is stopped; World has none
        told = [call for call in told if call["id"] in by_id]
    assert [world.call(call) for call in told] == [by_id[call["id"]] for call in told]
    assert world.state == apply_patch(state, attempt["change"])
    return world


REFUSED = [("sell", '{"name": ')]


@example([REFUSED, REFUSED, REFUSED, [("opening_hours", {})]], [], "fused")  # stopped before the last
@given(MESSAGES, st.lists(st.sampled_from(WRITES), min_size=40, max_size=40), st.sampled_from(["fused", "separate"]))
@settings(max_examples=60)
def test_random_calls_come_to_the_same(messages, writes, simulation):
    model = recorded(simulator=writes, validator=[{"problems": []}] * 40, state_updater=writes)
    models = {"simulator": model, "validator": model, "state_updater": model}
    assert_agreement(SHELF, messages, START, models, simulation=simulation)


def test_every_rung_is_among_them():
    calls = [
        ("stock_up", {"name": "tea", "amount": 1}), ("sell", {"name": "tea", "amount": 2}), ("opening_hours", {}),
        ("ask_supplier", {"name": "tea"}), ("ask_supplier", {"name": "tea"}), ("shelf_of", {"name": "m"}),
    ]  # fmt: skip
    models = {"simulator": recorded(simulator=[{"status": "ok", "result": {"price": 3}}])}
    world = assert_agreement(SHELF, [[each] for each in calls], START, models)
    rungs = [step["outcome"]["rung"] for step in world.log]
    assert rungs == ["contract", "python", "example", "model", "model", "schema"]


def test_recorded_calls_on_the_file_system_come_to_the_same(read_jsonl):
    toolkit = case.files_toolkit(contracts=True)
    tasks = [one for one in read_jsonl("bfcl_multiturn_calls.jsonl.gz") if "GorillaFileSystem" in one["initial_state"]]
    for task in tasks[:40]:
        made = [step for turn in task["turns"] for step in turn if step["class"] == "GorillaFileSystem"]
        calls = [(step["call"]["name"], step["call"]["args"]) for step in made]
        assert_agreement(toolkit, [[each] for each in calls], task["initial_state"]["GorillaFileSystem"], {})
