"""What a run shows while it goes on, on standard error: a bar on a terminal, a line now and then in a pipe."""

from __future__ import annotations

import time
from collections import Counter
from datetime import timedelta
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from .suite import Case, Record

LINE_EVERY_S = 15.0


class Progress(Protocol):
    """Shows how far a run is: `with progress(console, ...) as shown`, then `begin` and `end` for each case."""

    def __enter__(self) -> Progress:
        """Begin to show."""

    def __exit__(self, *failure: object) -> None:
        """Leave the last state on the screen."""

    def begin(self, case: Case) -> None:
        """Show that a case begins."""

    def end(self, record: Record) -> None:
        """Show that a case is over."""


def progress(console: Console, title: str, *, total: int, settled: int = 0) -> Progress:
    """Return a bar where the console is a terminal, else plain lines.

    Args:
        console: Where to show it.
        title: The suite's name.
        total: Cases of the whole run.
        settled: Those that an earlier session has settled.
    """
    kind = Bar if console.is_terminal and not console.is_dumb_terminal else Lines
    return kind(console, title, total=total, settled=settled)


class Bar:
    """A bar with counts and the time left; below it nothing scrolls."""

    def __init__(self, console: Console, title: str, *, total: int, settled: int) -> None:
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("[red]{task.fields[trouble]}"),
            console=console,
        )
        self._task = self._bar.add_task(title, total=total, completed=settled, trouble="")
        self._counts: Counter[str] = Counter()

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._bar.stop()

    def begin(self, case: Case) -> None:
        """Begin a case: nothing changes on the bar."""

    def end(self, record: Record) -> None:
        """Count one more case that is over."""
        self._counts[record.status] += 1
        self._bar.update(self._task, advance=1, trouble=trouble(self._counts))


class Lines:
    """A line at most every so many seconds, and one at the end."""

    def __init__(self, console: Console, title: str, *, total: int, settled: int) -> None:
        self._console, self._title = console, title
        self._total, self._settled = total, settled
        self._counts: Counter[str] = Counter()
        self._start = self._last = time.monotonic()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *failure: object) -> None:
        if self._counts:
            self._print_line()

    def begin(self, case: Case) -> None:
        """Begin a case: not worth a line."""

    def end(self, record: Record) -> None:
        """Count one more case that is over."""
        self._counts[record.status] += 1
        if time.monotonic() - self._last >= LINE_EVERY_S:
            self._last = time.monotonic()
            self._print_line()

    def _print_line(self) -> None:
        over = self._counts.total()
        seconds = time.monotonic() - self._start
        to_go = self._total - self._settled - over
        left = f", {span(seconds / over * to_go)} left" if to_go else ""
        text = f"{self._title}: {self._settled + over} of {self._total} cases, {span(seconds)}{left}"
        self._console.out(", ".join(filter(None, [text, trouble(self._counts)])), highlight=False)


def trouble(counts: Counter[str]) -> str:
    """Return how many cases failed or were not reached, in words; empty where none."""
    words = {"failed": "failed", "unreached": "not reached"}
    return ", ".join(f"{counts[status]} {word}" for status, word in words.items() if counts[status])


def span(seconds: float) -> str:
    """Format a time as h:mm:ss."""
    return str(timedelta(seconds=round(seconds)))
