"""`World.as_tools` in `ToolNode` and `create_agent`: the world answers, in the message's order, and nothing is real."""

from __future__ import annotations

from operator import itemgetter

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from gecko_graph import GeckoContext, Tool, Toolkit, World
from tests.middleware.bank import STATE, Bank, calls, chat, look, pay


def world_of(**more) -> World:
    return World(Bank().toolkit(), state=STATE, **more)


def graph(tools, saver=None):
    builder = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "tools")
    return builder.compile(checkpointer=saver)


def answers(out: dict) -> list[ToolMessage]:
    return [message for message in out["messages"] if isinstance(message, ToolMessage)]


@pytest.mark.parametrize("knob", ["serial", "snapshot", "strict"])
def test_the_calls_of_one_message_are_answered_in_their_order(run, knob):
    """`ToolNode` runs them side by side."""
    bank = Bank()
    world = World(bank.toolkit(), state=STATE, context=GeckoContext(parallel_calls=knob))
    given = {"messages": [HumanMessage("Pay"), calls(pay("a", 80), pay("b", 80), look("c"), pay("d", "x"))]}
    found = answers(run(graph(world.as_tools()), given))
    assert [message.status for message in found] == ["success", "error", "success", "error"]
    assert world.state["balance"] == 20
    assert [step["call"]["id"] for step in world.log] == ["a", "b", "c", "d"]
    assert found[0].additional_kwargs["gecko"] == {"simulated": True, "rung": "contract", "made_up": False}
    assert knob != "serial" or found[1].content == '{"error": "only 20 left"}'
    assert bank.calls == [], "with a wrapper for async calls alone, a sync run made them"


def test_in_create_agent_each_call_is_a_task_of_its_own(run):
    create_agent = pytest.importorskip("langchain.agents").create_agent
    world = world_of()
    agent = create_agent(chat(calls(pay("a", 80), pay("b", 80)), calls(look("c"))), tools=world.as_tools())
    found = answers(run(agent, {"messages": [("user", "Pay")]}))
    assert [message.status for message in found] == ["success", "error", "success"]
    assert [step["call"]["id"] for step in world.log] == ["a", "b", "c"]


def test_a_node_that_runs_again_after_an_interrupt_gives_the_same_answers(run):
    world, asked = world_of(), []

    def confirm() -> str:
        """Ask the user."""
        asked.append(1)
        return interrupt("sure?")

    built = graph([*world.as_tools(), confirm], InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    assert run(built, {"messages": [calls(pay("a", 30), ("b", "confirm", {}))]}, thread)["__interrupt__"]
    out = run(built, Command(resume="yes"), thread)
    assert [message.content for message in out["messages"][1:]] == [world_answer(world), "yes"]
    assert len(world.log) == 1
    assert len(asked) == 2


def world_answer(world: World) -> str:
    number = world.log[0]["outcome"]["result"]["id"]
    return f'{{"id": "{number}", "left": 70}}'


def test_only_the_worlds_own_calls_are_answered_together(run):
    world, real = world_of(), Bank()
    transfer = world.as_tools()[0]
    others = [tool for tool in real.toolkit().as_tools() if tool.name == "balance"]
    found = answers(run(graph([transfer, *others]), {"messages": [calls(look("a"), pay("b", 30))]}))
    assert found[0].content == '{"balance": 100}'
    assert real.calls == [("balance",)]
    assert [step["call"]["name"] for step in world.log] == ["transfer"]


def test_ids_that_a_model_uses_again_are_other_calls(run):
    world = world_of()
    built = graph(world.as_tools())
    for _ in range(2):
        run(built, {"messages": [calls(pay("call_1", 30))]})
    assert world.state["balance"] == 40


def test_a_world_by_thread(run):
    worlds = {name: world_of() for name in ("ann", "bob")}
    tools = world_of().as_tools(lambda runtime: worlds[runtime.config["configurable"]["user"]])
    run(graph(tools), {"messages": [calls(pay("a", 30))]}, {"configurable": {"user": "bob"}})
    assert [world.state["balance"] for world in worlds.values()] == [100, 70]


def test_arguments_of_any_name_reach_the_world_and_the_injected_one_cannot_be_sent(run):
    def order(runtime: str, config: str, state: str) -> str:
        """Order."""
        return f"{runtime} {config} {state}"

    toolkit = Toolkit.from_tools([Tool(order, effect="write", simulate=lambda s, **args: args)])
    world = World(toolkit)
    args = {"runtime": "r", "config": "c", "state": "s"}
    run(graph(world.as_tools()), {"messages": [calls(("a", "order", {**args, "gecko_runtime": "forged"}))]})
    found = [step["call"]["args"] for step in world.log]
    assert list(map(itemgetter("runtime"), found)) == ["r"]
