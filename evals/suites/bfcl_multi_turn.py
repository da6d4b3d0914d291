"""`bfcl --category multi_turn_...`: multi-turn tasks over the benchmark's executable classes, checked officially."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gecko_graph.state import JsonObject

from ..bfcl import MULTI_TURN, acting, agreement, package
from ..bfcl.arms import by_model, by_record, by_truth, spoilt
from ..bfcl.learned import is_held_out
from ..bfcl.oracle import KINDS
from ..bfcl.simulated import APART, LADDERS, Stage
from ..bfcl.tasks import CATEGORY_HELP, RECORDED, Task, categories_of, read_recorded, read_tasks
from ..harness.figures import Case, Measured, Record, Table, Tools, mean, rate, rungs_of, share
from ..harness.options import EvalError, Options
from ..harness.suite import Expectation, Suite, Summary, by_group, with_all

JUDGED_BY_RULE = (
    "no model judged, but rule checks from the real end state: an attempt is accepted where the simulation ends "
    "as the real tools end after the ground truth. That measures the simulation, not the accuracy of the method"
)

_ORACLE = "Judged by rule checks from the real classes' end state: never an accuracy of the method."


class MultiTurn(Suite):
    """BFCL's multi-turn tasks: each user turn is a rehearsal on one thread, checked by the official checker.

    With --tools real the benchmark's executable classes answer (the rung `python`, on a copy of the task state). With
    contract, model or schema the planner works on simulated tools, as in the paper: by the contracts of all eight
    classes (`evals/bfcl/contracts`) on one shared state, by a model, or by made-up values. In both cases the resulting
    plan is run on the real classes and scored officially. Each turn is judged alone after the truth of the turns
    before: whether its plan is right, and which marks the verdict has. Recorded turns are also rehearsed there.

    The planner is the ground truth (with --sabotage each first attempt is corrupted in one of eight ways, which the
    judge by rule must detect), a file of recorded trajectories, or a model.
    """

    name = "bfcl-multi-turn"
    tools = "real"
    planner = "ground-truth"
    examples = (
        "--category multi_turn_base,multi_turn_miss_func,multi_turn_miss_param",
        "--category multi_turn_base --sabotage",
        "--category multi_turn_base --tools agent",
        f"--category multi_turn_base --planner recorded:../shared/data/{RECORDED}",
        "--category multi_turn_base --model openai:gpt-5-mini --limit 20",
        "--category multi_turn_base --tools contract --model openai:gpt-5-mini --limit 20",
    )

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--category", default=MULTI_TURN[0], metavar="A,B", help=CATEGORY_HELP)
        ladders = "real, contract, model, schema (made up); agent: the agent "
        ladders += "rehearses on contract and copies, then acts"
        add("--tools", choices=tuple(LADDERS), default="real", help=f"whose tools answer the planner: {ladders} (real)")
        learned = "learned contracts, a file per class written by `evals learn --only chained`, instead of written "
        learned += "ones with --tools contract: plays the held-out tasks, also with the written ones"
        add("--contracts", type=Path, metavar="FOLDER", help=learned)
        about = "corrupt the first attempt at each turn; --max-retries right ones follow (1)"
        add("--sabotage", action="store_true", help=about)

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        package.version()
        self._categories = categories_of(options.own.category)
        own, names = options.own, options.model_names()
        if own.sabotage and (options.planner.kind != "ground-truth" or names or own.tools != "real"):
            raise EvalError("--sabotage corrupts the ground truth on the real classes: no --planner, --model, --tools")
        if own.contracts and (own.tools != "contract" or not own.contracts.is_dir()):
            raise EvalError("--contracts FOLDER: it needs --tools contract; `evals learn --only chained` makes one")
        if own.tools == "model" and "simulator" not in names:
            raise EvalError("--tools model: no simulator: give --model MODEL or --role-model simulator=MODEL")
        if names and options.planner.kind != "model" and own.tools == "real" and "judge" not in names:
            raise EvalError(f"planner {options.planner}: no model would be asked; omit --planner, or use other --tools")

    def cases(self) -> Iterator[Case]:
        if self.options.planner.kind != "recorded":
            for number, task in enumerate(filter(self._is_kept, read_tasks(self.options.data, self._categories))):
                yield Case(task.id, (task, None, number), group=task.category, tools=self._whose)
            return
        for task, row in read_recorded(self.options.data, self._categories, self.options.planner.file):
            if not self._is_kept(task):
                continue
            name, facts = f"{task.id}:{row['model']}", {"model": row["model"]}
            yield Case(name, (task, row, 0), group=task.category, facts=facts, unit=task.id, tools=self._whose)

    async def run_case(self, case: Case) -> JsonObject:
        (task, row, number), own = case.data, self.options.own
        if own.sabotage:
            return await spoilt(task, self.options, first=number)
        is_alone = row is not None and own.tools in APART
        told = await self._play(Stage(task, own.tools, alone=is_alone, learned=own.contracts), row)
        if own.contracts:
            told["written"] = (await self._play(Stage(task, own.tools, alone=is_alone), row))["accepted"]
        return told

    def _is_kept(self, task: Task) -> bool:
        return self.options.own.contracts is None or is_held_out(task.id)

    async def _play(self, stage: Stage, row: JsonObject | None) -> JsonObject:
        match self.options.planner.kind:
            case "recorded":
                return await by_record(stage, self.options, row=row or {})
            case "model":
                return await by_model(stage, self.options)
        return await by_truth(stage, self.options)

    def summarise(self, records: Sequence[Record]) -> Summary:
        notes = [] if "judge" in self.options.model_names() else [JUDGED_BY_RULE]
        if self.options.own.tools == "agent":
            return acting.summary(records, notes)
        if self.options.own.sabotage:
            return sabotage_summary(records, is_retried=self.options.max_retries != 0)
        made = self._summary(records, notes)
        tables = [*([decided(records)] if self.options.own.contracts else []), *made.figures]
        return replace(made, figures=[*tables, *agreement.tables(records)])

    def _summary(self, records: Sequence[Record], notes: Sequence[str]) -> Summary:
        errors = [*official_errors(records)]
        match self.options.planner.kind:
            case "recorded":
                table = Table("Recorded plans, rehearsed", ["model", "officially valid", "all turns accepted"])
                for name, some in [*by_group(records, key="model").items(), ("all", records)]:
                    table.add(name, valid(some), rate(some, _all_accepted))
                return Summary([table, *errors], notes=notes)
            case "model":
                heads = ["category", "officially valid", "attempts a task", "tool calls a task"]
                table = Table("Multi-turn accuracy", heads)
                for name, some in with_all(records):
                    attempts = mean(some, lambda record: record.values["attempts"])
                    table.add(name, valid(some), attempts, mean(some, lambda record: record.values["tool_calls"]))
                return Summary([table, *errors], notes=list(unjudged(records)))
        return Summary(errors, notes=notes) if self._whose == "simulated" else truth_summary(records)

    @property
    def _whose(self) -> Tools:
        return "real" if self.options.own.tools == "real" else "simulated"


def sabotage_summary(records: Sequence[Record], *, is_retried: bool) -> Summary:
    """Summarise the judge by kind of sabotage; right and wrong are decided by the real classes.

    Without a second attempt a turn may start after a wrong one, and only the end counts.
    """
    done = [record for record in records if record.done]
    turns = [(record.id, turn) for record in done for turn in record.values["judged"]]
    heads = ["first attempt", "sensitivity (failed, where wrong)", "specificity (accepted, where right)", "turns"]
    note = f"{_ORACLE} Right or wrong is the real classes' word, not the kind's: a call made twice may change nothing."
    table = Table("The rule judge on spoilt first attempts", heads, note=note)
    heads = ["category", "officially valid", "all turns accepted", "tool calls a task", "attempts a task"]
    ended = Table("Tasks after the last attempt", heads, note=_ORACLE)
    expectations = [Expectation("every task ends officially valid", valid(records).value == 1)]
    for kind in (*KINDS, "all"):
        some = [turn for _, turn in turns if kind in (turn["kind"], "all")]
        rated = []
        for word, right in (("sensitivity", False), ("specificity", True)):
            judged = [turn["accepted"] == right for turn in some if turn["done"] == right]
            rated.append(share(sum(judged), len(judged), tools="real", rungs=rungs_of(done)) if judged else None)
            if judged:
                expectations.append(Expectation(f"{kind}: {word} of 99 %", sum(judged) >= 0.99 * len(judged)))
        table.add(kind, *rated, len(some))
    for name, group in with_all(records):
        counts = (mean(group, lambda record, key=key: record.values[key]) for key in ("tool_calls", "attempts"))  # type: ignore[misc]
        ended.add(name, valid(group), rate(group, _all_accepted), *counts)
    if not is_retried:
        return Summary([ended])
    wrong = [(id_, turn) for id_, turn in turns if turn["done"] != turn["accepted"]]
    notes = [f"misjudged: {id_}, turn {turn['turn']} ({turn['kind']})" for id_, turn in wrong]
    return Summary([table, ended], expectations, notes)


def decided(records: Sequence[Record]) -> Table:
    """Return how many tasks learned contracts decide: all calls by contract, the results known or filled in."""
    table = Table("Learned contracts in the place of written ones", ["results", "decided", "as with written ones"])
    done = [record.values for record in records if record.done]
    known = [one for one in done if all({*turn["rungs"]} <= {"contract"} for turn in one["by_turn"])]
    whole = [one for one in known if not any(turn.get("filled") for turn in one["by_turn"])]
    for name, sure in (("by contract", whole), ("or filled by the schema", known)):
        same = [one for one in sure if one["accepted"] == one["written"]]
        pairs = ((len(sure), len(done)), (len(same), len(sure)))
        table.add(name, *(share(part, all_, tools="simulated", rungs=rungs_of(records)) for part, all_ in pairs))
    return table


def truth_summary(records: Sequence[Record]) -> Summary:
    """Summarise the ground truth as planner; everything must be valid."""
    heads = ["category", "officially valid", "all turns accepted", "tasks"]
    table = Table("Ground truth as planner", heads, note=_ORACLE)
    for name, some in with_all(records):
        table.add(name, valid(some), rate(some, _all_accepted), len(some))
    errata = [line for record in records if record.done for line in record.values["errata"]]
    notes = [f"allowed, because the ground truth does it: {line}" for line in errata]
    return Summary([table], [Expectation("every task is officially valid", valid(records).value == 1)], notes)


def unjudged(records: Sequence[Record]) -> Iterator[str]:
    done = [record for record in records if record.done]
    if done and not any("judge" in record.values["usage"] for record in done):
        yield "not judged: no model was given for checklist and judge (--model), so there was no retry"


def official_errors(records: Sequence[Record]) -> Iterator[Table]:
    errors = Table("Official errors", ["error", "tasks"])
    for error, count in Counter(record.values["official"] for record in records if record.done).most_common():
        if error:
            errors.add(error, count)
    if errors.rows:
        yield errors


def valid(records: Iterable[Record]) -> Measured:
    return rate(records, lambda record: bool(record.values["valid"]))


def _all_accepted(record: Record) -> bool:
    return all(record.values["accepted"])


SUITE = MultiTurn
