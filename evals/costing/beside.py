"""Measurements for two checkouts, one process at a time: `python beside.py ROW` prints processor time as JSON.

It runs with the checkout on the path, this one or an older one, so it uses only what both have. To add a row, add a
function here and its bound to `against.ROWS`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import sqlite3
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping
from functools import partial
from inspect import isawaitable
from itertools import islice, pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from evals.costing import costs, server, world_calls

LONG, SOME = 10_000, 200
"""Calls of a long world, and how many at its start and end are compared."""
RESET = 5_000
PLANNED = 24
"""Real calls of a plan."""


def world_call(size: str, data: str) -> float:
    """Return the median microseconds of a call by contract, over a thousand calls."""
    create = (
        partial(world_calls.on_files, 10)
        if size == "10"
        else partial(world_calls.on_database, Path(data) / world_calls.DATABASE)
    )
    return float(median(world_calls.measure(create, count=1000)["ms"][30:]) * 1e3)


def long_world(data: str) -> float:
    """Return the time of calls 9,800 to 10,000 of one world relative to its first 200, after warming up."""
    del data
    world, calls = world_calls.on_files(10)
    times: list[float] = []
    for call in islice(calls, LONG):
        started = time.process_time()
        world.call(call)
        times.append(time.process_time() - started)
    return median(times[LONG - SOME :]) / median(times[30 : SOME + 30])


def kept_bytes(data: str) -> float:
    """Return the bytes that calls leave behind late in a long world, relative to its first quarter."""
    del data
    world, calls = world_calls.on_files(10)
    for call in islice(calls, 100):
        world.call(call)
    tracemalloc.start()
    grown: list[int] = []
    for _ in range(4):
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for call in islice(calls, 1500):
            world.call(call)
        gc.collect()
        grown.append(tracemalloc.get_traced_memory()[0] - before)
    return grown[-1] / grown[0]


def reset(data: str) -> float:
    """Return the milliseconds of resetting a session of 5,000 calls to step 4,999."""
    del data
    from gecko_graph.serve.sessions import Sessions

    async def run() -> float:
        world, calls = world_calls.on_files(10)
        sessions = Sessions(world)
        if isawaitable(made := sessions.create("a")):  # at 1b17d493 it is not async
            await made
        for call in islice(calls, RESET):
            await sessions.call("a", call)
        started = time.process_time()
        await sessions.reset("a", RESET - 1)
        return (time.process_time() - started) * 1e3

    return asyncio.run(run())


def own_time(data: str) -> float:
    """Return the package's own time of a rehearsed call relative to empty LangGraph nodes: the median of three runs."""
    del data
    return float(median(costs.own_time(calls=100, repeats=3)["ratio"]))


def order(item: str) -> dict[str, bool]:
    """Order an item."""
    return {"ok": True}


def simulate(state: dict[str, Any], item: str) -> dict[str, bool]:
    """Order an item in the task state."""
    state["orders"].append(item)
    return {"ok": True}


def real_call(data: str) -> float:
    """Return the median milliseconds between two real calls of one plan, for an agent on SQLite."""
    del data
    from langgraph.checkpoint.sqlite import SqliteSaver

    from gecko_graph import GeckoContext, Models, Tool, Toolkit, create_gecko_agent
    from gecko_graph.testing import recorded

    items = [f"pen{number}" for number in range(PLANNED)]
    plan = [*({"call": "order", "args": {"item": item}} for item in items), {"say": "Ordered."}]
    checks = [{"description": "all are ordered", "check": f"state.orders[{PLANNED - 1}] == '{items[-1]}'"}]
    task = {"messages": [("user", " ".join(["order", *items]))], "task_state": {"orders": []}, "checklist": checks}
    with TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "calls.sqlite", check_same_thread=False)
        agent: Any = create_gecko_agent(
            Toolkit.from_tools([Tool(order, effect="write", simulate=simulate)]),
            model=Models(planner=recorded(planner=[plan])),
            interrupt_on="none",
            context=GeckoContext(max_steps=4 * PLANNED),
            checkpointer=SqliteSaver(connection),
        )
        events = agent.stream(task, {"configurable": {"thread_id": "1"}}, stream_mode="custom")
        begun = [time.perf_counter() for event in events if event.get("type") == "gecko.execute"]
        connection.close()
    assert len(begun) == PLANNED, "the plan was not carried out"
    return 1_000 * median(after - before for before, after in pairwise(begun))


def request(data: str) -> float:
    """Return the server process's milliseconds for a request answered by contract."""
    del data
    measured = server.Load(200, 3000).measure(server.serve_command())
    if measured["lost"]:
        raise RuntimeError(f"{measured['lost']} updates were lost")
    return float(measured["cpu_ms"])


def verify(rows: int, data: str) -> float:
    """Return the microseconds of a row checked by `data verify`: `rows` 0 by contract, 1 by schema alone."""
    from evals.loop import Given, speed

    told = [each.text for each in speed.measure(Given(Path(data), 0))]
    return 1e6 / float(told[rows].split()[0])


def process(*line: str, data: str) -> float:
    """Return the processor seconds of a whole Python process."""
    del data
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *line], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


MEASURES: Mapping[str, Callable[[str], float]] = {
    "World.call, 10 kB, µs": partial(world_call, "10"),
    "World.call, 4.9 MB, µs": partial(world_call, "4.9"),
    "calls 9,800 to 10,000 beside 0 to 200": long_world,
    "bytes left by a call, late beside early": kept_bytes,
    "a session of 5,000 calls reset to 4,999, ms": reset,
    "a rehearsed call beside empty nodes": own_time,
    "a further real call, ms": real_call,
    "a request to serve, ms": request,
    "data verify, a row of eight calls by contract, µs": partial(verify, 0),
    "data verify, a row by schema alone, µs": partial(verify, 1),
    "from gecko_graph import create_gecko, s": lambda data: process(
        "-c", "from gecko_graph import create_gecko", data=data
    ),
    "gecko-graph --version, s": lambda data: process("-m", "gecko_graph", "--version", data=data),
}

if __name__ == "__main__":
    print(json.dumps(MEASURES[sys.argv[1]](sys.argv[2])))
