"""Table 1: recorded calls of real models against the validator (paper, section 3.1 and appendix A.8).

Measured are the officially valid answers that pass, the answers breaking their schema that are refused, and, with a
model, the answers refused for wrong values although their schema holds. Labels are the official checker's and the
schemas'.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gecko_graph import Models, ToolSpec
from gecko_graph.models.node import AskNode
from gecko_graph.schemas.complaints import find_complaints, unknown_tool
from gecko_graph.schemas.findings import KINDS
from gecko_graph.schemas.reading import Said
from gecko_graph.state import Call, Complaint, Json, JsonObject
from gecko_graph.tools.function_dicts import spec_of_dict
from gecko_graph.values.places import excerpt, pointer, pointer_tokens, value_at
from gecko_graph.world.check import validator

from ..harness.figures import Case, Cell, Measured, Record, Table, rate, share
from ..harness.options import find, read_jsonl
from ..harness.suite import Expectation, Suite, Summary, by_group

NOTHING_TO_VALIDATE = ("DECODE", "NO_CALL")
VALID = ("CORRECT", "CORRECT_SCHEMA_VIOLATION")
MAX_FALSE = 75
"""Officially valid rows that break their own schema, according to the data's README."""

PAPER = {
    "GPT-4o": (1.0, 1.0, 0.71),
    "GPT-4.1 nano": (1.0, 1.0, 0.69),
    "Qwen2.5 7B": (1.0, 1.0, 0.63),
}
"""The paper's Table 1 (BFCL-Live-Simple): true positives, syntactic errors, semantic errors, by helper model."""

RATES = ("true positive", "syntactic errors", "semantic errors")

Tools = Mapping[str, ToolSpec]


@dataclass(frozen=True, slots=True)
class Row:
    """One answer of one model: its calls, the tools that it was given, and the official verdict."""

    answer: Mapping[str, Any]
    task: Mapping[str, Any]
    tools: Tools

    @property
    def label(self) -> str:
        """The label of the answer: `CORRECT`, `SYNTACTIC`, `VALUE`, ..."""
        return str(self.answer["label"])

    @property
    def is_valid(self) -> bool:
        """Whether the official checker accepts the answer."""
        return self.label in VALID

    @property
    def is_semantic(self) -> bool:
        """Whether it is the paper's semantic error: the schema holds, but a value is wrong."""
        return self.label == "VALUE" and self.answer["sublabel"] == "value"

    @property
    def question(self) -> JsonObject:
        """The state with which the validator node is asked about the answer."""
        calls = enumerate(self.answer["calls"])
        pending: list[Call] = [{"id": f"call-{n}", "name": one["name"], "args": one["arguments"]} for n, one in calls]
        text = "\n".join(each["content"] for each in self.task["question"] if each["role"] == "user")
        return {"pending": pending, "task": text, "number": 1, "turn": 0}

    @property
    def facts(self) -> JsonObject:
        """The facts known before validation."""
        kind = "valid" if self.is_valid else "semantic" if self.is_semantic else self.label.lower()
        return {
            "task": self.answer["task_id"],
            "model": self.answer["model"],
            "label": self.label,
            "kind": kind,
            "error": self.answer["official"]["error_type"] or "",
        }


class Rules:
    """The argument rules: a spec for each distinct function, and cached complaints about each distinct call."""

    def __init__(self) -> None:
        self._specs: dict[str, ToolSpec] = {}
        self._complaints: dict[tuple[int, str], list[Complaint]] = {}

    def spec(self, function: Mapping[str, Any]) -> ToolSpec:
        """Return the tool of a function document; equal documents give the same tool."""
        key = json.dumps(function)
        if key not in self._specs:
            self._specs[key] = spec_of_dict(function, where=str(function.get("name")))
        return self._specs[key]

    def tools_of(self, task: Mapping[str, Any], *, underscored: bool) -> Tools:
        """Return a task's tools, by the name that the model saw."""
        specs = map(self.spec, task["functions"])
        return {spec.name.replace(".", "_") if underscored else spec.name: spec for spec in specs}

    def against(self, row: Row) -> list[Complaint]:
        return [found for call in row.answer["calls"] for found in self._against(call, row.tools)]

    def _against(self, call: Mapping[str, Any], tools: Tools) -> list[Complaint]:
        tool = tools.get(call["name"])
        if tool is None:
            return [unknown_tool({"id": "", "name": call["name"], "args": call["arguments"]})]
        key = (id(tool), json.dumps(call["arguments"]))
        if key not in self._complaints:
            args = call["arguments"]
            self._complaints[key] = find_complaints(tool, args) or find_floats(tool, args)
        return self._complaints[key]


def find_floats(tool: ToolSpec, args: JsonObject) -> list[Complaint]:
    # where BFCL is stricter than JSON Schema: an integer is written without a fraction, so that `10.0` is not one
    return [
        {
            "tool": tool.name,
            "path": pointer(place),
            "expected": KINDS["integer"],
            "got": excerpt(value),
            "source": "rule",
        }
        for place, value in _floats(Said(tool.parameters, tool.parameters), args, ())
    ]


def _floats(said: Said, value: Json, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], float]]:
    if isinstance(value, float):
        kinds: set[Any] = set()
        for part in said.parts():
            given = part.get("type", ())
            kinds |= {given} if isinstance(given, str) else {*given}
        if "integer" in kinds and "number" not in kinds:
            yield place, value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in members:
        yield from _floats(said.member(key), each, (*place, key))


def read_rows(folder: Path, rules: Rules) -> Iterator[Row]:
    """Yield the recorded answers with something to validate, in the file's order."""
    rows, tasks = (find(f"bfcl_{name}.jsonl.gz", folder) for name in ("calls", "tasks"))
    by_key = {(task["dataset"], task["task_id"]): task for task in read_jsonl(tasks)}
    for answer in read_jsonl(rows):
        if answer["label"] not in NOTHING_TO_VALIDATE:
            task = by_key[answer["dataset"], answer["task_id"]]
            yield Row(answer, task, rules.tools_of(task, underscored=answer["name_style"] == "underscore"))


def cause_of(complaint: Complaint, calls: Iterable[Mapping[str, Any]], tools: Tools) -> str:
    """Return why an officially valid call breaks its schema."""
    tool = tools.get(complaint["tool"])
    if tool is None:
        return "the tool is unknown"
    given = [value_at(call["arguments"], complaint["path"]) for call in calls if tools.get(call["name"]) is tool]
    listed = _rule_at(tool.parameters, complaint["path"]).get("enum")
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
    for name in pointer_tokens(path):
        rule = rule.get("items", {}) if name.isdecimal() else rule.get("properties", {}).get(name, {})
    return rule if isinstance(rule, dict) else {}


class Validation(Suite):
    """Table 1: what the validator accepts and refuses, on recorded calls of twelve models.

    A case is one answer of one model, with one or several calls. Rules decide without a model. With --model (or
    --role-model validator=...) the validator's model is asked about arguments that no rule decides: by default for
    answers with a wrong value, the paper's semantic errors; with --ask all also for valid answers, whose refusals then
    count against the rate of true positives.
    """

    name = "validation"
    examples = ("", "--only live_simple --role-model validator=openai:gpt-5-nano --ask all --limit 200")

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--ask",
            choices=("errors", "all"),
            default="errors",
            help="what the model sees: wrong values, or all (errors)",
        )

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._rules = Rules()
        self._models = Models().replace(**options.speakers())
        self._asks = self._models.has("validator")

    def cases(self) -> Iterable[Case]:
        """Yield a case per answer."""
        for row in read_rows(self.options.data, self._rules):
            answer = row.answer
            yield Case(
                f"{answer['dataset']}:{answer['task_id']}@{answer['model']}",
                row,
                group=answer["category"],
                facts=row.facts,
                unit=f"{answer['dataset']}:{answer['task_id']}",
            )

    async def run_case(self, case: Case) -> JsonObject:
        row: Row = case.data
        found = self._rules.against(row)
        values: JsonObject = {"refused": bool(found), "by": "rule" if found else "", "calls": len(row.answer["calls"])}
        if found:
            values["why"] = (
                f"{found[0]['tool']} {found[0]['path']}: expected {found[0]['expected']}, got {found[0]['got']}"
            )
            values["cause"] = cause_of(found[0], row.answer["calls"], row.tools) if row.is_valid else ""
        elif self._asks and (row.is_semantic or (self.options.own.ask == "all" and row.is_valid)):
            values |= await self._ask(row)
        return values

    async def _ask(self, row: Row) -> JsonObject:
        """Return the result of the validator node with its model."""
        node = AskNode(partial(validator, toolkit=row.tools), models=self._models, default=self.options.context())
        update = await node.ainvoke(row.question)
        lost = [each["failure"] for each in update["argument_verdicts"] if "failure" in each]
        if lost:
            raise RuntimeError(f"the validator's model gave no verdict: {lost[0]}")
        found = [each for step in update["steps"] for each in step["complaints"]]
        values: JsonObject = {"refused": bool(found), "by": "model" if found else "", "usage": update.get("usage", {})}
        return values | ({"why": f"{found[0]['path']}: {found[0]['expected']}"} if found else {})

    def summarise(self, records: Sequence[Record]) -> Summary:
        return summary_of(records, asked=self._asks, all_asked=self._asks and self.options.own.ask == "all")


SUITE = Validation


def summary_of(records: Sequence[Record], *, asked: bool, all_asked: bool) -> Summary:
    """Return the tables; `asked`: a model was asked about wrong values, `all_asked`: also about valid answers."""
    note = "Rows are answers; an answer may hold several calls. " + (
        "No model was asked: rules cannot know a wrong value." if not asked
        else "Semantic errors and true positives: rules and model." if all_asked
        else "Semantic errors: rules and model; true positives: rules alone (--ask all asks the model about them too)."
    )  # fmt: skip
    by_category = Table(
        "Table 1: detection rates by category", ["category", *RATES], note=f"{note} {against_official(records)}"
    )
    for name, some in {**by_group(records), "all": list(records)}.items():
        by_category.add(name, *_rates(some, asked=asked))
    for model, published in PAPER.items():
        cells = [f"{100 * each:.1f} % (paper, Table 1)" for each in published]
        by_category.add(f"live_simple, paper's {model}", *cells)
    by_model = Table("Table 1: detection rates by model that made the calls", ["model", *RATES], note=note)
    for name, some in by_group(records, key="model").items():
        by_model.add(name, *_rates(some, asked=asked))
    return Summary(
        [by_category, by_model, _by_error(records, asked=asked)],
        expectations=list(expectations(records)),
        notes=list(_false_refusals(records)),
    )


def against_official(records: Sequence[Record]) -> str:
    """Describe the refusals by the official verdict alone, because the labels are made from the same schemas."""
    right = [record for record in records if record.facts["kind"] == "valid"]
    refused = [record for record in right if record.values.get("by") == "rule"]
    broken = sum(record.facts["label"] == "CORRECT_SCHEMA_VIOLATION" for record in refused)
    part = share(len(refused), len(right), tools="none")
    value, low, high = (f"{100 * each:.2f}" for each in (part.value, part.low, part.high))
    return (
        "Labels come from jsonschema on the same schemas: 100 % of syntactic errors says that the rules agree with it. "
        f"Against the official verdict alone, rules refuse {value} % [{low}, {high}] of the right answers "
        f"({len(refused):,} of {len(right):,}); {broken:,} of them break their own schema."
    )


def _of_kind(records: Sequence[Record], kind: str, *, refused: bool) -> Measured:
    return rate(
        records,
        lambda record: record.values["refused"] == refused,
        where=lambda record: record.facts["kind"] == kind,
    )


def _rates(records: Sequence[Record], *, asked: bool) -> list[Cell]:
    semantic: Cell = _of_kind(records, "semantic", refused=True) if asked else "not measured"
    return [_of_kind(records, "valid", refused=False), _of_kind(records, "syntactic", refused=True), semantic]


def _by_error(records: Sequence[Record], *, asked: bool) -> Table:
    table = Table("Refused answers by official error", ["official error", "refused", "of them by a model"])
    invalid = [record for record in records if record.facts["error"]]
    groups = by_group(invalid, key="error")
    for error, some in sorted(groups.items(), key=lambda each: -len(each[1])):
        by_model = sum(record.values.get("by") == "model" for record in some)
        table.add(error, rate(some, lambda record: record.values["refused"]), by_model if asked else "not measured")
    return table


def expectations(records: Sequence[Record]) -> Iterator[Expectation]:
    """Yield the expectations on rules, which do not depend on a model."""
    correct = [each.id for each in records if each.facts["label"] == "CORRECT" and each.values.get("by") == "rule"]
    syntactic = [each.id for each in records if each.facts["label"] == "SYNTACTIC" and not each.values.get("refused")]
    broken = sum(each.facts["kind"] == "valid" and each.values.get("by") == "rule" for each in records)
    yield Expectation(f"no CORRECT answer is refused by a rule{_some(correct)}", not correct)
    yield Expectation(f"every SYNTACTIC answer is refused{_some(syntactic)}", not syntactic)
    yield Expectation(
        f"at most {MAX_FALSE} officially valid answers are refused by a rule (those that break their schema)",
        broken <= MAX_FALSE,
    )


def _some(ids: Sequence[str]) -> str:
    return f" (not so: {len(ids)}, such as {', '.join(ids[:3])})" if ids else ""


def _false_refusals(records: Sequence[Record]) -> Iterator[str]:
    """Yield officially valid answers that a rule refuses, first by cause, then one by one."""
    refused = [each for each in records if each.facts["kind"] == "valid" and each.values.get("by") == "rule"]
    causes = Counter(each.values["cause"] for each in refused)
    for cause, count in causes.most_common():
        yield f"{count} officially valid answers refused: {cause}"
    for each in refused:
        yield f"{each.id}: {each.values['why']} ({each.values['cause']})"
