"""The agent killed or run twice anywhere: no call is made again, doubts are asked about, the end is the same."""

from __future__ import annotations

import contextlib
import json
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from threading import Event
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.types import Command, RetryPolicy, interrupt

from evals.reality.killing import Fate, Killed, KillingSaver
from gecko_graph import GeckoError, Models, Tool, Toolkit
from gecko_graph.errors import StateError

from .agents import APPROVE, Saying, embed, make_agent, thread
from .test_agent import PLAN, TASK, Shop, shop

__all__ = ["shop"]

DEAD = (Killed, GeckoError)
"""A dead process whose thread lives on here cannot write its claims either, and makes no call."""


class Service(Shop):
    """The shop; the process that calls it can die in a call: before it took effect, or after."""

    def __init__(self, fate: Fate | None = None, die_at: int = 0, *, after: bool = False) -> None:
        super().__init__()
        self.fate, self.die_at, self.after, self.log = fate, die_at, after, []

    def order(self, item: str, quantity: int) -> dict:
        """Order an item."""
        return self._made(f"order {item}", lambda: Shop.order(self, item, quantity))

    def cancel(self, id: str) -> dict:
        """Cancel an order."""
        return self._made("cancel", lambda: Shop.cancel(self, id))

    def _made(self, name: str, call: Any) -> Any:
        self.die_at -= 1
        if self.die_at == 0:
            self.fate.kill_at = 1  # from now on nothing is written, whatever comes back
        if self.die_at == 0 and not self.after:
            raise RuntimeError
        result = call()
        self.log.append((name, result))
        return result


def go_on(messages: list) -> Any:
    """Go on with the plan behind the calls that are shown with results."""
    done = [each for each in messages if isinstance(each, ToolMessage) and each.status != "error"]
    call = {"name": (step := PLAN[len(done)]).get("call"), "args": step.get("args"), "id": f"c{len(messages)}"}
    if call["name"] == "cancel":
        call["args"] = {"id": json.loads(done[0].text)["id"]}
    return [call] if call["name"] else step["say"]


def start(service: Service, saver: Any, *, as_node: bool, **options: Any) -> Any:
    """A process: an agent of its own over the same service and saver."""
    options |= {"model": Models(planner=Saying(say=go_on)), "checkpointer": None if as_node else saver}
    agent = make_agent(service.toolkit(), **options)
    return embed(agent, saver) if as_node else agent


@cache
def count_writes(*, as_node: bool) -> int:
    """How often a run that nothing kills writes to its saver."""
    start(Service(), KillingSaver(whole := Fate()), as_node=as_node).invoke(TASK, thread())
    return whole.count


def finish(service: Service, saver: Any, **options: Any) -> tuple[dict, int]:
    """Go on in new processes until the run is over; doubts are answered from the service's own log."""
    given: Any = None if list(saver.list(thread())) else TASK
    for asked in range(10):
        out = start(service, saver, **options).invoke(given, thread())
        if "__interrupt__" not in out:
            return out, asked
        question = out["__interrupt__"][0].value
        (action,) = question["action_requests"]
        given = Command(resume={"id": question["id"], "decisions": [answer_from(service.log, action)]})
    raise AssertionError("it does not end")


def answer_from(log: list[tuple[str, Any]], action: dict) -> dict:
    """What the service's log says of a call in doubt: each call of the plan is another one."""
    name = action["name"] if action["name"] == "cancel" else f"order {action['args']['item']}"
    results = [result for key, result in log if key == name]
    if not results:
        return {"type": "make_now"}
    return {"type": "happened", "message": json.dumps(results[-1])}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("die_at", [1, 2, 3])
def test_killed_within_a_call_it_is_asked_about_and_the_end_is_the_same(die_at, after):
    fate, as_node = Fate(), after != (die_at == 2)
    service, saver = Service(fate, die_at, after=after), KillingSaver(fate)
    with pytest.raises(DEAD):
        start(service, saver, as_node=as_node).invoke(TASK, thread())
    fate.kill_at = 0
    out, asked = finish(service, saver, as_node=as_node)
    assert asked == 1
    assert [name for name, _ in service.log] == ["order pen", "cancel", "order ink"]
    assert [*service.orders.values()] == ["ink"]
    assert out["task_state"]["orders"] == service.orders
    assert out["execution"]["status"] == "done"


@pytest.mark.parametrize("seed", range(12))
def test_killed_at_any_write_no_call_is_made_twice(seed):
    """At a write of each twelfth of the run."""
    chance, as_node = random.Random(seed), bool(seed % 2)
    durability, slow = chance.choice([None, "async", "sync"]), chance.choice([0.0, 0.0, 0.003])
    number = 1 + int((seed + chance.random()) * count_writes(as_node=as_node) / 12)
    fate = Fate(number, after=chance.random() < 0.5, slow_s=slow)
    service, saver = Service(), KillingSaver(fate)
    with contextlib.suppress(DEAD):
        start(service, saver, as_node=as_node).invoke(TASK, thread(), durability=durability)
    fate.kill_at = 0
    out, _ = finish(service, saver, as_node=as_node)
    assert [name for name, _ in service.log] == ["order pen", "cancel", "order ink"]
    assert out["task_state"]["orders"] == service.orders
    assert out["execution"]["status"] == "done"


def test_an_approval_that_is_sent_again_while_the_call_is_under_way_answers_no_other_question(shop):
    """A second click would ask whether the call took effect, and a third one's "approve" say that it did not."""
    begun, goes_on, order = Event(), Event(), shop.order

    def slow(item: str, quantity: int) -> dict:
        begun.set()
        goes_on.wait(20)
        return order(item, quantity)

    toolkit = shop.toolkit()
    plan = [PLAN[0], {"say": "Ordered."}]
    agent = make_agent(toolkit.replace(replace(toolkit["order"], real=slow)), plan, interrupt_on="writes")
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


async def test_a_tool_that_asks_by_an_interrupt_of_its_own_is_answered_and_runs_once():
    made = []

    def order(item: str) -> dict:
        """Order an item."""
        made.append((item, interrupt("Which colour?")))
        return {"ok": True}

    toolkit = Toolkit.from_tools([Tool(order, effect="write", simulate=lambda state, item: {})])
    plan = [{"call": "order", "args": {"item": "pen"}}, {"say": "Ordered."}]
    agent, checks = make_agent(toolkit, plan), [{"description": "a pen is ordered", "check": "calls"}]
    given = {"messages": [("user", "Order a pen")], "task_state": {}, "checklist": checks}
    out = await agent.ainvoke(given, thread())
    assert [each.value for each in out["__interrupt__"]] == ["Which colour?"]
    assert (await agent.ainvoke(Command(resume="blue"), thread()))["execution"]["status"] == "done"
    assert made == [("pen", "blue")]


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
    monkeypatch.setattr(FailingSaver, "failed", False)
    agent = make_agent(shop.toolkit(), PLAN, checkpointer=None)
    parent = embed(agent, FailingSaver(), retry_policy=RetryPolicy(initial_interval=0.01, jitter=False))
    assert parent.invoke(TASK, thread())["execution"]["status"] == "done"
    assert FailingSaver.failed
    assert shop.calls == ["order pen", "cancel real-1001", "order ink"]


def test_a_task_of_the_functional_api_makes_the_calls_once(shop):
    agent = make_agent(shop.toolkit(), PLAN, checkpointer=None)
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
