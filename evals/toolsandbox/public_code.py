"""Milestones scored as by ToolSandbox's public code, including its quirks, to compare with published scores."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cache, partial
from itertools import pairwise
from struct import pack, unpack
from typing import Any

from gecko_graph.conversation.milestones import Goal, Score, Snapshot
from gecko_graph.conversation.milestones.constraints import START, Constraint, Fill, Kind, Milestone, Reached
from gecko_graph.conversation.milestones.goal import build_reached, build_score, mean
from gecko_graph.conversation.milestones.measures import least_mean, measure_cell, row_key
from gecko_graph.conversation.milestones.tables import MESSAGE, Table
from gecko_graph.state import JsonObject


def score_publicly(goal: Goal, trajectory: Sequence[Snapshot]) -> Score:
    """Score a conversation as the public code does.

    Milestones may share a snapshot, those without edges are not matched, only explicit guardrails are checked, and any
    similarity counts for a minefield.
    """
    reached, stepped = (match_publicly(_as_public(some), trajectory) for some in (goal.milestones, goal.minefields))
    plus, minus = (mean([each["similarity"] for each in some]) for some in (reached, stepped))
    return build_score(reached, stepped, 1.0 if plus is None else plus, minus or 0.0)


def _as_public(milestones: Sequence[Milestone]) -> list[Milestone]:
    return [replace(each, constraints=tuple(map(PublicConstraint.of, each.constraints))) for each in milestones]


class PublicConstraint(Constraint):
    """A constraint that compares tables like polars' joins, with their nulls and Float32."""

    @classmethod
    def of(cls, constraint: Constraint) -> PublicConstraint:
        return cls(**{each.name: getattr(constraint, each.name) for each in fields(constraint)})

    def compare(self, now: Snapshot, then: Snapshot | None) -> float:
        """Return the similarity of a snapshot, from 0 to 1; a guardrail also compares the order of rows."""
        table, before = now.get(self.table, ()), (then or {}).get(self.table, ())
        if self.kind == "guardrail":
            return float(then is None or list(table) == list(before))
        return max((self._compare_rows(table, before, rows) for rows in self.wanted(then)), default=0.0)

    def _compare_rows(self, table: Table, before: Table, rows: Table) -> float:
        if self.kind != "snapshot":
            table, before, rows = _fill_nulls(table, before, rows)
        found: Table | None = table
        match self.kind:
            case "addition":
                found = _find_added(table, before)
            case "removal":
                found = _find_added(before, table)
            case "update":
                found = _leave_out(table, before) if len(table) == len(before) else None
        if not found or len(found) != len(rows):
            return 0.0
        costs = [[self._cost(row, wanted) for wanted in rows] for row in found]
        if any(math.isnan(cost) for row in costs for cost in row):  # one such pair makes the whole result 0
            return 0.0
        similarity = math.exp(-least_mean(costs))
        return _as_single(similarity) if len(rows[0]) == 1 else similarity

    def _cost(self, row: JsonObject, wanted: JsonObject) -> float:
        costs = []
        for column, target in wanted.items():
            if column not in row:
                return math.inf
            cell, measure = row[column], self.measures.get(column, "exact")
            if cell is None and measure in ("exact", "contains") and target is not None:
                continue  # polars compares with null as null, which the mean ignores
            costs.append(_as_cost(measure_cell(cell, target, column, self.measures, self.tolerance)))
        return sum(costs) / len(costs) if costs else math.nan


_LN_E = 1 - 2**-24
"""ln(e) in Float32, by which polars divides."""


def _as_cost(similarity: float) -> float:
    """Return -ln(similarity) in Float32, whose last digits may decide between two mappings."""
    return _as_single(_as_single(-math.log(_as_single(similarity))) / _LN_E) if similarity > 0 else math.inf


def _as_single(number: float) -> float:
    rounded: float = unpack("f", pack("f", number))[0]
    return rounded


def _fill_nulls(*tables: Table) -> list[Table]:
    """Return tables with each null replaced by the zero of its column's type, as the public code joins them."""
    cells = [(column, value) for table in tables for row in table for column, value in row.items()]
    zeros: JsonObject = {column: type(value)() for column, value in cells if value is not None}
    return [
        [{column: zeros.get(column, 0) if value is None else value for column, value in row.items()} for row in table]
        for table in tables
    ]


def _find_added(table: Table, before: Table) -> Table | None:
    """Return the added rows; rows that occurred twice never match, and a duplicate of an existing row is not seen."""
    now, old = Counter(map(row_key, table)), Counter(map(row_key, before))
    joined = sum(count * old[key] for key, count in now.items())
    return _leave_out(table, before) if joined == len(before) else None


def _leave_out(table: Table, before: Table) -> Table:
    old = set(map(row_key, before))
    return [row for row in table if row_key(row) not in old]


def match_publicly(milestones: Sequence[Milestone], trajectory: Sequence[Snapshot]) -> list[Reached]:
    """Return the milestones with their snapshots.

    A depth-first search: milestones are placed one after the other, in an order that the edges allow, each at the
    snapshot of the last one or later. Among equal similarities the first milestone and the earliest snapshot are tried
    first, and only a higher sum replaces a result. If there are several milestones, those without edges are left out.
    """
    named = {name for each in milestones for name in each.after}
    linked = [each for each in milestones if each.after or each.id in named or len(milestones) == 1]
    placed: Mapping[str, tuple[int | None, float]] = _Search(linked, trajectory).run()
    found = ((each, *placed.get(each.id, (None, 0.0))) for each in milestones)
    return [build_reached(each, similarity, place) for each, place, similarity in found]


_NOISE = 1e-9
"""Sums of the same similarities in another order differ by less than this."""


class _Search:
    def __init__(self, milestones: Sequence[Milestone], trajectory: Sequence[Snapshot]) -> None:
        self._all, self._trajectory = milestones, trajectory
        self._best, self._found = -1.0, dict[str, tuple[int, float]]()
        self._compare = cache(self._compare_at)
        self._most = cache(self._most_from)

    def run(self) -> Mapping[str, tuple[int, float]]:
        """Return snapshot and similarity by milestone."""
        self._place({}, 0, 0.0)
        return self._found

    def _place(self, placed: dict[str, tuple[int, float]], first: int, total: float) -> None:
        left = [index for index, each in enumerate(self._all) if each.id not in placed]
        if not left:
            if total > self._best:
                self._best, self._found = total, dict(placed)
            return
        bound = total + sum(self._most(index, first) for index in left)
        if bound < self._best - _NOISE or (bound == self._best and bound.is_integer()):
            return
        for similarity, index, place in self._candidates(left, placed, first):
            if total + similarity + len(left) - 1 <= self._best:
                return
            placed[self._all[index].id] = place, similarity
            self._place(placed, place, total + similarity)
            del placed[self._all[index].id]

    def _candidates(
        self, left: Sequence[int], placed: Mapping[str, tuple[int, float]], first: int
    ) -> list[tuple[float, int, int]]:
        found = []
        for index in left:
            each = self._all[index]
            if all(before in placed for before in each.after):
                places = tuple((name, placed[name][0]) for name in sorted(each.references) if name in placed)
                found += [
                    (self._compare(index, place, places), index, place) for place in range(first, len(self._trajectory))
                ]
        return sorted(found, key=lambda one: (-one[0], one[1], one[2]))

    def _compare_at(self, index: int, place: int, places: tuple[tuple[str, int], ...]) -> float:
        return self._all[index].compare(self._trajectory, place, dict(places))

    def _most_from(self, index: int, first: int) -> float:
        """Return the most that a milestone can still reach, whatever snapshots its references are matched to."""
        if self._all[index].references:
            return 1.0
        return max(self._compare(index, place, ()) for place in range(first, len(self._trajectory)))


# scored trajectories of ToolSandbox as milestones and snapshots


_KINDS: Mapping[str, Kind] = {
    "snapshot_similarity": "snapshot",
    "tool_trace_dependant_similarity": "snapshot",
    "addition_similarity": "addition",
    "removal_similarity": "removal",
    "update_similarity": "update",
    "guardrail_similarity": "guardrail",
}
_MEASURES = {
    "column_exact_match_similarity": "exact",
    "column_close_similarity": "close",
    "column_one_similarity": "any",
    "column_contains_similarity": "contains",
    "column_rouge_l_similarity": "rouge_l",
    "column_tool_trace_exact_match_similarity": "call",
}
_INDEX = "sandbox_message_index"
_MESSAGES = "SANDBOX"


def read_trajectory(row: JsonObject) -> list[Snapshot]:
    """Return the snapshots of a row, starting with the first message of the user."""
    first, last = row["first_user_message_index"], row["max_message_index"]
    tables = {name: _Table(rows) for name, rows in row["snapshots"].items() if name != _MESSAGES}
    messages = _Table(row["snapshots"][_MESSAGES])
    return [
        {
            MESSAGE: [_read_message(each, row.get("extracted", {}), at) for each in messages.exactly(at)],
            **{name: table.until(at) for name, table in tables.items()},
        }
        for at in range(first, last + 1)
    ]


class _Table:
    """All versions of a table; a message has the last version written before or with it."""

    def __init__(self, rows: Sequence[JsonObject]) -> None:
        self._versions: dict[int, list[JsonObject]] = {}
        for row in rows:
            version = self._versions.setdefault(row[_INDEX], [])
            plain = {key: value for key, value in row.items() if key != _INDEX}
            if any(value is not None for value in plain.values()):  # each version starts with an empty row
                version.append(plain)

    def exactly(self, at: int) -> list[JsonObject]:
        return self._versions.get(at, [])

    def until(self, at: int) -> list[JsonObject]:
        return self._versions.get(max((version for version in self._versions if version <= at), default=0), [])


def _read_message(row: JsonObject, extracted: Mapping[str, Any], at: int) -> JsonObject:
    traces = [_read_call(json.loads(trace)) for trace in row["tool_trace"] or ()]
    values = {name: found.get(str(at), []) for name, found in extracted.items()}
    return {**row, "calls": traces, "extracted": values}


def _read_call(trace: JsonObject) -> JsonObject:
    return {"name": trace["tool_name"], "args": trace["arguments"]}


def read_goal(row: JsonObject) -> Goal:
    """Return the milestones and minefields of a row."""
    return Goal(_read_milestones(row["milestone_dag"]), _read_milestones(row["minefield_dag"]))


def _read_milestones(graph: JsonObject) -> tuple[Milestone, ...]:
    milestones, edges = graph["milestones"], graph.get("edges")
    if edges is None:
        edges = list(pairwise(range(len(milestones))))
    return tuple(
        Milestone(
            id=str(number),
            constraints=tuple(map(_read_constraint, constraints)),
            after=tuple(str(before) for before, after in edges if after == number),
        )
        for number, constraints in enumerate(milestones)
    )


def _read_constraint(written: JsonObject) -> Constraint:
    reference, fill = written["reference_milestone"], written.get("kwargs")
    measures, tolerance = _read_measures(written)
    rows = tuple(map(_read_row, written["target"] or ()))
    names = {name: "calls" if name == "tool_trace" else name for name in measures}
    return Constraint(
        table=MESSAGE if written["database"] == _MESSAGES else written["database"],
        kind=_KINDS[written["similarity"]],
        rows=rows,
        measures={names[name]: measure for name, measure in measures.items()},
        tolerance={names[name]: options for name, options in tolerance.items()},
        reference=None if reference is None else START if reference == -1 else str(reference),
        fill=Fill(partial(_find_values, fill["extractor"]), _FILLED[fill["fill_to"]]) if fill else None,
    )


_FILLED: Mapping[str, Any] = {"content": "content", "tool_trace": "calls"}


def _read_measures(written: JsonObject) -> tuple[dict[str, str], dict[str, dict[str, float]]]:
    options = written.get("column_kwargs") or {}
    names = {
        column: _MEASURES[each if isinstance(each, str) else each[0]]
        for column, each in written["column_similarity"].items()
    }
    return names, {column: each.get("atol_dict") or {} for column, each in options.items()}


def _read_row(target: JsonObject) -> JsonObject:
    row = {key: value for key, value in target.items() if key != "tool_trace"}
    if "tool_trace" in target:
        traces = json.loads(target["tool_trace"])
        row["calls"] = list(map(_read_call, traces)) if isinstance(traces, list) else _read_call(traces)
    return row


def _find_values(extractor: str, message: JsonObject) -> list[JsonObject]:
    found: list[JsonObject] = message["extracted"].get(extractor, [])
    return found
