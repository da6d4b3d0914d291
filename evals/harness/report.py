"""The result of a run and its report as Markdown, with provenance below every table, and the same as JSON."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console
from rich.markdown import Markdown

from gecko_graph.display.words import counted
from gecko_graph.models.usage import total
from gecko_graph.state import ROLES, Usage

from .figures import Record, Table, Tools, format_cell, rungs_of
from .options import ROOT
from .suite import REFUSALS, Expectation, Suite, add_all

REASONS_SHOWN = 8
LINE_CHARS = 300


Head: TypeAlias = dict[str, Any]
"""`suite`, `options` (which records depend on), `planner`, `models`, `command`, `commit`, `date`."""


def provenance() -> dict[str, str]:
    """Return `commit`, a short hash with `+changes` if tracked files differ, and `date` in UTC, to the second."""
    return {"commit": _commit(), "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%SZ")}


@cache
def _commit() -> str:
    head = _git("rev-parse", "--short=10", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", "gecko_graph", "prompts", "evals", "examples")
    return (f"{head}+changes" if changed else head) or "unknown"


def _git(*words: str) -> str:
    try:
        ran = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run: the suite's tables, expectations and notes, with every run's; `told` is a line per record."""

    suite: str
    command: str
    head: Head
    records: Sequence[Record]
    told: Sequence[str]
    of: int
    figures: Sequence[Table]
    expectations: Sequence[Expectation]
    notes: Sequence[str]

    @classmethod
    def of_run(cls, suite: Suite, records: Sequence[Record], *, of: int, head: Head, command: str) -> Result:
        made = suite.summarise(records)
        usage = add_all(record.values["usage"] for record in records if record.values.get("usage"))
        return cls(
            suite=suite.name,
            command=command,
            head=head,
            records=records,
            told=[suite.tell(record) if record.done else record.reason for record in records],
            of=of,
            figures=[*made.figures, *([cost_table(usage)] if usage else [])],
            expectations=[*made.expectations, *_of_every_run(suite, records)],
            notes=[*made.notes, *failures(records), *refusals(records)],
        )

    @property
    def exit_code(self) -> int:
        """0 if all expectations are met, else 1."""
        return 0 if all(each.holds for each in self.expectations) else 1

    def carried(self, tools: Tools) -> str:
        """Return the provenance of a table: n, planner, models, date, commit, kind of tools, answers by rung."""
        head = self.head
        kept = [record for record in self.records if tools == "none" or record.tools in {tools, "none"}]
        n = f"n = {len(kept):,}" + (f" of {self.of:,} cases" if self.of != len(kept) else " cases")
        parts = [
            n + (f", seed {head['options']['seed']}" if len(kept) < self.of else ""),
            f"planner {head['planner']}",
            f"models: {format_models(head['models'])}",
            head["date"][:10],
            f"commit {head['commit']}",
            "" if tools == "none" else f"{tools} tools",
            format_rungs(rungs_of(kept)),
        ]
        return " · ".join(filter(None, parts))

    def summary(self) -> Iterator[str]:
        """Yield the summary as lines of Markdown: command, tables, expectations, notes."""
        yield f"`{self.command}`"
        for table in self.figures:
            yield f"\n**{one_line(table.title)}**\n"
            yield f"| {' | '.join(map(one_line, table.columns))} |"
            yield "|---" * len(table.columns) + "|"
            yield from (f"| {' | '.join(one_line(format_cell(each)) for each in row)} |" for row in table.rows)
            yield "\n" + " ".join(filter(None, [table.note, self.carried(table.tools)]))
        if self.expectations or self.notes:
            yield ""
        yield from (f"- {'holds' if each.holds else 'DOES NOT HOLD'}: {each.text}" for each in self.expectations)
        yield from (f"- {note}" for note in self.notes)

    def cases(self) -> Iterator[str]:
        """Yield all cases as lines of Markdown, unfinished ones first."""
        yield "\n| case | group | status | seconds | |\n|---|---|---|---|---|"
        for record, told in sorted(zip(self.records, self.told, strict=True), key=lambda each: each[0].done):
            cells = (record.id, record.group, record.status, f"{record.seconds:.3g}", told[:LINE_CHARS])
            yield f"| {' | '.join(map(one_line, cells))} |"


def write_report(result: Result, folder: Path) -> None:
    told = "\n".join([*result.summary(), *result.cases(), ""])
    folder.joinpath("report.md").write_text(told, encoding="utf-8", errors="backslashreplace")


def publish(result: Result, page: Path) -> None:
    """Write the summary into a Markdown page, replacing the last summary of the same command.

    The rest of the page is written by hand and kept; a page without this command gets the summary at its end.
    """
    begin, end = f"<!-- {result.command.replace('--', '- -')} -->", "<!-- end -->"
    short = replace(result, notes=result.notes[:REASONS_SHOWN])
    made = "\n".join([begin, *short.summary(), end, ""])
    page.parent.mkdir(parents=True, exist_ok=True)
    text = page.read_text(encoding="utf-8") if page.exists() else f"# {result.suite}\n"
    before, found, after = text.partition(f"{begin}\n")
    head = before if found else text.rstrip() + "\n\n"
    told = head + made + after.partition(f"{end}\n")[2]
    page.write_text(told, encoding="utf-8", errors="backslashreplace")


def show(result: Result, console: Console, *, where: Path) -> None:
    """Print the summary: drawn on a terminal, as plain Markdown in a pipe."""
    text = "\n".join([*result.summary(), f"\nreport: {where}"])
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        console.out(text, highlight=False)


def one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def format_models(names: Mapping[str, str]) -> str:
    """Format the models by role, without the planner's; a single name if it has all roles."""
    roles = {role: name for role, name in names.items() if role != "planner"}
    if len(set(roles.values())) == 1 and len(roles) == len(ROLES) - 1:
        return f"{next(iter(roles.values()))} in all roles"
    return ", ".join(f"{role} {name}" for role, name in roles.items()) or "none"


def format_rungs(rungs: Mapping[str, int]) -> str:
    """Format the shares of the answers by rung; empty without answers."""
    whole = sum(rungs.values())
    if not whole:
        return ""
    shares = ", ".join(f"{rung} {100 * count / whole:.3g} %" for rung, count in rungs.items())
    return f"{whole:,} answers: {shares}"


def cost_table(usage: Usage) -> Table:
    table = Table("Model calls", ["role", "calls", "input tokens", "output tokens", "cost"])
    for role, each in [*usage.items(), ("all", total(usage))]:
        cost = "unknown price" if each["cost"] is None else f"{each['cost']:.4f} $"
        table.add(role, each["calls"], each["input_tokens"], each["output_tokens"], cost)
    return table


def failures(records: Iterable[Record]) -> Iterator[str]:
    """Yield a line on the failed or unreached cases, by reason."""
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


def refusals(records: Iterable[Record]) -> Iterator[str]:
    """Yield why an endpoint refused questions of finished cases, which affects their results."""
    reasons = Counter(why for record in records for why in record.values.get(REFUSALS, ()))
    for reason, count in reasons.most_common(REASONS_SHOWN):
        yield f"in {counted(count, 'case')} the model's endpoint refused a question: {reason}"


def _of_every_run(suite: Suite, records: Sequence[Record]) -> Iterator[Expectation]:
    allowed = int(suite.failures * len(records))
    if lost := sum(not record.done for record in records):
        text = f"{lost} of {len(records)} cases failed or were not reached, allowed {allowed}"
        yield Expectation(text, lost <= allowed)
    elif not records:
        yield Expectation("there is a case", holds=False)
