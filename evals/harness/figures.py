"""Cases and their records; measured values with their n and interval, tables of them, and how they are written.

A measured value knows whose tools it was reached with and which rungs answered, so that scores from real and from
simulated tools cannot stand in one figure: `MixedTools` is raised. A bare float is not a cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, isnan
from statistics import median
from typing import Any, Literal, TypeAlias

from gecko_graph.state import JsonObject

from . import statistics

Tools = Literal["real", "simulated", "none"]
"""Whose answers a score was reached with: the real tools', simulated ones, or no tool's at all."""

Status = Literal["done", "failed", "unreached"]
"""What became of a case: `failed` where it raised, `unreached` where a model did not answer (it is run again)."""


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to measure.

    Args:
        id: Its name, unique in the suite and the same in every run.
        data: Whatever `run_case` needs; it is not written down.
        group: Its category, for tables and for `--only`.
        facts: What is known of it before it runs, as plain JSON; kept with its record, also where it fails.
        unit: What `--limit` counts: cases of one unit are taken or left together (the arms of one task); else the id.
        tools: Whose tools answer it, where not the suite's.
    """

    id: str
    data: Any = None
    group: str = ""
    facts: JsonObject = field(default_factory=dict)
    unit: str = ""
    tools: Tools | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """What a case came to.

    Args:
        id: The case's.
        group: The case's.
        facts: The case's.
        status: `done`, `failed` or `unreached`.
        reason: Why it is not done; else empty.
        seconds: How long it took.
        tools: Whose answers it was reached with.
        values: What `run_case` returned; empty where it is not done.
    """

    id: str
    group: str
    facts: JsonObject
    status: Status
    reason: str
    seconds: float
    tools: Tools
    values: JsonObject

    @property
    def done(self) -> bool:
        """True if the case ran to its end."""
        return self.status == "done"


Form = Literal["percent", "number", "seconds", "dollars", "bytes"]
_UNITS = {"percent": " %", "number": "", "seconds": " s", "dollars": " $", "bytes": " B"}


class MixedTools(TypeError):
    """A figure was given scores from real and from simulated tools."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A value that was measured.

    Args:
        value: The value; NaN where n is 0.
        low: Lower end of its 95 % confidence interval.
        high: Upper end.
        n: From how many cases.
        tools: Whose tools answered; `none` stands beside either of the others.
        form: How it is written.
        hits: For a rate, how many of the n.
        rungs: Answers by the rung that gave them.
    """

    value: float
    low: float
    high: float
    n: int
    tools: Tools
    form: Form = "number"
    hits: int | None = None
    rungs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Published:
    """A value that somebody else measured and published, such as the paper's."""

    value: float
    source: str
    form: Form = "percent"


Cell: TypeAlias = Measured | Published | str | int | None
"""A measured or published value, a text, a plain count, or nothing. Not a bare float."""


def rate(
    records: Iterable[Record],
    of: Callable[[Record], bool],
    *,
    where: Callable[[Record], bool] | None = None,
) -> Measured:
    """Return the share of records of which something is true, with Wilson's interval.

    Args:
        records: Those to count. One that is not done is a miss; `of` is not asked about it.
        of: What is counted, from `record.values`.
        where: Which records count at all, from `record.facts` or `group`: it is asked about those not done as well.

    Raises:
        MixedTools: Some come from real and some from simulated tools.
    """
    counted = [record for record in records if where is None or where(record)]
    hits = sum(bool(of(record)) for record in counted if record.done)
    low, high = statistics.wilson(hits, len(counted))
    value = hits / len(counted) if counted else float("nan")
    return Measured(value, low, high, len(counted), tools_of(counted), "percent", hits, rungs_of(counted))


def share(hits: int, n: int, *, tools: Tools, rungs: Mapping[str, int] | None = None) -> Measured:
    """Return a rate that was counted elsewhere: not one a case, but so many calls in all."""
    low, high = statistics.wilson(hits, n)
    return Measured(hits / n if n else float("nan"), low, high, n, tools, "percent", hits, rungs or {})


def share_of_clusters(parts: Sequence[tuple[int, int]], *, tools: Tools) -> Measured:
    """Return a rate of so many hits of n in each cluster, with an interval over the clusters."""
    value, low, high = statistics.clustered(parts)
    hits, n = sum(hits for hits, _ in parts), sum(n for _, n in parts)
    return Measured(value, low, high, n, tools, "percent", hits)


def mean(records: Iterable[Record], of: Callable[[Record], float], *, form: Form = "number") -> Measured:
    """Return the mean over the records that are done, with Student's interval; the others do not count."""
    done = [record for record in records if record.done]
    value, low, high = _mean([of(record) for record in done])
    return Measured(value, low, high, len(done), tools_of(done), form, None, rungs_of(done))


def mean_of(values: Sequence[float], *, tools: Tools = "none", form: Form = "number") -> Measured:
    """Return the mean of plain values, with Student's interval."""
    return Measured(*_mean(values), len(values), tools, form)


def _mean(values: Sequence[float]) -> statistics.Interval:
    """Return the mean's interval; for values that are never negative, such as costs, it does not reach below 0."""
    value, low, high = statistics.mean_interval(values)
    return statistics.Interval(value, 0.0 if low < 0 <= min(values) else low, high)


def median_of(values: Sequence[float], *, tools: Tools = "none", form: Form = "number") -> Measured:
    """Return the median of plain values, with a bootstrap interval."""
    return Measured(*statistics.bootstrap(values, median), len(values), tools, form)


def tools_of(records: Iterable[Record]) -> Tools:
    """Return whose tools answered in all of them. Raises as `one_of` does."""
    return one_of(record.tools for record in records)


def one_of(tools: Iterable[Tools]) -> Tools:
    """Return the one kind of tools that is named, `none` aside.

    Raises:
        MixedTools: Two are.
    """
    kinds = sorted(set(tools) - {"none"})
    if len(kinds) > 1:
        raise MixedTools(f"scores from {' and '.join(kinds)} tools in one figure: make one figure of each")
    return kinds[0] if kinds else "none"


def rungs_of(records: Iterable[Record]) -> dict[str, int]:
    """Count answers by rung, from the records' values `rungs`."""
    counts: Counter[str] = Counter()
    for record in records:
        counts.update(record.values.get("rungs") or {})
    return dict(counts.most_common())


@dataclass(slots=True)
class Table:
    """A table of cells.

    Args:
        title: What it shows.
        columns: Heads; the first column names the rows.
        note: A sentence below.
        rows: Filled by `add`.
        tools: Whose tools answered: taken from the cells.
    """

    title: str
    columns: Sequence[str]
    note: str = ""
    rows: list[Sequence[Cell]] = field(default_factory=list)
    tools: Tools = "none"

    def add(self, *cells: Cell) -> None:
        """Add a row.

        Raises:
            MixedTools: Its scores come from other tools than the table's.
            TypeError: A cell is a bare float: measured values say n and interval.
            ValueError: Too many or too few cells.
        """
        if len(cells) != len(self.columns):
            raise ValueError(f"table {self.title!r}: {len(cells)} cells in a row of {len(self.columns)}")
        if bare := [cell for cell in cells if isinstance(cell, float)]:
            raise TypeError(f"table {self.title!r}: {bare[0]} says neither n nor interval: use rate, mean or share")
        try:
            self.tools = one_of([self.tools, *(cell.tools for cell in cells if isinstance(cell, Measured))])
        except MixedTools as mixed:
            raise MixedTools(f"table {self.title!r}: {mixed}") from None
        self.rows.append(cells)


def format_cell(cell: Cell) -> str:
    """Format a cell in one line: the value, its interval, and its n."""
    if cell is None:
        return ""
    if isinstance(cell, Measured):
        return format_measured(cell)
    if isinstance(cell, Published):
        return f"{format_number(cell.value, cell.form)} ({cell.source})"
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)


def format_measured(cell: Measured) -> str:
    """Format value, interval and n: `97.5 % [95.4, 98.7] 390/400`, `3.20 s [2.90, 3.50] n=40`, `3.20 s n=1`."""
    if cell.n == 0:
        return "none n=0"
    parts = [format_number(cell.value, cell.form)]
    if isfinite(cell.low) and isfinite(cell.high):
        low, high = (format_number(end, cell.form, unit=False) for end in (cell.low, cell.high))
        parts.append(f"[{low}, {high}]")
    parts.append(f"{cell.hits:,}/{cell.n:,}" if cell.hits is not None else f"n={cell.n:,}")
    return " ".join(parts)


def format_number(value: float, form: Form, *, unit: bool = True) -> str:
    """Format a number in its form; NaN is `none`."""
    if isnan(value):
        return "none"
    text = f"{100 * value:.1f}" if form == "percent" else significant(value)
    return text + (_UNITS[form] if unit else "")


def significant(value: float) -> str:
    """Format two or three significant digits, without an exponent where a reader does not need one."""
    size = abs(value)
    if value == 0 or not isfinite(value):
        return "0" if value == 0 else str(value)
    if size >= 1000:
        return f"{value:,.0f}" if size < 1e9 else f"{value:.3g}"
    if size < 0.1:  # by decimals, 0.0015 would be written as 0.002
        return f"{value:.2g}"
    digits = 2 if size >= 1 else 3
    return f"{value:.{max(0, digits - (size >= 10) - (size >= 100))}f}"
