"""`python -m evals speed`: what a rehearsal costs, beside the numbers to beat.

Everything is measured in one run on one machine. Prompt tokens are characters / 4. Model replies have fixed lengths
(`evals.case.REPLY_TOKENS`); the slow model waits 400 ms and 10 ms a token.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver

from evals import case, empty
from gecko_graph import create_gecko
from gecko_graph.context import GeckoContext
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.models.usage import total

LATENCY_S, TOKEN_S = 0.4, 0.01
SIZES_KB = (1, 10, 100, 1000)


def run(argv: list[str]) -> int:
    """Measure and print; `--quick` takes small sizes, `--json FILE` keeps the figures."""
    parser = argparse.ArgumentParser(prog="python -m evals speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, for a look in seconds")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE")
    options = parser.parse_args(argv)
    figures: dict[str, Any] = {}
    sizes = SIZES_KB[:2] if options.quick else SIZES_KB
    for name, measure in sections(sizes, quick=options.quick).items():
        figures[name] = measure()
        print(f"\n{name}")
        for row in figures[name]:
            print("  " + "  ".join(f"{key} {show(value)}" for key, value in row.items()))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(figures, out, indent=1)
    return 0


def sections(sizes: tuple[int, ...], *, quick: bool) -> dict[str, Callable[[], list[dict[str, Any]]]]:
    """Title to measurement."""
    return {
        "model calls and prompt tokens": lambda: [row for size in sizes for row in calls_and_tokens(size)],
        "own time a tool call, beside the same graph with empty nodes": lambda: own_time(calls=20 if quick else 100),
        "tasks a second, a model that answers at once": lambda: throughput((1, 8) if quick else (1, 8, 64)),
        "seconds with the slow model, beside the replies that must wait": lambda: critical_path(scale=0.05 if quick else 1.0),
        "bytes checkpointed a superstep (SQLite)": lambda: [checkpoint_bytes(size) for size in sizes[: 2 if quick else 3]],
        "import": import_time,
    }


def calls_and_tokens(kilobytes: int) -> list[dict[str, Any]]:
    """Model calls by role and prompt tokens of the case, by model and by contract, at one size of state."""
    state = case.start_state(kilobytes, whole=True)
    gecko = case.by_contract(case.recorded())
    ways: dict[str, Any] = {
        "model": case.by_model(kilobytes=kilobytes).invoke(case.inputs(state, checks=False)),
        "contract": gecko.invoke(case.inputs(state, checks=False)),
        "contract, checks": gecko.invoke(case.inputs(state, checks=True)),
    }
    return [{"kB": kilobytes, "simulated by": way, **told(run)} for way, run in ways.items()]


def told(run: Mapping[str, Any]) -> dict[str, Any]:
    """Verdict, calls, prompt tokens and calls by role of one run."""
    rehearsal = run["rehearsal"]
    usage = rehearsal["usage"]
    spent = total(usage)
    return {
        "verdict": rehearsal["verdict"]["word"],
        "calls": spent["calls"],
        "prompt tokens": spent["input_tokens"],
        "by role": " ".join(f"{role}={each['calls']}" for role, each in usage.items()),
    }


def own_time(*, calls: int) -> list[dict[str, Any]]:
    """Milliseconds of our own a tool call, and the ratio to the same graph whose nodes do nothing; in turn, five times."""
    model = long_model(calls)
    context = GeckoContext(max_steps=calls + 1, max_retries=0)
    gecko = create_gecko(case.files_toolkit(contracts=True), model=model, context=context)
    hollow = empty.create_empty(calls)
    given = case.inputs(case.start_state(1, whole=True), checks=True)
    ours, theirs, ratios = [], [], []
    gecko.invoke(given)
    for _ in range(5):
        ours.append(timed(lambda: gecko.invoke(given)) / calls)
        theirs.append(timed(hollow) / calls)
        ratios.append(ours[-1] / theirs[-1])
    return [{"ms": median(ours) * 1e3, "ms with empty nodes": median(theirs) * 1e3, "ratio": median(ratios)}]


def long_model(calls: int) -> RecordedModel:
    """A planner that makes so many calls, one a message, and then answers."""
    names = [{"call": "touch", "args": {"file_name": f"file_{number}.txt"}} for number in range(calls)]
    return RecordedModel(turns=[{"planner": [[*names, {"say": "done"}]], "validator": [{"problems": []}] * calls}])


def timed(action: Callable[[], Any]) -> float:
    """Seconds that an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def throughput(levels: tuple[int, ...]) -> list[dict[str, Any]]:
    """Tasks a second at several levels of concurrency in one event loop."""
    gecko = case.by_contract(case.recorded())
    given = case.inputs(case.start_state(10, whole=True), checks=True)
    case.at_once(gecko, given, tasks=2)
    rows = []
    for tasks in levels:
        repeats = max(1, 32 // tasks)
        seconds = timed(lambda tasks=tasks, repeats=repeats: [case.at_once(gecko, given, tasks=tasks) for _ in range(repeats)])  # type: ignore[misc]
        rows.append({"at once": tasks, "tasks a second": tasks * repeats / seconds})
    return rows


def critical_path(*, scale: float) -> list[dict[str, Any]]:
    """Seconds of one task and of eight at once with the slow model, beside the sum of the replies that wait for each other.

    Bootstrapper and checklist are asked at the same time: only the longer of the two counts.
    """
    latency, token = LATENCY_S * scale, TOKEN_S * scale
    gecko = case.by_model(kilobytes=1, latency_s=latency, token_s=token)
    given = case.inputs(case.start_state(1, whole=True), checks=False)
    runs: list[Any] = []
    one = timed(lambda: runs.extend(case.at_once(gecko, given, tasks=1)))
    eight = timed(lambda: runs.extend(case.at_once(gecko, given, tasks=8)))
    usage = runs[0]["rehearsal"]["usage"]
    calls, tokens = total(usage)["calls"], total(usage)["output_tokens"]
    hidden = latency + token * usage["bootstrapper"]["output_tokens"]
    ideal = calls * latency + tokens * token - hidden
    return [
        {"tasks": 1, "seconds": one, "replies that wait": ideal, "ratio": one / ideal, "scale": scale},
        {"tasks": 8, "seconds": eight, "beside one task": eight / one},
    ]


def checkpoint_bytes(kilobytes: int) -> dict[str, Any]:
    """Bytes that a SQLite file grows by a superstep, over a whole run of the case by contract."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    saver = SqliteSaver(connection)
    gecko = create_gecko(case.files_toolkit(contracts=True), model=case.recorded(), checkpointer=saver)
    gecko.invoke(case.inputs(case.start_state(kilobytes, whole=True), checks=True), {"configurable": {"thread_id": "1"}})
    (steps,) = connection.execute("select count(*) from checkpoints").fetchone()
    stored = "select coalesce(sum(length(checkpoint) + length(metadata)), 0) from checkpoints"
    writes = "select coalesce(sum(length(value)), 0) from writes"
    size = sum(connection.execute(query).fetchone()[0] for query in (stored, writes))
    return {"kB of state": kilobytes, "supersteps": steps, "bytes": size, "bytes a superstep": size / steps}


def import_time() -> list[dict[str, Any]]:
    """Seconds that `import gecko_graph` takes in a new process, beside importing langgraph's graph alone; medians of five."""
    rows = []
    for statement in ("import gecko_graph", "from gecko_graph import create_gecko", "from langgraph.graph import StateGraph"):
        code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
        seconds = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) for _ in range(5)]
        rows.append({"statement": statement, "seconds": median(seconds)})
    return rows


def show(value: Any) -> str:
    """A figure for the terminal."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
