"""Figures: measured values with their n and interval, tables and plots of them.

A measured value knows whose tools it was reached with and which rungs answered, so that scores from real and from
simulated tools cannot stand in one figure: `MixedTools` is raised. A bare float is not a cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from . import statistics
from .record import Record, Tools

Form = Literal["percent", "number", "seconds", "dollars", "bytes"]


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


def average(parts: Sequence[Measured]) -> Measured:
    """Return the plain mean of shares, as the paper averages categories; their errors are independent.

    Raises:
        MixedTools: Some come from real and some from simulated tools.
    """
    value = sum(part.value for part in parts) / len(parts)
    half = sum(((part.high - part.low) / 2) ** 2 for part in parts) ** 0.5 / len(parts)
    tools, n = one_of(part.tools for part in parts), sum(part.n for part in parts)
    return Measured(value, max(0.0, value - half), min(1.0, value + half), n, tools, "percent")


def median_of(values: Sequence[float], *, tools: Tools = "none", form: Form = "number") -> Measured:
    """Return the median of plain values, with a bootstrap interval."""
    return Measured(*statistics.median_interval(values), len(values), tools, form)


def tools_of(records: Iterable[Record]) -> Tools:
    """Return whose tools answered in all of them.

    Raises:
        MixedTools: Real ones in some, simulated ones in others.
    """
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
        self.tools = checked(self.title, cells, self.tools)
        self.rows.append(cells)


@dataclass(slots=True)
class Bars:
    """Bars with whiskers, side by side in each category.

    Args:
        title: What they show.
        categories: Labels along the axis.
        series: Name to one cell a category; None leaves a gap.
        note: A sentence below.
        tools: Whose tools answered: taken from the cells.
    """

    title: str
    categories: Sequence[str]
    series: Mapping[str, Sequence[Measured | Published | None]]
    note: str = ""
    tools: Tools = "none"

    def __post_init__(self) -> None:
        for cells in self.series.values():
            if len(cells) != len(self.categories):
                raise ValueError(f"bars {self.title!r}: {len(cells)} values for {len(self.categories)} categories")
            self.tools = checked(self.title, cells, self.tools)


@dataclass(slots=True)
class Lines:
    """Points joined by lines, with whiskers.

    Args:
        title: What they show.
        series: Name to points: x and the value measured there.
        x: What the horizontal axis shows, with its unit.
        y: What the vertical axis shows, with its unit.
        log: Both axes logarithmic; each series' exponent is then named.
        note: A sentence below.
        tools: Whose tools answered: taken from the points.
    """

    title: str
    series: Mapping[str, Sequence[tuple[float, Measured | Published]]]
    x: str
    y: str
    log: bool = False
    note: str = ""
    tools: Tools = "none"

    def __post_init__(self) -> None:
        for points in self.series.values():
            self.tools = checked(self.title, [value for _, value in points], self.tools)


Figure: TypeAlias = Table | Bars | Lines


def checked(title: str, cells: Iterable[Cell], tools: Tools) -> Tools:
    """Return whose tools a figure is about once these cells stand in it."""
    kinds: list[Tools] = [tools]
    for cell in cells:
        if isinstance(cell, float):
            raise TypeError(f"figure {title!r}: {cell} says neither n nor interval: use rate, mean, share or Published")
        if isinstance(cell, Measured):
            kinds.append(cell.tools)
    try:
        return one_of(kinds)
    except MixedTools as mixed:
        raise MixedTools(f"figure {title!r}: {mixed}") from None
