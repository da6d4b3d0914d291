"""bootstrapper: a state that is made up fits the contracts, and everybody sees what was made up."""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoContext, Toolkit, create_gecko
from gecko_graph.contracts.contract import Contract
from gecko_graph.models.ask import Reply
from gecko_graph.models.roles import InitialState
from gecko_graph.nodes.bootstrapper import bootstrapper
from gecko_graph.testing import drive, recorded
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.world.trial import try_contracts

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
def live(shared_data):
    path = shared_data / "live_replies.jsonl.gz"
    if not path.is_file():
        pytest.skip("no recorded replies of a live model")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["role"] == "bootstrapper"]
    return rows[1]["reply"]["json"]


def test_a_live_model_s_state_of_the_shop_is_repaired_once_with_the_errors(live):
    update, asks, (event,) = boot(live, {"domain": FITTING, "runtime_state": {}})
    first, again = asks
    assert first.variables["contracts"].startswith("keys: cart, customer, orders, products\nshared: ")
    assert "state.products | items" in first.variables["contracts"]
    assert (first.variables["previous"], first.variables["problems"], first.where.question) == ("", "", 0)
    assert "items needs an object, not a list, in `state.products | items`" in again.variables["problems"]
    assert "showAccount: returns.name: state.customer is undefined" in again.variables["problems"]
    assert '"sku": "LAMP-100"' in again.variables["previous"]
    assert again.where.question == 1
    assert update["task_state"] == {**FITTING, "runtime_state": {}}
    assert event["unclear"] == []


@pytest.mark.parametrize("second", [Reply(None, "the server is down"), None])
def test_a_state_that_fits_no_better_after_the_repair_is_taken_with_a_mark(live, second):
    update, _, (event,) = boot(live, live if second is None else second)
    assert update["task_state"]["products"] == live["domain"]["products"]
    assert "findProducts: returns.products.for_each: items needs an object, not a list" in event["unclear"][1]
    assert update["supposed_state"]["unclear"] == event["unclear"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"products": [{"sku": "LAMP-100", "name": "x", "price": 1, "stock": 2}]}, "items needs an object, not a list"),
        ({"cart": []}, "values needs an object"),
        ({"orders": []}, "values needs an object"),
        ({"customer": None}, "state.customer.credit is undefined"),
        ({"products": {"LAMP-100": {"name": "x", "price": "29.90", "stock": 99}}}, "* needs a number, not a text"),
        ({"products": {"LAMP-100": {"name": "x", "price": 29.90}}}, "product.stock is undefined"),
        ({"customer": {"name": "Alex", "credit": -1}}, "the credit would fall below zero"),
    ],
)
def test_a_state_of_another_shape_is_found(change, says):
    assert says in "\n".join(try_contracts(SHOP, FITTING | change, seed=0))


@pytest.mark.parametrize(
    ("check", "is_misfit"),
    [
        ("args.sku in state.products", True),
        ("args.sku in state.products and state.products[args.sku].stock > 0", True),
        ("state.products | selectattr('sku', 'eq', args.sku) | list | length > 0", False),
        ("state.products | selectattr('sku', 'eq', args.sku) | map(attribute='stock') | sum > 9", False),
        ("args.sku in state.sold", False),
    ],
)
def test_a_list_of_which_members_are_looked_up_by_name_is_found_though_the_condition_is_merely_false(check, is_misfit):
    contract = Contract.load(
        {"requires": [{"check": check, "error": "There is no such product"}], "returns": "ok"}, where="t"
    )
    parameters = {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}
    shop = Toolkit([ToolSpec(name="buy", effect="write", parameters=parameters, contract=contract)])
    state = {"products": [{"sku": "LAMP", "stock": 3}], "sold": ["CHAIR"]}
    says = ["buy: state.products is a list; its members are looked up by name: an object, {'LAMP': ...}"]
    assert try_contracts(shop, state, seed=0) == (says if is_misfit else [])


def test_conditions_that_are_merely_false_are_no_misfit():
    assert try_contracts(SHOP, FITTING, seed=0) == []
    assert try_contracts(SHOP, FITTING | {"products": {}, "customer": {"name": "", "credit": 0}}, seed=0) == []


def test_no_real_file_system_is_a_misfit(shared_data):
    files = Toolkit.from_openapi(EXAMPLES / "files" / "files.openapi.yaml")
    path = shared_data / "bfcl_multiturn_calls.jsonl.gz"
    if not path.is_file():
        pytest.skip("no recorded states")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        starts = [json.loads(line)["initial_state"].get("GorillaFileSystem") for line in lines]
    starts = list({json.dumps(start): start for start in starts if start}.values())
    assert len(starts) > 30
    assert [start for start in starts if try_contracts(files, start, seed=0)] == []


def test_a_given_state_is_never_tried():
    update, asks, events = boot({"domain": {}, "runtime_state": {"user": "a"}}, task_state={"products": []})
    assert len(asks) == 1
    assert asks[0].variables["contracts"] == ""
    assert update["task_state"] == {"products": [], "runtime_state": {"user": "a"}}
    assert update["supposed"] == ["/runtime_state"]
    assert events[0]["state"] == {"runtime_state": {"user": "a"}}


def test_what_was_made_up_is_streamed_and_recorded_by_place():
    made = {"domain": {"a/b": {"x": 1}, "trays": {}}, "runtime_state": {}}
    update, _, (event,) = boot(made, toolkit=Toolkit([ToolSpec(name="look")]))
    paths, domain = ["/a~1b", "/trays"], {"a/b": {"x": 1}, "trays": {}}
    assert update["supposed"] == paths
    assert update["supposed_state"] == {"paths": paths, "state": domain, "unclear": []}
    told = {"supposed": paths, "state": domain, "unclear": []}
    assert event == {"v": 1, "type": "gecko.state", "attempt": 0, **told}
    update, _, events = boot(toolkit=SHOP, task_state=FITTING)
    assert (update["supposed"], update["supposed_state"], events) == ([], None, [])


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


def test_toolkits_that_are_data_stay():
    assert InitialState.model_validate({"domain": {"toolkits": ["a"]}}).domain == {"toolkits": ["a"]}


LOOK = Toolkit([ToolSpec(name="look", effect="read", result={"type": "string"})])


def rehearse(gecko, thread, **given):
    turn = {"messages": [("user", "look around")], "checklist": [{"id": "a", "check": "true"}], **given}
    parts = list(gecko.stream(turn, {"configurable": {"thread_id": thread}}, stream_mode=["custom", "values"]))
    events = [data for mode, data in parts if mode == "custom" and data["type"] == "gecko.state"]
    return parts[-1][1]["rehearsal"], events


def test_a_thread_remembers_what_was_made_up_until_the_caller_gives_a_state():
    made = {"domain": {"desk": 1}, "runtime_state": {"user": "ann"}}
    model = recorded(*[{"planner": [[{"say": "Done."}]], "bootstrapper": [made]}] * 3)
    gecko = create_gecko(LOOK, model=model, checkpointer=InMemorySaver(), context=GeckoContext(max_retries=0))
    first, events = rehearse(gecko, "t")
    told = {"paths": ["/desk", "/runtime_state"], "state": {"desk": 1, "runtime_state": {"user": "ann"}}, "unclear": []}
    assert first["supposed_state"] == told
    assert [event["supposed"] for event in events] == [told["paths"]]
    second, _ = rehearse(gecko, "t")
    assert second["supposed_state"] == told
    third, events = rehearse(gecko, "t", task_state={"desk": 2, "runtime_state": {}})
    assert "supposed_state" not in third
    assert events == []
