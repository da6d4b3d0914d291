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
from itertools import chain, pairwise
from typing import Any, Literal

from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer

from ..context import GeckoContext
from ..errors import GeckoError
from ..graph import NOTHING, Gecko
from ..models.factory import Models, ModelsLike
from ..models.node import AskNode, NodeFunction, NodeScope, Router, book_attempt, book_turn, refuse_unknown_keys
from ..nodes.attempt import attempt_node, begin
from ..nodes.bootstrapper import bootstrapper
from ..nodes.rounds import start_round
from ..retrieval.index import ToolIndex
from ..retrieval.search import ToolSearch
from ..tools import Toolkit
from ..world.channels import Pending
from ..world.check import validator
from ..world.commit import state_updater
from ..world.ladder import RUNGS, ladder_of, simulator
from ..world.rung import find_gated
from ..world.world import check_setup
from .channels import ForwardChannels, ForwardRecord, ToolGateInput, ToolGateOutput, ToolGateState
from .nodes import accept, arguments, conclude, reasoner, reranker, verify

STRICT: Mapping[str, Any] = {"gate": "strict", "parallel_attempts": 1}
"""What forward execution does not leave to a run's knobs: what is unknown is not admissible (equation 9)."""


def create_toolgate(
    toolkit: Toolkit,
    *,
    model: ModelsLike = None,
    checkpointer: Checkpointer = None,
    context: GeckoContext | None = None,
    index: ToolIndex | None = None,
    strict: bool = False,
    name: str = "toolgate",
) -> CompiledStateGraph[ToolGateState, GeckoContext, ToolGateInput, ToolGateOutput]:
    """Create forward execution: one verified call after another, each committed or gone (ToolGate, algorithm 1).

    Nothing real is changed: calls are answered by the ladder, as in a rehearsal, and only reads that were opened run.

    Args:
        toolkit: The tools; contracts gate their calls and results.
        model: A model, or `Models` by role, as for `create_gecko`. `reasoner` states needs, `reranker` ranks tools,
            `planner` writes arguments; `validator`, `simulator`, `state_updater`, `bootstrapper` as in a rehearsal.
            `reasoner` and `planner` need one.
        checkpointer: Keeps the snapshots. Leave it out where the graph is embedded: it then uses its parent's.
        context: Knobs of every run that brings none of its own.
        index: Finds the tools of a toolkit with more than `max_tools`, as for `create_gecko`.
        strict: Algorithm 1 to the letter: a tool that Q has refused a result of is out for the run, and a read that
            finds nothing is such a result. By default that very call is out until the state changes, and where no
            other tool finds anything the reasoner is told so, and goes on; nothing of it is committed.
        name: The graph's name, in traces and where it is a node of another one.

    Returns:
        A graph from `{"messages", "task_state"}` to `{"messages", "task_state", "record"}`.

    Raises:
        ToolkitError: The toolkit is empty or not a Toolkit.
        ModelError: A model cannot be built, or a role that needs one has none.
        GeckoError: The context is not a GeckoContext, its ladder names an unknown rung, or a prompt cannot be used.
    """
    knobs, bound = check_setup(toolkit, context), Models.of(model)
    toolgate = compose(toolkit, models=bound, default=knobs, checkpointer=checkpointer, index=index, strict=strict)
    bound.require("reasoner", "planner")
    toolgate.name = name
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
    """Build the graph; `replace` puts functions of `(state, scope)` in the place of nodes, by name, for ablations.

    Raises:
        GeckoError: `replace` names a node that neither graph has, or the planner's prompt does not show the need.
    """
    models.prompts.check_shows("planner", "need")
    search = ToolSearch(toolkit, index, default)
    forward = create_forward(toolkit, models, default, search, replace, strict=strict)
    node = partial(_node, models=models, default=default, book=book_turn, replace=replace)
    builder = StateGraph(ToolGateState, GeckoContext, input_schema=ToolGateInput, output_schema=ToolGateOutput)
    builder.add_node("bootstrapper", node(partial(bootstrapper, toolkit=toolkit, search=search), opens_turn=True))
    builder.add_node("start_round", node(start_round))
    builder.add_node("attempt", attempt_node(forward, default, keep=("needs",)))
    builder.add_node("conclude", node(partial(conclude, toolkit=toolkit)))
    if unknown := sorted(replace.keys() - {*builder.nodes, *forward.builder.nodes} | replace.keys() & {"attempt"}):
        raise GeckoError(f"replace: unknown node {unknown[0]!r}")
    for one, other in pairwise((START, "bootstrapper", "start_round", "attempt", "conclude", END)):
        builder.add_edge(one, other)
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
    node = partial(_node, models=models, default=default, book=book_attempt, kept=kept, replace=replace)
    gated = find_gated(toolkit)
    write = partial(arguments, toolkit=toolkit, tools=toolkit.as_openai(), prompts=models.prompts, strict=strict)
    builder = StateGraph(ForwardChannels, GeckoContext)
    builder.add_node("begin", node(begin))
    builder.add_node("reasoner", node(partial(reasoner, toolkit=toolkit, gated=gated)))
    rank = partial(reranker, toolkit=toolkit, gated=gated, search=search, strict=strict)
    builder.add_node("reranker", node(rank))
    builder.add_node("arguments", node(write))
    builder.add_node("validator", node(partial(validator, toolkit=toolkit)))
    builder.add_node("simulator", node(partial(simulator, toolkit=toolkit)))
    builder.add_node("verify", node(partial(verify, toolkit=toolkit)))
    builder.add_node("state_updater", node(partial(state_updater, toolkit=toolkit)))
    builder.add_node("accept", node(partial(accept, toolkit=toolkit, strict=strict)))
    chains = (START, "begin", "reasoner"), ("simulator", "verify", "state_updater", "accept")
    for one, other in chain.from_iterable(map(pairwise, chains)):
        builder.add_edge(one, other)
    builder.add_conditional_edges("reasoner", Router(after_reasoner))
    builder.add_conditional_edges("reranker", Router(after_reranker))
    builder.add_conditional_edges("arguments", Router(after_arguments))
    builder.add_conditional_edges("validator", Router(after_validator))
    builder.add_conditional_edges("accept", Router(after_accept))
    return builder.compile(name="forward")


def _node(fn: NodeFunction, *, replace: Mapping[str, NodeFunction], **bound: Any) -> Runnable[Any, Any]:
    """Return a graph's node for a node function, whose knobs are strict whatever the run brings."""
    fn = replace.get(getattr(fn, "func", fn).__name__, fn)

    def strictly(state: Any, scope: NodeScope) -> Any:
        return fn(state, dataclasses.replace(scope, context=scope.context.model_copy(update=STRICT)))

    return AskNode(strictly, **bound)


def after_reasoner(state: ForwardChannels) -> Literal["reranker", "__end__"]:
    """Return the next node: a need wants a tool, an answer ends it."""
    return "reranker" if "stop" not in state else "__end__"


def after_reranker(state: ForwardChannels) -> Literal["arguments", "__end__"]:
    """Return the next node: without a tool that the state admits it has failed."""
    return "arguments" if "stop" not in state else "__end__"


def after_arguments(state: ForwardChannels) -> Literal["validator", "accept", "__end__"]:
    """Return the next node: a call is checked, a declined one sets its tool aside."""
    if "stop" in state:
        return "__end__"
    return "validator" if state["pending"] else "accept"


def after_validator(state: Pending) -> Literal["simulator", "accept"]:
    """Return the next node: a call that passed is answered, a refused one wants other arguments."""
    return "simulator" if state["pending"] else "accept"


def after_accept(state: ForwardChannels) -> Literal["reasoner", "arguments", "__end__"]:
    """Return the next node: the next need, other arguments or the next tool, or the end where none is left."""
    if "stop" in state:
        return "__end__"
    return "arguments" if state["candidates"] else "reasoner"
