"""Agents of a conversation that do what they should not: fail, loop, interrupt, mutate, keep tools of their own."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

from gecko_graph import Models, Scenario, create_conversation
from gecko_graph.testing import scripted
from tests.test_conversation import ANSWER, GOOD, SCENARIO, WEATHER, WIFI, converse, factory, scenario, senders

pytest.importorskip("scipy")
__all__ = ["scenario"]

NOTE = {"call": "note", "args": {"text": "x"}}


def with_script(*lines, **more):
    return {**SCENARIO["user"], "script": list(lines), **more}


class Repeating(FakeMessagesListChatModel):
    """Returns the same message objects again and again."""

    def bind_tools(self, tools, **kwargs):
        return self


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
    assert output["score"]["milestones"][0]["similarity"] == 1.0, "what it did before that is scored"
    assert senders(output) == ["user", "agent", "tools"]


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


def test_a_message_that_no_checkpoint_can_hold_is_kept_as_far_as_it_can_be(scenario):
    broken = {"type": "invalid_tool_call", "name": "note", "args": {"text": "x"}, "id": "a", "error": 2**80}
    odd = AIMessage("").model_copy(update={"id": {"a": 1}, "invalid_tool_calls": [broken]})
    output = converse(Repeating(responses=[odd, AIMessage("So.")]), scenario(), checkpointer=InMemorySaver())
    assert senders(output)[:4] == ["user", "agent", "tools", "agent"]
    assert output["world"]["log"][0]["call"]["malformed"] == '{"text": "x"}'


async def run(graph, kind):
    config = {"recursion_limit": 200}
    return await (graph.ainvoke({}, config) if kind == "ainvoke" else asyncio.to_thread(graph.invoke, {}, config))


class Patient(Repeating):
    """Replies once the event loop has gone on."""

    loop: Any

    def _generate(self, *args, **kwargs):
        gone_on = threading.Event()
        self.loop.call_soon_threadsafe(gone_on.set)
        assert gone_on.wait(10), "the event loop is blocked"
        return super()._generate(*args, **kwargs)


@pytest.mark.parametrize(("kind", "calls"), [("invoke", [WEATHER, NOTE]), ("ainvoke", [WEATHER])])
async def test_the_tools_of_an_agent_may_be_simulated_by_a_model(scenario, kind, calls):
    one = Scenario.from_dict(SCENARIO | {"user": with_script({"end": True})})
    reply = AIMessage('{"status": "ok", "result": {"sky": "clear"}, "patch": [], "unchanged": true}')
    model = Models(simulator=Patient(responses=[reply], loop=asyncio.get_running_loop()))
    graph = create_conversation(factory(scripted({"calls": calls}, ANSWER)), scenario=one, model=model)
    output = await run(graph, kind)
    assert (output["score"]["end"], output["score"]["failed_calls"]) == ("ended", 0)
    assert [step["outcome"]["rung"] for step in output["world"]["log"]] == ["model"] * len(calls)
    spent = {role: each["calls"] for role, each in output["score"]["usage"].items()}
    assert spent == {"planner": 2, "simulator": len(calls)}


def test_the_same_words_after_calls_that_worked_are_no_failure(scenario):
    output = converse(scripted(*[NOTE, {"say": "Done."}] * 5), scenario(user=with_script("a", "b", "c", "d")))
    assert (output["score"]["end"], output["score"]["calls"]) == ("ended", 5)


def test_a_system_prompt_does_not_open_the_conversation(scenario):
    output = converse(scripted(*GOOD), scenario(), values={"messages": [SystemMessage("Be brief.")]})
    assert senders(output)[:3] == ["system", "user", "agent"]
    assert output["score"]["similarity"] == 1.0
    assert output["world"]["state"]["now"] == "2026-11-22T10:01"


def test_an_agent_may_leave_its_calls_to_the_conversation(scenario):
    def call(values):
        number = sum(isinstance(each, AIMessage) for each in values["messages"])
        calls = [{"name": one["call"], "args": one["args"], "id": str(number)} for one in (WIFI, WEATHER)]
        return AIMessage("", tool_calls=calls[number : number + 1]) if number < 2 else AIMessage(ANSWER["say"])

    output = converse(lambda tools: RunnableLambda(call), scenario())
    assert (output["score"]["similarity"], output["score"]["calls"]) == (1.0, 2)


def test_the_user_s_model_gets_no_two_messages_of_one_side_in_a_row(scenario):
    heard = []

    class User(Repeating):
        def _generate(self, messages, *args, **kwargs):
            heard.append([type(each) for each in messages])
            return super()._generate(messages, *args, **kwargs)

    spec = {key: value for key, value in SCENARIO["user"].items() if key not in ("script", "opening")}
    user = User(
        responses=[AIMessage("Go on."), AIMessage("", tool_calls=[{"name": "end_conversation", "args": {}, "id": "1"}])]
    )
    started = {"messages": [AIMessage("Welcome!"), AIMessage("How can I help?")]}
    converse(scripted({"say": "So."}), scenario(user=spec), values=started, user=user)
    assert heard[0] == [SystemMessage, HumanMessage]
    assert heard[1] == [SystemMessage, HumanMessage, AIMessage, HumanMessage]


@pytest.mark.parametrize(("kind", "hook"), [("invoke", "wrap_model_call"), ("ainvoke", "wrap_tool_call")])
async def test_an_agent_with_synchronous_middleware_is_run_in_a_thread(scenario, kind, hook):
    from langchain.agents import create_agent
    from langchain.agents.middleware import AgentMiddleware

    seen = []

    def pass_on(self, request, handler):
        seen.append(threading.current_thread() is threading.main_thread())
        return handler(request)

    middleware = type("Watching", (AgentMiddleware,), {hook: pass_on})()
    graph = create_conversation(
        lambda tools: create_agent(scripted(*GOOD), tools, middleware=[middleware]), scenario=scenario()
    )
    score = (await run(graph, kind))["score"]
    assert (score["end"], score["similarity"], score["calls"], score["failed_calls"]) == ("ended", 1.0, 3, 1)
    assert {*seen} == {False}


def test_an_agent_whose_tool_has_run_is_not_run_twice(scenario):
    ran = []

    @tool
    def think(text: str) -> str:
        """Think."""
        ran.append(text)
        raise NotImplementedError("no thoughts")

    def agent(tools):
        from langchain.agents import create_agent

        return create_agent(scripted({"call": "think", "args": {"text": "a"}}, *GOOD), [*tools, think])

    output = converse(agent, scenario())
    assert (output["score"]["end"], ran) == ("agent_failed", ["a"])
    assert "no thoughts" in output["score"]["reason"]


def test_an_agent_that_loops_in_itself_ends_at_the_limit(scenario):
    output = converse(factory(scripted(*[WEATHER] * 500)), scenario())
    assert (output["score"]["end"], output["score"]["calls"]) == ("max_messages", 29)


def test_a_reply_of_an_agent_s_model_is_counted_whatever_it_holds(scenario):
    odd = AIMessage("").model_copy(update={"tool_calls": [{"name": "note", "args": {}, "id": ["a"]}, {"args": {}}]})
    model = Repeating(responses=[odd])

    def agent(tools):
        return RunnableLambda(lambda values: (model.invoke(values["messages"]), AIMessage("So."))[1])

    output = converse(agent, scenario(user=with_script({"end": True})))
    assert output["messages"][-1].text == "So."
    assert output["score"]["usage"]["planner"]["calls"] == 1
