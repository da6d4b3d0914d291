"""How alike two cells are, from 0 to 1 (ToolSandbox, appendix A.7). Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

from ..errors import GeckoError
from ..state import Json, JsonObject

Measure: TypeAlias = Callable[[Json, Json, Mapping[str, float]], float]
"""From a cell, its target and tolerances by name, the similarity."""

INSTALL = "pip install 'gecko-graph[milestones]'"


def exact(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return 1.0 for equal values."""
    return float(is_equal(cell, target))


def any_value(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return 1.0."""
    return 1.0


def contains(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return 1.0 where a text contains the target, or a list has it as an item."""
    if isinstance(cell, list):
        return float(any(is_equal(item, target) for item in cell))
    return float(isinstance(cell, str) and isinstance(target, str) and target in cell)


def close(cell: Json, target: Json, tolerance: Mapping[str, float], *, by: str = "") -> float:
    """Return 1.0 where two numbers differ by no more than `tolerance[by]` (0 without one)."""
    return float(is_close(cell, target, tolerance.get(by, 0.0)))


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


def call(cell: Json, target: Json, tolerance: Mapping[str, float]) -> float:
    """Return 1.0 where one of the calls of a message is one of the target's: the same name, every argument equal.

    Arguments that the target does not name may have any value. `tolerance` holds for arguments of these names.

    Args:
        cell: The calls of a message, each `{"name", "args"}`.
        target: One such call, or several of which one must match.
        tolerance: How far a number may be off, by argument.
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
    return is_equal(value, target)


def is_equal(value: Json, target: Json) -> bool:
    """Return whether two JSON values are equal; true is not 1, and 1.0 is 1."""
    if isinstance(value, bool) != isinstance(target, bool):
        return False
    return bool(value == target)


MEASURES: Mapping[str, Measure] = {
    "exact": exact,
    "close": close,
    "contains": contains,
    "rouge_l": rouge_l,
    "call": call,
    "any": any_value,
}
"""The measures by their names in a scenario."""
