"""Two runs on one thread: a call is made once, and both know what came of it, or one run is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import ClassVar

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph.errors import StateError
from gecko_graph.middleware import GeckoMiddleware
from tests.middleware.bank import STATE, Bank, calls, chat, pay

THREAD = {"configurable": {"thread_id": "1"}}
TASK = {"messages": [("user", "Pay ann")], "task_state": STATE}
APPROVE = Command(resume={"decisions": [{"type": "approve"}]})


def agent_of(bank, saver, mode, *messages):
    toolkit = bank.toolkit()
    middleware = [GeckoMiddleware(toolkit, mode=mode)]
    return create_agent(chat(*messages), tools=toolkit.as_tools(), middleware=middleware, checkpointer=saver)


def paused(bank, saver):
    agent = agent_of(bank, saver, "preview", calls(pay("a", 30)))
    agent.invoke(TASK, THREAD)
    return agent


class SlowBank(Bank):
    def __init__(self):
        super().__init__()
        self.begun, self.goes_on = Event(), Event()

    def transfer(self, to: str, amount: int) -> dict:
        """Transfer money."""
        self.begun.set()
        self.goes_on.wait(20)
        return super().transfer(to, amount)


def test_while_the_call_is_under_way(run):
    bank = SlowBank()
    agent = paused(bank, InMemorySaver())
    with ThreadPoolExecutor() as pool:
        first = pool.submit(run, agent, APPROVE, THREAD)
        bank.begun.wait(20)
        second = pool.submit(run, agent, APPROVE, THREAD)
        bank.begun.clear()
        assert not bank.begun.wait(0.3)
        bank.goes_on.set()
        outs = [first.result(), second.result()]
    assert bank.calls == [("transfer", "ann", 30)]
    assert [out["gecko"]["state"]["balance"] for out in outs] == [70, 70]


class Twice(InMemorySaver):
    """Has the other run begin, and end, before the first checkpoint of this one is kept."""

    others: ClassVar[list] = []  # LangGraph makes copies of a saver

    def put(self, *given):
        if Twice.others:
            thread = Thread(target=Twice.others.pop())  # without this run's context
            thread.start()
            thread.join()
        return super().put(*given)


def test_before_the_call():
    bank = Bank()
    agent = paused(bank, Twice())
    Twice.others.append(lambda: agent.invoke(APPROVE, THREAD))
    with pytest.raises(StateError, match="another run"):
        agent.invoke(APPROVE, THREAD, durability="sync")
    assert bank.calls == [("transfer", "ann", 30)]


def test_two_messages_at_once_do_not_spend_the_same_money():
    bank = Bank()
    agent = agent_of(bank, Twice(), "guard", calls(pay("a", 80)), AIMessage("Paid."), calls(pay("b", 80)))
    Twice.others.append(lambda: agent.invoke(TASK, THREAD))
    with pytest.raises(StateError, match="another run"):
        agent.invoke(TASK, THREAD, durability="sync")
    assert bank.calls == [("transfer", "ann", 80)]
