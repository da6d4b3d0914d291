"""The result of a run: its figures, what must hold, and the line that every figure carries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from gecko_graph.display.words import counted
from gecko_graph.models.usage import total
from gecko_graph.state import ROLES, JsonObject, Usage

from .figures import Bars, Figure, Lines, Measured, Published, Table, rungs_of
from .journal import Head
from .record import REFUSALS
from .rehearsed import add_all
from .suite import Expectation, Record, Suite, Tools

REASONS_SHOWN = 8

_TOOLS = {"real": "real tools", "simulated": "simulated tools", "none": ""}


@dataclass(frozen=True, slots=True)
class Result:
    """A run that is over.

    Args:
        suite: The suite's name.
        about: What it measures, in one line.
        command: The command that was given last.
        sessions: Heads of the sessions that made the records; more than one after a stop.
        records: In the order of the cases.
        told: One line on each record.
        of: How many cases there were to choose from.
        figures: The suite's, then what the models cost.
        expectations: The suite's, then what every run must hold.
        notes: The suite's, then failures by reason.
    """

    suite: str
    about: str
    command: str
    sessions: Sequence[Head]
    records: Sequence[Record]
    told: Sequence[str]
    of: int
    figures: Sequence[Figure]
    expectations: Sequence[Expectation]
    notes: Sequence[str]

    @classmethod
    def of_run(
        cls, suite: Suite, records: Sequence[Record], *, of: int, sessions: Sequence[Head], command: str
    ) -> Result:
        """Summarise a run.

        Args:
            suite: The suite.
            records: In the order of the cases.
            of: How many cases there were to choose from.
            sessions: Heads of the sessions that made the records.
            command: The command that was given last.
        """
        made = suite.summarise(records)
        usage = add_all(record.values["usage"] for record in records if record.values.get("usage"))
        return cls(
            suite=suite.name,
            about=next(iter((suite.__doc__ or suite.name).strip().splitlines())),
            command=command,
            sessions=sessions,
            records=records,
            told=[suite.tell(record) if record.done else record.reason for record in records],
            of=of,
            figures=[*made.figures, *suite.averages(records), *([cost_table(usage)] if usage else [])],
            expectations=[*made.expectations, *_common(suite, records)],
            notes=[*made.notes, *failures(records), *refusals(records)],
        )

    @property
    def exit_code(self) -> int:
        """0 where everything holds that must, else 1."""
        return 0 if all(each.holds for each in self.expectations) else 1

    def carried(self, tools: Tools) -> str:
        """Return what every figure names: n, planner, models, date, commit, whose tools, and the answers by rung."""
        head = self.sessions[-1]
        kept = [record for record in self.records if tools == "none" or record.tools in {tools, "none"}]
        n = f"n = {len(kept):,}" + (f" of {self.of:,} cases" if self.of != len(kept) else " cases")
        commits = ", ".join(dict.fromkeys(each["commit"] for each in self.sessions))
        parts = [
            n + (f", seed {head['options']['seed']}" if len(kept) < self.of else ""),
            f"planner {head['planner']}",
            f"models: {format_models(head['models'])}",
            head["date"][:10],
            f"commit {commits}",
            _TOOLS[tools],
            format_rungs(rungs_of(kept)),
        ]
        return " · ".join(filter(None, parts))

    def carried_by(self, figure: Figure) -> str:
        """Return where a figure comes from; empty where all that stands in it was published by others."""
        cells = [cell for row in figure.rows for cell in row] if isinstance(figure, Table) else []
        others = any(isinstance(cell, Published) for cell in cells)
        ours = any(isinstance(cell, Measured | int) for cell in cells)
        return "" if others and not ours else self.carried(figure.tools)

    def as_json(self) -> JsonObject:
        """Return the summary as plain JSON: every figure with what it carries."""
        counts = Counter(record.status for record in self.records)
        return {
            "suite": self.suite,
            "command": self.command,
            "sessions": list(self.sessions),
            "cases": {"of": self.of, "n": len(self.records), **counts},
            "holds": self.exit_code == 0,
            "expectations": [asdict(each) for each in self.expectations],
            "figures": [figure_json(each) | {"carries": self.carried_by(each)} for each in self.figures],
            "notes": list(self.notes),
        }


def format_models(names: Mapping[str, str]) -> str:
    """Format the models beside the planner's by role; one name where one has all roles."""
    roles = {role: name for role, name in names.items() if role in ROLES and role != "planner"}
    others = [f"{name} {which}" for name, which in names.items() if name not in ROLES]
    if len(set(roles.values())) == 1 and len(roles) == len(ROLES) - 1:
        return ", ".join([f"{next(iter(roles.values()))} in all roles", *others])
    return ", ".join([*(f"{role} {name}" for role, name in roles.items()), *others]) or "none"


def format_rungs(rungs: Mapping[str, int]) -> str:
    """Format the shares of the answers by rung; empty without answers."""
    whole = sum(rungs.values())
    if not whole:
        return ""
    shares = ", ".join(f"{rung} {100 * count / whole:.3g} %" for rung, count in rungs.items())
    return f"{whole:,} answers: {shares}"


def cost_table(usage: Usage) -> Table:
    """Return a table of what the models cost, by role."""
    table = Table("Model calls", ["role", "calls", "input tokens", "output tokens", "cost"])
    for role, each in [*usage.items(), ("all", total(usage))]:
        cost = "unknown price" if each["cost"] is None else f"{each['cost']:.4f} $"
        table.add(role, each["calls"], each["input_tokens"], each["output_tokens"], cost)
    return table


def failures(records: Sequence[Record]) -> Iterator[str]:
    """Yield a line on the cases that failed or were not reached, by reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if not record.done:
            reasons.setdefault((record.status, record.reason), []).append(record.id)
    most = sorted(reasons.items(), key=lambda each: -len(each[1]))
    for (status, reason), ids in most[:REASONS_SHOWN]:
        word = "not reached (the same command asks again)" if status == "unreached" else status
        yield f"{len(ids)} {word}: {reason} ({', '.join(ids[:3])}{', ...' if len(ids) > 3 else ''})"
    if len(most) > REASONS_SHOWN:
        yield f"{len(most) - REASONS_SHOWN} more reasons of failures are in the report's list of cases"


def refusals(records: Sequence[Record]) -> Iterator[str]:
    """Yield why an endpoint refused questions of cases that are done: part of their results, and easily overlooked."""
    some = [record for record in records if record.values.get(REFUSALS)]
    for reason, count in Counter(why for record in some for why in record.values[REFUSALS]).most_common(REASONS_SHOWN):
        yield f"in {counted(count, 'case')} the model's endpoint refused a question: {reason}"


def _common(suite: Suite, records: Sequence[Record]) -> Iterator[Expectation]:
    counts = Counter(record.status for record in records)
    if counts["failed"] or counts["unreached"]:
        allowed = int(suite.failures * len(records))
        lost = counts["failed"] + counts["unreached"]
        yield Expectation(
            f"{lost} of {len(records)} cases failed or were not reached, allowed {allowed}", lost <= allowed
        )
    elif not records:
        yield Expectation("there is a case", holds=False)


def figure_json(figure: Figure) -> JsonObject:
    """Return a figure as plain JSON."""
    made: JsonObject = {"title": figure.title, "tools": figure.tools, "note": figure.note}
    if isinstance(figure, Table):
        return made | {
            "kind": "table",
            "columns": list(figure.columns),
            "rows": [[_cell(cell) for cell in row] for row in figure.rows],
        }
    if isinstance(figure, Bars):
        series = {name: [_cell(cell) for cell in cells] for name, cells in figure.series.items()}
        return made | {"kind": "bars", "categories": list(figure.categories), "series": series}
    assert isinstance(figure, Lines)
    lines = {name: [[x, _cell(cell)] for x, cell in points] for name, points in figure.series.items()}
    return made | {"kind": "lines", "x": figure.x, "y": figure.y, "series": lines}


def _cell(cell: Any) -> Any:
    if cell is None or isinstance(cell, str | int):
        return cell
    made = asdict(cell)
    if isinstance(cell, Measured):
        made["rungs"] = dict(cell.rungs)
    return {key: None if isinstance(value, float) and not isfinite(value) else value for key, value in made.items()}
