"""How alike a table and a constraint's rows are, from 0 to 1 (ToolSandbox, appendix A.7). Pure functions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import GeckoError
from ..state import JsonObject
from ..task_state.digest import pack
from .measures import INSTALL, MEASURES
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

    Args:
        table: The table as it was.
        rows: The rows that a constraint wants; their columns are compared.
        measures: Name of the measure by column.
        tolerance: Tolerances by column and name.
        reference: Compute as ToolSandbox's public code does.
        among: The table may have more rows.
    """
    if len(table) != len(rows) and not (among and len(table) > len(rows) > 0):
        return 0.0
    if not rows:
        return float(not table and not reference)
    costs = [[_cost(row, wanted, measures, tolerance, reference=reference) for wanted in rows] for row in table]
    return math.exp(-_least_mean(costs))


def _cost(row: JsonObject, wanted: JsonObject, measures: Measures, tolerance: Tolerance, *, reference: bool) -> float:
    """Return the mean of the columns' -ln(similarity)."""
    costs = []
    for column, target in wanted.items():
        measure = measures.get(column, "exact")
        if column not in row:
            return math.inf
        cell = row[column]
        if reference and cell is None and measure in ("exact", "contains") and target is not None:
            continue  # polars compares with null as null, and leaves it out of the mean
        options = tolerance.get(column, {})
        similarity = MEASURES[measure](cell, target, options)
        costs.append(-math.log(similarity) if similarity > 0 else math.inf)
    return sum(costs) / len(costs) if costs else math.inf if reference else 0.0


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
