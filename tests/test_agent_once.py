"""No real call is made twice: two runs on one mark, a parent's retry policy; and what the checks for it cost."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

from gecko_graph import RehearsalState, Toolkit, create_gecko_agent
from gecko_graph.errors import StateError
from gecko_graph.testing import recorded

from .test_agent import APPROVE, PLAN, TASK, Shop, shop, thread

__all__ = ["shop"]


def test_an_approval_that_is_sent_again_while_the_call_is_under_way_answers_no_other_question(shop):
    """A second click would ask whether the call took effect, and a third one's "approve" say that it did not."""
    begun, goes_on, order = Event(), Event(), shop.order

    def slow(item: str, quantity: int) -> dict:
        begun.set()
        goes_on.wait(20)
        return order(item, quantity)

    toolkit = shop.toolkit()
    toolkit = toolkit.replace(replace(toolkit["order"], real=slow))
    plan = [{"call": "order", "args": {"item": "pen", "quantity": 3}}, {"say": "Ordered."}]
    agent = create_gecko_agent(toolkit, models={"planner": recorded(planner=[plan])}, checkpointer=InMemorySaver())
    agent.invoke(TASK, thread())
    approve = Command(resume={"decisions": [APPROVE]})
    with ThreadPoolExecutor() as pool:
        first = pool.submit(agent.invoke, approve, thread())
        begun.wait(20)
        for _ in range(2):
            with pytest.raises(StateError, match="under way"):
                agent.invoke(approve, thread())
        goes_on.set()
        assert first.result()["execution"]["status"] == "done"
    assert shop.calls == ["order pen"]


@pytest.mark.parametrize("runs", ["invoke", "ainvoke"])
def test_a_tool_that_asks_by_an_interrupt_of_its_own_is_answered_and_runs_once(runs):
    made = []

    def order(item: str) -> dict:
        """Order an item."""
        made.append((item, interrupt("Which colour?")))
        return {"ok": True}

    toolkit = Toolkit.from_tools([order], effects={"order": "write"}, simulate={"order": lambda state, item: {}})
    plan = [{"call": "order", "args": {"item": "pen"}}, {"say": "Ordered."}]
    models = {"planner": recorded(planner=[plan]), "judge": recorded(judge=[JUDGED])}
    agent = create_gecko_agent(toolkit, models=models, review="none", checkpointer=InMemorySaver())

    def run(given: Any) -> Any:
        done = getattr(agent, runs)(given, thread())
        return asyncio.run(done) if runs == "ainvoke" else done

    out = run({"messages": [("user", "Order a pen")], "task_state": {}, "checklist": ["a pen is ordered"]})
    assert [each.value for each in out["__interrupt__"]] == ["Which colour?"]
    assert run(Command(resume="blue"))["execution"]["status"] == "done"
    assert made == [("pen", "blue")]


JUDGED = {"items": [{"id": "item-1", "status": "success"}]}


class FailingSaver(InMemorySaver):
    """Fails once, when the first real result is kept."""

    failed = False

    def put_writes(self, config: Any, writes: Any, *args: Any, **kwargs: Any) -> None:
        results = [value for channel, value in writes if channel == "journal" and isinstance(value, list)]
        if not FailingSaver.failed and any(entry["status"] == "ok" for value in results for entry in value):
            FailingSaver.failed = True
            raise ConnectionError("the saver is down")
        super().put_writes(config, writes, *args, **kwargs)


def test_a_parents_retry_policy_repeats_no_real_call(shop, monkeypatch):
    class Parent(RehearsalState):
        checklist: list
        execution: dict

    monkeypatch.setattr(FailingSaver, "failed", False)
    agent = create_gecko_agent(shop.toolkit(), models={"planner": recorded(planner=[PLAN])}, review="none")
    builder = StateGraph(Parent)
    builder.add_node("agent", agent, retry_policy=RetryPolicy(initial_interval=0.01, jitter=False))
    builder.add_edge(START, "agent")
    parent = builder.compile(checkpointer=FailingSaver())
    assert parent.invoke(TASK, thread())["execution"]["status"] == "done"
    assert shop.calls == ["order pen", "cancel real-1001", "order ink"]


class CountingSaver(InMemorySaver):
    """Counts the checkpoints that are read."""

    read = 0

    def list(self, *args: Any, **kwargs: Any) -> Any:
        for each in super().list(*args, **kwargs):
            CountingSaver.read += 1
            yield each


def test_before_a_call_only_what_is_new_in_the_thread_is_looked_at(monkeypatch):
    def count(calls: int) -> int:
        monkeypatch.setattr(CountingSaver, "read", 0)
        items = [f"pen{number}" for number in range(calls)]
        plan = [{"call": "order", "args": {"item": item, "quantity": 1}} for item in items]
        models = {"planner": recorded(planner=[[*plan, {"say": "Ordered."}]])}
        agent = create_gecko_agent(Shop().toolkit(), models=models, review="none", checkpointer=CountingSaver())
        checks = [{"description": "ordered", "check": f"state.orders | length == {calls}"}]
        task = {**TASK, "messages": [("user", " ".join(["order 1", *items]))], "checklist": checks}
        assert agent.invoke(task, thread())["execution"]["status"] == "done"
        return CountingSaver.read

    few, many = count(4), count(12)
    assert many - few <= 8 * 4


def test_a_task_of_the_functional_api_makes_the_calls_once(shop):
    models = {"planner": recorded(planner=[PLAN])}
    agent = create_gecko_agent(shop.toolkit(), models=models, review="none")
    failing = [ConnectionError("after the agent")]

    @task(retry_policy=RetryPolicy(max_attempts=2, initial_interval=0.01, jitter=False))
    def order(fails: bool) -> str:
        status = agent.invoke(TASK)["execution"]["status"]
        if fails and failing:
            raise failing.pop()
        return status

    @entrypoint(checkpointer=InMemorySaver())
    def flow(fails: bool) -> str:
        return order(fails).result()

    assert flow.invoke(False, thread("1")) == "done"
    assert len(shop.calls) == 3
    with pytest.raises(StateError, match="a retry policy"):
        flow.invoke(True, thread("2"))
    assert len(shop.calls) == 6
