"""The methods that the rehearsal is compared with, each a small graph over the same toolkit and the same tools.

They take what `create_gecko` takes and give what it gives, so that one loop plays all of them (`contest.py`). A tool's
own argument rules hold for every method, as a real tool refuses what it cannot take; the questions that a rehearsal
asks a model about arguments, and its judge, are the rehearsal's alone.

- Reflexion (N. Shinn et al., NeurIPS 2023): whole trials, and between them a reflection in words. The reflecting model
  sees calls and results, not the task state; the next trial sees the last three reflections and nothing else.
- Self-Refine (A. Madaan et al., NeurIPS 2023): the model criticises its own plan and revises it. Nothing is forgotten,
  and it ends where the critique finds nothing.
- Best-of-n (C. Snell et al., 2024): n trials at once that know nothing of each other, and a model that picks one.
- Merge-to-one (the Gecko project's page, "only by prompting"): the whole rehearsal in one prompt. One attempt, no rule,
  no judge: the planner itself is to check, imagine, keep the state and judge.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import SystemMessage
from langgraph.graph import StateGraph
from langgraph.types import Checkpointer, Send
from pydantic import BaseModel, Field

from gecko_graph import Models
from gecko_graph.context import GeckoContext
from gecko_graph.graph import Gecko
from gecko_graph.models.ask import AnyAsk, PlannerAsk, Reply
from gecko_graph.models.formatting import format_steps
from gecko_graph.models.node import AskNode, NodeScope
from gecko_graph.models.prompts import Prompts
from gecko_graph.nodes.planner import planner
from gecko_graph.state import JsonObject
from gecko_graph.tools import Toolkit
from gecko_graph.world.channels import AttemptState, GeckoState

from .trials import (
    Create,
    ask_critic,
    book_review,
    create_loop,
    create_plain,
    create_single,
    is_last,
    opened,
    tell_trial,
)

REMEMBERED = 3

REFLECTING = """You look back at your own attempt at a task with tools.
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
        return {"bookkeeping": done}
    trial = tell_trial(state, last, budget=scope.context.view_chars)
    reply = yield from ask_critic(state, REFLECTING, trial, Reflection)
    if reply is None or reply.success:
        return {"bookkeeping": done}
    lesson = state["bookkeeping"]["lesson"]
    before = lesson["feedback"].split("\n\n") if lesson else []
    kept = "\n\n".join([*before, " ".join(reply.reflection.split())][-remembered:])
    lesson = {"number": last["number"], "attempt_log": "", "feedback": kept}
    return {"bookkeeping": {**done, "is_over": False, "lesson": lesson}}


CRITICISING = """You wrote a plan of tool calls for a task and saw what the calls returned. Criticise the plan, not its
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
        return {"bookkeeping": done}
    reply = yield from ask_critic(state, CRITICISING, tell_trial(state, last, budget=budget), Critique)
    points = [" ".join(point.split()) for point in reply.points if point.strip()] if reply is not None else []
    if not points:
        return {"bookkeeping": done}
    earlier = state["bookkeeping"]["lesson"]
    steps = format_steps(last["steps"], budget=budget)
    log = "\n".join(filter(None, [earlier["attempt_log"] if earlier else "", f"plan {last['number']}:\n{steps}"]))
    critique = f"plan {last['number']}: " + "; ".join(points)
    feedback = "\n".join(filter(None, [earlier["feedback"] if earlier else "", critique]))
    lesson = {"number": last["number"], "attempt_log": log, "feedback": feedback}
    return {"bookkeeping": {**done, "is_over": False, "lesson": lesson}}


PICKING = """Several attempts were made at one task with tools, each from the same start. Pick the one that does
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
    builder.add_node("review", AskNode(pick, models=models, default=default, book=book_review))
    builder.add_edge("review", "finish")
    return builder.compile(checkpointer=checkpointer, name="best-of-n")


def warmed(models: Models) -> Models:
    """Return the same speakers, but for a planner of temperature 0."""
    planner: Any = models.get("planner")
    if planner is None or getattr(planner, "temperature", None) != 0:
        return models
    return models.replace(planner=planner.model_copy(update={"temperature": TEMPERATURE}))


def spread(state: GeckoState, n: int) -> list[Send]:
    """Send n trials out, numbered from 1."""
    return [Send("trial", {**state, "attempts_at_once": n, "number": number}) for number in range(1, n + 1)]


def pick(state: GeckoState, scope: NodeScope) -> Generator[list[PlannerAsk], list[Reply], dict[str, Any]]:
    """Ask which trial is best. Without an answer that names one it is the first."""
    attempts = sorted(state["attempts"], key=lambda attempt: attempt["number"])
    budget = scope.context.view_chars // len(attempts)
    trials = "\n\n".join(f"attempt {each['number']}\n{tell_trial(state, each, budget=budget)}" for each in attempts)
    reply = (yield from ask_critic(state, PICKING, trials, Pick)) if len(attempts) > 1 else None
    numbers = [each["number"] for each in attempts]
    best = reply.best if reply is not None and reply.best in numbers else numbers[0]
    return {"bookkeeping": {"chosen": best, "is_over": True}}


MERGED = """Work through the task in your head before you act, in these parts:
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
    changed: Any = {**state, "conversation": [SystemMessage(MERGED), *state["conversation"]]}
    return (yield from planner(changed, scope, tools=tools, resolve=resolve, prompts=prompts))


BASELINES: Mapping[str, Create] = {
    "plain": create_plain,
    "reflexion": create_reflexion,
    "self-refine": create_self_refine,
    "best-of-n": create_best_of_n,
    "merge-to-one": create_merged,
}
"""From a baseline's name to what builds its graph; `plain` is the planner alone, one attempt."""

CRITICAL = frozenset({"reflexion", "self-refine", "best-of-n"})
"""Those that ask a critic as well as the planner."""
