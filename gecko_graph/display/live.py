"""Show a run while it is running: a live tree on a terminal, lines in a pipe, a growing table in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from threading import Lock, Timer
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from ..events import Reader, stream_options
from . import WIDTH, words
from .page import html_part
from .records import Draft, Drafts, follow_up, is_complete
from .rows import ViewRow, build_attempt, list_results, list_rows, list_supposed
from .text import TextLine, as_text, draw, list_lines

REFRESHES_A_SECOND = 8
REDRAW_DELAY_S = 0.25
"""Seconds for which a notebook's table collects events before it is redrawn."""

AnyGraph = Pregel[Any, Any, Any, Any]


def watch(graph: AnyGraph, inputs: Any, config: RunnableConfig | None = None, **options: Any) -> dict[str, Any]:
    """Run a graph and show its rehearsal live; for an agent, also its questions and its real calls.

    Args:
        graph: The graph of `create_gecko` or `create_gecko_agent`, or a graph that embeds it.
        inputs: As for `graph.invoke`; None or a Command resumes a thread.
        config: As for `graph.invoke`.
        options: Other options of `graph.stream`, such as `context` and `durability`; `watch` sets the stream mode.

    Returns:
        The output of `graph.invoke`.
    """
    with _view() as reader:
        for part in graph.stream(inputs, config, **stream_options(graph), **options):
            reader.read(part)
    return reader.output


async def awatch(graph: AnyGraph, inputs: Any, config: RunnableConfig | None = None, **options: Any) -> dict[str, Any]:
    """Run a graph as `watch` does, without blocking the event loop."""
    with _view() as reader:
        async for part in graph.astream(inputs, config, **stream_options(graph), **options):
            reader.read(part)
    return reader.output


@contextmanager
def _view() -> Iterator[Reader]:
    console = Console()
    view = NotebookTable(console) if console.is_jupyter else progress(console)
    with view:
        reader = Reader(view.on_event)
        yield reader
    if record := {**(reader.rehearsal or {}), **follow_up(reader.new)}:
        view.on_result(record)


def progress(console: Console) -> LiveView:
    """Return a live tree if the console is a terminal, else plain lines."""
    return LiveTree(console) if has_trees(console) else PlainLines(console)


def has_trees(console: Console) -> bool:
    return console.is_terminal and not console.is_dumb_terminal


def show(console: Console, record: Mapping[str, Any], *, opening: Iterable[ViewRow] = (), waiting: str = "") -> None:
    """Print a finished or interrupted turn: trees on a terminal, else plain lines.

    Args:
        console: The console to print to.
        record: The attempts, which may be drafts, and the result, if there is one.
        opening: Rows to print first.
        waiting: What an unfinished attempt waits for.
    """
    if has_trees(console):
        for row in (*opening, *list_rows(record, waiting=waiting)):
            console.print(draw(row))
        return
    lines = PlainLines(console)
    lines.write((*opening, *list_supposed(record)))
    for attempt in record["attempts"]:
        lines.write([build_attempt(attempt)], attempt["number"])
    lines.on_result(record)


class LiveView:
    """View of one running turn: `with progress(console) as view: view.on_event(event)`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._drafts = Drafts()
        self._seen: set[tuple[int, TextLine]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        """Stop the view; its output stays on the screen."""

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Show one event."""

    def on_result(self, record: Mapping[str, Any]) -> None:
        """Show the turn's result (`Rehearsal`) and its follow-up (`records.follow_up`), if known."""

    def _new_lines(self, rows: Iterable[ViewRow], number: int = 0) -> list[TextLine]:
        """Return the lines of rows that were not printed yet.

        `number` is the attempt that the rows belong to; 0 means the turn itself.
        """
        lines = [line for row in rows for line in list_lines(row) if (number, line) not in self._seen]
        self._seen |= {(number, line) for line in lines}
        return lines


class PlainLines(LiveView):
    """One line per new row, with the number of its attempt."""

    def on_event(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "gecko.attempt":  # the attempt starts, perhaps again
            self._seen = {each for each in self._seen if each[0] != event["attempt"]}
        self.write(self._drafts.add(event), event["attempt"])

    def on_result(self, record: Mapping[str, Any]) -> None:
        """Print the result, and the real calls unless they were printed as events."""
        for line in self._new_lines(list_results(record)):
            self._console.out(f"{line.label:<12} {line.text}".rstrip(), highlight=False)

    def write(self, rows: Iterable[ViewRow], number: int = 0) -> None:
        for line in self._new_lines(rows, number):
            self._console.out(f"[{number or '-'}] {line.label:<8} {line.text}".rstrip(), highlight=False)


class LiveTree(LiveView):
    """A growing tree: finished attempts are printed and scroll; only open attempts are redrawn, cut to the screen."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._open: dict[int, Draft] = {}
        self._lock = Lock()  # rich calls _render in its own thread
        self._spinner = Spinner("dots", style="dim")
        self._live = Live(
            get_renderable=self._render,
            console=console,
            refresh_per_second=REFRESHES_A_SECOND,
            transient=True,
            vertical_overflow="crop",
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._live.stop()
        for draft in self._open.values():
            self._console.print(draw(build_attempt(draft, waiting="stopped here")))

    def on_event(self, event: Mapping[str, Any]) -> None:
        with self._lock:  # never held while printing: rich's thread holds its own lock when it calls _render
            rows = [*self._drafts.add(event)]
            draft = self._drafts.attempts[event["attempt"]] if event["attempt"] else None
            if draft is not None and "verdict" not in draft:
                self._open[draft["number"]] = draft
                return
            was_open = draft is not None and self._open.pop(draft["number"], None) is not None
        if draft is None:  # an event of the turn, not of an attempt
            self._print_lines(rows)
            return
        if was_open and is_complete(draft):
            self._live.refresh()  # print above the last frame, which must no longer show this attempt
            self._console.print(draw(build_attempt(draft)))

    def on_result(self, record: Mapping[str, Any]) -> None:
        """Show the result, and before it the attempts of which events were missed, as after a resume."""
        for attempt in record.get("attempts", ()):
            if not is_complete(self._drafts.attempts.get(attempt["number"], {})):
                self._console.print(draw(build_attempt(attempt)))
        for row in list_results({**record, "execution": None}):
            self._console.print(draw(row))
        self._print_lines(list_results({"execution": record.get("execution")}))

    def _print_lines(self, rows: Iterable[ViewRow]) -> None:
        for line in self._new_lines(rows):
            self._console.print(draw(ViewRow(line.label, line.text)))

    def _render(self) -> RenderableType:
        with self._lock:
            drafts = list(self._open.values())
            self._spinner.update(text=Text(words.clean(words.cut(self._drafts.now(), 120)), "dim"), style="dim")
            return _Tail(Group(*(draw(build_attempt(draft)) for draft in drafts), self._spinner))


class _Tail:
    """The last lines of a renderable that fit the screen."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._renderable, options.update(height=None), pad=False)
        room = max(2, console.size.height - 1)
        if len(lines) > room:
            yield from console.render(Text(f"… {len(lines) - room + 1} lines above", "dim"), options)
            lines = lines[-(room - 1) :]
        for line in lines:
            yield from line
            yield Segment.line()


class NotebookTable(LiveView):
    """One table below the cell, redrawn while attempts run."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._lock = Lock()
        self._timer: Timer | None = None

    def __enter__(self) -> Self:
        self._handle = import_module("IPython.display").display(_data({"attempts": []}), raw=True, display_id=True)
        return self

    def __exit__(self, *failure: object) -> None:
        self._draw(waiting="stopped here")

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Show one event, together with those of the next `REDRAW_DELAY_S` seconds."""
        with self._lock:
            self._drafts.add(event)
            if self._timer is None:
                self._timer = Timer(REDRAW_DELAY_S, self._draw)
                self._timer.daemon = True
                self._timer.start()

    def on_result(self, record: Mapping[str, Any]) -> None:
        self._handle.update(_data({**self._drafts.record, **record}), raw=True)

    def _draw(self, *, waiting: str = "") -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            elif not waiting:  # already drawn
                return
            self._timer = None
            self._handle.update(_data(self._drafts.record, waiting=waiting), raw=True)


def _data(record: Mapping[str, Any], *, waiting: str = "") -> dict[str, str]:
    text = as_text(list_rows(record, waiting=waiting or "running"), width=WIDTH)
    return {"text/html": html_part(record, waiting=waiting), "text/plain": text}
