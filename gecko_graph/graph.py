"""The two graphs of `create_gecko`: their nodes, edges and routers.

```
gecko:    START ── bootstrapper ── start_round ─┬─ attempt ────┬─ judge ── decide ──┬─ finish ── END
                                       ▲        │  (k at once) │                    │
                                       │        │     │ reads  │                    │
                                       │        │     ▼ real   │                    │
                                       │        └─ checklist ──┘                    │
                                       │   (first round, unless given)              │
                                       └───────────────────── retry ────────────────┘

attempt:  START ── begin ── planner ──(no calls)── END
               searched again ▲  │ calls
                  complaints  │  ▼
                              ├─ validator ── simulator ── state_updater ─┐
                              └──────────────────▲────────(calls left)────┘
```

The judge is a node of the outer graph. It runs after all attempts and the checklist of a superstep: the planner
never waits for the checklist, and no join edge is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer, Send

from .context import GeckoContext
from .derive.contracts import with_derived
from .errors import GeckoError
from .models.factory import Models, ModelsLike
from .models.node import AskNode, NodeFunction, Router, add_router, refuse_unknown_keys
from .nodes.attempt import attempt_node, begin, next_attempt
from .nodes.bootstrapper import bootstrapper
from .nodes.checklist import checklist
from .nodes.judge import judge
from .nodes.planner import planner
from .nodes.rounds import decide, finish, start_round
from .retrieval.index import ToolIndex
from .retrieval.search import ToolSearch
from .tools import Toolkit
from .world.channels import AttemptChannels, AttemptRecord, GeckoInput, GeckoOutput, GeckoState, Pending
from .world.check import validator
from .world.commit import state_updater
from .world.ladder import ladder_of, rungs_of, simulator
from .world.rung import Rung, find_gated
from .world.world import check_setup

Gecko: TypeAlias = CompiledStateGraph[Any, GeckoContext, Any, Any]
"""Any graph of this package, for code that reads or runs all kinds."""

NOTHING: Mapping[str, NodeFunction] = MappingProxyType({})


def build_gecko(
    toolkit: Toolkit,
    *,
    model: ModelsLike,
    context: GeckoContext | None,
    store: BaseStore | None,
    name: str,
    derive: bool,
    **more: Any,
) -> Gecko:
    """Build the graph of `create_gecko`; `more` are further arguments of `compose`."""
    knobs, bound = check_setup(toolkit, context), Models.of(model)
    gecko = compose(with_derived(toolkit, derive=derive), models=bound, default=knobs, **more)
    bound.require("planner")
    gecko.name, gecko.store = name, store
    return gecko


def compose(  # noqa: PLR0913 - every one is a choice of its own, by keyword
    toolkit: Toolkit,
    *,
    models: Models,
    default: GeckoContext,
    checkpointer: Checkpointer = None,
    replace: Mapping[str, NodeFunction] = NOTHING,
    rungs: Iterable[Rung] = (),
    index: ToolIndex | None = None,
    is_alone: bool = True,
) -> Gecko:
    """Build the graph; `replace` maps node names to functions of `(state, scope)`, for ablations.

    `is_alone` is False within an agent, whose claims prevent two concurrent runs of a thread.

    Raises:
        GeckoError: `replace` names an unknown node, or the context's ladder an unknown rung.
    """
    search = ToolSearch(toolkit, index, default)
    attempt = create_attempt(toolkit, models, default, replace=replace, rungs=rungs, search=search)
    node = partial(_node, replace=replace, models=models, default=default, is_outer=True)
    builder = StateGraph(GeckoState, GeckoContext, input_schema=GeckoInput, output_schema=GeckoOutput)
    builder.add_node("bootstrapper", node(partial(bootstrapper, toolkit=toolkit, search=search), opens_turn=True))
    builder.add_node("checklist", node(partial(checklist, toolkit=toolkit)))
    builder.add_node("start_round", node(start_round))
    builder.add_node("attempt", attempt_node(attempt, default))
    builder.add_node("judge", node(partial(judge, toolkit=toolkit)))
    builder.add_node("decide", node(decide))
    builder.add_node("finish", node(partial(finish, is_alone=is_alone, search=search)))
    if unknown := sorted(replace.keys() - {*builder.nodes, *attempt.builder.nodes} | replace.keys() & {"attempt"}):
        raise GeckoError(f"replace: unknown node {unknown[0]!r}")
    builder.add_edge(START, "bootstrapper")
    builder.add_edge("bootstrapper", "start_round")
    builder.add_conditional_edges("start_round", Router(after_start_round), ["attempt", "checklist"])
    builder.add_edge("checklist", "judge")
    builder.add_conditional_edges("attempt", Router(after_attempt), ["checklist", "judge"])
    builder.add_edge("judge", "decide")
    builder.add_conditional_edges("decide", Router(after_decide), {"retry": "start_round", "finish": "finish"})
    builder.add_edge("finish", END)
    return refuse_unknown_keys(builder.compile(checkpointer=checkpointer, name="gecko"))


def create_attempt(
    toolkit: Toolkit,
    models: Models,
    default: GeckoContext,
    *,
    replace: Mapping[str, NodeFunction] = NOTHING,
    rungs: Iterable[Rung] = (),
    search: ToolSearch | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the attempt graph; it uses the caller's checkpointer."""
    by_name = rungs_of(rungs)
    ladder_of(default, by_name)
    kept = AttemptRecord.__annotations__
    bound = partial(_node, replace=replace, models=models, default=default)
    node = partial(bound, kept=kept, made={})
    tools, resolve = toolkit.as_openai(), toolkit.resolve
    builder = StateGraph(AttemptChannels, GeckoContext)
    builder.add_node("begin", node(partial(begin, rungs=by_name)))
    asking = partial(planner, tools=tools, resolve=resolve, prompts=models.prompts, gated=find_gated(toolkit))
    builder.add_node("planner", node(partial(asking, search=search)))
    builder.add_node("validator", node(partial(validator, toolkit=toolkit, gated=find_gated(toolkit))))
    builder.add_node("simulator", node(partial(simulator, toolkit=toolkit, rungs=by_name)))
    builder.add_node("state_updater", node(partial(state_updater, toolkit=toolkit)))
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "planner")
    add_router(builder, "planner", after_planner)
    add_router(builder, "validator", after_validator)
    builder.add_edge("simulator", "state_updater")
    add_router(builder, "state_updater", after_state_updater)
    return builder.compile(name="attempt")


def _node(fn: NodeFunction, *, replace: Mapping[str, NodeFunction], **bound: Any) -> Runnable[Any, Any]:
    return AskNode(replace.get(getattr(fn, "func", fn).__name__, fn), **bound)


def after_start_round(state: GeckoState) -> list[str | Send]:
    """Return the attempts (one on the state itself, or several on copies), and the checklist if it is missing."""
    first, kept = next_attempt(state), state["bookkeeping"]
    beside: list[str | Send] = ["checklist"] if state["items"] is None and not kept["real"] else []
    if kept["attempts_at_once"] == 1:
        return ["attempt", *beside]
    sent = (Send("attempt", {**state, "number": first + index}) for index in range(kept["attempts_at_once"]))
    return [*sent, *beside]


def after_attempt(state: GeckoState) -> Literal["checklist", "judge"]:
    """Return the next node: with real reads the checklist follows the attempts, because a read-only plan needs none."""
    return "checklist" if state["bookkeeping"]["real"] and state["items"] is None else "judge"


def after_decide(state: GeckoState) -> Literal["retry", "finish"]:
    return "finish" if state["bookkeeping"]["is_over"] else "retry"


def after_planner(state: Pending) -> Literal["validator", "planner", "__end__"]:
    """Return the next node; without calls the planner has searched, has answered, or the attempt was stopped."""
    if state["pending"]:
        return "validator"
    return "__end__" if state.get("bookkeeping", {}).get("stop_reason") else "planner"


def after_validator(state: Pending) -> Literal["simulator", "planner"]:
    """Return the next node: valid calls are simulated; if there are complaints only, the planner is asked again."""
    return "simulator" if state["pending"] else "planner"


def after_state_updater(state: Pending) -> Literal["simulator", "planner"]:
    """Return the next node: the next call of the same message, or the planner."""
    return "simulator" if state["pending"] else "planner"
