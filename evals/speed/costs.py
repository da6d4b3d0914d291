"""Costs of one rehearsal of the case: model calls, tokens, own time, memory, checkpointed bytes."""

from __future__ import annotations

import sqlite3
import time
import tracemalloc
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest import mock

from langgraph.checkpoint.sqlite import SqliteSaver

from gecko_graph import create_gecko
from gecko_graph.context import GeckoContext
from gecko_graph.graph import Gecko
from gecko_graph.models.usage import total
from gecko_graph.nodes import planner
from gecko_graph.state import JsonObject

from . import case

STEPS = (10, 30, 100, 500, 1000, 2000, 4000)
SIZES_KB = (1, 10, 100, 1000)


def peak_bytes(action: Callable[[], Any]) -> int:
    """Return the peak bytes of Python objects during an action, beyond those before it."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def stored_bytes(connection: sqlite3.Connection) -> int:
    queries = (
        "select coalesce(sum(length(checkpoint) + length(metadata)), 0) from checkpoints",
        "select coalesce(sum(length(value)), 0) from writes",
    )
    return sum(int(connection.execute(query).fetchone()[0]) for query in queries)


def checkpointed(create: Callable[[SqliteSaver], Gecko], given: Mapping[str, Any]) -> JsonObject:
    """Return the supersteps and bytes that a run stores in a SQLite saver."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    create(SqliteSaver(connection)).invoke(dict(given), {"configurable": {"thread_id": "1"}})
    (steps,) = connection.execute("select count(*) from checkpoints").fetchone()
    size = stored_bytes(connection)
    connection.close()
    return {"supersteps": int(steps), "bytes": size}


def calls_and_tokens(kilobytes: int, way: str) -> JsonObject:
    """Return calls and tokens of the case by role: simulated by a model, by contracts, or by contracts with checks."""
    state = case.start_state(kilobytes, whole=True)
    gecko = case.by_model(kilobytes=kilobytes) if way == "model" else case.by_contract(case.recorded())
    rehearsal = gecko.invoke(case.inputs(state, checks=way == "contract, checks"))["rehearsal"]
    spent = total(rehearsal["usage"])
    return {
        "verdict": rehearsal["verdict"]["status"],
        "calls": spent["calls"],
        "tokens_in": spent["input_tokens"],
        "tokens_out": spent["output_tokens"],
        "roles": {role: [each["calls"], each["input_tokens"]] for role, each in rehearsal["usage"].items()},
    }


def by_steps(steps: int) -> JsonObject:
    """Measure one attempt of this many tool calls on 1 kB of state.

    Returns:
        Processor seconds of the attempt, and the part of them for building the planner's prompts and calling the model
        (both read the whole conversation at each call); peak memory and checkpointed bytes.
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
        **checkpointed(lambda saver: create(checkpointer=saver), given),
    }


def long_attempt(steps: int) -> partial[Gecko]:
    context = GeckoContext.model_validate({"max_steps": steps + 1, "max_retries": 0})
    toolkit = case.files_toolkit(contracts=True)
    return partial(create_gecko, toolkit, model=case.long_model(steps), context=context)


def apart(work: Callable[[], object], *places: tuple[Any, str]) -> tuple[float, float]:
    """Return the processor seconds of some work, and the part spent in these functions: `(module or class, name)`."""
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
        started = time.process_time()  # which other load on the machine does not affect
        work()
        return time.process_time() - started, spent[0]
