"""The agent in each setting, its planner, and what its saved state says of how the run ended."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.graph import START, MessagesState, StateGraph

from gecko_graph import GeckoContext, RehearsalState, Toolkit, create_gecko_agent
from gecko_graph.state import JsonObject

from .bank import TIMEOUT_S, wanted_of
from .draws import PLANS, Draw

MOST_FAILURES = 3
START_STATE: JsonObject = {"payments": {}}


class Speaker(BaseChatModel):
    """A model that looks at the conversation and does what is left."""

    draw: Any

    @property
    def _llm_type(self) -> str:
        return "speaker"

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
        if failures[left[0]] >= MOST_FAILURES:
            return AIMessage(f"Not done: {left}")
        payments = [("pay", {"to": to, "amount": amount}) for name, to, amount in left if name == "pay"]
        if payments:
            return calls_of(payments if self.draw.batch else payments[:1])
        number = numbers.get(left[0][1])
        return calls_of([("cancel", {"payment_id": number})]) if number else AIMessage(f"Not done: {left}")


class Caller(Speaker):
    """The model of an agent whose one tool is the agent."""

    def say(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """Call it, and answer with what it answered."""
        last = messages[-1]
        return AIMessage(last.text) if isinstance(last, ToolMessage) else calls_of([("act", {})])


def calls_of(calls: Sequence[tuple[str, JsonObject]]) -> AIMessage:
    """Return a message that makes these calls."""
    made = [{"name": name, "args": args, "id": f"call_{os.urandom(4).hex()}"} for name, args in calls]
    return AIMessage("", tool_calls=made)


def left_of(draw: Draw, messages: Sequence[BaseMessage]) -> tuple[list[Any], dict[str, str], Counter[Any]]:
    """Return what a conversation leaves to do, the number of the payment to each, and how often a thing has failed."""
    calls = {call["id"]: call for each in messages if isinstance(each, AIMessage) for call in each.tool_calls}
    done, failures, numbers = Counter[Any](), Counter[Any](), dict[str, str]()
    for message in messages:
        call = calls.get(message.tool_call_id) if isinstance(message, ToolMessage) else None
        if call is None:
            continue
        args = call["args"]
        payees = [to for to, number in numbers.items() if number == args.get("payment_id")]
        key = (call["name"], args.get("to") or next(iter(payees), "?"), args.get("amount", 0))
        if getattr(message, "status", "") == "error":
            failures[key] += 1
            continue
        done[key] += 1
        if call["name"] == "pay" and "payment_id" in (result := read(message.text)):
            numbers[args["to"]] = result["payment_id"]
    return [*(wanted_of(draw) - done).elements()], numbers, failures


def read(text: str) -> JsonObject:
    """Return the object that a text is, or an empty one."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def task_of(draw: Draw, identifier: str | None) -> JsonObject:
    """Return the input of a turn."""
    payments = sum(name == "pay" for name, *_ in wanted_of(draw).elements())
    item = {"id": "1", "description": "the payments are made", "check": f"state.payments | length == {payments}"}
    words = [
        f"pay {amount} to {to}" if name == "pay" else f"cancel that to {to}" for name, to, amount in PLANS[draw.plan]
    ]
    messages: JsonObject = {"messages": [HumanMessage(", then ".join(words), id=identifier)]}
    if draw.is_middleware or draw.setting == "in a tool":
        return messages
    return {**messages, "task_state": START_STATE, "checklist": [item]}


class Parent(RehearsalState):
    """The keys that a parent shares with the agent."""

    checklist: list[Any]
    execution: JsonObject


def graph_of(draw: Draw, toolkit: Toolkit, saver: Any) -> Any:
    """Return the graph that a process runs."""
    context = GeckoContext(tool_timeout_s=TIMEOUT_S)
    own = None if draw.is_embedded else saver
    if draw.is_middleware:
        from langchain.agents import create_agent

        from gecko_graph.middleware import GeckoMiddleware

        mode: Any = draw.setting.split()[0]
        middleware = GeckoMiddleware(toolkit, mode=mode, review=draw.review, context=context)
        agent = create_agent(Speaker(draw=draw), tools=toolkit.as_tools(), middleware=[middleware], checkpointer=own)
        return within(agent, MessagesState, saver) if draw.is_embedded else agent
    agent = create_gecko_agent(
        toolkit, models={"planner": Speaker(draw=draw)}, review=draw.review, context=context, checkpointer=own
    )
    if draw.setting == "in a tool":
        return as_tool(draw, agent, saver)
    if draw.setting == "two deep":
        agent = within(agent, Parent, None)
    return within(agent, Parent, saver) if draw.is_embedded else agent


def within(graph: Any, state: Any, saver: Any) -> Any:
    """Return a graph that has another one as its node."""
    builder: Any = StateGraph(state)
    builder.add_node("agent", graph)
    builder.add_edge(START, "agent")
    return builder.compile(checkpointer=saver)


def as_tool(draw: Draw, agent: Any, saver: Any) -> Any:
    """Return an agent with the agent in its one tool, which hands it the message with its id."""
    from langchain.agents import create_agent
    from langchain.tools import ToolRuntime

    def given(runtime: Any) -> JsonObject:
        human = [each for each in runtime.state["messages"] if each.type == "human"]
        return task_of(replaced, human[-1].id)

    def told(out: JsonObject) -> str:
        execution = out["execution"]
        return json.dumps({key: execution[key] for key in ("status", "calls")} if "__interrupt__" not in out else {})

    def act(runtime: ToolRuntime) -> str:
        """Have it done."""
        return told(agent.invoke(given(runtime)))

    async def aact(runtime: ToolRuntime) -> str:
        return told(await agent.ainvoke(given(runtime)))

    from dataclasses import replace

    replaced = replace(draw, setting="node")
    for function in (act, aact):
        function.__annotations__["runtime"] = ToolRuntime
    tool = StructuredTool.from_function(func=act, coroutine=aact, name="act", description="Have it done.")
    return create_agent(Caller(draw=draw), tools=[tool], checkpointer=saver)


def ended_of(draw: Draw, values: JsonObject) -> tuple[str, list[JsonObject]]:
    """Return how a turn says that it ended, and the calls that it names as in doubt."""
    last = values["messages"][-1].text if values.get("messages") else ""
    if draw.is_middleware:
        return "done" if last.startswith("Done") else "not done", []
    execution = read(last) if draw.setting == "in a tool" else values.get("execution") or {}
    doubts = [each["call"] for each in execution.get("calls", []) if each["status"] == "in_doubt"]
    return execution.get("status", "none"), doubts
