"""Review beside the rest of a turn: reads that confirm a plan, models that predict edits, answers by id, new turns."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph import Refused, Toolkit, create_gecko_agent
from gecko_graph.agent.channels import calls_left
from gecko_graph.testing import recorded
from tests.test_agent import APPROVE, PLAN, TASK, agent_of, shop, thread
from tests.test_review import INK, ask, decide, edit, words

__all__ = ["shop"]


def rooms(real: list[dict], *attempts: list[dict]) -> tuple[Any, list[str]]:
    """Return an agent that finds rooms and books one; the rehearsal's rooms are simulated."""
    booked: list[str] = []

    def find_rooms() -> list[dict]:
        return real

    def book(room: str) -> dict:
        booked.append(room)
        return {"booking": f"real-{len(booked)}000"}

    def simulate_find(state: dict) -> list[dict]:
        return [{"id": "room-1201"}, {"id": "room-1202"}]

    def simulate_book(state: dict, room: str) -> dict:
        state["booked"] = [*state["booked"], room]
        return {"booking": "sim-1000"}

    simulate = {"find_rooms": simulate_find, "book": simulate_book}
    effects = {"find_rooms": "read", "book": "write"}
    tools = Toolkit.from_tools([find_rooms, book], effects=effects, simulate=simulate)
    models = {"planner": recorded(planner=[*attempts])}
    return create_gecko_agent(tools, models=models, checkpointer=InMemorySaver()), booked


FIND = {
    "messages": [("user", "Book a room")],
    "task_state": {"booked": []},
    "checklist": [{"description": "booked", "check": "state.booked | length == 1"}],
}


def book(room: str) -> list[dict]:
    return [{"call": "book", "args": {"room": room}}, {"say": "Booked."}]


def test_a_read_that_confirms_the_plan_is_not_asked_about_again():
    agent, booked = rooms([{"id": "room-1201"}, {"id": "room-1202"}], [{"call": "find_rooms"}, *book("room-1202")])
    assert len(ask(agent, FIND)["action_requests"]) == 1
    assert decide(agent, APPROVE)["execution"]["rehearsals"] == 1
    assert booked == ["room-1202"]


def test_a_read_with_another_result_has_what_follows_rehearsed_and_asked_about_again():
    plan = [{"call": "find_rooms"}, *book("room-1202")]
    agent, booked = rooms([{"id": "room-77"}], plan, book("room-77"))
    ask(agent, FIND)
    (asked,) = decide(agent, APPROVE)["__interrupt__"]
    assert not booked
    assert [each["args"] for each in asked.value["action_requests"]] == [{"room": "room-77"}]
    assert "made up" not in asked.value["action_requests"][0]["description"]
    out = decide(agent, APPROVE)
    assert booked == ["room-77"]
    assert words(out) == ["find_rooms ok", "book ok"]


def test_a_state_that_was_edited_after_a_real_call_is_gone_on_from():
    plan = [{"call": "find_rooms"}, *book("room-1202")]
    agent, booked = rooms([{"id": "room-77"}], plan, book("room-77"), book("room-77"))
    ask(agent, FIND)
    decide(agent, APPROVE)
    agent.update_state(thread(), {"task_state": {"booked": [], "by": "desk"}})
    ask(agent, Command(resume={"decisions": [APPROVE]}))
    out = decide(agent, APPROVE)
    assert booked == ["room-77"]
    assert out["task_state"] == {"booked": ["room-77"], "by": "desk"}
    assert out["execution"]["rehearsals"] == 3


def test_an_edit_is_predicted_by_the_model_where_no_rule_can(shop):
    reply = {"status": "ok", "result": {"id": "sim-5000"}, "patch": [{"op": "add", "path": "/orders/a", "value": 1}]}
    tools = Toolkit.from_tools([shop.order], effects={"order": "write"})
    plan = [{"call": "order", "args": {"item": "ink", "quantity": 1}}, {"say": "Ordered."}]
    model = recorded(planner=[plan], simulator=[reply] * 3, state_updater=[{"patch": reply["patch"]}] * 3)
    models = dict.fromkeys(("planner", "simulator", "state_updater"), model)
    agent = create_gecko_agent(tools, models=models, checkpointer=InMemorySaver())
    ask(agent)
    before = agent.get_state(thread()).values["ledger"]["usage"]["simulator"]["calls"]
    again = ask(agent, Command(resume={"decisions": [edit("order", item="chalk", quantity=2)]}))
    (action,) = again["action_requests"]
    assert action["args"] == {"item": "chalk", "quantity": 2}
    assert "Its effect is not known here; it was never called for real." in action["description"]
    assert "sim-5000" not in action["description"]
    assert agent.get_state(thread()).values["ledger"]["usage"]["simulator"]["calls"] == before + 1


def test_the_question_may_be_answered_by_its_id(shop):
    agent = agent_of(shop, PLAN)
    (first,) = agent.invoke(TASK, thread())["__interrupt__"]
    (again,) = agent.invoke(Command(resume={first.id: "what?"}), thread())["__interrupt__"]
    agent.invoke(Command(resume={again.id: {"decisions": [APPROVE] * 3}}), thread())
    assert shop.calls == ["order pen", "cancel real-1001", "order ink"]


def test_who_says_something_else_instead_of_answering_begins_a_new_turn(shop):
    models = {"planner": recorded({"planner": [PLAN]}, {"planner": [INK]})}
    agent = create_gecko_agent(shop.toolkit(), models=models, checkpointer=InMemorySaver())
    ask(agent)
    again = ask(agent, {"messages": [("user", "Only order ink")], "checklist": TASK["checklist"]})
    assert [each["args"]["item"] for each in again["action_requests"]] == ["ink"]
    decide(agent, APPROVE)
    assert shop.calls == ["order ink"]


def test_a_plan_of_a_turn_that_is_over_is_not_carried_out(shop):
    models = {"planner": recorded({"planner": [PLAN]}, {"planner": [INK]})}
    agent = create_gecko_agent(shop.toolkit(), models=models, checkpointer=InMemorySaver())
    ask(agent)
    agent.update_state(thread(), {"messages": [("user", "Only order ink")], "checklist": TASK["checklist"]})
    again = ask(agent, Command(resume={"decisions": [APPROVE] * 3}))
    assert [each["args"]["item"] for each in again["action_requests"]] == ["ink"]
    decide(agent, APPROVE)
    assert shop.calls == ["order ink"]


def test_what_was_done_before_someone_says_something_else_is_in_the_next_answer(shop):
    pen = [PLAN[0], {"call": "order", "args": {"item": "ink", "quantity": 1}}, {"say": "Ordered."}]
    order = shop.order

    def fail(item: str, quantity: int) -> dict:
        """Order an item."""
        if item == "pen":
            return order(item, quantity)
        raise Refused("no ink")

    fail.__name__, shop.order = "order", fail
    models = {"planner": recorded({"planner": [pen, pen]}, {"planner": [[{"say": "Fine."}]]})}
    agent = create_gecko_agent(shop.toolkit(), models=models, checkpointer=InMemorySaver())
    ask(agent, {**TASK, "checklist": [{"description": "ordered", "check": "state.orders"}]})
    decide(agent, APPROVE, APPROVE)
    nothing = [{"description": "nothing", "check": "true"}]
    out = agent.invoke({"messages": [("user", "Leave it")], "checklist": nothing}, thread())
    text = out["messages"][-1].text
    assert "Done: order (item pen, quantity 3)" in text
    assert "Not done: order (item ink, quantity 1): no ink" in text


@pytest.mark.parametrize(
    ("status", "started_at", "left"), [("ok", 1, 0), ("skipped", 1, 1), ("refused", 1, 1), ("refused", 3, 0)]
)
def test_a_call_that_was_given_up_before_the_plan_may_leave_its_id_to_another(status, started_at, left):
    call = {"id": "c1", "name": "order", "args": {}}
    preview: Any = {"calls": [{"call": call}], "made_at": 2}
    journal: Any = [{"call": call, "status": status, "started_at": started_at}]
    assert len(calls_left({"preview": preview, "journal": journal})) == left
