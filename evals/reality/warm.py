"""What the runs' processes are forked from: everything is imported, and has run once."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import aiosqlite
import langchain.agents
import mcp.server
import psycopg.rows
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import aio as _postgres
from langgraph.checkpoint.sqlite import aio as _sqlite

from .agents import graph_of, task_of
from .bank import Bank, Client, toolkit_of
from .draws import Draw
from .fates import Counted

__all__ = ["_postgres", "_sqlite", "aiosqlite", "langchain", "mcp", "psycopg"]


def warm() -> None:
    """Make the payments once with tools of each kind."""
    calm = replace(Draw.of(0), setting="alone", review="none", end="none", points=(), faults=0.0, keyed=False)
    for tools, setting in (("python", "alone"), ("http", "in a tool"), ("mcp", "preview")):
        draw = replace(calm, tools=tools, setting=setting)
        with TemporaryDirectory() as folder:
            fate = Counted(draw, Path(folder), InMemorySaver())
            with toolkit_of(draw, Client(draw, Bank(Path(folder), draw), fate)) as toolkit:
                graph = graph_of(draw, toolkit, fate.memory)
                graph.invoke(task_of(draw, "message-1"), {"configurable": {"thread_id": "1"}})
    gc.collect()
    gc.freeze()


warm()
