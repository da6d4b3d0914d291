"""The agent against an MCP server: rehearsed, reviewed, carried out; also where the server lies, or dies."""

import pytest

pytest.importorskip("mcp.server.mcpserver", reason="the extra `mcp` (2.x) is not installed")

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph import GeckoContext, Models, Tool, Toolkit, create_gecko, create_gecko_agent
from gecko_graph.testing import recorded
from tests.agents import thread
from tests.tools.mcp_server import ORDER, Shop, result, serving

TASK = {"messages": [("user", "Order a pen")], "task_state": {"orders": {}}}
CHECK = [{"description": "something is ordered", "check": "len(state.orders) == 1"}]
PLAN = [{"call": "order", "args": {"item": "pen"}}, {"say": "Ordered."}]
APPROVE = Command(resume={"decisions": [{"type": "approve"}]})
SEEN = [{"description": "the pen is ordered"}]
LIES = {"annotations": {"readOnlyHint": True}}


def order(state, item):
    state["orders"][str(7000 + len(state["orders"]))] = item
    return {"id": 7000 + len(state["orders"]) - 1, "item": item}


def agent_of(toolkit, *, interrupt_on="writes", simulate=order):
    toolkit = toolkit.declare(Tool("order", simulate=simulate))
    return create_gecko_agent(
        toolkit, model=Models(planner=recorded(planner=[PLAN])), interrupt_on=interrupt_on, checkpointer=InMemorySaver()
    )


def as_read(toolkit):
    return toolkit.declare(Tool("order", simulate=lambda state, item: {"id": 1, "item": item}))


def judged():
    judge = recorded(judge=[{"items": [{"id": "item-1", "status": "success"}]}])
    return {"planner": recorded(planner=[PLAN]), "judge": judge}


def test_rehearsed_reviewed_and_carried_out():
    shop = Shop()
    with serving(shop) as url, Toolkit.from_mcp(url, auth="sesame-1234") as toolkit:
        agent = agent_of(toolkit)
        (asked,) = agent.invoke({**TASK, "checklist": CHECK}, thread())["__interrupt__"]
        assert [each["name"] for each in asked.value["action_requests"]] == ["order"]
        assert shop.orders == []
        out = agent.invoke(APPROVE, thread())
        kept = repr(list(agent.get_state_history(thread())))
    assert out["execution"]["status"] == "done"
    assert out["execution"]["calls"][0]["result"] == {"id": 1, "item": "pen"}
    assert out["task_state"] == {"orders": {"1": "pen"}}
    assert shop.orders == ["pen"]
    assert "sesame" not in kept


def dying(*tools):
    def die(item):
        shop.orders.append(item)
        raise RuntimeError("gone")

    shop = Shop(tools or [ORDER], order=die)
    return shop


def test_a_write_that_is_called_a_read_is_reviewed_and_never_repeated():
    shop = dying({**ORDER, **LIES})
    with Toolkit.from_mcp(shop.server) as toolkit:
        assert toolkit["order"].reads
        agent = create_gecko_agent(as_read(toolkit), model=Models(**judged()), checkpointer=InMemorySaver())
        (asked,) = agent.invoke({**TASK, "checklist": SEEN}, thread())["__interrupt__"]
        assert asked.value["action_requests"][0]["name"] == "order"
        assert shop.orders == []
        (doubt,) = agent.invoke(APPROVE, thread())["__interrupt__"]
        assert "not known whether it took effect" in doubt.value["action_requests"][0]["description"]
    assert shop.orders == ["pen"]


@pytest.mark.parametrize("trust_hints", [False, True])
def test_a_claimed_read_runs_in_a_rehearsal_only_where_claims_are_trusted(trust_hints):
    shop = Shop([{**ORDER, **LIES}], order=result({"id": 9}))
    with Toolkit.from_mcp(shop.server, trust_hints=trust_hints) as toolkit:
        rehearsal = create_gecko(as_read(toolkit), model=Models(**judged()), context=GeckoContext(reads="real"))
        rehearsal.invoke({**TASK, "checklist": SEEN})
    assert shop.calls == (["order"] if trust_hints else [])


def test_a_server_that_dies_in_the_call_leaves_a_doubt_that_a_person_settles():
    shop = dying()
    with Toolkit.from_mcp(shop.server) as toolkit:
        agent = agent_of(toolkit, interrupt_on="none")
        (doubt,) = agent.invoke({**TASK, "checklist": CHECK}, thread())["__interrupt__"]
        assert doubt.value["review_configs"][0]["allowed_decisions"] == ["happened", "make_now", "skip"]
        done = {"type": "happened", "message": '{"id": 1, "item": "pen"}'}
        out = agent.invoke(Command(resume={"decisions": [done]}), thread())
    assert shop.orders == ["pen"]
    assert out["execution"]["status"] == "done"
    assert out["execution"]["calls"][0]["by"] == "person"
