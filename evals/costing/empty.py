"""The attempt graph with nodes that do nothing: what LangGraph costs for the same keys and as many supersteps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langgraph.graph import START, StateGraph

from gecko_graph.graph import after_planner, after_state_updater, after_validator
from gecko_graph.models.node import Router
from gecko_graph.world.channels import AttemptState

CALL: dict[str, Any] = {"id": "call", "name": "nothing", "args": {}}


def create_empty(calls: int) -> Callable[[], Any]:
    """Return a run of begin, and planner, validator, simulator, state_updater for each call; all empty."""

    def planner(state: AttemptState) -> dict[str, Any]:
        asked = state.get("asked", {}).get("planner", 0)
        return {"pending": [CALL] if asked < calls else [], "asked": {"planner": 1}}

    def simulator(state: AttemptState) -> dict[str, Any]:
        return {"pending": []}

    def nothing(state: AttemptState) -> dict[str, Any]:
        return {"stop_reason": ""}

    builder = StateGraph(AttemptState)
    builder.add_node("planner", planner)
    builder.add_node("simulator", simulator)
    for name in ("begin", "validator", "state_updater"):
        builder.add_node(name, nothing)
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "planner")
    builder.add_conditional_edges("planner", Router(after_planner))
    builder.add_conditional_edges("validator", Router(after_validator))
    builder.add_edge("simulator", "state_updater")
    builder.add_conditional_edges("state_updater", Router(after_state_updater))
    graph = builder.compile()
    limit = 4 * calls + 20
    return lambda: graph.invoke({"number": 1, "task": ""}, {"recursion_limit": limit})
