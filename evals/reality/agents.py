"""The agent in each setting, its planner, and how its saved state says that the run ended."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.graph import START, MessagesState, StateGraph

from gecko_graph import GeckoContext, Models, RehearsalState, Toolkit, create_gecko_agent
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.state import JsonObject

from .bank import TIMEOUT_S, wanted_of
from .draws import PLANS, Draw

MOST_FAILURES = 3


class Planner(BaseChatModel):
    """A model that looks at the conversation and does what is left."""

    draw: Any

    @property
    def _llm_type(self) -> str:
        return "planner"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """Bind nothing: it knows the tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.say(messages))])

    def say(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """Return the next calls, or the answer."""
        left, numbers, failures = left_of(self.draw, messages)
        if not left:
            return AIMessage("Done.")
        calls = [("pay", {"to": to, "amount": amount}) for name, to, amount in left if name == "pay"]
        calls = calls or [("cancel", {"payment_id": numbers[to]}) for _, to, _ in left if to in numbers]
        if not calls or failures[left[0]] >= MOST_FAILURES:
            return AIMessage(f"Not done: {left}")
        return message_of(calls if self.draw.batch else calls[:1])


class Caller(Planner):
    """The model of an agent whose one tool is the agent."""

    def say(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """Call it, and answer with what it answered."""
        last = messages[-1]
        return AIMessage(last.text) if isinstance(last, ToolMessage) else message_of([("act", {})])


def message_of(calls: Sequence[tuple[str, JsonObject]]) -> AIMessage:
    """Return a message that makes these calls."""
    made = [{"name": name, "args": args, "id": f"call_{os.urandom(4).hex()}"} for name, args in calls]
    return AIMessage("", tool_calls=made)


def left_of(draw: Draw, messages: Sequence[BaseMessage]) -> tuple[list[Any], dict[str, str], Counter[Any]]:
    """Return what a conversation leaves to do, the number of the payment to each, and how often a thing has failed."""
    calls = {call["id"]: call for each in messages if isinstance(each, AIMessage) for call in each.tool_calls}
    done, failures, payees = Counter[Any](), Counter[Any](), dict[str, str]()
    for message in messages:
        if not isinstance(message, ToolMessage) or message.tool_call_id not in calls:
            continue
        name, args = calls[message.tool_call_id]["name"], calls[message.tool_call_id]["args"]
        to = str(args.get("to") or payees.get(str(args.get("payment_id"))))
        counted = failures if message.status == "error" else done
        counted[name, to, args.get("amount", 0)] += 1
        if counted is done and name == "pay":
            payees[read(message.text).get("payment_id", "")] = to
    return [*(wanted_of(draw) - done).elements()], {to: number for number, to in payees.items()}, failures


def read(text: str) -> JsonObject:
    """Return the object that a text is, or an empty one."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def task_of(draw: Draw, identifier: str | None) -> JsonObject:
    """Return the input of a turn."""
    plan = PLANS[draw.plan]
    words = [f"pay {amount} to {to}" if name == "pay" else f"cancel that to {to}" for name, to, amount in plan]
    messages: JsonObject = {"messages": [HumanMessage(", then ".join(words), id=identifier)]}
    if draw.is_middleware or draw.setting == "in a tool":
        return messages
    check = f"state.payments | length == {sum(name == 'pay' for name, *_ in plan)}"
    return {**messages, "task_state": {"payments": {}}, "checklist": [{"description": "all are made", "check": check}]}


class Parent(RehearsalState):
    """The keys that a parent shares with the agent."""

    checklist: list[Any]
    execution: JsonObject


def graph_of(draw: Draw, toolkit: Toolkit, saver: Any) -> Any:
    """Return the graph that a process runs."""
    context, planner = GeckoContext(tool_timeout_s=TIMEOUT_S), Planner(draw=draw)
    own = None if draw.is_embedded else saver
    if draw.is_middleware:
        mode: Any = draw.setting.split()[0]
        middleware = GeckoMiddleware(toolkit, mode=mode, interrupt_on=draw.review, context=context)
        agent = create_agent(planner, tools=toolkit.as_tools(), middleware=[middleware], checkpointer=own)
    else:
        options: Any = {"model": Models(planner=planner), "interrupt_on": draw.review, "context": context}
        agent = create_gecko_agent(toolkit, checkpointer=own, **options)
    if draw.setting == "in a tool":
        return create_agent(Caller(draw=draw), tools=[as_tool(draw, agent)], checkpointer=saver)
    state = MessagesState if draw.is_middleware else Parent
    agent = within(agent, state, None) if draw.setting == "two deep" else agent
    return within(agent, state, saver) if draw.is_embedded else agent


def within(graph: Any, state: Any, saver: Any) -> Any:
    """Return a graph that has another one as its node."""
    builder: Any = StateGraph(state)
    builder.add_node("agent", graph)
    builder.add_edge(START, "agent")
    return builder.compile(checkpointer=saver)


def as_tool(draw: Draw, agent: Any) -> StructuredTool:
    """Return a tool that has the agent do what the last message says, under that message's id."""

    def given(runtime: Any) -> JsonObject:
        human = [each for each in runtime.state["messages"] if each.type == "human"]
        return task_of(replace(draw, setting="alone"), human[-1].id)

    def act(runtime: ToolRuntime) -> str:
        """Have it done."""
        return json.dumps(agent.invoke(given(runtime))["execution"])

    async def aact(runtime: ToolRuntime) -> str:
        return json.dumps((await agent.ainvoke(given(runtime)))["execution"])

    for function in (act, aact):
        function.__annotations__["runtime"] = ToolRuntime  # a text is not seen to be injected
    return StructuredTool.from_function(func=act, coroutine=aact, name="act")


def ended_of(draw: Draw, values: JsonObject) -> tuple[str, list[JsonObject]]:
    """Return how a turn says that it ended, and the calls that it names as in doubt."""
    last = values["messages"][-1].text
    if draw.is_middleware:
        return "done" if last.startswith("Done") else "not done", []
    execution = read(last) if draw.setting == "in a tool" else values.get("execution", {})
    doubts = [each["call"] for each in execution.get("calls", []) if each["status"] == "in_doubt"]
    return execution.get("status", "none"), doubts
