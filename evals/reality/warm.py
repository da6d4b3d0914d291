"""The state from which the runs' processes are forked: everything is imported, and each kind of tool has run once."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from .draws import Draw
from .runs import Run


def warm() -> None:
    calm = replace(Draw.of(0), two=False, saver="memory", end="none", points=(), faults=0.0, message="none")
    for tools, setting in (("python", "alone"), ("http", "in a tool"), ("mcp", "preview")):
        with TemporaryDirectory() as folder:
            Run(replace(calm, tools=tools, setting=setting), Path(folder), None).finish()
    gc.collect()
    gc.freeze()


for name in (
    "uvicorn",
    "gecko_graph.cli.serve",
    "gecko_graph.serve.app",
    "aiosqlite",
    "langgraph.checkpoint.sqlite.aio",
    "psycopg.rows",
    "langgraph.checkpoint.postgres.aio",
):
    __import__(name)
warm()
