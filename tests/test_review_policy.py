"""Policies in the agent: rules, made-up values, uncertain sources, forbidden real values; other processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from gecko_graph import GeckoError, Models, Refused, Tool, Toolkit
from gecko_graph.testing import recorded
from tests.agents import APPROVE, make_agent, thread
from tests.test_agent import PLAN, TASK, agent_of, shop
from tests.test_review import ask, decide, words

__all__ = ["shop"]
ALLOW = {"tool": "*", "then": "allow"}
ROOT = Path(__file__).resolve().parents[1]


def run(agent: Any, given: Any = TASK) -> dict:
    return agent.invoke(given, thread())


def test_a_planner_that_does_not_learn_ends_with_the_rules_reason(shop):
    rules = [ALLOW, {"tool": "cancel", "then": "refuse", "reason": "orders are final"}]
    out = run(agent_of(shop, PLAN, PLAN, PLAN, interrupt_on=rules))
    assert not shop.calls
    assert words(out) == ["cancel refused"]
    assert out["execution"]["rehearsals"] == 3
    assert "not allowed: orders are final" in out["messages"][-1].text


def test_a_rule_about_the_state_sees_each_call_in_the_state_that_it_is_made_in(shop):
    rules = [ALLOW, {"tool": "order", "when": "len(state.orders) > 0", "then": "ask", "reason": "many"}]
    plan = [{"call": "order", "args": {"item": each, "quantity": 3}} for each in ("pen", "ink")]
    items = [{"description": "two orders", "check": "len(state.orders) == 2"}]
    agent = agent_of(shop, [*plan, {"say": "Ordered."}], interrupt_on=rules)
    (action,) = ask(agent, {**TASK, "checklist": items})["action_requests"]
    assert action["args"]["item"] == "ink"
    assert "order: many" in action["description"]


def test_a_real_value_that_a_rule_forbids_stops_the_plan(shop):
    rules = [ALLOW, {"tool": "cancel", "when": "args.id[:4] == 'real'", "then": "refuse", "reason": "not yours"}]
    out = run(agent_of(shop, PLAN, [{"say": "The pens stay."}], interrupt_on=rules))
    assert shop.calls == ["order pen"]
    assert words(out) == ["order ok", "cancel skipped"]
    assert out["messages"][-1].text.endswith("not yours")
    assert out["execution"]["calls"][1]["departure"] == {"code": "policy", "message": "not yours"}


def sender(*attempts: list[dict], interrupt_on: Any, send: Any = None) -> tuple[Any, list[str]]:
    """Return an agent that can look and send, and what it has really sent."""
    sent: list[str] = []

    def send_text(phone: str, text: str) -> dict:
        """Send a text message."""
        sent.append(f"{phone} {text}")
        return {"ok": True, "sent": ["real-1234"], "id": "real-1234", "ref": "real-1234"}

    def simulated(state: dict, phone: str, text: str) -> dict:
        state["sent"] = state.get("sent", 0) + 1
        return send or {"ok": True}

    tools = Toolkit.from_tools([Tool(send_text, effect="write", simulate=simulated)])
    return make_agent(tools, *attempts, interrupt_on=interrupt_on), sent


def text_to(phone: str, text: str = "hello") -> dict:
    return {"call": "send_text", "args": {"phone": phone, "text": text}}


SEND = {
    "messages": [("user", "Text hello to Ann")],
    "task_state": {"sent": 0},
    "checklist": [{"description": "sent", "check": "state.sent > 0"}],
}
GUESS = [text_to("555-0142-77"), {"say": "Sent."}]


def test_a_value_that_the_planner_made_up_never_runs_unseen():
    agent, sent = sender(GUESS, GUESS, GUESS, interrupt_on="none")
    out = run(agent, SEND)
    assert not sent
    assert out["execution"]["calls"][0]["departure"]["message"] == "not allowed: made up: phone"


def test_a_derived_value_never_runs_unseen_and_is_shown_with_its_operation():
    task = {**SEND, "messages": [("user", "Text hello to 555-0142-77, in three lines of 14 words each")]}
    plan = [text_to("555-0142-77", "hello, 42 words"), {"say": "Sent."}]
    agent, sent = sender(plan, plan, plan, interrupt_on="none")
    why = run(agent, task)["execution"]["calls"][0]["departure"]["message"]
    assert (sent, why.partition(":")[0]) == ([], "not allowed")
    assert "computed, not stated: text: 42 = 14 × 3" in why
    agent, sent = sender(plan, interrupt_on="writes")
    (action,) = ask(agent, task)["action_requests"]
    assert "- text: 42 = 14 × 3 (computed, not stated)." in action["description"]
    agent, sent = sender([text_to("555-0142-77"), {"say": "Sent."}], interrupt_on="none")
    run(agent, task)
    assert sent == ["555-0142-77 hello"]


def test_a_made_up_value_is_shown_and_an_embedder_may_allow_it():
    agent, sent = sender(GUESS, interrupt_on="writes")
    (action,) = ask(agent, SEND)["action_requests"]
    assert 'made up: phone: nothing real supports "555-0142-77"' in action["description"]
    agent, sent = sender(GUESS, interrupt_on=[ALLOW])
    run(agent, SEND)
    assert sent == ["555-0142-77 hello"]


@pytest.mark.parametrize("answer", [{"sent": ["sim-1234"]}, {"id": "sim-1234", "ref": "sim-1234"}])
@pytest.mark.parametrize("interrupt_on", ["none", [ALLOW]])
def test_an_uncertain_source_is_shown_and_resolved_or_left_to_a_new_rehearsal(answer, interrupt_on):
    plan = [text_to("0142-7788"), text_to("0142-7788", "sim-1234"), {"say": "Sent."}]
    late = [text_to("0142-7788", "real-1234"), {"say": "Sent."}]
    task = {**SEND, "messages": [("user", "Text hello to 0142-7788, and then what came of it")]}
    agent, sent = sender(plan, late, interrupt_on=interrupt_on, send=answer)
    (action,) = ask(agent, task)["action_requests"]
    assert "text: its source is not certain: " in action["description"]
    assert action["args"]["text"] == "sim-1234"
    decide(agent, APPROVE)
    assert sent == ["0142-7788 hello", "0142-7788 real-1234"]


def test_what_was_done_before_someone_says_something_else_is_in_the_next_answer(shop):
    pen = [PLAN[0], {"call": "order", "args": {"item": "ink", "quantity": 1}}, {"say": "Ordered."}]
    order = shop.order

    def fail(item: str, quantity: int) -> dict:
        """Order an item."""
        shop.failing = [Refused("no ink")] if item == "ink" else []
        return order(item, quantity)

    fail.__name__, shop.order = "order", fail
    model = Models(planner=recorded({"planner": [pen, pen]}, {"planner": [[{"say": "Fine."}]]}))
    agent = make_agent(shop.toolkit(), model=model, interrupt_on="writes")
    ask(agent, {**TASK, "checklist": [{"description": "ordered", "check": "state.orders"}]})
    decide(agent, APPROVE, APPROVE)
    nothing = [{"description": "nothing", "check": "True"}]
    out = agent.invoke({"messages": [("user", "Leave it")], "checklist": nothing}, thread())
    text = out["messages"][-1].text
    assert "Done: order (item pen, quantity 3)" in text
    assert "Not done: order (item ink, quantity 1): no ink" in text


def test_an_amount_that_an_edit_makes_another_one_is_shown_as_uncertain():
    def order(quantity: int) -> dict:
        return {"total": 12.5 * quantity}

    def pay(amount: float) -> dict:
        paid.append(amount)
        return {"ok": True}

    def simulate_order(state: dict, quantity: int) -> dict:
        state["total"] = 12.5 * quantity
        return {"total": state["total"]}

    paid: list[float] = []
    simulated = [simulate_order, lambda state, amount: state.update(paid=True) or {"ok": True}]
    both = zip((order, pay), simulated, strict=True)
    tools = Toolkit.from_tools([Tool(each, effect="write", simulate=function) for each, function in both])
    plan = [{"call": "order", "args": {"quantity": 3}}, {"call": "pay", "args": {"amount": 37.5}}, {"say": "Paid."}]
    agent = make_agent(tools, plan, interrupt_on="writes")
    items = [{"description": "paid", "check": "state.paid"}]
    first = ask(agent, {"messages": [("user", "Order 3 and pay")], "task_state": {"paid": False}, "checklist": items})
    assert "amount: holds only if the real total" in first["action_requests"][1]["description"]
    decisions = [{"type": "edit", "edited_action": {"name": "order", "args": {"quantity": 4}}}, APPROVE]
    again = ask(agent, Command(resume={"decisions": decisions}))["action_requests"][1]
    assert "amount: its source is not certain" in again["description"]
    late = {"type": "edit", "edited_action": {"name": "pay", "args": {"amount": 50}}}
    ask(agent, Command(resume={"decisions": [APPROVE, late]}))
    decide(agent, APPROVE, APPROVE)
    assert paid == [50]


def test_where_nobody_can_be_asked_for_want_of_a_saver_it_says_so():
    plan = [text_to("0142-7788"), text_to("0142-7788", "sim-1234"), {"say": "Sent."}]
    task = {**SEND, "messages": [("user", "Text hello to 0142-7788, and then what came of it")]}
    agent, sent = sender(plan, interrupt_on="none", send={"sent": ["sim-1234"]})
    agent.checkpointer = None
    with pytest.raises(GeckoError, match="checkpointer"):
        agent.invoke(task)
    assert not sent
