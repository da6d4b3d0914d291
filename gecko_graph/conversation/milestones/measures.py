"""How alike two cells are, from 0 to 1 (ToolSandbox, appendix A.7). Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeAlias

from ...errors import GeckoError
from ...state import Json, JsonObject
from ...values.difference import same_value
from ...values.finding import Found
from ...values.spellings import atoms_of, forms_of

Measure: TypeAlias = Callable[[Json, Json, Mapping[str, float]], float]
"""From a cell, its target and tolerances by name, the similarity."""

ALIKE = 0.6
"""ROUGE-L from which two texts may say the same."""
COLUMN = ""
"""The name of the column's own tolerance."""

INSTALL = "pip install 'gecko-graph[milestones]'"


def check_installed() -> None:
    """Raise GeckoError where the extra `milestones` is not installed."""
    if find_spec("numpy") is None or find_spec("scipy") is None:
        raise GeckoError(f"to score milestones, scipy is needed: {INSTALL}")


def exact(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return 1.0 for equal values."""
    return float(same_value(cell, target))


def contains(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return 1.0 where a text contains the target, or a list has it as an item."""
    if isinstance(cell, list):
        return float(any(same_value(item, target) for item in cell))
    return float(isinstance(cell, str) and isinstance(target, str) and target in cell)


def close(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return 1.0 where two numbers differ by no more than `tolerance[COLUMN]` (0 without one)."""
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
    """Return 1.0 for much the same text with all names and figures of the target, else as `rouge_l`."""
    if not isinstance(cell, str) or not isinstance(target, str):
        return exact(cell, target, tolerance)
    similarity = rouge_l(cell, target, tolerance)
    names = [word for word in target.split()[1:] if not word.islower()]
    figures = [atom.wholes for atom in atoms_of(target) if atom.is_specific]
    forms = {*forms_of(cell)}
    kept = all(not forms.isdisjoint(each) for each in figures) and mentions(cell, names, {}) == 1.0
    return 1.0 if similarity >= ALIKE and kept else similarity


def mentions(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return the share of the target's values that stand in a text, or anywhere in a value, however they are written.

    `1,240.50` is 1240.5, `May 15, 2024` is `2024-05-15`, and a number may be rounded to a whole one or to three places.
    """
    wanted = target if isinstance(target, list) else [target]
    held = Found([cell], keys=False)
    return sum(held.holds(value, "loose") for value in wanted) / len(wanted) if wanted else 1.0


def call(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return 1.0 where one of the calls of a message is one of the target's: the same name, every argument equal.

    A call is `{"name", "args"}`. Arguments that the target does not name may have any value; numbers may be off by the
    tolerance of their argument.
    """
    wanted = target if isinstance(target, list) else [target]
    made = cell if isinstance(cell, list) else []
    return float(any(_is_call(one, other, tolerance) for one in made for other in wanted))


def _is_call(made: Any, wanted: Any, tolerance: Mapping[str, float]) -> bool:
    if made["name"] != wanted["name"]:
        return False
    args: JsonObject = made["args"]
    for name, value in wanted["args"].items():
        if name not in args:
            return False
        same = is_close(args[name], value, tolerance[name]) if name in tolerance else args[name] == value
        if not same:
            return False
    return True


def is_close(value: Json, target: Json, tolerance: float) -> bool:
    """Return whether two numbers differ by no more than the tolerance; other values must be equal."""
    if isinstance(value, int | float) and isinstance(target, int | float):
        return abs(value - target) <= tolerance
    return same_value(value, target)


MEASURES: Mapping[str, Measure] = {
    "exact": exact,
    "close": close,
    "contains": contains,
    "rouge_l": rouge_l,
    "call": call,
    "paraphrase": paraphrase,
    "mentions": mentions,
    "any": lambda cell, target, tolerance: 1.0,
}
"""The measures by their names in a scenario."""
