"""BFCL's single-turn tasks, planned in rehearsal and judged by the official evaluator.

A task's tools have no contracts and no state: calls are checked by the argument rules, answered by a model that
simulates or by made-up values, and judged by a model where there is one. The plan of the best attempt is written in the
official result format; the official evaluator judges each plan as soon as it is made, and all files at the end.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel

from gecko_graph import Toolkit, create_gecko
from gecko_graph.nodes.rounds import plan_of
from gecko_graph.state import Json, JsonObject, Rehearsal

from ..bfcl.averages import multi_turn_base, table_3
from ..bfcl.single_checker import Checker
from ..bfcl.single_planners import written
from ..bfcl.single_results import of_plan, official_result
from ..bfcl.single_summary import summary_of
from ..bfcl.single_tasks import ALL, Task, chosen, right_calls, tasks_of
from ..bfcl.written_first import WrittenFirst
from ..harness.datasets import read_jsonl
from ..harness.figures import Figure
from ..harness.rehearsed import rehearsed
from ..harness.suite import Case, EvalError, Record, Suite, Summary

NONE_FITS = "None of the tools fits."

SHOWN_COMPLAINTS = 3


@dataclass(frozen=True, slots=True)
class Words:
    """A planner's recorded reply: its calls as `{"call", "args"}`, or without calls a text."""

    calls: Sequence[JsonObject]
    text: str

    @property
    def result(self) -> Json:
        """Return the same in the official result format, as without a rehearsal."""
        return official_result(((call["call"], call["args"]) for call in self.calls), text=self.text)


class SingleTurn(Suite):
    """BFCL single-turn: plans of the rehearsal, scored by the official evaluator.

    Categories: simple_python, multiple, parallel, parallel_multiple, their live_ forms, irrelevance, live_irrelevance.
    The official package judges: pip install --no-deps bfcl-eval==2026.3.23 mpmath. Its single-turn evaluator runs in a
    process of its own, where the vendors' SDKs that it imports and does not use are stood in for; in an environment
    that has the whole package it runs as it is: --official-python /path/to/python.

    Result and score files lie in the run's folder, under official/. No checklist comes with a task: without a model
    for checklist and judge no attempt is judged, and the first attempt's plan is the answer.
    """

    name = "bfcl"
    tools = "simulated"
    planner = "ground-truth"
    examples = (
        "--category simple_python,live_irrelevance --planner openai:gpt-5-mini --model openai:gpt-5-mini",
        "--category parallel --planner recorded:../shared/data/bfcl_calls.jsonl.gz --recorded-model Qwen_Qwen3-8B-FC",
        "--category multiple --planner recorded:FILE --then openai:gpt-5-mini --model openai:gpt-5-mini",
    )
    asides = ("official_python", "beside")

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Add what to run, which models, and where the official evaluator is."""
        add = parser.add_argument
        add("--category", default=ALL, metavar="A,B", help=f"official names, {ALL} for all ten ({ALL})")
        add("--recorded-model", default="", metavar="A,B", help="whose recorded calls speak (everybody's in the file)")
        add("--then", metavar="MODEL", help="plans on after the first message of recorded calls")
        beside = "folder of a multi-turn run, whose multi_turn_base is part of the overall average (paper, table 3)"
        add("--beside", type=Path, metavar="DIR", help=beside)
        add("--official-python", type=Path, metavar="PATH", help="a Python that has bfcl-eval with all it needs")

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        own = options.own
        if own.then and options.planner.kind != "recorded":
            raise EvalError("--then: it goes on after recorded calls: give --planner recorded:FILE")
        self._categories = chosen(own.category)
        self._beside = multi_turn_base(own.beside) if own.beside else None
        self._checker = Checker(own.official_python)
        self._alike: dict[tuple[str, str], JsonObject] = {}

    @cached_property
    def _tasks(self) -> dict[str, Task]:
        return {task.id: task for category in self._categories for task in tasks_of(category)}

    def cases(self) -> Iterable[Case]:
        """Yield a case per task; with recorded calls a case for each task and model."""
        if self.options.planner.kind == "recorded":
            yield from self._recorded()
            return
        for task in self._tasks.values():
            yield Case(task.id, (task, None), group=task.category)

    def _recorded(self) -> Iterator[Case]:
        file = self.options.planner.file
        assert file is not None, "a planner of this kind has a file"
        wanted = [each for each in self.options.own.recorded_model.split(",") if each]
        models: set[str] = set()
        found = False
        for row in read_jsonl(file):
            try:
                models.add(row["model"])
                task = self._tasks.get(row["task_id"])
                if task is not None and (not wanted or row["model"] in wanted):
                    found = True
                    yield recorded_case(task, row)
            except (KeyError, TypeError) as error:
                raise EvalError(f"{file}: a row is no recorded answer (task_id, model, calls): {error!r}") from None
        if unknown := sorted(set(wanted) - models):
            raise EvalError(f"--recorded-model {','.join(unknown)}: {file} has calls of {', '.join(sorted(models))}")
        if not found:
            raise EvalError(f"{file} has no calls for {', '.join(self._categories)}")

    async def run_case(self, case: Case) -> JsonObject:
        """Rehearse a task, and score the plan with the official evaluator.

        Equal words for a task are rehearsed once where no live model speaks: no answer could differ.
        """
        task, words = case.data
        if self.options.planner.kind == "ground-truth":
            words = Words(right_calls(task), NONE_FITS)
        live = bool(self.options.model_names() or self.options.own.then)
        if words is None or live:
            return await self._run(task, words)
        key = (task.id, repr(words))
        if key not in self._alike:
            self._alike[key] = await self._run(task, words)
        return self._alike[key]

    async def _run(self, task: Task, words: Words | None) -> JsonObject:
        values = await self._rehearse(task, words)
        checked = self._checker.check(task.category, task.id, values["result"])
        values |= {"valid": checked.valid, "error_type": checked.error_type}
        if words is not None:
            planned = self._checker.check(task.category, task.id, words.result)
            values |= {"planned": planned.valid, "planned_error": planned.error_type}
        if "first_result" in values:
            first = self._checker.check(task.category, task.id, values.pop("first_result"))
            values |= {"first": first.valid}
        return values

    async def _rehearse(self, task: Task, words: Words | None) -> JsonObject:
        if not task.functions:
            return {"result": "", "judged": "nobody", "refused": [], "without_tools": True}
        speakers = self.options.speakers(planner=self._planner(words))
        alone = words is not None and not self.options.own.then  # recorded calls have one attempt
        context = self.options.context(**({"max_retries": 0} if alone else {}))
        gecko = create_gecko(Toolkit.from_tools(task.functions), models=speakers, context=context)
        run = await gecko.ainvoke({"messages": list(task.messages)})
        rehearsal: Rehearsal = run["rehearsal"]
        values = rehearsed(rehearsal)
        if alone:
            values["usage"].pop("planner", None)  # no model was called: recorded calls cost nothing
        first = rehearsal["attempts"][0]
        if len(rehearsal["attempts"]) > 1:
            values["first_result"] = of_plan(plan_of(first), answer=first["answer"])
        return {
            **values,
            "result": of_plan(rehearsal["plan"], answer=rehearsal["answer"]),
            "judged": judged_by(rehearsal),
            "refused": refused(rehearsal)[:SHOWN_COMPLAINTS],
        }

    def _planner(self, words: Words | None) -> BaseChatModel | None:
        if words is None:
            return None
        first = written(words.calls, text=words.text or NONE_FITS)
        then = self.options.own.then
        return WrittenFirst(first=first, then=self.options.chat(then)) if then else first

    def others(self) -> Mapping[str, str]:
        """Return the model that plans on after recorded calls."""
        return {"then": self.options.own.then} if self.options.own.then else {}

    def tell(self, record: Record) -> str:
        """Return a record in one line."""
        verdict = "valid" if record.values["valid"] else record.values["error_type"]
        return f"{verdict}; {record.values.get('verdict', 'not rehearsed')} by {record.values['judged']}"

    def passed(self, record: Record) -> bool:
        """Return whether the rehearsed plan is officially valid."""
        return bool(record.values["valid"])

    def averages(self, records: Sequence[Record]) -> Sequence[Figure]:
        """Return the paper's Table 3."""
        return table_3(self.rates(records), beside=self._beside)

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return official scores, and whether the official evaluator gives the same scores for the files."""
        return summary_of(records, options=self.options, checker=self._checker)


def recorded_case(task: Task, row: Mapping[str, Any]) -> Case:
    """Return a model's recorded answer as a case.

    Args:
        task: The task.
        row: `model`, `calls` of `name` and `arguments`, `raw` where there are none, and where known `name_style`, the
            `official` verdict and a `label`.

    Raises:
        KeyError: The row lacks something.
    """
    shown = {each["name"].replace(".", "_"): each["name"] for each in task.functions}
    own = shown if row.get("name_style") == "underscore" else {}
    calls = [{"call": own.get(call["name"], call["name"]), "args": call["arguments"]} for call in row["calls"]]
    facts = {
        "task": task.id,
        "model": row["model"],
        "recorded": (row.get("official") or {}).get("valid"),
        "label": row.get("label"),
    }
    words = Words(calls, row.get("raw") or "")
    return Case(f"{task.id}@{row['model']}", (task, words), group=task.category, facts=facts, unit=task.id)


def judged_by(rehearsal: Rehearsal) -> str:
    """Return what judged the chosen attempt: `model`, `rule`, or `nobody`."""
    judges = {item["by"] for item in rehearsal["verdict"]["items"]}
    return next((judge for judge in ("model", "rule") if judge in judges), "nobody")


def refused(rehearsal: Rehearsal) -> list[str]:
    """Return the complaints for which the chosen attempt's calls were refused."""
    attempt = next(each for each in rehearsal["attempts"] if each["number"] == rehearsal["chosen"])
    return [
        f"{each['tool']} {each['path']}: expected {each['expected']}, got {each['got']} ({each['source']})"
        for step in attempt["steps"]
        for each in step.get("complaints", ())
    ]


SUITE = SingleTurn
