"""How alike a table and a constraint's rows are, from 0 to 1 (ToolSandbox, appendix A.7). Pure functions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from struct import pack as pack_float
from struct import unpack
from typing import Any

from ..errors import GeckoError
from ..state import JsonObject
from ..task_state.digest import pack
from .measures import COLUMN, INSTALL, MEASURES
from .tables import Table

Measures = Mapping[str, str]
Tolerance = Mapping[str, Mapping[str, float]]
"""Tolerances by column and name."""


def compare_tables(
    table: Table,
    rows: Sequence[JsonObject],
    measures: Measures,
    tolerance: Tolerance,
    *,
    reference: bool,
    among: bool = False,
) -> float:
    """Return the similarity of a table with the same number of rows: the geometric mean of the best assignment.

    Only columns of the wanted rows are compared, each by its measure and tolerance. With `among` the table may have
    more rows; `reference` is to compute as ToolSandbox's public code does.
    """
    if len(table) != len(rows) and not (among and len(table) > len(rows) > 0):
        return 0.0
    if not rows:
        return float(not table and not reference)
    costs = [[_cost(row, wanted, measures, tolerance, reference=reference) for wanted in rows] for row in table]
    if any(math.isnan(cost) for row in costs for cost in row):
        return 0.0
    similarity = math.exp(-_least_mean(costs))
    return _as_single(similarity) if reference and len(rows[0]) == 1 else similarity


def _cost(row: JsonObject, wanted: JsonObject, measures: Measures, tolerance: Tolerance, *, reference: bool) -> float:
    costs = []
    for column, target in wanted.items():
        measure = measures.get(column, "exact")
        if column not in row:
            return math.inf
        cell = row[column]
        if reference and cell is None and measure in ("exact", "contains") and target is not None:
            continue  # polars compares with null as null, and leaves it out of the mean
        options = tolerance.get(column, {})
        similarity = MEASURES[measure](cell, target, {**options, COLUMN: options.get(column, 0.0)})
        costs.append(_as_cost(similarity, single=reference))
    return sum(costs) / len(costs) if costs else math.nan if reference else 0.0  # one such pair makes all of it 0


_LN_E = 1 - 2**-24
"""ln(e) in Float32, by which polars divides."""


def _as_cost(similarity: float, *, single: bool) -> float:
    """Return -ln(similarity); in Float32 as the public code has it: of two mappings the last digits decide."""
    if similarity <= 0:
        return math.inf
    return _as_single(_as_single(-math.log(_as_single(similarity))) / _LN_E) if single else -math.log(similarity)


def _as_single(number: float) -> float:
    rounded: float = unpack("f", pack_float("f", number))[0]
    return rounded


def _least_mean(costs: list[list[float]]) -> float:
    if len(costs) == 1 or len(costs[0]) == 1:
        return min(row[0] for row in costs)
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError:
        raise GeckoError(f"to compare several rows, scipy is needed: {INSTALL}") from None
    try:
        chosen = zip(*linear_sum_assignment(costs), strict=True)
    except ValueError:  # no assignment without an impossible pair
        return math.inf
    return math.fsum(costs[row][column] for row, column in chosen) / len(costs[0])


def fill_nulls(*tables: Table) -> list[Table]:
    """Return tables with the zero of its column's type in the place of each null, as the public code joins them."""
    cells = [(column, value) for table in tables for row in table for column, value in row.items()]
    zeros: JsonObject = {column: type(value)() for column, value in cells if value is not None}
    return [
        [{column: zeros.get(column, 0) if value is None else value for column, value in row.items()} for row in table]
        for table in tables
    ]


def find_added(table: Table, before: Table, *, reference: bool) -> Table | None:
    """Return the rows that were added to a table; None where one of those before is gone.

    Rows are equal by their values, whatever their order. The public code joins the two tables: a row that stood twice
    is never matched, and one added that equals another is not seen.
    """
    now, old = Counter(map(_row_key, table)), Counter(map(_row_key, before))
    if reference:
        if sum(count * old[key] for key, count in now.items()) != len(before):
            return None
        return [row for row in table if _row_key(row) not in old]
    if old - now:
        return None
    return subtract(table, before)


def find_changed(table: Table, before: Table, *, reference: bool) -> Table | None:
    """Return the rows that differ from before; None where the number of rows changed."""
    if len(table) != len(before):
        return None
    old = set(map(_row_key, before))
    return [row for row in table if _row_key(row) not in old] if reference else subtract(table, before)


def is_same(table: Table, before: Table, *, reference: bool) -> bool:
    """Return whether nothing in a table has changed; the public code also compares the order of its rows."""
    if reference:
        return list(table) == list(before)
    return table is before or Counter(map(_row_key, table)) == Counter(map(_row_key, before))


def subtract(table: Table, other: Table) -> list[JsonObject]:
    """Return the rows of a table that another does not have, as often as it has them."""
    left = Counter(map(_row_key, other))
    rows = []
    for row in table:
        left[_row_key(row)] -= 1
        if left[_row_key(row)] < 0:
            rows.append(row)
    return rows


def _row_key(row: Any) -> bytes:
    return pack(dict(sorted(row.items())))
