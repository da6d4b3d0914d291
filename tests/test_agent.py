"""The agent: rehearse, review, execute, sync, answer."""

from __future__ import annotations

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph import GeckoError, Models, Refused, Tool, Toolkit, create_gecko_agent
from gecko_graph.agent.execute import MOST_DEPARTURES
from gecko_graph.errors import ToolkitError
from gecko_graph.testing import recorded
from tests.agents import APPROVE, call, make_agent, thread
from tests.doubts import texts

ITEMS = [{"description": "one order is left", "check": "len(state.orders) == 1"}]
ASKS = [("user", "Order 3 pens, cancel that, order ink")]
TASK = {"messages": ASKS, "task_state": {"orders": {}}, "checklist": ITEMS}
INK = [call("order", item="ink", quantity=1), {"say": "Ordered."}]
PLAN = [call("order", item="pen", quantity=3), call("cancel", id="sim-5000"), *INK]


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

        tools = [Tool(self.order, simulate=order, **more), Tool(self.cancel, simulate=cancel)]
        return Toolkit.from_tools(tools).declare(*(Tool(name, effect="write") for name in ("order", "cancel")))


@pytest.fixture
def shop() -> Shop:
    return Shop()


def agent_of(shop: Shop, *plans: list[dict], interrupt_on="writes", **more):
    return make_agent(shop.toolkit(), *plans, interrupt_on=interrupt_on, **more)


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
    assert out["task_state"] == {"orders": {"real-1003": "ink"}} == {"orders": shop.orders}
    assert all(call["drift"] == [] for call in out["execution"]["calls"])
    assert out["execution"]["fidelity"] == {"order": {"calls": 2, "drifted": 0}, "cancel": {"calls": 1, "drifted": 0}}


@pytest.mark.parametrize("durability", ["exit", None])
def test_without_a_durable_mark_nothing_that_changes_something_is_called(shop, durability):
    agent = agent_of(shop, PLAN, interrupt_on="none", checkpointer=InMemorySaver() if durability else None)
    with pytest.raises(GeckoError, match="durability"):
        agent.invoke(TASK, thread(), durability=durability)
    assert not shop.calls


def test_what_is_left_after_an_error_is_rehearsed_again_from_the_real_state(shop):
    shop.failing = [Refused("no pens")]
    out = agent_of(shop, PLAN, INK, interrupt_on="none").invoke(TASK, thread())
    assert shop.calls == ["order pen", "order ink"]
    assert out["execution"]["rehearsals"] == 2
    assert [call["status"] for call in out["execution"]["calls"]] == ["error", "ok"]
    assert "no pens" in out["messages"][-1].text


def test_a_call_in_doubt_is_asked_about_and_never_simply_made_again(shop):
    shop.failing = [TimeoutError("no answer")]
    agent = agent_of(shop, PLAN, interrupt_on="none")
    (asked,) = agent.invoke(TASK, thread())["__interrupt__"]
    assert asked.value["review_configs"][0]["allowed_decisions"] == ["happened", "make_now", "skip"]
    out = agent.invoke(answer(agent, {"type": "skip"}), thread())
    assert shop.calls == ["order pen"]
    assert out["execution"]["status"] == "in_doubt"
    assert "In doubt: order" in out["messages"][-1].text


def test_a_toolkit_without_real_functions_is_refused(shop):
    with pytest.raises(ToolkitError, match="real function"):
        create_gecko_agent(Toolkit.from_tools([{"name": "look", "description": "", "parameters": {}}]), model=Models())


def test_a_wrong_answer_to_a_doubt_is_asked_again_and_nothing_is_lost(shop):
    shop.failing = [ConnectionError("gone")]
    agent = agent_of(shop, PLAN, interrupt_on="none")
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
    agent = agent_of(shop, turns=[PLAN, INK], interrupt_on="none")
    agent.invoke(TASK, thread())
    more = {"messages": [("user", "Just order ink")], "checklist": ITEMS}
    (asked,) = agent.invoke(more, thread())["__interrupt__"]
    assert "not known" in asked.value["action_requests"][0]["description"]
    out = agent.invoke(answer(agent, {"type": "skip"}), thread())
    assert shop.calls == ["order pen", "order ink"]
    assert out["execution"]["status"] == "done"


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
    agent_of(shop, PLAN[2:], interrupt_on="none").invoke(TASK, thread())
    assert len(made) == tries


def test_a_plan_that_departs_again_and_again_is_given_up(shop):
    shop.failing = [Refused("no ink")] * 20
    others = [[call("order", item="ink", quantity=count), INK[1]] for count in range(1, 9)]
    task = {**TASK, "messages": [("user", "Order ink: 1 of it, or 2, 3, 4, 5, 6, 7 or 8")]}
    out = agent_of(shop, *others, interrupt_on="none").invoke(task, thread())
    assert shop.calls == ["order ink"] * (1 + MOST_DEPARTURES) == ["order ink"] * 4
    assert out["execution"]["status"] == "nothing"
    assert "no ink" in out["messages"][-1].text


@pytest.mark.parametrize(("fault", "made"), [(Refused("no ink"), 1), (ConnectionRefusedError("no connection"), 2)])
def test_a_call_is_made_again_only_if_it_never_reached_the_service(shop, fault, made):
    shop.failing = [fault]
    out = agent_of(shop, *[INK] * 3, interrupt_on="none").invoke(TASK, thread())
    assert shop.calls == ["order ink"] * made
    assert out["execution"]["status"] == ("done" if made == 2 else "nothing")
    assert made == 2 or "no ink" in out["messages"][-1].text


def test_an_answer_that_breaks_its_documented_schema_is_named_in_record_verdict_and_answer():
    schema = {"type": "object", "properties": {"item": {"type": "string"}, "id": {"type": "integer"}}}
    tools = Toolkit.from_tools([Tool(Shop().order, effect="write", result=schema)])
    added = [[{"op": "add", "path": f"/orders/{number}", "value": "ink"}] for number in ("5000", "real-1001")]
    predicted = {"status": "ok", "result": {"id": 5000, "item": "ink"}, "patch": added[0]}
    judged = [{"items": [{"id": "item-1", "status": "success"}]}] * 2
    plans = [INK, [{"say": "Ordered."}]]
    model = recorded(planner=plans, simulator=[predicted], state_updater=[{"patch": added[1]}], judge=judged)
    agent = make_agent(tools, model=model)
    out = agent.invoke({**TASK, "checklist": ["ink is ordered"]}, thread())
    why = 'the result breaks its schema: /id: expected an integer, got "real-1001"'
    (step,) = agent.get_state(thread()).values["bookkeeping"]["steps"]
    assert (step["outcome"]["result"]["id"], step["outcome"]["supposed"]) == ("real-1001", True)
    assert out["task_state"] == {"orders": {"real-1001": "ink"}}
    (entry,) = out["execution"]["calls"]
    assert texts(step["outcome"], "undocumented") == texts(entry, "undocumented") == [why]
    assert entry["departure"] == {"code": "schema", "message": why}
    assert texts(out["rehearsal"]["verdict"], "undocumented") == [why]
    assert out["messages"][-1].text.count(f"Undocumented answer: order (item ink, quantity 1): {why}") == 1


def test_what_decides_on_real_calls_holds_nothing_that_another_run_has_written_at_a_shared_checkpoint(shop):
    saver = InMemorySaver()
    agent = agent_of(shop, PLAN, interrupt_on="none", checkpointer=saver)
    agent.invoke(TASK, thread())
    before = agent.get_state(thread()).values
    for each in list(agent.get_state_history(thread()))[1:]:
        given = {"configurable": {"checkpoint_ns": "", **each.config["configurable"]}}
        saver.put_writes(given, [("bookkeeping", {"steps": []}), ("journal", [])], "another run's task")
    after = agent.get_state(thread()).values
    assert len(before["bookkeeping"]["steps"]) == 3
    assert (after["bookkeeping"], after["journal"]) == (before["bookkeeping"], before["journal"])


def test_without_a_saver_a_review_is_refused_before_anything_is_asked(shop):
    with pytest.raises(GeckoError, match="checkpointer"):
        agent_of(shop, PLAN, checkpointer=None).invoke(TASK)
