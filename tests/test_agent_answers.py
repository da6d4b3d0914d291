"""An answer belongs to its question, a real call to one claim: answers and messages sent again, kills, replays."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import GeckoError, Models, Refused
from tests.agents import APPROVE, Parent, Saying, embed, make_agent, thread
from tests.test_agent import ITEMS, PLAN, TASK, Shop, answer, shop

__all__ = ["shop"]

PEN = [PLAN[0], {"say": "Ordered."}]
GOLD = [{"call": "order", "args": {"item": "gold", "quantity": 900}}, {"say": "Ordered."}]
ORDERED = [{"description": "ordered", "check": "len(state.orders) == 1"}]
ONE = {"messages": [HumanMessage("Order 3 pens", id="m1")], "task_state": {"orders": {}}, "checklist": ORDERED}
PLACES = ["alone", "as a node", "two deep", "in a tool", "sent"]
AGAIN = Command(resume={"decisions": [APPROVE]})


def start(shop: Shop, saver: Any, *plans: list, place: str = "alone", **more: Any) -> Any:
    """Return the agent of a new process over the same shop and saver."""
    own = saver if place == "alone" else None
    agent = make_agent(shop.toolkit(), *plans, checkpointer=own, **{"interrupt_on": "writes"} | more)

    @tool
    def act(request: str) -> str:
        """Act."""
        return agent.invoke({**ONE, "messages": [HumanMessage(request, id="m1")]})["execution"]["status"]

    if place == "alone":
        return agent
    if place == "in a tool":
        return embed(lambda state: {"execution": {"status": act.invoke("Order 3 pens")}}, saver)
    if place == "sent":
        builder = StateGraph(Parent).add_node("agent", agent)
        builder.add_conditional_edges(START, lambda state: [Send("agent", state)], ["agent"])
        return builder.compile(checkpointer=saver)
    return embed(embed(agent) if place == "two deep" else agent, saver)


def question(out: dict) -> dict:
    (asked,) = out["__interrupt__"]
    return asked.value


def items(asked: dict) -> list[str]:
    return [action["args"]["item"] for action in asked["action_requests"]]


@pytest.mark.parametrize("place", PLACES)
def test_after_a_crash_in_the_call_an_approval_stored_with_a_parent_answers_no_doubt(place):
    fate, shop = Fate(), Shop()
    saver, made = KillingSaver(fate), shop.order

    def order(item: str, quantity: int) -> dict:
        """Order an item."""
        result = made(item, quantity)
        fate.kill_at = 1  # the process is gone: nothing is written from here on
        return result

    shop.order = order
    start(shop, saver, PEN, place=place).invoke(ONE, thread())
    with contextlib.suppress(Killed, GeckoError):
        start(shop, saver, PEN, place=place).invoke(AGAIN, thread())
    fate.kill_at, shop.order = 0, made
    for given in (None, AGAIN, None):
        asked = question(start(shop, saver, PEN, place=place).invoke(given, thread()))
        assert asked["review_configs"][0]["allowed_decisions"] == ["happened", "make_now", "skip"]
    happened = {"type": "happened", "message": '{"id": "real-1001", "item": "pen"}'}
    resume = Command(resume={"id": asked["id"], "decisions": [happened]})
    assert start(shop, saver, PEN, place=place).invoke(resume, thread())["execution"]["status"] == "done"
    assert shop.calls == ["order pen"]


@pytest.mark.parametrize(
    ("place", "by_id"), [*((place, False) for place in PLACES), ("alone", True), ("two deep", True)]
)
def test_an_approval_that_is_sent_again_approves_no_plan_that_nobody_has_seen(place, by_id):
    shop, saver = Shop(), InMemorySaver()
    shop.failing = [Refused("no pens")]
    graph = start(shop, saver, PEN, GOLD, place=place)
    first, decisions = graph.invoke(ONE, thread())["__interrupt__"][0], {"decisions": [APPROVE]}
    ok = Command(resume={first.id: decisions} if by_id else decisions)
    asked = question(graph.invoke(ok, thread()))
    assert items(asked) == ["gold"]
    for given in (ok, None, Command(resume={"id": first.value["id"], **decisions})):
        assert question(graph.invoke(given, thread()))["id"] == asked["id"]
    assert shop.calls == ["order pen"]


@pytest.mark.parametrize("place", ["alone", "two deep"])
async def test_a_call_that_a_time_out_has_cut_off_is_a_doubt_and_not_made_again(place):
    shop, made = Shop(), []

    async def order(item: str, quantity: int) -> dict:
        """Order an item."""
        made.append(item)
        await asyncio.sleep(30)
        return {}

    shop.order = order
    graph = start(shop, InMemorySaver(), PEN, place=place)
    await graph.ainvoke(ONE, thread())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(graph.ainvoke(AGAIN, thread()), 0.5)
    asked = question(await graph.ainvoke(None, thread()))
    assert "not known whether it took effect" in asked["action_requests"][0]["description"]
    assert made == ["pen"]


def test_an_answer_may_have_to_name_its_question(shop):
    agent = start(shop, InMemorySaver(), PEN, interrupt_on={"rules": "writes", "needs_id": True})
    asked = question(agent.invoke(ONE, thread()))
    again = question(agent.invoke(AGAIN, thread()))
    assert "does not say which question it answers" in again["action_requests"][0]["description"]
    assert again["id"] == asked["id"]
    assert not shop.calls
    agent.invoke(answer(agent, APPROVE), thread())
    assert shop.calls == ["order pen"]


@pytest.mark.parametrize("place", ["alone", "as a node"])
def test_a_replay_and_a_fork_make_no_call_and_an_old_checkpoints_approval_is_not_taken(place):
    shop, saver = Shop(), InMemorySaver()
    graph = start(shop, saver, PEN, PEN, PEN, place=place)
    graph.invoke(ONE, thread())
    paused = graph.get_state(thread()).config
    graph.invoke(AGAIN, thread())
    assert shop.calls == ["order pen"]
    for snapshot in list(graph.get_state_history(thread())):
        graph.invoke(None, snapshot.config)
        assert shop.calls == ["order pen"], snapshot.next
    graph.invoke(AGAIN, paused)
    assert shop.calls == ["order pen"]


@pytest.mark.parametrize("place", PLACES[:3])
def test_a_message_that_is_delivered_again_after_its_answer_is_no_new_turn(place):
    shop, saver = Shop(), InMemorySaver()
    graph = start(shop, saver, PEN, PEN, place=place, interrupt_on="none")
    first = graph.invoke(ONE, thread())
    again = graph.invoke(ONE, thread())
    assert shop.calls == ["order pen"]
    assert again["messages"] == first["messages"]
    assert again["execution"] == first["execution"]


@pytest.mark.parametrize(("place", "identifier"), [("alone", None), ("as a node", "m1")])
def test_real_calls_of_an_interrupted_turn_stand_in_the_new_question_and_prompt(place, identifier):
    fate, shop = Fate(), Shop()
    saver, checks = KillingSaver(fate), [{"description": "ordered", "check": "state.orders"}]
    task = {**TASK, "messages": [HumanMessage("Order 3 pens, cancel, order ink", id=identifier)], "checklist": checks}
    real, seen = shop.cancel, []

    def look(messages: list) -> Any:
        """Order ink if no call that is shown has done so."""
        seen.append("\n".join(f"{each.type}: {each.text} {getattr(each, 'tool_calls', '')}" for each in messages))
        ink = {"id": "1", "name": "order", "args": {"item": "ink", "quantity": 1}}
        return "Ordered." if "'ink'" in seen[-1] else [ink]

    def cancel(id: str) -> dict:
        """Cancel an order."""
        fate.kill_at = 1
        raise Killed

    shop.cancel = cancel
    with contextlib.suppress(Killed, GeckoError):
        start(shop, saver, PLAN, interrupt_on="none", place=place).invoke({**task, "checklist": ITEMS}, thread())
    fate.kill_at, shop.cancel = 0, real
    assert shop.calls == ["order pen"]
    graph = start(shop, saver, place=place, model=Models(planner=Saying(say=look)))
    doubt = question(graph.invoke(task, thread()))
    assert doubt["action_requests"][0]["name"] == "cancel"
    skip = Command(resume={"id": doubt["id"], "decisions": [{"type": "skip"}]})
    asked = question(graph.invoke(skip, thread()))
    assert items(asked) == ["ink"]
    text = asked["action_requests"][0]["description"]
    assert text.startswith("Already, for real:")
    assert "Done: order (item pen, quantity 3): id real-1001, item pen" in text
    assert "In doubt: cancel" in text
    assert "'pen', 'quantity': 3" in seen[0]
    assert "It is not known whether this call took effect" in seen[0]
    out = graph.invoke(Command(resume={"id": asked["id"], "decisions": [APPROVE]}), thread())
    assert shop.calls == ["order pen", "order ink"]
    assert out["task_state"]["orders"] == shop.orders
    assert "In doubt: cancel" in out["messages"][-1].text
    later = graph.invoke({"messages": [("user", "And now?")], "checklist": ITEMS}, thread())["messages"][-1].text
    assert "In doubt" not in later
    assert "Before" not in later


def test_siblings_that_are_sent_at_once_each_make_their_own_calls_and_again_none():
    shop, saver = Shop(), InMemorySaver()
    agent = make_agent(shop.toolkit(), PEN, PEN, checkpointer=None)

    def run(state: MessagesState) -> dict:
        agent.invoke({**ONE, "messages": state["messages"]})
        return {}

    builder = StateGraph(MessagesState)
    builder.add_node("run", run)
    builder.add_conditional_edges(START, lambda state: [Send("run", state)] * 3, ["run"])
    graph = builder.compile(checkpointer=saver)
    sent = {"messages": [HumanMessage("Order 3 pens", id="m1")]}
    graph.invoke(sent, thread())
    assert shop.calls == ["order pen"] * 3
    graph.invoke(sent, thread())
    assert shop.calls == ["order pen"] * 3


def test_keys_for_services_are_derived_and_equal_for_every_try():
    keys: list[str] = []
    tries: list[int] = []

    class Keyed(Shop):
        def order(self, item: str, quantity: int, key: str = "") -> dict:
            """Order an item."""
            keys.append(key)
            if len(keys) == 1:
                raise TimeoutError
            return super().order(item, quantity)

    for _ in range(2):
        execution = make_agent(Keyed().toolkit(idempotency="key"), PEN).invoke(ONE, thread())["execution"]
        assert execution["status"] == "done", "nobody is asked"
        tries.append(execution["calls"][0]["tries"])
    assert (len(keys), tries) == (3, [2, 1])
    assert len({*keys}) == 1


def test_what_another_process_is_calling_is_under_way_until_its_time_is_over(shop, monkeypatch):
    """The owner is of another machine: nothing but the time limit says that it is gone."""
    from gecko_graph.real import claims

    tools, saver = shop.toolkit(), KillingSaver(fate := Fate())
    monkeypatch.setattr(claims, "OWN", [""])

    def stop(item: str, quantity: int) -> dict:
        fate.kill_at = 1
        return {}

    dying = replace(tools["order"], real=stop)
    with contextlib.suppress(Killed, GeckoError):
        make_agent(tools.replace(dying), PEN, checkpointer=saver).invoke(ONE, thread())
    fate.kill_at = 0
    agent = start(shop, saver, PEN, interrupt_on="none")
    with pytest.raises(GeckoError, match="order is under way in another run of this thread"):
        agent.invoke(None, thread())
    later = claims.time.time() + 100
    monkeypatch.setattr(claims.time, "time", lambda: later)
    assert "not known" in question(agent.invoke(None, thread()))["action_requests"][0]["description"]
    assert not shop.calls
