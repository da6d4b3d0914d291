"""`simulate_with` in a hand-made graph, `rehearse_pending`, `as_guidance`."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from gecko_graph import GeckoContext, GeckoError, World, create_gecko
from gecko_graph.middleware import as_guidance, asimulate_with, rehearse_pending, simulate_with
from gecko_graph.testing import recorded
from tests.middleware.bank import STATE, Bank, calls, look, pay


def graph(tools, *wrappers, saver=None):
    builder = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode(tools, wrap_tool_call=wrappers[0], awrap_tool_call=wrappers[-1]))
    builder.add_edge(START, "tools")
    return builder.compile(checkpointer=saver)


def run(world, *messages: AIMessage, mode: str = "sync", **more):
    built = graph(Bank().toolkit().as_tools(), simulate_with(world, **more), asimulate_with(world, **more))
    given = {"messages": [HumanMessage("Pay"), *messages]}
    out = built.invoke(given) if mode == "sync" else asyncio.run(built.ainvoke(given))
    return [message for message in out["messages"] if isinstance(message, ToolMessage)]


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize(
    ("knob", "statuses", "balance"),
    [
        ("serial", ["success", "error", "success"], 20),
        ("snapshot", ["success", "error", "success"], 20),
        ("strict", ["success", "error", "success"], 20),
    ],
)
def test_the_calls_of_one_message_are_answered_in_their_order(mode, knob, statuses, balance):
    """`ToolNode` runs them side by side."""
    world = World(Bank().toolkit(), state=STATE, context=GeckoContext(parallel_calls=knob))
    found = run(world, calls(pay("a", 80), pay("b", 80), look("c")), mode=mode)
    assert [message.status for message in found] == statuses
    assert world.state["balance"] == balance
    assert [step["call"]["id"] for step in world.log] == ["a", "b", "c"]
    assert found[0].additional_kwargs["gecko"]["simulated"]


def test_a_node_that_runs_again_after_an_interrupt_gives_the_same_answers():
    world, asked = World(Bank().toolkit(), state=STATE), []

    def confirm() -> str:
        """Ask the user."""
        asked.append(1)
        return interrupt("sure?")

    tools = [*Bank().toolkit().as_tools(), confirm]
    built = graph(tools, simulate_with(world, untouched=["confirm"]), saver=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    made = calls(pay("a", 30), ("b", "confirm", {}))
    assert built.invoke({"messages": [made]}, thread)["__interrupt__"]
    out = built.invoke(Command(resume="yes"), thread)
    assert [message.content for message in out["messages"][1:]] == [world_answer(world), "yes"]
    assert world.state["balance"] == 70
    assert len(world.log) == 1


def world_answer(world: World) -> str:
    number = world.log[0]["outcome"]["result"]["id"]
    return f'{{"id": "{number}", "left": 70}}'


def test_ids_that_a_model_uses_again_are_other_calls():
    world = World(Bank().toolkit(), state=STATE)
    for _ in range(2):
        run(world, calls(pay("call_1", 30)))
    assert world.state["balance"] == 40


def test_a_world_by_runtime_and_mistakes():
    worlds = {name: World(Bank().toolkit(), state=STATE) for name in ("ann", "bob")}
    built = graph(
        Bank().toolkit().as_tools(), simulate_with(lambda runtime: worlds[runtime.config["configurable"]["user"]])
    )
    built.invoke({"messages": [calls(pay("a", 30))]}, {"configurable": {"user": "bob"}})
    assert [world.state["balance"] for world in worlds.values()] == [100, 70]
    with pytest.raises(GeckoError, match="expected a World"):
        simulate_with(3)
    with pytest.raises(GeckoError, match="list of tool names"):
        simulate_with(worlds["ann"], untouched="transfer")


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_pending_calls_are_rehearsed_and_not_answered(mode):
    world = World(Bank().toolkit(), state=STATE)
    node = rehearse_pending(world, review="all")
    state = {"messages": [HumanMessage("Pay"), calls(pay("a", 30), pay("b", "x"), ("c", "nope", {}))]}
    out = node.invoke(state) if mode == "sync" else asyncio.run(node.ainvoke(state))
    assert out["preview"]["changes"][0] == "add /transfers/" + out["outcomes"][0]["outcome"]["result"]["id"] + " 30"
    assert [each["predicted"]["status"] for each in out["preview"]["calls"]] == ["ok", "error"]
    assert [each["review"] for each in out["preview"]["calls"]] == ["ask", "ask"]
    assert [step["call"]["id"] for step in out["outcomes"]] == ["a", "b", "c"]
    assert "complaints" in out["outcomes"][2]
    assert world.log == []
    done = {"messages": [*state["messages"], *(ToolMessage("x", tool_call_id=id_) for id_ in "abc")]}
    assert node.invoke(done) == {"preview": None, "outcomes": []}


def test_a_rehearsal_as_guidance_for_the_agent_that_acts():
    attempts = [
        [{"call": "transfer", "args": {"to": "ann", "amount": 300}}, {"say": "I could not."}],
        [{"call": "transfer", "args": {"to": "ann", "amount": 30}}, {"say": "Paid."}],
    ]
    gecko = create_gecko(Bank().toolkit(), models={"planner": recorded(planner=attempts)})
    items = [{"description": "ann has 30", "check": "state.balance == 70"}]
    out = gecko.invoke({"messages": [("user", "Pay ann 30")], "task_state": STATE, "checklist": items})
    message = as_guidance(out)
    assert isinstance(message, HumanMessage)
    text = message.text
    assert "Attempt 1 (failed" in text
    assert "Attempt 2 (accepted, score 1.00, the best)" in text
    assert "only 100 left" in text
    assert out["rehearsal"]["attempts"][0]["verdict"]["feedback"] in text
    assert as_guidance(out["rehearsal"]).text == text
    assert len(as_guidance(out, budget=400).text) < len(text) + 1
    with pytest.raises(GeckoError, match="expected the graph's output"):
        as_guidance({})
