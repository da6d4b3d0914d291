"""`create_gecko` without its imports: LangGraph is imported when the first graph is created."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.store.base import BaseStore
    from langgraph.types import Checkpointer

    from .context import GeckoContext
    from .models.factory import ModelsLike
    from .retrieval.index import ToolIndex
    from .tools import Toolkit
    from .world.channels import GeckoInput, GeckoOutput, GeckoState
    from .world.rung import Rung


def create_gecko(  # noqa: PLR0913 - every one is a choice of its own, by keyword
    toolkit: Toolkit,
    *,
    model: ModelsLike = None,
    context: GeckoContext | None = None,
    checkpointer: Checkpointer = None,
    rungs: Iterable[Rung] = (),
    index: ToolIndex | None = None,
    store: BaseStore | None = None,
    name: str = "gecko",
    derive: bool = True,
) -> CompiledStateGraph[GeckoState, GeckoContext, GeckoInput, GeckoOutput]:
    """Create the rehearsal: a compiled LangGraph graph that plans a task against simulated tools (paper, algorithm 1).

    Args:
        toolkit: The tools that the planner may call.
        model: The model of every role (`"provider:name"` or any chat model), or `Models` with a model per role. Roles
            without a model use rules only.
        context: Knobs of every run that passes no `context=GeckoContext(...)`, for example when embedded.
        checkpointer: Stores the checkpoints. Omit it if the graph is embedded: it then uses its parent's. Checkpoints
            of a thread depend on earlier ones: delete whole threads only, or the state is lost.
        rungs: Further rungs, tried in the order of `context.ladder`, or directly after `real` if the ladder does not
            name them. A rung with the name of a built-in rung replaces it.
        index: Searches tools if there are more than `context.max_tools`; by default a search by words.
        store: Remembers, for all threads, which tool served which need. Omit it if the graph is embedded.
        name: The graph's name, in traces and as a node of another graph.
        derive: Whether the tools of an OpenAPI document are simulated by contracts from `derive_contracts`.

    Returns:
        A graph from `{"messages", "task_state", "checklist"}` to `{"messages", "rehearsal", "task_state"}`.

    Raises:
        ToolkitError: The toolkit is empty or not a Toolkit.
        ModelError: A model cannot be built, or the planner has none.
        GeckoError: The context is not a GeckoContext, its ladder names an unknown rung, or a prompt is invalid.
    """
    from .graph import build_gecko

    return build_gecko(
        toolkit,
        model=model,
        context=context,
        checkpointer=checkpointer,
        rungs=rungs,
        index=index,
        store=store,
        name=name,
        derive=derive,
    )
