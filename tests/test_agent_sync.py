"""The agent's sync where no rule knows a change, and the end of what departs from its plan again and again."""

from __future__ import annotations

from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import Refused, Toolkit, create_gecko_agent
from gecko_graph.agent.nodes.sync import MOST_DEPARTURES
from gecko_graph.testing import recorded
from tests.test_agent import TASK, Shop, agent_of, thread

INK = [{"call": "order", "args": {"item": "ink", "quantity": 1}}, {"say": "Ordered."}]


def adding(number: str) -> list[dict]:
    return [{"op": "add", "path": f"/orders/{number}", "value": "ink"}]


def test_where_no_rule_knows_the_change_a_model_reads_it_from_the_real_result():
    shop = Shop()
    predicted = {"status": "ok", "result": {"id": "sim-5000", "item": "ink"}, "patch": adding("sim-5000")}
    model = recorded(planner=[INK], simulator=[predicted], state_updater=[{"patch": adding("real-1001")}])
    models = dict.fromkeys(("planner", "simulator", "state_updater"), model)
    tools = Toolkit.from_tools([shop.order], effects={"order": "write"})
    agent = create_gecko_agent(tools, models=models, review="none", checkpointer=InMemorySaver())
    out = agent.invoke(TASK, thread())
    assert out["task_state"] == {"orders": {"real-1001": "ink"}}
    (step,) = agent.get_state(thread()).values["steps"]
    assert step["outcome"]["result"]["id"] == "real-1001"
    assert step["outcome"]["supposed"] is True


def test_a_plan_that_departs_again_and_again_is_given_up():
    shop = Shop()
    shop.failing = [Refused("no ink")] * 20
    out = agent_of(shop, *[INK] * 20, review="none").invoke(TASK, thread())
    assert shop.calls == ["order ink"] * (1 + MOST_DEPARTURES) == ["order ink"] * 4
    assert out["execution"]["status"] == "nothing"
    assert "no ink" in out["messages"][-1].text


def test_an_answer_that_breaks_its_documented_schema_is_named_in_record_verdict_and_answer():
    shop = Shop()
    schema = {"type": "object", "properties": {"item": {"type": "string"}, "id": {"type": "integer"}}}
    tools = Toolkit.from_tools([shop.order], effects={"order": "write"}, results={"order": schema})
    predicted = {"status": "ok", "result": {"id": 5000, "item": "ink"}, "patch": adding("5000")}
    model = recorded(
        planner=[INK, [{"say": "Ordered."}]],
        simulator=[predicted],
        state_updater=[{"patch": adding("real-1001")}],
        checklist=[{"items": [{"description": "ink is ordered"}]}],
        judge=[{"items": [{"id": "item-1", "status": "success"}]}] * 2,
    )
    agent = create_gecko_agent(tools, model=model, review="none", checkpointer=InMemorySaver())
    out = agent.invoke({**TASK, "checklist": ["ink is ordered"]}, thread())
    why = 'the result breaks its schema: at $.id: expected an integer, got "real-1001"'
    (step,) = agent.get_state(thread()).values["steps"]
    (entry,) = out["execution"]["calls"]
    assert step["outcome"]["undocumented"] == entry["undocumented"] == [why]
    assert entry["departure"] == {"code": "schema", "message": why}
    assert out["rehearsal"]["verdict"]["undocumented"] == [f"order: {why}"]
    assert out["messages"][-1].text.count(f"Undocumented answer: order (item ink, quantity 1): {why}") == 1
