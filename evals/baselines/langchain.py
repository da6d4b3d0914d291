"""LangChain's own agent as an arm: `create_agent` on the tools of a world, with the rehearsal's input and output."""

from __future__ import annotations

from typing import Annotated, Any, cast

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Checkpointer
from typing_extensions import TypedDict

from gecko_graph import Models, World
from gecko_graph.context import GeckoContext
from gecko_graph.graph import Gecko
from gecko_graph.models.formatting import text_of
from gecko_graph.models.usage import add_all, add_usage, count
from gecko_graph.state import VERSION, Attempt, JsonObject, Rehearsal, Usage
from gecko_graph.tools import Toolkit
from gecko_graph.values.difference import make_patch
from gecko_graph.values.digest import digest
from gecko_graph.world.provenance import is_planned

from .history import UNJUDGED


class AgentTurns(TypedDict, total=False):
    """What the arm keeps between turns; `world` goes on where no other task state is given."""

    messages: Annotated[list[AnyMessage], add_messages]
    task_state: JsonObject
    checklist: Any
    world: JsonObject
    rehearsal: Rehearsal


def create_langchain(
    toolkit: Toolkit, *, models: Models, default: GeckoContext, checkpointer: Checkpointer = None
) -> Gecko:
    """Create a graph of one node, in which LangChain's agent works on the whole conversation.

    Its model is the planner's, without a system prompt of ours; the tools are answered as in a rehearsal.
    """
    fresh = World(toolkit, model=models, context=default)

    async def act(state: AgentTurns) -> AgentTurns:
        world = _go_on(fresh, state)
        first, before = len(world.log), world.state
        agent: Any = create_agent(cast("Any", models.get("planner")), world.as_tools())
        limit, messages = {"recursion_limit": 2 * default.max_steps + 2}, state["messages"]
        try:
            async for values in agent.astream({"messages": messages}, limit, stream_mode="values"):
                messages = values["messages"]
        except GraphRecursionError:
            pass  # what it has done until then counts, as of every method
        said = messages[len(state["messages"]) :]
        rehearsal = _describe(world, first, before, said)
        return {"messages": said, "task_state": world.state, "world": world.snapshot(), "rehearsal": rehearsal}

    builder = StateGraph(AgentTurns)
    builder.add_node("act", act)
    builder.add_edge(START, "act")
    builder.add_edge("act", END)
    return cast("Gecko", builder.compile(checkpointer=checkpointer, name="create_agent"))


def _go_on(fresh: World, state: AgentTurns) -> World:
    kept, given = state.get("world"), state.get("task_state") or {}
    return fresh.resume({**kept, "usage": {}}) if kept and kept["state"] == given else fresh.begin(given)


def _describe(world: World, first: int, before: JsonObject, said: list[AnyMessage]) -> Rehearsal:
    """Return a turn as a rehearsal of one attempt."""
    steps, last = world.log[first:], said[-1] if said else None
    answer = text_of(last).strip() if isinstance(last, AIMessage) and not last.tool_calls else ""
    asked = [count(each) for each in said if isinstance(each, AIMessage)]
    usage: Usage = add_usage(world.usage, {"planner": add_all(asked)}) if asked else world.usage
    attempt: Attempt = {
        "v": VERSION,
        "number": 1,
        "start_digest": digest(before),
        "end_digest": digest(world.state),
        "steps": steps,
        "answer": answer,
        "change": make_patch(before, world.state),
        "usage": usage,
        "stop_reason": "answered" if answer else "max_steps",
        "verdict": UNJUDGED,
    }
    plan = [step["call"] for step in steps if is_planned(step)]
    found: Any = {"v": VERSION, "plan": plan, "verdict": UNJUDGED, "answer": answer, "attempts": [attempt]}
    return cast("Rehearsal", {**found, "checklist": [], "chosen": 1, "usage": usage})
