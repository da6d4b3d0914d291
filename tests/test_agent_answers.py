"""An answer belongs to its question, a real call to one claim: answers and messages sent again, kills, replays."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.callbacks import GraphCallbackHandler, GraphInterruptEvent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import GeckoError, Models, Refused, RehearsalState, create_gecko_agent
from gecko_graph.scenario import order_service, shipped
from gecko_graph.testing import recorded
from tests.test_agent import APPROVE, ITEMS, PLAN, TASK, Shop, answer, shop, thread

__all__ = ["shop"]

PEN = [PLAN[0], {"say": "Ordered."}]
GOLD = [{"call": "order", "args": {"item": "gold", "quantity": 900}}, {"say": "Ordered."}]
ORDERED = [{"description": "ordered", "check": "len(state.orders) == 1"}]
ONE = {"messages": [HumanMessage("Order 3 pens", id="m1")], "task_state": {"orders": {}}, "checklist": ORDERED}
PLACES = ["alone", "as a node", "two deep", "in a tool", "sent"]
AGAIN = Command(resume={"decisions": [APPROVE]})


class Parent(RehearsalState):
    checklist: list
    execution: dict


def start(shop: Shop, saver: Any, *plans: list, place: str = "alone", **more: Any) -> Any:
    """Return the agent of a new process over the same shop and saver."""
    more = {"model": Models(planner=recorded(planner=[*plans])), **more}
    agent = create_gecko_agent(shop.toolkit(), checkpointer=saver if place == "alone" else None, **more)
    if place == "alone":
        return agent
    builder = StateGraph(Parent)
    if place == "in a tool":

        @tool
        def act(request: str) -> str:
            """Act."""
            return agent.invoke({**ONE, "messages": [HumanMessage(request, id="m1")]})["execution"]["status"]

        builder.add_node("agent", lambda state: {"execution": {"status": act.invoke("Order 3 pens")}})
    else:
        builder.add_node("agent", agent)
    if place == "sent":
        builder.add_conditional_edges(START, lambda state: [Send("agent", state)], ["agent"])
    else:
        builder.add_edge(START, "agent")
    if place == "two deep":
        outer = StateGraph(Parent)
        outer.add_node("team", builder.compile())
        outer.add_edge(START, "team")
        builder = outer
    return builder.compile(checkpointer=saver)


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


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("by_id", [False, True])
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


@pytest.mark.parametrize("place", ["alone", "as a node", "two deep"])
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


class Looking(BaseChatModel):
    """Orders ink if no call that it is shown has done so; keeps what it was shown."""

    seen: list[str]

    @property
    def _llm_type(self) -> str:
        return "looking"

    def bind_tools(self, *args: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list, *args: Any, **kwargs: Any) -> ChatResult:
        shown = "\n".join(f"{each.type}: {each.text} {getattr(each, 'tool_calls', '')}" for each in messages)
        self.seen.append(shown)
        ink = {"id": "1", "name": "order", "args": {"item": "ink", "quantity": 1}}
        message = AIMessage("Ordered.") if "'ink'" in shown else AIMessage("", tool_calls=[ink])
        return ChatResult(generations=[ChatGeneration(message=message)])


@pytest.mark.parametrize("place", ["alone", "as a node"])
@pytest.mark.parametrize("identifier", ["m1", None])
def test_real_calls_of_an_interrupted_turn_stand_in_the_new_question_and_prompt(place, identifier):
    fate, shop = Fate(), Shop()
    saver, checks = KillingSaver(fate), [{"description": "ordered", "check": "state.orders"}]
    task = {**TASK, "messages": [HumanMessage("Order 3 pens, cancel, order ink", id=identifier)], "checklist": checks}
    real, planner = shop.cancel, Looking(seen=[])

    def cancel(id: str) -> dict:
        """Cancel an order."""
        fate.kill_at = 1
        raise Killed

    shop.cancel = cancel
    with contextlib.suppress(Killed, GeckoError):
        start(shop, saver, PLAN, interrupt_on="none", place=place).invoke({**task, "checklist": ITEMS}, thread())
    fate.kill_at, shop.cancel = 0, real
    assert shop.calls == ["order pen"]
    graph = start(shop, saver, place=place, model=Models(planner=planner))
    doubt = question(graph.invoke(task, thread()))
    assert doubt["action_requests"][0]["name"] == "cancel"
    skip = Command(resume={"id": doubt["id"], "decisions": [{"type": "skip"}]})
    asked = question(graph.invoke(skip, thread()))
    assert items(asked) == ["ink"]
    text = asked["action_requests"][0]["description"]
    assert text.startswith("Already, for real:")
    assert "Done: order (item pen, quantity 3): id real-1001, item pen" in text
    assert "In doubt: cancel" in text
    assert "'pen', 'quantity': 3" in planner.seen[0]
    assert "It is not known whether this call took effect" in planner.seen[0]
    out = graph.invoke(Command(resume={"id": asked["id"], "decisions": [APPROVE]}), thread())
    assert shop.calls == ["order pen", "order ink"]
    assert out["task_state"]["orders"] == shop.orders
    assert "In doubt: cancel" in out["messages"][-1].text
    later = graph.invoke({"messages": [("user", "And now?")], "checklist": ITEMS}, thread())["messages"][-1].text
    assert "In doubt" not in later
    assert "Before" not in later


def test_siblings_that_are_sent_at_once_each_make_their_own_calls_and_again_none():
    shop, saver = Shop(), InMemorySaver()
    agent = create_gecko_agent(shop.toolkit(), model=Models(planner=recorded(planner=[PEN, PEN])), interrupt_on="none")

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
        shop = Keyed()
        models = {"planner": recorded(planner=[PEN])}
        tools = shop.toolkit(idempotency="key")
        agent = create_gecko_agent(tools, model=Models(**models), interrupt_on="none", checkpointer=InMemorySaver())
        execution = agent.invoke(ONE, thread())["execution"]
        assert execution["status"] == "done", "nobody is asked"
        tries.append(execution["calls"][0]["tries"])
    assert (len(keys), tries) == (3, [2, 1])
    assert len({*keys}) == 1


def test_equal_calls_of_one_plan_are_two_calls(shop):
    plan = [*[{"call": "order", "args": {"item": "pen", "quantity": 3}}] * 2, {"say": "Ordered."}]
    checks = [{"description": "two", "check": "len(state.orders) == 2"}]
    agent = start(shop, InMemorySaver(), plan, interrupt_on="none")
    out = agent.invoke({**ONE, "messages": [("user", "Order 3 pens twice")], "checklist": checks}, thread())
    assert out["execution"]["status"] == "done"
    assert shop.calls == ["order pen"] * 2


def test_what_another_process_is_calling_is_under_way_until_its_time_is_over(shop, monkeypatch):
    """The owner is of another machine: nothing but the time limit says that it is gone."""
    from gecko_graph.real import claims

    tools, saver = shop.toolkit(), KillingSaver(fate := Fate())
    monkeypatch.setattr(claims, "OWN", [""])

    def stop(item: str, quantity: int) -> dict:
        fate.kill_at = 1
        return {}

    dying = replace(tools["order"], real=stop)
    gone = create_gecko_agent(
        tools.replace(dying), model=Models(planner=recorded(planner=[PEN])), interrupt_on="none", checkpointer=saver
    )
    with contextlib.suppress(Killed, GeckoError):
        gone.invoke(ONE, thread())
    fate.kill_at = 0
    agent = start(shop, saver, PEN, interrupt_on="none")
    with pytest.raises(GeckoError, match="order is under way in another run of this thread"):
        agent.invoke(None, thread())
    later = claims.time.time() + 100
    monkeypatch.setattr(claims.time, "time", lambda: later)
    assert "not known" in question(agent.invoke(None, thread()))["action_requests"][0]["description"]
    assert not shop.calls


class PushApprovals(GraphCallbackHandler):
    def __init__(self):
        self.pushed = {}

    def on_interrupt(self, event: GraphInterruptEvent):
        if not event.checkpoint_ns:  # the outermost graph's
            self.pushed |= {each.id: each.value for each in event.interrupts}


def test_a_callback_pushes_the_question_and_its_answer_resumes_by_the_interrupts_id():
    case, push = shipped("order"), PushApprovals()
    config: Any = {"configurable": {"thread_id": "pushed"}, "callbacks": [push]}
    with order_service() as service:
        agent = create_gecko_agent(service.toolkit(), model=case.models(), checkpointer=InMemorySaver())
        agent.invoke(case.inputs(), config)
        ((interrupt_id, asked),) = push.pushed.items()
        decisions = {"decisions": [{"type": "approve"} for _ in asked["action_requests"]]}
        run = agent.invoke(Command(resume={interrupt_id: decisions}), config)
        assert run["execution"]["status"] == "done"
        assert run["task_state"] == service.state()
