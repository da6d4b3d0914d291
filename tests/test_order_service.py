"""The order service: what it does is what its contracts say, once for each key, and each fault is what it is called."""

from __future__ import annotations

import httpx
import pytest

from gecko_graph.errors import InDoubt
from gecko_graph.scenario.examples import service_module
from gecko_graph.tools.real import as_answer

OrderService, START, FAULTS, plan_faults = map(service_module().get, ("OrderService", "START", "FAULTS", "plan_faults"))


def real(toolkit, name, **args):
    answer = as_answer(toolkit[name].real(**args))
    return answer.status, answer.result


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
