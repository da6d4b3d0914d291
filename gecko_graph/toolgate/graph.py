"""create_toolgate: forward execution with contract verification (ToolGate, algorithm 1); nodes, edges and routers.

```
toolgate:  START ── bootstrapper ── start_round ── attempt ── conclude ── END

attempt:   START ── begin ── reasoner ──(need)── reranker ──(admitted by P)── arguments ── validator ──┐
                     ▲          │ (answer)           │ (no tool is left: failed)    ▲         │ passed  │ refused
                     │          ▼                    ▼                              │     simulator     │
                     │         END                  END                             │         │         │
                     │                                                              │      verify       │
                     │                                     (other arguments,        │         │         │
                     │                                      or the next tool)       │   state_updater   │
                     │                                                              │         │         │
                     └──────────────(committed, or told why not)────────────────────┴───── accept ◄─────┘
```
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

from ..context import GeckoContext
from ..derive.contracts import with_derived
from ..errors import GeckoError
from ..graph import NOTHING, Gecko
from ..models.factory import Models, ModelsLike
from ..models.node import AskNode, NodeFunction, NodeScope, Router, refuse_unknown_keys
from ..nodes.attempt import attempt_node, begin
from ..nodes.bootstrapper import bootstrapper
from ..nodes.rounds import start_round
from ..retrieval.index import ToolIndex
from ..retrieval.search import ToolSearch
from ..tools import Toolkit
from ..world.check import validator
from ..world.commit import state_updater
from ..world.ladder import RUNGS, ladder_of, simulator
from ..world.rung import find_gated
from ..world.world import check_setup
from .channels import ForwardChannels, ForwardRecord, ToolGateInput, ToolGateOutput, ToolGateState
from .nodes import accept, arguments, conclude, reasoner, reranker, verify

STRICT: Mapping[str, Any] = {"gate": "strict", "parallel_attempts": 1}
"""Settings that a run cannot change; with the strict gate an unknown tool is not admissible (equation 9)."""
ROUTES: Mapping[str, tuple[str, str, str]] = {
    "reasoner": ("need", "reranker", END),
    "reranker": ("candidates", "arguments", "reasoner"),
    "arguments": ("pending", "validator", "accept"),
    "validator": ("pending", "simulator", "accept"),
    "accept": ("candidates", "arguments", "reasoner"),
}
"""Per node: a state key, the next node if the key is set, and the next node if not; a stop ends the run."""


def create_toolgate(  # noqa: PLR0913 - each is a separate option, given by keyword
    toolkit: Toolkit,
    *,
    model: ModelsLike = None,
    checkpointer: Checkpointer = None,
    context: GeckoContext | None = None,
    index: ToolIndex | None = None,
    store: BaseStore | None = None,
    strict: bool = False,
    name: str = "toolgate",
    derive: bool = True,
) -> CompiledStateGraph[ToolGateState, GeckoContext, ToolGateInput, ToolGateOutput]:
    """Create forward execution: verified calls one after the other, each committed or dropped (ToolGate, algorithm 1).

    Nothing real is changed: calls are answered by the ladder, as in a rehearsal; only opened reads run for real.

    Args:
        toolkit: The tools; contracts gate their calls and results.
        model: A model, or `Models` by role, as for `create_gecko`. `reasoner` states needs, `reranker` ranks tools,
            `planner` writes arguments; `validator`, `simulator`, `state_updater`, `bootstrapper` work as in a
            rehearsal. `reasoner` and `planner` are required.
        checkpointer: Saves the checkpoints. Leave it out if the graph is embedded: it then uses its parent's.
        context: Knobs of every run that brings none of its own.
        index: Finds the tools of a toolkit with more than `max_tools`, as for `create_gecko`.
        store: Keeps which tool has served which need, for all threads. Leave it out if the graph is embedded.
        strict: Follow algorithm 1 to the letter: Q excludes a tool for the run after refusing one of its results, and
            refuses a read that finds nothing. By default Q excludes only that call until the state changes, and the
            reasoner is told of an empty read if no other tool finds anything; an empty read is never committed.
        name: The graph's name, in traces and as a node of another graph.
        derive: Whether tools of an OpenAPI document are simulated by what it says, as for `create_gecko`.

    Returns:
        A graph from `{"messages", "task_state"}` to `{"messages", "task_state", "record"}`.

    Raises:
        ToolkitError: The toolkit is empty or not a Toolkit.
        ModelError: A model cannot be built, or a required role has none.
        GeckoError: The context is not a GeckoContext, its ladder names an unknown rung, or a prompt cannot be used.
    """
    knobs, bound = check_setup(toolkit, context), Models.of(model)
    toolkit = with_derived(toolkit, derive=derive)
    toolgate = compose(toolkit, models=bound, default=knobs, checkpointer=checkpointer, index=index, strict=strict)
    bound.require("reasoner", "planner")
    toolgate.name, toolgate.store = name, store
    return toolgate


def compose(
    toolkit: Toolkit,
    *,
    models: Models,
    default: GeckoContext,
    checkpointer: Checkpointer = None,
    replace: Mapping[str, NodeFunction] = NOTHING,
    index: ToolIndex | None = None,
    strict: bool = False,
) -> Gecko:
    """Build the graph; `replace` replaces nodes by functions of `(state, scope)`, by name, for ablations.

    Raises:
        GeckoError: `replace` names a node of neither graph, or the planner's prompt does not show the need.
    """
    models.prompts.check_shows("planner", "need")
    search = ToolSearch(toolkit, index, default)
    forward = create_forward(toolkit, models, default, search, replace, strict=strict)
    node = partial(_node, models=models, default=default, is_outer=True, replace=replace)
    nodes = {
        "bootstrapper": node(partial(bootstrapper, toolkit=toolkit, search=search), opens_turn=True),
        "start_round": node(start_round),
        "attempt": attempt_node(forward, default, keep=("needs",)),
        "conclude": node(partial(conclude, toolkit=toolkit, search=search)),
    }
    if unknown := sorted(replace.keys() - {*nodes, *forward.builder.nodes} | replace.keys() & {"attempt"}):
        raise GeckoError(f"replace: unknown node {unknown[0]!r}")
    builder = StateGraph(ToolGateState, GeckoContext, input_schema=ToolGateInput, output_schema=ToolGateOutput)
    builder.add_sequence([*nodes.items()])
    builder.add_edge(START, "bootstrapper")
    return refuse_unknown_keys(builder.compile(checkpointer=checkpointer, name="toolgate"))


def create_forward(
    toolkit: Toolkit,
    models: Models,
    default: GeckoContext,
    search: ToolSearch,
    replace: Mapping[str, NodeFunction] = NOTHING,
    *,
    strict: bool = False,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the graph of algorithm 1; it uses its caller's checkpointer."""
    ladder_of(default, RUNGS)
    kept = ForwardRecord.__annotations__
    node = partial(_node, models=models, default=default, kept=kept, replace=replace, made={})
    gated, tools = find_gated(toolkit), toolkit.as_openai()
    nodes: dict[str, NodeFunction] = {
        "begin": begin,
        "reasoner": partial(reasoner, toolkit=toolkit, gated=gated),
        "reranker": partial(reranker, toolkit=toolkit, gated=gated, search=search, strict=strict),
        "arguments": partial(arguments, toolkit=toolkit, tools=tools, prompts=models.prompts, strict=strict),
        "validator": partial(validator, toolkit=toolkit),
        "simulator": partial(simulator, toolkit=toolkit),
        "verify": partial(verify, toolkit=toolkit),
        "state_updater": partial(state_updater, toolkit=toolkit),
        "accept": partial(accept, toolkit=toolkit, strict=strict),
    }
    builder = StateGraph(ForwardChannels, GeckoContext)
    for name, function in nodes.items():
        builder.add_node(name, node(function))
    for source, (key, then, other) in ROUTES.items():
        builder.add_conditional_edges(source, _route(key, then, other), [then, other, END])
    for one, other in pairwise(("simulator", "verify", "state_updater", "accept")):
        builder.add_edge(one, other)
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "reasoner")
    return builder.compile(name="forward")


def _route(key: str, then: str, other: str) -> Router:
    def route(state: ForwardChannels) -> str:
        return END if "stop" in state else then if state.get(key) else other

    return Router(route)


def _node(fn: NodeFunction, *, replace: Mapping[str, NodeFunction], **bound: Any) -> Runnable[Any, Any]:
    """Return a graph's node for a node function, always with the settings of `STRICT`."""
    fn = replace.get(getattr(fn, "func", fn).__name__, fn)

    def strictly(state: Any, scope: NodeScope) -> Any:
        return fn(state, dataclasses.replace(scope, context=scope.context.model_copy(update=STRICT)))

    return AskNode(strictly, **bound)
