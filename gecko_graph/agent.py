"""create_gecko_agent: rehearse, review, execute, sync, answer; nodes, edges and routers, and nothing else.

```
START ── rehearse ──(accepted)── review ──(approved)── begin_call ── call_tool ── sync ──┬─(calls left)── begin_call
            ▲  │                   │                        ▲            │               │
            │  └──(else)── answer ─┘ (refused)              │   in doubt │               ├─(all done)── answer ── END
            │                                               └─── resolve_doubt           │
            └──────────────(rejected, or reality departed: what is left)─────────────────┘
```
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph
from langgraph.types import Checkpointer

from .channels import GeckoInput
from .context import GeckoContext
from .errors import ToolkitError
from .execution.channels import AgentOutput, AgentState, calls_left, last_entry
from .execution.journal import Marks
from .execution.policy import ReviewPolicy
from .execution.preview import make_preview
from .graph import Gecko, Model, compose
from .models.factory import Models
from .models.node import Router, as_node, book_turn
from .nodes.answer import answer
from .nodes.execute import begin_call, call_tool, resolve_doubt
from .nodes.rehearse import rehearse_node
from .nodes.review import review as review_plan
from .nodes.sync import sync
from .retrieval.index import ToolIndex
from .simulation.ladder import rungs_of
from .simulation.rung import Rung
from .state import Role
from .toolkit import Toolkit
from .turn import human_turns
from .world import build_nodes, check_setup, simulate_call


def create_gecko_agent(  # noqa: PLR0913 - every one is a choice of its own, by keyword
    toolkit: Toolkit,
    *,
    model: Model | None = None,
    models: Mapping[Role, Model] | None = None,
    review: Any = "writes",
    checkpointer: Checkpointer = None,
    context: GeckoContext | None = None,
    base_url: str | None = None,
    rungs: Iterable[Rung] = (),
    prompts: str | Path | None = None,
    timeout_s: float | None = None,
    index: ToolIndex | None = None,
) -> Gecko:
    """Create the agent: it rehearses a task, asks for approval, makes the calls for real, and stays in step.

    Args:
        toolkit: The tools; what is to be carried out needs a real function.
        model: Speaks for every role: `"provider:name"` or any chat model.
        models: A model of its own for some roles.
        review: Which calls a person is asked about: `"writes"`, `"all"`, `"none"`, or a list of rules `{"tool": glob,
            "when": expression over args and state, "then": "allow", "ask" or "refuse", "reason"}`, of which the last
            that applies decides; or `{"rules": any of these, "max_age": seconds that an approval holds}`.
        checkpointer: Keeps the snapshots, and the marks of real calls. Leave it out where the agent is embedded.
        context: Knobs of every run that brings none of its own.
        base_url: Address of an OpenAI-compatible server, for models given as text.
        rungs: Who else may answer a simulated call, as for `create_gecko`.
        prompts: A folder with prompts of your own.
        timeout_s: Seconds that a model given as text may take for a reply.
        index: Finds tools where there are more than `context.max_tools`, as for `create_gecko`.

    Returns:
        A graph from `{"messages", "task_state"}` to `{"messages", "rehearsal", "execution", "task_state"}`. A review
        pauses it; `Command(resume={"decisions": [...]})` goes on.

    Raises:
        ToolkitError: The toolkit is empty, not a Toolkit, or no tool has a real function.
        ModelError: A model cannot be built.
        GeckoError: The context, the review, the ladder or a prompt cannot be used.
    """
    knobs = check_setup(toolkit, context)
    if all(tool.real is None for tool in toolkit):
        raise ToolkitError("no tool has a real function: nothing could be carried out (to rehearse only: create_gecko)")
    policy = ReviewPolicy.load(review, toolkit)
    bound = Models.bind(model, models, base_url=base_url, prompts=prompts, timeout_s=timeout_s)
    bound.prompts.check_shows("planner", "outcome")
    rungs = tuple(rungs)
    predict = partial(simulate_call, nodes=build_nodes(toolkit, rungs_of(rungs)))
    gecko = compose(toolkit, models=bound, default=knobs, rungs=rungs, index=index)
    node = partial(as_node, models=bound, default=knobs, book=book_turn)
    preview = partial(make_preview, toolkit=toolkit, policy=policy)
    marks = Marks()
    nodes = {
        "rehearse": rehearse_node(gecko, preview, needs_saver=policy.may_ask),
        "review": node(partial(review_plan, policy=policy, toolkit=toolkit, answer_call=predict)),
        "begin_call": node(partial(begin_call, toolkit=toolkit, policy=policy, marks=marks)),
        "call_tool": node(partial(call_tool, toolkit=toolkit, marks=marks)),
        "resolve_doubt": node(partial(resolve_doubt, toolkit=toolkit, marks=marks)),
        "sync": node(partial(sync, toolkit=toolkit)),
        "answer": node(partial(answer, prompts=bound.prompts)),
    }
    agent = connect(nodes).compile(checkpointer=checkpointer, name="gecko_agent")
    # as the default, not the law: `call_tool` looks for its mark in the saver, whatever the run was called with
    return agent.with_config(configurable={"__pregel_durability": "sync"}) if checkpointer else agent


def connect(nodes: Mapping[str, Runnable[Any, Any]]) -> StateGraph[Any, GeckoContext, Any, Any]:
    """Return the graph of these nodes."""
    builder = StateGraph(AgentState, GeckoContext, input_schema=GeckoInput, output_schema=AgentOutput)
    for name, node in nodes.items():
        builder.add_node(name, node)
    builder.add_conditional_edges(START, Router(at_start))
    for router in (after_rehearse, after_review, after_begin_call, after_call_tool, after_resolve_doubt, after_sync):
        builder.add_conditional_edges(router.__name__.removeprefix("after_"), Router(router))
    builder.add_edge("answer", END)
    return builder


def at_start(state: AgentState) -> Literal["rehearse", "resolve_doubt"]:
    """A call that an interrupted turn left in doubt is settled first."""
    entry = last_entry(state)
    is_open = entry and entry["status"] in ("started", "in_doubt") and "ended_at" not in entry
    return "resolve_doubt" if is_open else "rehearse"


def after_rehearse(state: AgentState) -> Literal["review", "answer"]:
    """A plan is reviewed; without one there is only an answer."""
    return "review" if state["preview"] else "answer"


def after_review(state: AgentState) -> Literal["begin_call", "rehearse", "review", "answer"]:
    """Approved, edited, rejected with a reason or on a state that has moved, or refused."""
    if state["again"]:
        return "review" if state["again"] == "edited" else "rehearse"
    return "begin_call" if state["approval"] else "answer"


def after_begin_call(state: AgentState) -> Literal["call_tool", "sync", "review"]:
    """Marked as started, departed before the call, or to be approved again."""
    if state["approval"] is None:
        return "review"
    entry = last_entry(state)
    return "call_tool" if entry and entry["status"] == "started" else "sync"


def after_call_tool(state: AgentState) -> Literal["sync", "resolve_doubt"]:
    """An answer is booked; without one the call is in doubt."""
    entry = last_entry(state)
    return "resolve_doubt" if entry and entry["status"] == "in_doubt" else "sync"


def after_resolve_doubt(state: AgentState) -> Literal["call_tool", "sync", "answer", "rehearse"]:
    """Made again, known, or left in doubt: then nothing more is done in this turn."""
    entry = last_entry(state)
    if entry and entry["status"] in ("started", "ok"):
        return "call_tool" if entry["status"] == "started" else "sync"
    return "answer" if state["turn"] == human_turns(state["messages"]) else "rehearse"


def after_sync(state: AgentState) -> Literal["begin_call", "rehearse", "answer"]:
    """The next call, what is left rehearsed again, or the answer."""
    if state["again"] or state["turn"] != human_turns(state["messages"]):
        return "rehearse"
    entry = last_entry(state)
    stopped = entry is not None and "departure" in entry
    return "begin_call" if calls_left(state) and not stopped else "answer"
