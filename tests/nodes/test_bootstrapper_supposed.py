"""bootstrapper: a state that is made up fits contracts and `x-state`, and everybody sees what was made up."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoContext, Toolkit, create_gecko
from gecko_graph.errors import StateError
from gecko_graph.models.ask import Reply
from gecko_graph.models.roles import InitialState
from gecko_graph.nodes.bootstrapper import bootstrapper
from gecko_graph.testing import drive, recorded
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.world.state_rules import examine_contracts
from tests.doubts import texts

EXAMPLES = Path(__file__).parents[2] / "examples"
SHOP = Toolkit.from_openapi(EXAMPLES / "shop" / "shop.openapi.yaml")
FITTING = {
    "customer": {"name": "Alex", "credit": 150.0},
    "products": {"LAMP-100": {"name": "Desk lamp", "price": 29.9, "stock": 14}},
    "cart": {},
    "orders": {},
}
TASK = "Order two desk lamps"


def boot(*replies, toolkit=SHOP, task_state=None, **more):
    state = {"messages": [HumanMessage(TASK)], "task_state": task_state, **more}
    return drive(partial(bootstrapper, toolkit=toolkit), state, replies, roles=("bootstrapper",))


@pytest.fixture(scope="module")
def live(read_jsonl):
    _, row, *_ = (row for row in read_jsonl("live_replies.jsonl.gz") if row["role"] == "bootstrapper")
    return row["reply"]["json"]


def test_a_live_model_s_state_of_the_shop_is_repaired_once_with_the_errors(live):
    update, asks, (event,) = boot(live, {"domain": FITTING, "runtime_state": {}})
    first, again = asks
    assert first.variables["contracts"].startswith("keys: cart, customer, orders, products\nshared: ")
    assert "state.products.items()" in first.variables["contracts"]
    assert (first.variables["previous"], first.variables["problems"], first.where.question) == ("", "", 0)
    assert ".items() needs an object, not a list, in `state.products.items()`" in again.variables["problems"]
    assert "showAccount: returns.name: unknown key state.customer" in again.variables["problems"]
    assert '"sku": "LAMP-100"' in again.variables["previous"]
    assert again.where.question == 1
    assert update["task_state"] == {**FITTING, "runtime_state": {}}
    assert texts(event, "unclear") == []


@pytest.mark.parametrize("second", [Reply(None, "the server is down"), None])
def test_a_state_that_fits_no_better_after_the_repair_is_taken_with_a_mark(live, second):
    update, _, (event,) = boot(live, live if second is None else second)
    assert update["task_state"]["products"] == live["domain"]["products"]
    says = "findProducts: returns.products.for_each: .items() needs an object, not a list"
    assert any(says in line for line in texts(event, "unclear"))
    assert texts(update["bookkeeping"].value["supposed_state"], "unclear") == texts(event, "unclear")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"products": [{"sku": "LAMP-100", "name": "x", "price": 1, "stock": 2}]},
            ".items() needs an object, not a list",
        ),
        ({"cart": []}, "values() needs an object"),
        ({"orders": []}, "values needs an object"),
        ({"customer": None}, "state.customer.credit is undefined"),
        ({"products": {"LAMP-100": {"name": "x", "price": "29.90", "stock": 99}}}, "* needs a number, not a text"),
        ({"products": {"LAMP-100": {"name": "x", "price": 29.90}}}, "unknown key product.stock"),
        ({"customer": {"name": "Alex", "credit": -1}}, "the credit would fall below zero"),
    ],
)
def test_a_state_of_another_shape_is_found(change, says):
    assert says in "\n".join(examine_contracts(SHOP, FITTING | change))


def test_conditions_that_are_merely_false_are_no_misfit():
    assert examine_contracts(SHOP, FITTING) == []
    assert examine_contracts(SHOP, FITTING | {"products": {}, "customer": {"name": "", "credit": 0}}) == []


def test_no_real_file_system_is_a_misfit(read_jsonl):
    files = Toolkit.from_openapi(EXAMPLES / "files" / "files.openapi.yaml")
    rows = read_jsonl("bfcl_multiturn_calls.jsonl.gz")
    starts = [row["initial_state"].get("GorillaFileSystem") for row in rows]
    starts = list({json.dumps(start): start for start in starts if start}.values())
    assert len(starts) > 30
    assert [start for start in starts if examine_contracts(files, start)] == []


def test_what_was_made_up_is_streamed_and_recorded_by_place():
    made = {"domain": {"a/b": {"x": 1}, "trays": {}}, "runtime_state": {}}
    update, _, (event,) = boot(made, toolkit=Toolkit([ToolSpec(name="look")]))
    paths, domain = ["/a~1b", "/trays"], {"a/b": {"x": 1}, "trays": {}}
    assert update["supposed"] == paths
    assert update["bookkeeping"].value["supposed_state"] == {"paths": paths, "state": domain}
    told = {"supposed": paths, "state": domain}
    assert event == {"v": 1, "type": "gecko.state", "attempt": 0, **told}
    update, _, events = boot(toolkit=SHOP, task_state=FITTING)
    assert (update["supposed"], update["bookkeeping"].value["supposed_state"], events) == ([], None, [])


@pytest.mark.parametrize(
    "reply",
    [
        {"users": {"ann": 1}, "runtime_state": {"cwd": "/"}},
        {"domain": {"users": {"ann": 1}}, "runtime_state": {"cwd": "/"}},
        {"domain": {}, "users": {"ann": 1}, "runtime_state": {"cwd": "/"}},
        {"toolkits": {"Mail": {"users": {"ann": 1}}}, "runtime_state": {"cwd": "/"}},
        {"domain": {"toolkits": {"Mail": {"users": {"ann": 1}}, "Empty": {}}}, "runtime_state": {"cwd": "/"}},
    ],
)
def test_flat_replies_and_sections_are_read_as_the_domain(reply):
    read = InitialState.model_validate(reply)
    assert (read.domain, read.runtime_state) == ({"users": {"ann": 1}}, {"cwd": "/"})


LOOK = Toolkit([ToolSpec(name="look", effect="read", result={"type": "string"})])


def rehearse(gecko, thread, **given):
    turn = {"messages": [("user", "look around")], "checklist": [{"id": "a", "check": "True"}], **given}
    parts = list(gecko.stream(turn, {"configurable": {"thread_id": thread}}, stream_mode=["custom", "values"]))
    events = [data for mode, data in parts if mode == "custom" and data["type"] == "gecko.state"]
    return parts[-1][1]["rehearsal"], events


def test_a_thread_remembers_what_was_made_up_until_the_caller_gives_a_state():
    made = {"domain": {"desk": 1}, "runtime_state": {"user": "ann"}}
    model = recorded(*[{"planner": [[{"say": "Done."}]], "bootstrapper": [made]}] * 3)
    gecko = create_gecko(LOOK, model=model, checkpointer=InMemorySaver(), context=GeckoContext(max_retries=0))
    first, events = rehearse(gecko, "t")
    told = {"paths": ["/desk", "/runtime_state"], "state": {"desk": 1, "runtime_state": {"user": "ann"}}}
    assert first["supposed_state"] == told
    assert [event["supposed"] for event in events] == [told["paths"]]
    second, _ = rehearse(gecko, "t")
    assert second["supposed_state"] == told
    third, events = rehearse(gecko, "t", task_state={"desk": 2, "runtime_state": {}})
    assert "supposed_state" not in third
    assert events == []


RUNTIME = {"type": "object", "properties": {"user": {"type": "string"}}, "required": ["user"]}
SCHEMA = {
    "type": "object",
    "properties": {"stock": {"type": "object", "additionalProperties": {"type": "integer"}}, "runtime_state": RUNTIME},
    "required": ["stock", "runtime_state"],
}
FULL = {"check": "sum(state.stock.values()) < 10", "error": "the room is full"}
TYPED = Toolkit.from_tools([ToolSpec(name="look", effect="read")], state_schema=SCHEMA, invariants=[FULL])
GOOD = {"domain": {"stock": {"tea": 3}}, "runtime_state": {"user": "ann"}}
WHOLE = {"stock": {"tea": 3}, "runtime_state": {"user": "ann"}}


def boot_typed(*replies, given=None, roles=("bootstrapper",), **more):
    state = {"messages": [HumanMessage("Sell tea")], "task_state": given, **more}
    return drive(partial(bootstrapper, toolkit=TYPED), state, replies, roles=roles)


def test_the_model_is_shown_the_schema():
    (ask,) = boot_typed(GOOD).asks
    assert '"stock"' in ask.variables["schema"]
    assert boot_typed(GOOD).update["task_state"] == WHOLE


@pytest.mark.parametrize(
    ("domain", "fault"),
    [
        ({"stock": {"tea": "3"}}, '/stock/tea: expected an integer, got "3"'),
        ({"stock": {"tea": 30}}, "the room is full"),
        ({}, "/stock: expected an object; it is required"),
    ],
)
def test_what_breaks_the_schema_is_repaired_once_then_left_out(domain, fault):
    bad = {"domain": domain, "runtime_state": {"user": "ann"}}
    driven = boot_typed(bad, GOOD)
    assert fault in driven.asks[1].variables["problems"]
    assert driven.update["task_state"] == WHOLE
    update, _, (event,) = boot_typed(bad, bad)
    assert update["task_state"] == {}
    assert fault in texts(update["bookkeeping"].value["supposed_state"], "unclear")[0]
    assert texts(event, "unclear") == texts(update["bookkeeping"].value["supposed_state"], "unclear")
    assert boot_typed(bad, Reply(None, "the server is down")).update["task_state"] == {}


def test_a_given_state_that_breaks_a_rule_is_refused_before_a_model_is_asked():
    for given, message in [({"stock": {"tea": "3"}}, r"task_state: /stock/tea"), ({"stock": {"tea": 12}}, "full")]:
        with pytest.raises(StateError, match=message):
            boot_typed(given=given)
        with pytest.raises(StateError, match=message):
            boot_typed(given={**given, "runtime_state": {"user": "ann"}}, roles=())


def test_what_reality_has_left_is_not_refused():
    real = {"stock": {"tea": "3"}, "runtime_state": {"user": "ann"}}
    going_on = {"steps": [], "lesson": None, "attempts": 0, "real": True}
    assert boot_typed(given=real, continued=going_on).update["task_state"] == real
