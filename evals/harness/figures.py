"""Cases and their records; measured values with n and interval; tables of them, and their format.

A measured value knows the kind of tools and the rungs that answered, so that scores on real and on simulated tools
cannot be mixed in one figure: `MixedTools` is raised. A bare float is not a cell.
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
"""The kind of tools that answered: real, simulated, or none."""

Status = Literal["done", "failed", "unreached"]
"""The outcome of a case: `failed` if it raised, `unreached` if a model did not reply (it is run again)."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case to measure: `data` is for `run_case`, `facts` are kept with its record even if it fails.

    `unit` is what `--limit` counts: cases of one unit are taken or left together (the variants of one task); by default
    the id. `tools` is the kind of tools that answer, if not the suite's.
    """

    id: str
    data: Any = None
    group: str = ""
    facts: JsonObject = field(default_factory=dict)
    unit: str = ""
    tools: Tools | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """The result of a case: `reason` says why it is not done, `values` is what `run_case` returned."""

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
        return self.status == "done"


Form = Literal["percent", "number", "seconds", "bytes"]
_UNITS = {"percent": " %", "number": "", "seconds": " s", "bytes": " B"}


class MixedTools(TypeError):
    """A figure mixes scores on real and on simulated tools."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured value (NaN if n is 0) with its 95 % confidence interval; for a rate also its hits."""

    value: float
    low: float
    high: float
    n: int
    tools: Tools
    form: Form = "number"
    hits: int | None = None
    rungs: Mapping[str, int] = field(default_factory=dict)


Cell: TypeAlias = Measured | str | int | None
"""A measured value, a text, a plain count, or nothing; not a bare float."""


def rate(
    records: Iterable[Record],
    of: Callable[[Record], bool],
    *,
    where: Callable[[Record], bool] | None = None,
) -> Measured:
    """Return the share of records that meet a condition, with Wilson's interval.

    Of the records that `where` selects, also called for those that are not done; one that is not done is a miss,
    without calling `of`. Raises MixedTools.
    """
    counted = [record for record in records if where is None or where(record)]
    hits = sum(bool(of(record)) for record in counted if record.done)
    low, high = statistics.wilson(hits, len(counted))
    value = hits / len(counted) if counted else float("nan")
    return Measured(value, low, high, len(counted), tools_of(counted), "percent", hits, rungs_of(counted))


def share(hits: int, n: int, *, tools: Tools, rungs: Mapping[str, int] | None = None) -> Measured:
    low, high = statistics.wilson(hits, n)
    return Measured(hits / n if n else float("nan"), low, high, n, tools, "percent", hits, rungs or {})


def share_of_clusters(parts: Sequence[tuple[int, int]], *, tools: Tools) -> Measured:
    """Return a rate over clusters of `(hits, n)`, with an interval over the clusters."""
    value, low, high = statistics.clustered(parts)
    hits, n = sum(hits for hits, _ in parts), sum(n for _, n in parts)
    return Measured(value, low, high, n, tools, "percent", hits)


def mean(records: Iterable[Record], of: Callable[[Record], float], *, form: Form = "number") -> Measured:
    done = [record for record in records if record.done]
    value, low, high = _mean([of(record) for record in done])
    return Measured(value, low, high, len(done), tools_of(done), form, None, rungs_of(done))


def mean_of(values: Sequence[float], *, tools: Tools = "none", form: Form = "number") -> Measured:
    return Measured(*_mean(values), len(values), tools, form)


def _mean(values: Sequence[float]) -> statistics.Interval:
    """Return the mean's interval, cut at 0 if no value is negative."""
    value, low, high = statistics.mean_interval(values)
    return statistics.Interval(value, 0.0 if low < 0 <= min(values) else low, high)


def median_of(values: Sequence[float], *, tools: Tools = "none", form: Form = "number") -> Measured:
    return Measured(*statistics.bootstrap(values, median), len(values), tools, form)


def tools_of(records: Iterable[Record]) -> Tools:
    """Return the kind of tools of all records. Raises as `one_of` does."""
    return one_of(record.tools for record in records)


def one_of(tools: Iterable[Tools]) -> Tools:
    """Return the only kind of tools other than `none`."""
    kinds = sorted(set(tools) - {"none"})
    if len(kinds) > 1:
        raise MixedTools(f"scores from {' and '.join(kinds)} tools in one figure: make one figure of each")
    return kinds[0] if kinds else "none"


def rungs_of(records: Iterable[Record]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for record in records:
        counts.update(record.values.get("rungs") or {})
    return dict(counts.most_common())


@dataclass(slots=True)
class Table:
    """A table of cells; the first column names the rows, and the kind of tools is taken from the cells."""

    title: str
    columns: Sequence[str]
    note: str = ""
    rows: list[Sequence[Cell]] = field(default_factory=list)
    tools: Tools = "none"

    def add(self, *cells: Cell) -> None:
        """Add a row. Raises MixedTools, TypeError for a bare float, ValueError for too many or too few cells."""
        if len(cells) != len(self.columns):
            raise ValueError(f"table {self.title!r}: {len(cells)} cells in a row of {len(self.columns)}")
        if bare := [cell for cell in cells if isinstance(cell, float)]:
            raise TypeError(f"table {self.title!r}: {bare[0]} has neither n nor interval: use rate, mean or share")
        try:
            self.tools = one_of([self.tools, *(cell.tools for cell in cells if isinstance(cell, Measured))])
        except MixedTools as mixed:
            raise MixedTools(f"table {self.title!r}: {mixed}") from None
        self.rows.append(cells)


def format_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, Measured):
        return format_measured(cell)
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
    if isnan(value):
        return "none"
    text = f"{100 * value:.1f}" if form == "percent" else significant(value)
    return text + (_UNITS[form] if unit else "")


def significant(value: float) -> str:
    """Format two or three significant digits, without an exponent if possible."""
    size = abs(value)
    if value == 0 or not isfinite(value):
        return "0" if value == 0 else str(value)
    if size >= 1000:
        return f"{value:,.0f}" if size < 1e9 else f"{value:.3g}"
    if size < 0.1:  # with fixed decimals, 0.0015 would become 0.002
        return f"{value:.2g}"
    digits = 2 if size >= 1 else 3
    return f"{value:.{max(0, digits - (size >= 10) - (size >= 100))}f}"
