"""The agent: rehearse, review, execute, sync, answer."""

from __future__ import annotations

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph import GeckoError, Refused, Toolkit
from gecko_graph.agent.graph import create_gecko_agent
from gecko_graph.errors import ToolkitError
from gecko_graph.testing import recorded

APPROVE = {"type": "approve"}
ITEMS = [{"description": "one order is left", "check": "state.orders | length == 1"}]
TASK = {
    "messages": [("user", "Order 3 pens, cancel that, order ink")],
    "task_state": {"orders": {}},
    "checklist": ITEMS,
}
PLAN = [
    {"call": "order", "args": {"item": "pen", "quantity": 3}},
    {"call": "cancel", "args": {"id": "sim-5000"}},
    {"call": "order", "args": {"item": "ink", "quantity": 1}},
    {"say": "Ordered."},
]


class Shop:
    """A real service in this process, and the simulation of it, which gives other identifiers."""

    def __init__(self) -> None:
        self.orders: dict[str, str] = {}
        self.calls: list[str] = []
        self.failing: list[Exception] = []

    def order(self, item: str, quantity: int) -> dict:
        """Order an item."""
        self.calls.append(f"order {item}")
        if self.failing:
            raise self.failing.pop()
        number = f"real-{1000 + len(self.calls)}"
        self.orders[number] = item
        return {"id": number, "item": item}

    def cancel(self, id: str) -> dict:
        """Cancel an order."""
        self.calls.append(f"cancel {id}")
        del self.orders[id]
        return {"ok": True}

    def toolkit(self, **more) -> Toolkit:
        def order(state: dict, item: str, quantity: int) -> dict:
            number = f"sim-{5000 + len(state['orders'])}"
            state["orders"][number] = item
            return {"id": number, "item": item}

        def cancel(state: dict, id: str) -> dict:
            del state["orders"][id]
            return {"ok": True}

        simulate = {"order": order, "cancel": cancel}
        effects = dict.fromkeys(simulate, "write")
        return Toolkit.from_tools([self.order, self.cancel], effects=effects, simulate=simulate, **more)


@pytest.fixture
def shop() -> Shop:
    return Shop()


def agent_of(shop: Shop, *attempts: list[dict], review="writes", checkpointer=None):
    models = {"planner": recorded(planner=[*attempts])}
    return create_gecko_agent(
        shop.toolkit(), models=models, review=review, checkpointer=checkpointer or InMemorySaver()
    )


def thread(name: str = "1") -> dict:
    return {"configurable": {"thread_id": name}}


def answer(agent, *decisions, name: str = "1") -> Command:
    """Return the answer to the question that a thread asks now."""
    asked = [each.value["id"] for each in agent.get_state(thread(name)).interrupts]
    return Command(resume={"decisions": [*decisions]} | ({"id": asked[0]} if asked else {}))


def test_an_approved_plan_is_carried_out_with_the_values_that_reality_gives(shop):
    agent = agent_of(shop, PLAN)
    (asked,) = agent.invoke(TASK, thread())["__interrupt__"]
    assert [action["name"] for action in asked.value["action_requests"]] == ["order", "cancel", "order"]
    assert not shop.calls
    out = agent.invoke(Command(resume={"decisions": [APPROVE] * 3}), thread())
    assert shop.calls == ["order pen", "cancel real-1001", "order ink"]
    assert out["execution"]["status"] == "done"
    assert out["messages"][-1].text == "Ordered."


def test_without_a_saver_a_review_is_refused_before_anything_is_asked(shop):
    agent = create_gecko_agent(shop.toolkit(), models={"planner": recorded(planner=[PLAN])})
    with pytest.raises(GeckoError, match="checkpointer"):
        agent.invoke(TASK)


@pytest.mark.parametrize("durability", ["exit", None])
def test_without_a_durable_mark_nothing_that_changes_something_is_called(shop, durability):
    saver = InMemorySaver() if durability else None
    models = {"planner": recorded(planner=[PLAN])}
    agent = create_gecko_agent(shop.toolkit(), models=models, review="none", checkpointer=saver)
    with pytest.raises(GeckoError, match="durability"):
        agent.invoke(TASK, thread(), durability=durability)
    assert not shop.calls


def test_what_is_left_after_an_error_is_rehearsed_again_from_the_real_state(shop):
    again = [{"call": "order", "args": {"item": "ink", "quantity": 1}}, {"say": "Ordered."}]
    shop.failing = [Refused("no pens")]
    agent = agent_of(shop, PLAN, again, review="none")
    out = agent.invoke(TASK, thread())
    assert shop.calls == ["order pen", "order ink"]
    assert out["execution"]["rehearsals"] == 2
    assert [call["status"] for call in out["execution"]["calls"]] == ["error", "ok"]
    assert "no pens" in out["messages"][-1].text


def test_what_no_new_rehearsal_could_finish_is_not_left_out_of_the_answer(shop):
    shop.failing = [Refused("no pens")]
    out = agent_of(shop, PLAN, *[[{"say": "I cannot."}]] * 4, review="none").invoke(TASK, thread())
    assert out["execution"]["status"] == "nothing"
    assert "Nothing was done: - one order is left" in out["messages"][-1].text


def test_a_call_in_doubt_is_asked_about_and_never_simply_made_again(shop):
    shop.failing = [TimeoutError("no answer")]
    agent = agent_of(shop, PLAN, review="none")
    (asked,) = agent.invoke(TASK, thread())["__interrupt__"]
    assert asked.value["review_configs"][0]["allowed_decisions"] == ["happened", "make_now", "skip"]
    out = agent.invoke(answer(agent, {"type": "skip"}), thread())
    assert shop.calls == ["order pen"]
    assert out["execution"]["status"] == "in_doubt"
    assert "In doubt: order" in out["messages"][-1].text


def test_a_toolkit_without_real_functions_is_refused(shop):
    with pytest.raises(ToolkitError, match="real function"):
        create_gecko_agent(Toolkit.from_tools([{"name": "look", "description": "", "parameters": {}}]), models={})


def test_the_state_follows_the_real_results(shop):
    out = agent_of(shop, PLAN, review="none").invoke(TASK, thread())
    assert out["task_state"] == {"orders": {"real-1003": "ink"}} == {"orders": shop.orders}
    assert all(call["drift"] == [] for call in out["execution"]["calls"])
    assert out["execution"]["fidelity"] == {"order": {"calls": 2, "drifted": 0}, "cancel": {"calls": 1, "drifted": 0}}


def test_a_result_that_differs_is_booked_as_drift_and_the_plan_goes_on(shop):
    honest = shop.order
    shop.order = lambda item, quantity: {**honest(item, quantity), "item": item.upper()}
    shop.order.__doc__, shop.order.__name__ = honest.__doc__, "order"
    out = agent_of(shop, PLAN, review="none").invoke(TASK, thread())
    first = out["execution"]["calls"][0]
    assert first["drift"] == [{"kind": "value", "path": "$.item", "predicted": "pen", "real": "PEN"}]
    assert out["execution"]["status"] == "done"
    assert out["execution"]["fidelity"]["order"] == {"calls": 2, "drifted": 2}


def test_what_a_read_shows_otherwise_is_drift_of_the_state():
    def show() -> dict:
        """Show the balance."""
        return {"balance": 70}

    contract = {
        "observes": [{"op": "replace", "path": ["balance"], "value": "{{ result.balance }}"}],
        "returns": {"balance": "{{ state.balance }}"},
    }
    toolkit = Toolkit.from_tools([show], effects={"show": "read"}, contracts={"show": contract})
    models = {"planner": recorded(planner=[[{"call": "show", "args": {}}, {"say": "It is 70."}]])}
    agent = create_gecko_agent(toolkit, models=models, checkpointer=InMemorySaver())
    items = [{"description": "shown", "check": "calls | length == 1"}]
    task = {"messages": [("user", "Show it")], "task_state": {"balance": 100}, "checklist": items}
    out = agent.invoke(task, thread())
    assert out["task_state"] == {"balance": 70}
    state = {"kind": "state", "path": "/balance", "predicted": 100, "real": 70}
    assert state in out["execution"]["calls"][0]["drift"]


def test_the_next_turn_is_rehearsed_from_the_state_that_reality_left(shop):
    plans = [
        {"planner": [PLAN]},
        {"planner": [[{"call": "cancel", "args": {"id": "real-1003"}}, {"say": "Cancelled."}]]},
    ]
    models = {"planner": recorded(*plans)}
    agent = create_gecko_agent(shop.toolkit(), models=models, review="none", checkpointer=InMemorySaver())
    agent.invoke(TASK, thread())
    empty = [{"description": "no order is left", "check": "not state.orders"}]
    out = agent.invoke({"messages": [("user", "Cancel the ink")], "checklist": empty}, thread())
    assert shop.orders == out["task_state"]["orders"] == {}
    assert out["execution"]["turn"] == 2
    assert [call["call"]["name"] for call in out["execution"]["calls"]] == ["cancel"]


def test_a_wrong_answer_to_a_doubt_is_asked_again_and_nothing_is_lost(shop):
    shop.failing = [ConnectionError("gone")]
    agent = agent_of(shop, PLAN, review="none")
    agent.invoke(TASK, thread())
    for wrong in ("yes", {"decisions": []}, {"decisions": [{"type": "edit"}]}, {"decisions": [{"type": "approve"}]}, 7):
        (asked,) = agent.invoke(Command(resume=wrong), thread())["__interrupt__"]
        assert "expected" in asked.value["action_requests"][0]["description"]
    shop.orders["real-1"] = "pen"
    done = {"type": "happened", "message": '{"id": "real-1", "item": "pen"}'}
    out = agent.invoke(Command(resume={"decisions": [done]}), thread())
    assert shop.calls == ["order pen", "cancel real-1", "order ink"]
    assert out["task_state"]["orders"] == shop.orders
    assert out["execution"]["calls"][0]["by"] == "person"


def test_a_doubt_that_a_new_turn_finds_is_settled_first(shop):
    shop.failing = [TimeoutError()]
    then = [{"call": "order", "args": {"item": "ink", "quantity": 1}}, {"say": "Ordered."}]
    models = {"planner": recorded({"planner": [PLAN]}, {"planner": [then]})}
    agent = create_gecko_agent(shop.toolkit(), models=models, review="none", checkpointer=InMemorySaver())
    agent.invoke(TASK, thread())
    more = {"messages": [("user", "Just order ink")], "checklist": ITEMS}
    (asked,) = agent.invoke(more, thread())["__interrupt__"]
    assert "not known" in asked.value["action_requests"][0]["description"]
    out = agent.invoke(answer(agent, {"type": "skip"}), thread())
    assert shop.calls == ["order pen", "order ink"]
    assert out["execution"]["status"] == "done"


async def test_async(shop):
    agent = agent_of(shop, PLAN)
    await agent.ainvoke(TASK, thread())
    out = await agent.ainvoke(Command(resume={"decisions": [APPROVE] * 3}), thread())
    assert out["execution"]["status"] == "done"


class KeyedShop(Shop):
    """A shop that takes an idempotency key."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[str, dict] = {}
        self.lost: list[Exception] = []

    def order(self, item: str, quantity: int, key: str = "") -> dict:
        """Order an item."""
        if key not in self.made:
            self.made[key] = super().order(item, quantity)
        if self.lost:
            raise self.lost.pop()
        return self.made[key]


def test_a_call_with_an_idempotency_key_is_made_again_with_the_same_key_and_nobody_is_asked():
    shop = KeyedShop()
    shop.lost = [TimeoutError(), ConnectionError()]
    toolkit = shop.toolkit(idempotency={"order": "key"})
    models = {"planner": recorded(planner=[PLAN])}
    agent = create_gecko_agent(toolkit, models=models, review="none", checkpointer=InMemorySaver())
    out = agent.invoke(TASK, thread())
    assert shop.calls == ["order pen", "cancel real-1001", "order ink"]
    assert out["execution"]["status"] == "done"
    assert [call["tries"] for call in out["execution"]["calls"]] == [3, 1, 1]
    assert len(shop.made) == 2


def test_what_failed_first_and_was_done_then_is_not_called_undone(shop):
    shop.failing = [Refused("busy")]
    agent = agent_of(shop, PLAN, PLAN, review="none")
    out = agent.invoke(TASK, thread())
    assert [call["status"] for call in out["execution"]["calls"]] == ["error", "ok", "ok", "ok"]
    assert "Not done" not in out["messages"][-1].text


@pytest.mark.parametrize(("status", "tries"), [(429, 2), (503, 1)])
def test_a_write_is_made_again_only_where_the_service_did_not_take_it(shop, status, tries):
    made, order = [], shop.order

    def busy(item: str, quantity: int) -> dict:
        """Order an item."""
        made.append(item)
        if len(made) > 1:
            return order(item, quantity)
        http = {"http_status": status}
        return ToolMessage("busy", tool_call_id="", status="error", additional_kwargs={"http": http})

    busy.__name__, shop.order = "order", busy
    agent_of(shop, PLAN[2:], review="none").invoke(TASK, thread())
    assert len(made) == tries
