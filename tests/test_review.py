"""The review of a plan: each decision, several at once, answers that cannot be used, a state that moves."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph import Tool, Toolkit
from gecko_graph.agent import review as review_module
from gecko_graph.agent.channels import calls_left
from tests.agents import APPROVE, call, embed, make_agent, thread
from tests.test_agent import INK, PLAN, TASK, agent_of, answer, shop

__all__ = ["shop"]

REJECT = {"type": "reject", "message": "no pens"}


def edit(name: str, **args: Any) -> dict:
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


def ask(agent: Any, given: Any = TASK, name: str = "1") -> dict:
    """Run the agent to its question, and return that; decisions answer the one that it asks now."""
    if isinstance(given, Command):
        given = answer(agent, *given.resume["decisions"], name=name)
    (asked,) = agent.invoke(given, thread(name))["__interrupt__"]
    return asked.value


def decide(agent: Any, *decisions: Any, name: str = "1") -> dict:
    return agent.invoke(answer(agent, *decisions, name=name), thread(name))


def words(out: dict) -> list[str]:
    return [f"{each['call']['name']} {each['status']}" for each in out["execution"]["calls"]]


def test_the_question_has_langchains_shape(shop):
    asked = ask(agent_of(shop, PLAN))
    assert set(asked) == {"id", "action_requests", "review_configs", "gecko"}
    assert [set(each) for each in asked["action_requests"]] == [{"name", "args", "description"}] * 3
    assert asked["review_configs"] == [
        {"action_name": name, "allowed_decisions": ["approve", "edit", "reject", "respond"]}
        for name in ("order", "cancel")
    ]
    texts = [each["description"] for each in asked["action_requests"]]
    assert 'orders > sim-5000: new "pen"' in texts[0]
    assert "Step 2 of 3" in texts[1]
    assert "id: its value is the real id in the result of step 1 (order)" in texts[1]


def test_a_question_has_the_schema_of_its_answer(shop):
    (asked,) = agent_of(shop, PLAN).invoke(TASK, thread())["__interrupt__"]
    takes = Draft202012Validator(asked.response_schema).is_valid
    given = {"decisions": [APPROVE, REJECT, edit("order", item="ink", quantity=1)]}
    assert takes(given)
    assert takes({**given, "id": asked.value["id"]})
    assert not takes({**given, "id": "another"})
    assert not takes({"decisions": [APPROVE] * 2})
    assert not takes({"decisions": [APPROVE, REJECT, {"type": "happened"}]})
    assert not takes({"decisions": [APPROVE, REJECT, {"type": "edit", "edited_action": {"name": "order"}}]})


def test_a_front_end_that_reads_values_with_subgraphs_is_told_nothing_before_the_approval(shop):
    agent = embed(agent_of(shop, PLAN, checkpointer=None), InMemorySaver())
    parts = [*agent.stream(TASK, thread(), stream_mode="values", subgraphs=True)]
    said = [each.text for _, values in parts for each in values.get("messages", ()) if each.type == "ai"]
    assert any(len(namespace) > 1 for namespace, _ in parts), "the rehearsal is among them"
    assert said == []


def test_after_two_new_rehearsals_a_reject_ends_the_turn(shop):
    agent = agent_of(shop, *([call("order", item="ink", quantity=each), INK[1]] for each in (1, 2, 3)))
    ask(agent)
    ask(agent, Command(resume={"decisions": [REJECT]}))
    ask(agent, Command(resume={"decisions": [REJECT]}))
    out = decide(agent, REJECT)
    assert not shop.calls
    assert words(out) == ["order refused"] * 3
    assert out["execution"]["status"] == "nothing"
    assert out["messages"][-1].text.count("rejected by the user: no pens") == 3
    other = agent_of(shop, PLAN)
    ask(other)
    out = decide(other, *[{"type": "reject"}] * 3)  # without a word it ends at once
    assert words(out) == ["order refused", "cancel refused", "order refused"]


def test_the_persons_words_are_the_result_of_a_call_that_is_not_made(shop):
    agent = agent_of(shop, PLAN)
    ask(agent)
    shop.orders["desk-77"] = "pen"
    out = decide(agent, {"type": "respond", "message": '{"id": "desk-77", "item": "pen"}'}, APPROVE, APPROVE)
    assert shop.calls == ["cancel desk-77", "order ink"]
    assert words(out) == ["order answered", "cancel ok", "order ok"]
    assert out["execution"]["calls"][0]["result"] == {"id": "desk-77", "item": "pen"}


def test_words_without_what_later_calls_need_have_the_rest_rehearsed_again(shop):
    agent = agent_of(shop, PLAN, INK)
    ask(agent)
    again = ask(agent, Command(resume={"decisions": [{"type": "respond", "message": "by phone"}, APPROVE, APPROVE]}))
    assert [each["args"] for each in again["action_requests"]] == [{"item": "ink", "quantity": 1}]
    out = decide(agent, APPROVE)
    assert shop.calls == ["order ink"]
    assert words(out) == ["order answered", "cancel skipped", "order ok"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("approve", "decisions"),
        ({"decisions": [APPROVE]}, "expected 3 decisions"),
        ({"decisions": [APPROVE, APPROVE, {"type": "maybe"}]}, "approve, edit, reject, respond"),
        ({"decisions": [{"type": "respond"}, APPROVE, APPROVE]}, "message"),
        ({"decisions": [{"type": "edit"}, APPROVE, APPROVE]}, "edited_action"),
        ({"decisions": [edit("ordr", item="x", quantity=1), APPROVE, APPROVE]}, "did you mean order"),
        ({"decisions": [edit("order", item="x", quantity=float("nan")), APPROVE, APPROVE]}, "quantity"),
    ],
)
def test_an_answer_that_cannot_be_used_is_asked_for_again(shop, given, why):
    agent = agent_of(shop, PLAN)
    first = ask(agent)
    (asked,) = agent.invoke(Command(resume=given), thread())["__interrupt__"]
    again = asked.value
    text = again["action_requests"][0]["description"]
    assert text.startswith("The answer could not be used: ")
    assert why in text.split("\n\n")[0]
    assert again["action_requests"][1:] == first["action_requests"][1:]
    assert not shop.calls
    assert decide(agent, APPROVE, APPROVE, APPROVE)["execution"]["status"] == "done"


def test_a_state_that_was_edited_in_the_meantime_is_rehearsed_afresh(shop):
    agent = agent_of(shop, PLAN, [call("order", item="chalk", quantity=1), {"say": "Ordered."}])
    ask(agent)
    agent.update_state(thread(), {"task_state": {"orders": {}, "note": "new"}})
    again = ask(agent, Command(resume={"decisions": [APPROVE] * 3}))
    assert [each["args"]["item"] for each in again["action_requests"]] == ["chalk"]
    assert not shop.calls
    out = decide(agent, APPROVE)
    assert out["task_state"] == {"orders": {"real-1001": "chalk"}, "note": "new"}


def test_an_approval_that_is_too_old_is_asked_for_again(shop, monkeypatch):
    agent = agent_of(shop, PLAN, interrupt_on={"rules": "writes", "max_age": 60})
    ask(agent)
    monkeypatch.setattr(review_module, "time", SimpleNamespace(time=lambda: time.time() - 61))
    again = ask(agent, Command(resume={"decisions": [APPROVE] * 3}))
    assert len(again["action_requests"]) == 3
    assert not shop.calls
    monkeypatch.undo()
    assert decide(agent, APPROVE, APPROVE, APPROVE)["execution"]["status"] == "done"


ROOMS = [{"id": "room-1201"}, {"id": "room-1202"}]


def rooms(real: list[dict], *attempts: list[dict]) -> tuple[Any, list[str]]:
    """Return an agent that finds rooms and books one; the rehearsal's rooms are simulated."""
    booked: list[str] = []

    def find_rooms() -> list[dict]:
        return real

    def book(room: str) -> dict:
        booked.append(room)
        return {"booking": f"real-{len(booked)}000"}

    def simulate_book(state: dict, room: str) -> dict:
        state["booked"] = [*state["booked"], room]
        return {"booking": "sim-1000"}

    reads = Tool(find_rooms, effect="read", simulate=lambda state: ROOMS)
    tools = Toolkit.from_tools([reads, Tool(book, effect="write", simulate=simulate_book)])
    return make_agent(tools, *attempts, interrupt_on="writes"), booked


BOOKED = [{"description": "booked", "check": "len(state.booked) == 1"}]
FIND = {"messages": [("user", "Book a room")], "task_state": {"booked": []}, "checklist": BOOKED}


def book(room: str) -> list[dict]:
    return [call("book", room=room), {"say": "Booked."}]


def test_a_read_that_confirms_the_plan_is_not_asked_about_again():
    agent, booked = rooms([{"id": "room-1201"}, {"id": "room-1202"}], [{"call": "find_rooms"}, *book("room-1202")])
    assert len(ask(agent, FIND)["action_requests"]) == 1
    assert decide(agent, APPROVE)["execution"]["rehearsals"] == 1
    assert booked == ["room-1202"]


@pytest.mark.parametrize("is_edited", [False, True])
def test_a_read_with_another_result_has_what_follows_rehearsed_and_asked_about_again(is_edited):
    """Also from a state that is edited behind a real call."""
    plan = [{"call": "find_rooms"}, *book("room-1202")]
    agent, booked = rooms([{"id": "room-77"}], plan, book("room-77"), book("room-77"))
    ask(agent, FIND)
    (asked,) = decide(agent, APPROVE)["__interrupt__"]
    assert not booked
    assert [each["args"] for each in asked.value["action_requests"]] == [{"room": "room-77"}]
    assert "made up" not in asked.value["action_requests"][0]["description"]
    if is_edited:
        agent.update_state(thread(), {"task_state": {"booked": [], "by": "desk"}})
        ask(agent, Command(resume={"decisions": [APPROVE]}))
    out = decide(agent, APPROVE)
    assert booked == ["room-77"]
    assert words(out) == ["find_rooms ok", "book ok"]
    assert out["task_state"] == {"booked": ["room-77"], **({"by": "desk"} if is_edited else {})}
    assert out["execution"]["rehearsals"] == 2 + is_edited


@pytest.mark.parametrize("is_update", [False, True])
def test_who_says_something_else_instead_of_answering_begins_a_new_turn(shop, is_update):
    agent = agent_of(shop, turns=[PLAN, INK])
    ask(agent)
    said = {"messages": [("user", "Only order ink")], "checklist": TASK["checklist"]}
    if is_update:
        agent.update_state(thread(), said)
    again = ask(agent, Command(resume={"decisions": [APPROVE] * 3}) if is_update else said)
    assert [each["args"]["item"] for each in again["action_requests"]] == ["ink"]
    decide(agent, APPROVE)
    assert shop.calls == ["order ink"]


@pytest.mark.parametrize(
    ("status", "started_at", "left"), [("ok", 1, 0), ("skipped", 1, 1), ("refused", 1, 1), ("refused", 3, 0)]
)
def test_a_call_that_was_given_up_before_the_plan_may_leave_its_id_to_another(status, started_at, left):
    made = {"id": "c1", "name": "order", "args": {}}
    preview: Any = {"calls": [{"call": made}], "made_at": 2}
    journal: Any = [{"call": made, "status": status, "started_at": started_at}]
    assert len(calls_left({"preview": preview, "journal": journal})) == left


def test_a_person_may_edit_one_call_and_answer_another(shop):
    agent = agent_of(shop, PLAN)
    ask(agent)
    shop.orders["desk-77"] = "pen"
    answered = {"type": "respond", "message": '{"id": "desk-77"}'}
    edited = edit("order", item="chalk", quantity=1)
    again = ask(agent, Command(resume={"decisions": [answered, APPROVE, edited]}))
    assert [each["args"] for each in again["action_requests"]] == [{"id": "desk-77"}, {"item": "chalk", "quantity": 1}]
    decide(agent, APPROVE, APPROVE)
    assert shop.calls == ["cancel desk-77", "order chalk"]


def test_the_same_without_blocking(shop):
    async def run() -> dict:
        agent = agent_of(shop, PLAN)
        asked = await agent.ainvoke(TASK, thread())
        assert len(asked["__interrupt__"][0].value["action_requests"]) == 3
        wrong = await agent.ainvoke(Command(resume="yes"), thread())
        assert "could not be used" in wrong["__interrupt__"][0].value["action_requests"][0]["description"]
        edited = answer(agent, edit("order", item="quill", quantity=2), APPROVE, APPROVE)
        again = (await agent.ainvoke(edited, thread()))["__interrupt__"][0].value["action_requests"]
        assert [each["args"].get("item") for each in again] == ["quill", None, "ink"]
        assert 'orders > sim-5000: new "quill"' in again[0]["description"]
        assert not shop.calls
        return await agent.ainvoke(answer(agent, *[APPROVE] * 3), thread())

    assert asyncio.run(run())["execution"]["status"] == "done"
    assert shop.calls == ["order quill", "cancel real-1001", "order ink"]
