"""Merge-to-one: the whole rehearsal collapsed into one prompt (the Gecko project's page, "only by prompting").

One attempt. Before each call the planner itself is to check the arguments, imagine the answer, keep the state and judge
what it has against a checklist of its own. No rule, no judge, no second attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import SystemMessage
from langgraph.types import Checkpointer

from gecko_graph.context import GeckoContext
from gecko_graph.graph import Gecko
from gecko_graph.models.ask import AnyAsk, Reply
from gecko_graph.models.factory import Models
from gecko_graph.models.node import NodeScope
from gecko_graph.models.prompts import Prompts
from gecko_graph.nodes.planner import planner
from gecko_graph.state import JsonObject
from gecko_graph.tools import Toolkit
from gecko_graph.world.channels import AttemptState

from .trials import create_single

PROMPT = """Work through the task in your head before you act, in these parts:
1. Write a checklist of everything that must hold when the task is done.
2. Plan all calls that lead there. For each one check its arguments: names, types, allowed values, and whether the value
makes sense in this conversation.
3. For each call imagine what the tool would answer, and keep a record of everything that the calls so far have changed.
4. Judge that record against the checklist. While an item does not hold, change the plan and go back to 2, at most three
times.
Then make the calls of the best plan with the tools. Where a real answer differs from the imagined one, correct the
record and judge again."""


def create_merged(
    toolkit: Toolkit, *, models: Models, default: GeckoContext, checkpointer: Checkpointer = None
) -> Gecko:
    """Create a graph of one attempt under the merged prompt."""
    speaks = partial(merged, tools=toolkit.as_openai(), resolve=toolkit.resolve, prompts=models.prompts)
    nodes = {"planner": speaks}
    return create_single(toolkit, models=models, default=default, checkpointer=checkpointer, replace=nodes)


def merged(
    state: AttemptState,
    scope: NodeScope,
    *,
    tools: Sequence[JsonObject],
    resolve: Callable[[str], str],
    prompts: Prompts,
) -> Generator[list[AnyAsk], list[Reply], dict[str, Any]]:
    """Run the planner with the merged prompt behind the conversation's own system messages."""
    changed: Any = {**state, "conversation": [SystemMessage(PROMPT), *state["conversation"]]}
    return (yield from planner(changed, scope, tools=tools, resolve=resolve, prompts=prompts))
