"""rehearse: one rehearsal from the state that reality has left, and the preview of what it would do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from langchain_core.messages import AnyMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite

from ..channels import Continued, GeckoInput, Ledger
from ..execution.channels import AgentState, is_edited
from ..execution.decisions import check_saver
from ..execution.records import Preview
from ..state import JsonObject, Rehearsal, Step
from ..task_state.digest import digest
from ..trust import find_untrusted
from ..turn import human_turns

MakePreview = Callable[[Rehearsal, JsonObject, list[Step], list[AnyMessage]], Preview | None]
"""From the rehearsal, the state that its calls begin from, the steps really made and the conversation, what is left."""


def rehearse_node(
    graph: CompiledStateGraph[Any, Any, Any, Any], preview: MakePreview, *, needs_saver: bool
) -> Runnable[Any, Any]:
    """Return the node that runs the rehearsal `graph`, sync and async.

    A wrapper, not the graph itself as a node: the state at its predicted end is no state that reality has come to.
    """

    def opened(state: AgentState, config: RunnableConfig) -> AgentState:
        if needs_saver:
            check_saver(config)
        return {**state, **opening(state)}

    def run(state: AgentState, config: RunnableConfig) -> dict[str, Any]:
        state = opened(state, config)
        return update_of(state, graph.invoke(input_of(state), config), preview)

    async def arun(state: AgentState, config: RunnableConfig) -> dict[str, Any]:
        state = opened(state, config)
        return update_of(state, await graph.ainvoke(input_of(state), config), preview)

    return RunnableLambda(run, afunc=arun, name="rehearse")


def opening(state: AgentState) -> AgentState:
    """Return what a new turn clears and begins with; nothing where the turn goes on.

    It goes on from the task state as it is where that was edited from outside.
    """
    turn, supposed = human_turns(state.get("messages", [])), list[str]()
    if "start" in state and not is_edited(state):
        supposed = find_untrusted(state["start"], state.get("supposed") or [], state["steps"])
    if state.get("turn") == turn and state.get("again"):
        steps: list[Step] = [
            {**step, "outcome": {**step["outcome"], "patch": [], "observed": []}} for step in state["steps"]
        ]
        new: AgentState = {"start": state["task_state"], "supposed": supposed, "steps": steps}
        return new if state["again"] == "stale" else {}
    is_answered = (state.get("execution") or {"turn": 0})["turn"] == state.get("turn")
    open_calls = [] if is_answered else [each for each in state.get("journal") or () if each["tries"]]
    return {
        "turn": turn,
        "unreported": [*(state.get("unreported") or ()), *open_calls],
        "start": state.get("task_state") or {},
        "supposed": supposed,
        "rehearsals": {},
        "again": "task",
        "lesson": None,
        "journal": [],
        "steps": [],
        "approval": None,
    }


def input_of(state: AgentState) -> GeckoInput:
    """Return the rehearsal's input: the conversation, the state at the turn's start, and what was done since."""
    given: GeckoInput = {"messages": state["messages"], "task_state": state["start"]}
    last = state.get("rehearsal") if state["again"] != "task" else None
    items = last["checklist"] if last else state.get("checklist")
    if items is not None:
        given["checklist"] = items
    mark = state.get("real_digest")
    is_real = state["again"] not in ("task", "stale") or bool(mark and mark == digest(state["start"]))
    if last or is_real or state.get("supposed"):
        going_on: Continued = {
            "steps": state["steps"],
            "lesson": state["lesson"],
            "attempts": max(attempt["number"] for attempt in last["attempts"]) if last else 0,
        }
        given["continued"] = {**going_on, "real": is_real, "supposed": state.get("supposed") or []}
    return given


def update_of(state: AgentState, out: dict[str, Any], preview: MakePreview) -> dict[str, Any]:
    """Return the agent's update after a rehearsal; what a model supposed of the state belongs to it from now on."""
    rehearsal: Rehearsal = out["rehearsal"]
    start, steps, why = state["start"], state["steps"], state["again"]
    update: dict[str, Any] = {}
    if why == "task":
        supposed = rehearsal.get("supposed_state")
        start = {**start, **(supposed["state"] if supposed else {})}
        update = {"supposed": supposed["paths"] if supposed else [], "task_state": start, "journal": Overwrite([])}
    now = state["task_state"] if steps else start
    accepted = rehearsal["verdict"]["word"] == "accepted"
    ledger: Ledger = {"turn": state["turn"], "usage": rehearsal["usage"], "asked": {}}
    return {
        **update,
        "turn": state["turn"],
        "checklist": None,
        "unreported": state.get("unreported") or [],
        "start": start,
        "steps": steps,
        "rehearsal": rehearsal,
        "rehearsals": {**state["rehearsals"], why: state["rehearsals"].get(why, 0) + 1},
        "again": "",
        "lesson": None if accepted else state["lesson"],
        "preview": preview(rehearsal, now, steps, state["messages"]) if accepted else None,
        "approval": None,
        "ledger": {**ledger, "started_at": time.time()},
    }
