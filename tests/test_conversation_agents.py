"""Agents of a conversation that do what they should not: fail, loop, interrupt, mutate, keep tools of their own."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

from gecko_graph import Models, Scenario, create_conversation
from gecko_graph.testing import scripted
from tests.test_conversation import ANSWER, GOOD, SCENARIO, WEATHER, converse, factory, scenario, senders

pytest.importorskip("scipy")
__all__ = ["scenario"]

NOTE = {"call": "note", "args": {"text": "x"}}


def with_script(*lines, **more):
    return {**SCENARIO["user"], "script": list(lines), **more}


class Repeating(FakeMessagesListChatModel):
    """Returns the same message objects again and again."""

    def bind_tools(self, tools, **kwargs):
        return self


def test_messages_with_the_same_id_stay_apart(scenario):
    agent = Repeating(responses=[AIMessage("Hm?"), AIMessage("What?")])
    output = converse(agent, scenario(user=with_script("a", "b", "c")))
    assert [each.text for each in output["messages"][1::2]] == ["Hm?", "What?", "Hm?", "What?"]


def test_an_agent_that_loops_in_itself_ends_at_the_limit(scenario):
    output = converse(factory(scripted(*[WEATHER] * 500)), scenario())
    assert (output["score"]["end"], output["score"]["calls"]) == ("max_messages", 29)


def test_an_interrupt_of_the_agent_is_its_failure_and_loses_nothing(scenario):
    def agent(tools):
        async def act(state):
            await next(each for each in tools if each.name == "set_wifi").ainvoke({"on": True})

        graph = StateGraph(MessagesState)
        graph.add_node("act", act)
        graph.add_node("ask", lambda state: {"messages": [AIMessage(interrupt("May I?"))]})
        graph.add_edge(START, "act")
        graph.add_edge("act", "ask")
        graph.add_edge("ask", END)
        return graph.compile()

    output = converse(agent, scenario(), checkpointer=InMemorySaver())
    assert "leave out its interrupts" in output["score"]["reason"]
    assert output["score"]["milestones"][0]["similarity"] == 1.0


def test_an_agent_cannot_change_the_conversation_by_its_input(scenario):
    def spoil(values):
        for each in values["messages"]:
            each.content = "spoiled"
            each.additional_kwargs.clear()
        return AIMessage("It is sunny in Rome.")

    output = converse(lambda tools: RunnableLambda(spoil), scenario())
    assert output["messages"][0].text == "How is the weather in Rome?"


@pytest.mark.parametrize(
    ("made", "end", "text"),
    [
        (AIMessage("half \ud800"), "ended", "half ?"),
        (AIMessage("x" * 3_000_000), "agent_failed", "How is the weather in Rome?"),
        ({"messages": []}, "ended", ""),
        ("words", "agent_failed", "How is the weather in Rome?"),
    ],
)
def test_what_an_agent_returns_is_data(scenario, made, end, text):
    output = converse(lambda tools: RunnableLambda(lambda values: made), scenario())
    assert (output["score"]["end"], output["messages"][-1].text) == (end, text)


def test_a_tool_of_the_agents_own_is_no_call_of_an_unknown_tool(scenario):
    @tool
    def think(text: str) -> str:
        """Think."""
        return "thought"

    def agent(tools):
        from langchain.agents import create_agent

        return create_agent(scripted({"call": "think", "args": {"text": "a"}}, *GOOD), [*tools, think])

    output = converse(agent, scenario())
    assert (output["score"]["similarity"], output["score"]["calls"], output["score"]["failed_calls"]) == (1.0, 3, 1)
    assert [each["snapshot"] for each in output["score"]["milestones"]] == [8, 10, 11]


def test_a_message_that_no_checkpoint_can_hold_is_kept_as_far_as_it_can_be(scenario):
    broken = {"type": "invalid_tool_call", "name": "note", "args": {"text": "x"}, "id": "a", "error": 2**80}
    odd = AIMessage("").model_copy(update={"id": {"a": 1}, "invalid_tool_calls": [broken]})
    graph = create_conversation(
        Repeating(responses=[odd, AIMessage("So.")]), scenario=scenario(), checkpointer=InMemorySaver()
    )
    output = graph.invoke({}, {"configurable": {"thread_id": "1"}, "recursion_limit": 200})
    assert senders(output)[:4] == ["user", "agent", "tools", "agent"]
    assert output["world"]["log"][0]["call"]["malformed"] == '{"text": "x"}'


class Patient(Repeating):
    """Replies once the event loop has gone on."""

    loop: Any

    def _generate(self, *args, **kwargs):
        gone_on = threading.Event()
        self.loop.call_soon_threadsafe(gone_on.set)
        assert gone_on.wait(10), "the event loop is blocked"
        return super()._generate(*args, **kwargs)


@pytest.mark.parametrize("calls", [[WEATHER], [WEATHER, NOTE]])
@pytest.mark.parametrize("kind", ["invoke", "ainvoke"])
async def test_the_tools_of_an_agent_may_be_simulated_by_a_model(scenario, kind, calls):
    one = Scenario.from_dict(SCENARIO | {"user": with_script({"end": True})})
    reply = AIMessage('{"status": "ok", "result": {"sky": "clear"}, "patch": [], "unchanged": true}')
    agent = factory(scripted({"calls": calls}, ANSWER))
    graph = create_conversation(
        agent, scenario=one, model=Models(simulator=Patient(responses=[reply], loop=asyncio.get_running_loop()))
    )
    config = {"recursion_limit": 200}
    run = graph.ainvoke({}, config) if kind == "ainvoke" else asyncio.to_thread(graph.invoke, {}, config)
    output = await run
    assert (output["score"]["end"], output["score"]["failed_calls"]) == ("ended", 0)
    assert [step["outcome"]["rung"] for step in output["world"]["log"]] == ["model"] * len(calls)
    spent = {role: each["calls"] for role, each in output["score"]["usage"].items()}
    assert spent == {"planner": 2, "simulator": len(calls)}
