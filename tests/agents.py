"""Agents for tests: plans, a model that acts by a function, threads, and the graph that an agent is a node of."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from gecko_graph import Models, RehearsalState, create_gecko_agent
from gecko_graph.testing import recorded

APPROVE = {"type": "approve"}


class Parent(RehearsalState):
    checklist: list
    execution: dict


def embed(graph: Any, saver: Any = None, schema: Any = Parent, **options: Any) -> Any:
    """Return a graph with this one as its only node."""
    builder = StateGraph(schema)
    builder.add_node("inner", graph, **options)
    builder.add_edge(START, "inner")
    return builder.compile(checkpointer=saver)


def thread(name: str = "1") -> Any:
    return {"configurable": {"thread_id": name}}


def call(name: str, /, **args: Any) -> dict:
    return {"call": name, "args": args}


def make_agent(tools: Any, *plans: list, turns: Any = (), **more: Any) -> Any:
    """Return an agent that asks nobody; its planner makes the plans of one turn, or of `turns` a plan in each."""
    planner = recorded(*({"planner": [plan]} for plan in turns)) if turns else recorded(planner=[*plans])
    given = {"model": Models(planner=planner), "interrupt_on": "none", "checkpointer": InMemorySaver()}
    return create_gecko_agent(tools, **given | more)


class Saying(BaseChatModel):
    """Says what a function makes of the messages that it is shown: a text, or calls."""

    say: Any

    @property
    def _llm_type(self) -> str:
        return "saying"

    def bind_tools(self, *args: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list, *args: Any, **kwargs: Any) -> ChatResult:
        said = self.say(messages)
        message = AIMessage(said) if isinstance(said, str) else AIMessage("", tool_calls=said)
        return ChatResult(generations=[ChatGeneration(message=message)])
