"""One loop that plays any method on any task, and an independent word on the result.

A method is what builds a graph with the rehearsal's input and output: the rehearsal, a part of it taken out, a
baseline. The tasks are in `problems.py`.
"""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoContext
from gecko_graph.models.factory import Models
from gecko_graph.state import Json, JsonObject, Role

from ..bfcl.rehearse import Played, answers, finished
from ..harness.options import Options
from ..harness.rehearsed import rehearsed
from . import Create
from .problems import MOST_CALLS, Problem


def speakers(problem: Problem, options: Options) -> dict[Role, BaseChatModel]:
    """Return the model of each role: the options' models, and what was written down where they name no planner."""
    live = options.speakers()
    if critic := live.get("judge") or live.get("planner"):
        # the planner is also the critic, unless another one is named; a critic writes what it judges by
        live = {"judge": critic, "checklist": critic, **live}
    return live if "planner" in live else {**problem.speakers(options.seed), **live}


def is_live(options: Options) -> bool:
    """Return True where a model plans: only then is what is solved an accuracy."""
    return "planner" in options.model_names()


def knobs(options: Options, **given: Any) -> GeckoContext:
    """Return the knobs of a method: a live planner has the usual number of calls, a written one as many as it needs."""
    return options.context(**({} if is_live(options) else {"max_steps": MOST_CALLS}), **given)


async def contend(problem: Problem, create: Create, options: Options, *, context: GeckoContext) -> JsonObject:
    """Play a task by a method.

    Args:
        problem: The task.
        create: The method.
        options: Who speaks.
        context: The knobs.

    Returns:
        `solved` by the independent word, and what `rehearsed` returns; `usage` where a model was asked.
    """
    models = speakers(problem, options)
    played = await play(
        problem, create, models=Models.bind(models=models), context=context, ruled="judge" not in models
    )
    record = rehearsed(*(each.rehearsal for each in played))
    if not is_live(options):
        record["usage"].pop("planner", None)  # what was written down costs nothing
    if not record["usage"]:
        del record["usage"]
    return {**record, "solved": problem.solved([each.rehearsal for each in played])}


async def play(problem: Problem, create: Create, *, models: Models, context: GeckoContext, ruled: bool) -> list[Played]:
    """Play turn after turn on one thread; after each, the state is the one that the returned plan leads to.

    Args:
        problem: The task.
        create: The method.
        models: Who speaks.
        context: The knobs.
        ruled: Give the oracle's checks, because no model judges.
    """
    saver = InMemorySaver()
    config: RunnableConfig = {"configurable": {"thread_id": problem.id}}
    state, given = problem.state, {"task_state": problem.state}
    played: list[Played] = []
    seen: list[Json] = []
    for turn in range(problem.turns):
        graph = create(problem.toolkit(turn), models=models, default=context, checkpointer=saver)
        inputs: dict[str, Any] = {"messages": list(problem.said(turn)), **given}
        if ruled:
            inputs["checklist"] = problem.checks(turn, state, seen)
        played.append(finished(await graph.ainvoke(inputs, config), state))
        state = played[-1].after
        given = {} if played[-1].accepted else {"task_state": state}
        seen += answers(played[-1].chosen)
    return played
