"""What is approved is what runs: the whole agent, whose simulation foresees other values than the service gives."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langgraph.types import Command

from gecko_graph import Models, Tool, Toolkit
from gecko_graph.agent import execute
from gecko_graph.real.bindings import resolve
from gecko_graph.testing import recorded
from tests.agents import APPROVE, call, make_agent, thread
from tests.test_agent import answer


class Post:
    """A shop whose orders get other identifiers, totals and codes than a model foresees."""

    def __init__(self, order_id: Any, predicted: Any, *, real_total: float = 59.0) -> None:
        self.order_id, self.real_total = order_id, real_total
        self.sent: list[tuple[Any, Any]] = []
        self.made: list[str] = []
        self.predicted = {
            "place_order": {"order_id": predicted, "total": 49.0},
            "ship": {"order_id": predicted, "code": "PN-SIM-1", "carrier": "Alpina"},
            "send_email": {"ok": True},
        }

    def place_order(self, sku: str) -> dict:
        """Place an order."""
        self.made.append("place_order")
        return {"order_id": self.order_id, "total": self.real_total}

    def ship(self, order_id: Any) -> dict:
        """Ship an order."""
        self.made.append(f"ship {order_id}")
        return {"order_id": order_id, "code": "PN-REAL-9", "carrier": "Bertold"}

    def send_email(self, subject: str, text: str) -> dict:
        """Send an e-mail."""
        self.sent.append((subject, text))
        return {"ok": True}

    def agent(self, *plans: list[dict]) -> Any:
        functions = (self.place_order, self.ship, self.send_email)
        tools = Toolkit.from_tools([Tool(each, effect="write") for each in functions])
        calls = [each["call"] for plan in plans for each in plan if "call" in each]
        answers = [
            {"status": "ok", "result": self.predicted[name], "patch": [{"op": "add", "path": f"/{name}", "value": 1}]}
            for name in calls
        ]
        models = Models(planner=recorded(planner=[*plans]), simulator=recorded(simulator=answers))
        return make_agent(tools, model=models, interrupt_on="writes")


def plan(order_id: Any, subject: str, text: str) -> list[dict]:
    return [call("place_order", sku="ST"), call("ship", order_id=order_id), mail(subject, text), {"say": "Done."}]


def mail(subject: str, text: str) -> dict:
    return call("send_email", subject=subject, text=text)


def run(agent: Any, given: Any = None) -> tuple[list[dict], dict]:
    """Return the questions of a run, and what came of it."""
    items = [{"description": "shipped", "check": "defined(state.ship)"}]
    task = {"messages": [("user", "Order ST, ship it, mail the customer")], "task_state": {}, "checklist": items}
    out = agent.invoke(given or task, thread())
    return [action for each in out.get("__interrupt__", ()) for action in each.value["action_requests"]], out


def approve(agent: Any, asked: list[dict]) -> tuple[list[dict], dict]:
    return run(agent, answer(agent, *[APPROVE] * len(asked)))


@pytest.mark.parametrize(
    ("predicted", "real"), [("O-1", "REAL-77"), ("sim-5001", "7"), (7, 12), (7, 0), ("O-1", "O-1"), ("A1", 'x" [1] `')]
)
def test_an_identifier_of_any_length_is_filled_and_its_places_are_shown(predicted: Any, real: Any) -> None:
    post = Post(real, predicted)
    agent = post.agent(plan(predicted, f"Your order {predicted} is on its way", f"See /orders/{predicted}, [1]"))
    asked, _ = run(agent)
    ship, letter = asked[1:]
    place = "the real order_id in the result of step 1 (place_order)"
    source = f"{place}, predicted {json.dumps(predicted)}"
    assert f"- order_id: its value is {source}." in ship["description"]
    assert f'- subject: "Your order [1] is on its way"; [1] is {source}.' in letter["description"]
    assert f'- text: "See /orders/[[1]], [1]"; [[1]] is {source}.' in letter["description"]
    assert letter["args"]["subject"] == f"Your order {predicted} is on its way", "an edit begins from the prediction"
    asked, out = approve(agent, asked)
    assert not asked
    assert out["execution"]["status"] == "done"
    assert post.made[1] == f"ship {real}"
    assert post.sent == [(f"Your order {real} is on its way", f"See /orders/{real}, [1]")]


@pytest.mark.parametrize(
    "words",
    ["Order {id} of 49 euros, code PN-SIM-1", "Order of 49.00", "It comes with alpina, order {id}", "Order: 49.0"],
)
def test_a_text_with_a_value_that_reality_contradicts_is_asked_about_again(words: str) -> None:
    post = Post("REAL-77", "O-1")
    late = [mail("On its way", "Order REAL-77 of 59 euros by Bertold, code PN-REAL-9"), {"say": "Done."}]
    agent = post.agent(plan("O-1", "On its way", words.format(id="O-1")), late)
    asked, _ = run(agent)
    assert "text: holds only if the real " in asked[2]["description"]
    asked, _ = approve(agent, asked)
    assert not post.sent
    assert [each["args"] for each in asked] == [late[0]["args"]]
    assert "the real " not in asked[0]["description"]
    asked, out = approve(agent, asked)
    assert post.made == ["place_order", "ship REAL-77"]
    assert post.sent == [(late[0]["args"]["subject"], late[0]["args"]["text"])]
    assert out["execution"]["status"] == "done"


def test_an_edit_moves_the_holes_to_where_the_new_prediction_has_them() -> None:
    post = Post("REAL-77", "O-1")
    first = plan("O-1", "Your order O-1", "O-22: O-1, yours")
    agent = post.agent(first, first)  # the second answers of the simulator are those after the edit
    run(agent)
    post.predicted["place_order"]["order_id"] = "O-22"
    edit = {"type": "edit", "edited_action": {"name": "place_order", "args": {"sku": "XL"}}}
    asked, _ = run(agent, Command(resume={"decisions": [edit, APPROVE, APPROVE]}))
    assert [each["args"] for each in asked[1:]] == [
        {"order_id": "O-22"},
        {"subject": "Your order O-22", "text": "O-22: O-22, yours"},
    ]
    assert '- text: "O-22: [1], yours"; [1] is the real order_id' in asked[2]["description"]
    approve(agent, asked)
    assert post.sent == [("Your order REAL-77", "O-22: REAL-77, yours")]


def test_a_call_that_is_not_the_approved_one_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(planned: Any, results: Any) -> Any:
        sent, departure = resolve(planned, results)
        args = {**sent["call"]["args"], "sku": "XL"} if "sku" in sent["call"]["args"] else sent["call"]["args"]
        return {**sent, "call": {**sent["call"], "args": args}}, departure

    post = Post("REAL-77", "O-1")
    agent = post.agent(plan("O-1", "Yours", "Order O-1"), [{"say": "Not done."}])
    asked, _ = run(agent)
    monkeypatch.setattr(execute, "resolve", changed)
    _, out = approve(agent, asked)
    assert not post.made
    assert out["execution"]["calls"][0]["departure"]["code"] == "binding"
