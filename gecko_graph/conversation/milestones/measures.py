"""Similarity of cells and tables, from 0 to 1 (ToolSandbox, appendix A.7). Pure functions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeAlias, cast

from ...errors import GeckoError, install
from ...state import Json, JsonObject
from ...values.digest import digest, pack
from ...values.finding import Leaves, atoms_of, forms_of
from ...values.patch import same_value
from .agreement import judge_agreement
from .claims import ClaimVerdict, judge_claim
from .tables import Table

Measure: TypeAlias = Callable[[Json, Json, Mapping[str, float]], float]
"""Cell, target and tolerances by name to the similarity."""

ALIKE = 0.6
"""ROUGE-L from which two texts may have the same meaning."""
COLUMN = ""
"""The name of the column's own tolerance."""

INSTALL = install("milestones")


def check_installed() -> None:
    """Raise GeckoError if the extra `milestones` is not installed."""
    if find_spec("numpy") is None or find_spec("scipy") is None:
        raise GeckoError(f"to score milestones, scipy is needed: {INSTALL}")


def exact(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return 1.0 for equal values."""
    return float(same_value(cell, target))


def contains(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return 1.0 if a text contains the target, or a list has it as an item."""
    if isinstance(cell, list):
        return float(any(same_value(item, target) for item in cell))
    return float(isinstance(cell, str) and isinstance(target, str) and target in cell)


def close(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return 1.0 if two numbers differ by at most `tolerance[COLUMN]` (default 0)."""
    return float(is_close(cell, target, tolerance.get(COLUMN, 0.0)))


def rouge_l(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return the F measure of ROUGE-L, with stemmed words."""
    if not isinstance(cell, str) or not isinstance(target, str):
        return 0.0
    return float(_rouge().score(target, cell)["rougeL"].fmeasure)


@cache
def _rouge() -> Any:
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError:
        raise GeckoError(f"the measure rouge_l needs rouge-score: {INSTALL}") from None
    return RougeScorer(["rougeL"], use_stemmer=True)


def paraphrase(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return 1.0 for a similar text with all names and figures of the target, else as `rouge_l`."""
    if not isinstance(cell, str) or not isinstance(target, str):
        return exact(cell, target, tolerance)
    similarity = rouge_l(cell, target, tolerance)
    names = [word for word in target.split()[1:] if not word.islower()]
    figures = [atom.wholes for atom in atoms_of(target) if atom.is_specific]
    forms = {*forms_of(cell)}
    kept = all(not forms.isdisjoint(each) for each in figures) and mentions(cell, names, {}) == 1.0
    return 1.0 if similarity >= ALIKE and kept else similarity


def mentions(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return the share of the target's values that occur in a text, or anywhere in a value, in any notation.

    `1,240.50` is 1240.5, `May 15, 2024` is `2024-05-15`, and a number may be rounded to an integer or to three places.
    """
    wanted = target if isinstance(target, list) else [target]
    held = Leaves([cell], keys=False)
    return sum(held.holds(value, "loose") for value in wanted) / len(wanted) if wanted else 1.0


CLAIM_SCORES: Mapping[str, float] = {"holds": 1.0, "unsure": 1e-3, "broken": 0.0}
"""An unsure claim keeps its milestone below any threshold, but is matched before a broken one."""


def claims(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return 1.0 if an answer makes all claims, almost 0 if one is unsure, 0.0 if one is broken.

    The cell is a message's `{"answer", "asked", "decided"}`, a claim `{"says"}`, `{"denies"}` or `{"asks"}`.
    """
    wanted = target if isinstance(target, list) else [target]
    if not isinstance(cell, dict):
        return 0.0
    return min((CLAIM_SCORES[judge_answer(each, cell).verdict] for each in wanted), default=1.0)


def judge_answer(claim: JsonObject, cell: JsonObject) -> ClaimVerdict:
    kind: Any
    ((kind, text),) = claim.items()
    answer, asked = cell["answer"], tuple(cell["asked"])
    if decided := cell["decided"].get(claim_key(claim, cell)):
        return ClaimVerdict(*decided)
    judge: Any = judge_agreement if kind in ("agrees", "answers") else judge_claim
    return cast("ClaimVerdict", judge(kind, text, answer, asked))


Verdicts: TypeAlias = Mapping[str, Sequence[str]]
"""`claim_key` to the verdict of the role `claim_judge`, the quoted sentence, and the reason."""
NONE: Verdicts = {}


def claim_key(claim: JsonObject, cell: JsonObject) -> str:
    return digest([claim, cell["answer"], cell["asked"]])


def call(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return 1.0 if a call of a message equals one of the target's: the same name and arguments.

    A call is `{"name", "args"}`. Arguments that the target does not name may have any value; numbers may differ by the
    tolerance of their argument.
    """
    wanted = target if isinstance(target, list) else [target]
    made = cell if isinstance(cell, list) else []
    return float(any(_is_call(one, other, tolerance) for one in made for other in wanted))


def _is_call(made: Any, wanted: Any, tolerance: Mapping[str, float]) -> bool:
    args: JsonObject = made["args"]
    return made["name"] == wanted["name"] and all(
        name in args and is_close(args[name], value, tolerance.get(name, 0.0)) for name, value in wanted["args"].items()
    )


def is_close(value: Json, target: Json, tolerance: float) -> bool:
    """Return whether two numbers differ by at most the tolerance; other values must be equal."""
    if isinstance(value, int | float) and isinstance(target, int | float):
        return abs(value - target) <= tolerance
    return same_value(value, target)


MEASURES: Mapping[str, Measure] = {
    "exact": exact,
    "close": close,
    "contains": contains,
    "rouge_l": rouge_l,
    "call": call,
    "claims": claims,
    "paraphrase": paraphrase,
    "mentions": mentions,
    "any": lambda cell, target, tolerance: 1.0,
}
"""The measures by their names in a scenario."""

# tables ---
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
    """Return the rows added to a table, in any order; None if an earlier row is missing."""
    return None if subtract(before, table) else subtract(table, before)


def is_same(table: Table, before: Table) -> bool:
    """Return whether two tables have the same rows in any order."""
    return table is before or Counter(map(row_key, table)) == Counter(map(row_key, before))


def is_same_change(one: tuple[Table, Table], other: tuple[Table, Table]) -> bool:
    """Return whether the same rows were added and removed between each pair of tables."""
    (before, after), (start, end) = ([Counter(map(row_key, table)) for table in pair] for pair in (one, other))
    return after + start == end + before


def subtract(table: Table, other: Table) -> list[JsonObject]:
    """Return the rows of a table without those of another (multiset difference)."""
    left = Counter(map(row_key, other))
    rows = []
    for row in table:
        left[row_key(row)] -= 1
        if left[row_key(row)] < 0:
            rows.append(row)
    return rows


def row_key(row: Any) -> bytes:
    """Return the common key of rows with equal values."""
    return pack(dict(sorted(row.items())))
