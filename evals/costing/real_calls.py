"""Time of a further real call of an agent on SQLite. Run as a program, in whichever checkout `PYTHONPATH` names."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver

from gecko_graph import GeckoContext, Models, Tool, Toolkit, create_gecko_agent
from gecko_graph.testing import recorded

CALLS = 24


def order(item: str) -> dict[str, bool]:
    """Order an item."""
    return {"ok": True}


def simulate(state: dict[str, Any], item: str) -> dict[str, bool]:
    """Order it in the task state."""
    state["orders"].append(item)
    return {"ok": True}


def measure(folder: str) -> float:
    """Return the median milliseconds from one real call to the next, of one plan on a database in a folder."""
    items = [f"pen{number}" for number in range(CALLS)]
    plan = [*({"call": "order", "args": {"item": item}} for item in items), {"say": "Ordered."}]
    tools = Toolkit.from_tools([Tool(order, effect="write", simulate=simulate)])
    connection = sqlite3.connect(Path(folder) / f"{time.monotonic_ns()}.sqlite", check_same_thread=False)
    agent: Any = create_gecko_agent(
        tools,
        model=Models(planner=recorded(planner=[plan])),
        interrupt_on="none",
        context=GeckoContext(max_steps=4 * CALLS),
        checkpointer=SqliteSaver(connection),
    )
    checks = [{"description": "all are ordered", "check": f"state.orders[{CALLS - 1}] == '{items[-1]}'"}]
    task = {"messages": [("user", " ".join(["order", *items]))], "task_state": {"orders": []}, "checklist": checks}
    events = agent.stream(task, {"configurable": {"thread_id": "1"}}, stream_mode="custom")
    begun = [time.perf_counter() for event in events if event.get("type") == "gecko.execute"]
    connection.close()
    assert len(begun) == CALLS, "the plan was not carried out"
    return 1_000 * median(after - before for before, after in pairwise(begun))


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        print(json.dumps([measure(folder) for _ in range(int(sys.argv[1]))]))
