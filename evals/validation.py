"""Recorded calls of real models against the argument rules: what is refused wrongly, what is found (paper, A.8).

Regression: every call labelled CORRECT is accepted, every SYNTACTIC one refused, all airline calls pass. Evidence: the
officially valid rows that are refused, each with its cause, and recall by the official error type. No model is asked.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gecko_graph import Toolkit
from gecko_graph.state import Complaint, JsonObject
from gecko_graph.toolkit.findings import value_at
from gecko_graph.toolkit.schema import complaints, unknown_tool
from gecko_graph.toolkit.spec import ToolSpec

from . import datasets
from .suite import EvalError

NOTHING_TO_VALIDATE = ("DECODE", "NO_CALL")
MAX_FALSE = 75
"""Officially valid rows that break their own schema, as the data's README counts them."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An officially valid row that the rules refuse."""

    task: str
    model: str
    complaint: Complaint
    cause: str


@dataclass(slots=True)
class Report:
    """What was counted, in rows; a row is one answer of one model, and may hold several calls."""

    rows: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    """CORRECT rows that were refused and SYNTACTIC ones that were accepted."""
    officially_valid: int = 0
    false_refusals: list[Refusal] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    errors_refused: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    seconds: float = 0.0
    airline_calls: int = 0
    airline_refused: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """True if the regression holds."""
        return not self.missed and not self.airline_refused and len(self.false_refusals) <= MAX_FALSE


Tools = Mapping[str, ToolSpec]


def tools_of(task: Mapping[str, Any], *, underscored: bool) -> Tools:
    """A task's tools, by the name that the model saw."""
    toolkit = Toolkit.from_tools(task["functions"])
    return {tool.name.replace(".", "_") if underscored else tool.name: tool for tool in toolkit}


def judge_row(row: Mapping[str, Any], tools: Tools) -> list[Complaint]:
    """What the rules have against a row's calls."""
    found: list[Complaint] = []
    for call in row["calls"]:
        tool = tools.get(call["name"])
        if tool is None:
            found.append(unknown_tool({"id": "", "name": call["name"], "args": call["arguments"]}))
        else:
            found += complaints(tool, call["arguments"])
    return found


def measure_bfcl(rows: Iterable[Mapping[str, Any]], tasks: Iterable[Mapping[str, Any]], report: Report) -> None:
    """Count one data set's rows into the report."""
    by_key = {(task["dataset"], task["task_id"]): task for task in tasks}
    cache: dict[tuple[str, str, bool], Tools] = {}
    for row in rows:
        if row["label"] in NOTHING_TO_VALIDATE:
            continue
        key = (row["dataset"], row["task_id"], row["name_style"] == "underscore")
        if key not in cache:
            cache[key] = tools_of(by_key[key[:2]], underscored=key[2])
        started = time.process_time()
        found = judge_row(row, cache[key])
        report.seconds += time.process_time() - started
        report.calls += len(row["calls"])
        _count(row, found, cache[key], report)


def _count(row: Mapping[str, Any], found: list[Complaint], tools: Tools, report: Report) -> None:
    label, error = row["label"], row["official"]["error_type"]
    report.rows[label] += 1
    report.refused[label] += bool(found)
    if (label == "CORRECT" and found) or (label == "SYNTACTIC" and not found):
        report.missed.append(f"{row['task_id']} ({label}, {row['model']}): {found}")
    if row["official"]["valid"]:
        report.officially_valid += 1
        if found:
            cause = cause_of(found[0], row["calls"], tools)
            report.false_refusals.append(Refusal(row["task_id"], row["model"], found[0], cause))
    else:
        report.errors[error] += 1
        report.errors_refused[error] += bool(found)


def cause_of(complaint: Complaint, calls: Iterable[Mapping[str, Any]], tools: Tools) -> str:
    """Why an officially valid call breaks its schema."""
    tool = tools.get(complaint["tool"])
    if tool is None:
        return "the tool is unknown"
    given = [value_at(call["arguments"], complaint["path"]) for call in calls if call["name"] == complaint["tool"]]
    rule = _rule_at(tool.parameters, complaint["path"])
    listed = rule.get("enum")
    if listed is None:
        return f"{complaint['got']} is officially right, and the schema wants {complaint['expected']}"
    lower = {str(value).lower() for value in listed}
    if any(isinstance(value, str) and value.lower() in lower and value not in listed for value in given):
        return "another letter case than the enum's"
    if any(isinstance(value, list) for value in given):
        return "an array, where the enum lists single values"
    return "officially right, and not listed by the enum"


def _rule_at(schema: JsonObject, path: str) -> JsonObject:
    rule: Any = schema
    for name in path.replace("]", "").replace("[", ".").split(".")[1:]:
        rule = rule.get("items", {}) if name.isdecimal() else rule.get("properties", {}).get(name, {})
    return rule if isinstance(rule, dict) else {}


def measure_airline(
    conversations: Iterable[Mapping[str, Any]], tools: Iterable[Mapping[str, Any]], report: Report
) -> None:
    """Count the calls of the airline conversations; all of them were made by a model and ran."""
    toolkit = Toolkit.from_tools(tools)
    for call in _calls_of(conversations):
        report.airline_calls += 1
        tool = toolkit.get(call["name"])
        found = complaints(tool, call["arguments"]) if tool else ["unknown tool"]
        if found:
            report.airline_refused.append(f"{call['name']}({json.dumps(call['arguments'])}): {found}")


def _calls_of(conversations: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for conversation in conversations:
        for message in conversation["messages"]:
            yield from message.get("tool_calls") or ()


def measure(folder: Path = datasets.SHARED) -> Report:
    """Measure everything that lies in a folder of recorded data.

    Raises:
        EvalError: A file is not there.
    """
    report = Report()
    rows, tasks = (datasets.find(f"bfcl_{name}.jsonl.gz", folder) for name in ("calls", "tasks"))
    measure_bfcl(datasets.read_jsonl(rows), datasets.read_jsonl(tasks), report)
    conversations, tools = datasets.find("tau_airline_gpt4o.jsonl.gz", folder), datasets.find("tau_tools.json", folder)
    airline = json.loads(tools.read_text(encoding="utf-8"))["airline"]
    measure_airline(datasets.read_jsonl(conversations), airline, report)
    return report


def lines_of(report: Report) -> Iterator[str]:
    """The report as lines of text."""
    yield "Regression (rows)"
    yield f"  {'label':<26}{'rows':>8}{'refused':>9}   wanted"
    wanted = {"CORRECT": "none", "SYNTACTIC": "all"}
    for label, count in report.rows.most_common():
        yield f"  {label:<26}{count:>8}{report.refused[label]:>9}   {wanted.get(label, '-')}"
    yield f"  {'tau airline (calls)':<26}{report.airline_calls:>8}{len(report.airline_refused):>9}   none"
    yield from (f"  MISSED {line}" for line in (*report.missed, *report.airline_refused))
    yield ""
    refused = len(report.false_refusals)
    yield f"Officially valid rows: {report.officially_valid}, refused: {refused} (at most {MAX_FALSE})"
    for cause, count in Counter(refusal.cause for refusal in report.false_refusals).most_common():
        yield f"  {count:>4}  {cause}"
    for refusal in report.false_refusals:
        complaint = refusal.complaint
        what = f"{complaint['tool']} {complaint['path']}: expected {complaint['expected']}, got {complaint['got']}"
        yield f"  {refusal.task:<28} {refusal.model:<44} {what} ({refusal.cause})"
    yield ""
    yield "Recall of the rules by official error type (rows)"
    for error, count in report.errors.most_common():
        refused = report.errors_refused[error]
        yield f"  {error!s:<52}{count:>6}{refused:>6}{refused / count:>8.1%}"
    total, refused = sum(report.errors.values()), sum(report.errors_refused.values())
    yield f"  {'all':<52}{total:>6}{refused:>6}{refused / max(total, 1):>8.1%}"
    yield ""
    each = report.seconds / max(report.calls, 1) * 1e6
    yield f"{report.calls} calls in {report.seconds:.2f} s of one processor: {each:.0f} µs a call"


def run(argv: list[str]) -> int:
    """Run the suite: 0 if the regression holds, 1 if not, 2 without its data."""
    parser = argparse.ArgumentParser(prog="python -m evals validation", description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=datasets.SHARED, help="folder of the recorded data")
    options = parser.parse_args(argv)
    try:
        report = measure(options.data)
    except EvalError as error:
        print(error)
        return 2
    print("\n".join(lines_of(report)))
    return 0 if report.passed else 1
