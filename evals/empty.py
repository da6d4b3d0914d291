"""The attempt graph with nodes that do nothing: what LangGraph itself costs for as many supersteps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class Empty(TypedDict, total=False):
    """A counter of planner messages, and nothing else."""

    said: int


def create_empty(calls: int) -> Callable[[], Any]:
    """A run of begin, and planner, validator, simulator, state_updater for each call, and judge; all empty."""

    def planner(state: Empty) -> Empty:
        return {"said": state.get("said", 0) + 1}

    def nothing(state: Empty) -> Empty:
        return {"said": state.get("said", 0)}

    builder = StateGraph(Empty)
    builder.add_node("planner", planner)
    for name in ("begin", "validator", "simulator", "state_updater", "judge"):
        builder.add_node(name, nothing)
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "planner")
    builder.add_conditional_edges("planner", lambda state: "validator" if state["said"] <= calls else "judge", ["validator", "judge"])
    builder.add_conditional_edges("validator", lambda _: "simulator", ["simulator"])
    builder.add_edge("simulator", "state_updater")
    builder.add_conditional_edges("state_updater", lambda _: "planner", ["planner"])
    builder.add_edge("judge", END)
    graph = builder.compile()
    limit = 4 * calls + 20
    return lambda: graph.invoke({"said": 0}, {"recursion_limit": limit})
