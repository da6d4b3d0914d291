"""The agent in each setting, its planner, and how its saved state shows that the run ended."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain.tools import ToolRuntime
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.graph import START, MessagesState, StateGraph

from gecko_graph import GeckoContext, Models, RehearsalState, Toolkit, create_gecko_agent, undo_message
from gecko_graph.middleware import GeckoMiddleware
from gecko_graph.state import JsonObject

from .bank import TIMEOUT_S
from .draws import BEYOND, PLANS, RULES, Draw

MOST_FAILURES = 6
"""Successive failures after which the planner gives up."""
RESULT = re.compile(r'\{[^{}]*"payment_id"[^{}]*\}')


class Planner(BaseChatModel):
    """A scripted model that reads the conversation and makes the calls that are left."""

    draw: Any

    @property
    def _llm_type(self) -> str:
        return "planner"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.say(messages))])

    def say(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """Return the next calls, or the answer."""
        done, numbers, failures = results_of(since_asked(self.draw, messages))
        plan = PLANS[self.draw.plan]
        amounts, left = {to: amount for _, to, amount in reversed(plan)}, Counter(each[:2] for each in plan) - done
        calls = [("pay", {"to": to, "amount": amounts[to]}) for name, to in left.elements() if name == "pay"]
        calls = calls or [("cancel", {"payment_id": numbers[to]}) for _, to in left if to in numbers]
        beyond = [("pay", {"to": to, "amount": amount}) for _, to, amount in untried(messages)]
        if failures >= MOST_FAILURES or not (calls or beyond):
            return AIMessage(f"Not done: {[*left]}" if left else "Done.")
        return message_of([*calls, *beyond] if self.draw.batch else [*calls, *beyond][:1], self.draw.ids)


class Summariser(Planner):
    """The model that writes summaries, which contain only the results."""

    def say(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """Return the results of the conversation in its prompt."""
        return AIMessage("\n".join(RESULT.findall(messages[-1].text)) or "Nothing was done.")


class Caller(Planner):
    """The model of an agent whose only tool is our agent."""

    def say(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """Call the tool, and answer with its answer."""
        last = messages[-1]
        return AIMessage(last.text) if isinstance(last, ToolMessage) else message_of([("act", {})])


def message_of(calls: Sequence[tuple[str, JsonObject]], ids: str = "fresh") -> AIMessage:
    kinds: dict[str, Callable[[int], str | None]] = {
        "fresh": lambda _: f"call_{os.urandom(4).hex()}",
        "anew": lambda number: f"call_{number}",
        "repeated": lambda _: "call_0",
        "none": lambda _: None,
    }
    made = [{"name": name, "args": args, "id": kinds[ids](n)} for n, (name, args) in enumerate(calls)]
    return AIMessage("", tool_calls=made)


def since_asked(draw: Draw, messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return the messages that the planner reads: all, or with summaries those after the request if it is kept."""
    asked = [at for at, message in enumerate(messages) if message.text == words_of(draw)]
    return messages[asked[-1] :] if asked and draw.extra == "summary" else messages


def results_of(messages: Sequence[BaseMessage]) -> tuple[Counter[Any], dict[str, str], int]:
    """Return the finished part of a conversation's plan, the payment ids by payee, and the number of last failures.

    Only results count, because the calls' ids may be useless.
    """
    failures, found = 0, dict[str, JsonObject]()
    for message in messages:
        if isinstance(message, ToolMessage) and message.status == "error":
            failures += 1
        elif isinstance(message, ToolMessage) or message.additional_kwargs.get("lc_source") == "summarization":
            failures = 0
            found.update({text: read(text) for text in RESULT.findall(message.text)})
    payees = {each["payment_id"]: each["to"] for each in found.values() if "to" in each}
    done = Counter[Any](("pay", to) for to in payees.values())
    done.update(("cancel", payees.get(each["payment_id"])) for each in found.values() if "status" in each)
    return done, {to: number for number, to in payees.items()}, failures


def untried(messages: Sequence[BaseMessage]) -> list[tuple[str, str, int]]:
    """Return the payment beyond the balance, if it is asked for and was not tried."""
    is_asked = any(BEYOND[1] in message.text for message in messages if message.type == "human")
    calls = [call["args"].get("to") for each in messages if isinstance(each, AIMessage) for call in each.tool_calls]
    return [BEYOND] if is_asked and BEYOND[1] not in calls else []


def read(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def words_of(draw: Draw, turn: int = 0) -> str:
    if turn and draw.extra == "undone":
        return f"Undo that, click {turn}."
    plan = [BEYOND] if turn else [*PLANS[draw.plan], *([BEYOND] if draw.extra == "spent" else [])]
    words = [f"pay {amount} to {to}" if name == "pay" else f"cancel that to {to}" for name, to, amount in plan]
    return ", then ".join(words)


def task_of(draw: Draw, identifier: str | None, turn: int = 0) -> JsonObject:
    message = HumanMessage(words_of(draw, turn), id=identifier)
    if turn and draw.extra == "undone":
        return {"messages": [undo_message(message.text).model_copy(update={"id": identifier})]}
    messages: JsonObject = {"messages": [message]}
    if draw.is_middleware or draw.setting == "in a tool":
        return messages
    count = sum(name == "pay" for name, *_ in PLANS[draw.plan]) + (turn > 0)
    check = "state.balance < 10" if draw.extra == "undone" else f"len(state.payments) == {count}"
    items = [{"description": "all are made", "check": check}]
    return {**messages, "checklist": items} | ({} if turn else {"task_state": start_of(draw)})


def start_of(draw: Draw) -> JsonObject:
    return {"payments": {}, **({"balance": draw.balance} if draw.is_funded else {})}


class Parent(RehearsalState):
    """The keys that a parent graph shares with the agent."""

    checklist: list[Any]
    execution: JsonObject


def graph_of(draw: Draw, toolkit: Toolkit, saver: Any) -> Any:
    context, planner = GeckoContext(tool_timeout_s=TIMEOUT_S), Planner(draw=draw)
    own = None if draw.is_embedded else saver
    policy: Any = {"interrupt_on": RULES if draw.extra == "edited" else draw.review, "context": context}
    if draw.is_middleware:
        mode: Any = draw.setting.split()[0]
        start = start_of(draw) if draw.is_funded else None
        middleware: list[Any] = [GeckoMiddleware(toolkit, mode=mode, state=start, **policy)]
        if draw.extra == "summary":
            often: Any = {"trigger": ("messages", 3), "keep": ("messages", 2)}
            middleware.insert(0, SummarizationMiddleware(Summariser(draw=draw), **often))
        agent = create_agent(planner, tools=toolkit.as_tools(), middleware=middleware, checkpointer=own)
    else:
        options: Any = {"model": Models(planner=planner), **policy}
        agent = create_gecko_agent(toolkit, checkpointer=own, **options)
    if draw.setting == "in a tool":
        return create_agent(Caller(draw=draw), tools=[as_tool(draw, agent)], checkpointer=saver)
    state = MessagesState if draw.is_middleware else Parent
    agent = within(agent, state, None) if draw.setting == "two deep" else agent
    return within(agent, state, saver) if draw.is_embedded else agent


def within(graph: Any, state: Any, saver: Any) -> Any:
    builder: Any = StateGraph(state)
    builder.add_node("agent", graph)
    builder.add_edge(START, "agent")
    return builder.compile(checkpointer=saver)


def as_tool(draw: Draw, agent: Any) -> StructuredTool:
    """Return a tool that lets the agent do what the last message asks, under that message's id."""

    def given(runtime: Any) -> JsonObject:
        human = [each for each in runtime.state["messages"] if each.type == "human"]
        return task_of(replace(draw, setting="alone"), human[-1].id)

    def act(runtime: ToolRuntime) -> str:
        """Have it done."""
        return json.dumps(agent.invoke(given(runtime))["execution"])

    async def aact(runtime: ToolRuntime) -> str:
        return json.dumps((await agent.ainvoke(given(runtime)))["execution"])

    for function in (act, aact):
        function.__annotations__["runtime"] = ToolRuntime  # an annotation as text is not recognised as injected
    return StructuredTool.from_function(func=act, coroutine=aact, name="act")


def ended_of(draw: Draw, values: JsonObject) -> tuple[str, list[JsonObject]]:
    """Return how a turn says that it ended, and the calls that it names as in doubt."""
    last = values["messages"][-1].text
    if draw.is_middleware:
        return "done" if last.startswith("Done") else "not done", []
    execution = read(last) if draw.setting == "in a tool" else values.get("execution", {})
    doubts = [each["call"] for each in execution.get("calls", []) if each["status"] == "in_doubt"]
    return execution.get("status", "none"), doubts
