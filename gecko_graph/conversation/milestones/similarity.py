"""How alike a table and a constraint's rows are, from 0 to 1 (ToolSandbox, appendix A.7). Pure functions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...state import Json, JsonObject
from ...values.digest import pack
from .measures import COLUMN, MEASURES, check_installed
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
    among: bool = False,
) -> float:
    """Return the similarity of a table with the same number of rows: the geometric mean of the best assignment.

    Only columns of the wanted rows are compared, each by its measure and tolerance. With `among` the table may have
    more rows.
    """
    if len(table) != len(rows) and not (among and len(table) > len(rows) > 0):
        return 0.0
    if not rows:
        return float(not table)
    return math.exp(-least_mean([[_cost(row, wanted, measures, tolerance) for wanted in rows] for row in table]))


def _cost(row: JsonObject, wanted: JsonObject, measures: Measures, tolerance: Tolerance) -> float:
    costs = []
    for column, target in wanted.items():
        if column not in row:
            return math.inf
        similarity = measure_cell(row[column], target, column, measures, tolerance)
        costs.append(-math.log(similarity) if similarity > 0 else math.inf)
    return sum(costs) / len(costs) if costs else 0.0


def measure_cell(cell: Json, target: Json, column: str, measures: Measures, tolerance: Tolerance) -> float:
    """Return the similarity of a cell by its column's measure and tolerance."""
    options = tolerance.get(column, {})
    return MEASURES[measures.get(column, "exact")](cell, target, {**options, COLUMN: options.get(column, 0.0)})


def least_mean(costs: list[list[float]]) -> float:
    """Return the mean cost of the best assignment of all columns to rows."""
    if len(costs) == 1 or len(costs[0]) == 1:
        return min(row[0] for row in costs)
    check_installed()
    from scipy.optimize import linear_sum_assignment

    try:
        chosen = zip(*linear_sum_assignment(costs), strict=True)
    except ValueError:  # no assignment without an impossible pair
        return math.inf
    return math.fsum(costs[row][column] for row, column in chosen) / len(costs[0])


def find_added(table: Table, before: Table) -> Table | None:
    """Return the rows that were added to a table, whatever their order; None where one of those before is gone."""
    return None if subtract(before, table) else subtract(table, before)


def find_changed(table: Table, before: Table) -> Table | None:
    """Return the rows that differ from before; None where the number of rows changed."""
    return subtract(table, before) if len(table) == len(before) else None


def is_same(table: Table, before: Table) -> bool:
    """Return whether nothing in a table has changed but the order of its rows."""
    return table is before or Counter(map(row_key, table)) == Counter(map(row_key, before))


def subtract(table: Table, other: Table) -> list[JsonObject]:
    """Return the rows of a table that another does not have, as often as it has them."""
    left = Counter(map(row_key, other))
    rows = []
    for row in table:
        left[row_key(row)] -= 1
        if left[row_key(row)] < 0:
            rows.append(row)
    return rows


def row_key(row: Any) -> bytes:
    """Return what rows of the same values have in common."""
    return pack(dict(sorted(row.items())))
