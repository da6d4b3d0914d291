"""The order service: what it does is what its contracts say, once for each key, and each fault is what it is called."""

from __future__ import annotations

import json

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gecko_graph import World
from gecko_graph.errors import InDoubt
from gecko_graph.scenario.case import service_module
from gecko_graph.schemas.complaints import find_faults as schema_faults
from gecko_graph.tools.real import as_answer

OrderService, START, FAULTS, plan_faults = map(service_module().get, ("OrderService", "START", "FAULTS", "plan_faults"))


def real(toolkit, name, **args):
    answer = as_answer(toolkit[name].real(**args))
    return answer.status, answer.result


CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("findItems"), st.sampled_from([{}, {"text": "te"}, {"text": "tea", "max_price": 8.9}])),
        st.tuples(st.just("showAccount"), st.just({})),
        st.tuples(st.just("listOrders"), st.sampled_from([{}, {"status": "placed"}, {"status": "cancelled"}])),
        st.tuples(st.just("showOrder"), st.fixed_dictionaries({"order_id": st.sampled_from([0, 1, "none"])})),
        st.tuples(st.just("cancelOrder"), st.fixed_dictionaries({"order_id": st.sampled_from([0, 1, "none"])})),
        st.tuples(
            st.just("placeOrder"),
            st.fixed_dictionaries(
                {"sku": st.sampled_from(["MUG", "TEA", "POT", "TIN", "NO"]), "quantity": st.integers(1, 7)}
            ),
        ),
        st.tuples(
            st.just("refundOrder"),
            st.fixed_dictionaries(
                {"order_id": st.sampled_from([0, 1, "none"]), "amount": st.sampled_from([0.01, 3.3, 14.5, 100])}
            ),
        ),
    ),
    max_size=12,
)


def at(state, args):
    """The arguments with the identifier of the order that was placed so many orders ago."""
    ids = [*state["orders"]]
    if isinstance(args.get("order_id"), int):
        return {**args, "order_id": ids[args["order_id"]] if args["order_id"] < len(ids) else "none"}
    return args


def without_ids(value, ids):
    text = json.dumps(value)
    for number, name in enumerate(ids):
        text = text.replace(json.dumps(name)[1:-1], f"#{number}")
    return json.loads(text)


@settings(max_examples=15, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
@given(CALLS)
def test_service_and_contracts_agree(calls):
    """The rehearsal's state mirrors the service's, call by call; only the orders' identifiers are made up."""
    with OrderService() as service:
        toolkit = service.toolkit()
        world = World(toolkit, state=START)
        for name, args in calls:
            predicted = world.call({"name": name, "args": at(world.state, args)})["outcome"]
            status, result = real(toolkit, name, **at(service.state(), args))
            ids = [[*world.state["orders"]], [*service.state()["orders"]]]
            assert (predicted["status"], without_ids(predicted["result"], ids[0])) == (
                status,
                without_ids(result, ids[1]),
            )
            if status == "ok":
                assert schema_faults(toolkit[name].result, result) == []
            assert without_ids(world.state, ids[0]) == without_ids(service.state(), ids[1])


def test_a_key_is_honoured_once_and_only_for_its_call():
    with OrderService() as service:
        toolkit = service.toolkit()
        first = real(toolkit, "placeOrder", sku="MUG", quantity=1, idempotency_key="k")
        assert real(toolkit, "placeOrder", sku="MUG", quantity=1, idempotency_key="k") == first
        assert real(toolkit, "placeOrder", sku="MUG", quantity=2, idempotency_key="k")[0] == "error"
        assert real(toolkit, "cancelOrder", order_id="A-1001", idempotency_key="k")[0] == "error"
        assert len(service.state()["orders"]) == 1
        (entry,) = httpx.get(f"{service.url}/log", trust_env=False).json()
        assert entry == service.log()[0]
        assert (entry["operation"], entry["key"], entry["result"]) == ("place_order", "k", first[1])


def test_without_keys_the_tools_take_none_and_every_call_is_done():
    with OrderService(idempotent=False) as service:
        toolkit = service.toolkit()
        assert {tool.idempotency for tool in toolkit} == {None}
        for _ in range(2):
            assert real(toolkit, "placeOrder", sku="MUG", quantity=1)[0] == "ok"
        assert len(service.state()["orders"]) == 2


DONE = {"500 after": True, "timeout after": True, "lost after": True, "slow": True, "wrong schema": True}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_what_it_is_called(fault):
    with OrderService([fault]) as service, httpx.Client(timeout=0.5, trust_env=False) as client:
        toolkit = service.toolkit(client=client)
        order = {"sku": "MUG", "quantity": 1, "idempotency_key": "k"}
        if fault.startswith(("500", "timeout", "lost")):
            with pytest.raises(InDoubt):
                toolkit["placeOrder"].real(**order)
        else:
            status, result = real(toolkit, "placeOrder", **order)
            assert (status, "order_id" in result) == ("error" if fault == "429" else "ok", fault == "slow")
        assert len(service.state()["orders"]) == DONE.get(fault, False)
        assert real(toolkit, "placeOrder", **order)[1]["order_id"] == "A-1001"
        assert len(service.log()) == 1
