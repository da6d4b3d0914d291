"""An approval that is sent twice: the call is made once, and both runs know what came of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import ClassVar

import pytest

pytest.importorskip("langchain")

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from gecko_graph.middleware import GeckoMiddleware
from tests.middleware.bank import STATE, Bank, calls, chat, pay

THREAD = {"configurable": {"thread_id": "1"}}
APPROVE = Command(resume={"decisions": [{"type": "approve"}]})


def paused(bank, saver):
    toolkit = bank.toolkit()
    middleware = [GeckoMiddleware(toolkit, mode="preview", state=STATE)]
    model = chat(calls(pay("a", 30)))
    agent = create_agent(model, tools=toolkit.as_tools(), middleware=middleware, checkpointer=saver)
    agent.invoke({"messages": [("user", "Pay ann")]}, THREAD)
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
    out = agent.invoke(APPROVE, THREAD, durability="sync")
    assert out["gecko"]["state"]["balance"] == 70
    assert bank.calls == [("transfer", "ann", 30)]
