"""What conversations come to: similarity, turns, pass^k and cost (ToolSandbox, tables 5 and 11)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import comb, fsum
from typing import NamedTuple

from ...state import JsonObject
from .result import find_fault, is_passed

ALL = "all"


class Group(NamedTuple):
    """The mean of some conversations; None where none of them counts. `idle` is the score of doing nothing."""

    name: str
    held: int
    scored: int
    similarity: float | None
    idle: float | None
    passed: int
    turns: float | None
    calls: float | None


class Report(NamedTuple):
    """All tables of a run."""

    categories: list[Group]
    augmentations: list[Group]
    pass_k: list[float]
    cost: float | None
    tokens: int
    leaks: int
    at_fault: int
    races: int
    failed: int


def build_report(records: Sequence[JsonObject]) -> Report:
    """Return the tables of finished conversations."""
    usages = [usage for record in records for usage in record["score"]["usage"].values()]
    costs = [usage["cost"] for usage in usages if usage.get("cost") is not None]
    return Report(
        categories=_group(records, lambda record: record["categories"] or ["(none)"]),
        augmentations=_group(records, lambda record: [record["augmentation"] or "as written"])[:-1],
        pass_k=find_pass_k(records),
        cost=fsum(costs) if costs else None,
        tokens=sum(usage["input_tokens"] + usage["output_tokens"] for usage in usages),
        leaks=sum(len(record["score"]["leaks"]) for record in records),
        at_fault=sum(bool(find_fault(record)) for record in records),
        races=sum(record["score"]["races"] for record in records),
        failed=sum(record["score"]["end"] in ("failed", "agent_failed", "user_failed") for record in records),
    )


def _group(records: Sequence[JsonObject], names: Callable[[JsonObject], Iterable[str]]) -> list[Group]:
    groups: dict[str, list[JsonObject]] = {}
    for record in records:
        for name in names(record):
            groups.setdefault(str(name), []).append(record)
    return [_mean(name, some) for name, some in (*sorted(groups.items()), (ALL, list(records)))]


def _mean(name: str, records: Sequence[JsonObject]) -> Group:
    scores = [record["score"] for record in records]
    similarities = [score["similarity"] for score in scores if score["similarity"] is not None]
    return Group(
        name,
        len(records),
        len(similarities),
        _average(similarities),
        _average([record["idle"] for record in records if record["idle"] is not None]),
        sum(map(is_passed, records)),
        _average([score["turns"] for score in scores]),
        _average([score["calls"] for score in scores]),
    )


def _average(values: Sequence[float]) -> float | None:
    return fsum(values) / len(values) if values else None


def find_pass_k(records: Sequence[JsonObject]) -> list[float]:
    """Return pass^1 to pass^n: the chance that k trials of a case all succeed (tau-bench, arXiv 2406.12045).

    n is the least number of trials that a case has; without bias over the choices of k trials.
    """
    trials: dict[tuple[str, str], list[bool]] = {}
    for record in records:
        trials.setdefault((record["file"], record["augmentation"]), []).append(is_passed(record))
    least = min(map(len, trials.values()), default=0)
    return [
        fsum(comb(sum(each), k) / comb(len(each), k) for each in trials.values()) / len(trials)
        for k in range(1, least + 1)
    ]


def as_json(report: Report, records: Sequence[JsonObject]) -> Mapping[str, object]:
    """Return report and records as plain JSON."""
    tables = {name: [one._asdict() for one in getattr(report, name)] for name in ("categories", "augmentations")}
    return {**report._asdict(), **tables, "conversations": list(records)}
