"""Best-of-n: n trials at once that know nothing of each other, and a model that picks one.

The simplest use of more computing at test time; as in C. Snell et al. (2024) the picker is a model that reads all n.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from langgraph.graph import StateGraph
from langgraph.types import Checkpointer, Send
from pydantic import BaseModel

from gecko_graph.context import GeckoContext
from gecko_graph.graph import Gecko
from gecko_graph.models.ask import PlannerAsk, Reply
from gecko_graph.models.factory import Models
from gecko_graph.models.node import NodeScope, as_node
from gecko_graph.state import ROLES
from gecko_graph.tools import Toolkit
from gecko_graph.world.channels import GeckoState

from .trials import ask_critic, book_review, opened, tell_trial

INSTRUCTIONS = """Several attempts were made at one task with tools, each from the same start. Pick the one that does
best what the task asks: all of it, and nothing else. Reply with JSON: {"best": number of the attempt}."""


TEMPERATURE = 0.7


class Pick(BaseModel):
    """The number of the best attempt."""

    best: int


def create_best_of_n(
    toolkit: Toolkit, *, models: Models, default: GeckoContext, checkpointer: Checkpointer = None
) -> Gecko:
    """Create a graph of `max_retries + 1` trials at once and a pick: as many as the rehearsal may make.

    A planner that always answers the same at temperature 0 speaks warmer here: n equal trials are one.
    """
    models = warmed(models)
    builder: StateGraph[Any, Any, Any, Any] = opened(
        toolkit, models=models, default=default, follow=lambda state: spread(state, default.max_retries + 1)
    )
    builder.add_node("review", as_node(pick, models=models, default=default, book=book_review))
    builder.add_edge("review", "finish")
    return builder.compile(checkpointer=checkpointer, name="best-of-n")


def warmed(models: Models) -> Models:
    """Return the same speakers, but for a planner of temperature 0."""
    planner = models.get("planner")
    if planner is None or getattr(planner, "temperature", None) != 0:
        return models
    others = {role: found for role in ROLES if (found := models.get(role)) is not None}
    return Models.bind(models={**others, "planner": planner.model_copy(update={"temperature": TEMPERATURE})})


def spread(state: GeckoState, n: int) -> list[Send]:
    """Send n trials out, numbered from 1."""
    return [Send("trial", {**state, "attempts_at_once": n, "number": number}) for number in range(1, n + 1)]


def pick(state: GeckoState, scope: NodeScope) -> Generator[list[PlannerAsk], list[Reply], dict[str, Any]]:
    """Ask which trial is best. Without an answer that names one it is the first."""
    attempts = sorted(state["attempts"], key=lambda attempt: attempt["number"])
    budget = scope.context.view_chars // len(attempts)
    trials = "\n\n".join(f"attempt {each['number']}\n{tell_trial(state, each, budget=budget)}" for each in attempts)
    reply = (yield from ask_critic(state, INSTRUCTIONS, trials, Pick)) if len(attempts) > 1 else None
    numbers = [each["number"] for each in attempts]
    return {"chosen": reply.best if reply is not None and reply.best in numbers else numbers[0], "is_over": True}
