"""Self-Refine (A. Madaan et al., NeurIPS 2023): the model criticises its own plan and revises it, with all before.

Unlike Reflexion nothing is forgotten: the next trial sees every earlier one and its critique. It ends where the
critique finds nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from langgraph.types import Checkpointer
from pydantic import BaseModel, Field

from gecko_graph.context import GeckoContext
from gecko_graph.graph import Gecko
from gecko_graph.models.ask import PlannerAsk, Reply
from gecko_graph.models.factory import Models
from gecko_graph.models.formatting import format_steps
from gecko_graph.models.node import NodeScope
from gecko_graph.tools import Toolkit
from gecko_graph.world.channels import GeckoState

from .trials import ask_critic, create_loop, is_last, tell_trial

INSTRUCTIONS = """You wrote a plan of tool calls for a task and saw what the calls returned. Criticise the plan, not its
style: calls that are missing, too many, in the wrong order or with wrong values. Be specific.
Reply with JSON: {"points": ["...", ...]}, and with an empty list where nothing should be changed."""


class Critique(BaseModel):
    """What is to be changed; empty where nothing is."""

    points: list[str] = Field(default_factory=list)


def create_self_refine(
    toolkit: Toolkit, *, models: Models, default: GeckoContext, checkpointer: Checkpointer = None
) -> Gecko:
    """Create a graph that plans, criticises and revises."""
    return create_loop(toolkit, criticise, models=models, default=default, checkpointer=checkpointer)


def criticise(state: GeckoState, scope: NodeScope) -> Generator[list[PlannerAsk], list[Reply], dict[str, Any]]:
    """Criticise the last plan."""
    last, budget = state["attempts"][-1], scope.context.view_chars
    done = {"chosen": last["number"], "is_over": True}
    if is_last(state, scope):
        return done
    reply = yield from ask_critic(state, INSTRUCTIONS, tell_trial(state, last, budget=budget), Critique)
    points = [" ".join(point.split()) for point in reply.points if point.strip()] if reply is not None else []
    if not points:
        return done
    earlier = state["lesson"]
    steps = format_steps(last["steps"], budget=budget)
    log = "\n".join(filter(None, [earlier["attempt_log"] if earlier else "", f"plan {last['number']}:\n{steps}"]))
    critique = f"plan {last['number']}: " + "; ".join(points)
    feedback = "\n".join(filter(None, [earlier["feedback"] if earlier else "", critique]))
    return {**done, "is_over": False, "lesson": {"number": last["number"], "attempt_log": log, "feedback": feedback}}
