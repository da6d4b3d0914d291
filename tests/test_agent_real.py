"""The agent where every read is real: what it supposes, whom it asks, what it shows, and what it says at the end."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph import GeckoContext, Refused, Tool, Toolkit, create_gecko, create_gecko_agent
from tests.agents import APPROVE, call, thread
from tests.test_prompts_in_runs import Listener

THREAD = thread()
LOOK, ORDER = call("find", name="pen"), call("order", item="pen-1", quantity=2)
MADE = {"id": "SIM-5000", "item": "pen-1", "total": 3.0}
ADDED = {"status": "ok", "result": MADE, "patch": [{"op": "add", "path": "/orders", "value": {"SIM-5000": "pen-1"}}]}
ITEMS = {"items": [{"description": "two pens are ordered"}]}
FAILS = {"items": [{"id": "item-1", "status": "failed", "reason": "there is no answer"}]}
HOLDS = {"items": [{"id": "item-1", "status": "success"}]}


def asked_of(model: Listener, *but: str) -> list[str]:
    return [role for role, _ in model.heard if role not in but]


def last_to_planner(model: Listener) -> str:
    return "\n".join(each.text for each in model.told("planner")[-1] if each.type != "system")


class Desk:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.refuses = ""
        self.total = 3.0

    def find(self, name: str) -> dict:
        """Find items by a part of their name."""
        self.calls.append("find")
        return {"items": [{"item": f"{name}-1", "price": 1.5}]}

    def order(self, item: str, quantity: int) -> dict:
        """Order an item."""
        self.calls.append("order")
        if self.refuses:
            raise Refused(self.refuses)
        return {"id": f"REAL-{700 + len(self.calls)}", "item": item, "total": self.total}

    def toolkit(self) -> Toolkit:
        effects: Any = {"find": "read", "order": "write"}
        return Toolkit.from_tools([self.find, self.order]).declare(
            *(Tool(name, effect=effect) for name, effect in effects.items())
        )


def turn(*attempts: list[dict], **more: Any) -> dict:
    replies = {
        "checklist": [ITEMS],
        "judge": [HOLDS] * 3,
        "simulator": [ADDED] * 3,
        "validator": [{"problems": []}] * 9,
    }
    return {"planner": [*attempts], **replies, **more}


def agent_of(desk: Desk, *turns: dict, **more: Any) -> tuple[Any, Listener]:
    model = Listener(turns=turns)
    given = {"context": GeckoContext(reads="real"), "checkpointer": InMemorySaver(), **more}
    return create_gecko_agent(desk.toolkit(), model=model, **given), model


def say(text: str) -> dict:
    return {"messages": [("user", text)]}


def decide(agent: Any, *decisions: dict) -> Any:
    return agent.invoke(Command(resume={"decisions": list(decisions)}), THREAD)


def test_a_turn_that_only_reads_asks_the_planner_alone_and_reads_once():
    desk = Desk()
    agent, model = agent_of(desk, turn([LOOK, {"say": "pen-1 costs 1.50."}]))
    out = agent.invoke(say("What does a pen cost?"), THREAD)
    assert out["messages"][-1].text == "pen-1 costs 1.50."
    assert (out["rehearsal"]["verdict"]["status"], out["execution"]["status"]) == ("accepted", "done")
    assert "nothing to check" in out["rehearsal"]["verdict"]["feedback"]
    assert (desk.calls, asked_of(model)) == (["find"], ["planner", "planner"])
    assert out["task_state"] == {}


@pytest.mark.parametrize(
    ("plan", "holds", "word"), [([], HOLDS, "failed"), ([LOOK], FAILS, "failed"), ([LOOK], HOLDS, "accepted")]
)
def test_a_task_that_names_a_write_is_not_accepted_by_rule_without_one(plan, holds, word):
    replies = turn(*[[*plan, {"say": "I have ordered two pens."}]] * 3, judge=[holds] * 3)
    agent, model = agent_of(Desk(), replies)
    out = agent.invoke(say("Order two pens if they cost less than 2."), THREAD)
    assert out["rehearsal"]["verdict"]["status"] == word
    assert {*asked_of(model, "planner", "validator")} == {"checklist", "judge"}
    assert out["messages"][-1].text.startswith("Nothing was done: ") == (word == "failed")
    assert ("This answer was not accepted: I have ordered two pens." in out["messages"][-1].text) == (word == "failed")


def test_what_was_approved_and_came_as_rehearsed_is_told_and_booked_by_rule():
    desk = Desk()
    agent, model = agent_of(desk, turn([LOOK, ORDER, {"say": "Ordered: SIM-5000 for 3.00."}]))
    (asked,) = agent.invoke(say("Order two pens."), THREAD)["__interrupt__"]
    text = asked.value["action_requests"][0]["description"]
    assert 'Returns, a model supposes:\n```\n{"id": "SIM-5000"' in text
    out = decide(agent, APPROVE)
    assert out["messages"][-1].text == "Ordered: REAL-702 for 3.00."
    assert out["execution"]["status"] == "done"
    assert desk.calls == ["find", "order"]
    assert out["task_state"] == {"orders": {"REAL-702": "pen-1"}}
    assert asked_of(model, "validator") == ["planner", "planner", "simulator", "planner", "checklist", "judge"]


def test_an_approval_names_what_nothing_real_supports_of_the_answer_but_not_what_the_plan_will_give():
    said = "Ordered: SIM-5000 for 3.00 of Carla, invoice A-7731."
    agent, _ = agent_of(Desk(), turn([LOOK, ORDER, {"say": said}]))
    (asked,) = agent.invoke(say("Order two pens."), THREAD)["__interrupt__"]
    last = asked.value["action_requests"][0]["description"].splitlines()[-2]
    assert last == '- the answer: made up; nothing real supports "A-7731", "Carla".'


def test_after_a_refusal_there_is_one_note_and_the_planner_s_own_question():
    desk = Desk()
    desk.refuses = "only 1 left"
    agent, model = agent_of(desk, turn([LOOK, ORDER, {"say": "Ordered."}], [{"say": "Only 1 is left. Order one?"}]))
    agent.invoke(say("Order two pens."), THREAD)
    out = decide(agent, APPROVE)
    assert out["messages"][-1].text.splitlines() == [
        "Only 1 is left. Order one?",
        "Not done: order (item pen-1, quantity 2): only 1 left",
    ]
    assert (out["rehearsal"]["verdict"]["status"], out["execution"]["status"]) == ("needs_user", "nothing")
    assert asked_of(model, "validator")[-3:] == ["checklist", "judge", "planner"]
    last = last_to_planner(model)
    assert "Your first calls below were really made" in last
    assert "undone" not in last
    assert "above" not in last
    assert desk.calls == ["find", "order"]


@pytest.mark.parametrize(("given", "state"), [({"task_state": {}}, {}), ({}, {"items": {"x": 1}, "runtime_state": {}})])
def test_an_empty_state_that_is_given_is_not_made_up(given, state):
    made = {"domain": {"items": {"x": 1}}, "runtime_state": {}}
    model = Listener(turns=[turn([{"say": "Hello."}], bootstrapper=[made])])
    assert create_gecko(Desk().toolkit(), model=model).invoke(say("Hello") | given)["task_state"] == state
    agent = create_gecko_agent(Desk().toolkit(), model=model, checkpointer=InMemorySaver())
    assert agent.invoke(say("Hello") | given, THREAD)["task_state"].keys() == state.keys() - {"runtime_state"}
