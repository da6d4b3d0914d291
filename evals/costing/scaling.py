"""How costs grow with the work: tool calls in one attempt, kilobytes of task state, tasks at once.

Processor time is measured, so that other work on the machine does not count; the planner's model replies what is
recorded and does not read its prompt.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest import mock

from langgraph.checkpoint.sqlite import SqliteSaver

from gecko_graph import create_gecko
from gecko_graph.context import GeckoContext
from gecko_graph.graph import Gecko
from gecko_graph.nodes import planner
from gecko_graph.state import JsonObject

from . import case
from .costs import checkpointed, computed, peak_bytes, timed

STEPS = (10, 30, 100, 500, 1000, 2000, 4000)
SIZES_KB = (1, 10, 100, 1000)
AT_ONCE = (1, 4, 16, 64, 256)


def by_steps(steps: int) -> JsonObject:
    """Measure one attempt of so many tool calls on 1 kB of state.

    Returns:
        Processor seconds of the attempt, and of them those in which the planner's prompts are built and the model is
        called (both look at the whole conversation at each call); peak memory and bytes checkpointed.
    """
    create = long_attempt(steps)
    gecko, given = create(), case.inputs(case.start_state(1, whole=True), checks=True)
    repeats = 5 if steps <= 100 else 3
    prompts = (planner, planner.build_messages.__name__)
    times = (apart(lambda: gecko.invoke(given), prompts, (case.Swift, "invoke")) for _ in range(repeats))
    seconds, model_seconds = min(times, key=lambda pair: pair[0] - pair[1])
    return {
        "seconds": seconds,
        "model_seconds": model_seconds,
        "memory": peak_bytes(lambda: gecko.invoke(given)),
        **checkpointed(lambda saver: kept(create, saver), given),
    }


def least(work: Callable[[], object], repeats: int) -> float:
    """Return processor seconds of the cheapest of some runs: other work slows a processor down, never up."""
    return min(computed(work) for _ in range(repeats))


def long_attempt(steps: int) -> partial[Gecko]:
    """Return a function that creates the graph that makes so many tool calls in one attempt."""
    context = GeckoContext.model_validate({"max_steps": steps + 1, "max_retries": 0})
    toolkit = case.files_toolkit(contracts=True)
    return partial(create_gecko, toolkit, model=case.long_model(steps), context=context)


def apart(work: Callable[[], object], *places: tuple[Any, str]) -> tuple[float, float]:
    """Return processor seconds of some work, and of it those in these functions: `(module or class, name)`."""
    spent = [0.0]

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            started = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                spent[0] += time.process_time() - started

        return run

    with ExitStack() as stack:
        for owner, name in places:
            stack.enter_context(mock.patch.object(owner, name, timed(getattr(owner, name))))
        return computed(work), spent[0]


def by_state(kilobytes: int) -> JsonObject:
    """Measure the case on so many kilobytes of state: processor seconds, peak memory, bytes checkpointed, tokens."""
    given: Any = case.inputs(case.start_state(kilobytes, whole=True), checks=True)
    model = case.recorded()
    create = partial(create_gecko, case.files_toolkit(contracts=True), model=model)
    gecko = create()
    gecko.invoke(given)
    runs = [gecko.invoke(given)]
    usage = runs[0]["rehearsal"]["usage"]
    return {
        "seconds": least(lambda: gecko.invoke(given), 3),
        "memory": peak_bytes(lambda: gecko.invoke(given)),
        "tokens": sum(each["input_tokens"] for each in usage.values()),
        **checkpointed(lambda saver: kept(create, saver), given),
    }


def kept(create: partial[Gecko], saver: SqliteSaver) -> Gecko:
    """Create the graph with a saver."""
    return create(checkpointer=saver)


def by_tasks(tasks: int) -> JsonObject:
    """Measure so many tasks at once in one event loop with a model that answers at once: tasks a second, memory."""
    gecko = case.by_contract(case.recorded())
    given = case.inputs(case.start_state(10, whole=True), checks=True)
    case.at_once(gecko, given, tasks=1)
    run = partial(case.at_once, gecko, given, tasks=tasks)
    repeats = max(1, 16 // tasks)
    spent: list[float] = []
    wall = timed(lambda: spent.extend(computed(run) for _ in range(repeats)))
    return {"seconds": sum(spent) / repeats, "a_second": tasks * repeats / wall, "memory": peak_bytes(run)}
