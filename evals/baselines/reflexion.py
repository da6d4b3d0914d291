"""Reflexion (N. Shinn et al., NeurIPS 2023): whole trials, and between them a reflection in words that is remembered.

The reflecting model sees the calls and their results, not the task state. The next trial sees the last three
reflections and nothing else of the trials before it.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

from langgraph.types import Checkpointer
from pydantic import BaseModel

from gecko_graph.context import GeckoContext
from gecko_graph.graph import Gecko
from gecko_graph.models.ask import PlannerAsk, Reply
from gecko_graph.models.factory import Models
from gecko_graph.models.node import NodeScope
from gecko_graph.tools import Toolkit
from gecko_graph.world.channels import GeckoState

from .trials import ask_critic, create_loop, is_last, tell_trial

REMEMBERED = 3

INSTRUCTIONS = """You look back at your own attempt at a task with tools.
Say whether it reached the goal. If it did not, say in a few sentences what went wrong and what you will do differently.
Reply with JSON: {"success": true or false, "reflection": "..."}."""


class Reflection(BaseModel):
    """What the model thinks of its own trial."""

    success: bool
    reflection: str = ""


def create_reflexion(
    toolkit: Toolkit, *, models: Models, default: GeckoContext, checkpointer: Checkpointer = None
) -> Gecko:
    """Create a graph of trials with reflections between them."""
    memory = partial(reflect, remembered=REMEMBERED)
    return create_loop(toolkit, memory, models=models, default=default, checkpointer=checkpointer)


def reflect(
    state: GeckoState, scope: NodeScope, *, remembered: int
) -> Generator[list[PlannerAsk], list[Reply], dict[str, Any]]:
    """Reflect on the last trial, unless no trial follows it."""
    last = state["attempts"][-1]
    done = {"chosen": last["number"], "is_over": True}
    if is_last(state, scope):
        return done
    trial = tell_trial(state, last, budget=scope.context.view_chars)
    reply = yield from ask_critic(state, INSTRUCTIONS, trial, Reflection)
    if reply is None or reply.success:
        return done
    before = state["lesson"]["feedback"].split("\n\n") if state["lesson"] else []
    kept = "\n\n".join([*before, " ".join(reply.reflection.split())][-remembered:])
    return {**done, "is_over": False, "lesson": {"number": last["number"], "attempt_log": "", "feedback": kept}}
