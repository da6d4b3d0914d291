"""Whose call it is: agents that share a thread, ids that begin anew, threads that were deleted."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage, ToolMessage
from langgraph.types import Command

from gecko_graph import Models, Tool, Toolkit
from tests.agents import Saying, call, embed, make_agent, thread

sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
THREAD = thread()


class Till:
    def __init__(self) -> None:
        self.paid: list[str] = []

    def toolkit(self, about: str = "Pay.") -> Toolkit:
        def pay(to: str) -> dict:
            self.paid.append(to)
            return {"number": len(self.paid)}

        pay.__doc__ = about
        return Toolkit.from_tools([Tool(pay, effect="write", simulate=lambda state, to: {"number": 1})])


@pytest.fixture
def saver():
    with contextlib.closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        yield sqlite.SqliteSaver(connection)


def agent_of(till: Till, saver: Any, *, embedded: bool = False, about: str = "Pay.", **more: Any) -> Any:
    plans = [[call("pay", to="ann"), {"say": "Paid."}]] * 3
    agent = make_agent(till.toolkit(about), *plans, checkpointer=None if embedded else saver, **more)
    return embed(agent, saver) if embedded else agent


def task(calls: int = 1, identifier: str = "m1") -> dict:
    item = {"description": "paid", "check": f"len(calls) == {calls}"}
    return {"messages": [HumanMessage("Pay ann", id=identifier)], "task_state": {}, "checklist": [item]}


@pytest.mark.parametrize("embedded", [False, True])
def test_agents_of_two_names_on_one_thread_each_make_their_own_call(saver, embedded):
    till = Till()
    for name in ("one", "two", "one", "two"):
        out = agent_of(till, saver, embedded=embedded, name=name).invoke(task(), THREAD)
        assert out["execution"]["status"] == "done" or name == "one"
    assert till.paid == ["ann"] * 2


def test_a_changed_description_does_not_have_a_message_paid_twice(saver):
    till = Till()
    for about in ("Pay.", "Pay somebody, at once."):
        agent_of(till, saver, embedded=True, about=about).invoke(task(), THREAD)
    assert till.paid == ["ann"]


def test_a_message_that_was_answered_and_trimmed_away_is_not_carried_out_again(saver):
    till = Till()
    agent = agent_of(till, saver)
    agent.invoke(task(), THREAD)
    agent.update_state(THREAD, {"messages": [RemoveMessage("m1")]}, as_node="close")
    out = agent_of(till, saver).invoke(task(), THREAD)
    assert till.paid == ["ann"]
    assert [each.type for each in out["messages"]] == ["ai", "human"]


@pytest.mark.parametrize("ids", [(["a"], ["a"]), (["a", "a"],), ([""], [None])])
def test_calls_of_a_plan_are_told_apart_whatever_their_ids_are(saver, ids):
    def say(messages: list) -> Any:
        """The calls of each message under its ids, as a provider would."""
        done = sum(isinstance(each, ToolMessage) for each in messages)
        now = next((each for at, each in enumerate(ids) if sum(map(len, ids[:at])) == done), ())
        return [{"id": each, "name": "pay", "args": {"to": "ann"}} for each in now] or "Paid."

    till = Till()
    agent = make_agent(till.toolkit(), model=Models(planner=Saying(say=say)), checkpointer=saver)
    out = agent.invoke(task(2), THREAD)
    assert till.paid == ["ann"] * 2
    assert out["execution"]["status"] == "done"
    assert len({each["key"] for each in out["execution"]["calls"]}) == 2


@pytest.mark.parametrize(
    ("embedded", "decision", "paid", "status"),
    [(False, "happened", 1, "done"), (True, "make_now", 2, "done"), (True, "skip", 1, "in_doubt")],
)
def test_what_a_deleted_thread_has_left_is_asked_about(saver, embedded, decision, paid, status):
    till = Till()
    agent_of(till, saver, embedded=embedded).invoke(task(), THREAD)
    saver.delete_thread("1")
    agent = agent_of(till, saver, embedded=embedded)
    asked = agent.invoke(task(), THREAD)["__interrupt__"][0].value
    assert "before the thread was deleted" in asked["action_requests"][0]["description"]
    assert till.paid == ["ann"]
    out = agent.invoke(Command(resume={"id": asked["id"], "decisions": [{"type": decision}]}), THREAD)
    assert len(till.paid) == paid
    assert out["execution"]["status"] == status
    agent_of(till, saver, embedded=embedded).invoke(task(), THREAD)
    assert len(till.paid) == paid


async def test_async_sqlite_asks_too(tmp_path):
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    till = Till()
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "saver.db")) as saver:
        await agent_of(till, saver).ainvoke(task(), THREAD)
        await saver.adelete_thread("1")
        out = await agent_of(till, saver).ainvoke(task(), THREAD)
    assert "before the thread was deleted" in out["__interrupt__"][0].value["action_requests"][0]["description"]
    assert till.paid == ["ann"]
