"""Scored trajectories of ToolSandbox as milestones and snapshots."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from gecko_graph.conversation.milestones import Goal, Snapshot
from gecko_graph.conversation.milestones.constraints import START, Constraint, Fill, Kind, Milestone
from gecko_graph.conversation.milestones.tables import MESSAGE
from gecko_graph.state import JsonObject

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
    """Return the snapshots of a row, from the first message of the user on."""
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
    """All versions of a table; the one of a message is the last that was written before or with it."""

    def __init__(self, rows: Sequence[JsonObject]) -> None:
        self._versions: dict[int, list[JsonObject]] = {}
        for row in rows:
            version = self._versions.setdefault(row[_INDEX], [])
            plain = {key: value for key, value in row.items() if key != _INDEX}
            if any(value is not None for value in plain.values()):  # each version begins with an empty row
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
