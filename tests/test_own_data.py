"""`with_data`: whatever begins with such tools begins with their data, beneath a state that is given."""

from __future__ import annotations

from copy import deepcopy

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import Models, Toolkit, World, create_gecko
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.testing import recorded, scripted
from gecko_graph.tools import with_data
from tests.agents import call, make_agent, thread

START = {"free": ["mon-10", "tue-11"], "bookings": []}
LOOK, BOOK, SAY = call("look"), call("book", slot="mon-10"), {"say": "Done."}
ITEMS = [{"description": "it is done", "check": "True"}]


@pytest.fixture
def data():
    return deepcopy(START)


@pytest.fixture
def toolkit(data):
    @tool
    def look() -> list[str]:
        """List the free slots."""
        return list(data["free"])

    @tool
    def book(slot: str) -> str:
        """Book a free slot."""
        data["free"].remove(slot)
        data["bookings"].append(slot)
        return f"{slot} is booked"

    return Toolkit.from_tools(with_data([look, book], data))


def free(world):
    return world.call({"name": "look", "args": {}})["outcome"]["result"]


def test_a_world_begins_with_the_data_beneath_what_is_given(toolkit, data):
    assert World(toolkit).state == World(toolkit, state={}).state == START
    assert free(World(toolkit)) == ["mon-10", "tue-11"]
    given = World(toolkit, state={"free": ["wed-12"], "now": "2026-01-01"})
    assert (free(given), given.state["bookings"]) == (["wed-12"], [])
    world = World(toolkit)
    world.call({"name": "book", "args": {"slot": "mon-10"}})
    assert free(world) == free(World.restore(toolkit, world.snapshot())) == free(world.fork()) == ["tue-11"]
    assert free(world.begin({})) == ["mon-10", "tue-11"]
    assert data == START
    data["free"].append("thu-13")
    assert free(World(toolkit)) == ["mon-10", "tue-11", "thu-13"]
    assert free(world) == ["tue-11"]


@pytest.mark.parametrize("given", [{}, {"task_state": {"now": "2026-01-01"}}])
def test_a_rehearsal_begins_with_the_data(toolkit, given):
    model = Models(planner=recorded({"planner": [[LOOK, BOOK, SAY]]}, {"planner": [[LOOK, SAY]]}))
    gecko = create_gecko(toolkit, model=model, checkpointer=InMemorySaver())
    first = gecko.invoke({"messages": [("user", "Book a slot")], "checklist": ITEMS, **given}, thread())
    assert first["task_state"] == {**given.get("task_state", {}), "free": ["tue-11"], "bookings": ["mon-10"]}
    second = gecko.invoke({"messages": [("user", "What is left?")], "checklist": ITEMS}, thread())
    assert second["rehearsal"]["attempts"][0]["steps"][0]["outcome"]["result"] == ["tue-11"]


def test_an_agent_that_carries_out_begins_with_the_data(toolkit, data):
    agent = make_agent(toolkit, [BOOK, SAY])
    done = agent.invoke({"messages": [("user", "Book a slot")], "checklist": ITEMS}, thread())
    assert [each["result"] for each in done["execution"]["calls"]] == ["mon-10 is booked"]
    assert done["task_state"] == data == {"free": ["tue-11"], "bookings": ["mon-10"]}


@pytest.mark.parametrize("state", [None, lambda runtime: {"now": "2026-01-01"}])
def test_an_agent_behind_the_middleware_begins_with_the_data(toolkit, data, state):
    middleware = GeckoMiddleware(toolkit, state=state)
    agent = create_agent(
        scripted(LOOK, BOOK, SAY, LOOK, SAY), toolkit.as_tools(), middleware=[middleware], checkpointer=InMemorySaver()
    )
    agent.invoke({"messages": [("user", "Book a slot")]}, thread())
    out = agent.invoke({"messages": [("user", "What is left?")]}, thread())
    results = [message.content for message in out["messages"] if message.type == "tool"]
    assert results == ['["mon-10", "tue-11"]', "mon-10 is booked", '["tue-11"]']
    assert data == START
