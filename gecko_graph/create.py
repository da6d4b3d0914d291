"""create_gecko, without its imports: LangGraph is imported when the first graph is created, not with the name."""

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
        model: The model of every role: `"provider:name"` or any chat model; or `Models`, by role. Roles that have none
            are left to the rules.
        context: Knobs of every run that brings no `context=GeckoContext(...)` of its own, as when embedded.
        checkpointer: Keeps the snapshots. Leave it out if the graph is embedded: it then uses its parent's. A
            thread's snapshots build on each other: delete threads whole, or the state is lost.
        rungs: Further rungs, tried in the order of `context.ladder`, or directly after `real` if it does not name
            them; one with the name of a built-in rung replaces it.
        index: Finds tools if there are more than `context.max_tools`; one by their words if left out.
        store: Keeps for all threads which tool has served which need. Leave it out if the graph is embedded.
        name: The graph's name, in traces and as a node of another graph.
        derive: Whether tools of an OpenAPI document are simulated by what `derive_contracts` makes of it.

    Returns:
        A graph from `{"messages", "task_state", "checklist"}` to `{"messages", "rehearsal", "task_state"}`.

    Raises:
        ToolkitError: The toolkit is empty or not a Toolkit.
        ModelError: A model cannot be built, or the planner has none.
        GeckoError: The context is not a GeckoContext, its ladder names an unknown rung, or a prompt cannot be used.
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
