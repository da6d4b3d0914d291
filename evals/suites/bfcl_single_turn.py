"""BFCL's single-turn tasks, planned in a rehearsal and judged by the official evaluator.

A task's tools have no contracts and no state: calls are checked by the argument rules, answered by a simulating model
or by made-up values, and judged by a model if there is one. The official evaluator judges the best attempt's plan.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from gecko_graph import Models, Toolkit, create_gecko
from gecko_graph.nodes.rounds import plan_of
from gecko_graph.state import JsonObject, Rehearsal

from ..bfcl.single import ALL, NONE_FITS, Checker, Task, Words, chosen, of_plan, right_calls, tasks_of
from ..harness.figures import Case, Cell, Measured, Record, Table, rate, share
from ..harness.options import Options
from ..harness.suite import Expectation, Suite, Summary, by_group, rehearsed

SHOWN_COMPLAINTS = 3


class SingleTurn(Suite):
    """BFCL single-turn: plans of the rehearsal, scored by the official evaluator.

    Categories: simple_python, multiple, parallel, parallel_multiple, their live_ forms, irrelevance, live_irrelevance.
    The official package judges: pip install --no-deps bfcl-eval==2026.3.23 mpmath. Its single-turn evaluator runs in a
    separate process, with stubs for the vendors' SDKs, which it imports but does not use.

    A task has no checklist: without a model for checklist and judge no attempt is judged, and the first attempt's plan
    is the answer.
    """

    name = "bfcl"
    tools = "simulated"
    planner = "ground-truth"
    planners = ("ground-truth", "model")
    examples = ("", "--category simple_python,live_irrelevance --model openai:gpt-5-mini")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--category", default=ALL, metavar="A,B", help=f"official names, {ALL} for all ten ({ALL})")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._categories = chosen(options.own.category)
        self._checker = Checker()

    def cases(self) -> Iterator[Case]:
        for category in self._categories:
            yield from (Case(task.id, task, group=category) for task in tasks_of(category))

    async def run_case(self, case: Case) -> JsonObject:
        task: Task = case.data
        words = Words(right_calls(task), NONE_FITS) if self.options.planner.kind == "ground-truth" else None
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
        speakers = self.options.speakers(planner=words.planner if words else None)
        context = self.options.context(**({"max_retries": 0} if words else {}))  # recorded words have one attempt
        gecko = create_gecko(Toolkit.from_tools(task.functions), model=Models().replace(**speakers), context=context)
        run = await gecko.ainvoke({"messages": list(task.messages)})
        rehearsal: Rehearsal = run["rehearsal"]
        values = rehearsed(rehearsal)
        if words:
            values["usage"].pop("planner", None)  # no model was called: recorded words cost nothing
        first = rehearsal["attempts"][0]
        if len(rehearsal["attempts"]) > 1:
            values["first_result"] = of_plan(plan_of(first), answer=first["answer"])
        return {
            **values,
            "result": of_plan(rehearsal["plan"], answer=rehearsal["answer"]),
            "judged": judged_by(rehearsal),
            "refused": refused(rehearsal)[:SHOWN_COMPLAINTS],
        }

    def summarise(self, records: Sequence[Record]) -> Summary:
        done = [record for record in records if record.done]
        figures: list[Table] = [categories(records), *errors(done)]
        figures += [lost(done)] if any(_is_lost(record) for record in done) else []
        expected = _of_truth(done) if self.options.planner.kind == "ground-truth" else []
        return Summary(figures, expected, list(notes(records)))


def judged_by(rehearsal: Rehearsal) -> str:
    """Return who judged the chosen attempt: `model`, `rule`, or `nobody`."""
    judges = {item["by"] for item in rehearsal["verdict"]["items"]}
    return next((judge for judge in ("model", "rule") if judge in judges), "nobody")


def refused(rehearsal: Rehearsal) -> list[str]:
    """Return the complaints that refused calls of the chosen attempt."""
    attempt = next(each for each in rehearsal["attempts"] if each["number"] == rehearsal["chosen"])
    return [
        f"{each['tool']} {each['path']}: expected {each['expected']}, got {each['got']} ({each['source']})"
        for step in attempt["steps"]
        for each in step.get("complaints", ())
    ]


UNANSWERABLE: Mapping[str, str] = {
    "live_simple_106-63-0": "requires arguments for which no value is right",
    "live_simple_112-68-0": "requires arguments for which no value is right",
    "live_multiple_862-181-3": "wants an argument that its tool does not have",
    "live_multiple_964-207-0": "wants an argument that its tool does not have, and requires another",
}
"""Tasks for which the official evaluator accepts no answer at all, and why."""


def is_valid(record: Record) -> bool:
    return bool(record.values["valid"])


def was_valid(record: Record) -> bool:
    return bool(record.values["planned"])


def _as_planned(records: Sequence[Record]) -> Measured | None:
    done = [record for record in records if record.done and "planned" in record.values]
    return share(sum(map(was_valid, done)), len(records), tools="none") if done else None


def _at_first(records: Sequence[Record]) -> Measured | None:
    if not any("first" in record.values for record in records):
        return None
    return rate(records, lambda record: bool(record.values.get("first", record.values["valid"])))


def categories(records: Sequence[Record]) -> Table:
    table = Table(
        "BFCL single-turn: valid by the official evaluator",
        ["category", "rehearsed", "first attempt", "as planned", "with refused calls", "judged by a model"],
        note="First attempt: its plan, before any feedback; empty where no task was tried again. As planned: "
        "the words that were written down, scored without a rehearsal. With refused calls: answers of which the "
        "validator refused a call. Judged by a model: else without a judge, and the only attempt's plan is the answer.",
    )
    for name, some in [*by_group(records).items(), ("all", records)]:
        done = [record for record in some if record.done]
        broken = sum(bool(record.values["refused"]) for record in done)
        judged = sum(record.values["judged"] == "model" for record in done)
        table.add(name, rate(some, is_valid), _at_first(some), _as_planned(some), broken, judged)
    return table


def errors(done: Sequence[Record]) -> Iterator[Table]:
    counts = Counter(record.values["error_type"] for record in done if not is_valid(record))
    if not counts:
        return
    planned = Counter(record.values.get("planned_error", "") for record in done)
    table = Table("What is wrong, in the official evaluator's words", ["error", "rehearsed", "as planned"])
    for name in sorted({*counts, *planned} - {""}, key=lambda name: (-counts[name], name)):
        table.add(name, counts[name], planned[name])
    yield table


def lost(done: Sequence[Record]) -> Table:
    """Return the answers that were valid as planned but not as rehearsed, with the complaint that caused it."""
    groups: dict[tuple[str, str], int] = Counter()
    for record in filter(_is_lost, done):
        why = next(iter(record.values["refused"]), "no call was refused")
        groups[record.id, why] += 1
    table = Table(
        "Officially valid answers that rehearsal lost",
        ["task", "answers", "the call was refused for"],
        note="The benchmark takes the answer, and the tool's own schema forbids it: a value that its enum does not "
        "list, null, another type.",
    )
    for (task, why), count in groups.items():
        row: tuple[Cell, ...] = (task, count, why)
        table.add(*row)
    return table


def notes(records: Sequence[Record]) -> Iterator[str]:
    done = [record for record in records if record.done]
    if _count(done, lambda record: record.values["judged"] == "nobody"):
        yield (
            "where no judge was used, no model was given for checklist and judge: the verdict is failed, there is no "
            "retry, and the attempt's plan is scored as it is"
        )
    if without := _count(done, lambda record: bool(record.values.get("without_tools"))):
        yield f"{without} tasks have no tools at all: nothing was asked, and no call is the right answer"
    for record in done:
        if record.id in UNANSWERABLE and not record.values.get("planned"):
            yield f"{record.id}: the official evaluator takes no answer, for it {UNANSWERABLE[record.id]}"
    if missing := len(records) - len(done):
        yield f"{missing} cases that are not done count as misses"


def _of_truth(done: Sequence[Record]) -> list[Expectation]:
    wrong = [record.id for record in done if not was_valid(record) and record.id not in UNANSWERABLE] if done else []
    missed = [
        record.id for record in done if was_valid(record) and not is_valid(record) and not record.values["refused"]
    ]
    return [
        Expectation("every right answer, of tasks that have one, is officially valid" + _named(wrong), not wrong),
        Expectation(
            "and is so after the rehearsal, where the tool's own schema allows it" + _named(missed), not missed
        ),
    ]


def _is_lost(record: Record) -> bool:
    return bool(record.values.get("planned")) and not is_valid(record)


def _count(records: Sequence[Record], of: Callable[[Record], bool]) -> int:
    return sum(map(of, records))


def _named(ids: Sequence[str]) -> str:
    return f" (not: {', '.join(ids[:5])}, {len(ids)} in all)" if ids else ""


SUITE = SingleTurn
