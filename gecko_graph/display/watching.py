"""Watching a graph run: a live tree on a terminal, a growing table in a notebook, lines in a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from threading import Lock, Timer
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel
from rich.console import Console

from ..events import Reader, stream_options
from . import WIDTH
from .drafts import REAL, Drafts, follow_up
from .live import Progress, progress
from .page import html_part
from .tree import as_text, rehearsal_tree

GATHERED_S = 0.25
"""Seconds for which events are collected before a notebook's table is drawn again."""

AnyGraph = Pregel[Any, Any, Any, Any]


def watch(
    graph: AnyGraph, inputs: Any, config: RunnableConfig | None = None, *, context: Any = None, **options: Any
) -> dict[str, Any]:
    """Run a graph and show its rehearsal live; of an agent also what it asks, and the calls it makes for real.

    Args:
        graph: The graph of `create_gecko` or `create_gecko_agent`, or one that embeds it.
        inputs: As for `graph.invoke`; None or a Command resumes a thread.
        config: As for `graph.invoke`.
        context: As for `graph.invoke`.
        options: Other options of `graph.stream`, such as `durability`; the stream mode is set here.

    Returns:
        The output of `graph.invoke`.
    """
    with _view() as reader:
        for part in graph.stream(inputs, config, context=context, **stream_options(graph), **options):
            reader.read(part)
    return reader.output


async def awatch(
    graph: AnyGraph, inputs: Any, config: RunnableConfig | None = None, *, context: Any = None, **options: Any
) -> dict[str, Any]:
    """Run as `watch` does, without blocking the event loop."""
    with _view() as reader:
        async for part in graph.astream(inputs, config, context=context, **stream_options(graph), **options):
            reader.read(part)
    return reader.output


@contextmanager
def _view() -> Iterator[Reader]:
    console = Console()
    view: Progress = NotebookTable() if console.is_jupyter else progress(console)
    with view:
        reader = Reader(view.on_event)
        yield reader
    if record := {**(reader.rehearsal or {}), **follow_up(reader.new)}:
        view.on_result(record)


class NotebookTable:
    """One table under the cell, redrawn while attempts run; see `live.Progress`."""

    def __init__(self) -> None:
        self._drafts = Drafts()
        self._record: dict[str, Any] = {}
        self._lock = Lock()
        self._timer: Timer | None = None

    def __enter__(self) -> NotebookTable:
        self._handle = import_module("IPython.display").display(_data({"attempts": []}), raw=True, display_id=True)
        return self

    def __exit__(self, *failure: object) -> None:
        self._draw(waiting="stopped here")

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Show one event, together with those that follow at once."""
        with self._lock:
            if event["attempt"]:
                self._drafts.add(event)
            elif event["type"] == "gecko.state":
                self._record["supposed_state"] = event
            elif event["type"] in REAL:
                self._drafts.add_real(event)
                self._record["execution"] = self._drafts.execution
            if self._timer is None:
                self._timer = Timer(GATHERED_S, self._draw)
                self._timer.daemon = True
                self._timer.start()

    def on_result(self, record: Mapping[str, Any]) -> None:
        """Show the result, and what followed it."""
        drafts = {**self._record, "attempts": self._drafts.attempts}
        self._handle.update(_data({**drafts, **record}), raw=True)

    def _draw(self, *, waiting: str = "") -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            elif not waiting:  # drawn already
                return
            self._timer = None
            data = _data({**self._record, "attempts": self._drafts.attempts}, waiting=waiting)
            self._handle.update(data, raw=True)


def _data(rehearsal: Mapping[str, Any], *, waiting: str = "") -> dict[str, str]:
    text = as_text(rehearsal_tree(rehearsal, waiting=waiting), width=WIDTH)
    return {"text/html": html_part(rehearsal, waiting=waiting), "text/plain": text}
