"""`bfcl --category multi_turn_...`: multi-turn tasks over the benchmark's executable classes, checked officially."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gecko_graph.state import JsonObject

from ..bfcl import ALL_MULTI_TURN, LONG_CONTEXT, MULTI_TURN, acting, agreement, package
from ..bfcl.arms import by_model, by_record, by_record_first, by_truth, spoilt
from ..bfcl.replay import UNEXPLAINED
from ..bfcl.sabotage import KINDS
from ..bfcl.simulated import APART, LADDERS, Stage
from ..bfcl.single_results import folder_name
from ..bfcl.tasks import FILE, read_tasks, task_of
from ..harness import datasets
from ..harness.figures import Measured, Table, mean, rate, rungs_of, share
from ..harness.options import Options
from ..harness.suite import Case, EvalError, Expectation, Record, Suite, Summary, Tools, by_group

RECORDED = "bfcl_multiturn_recorded.jsonl.gz"
WANTED = 0.99

JUDGED_BY_RULE = (
    "no model judged, but rule checks from the real end state: an attempt is accepted where the simulation ends "
    "as the real tools end after the ground truth. That measures the simulation, not the accuracy of the method"
)

_ORACLE = "Judged by rule checks from the real classes' end state: never an accuracy of the method."


class MultiTurn(Suite):
    """BFCL's multi-turn tasks: each user turn a rehearsal on one thread, checked by the official checker.

    With --tools real the benchmark's executable classes answer (the rung `python`, on a copy of the task state). With
    contract, model or schema the planner works on simulated tools, as in the paper: by the contracts of all eight
    classes (`evals/bfcl/contracts`), each below its name in one state; all by a model; all by made-up values. With
    hybrid, reads run on the real classes, as the plans of the turns before have left them, and writes are as with
    contract. Either way the plan that comes out runs on the real classes and is scored officially. Each turn is judged
    alone on the truth of the turns before: whether its plan is right, which marks the verdict bears, and the first
    difference that matters. Recorded turns are rehearsed there too, others with --alone.

    The planner is the ground truth, its first attempts spoilt with --sabotage, a file of recorded trajectories, or a
    model. Plans are left in the official result format as `result/*_result.json` in the run's folder. With --then MODEL
    a recorded trajectory is the first attempt at each turn, a model judges it (--model), and MODEL plans what comes
    after the feedback.
    """

    name = "bfcl-multi-turn"
    tools = "real"
    planner = "ground-truth"
    examples = (
        "--category multi_turn_base,multi_turn_miss_func,multi_turn_miss_param",
        "--category multi_turn_base --sabotage",
        "--category multi_turn_base --tools agent",
        f"--category multi_turn_base --planner recorded:../shared/data/{RECORDED}",
        f"--category multi_turn_base --planner recorded:../shared/data/{RECORDED} --then openai:gpt-5-mini "
        "--model openai:gpt-5-mini --limit 20",
        "--category multi_turn_base --model openai:gpt-5-mini --limit 20",
        "--category multi_turn_base --tools hybrid --limit 20",
        "--category multi_turn_base --tools contract --model openai:gpt-5-mini --limit 20 --trials 5",
    )

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add categories, sabotage, and how recorded calls are met."""
        add = parser.add_argument
        text = f"of {', '.join(MULTI_TURN)}, or {ALL_MULTI_TURN} for the first three ({MULTI_TURN[0]})"
        add("--category", default=MULTI_TURN[0], metavar="A,B", help=text)
        ladders = "real, contract, hybrid (reads real, writes as "
        ladders += "contract), model, schema (made up); agent: the agent rehearses on contract and copies, then acts; "
        ladders += "agent-apart: on copies that draw otherwise"
        add("--tools", choices=tuple(LADDERS), default="real", help=f"whose tools answer the planner: {ladders} (real)")
        alone = "each turn alone, with state and conversation as the truth of the turns before made them"
        add("--alone", action="store_true", help=f"{alone}; recorded calls on simulated tools always are")
        add("--sabotage", action="store_true", help="spoil the ground truth's first attempt at each turn")
        add("--unchecked", action="store_true", help="recorded calls: any tool of the classes, any arguments")
        add("--recorded-model", default="", metavar="A,B", help="whose recorded calls speak (everybody's in the file)")
        add("--then", metavar="MODEL", help="plans on after recorded first attempts; --model judges them")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        package.version()
        named = [name for name in options.own.category.split(",") if name]
        short = [name for name in MULTI_TURN if name != LONG_CONTEXT] if ALL_MULTI_TURN in named else []
        self._categories = [*short, *(name for name in named if name in MULTI_TURN)]
        if options.own.sabotage and options.planner.kind != "ground-truth":
            raise EvalError("--sabotage spoils the ground truth: leave out --planner and --model")
        if (options.own.unchecked or options.own.recorded_model) and options.planner.kind != "recorded":
            raise EvalError("--unchecked and --recorded-model are for recorded calls: --planner recorded:FILE")
        if options.own.tools != "real" and (options.own.sabotage or options.own.unchecked):
            raise EvalError("--sabotage and --unchecked are for the real classes: leave out --tools")
        if options.own.alone and (options.own.tools not in APART or options.own.then):
            raise EvalError(f"--alone is for --tools {', '.join(APART)}, without --then")
        _check_models(options)

    def cases(self) -> Iterator[Case]:
        """Yield a case per task; a case per trajectory where the planner is recorded."""
        if self.options.planner.kind == "recorded":
            yield from self._recorded()
            return
        for number, task in enumerate(read_tasks(self.options.data, self._categories)):
            yield Case(task.id, (task, number), group=task.category, tools=self._whose)

    def _recorded(self) -> Iterator[Case]:
        if LONG_CONTEXT in self._categories:
            raise EvalError(f"{LONG_CONTEXT}: there are no recorded trajectories; leave it out of --category")
        rows = {row["id"]: row for row in datasets.read_jsonl(self.options.dataset(FILE))}
        assert self.options.planner.file is not None
        wanted = [each for each in self.options.own.recorded_model.split(",") if each]
        models: set[str] = set()
        for row in datasets.read_jsonl(self.options.planner.file):
            if not {"model", "category", "task_id", "turns", "v3_task"} <= set(row):
                raise EvalError(f"{self.options.planner.file}: a row is no recorded trajectory; {RECORDED} has some")
            models.add(row["model"])
            category = f"multi_turn_{row['category']}"
            if category in self._categories and row["task_id"] in rows and (not wanted or row["model"] in wanted):
                task = task_of(rows[row["task_id"]], other=row["v3_task"])
                if self.options.own.then and not task.playable:
                    continue  # no planner can call the tools that the task wants: they are gone
                facts = {"model": row["model"]}
                name = f"{task.id}:{row['model']}"
                yield Case(name, (task, row), group=category, facts=facts, unit=task.id, tools=self._whose)
        if unknown := sorted(set(wanted) - models):
            raise EvalError(f"--recorded-model {','.join(unknown)}: there are calls of {', '.join(sorted(models))}")

    async def run_case(self, case: Case) -> JsonObject:
        """Play a task."""
        task, own = case.data[0], self.options.own
        is_recorded = self.options.planner.kind == "recorded" and not own.then
        stage = Stage(task, own.tools, alone=own.alone or (is_recorded and own.tools in APART))
        match self.options.planner.kind:
            case "recorded" if own.then:
                return await by_record_first(stage, self.options, row=case.data[1])
            case "recorded":
                return await by_record(stage, self.options, row=case.data[1], unchecked=own.unchecked)
            case "model":
                return await by_model(stage, self.options)
        if own.sabotage:
            return await spoilt(task, self.options, first=case.data[1])
        return await by_truth(stage, self.options)

    def passed(self, record: Record) -> bool:
        """Return whether the plan is officially valid."""
        return bool(record.values["valid"])

    def is_random(self) -> bool:
        """Return true with a model, and where the seed makes up answers or chooses how the truth is spoilt."""
        return super().is_random() or self._whose == "simulated" or self.options.own.sabotage

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return the planner's tables and the verdict's agreement with the official score; write the plans out."""
        if self.options.own.tools.startswith("agent"):
            return acting.summary(records, self._ruled() if self.options.own.tools == "agent" else [acting.APART_NOTE])
        made = self._summary(records)
        if self.options.own.sabotage:
            return made
        return replace(made, figures=[*made.figures, *agreement.tables(records)])

    def _summary(self, records: Sequence[Record]) -> Summary:
        if self.options.own.then:
            for name, some in by_group(records, key="model").items():
                write_results(some, self.options.out / "result" / folder_name(name))
            return retried_summary(records)
        if self.options.planner.kind == "recorded":
            if self._whose == "real":
                return recorded_summary(records, unchecked=self.options.own.unchecked)
            return Summary([by_recorded_model(records), *official_errors(records)], notes=self._ruled())
        write_results(records, self.options.out / "result")
        if self.options.planner.kind == "model":
            return model_summary(records)
        if self._whose == "simulated":
            return Summary([*official_errors(records)], notes=self._ruled())
        return sabotage_summary(records) if self.options.own.sabotage else truth_summary(records)

    def _ruled(self) -> list[str]:
        return [] if "judge" in self.options.model_names() else [JUDGED_BY_RULE]

    @property
    def _whose(self) -> Tools:
        return "real" if self.options.own.tools == "real" else "simulated"

    def others(self) -> Mapping[str, str]:
        """Return the model that plans on after recorded trajectories."""
        return {"then": self.options.own.then} if self.options.own.then else {}

    def tell(self, record: Record) -> str:
        """Return the official verdict and the judge's verdict on each turn."""
        values = record.values
        turns = "".join("+" if each else "-" for each in values["accepted"])
        word = "valid" if values["valid"] else values["official"]
        causes = [values[key] for key in ("state_cause", "verdict_cause", "recorded_cause") if values.get(key)]
        by_turn = enumerate(values.get("by_turn", []), 1)
        causes += [f"turn {number}: {turn['cause']}" for number, turn in by_turn if turn["cause"]]
        return "; ".join([f"{word}, turns {turns}, {values['tool_calls']} calls", *causes])


def _check_models(options: Options) -> None:
    """Refuse models that would never be called, and a second planner that would never be used.

    Raises:
        EvalError: There is such a model.
    """
    then, names = options.own.then, options.model_names()
    if then and options.planner.kind != "recorded":
        raise EvalError("--then: it goes on after recorded calls: give --planner recorded:FILE")
    if then and not {"judge", "checklist"} <= set(names):
        raise EvalError("--then plans again what a judge refuses: give --model MODEL, who judges by a checklist")
    if options.own.tools == "model" and "simulator" not in names:
        raise EvalError("--tools model: nobody simulates: give --model MODEL or --role-model simulator=MODEL")
    if names and not then and options.planner.kind != "model" and options.own.tools == "real":
        raise EvalError(
            f"planner {options.planner}: rule checks judge it and no model is asked; leave out --planner to let "
            "--model plan, give --then MODEL with recorded calls, or simulated --tools"
        )


def truth_summary(records: Sequence[Record]) -> Summary:
    """Summarise the ground truth as planner: everything must be valid."""
    table = Table(
        "Ground truth as planner", ["category", "officially valid", "all turns accepted", "tasks"], note=_ORACLE
    )
    for name, some in groups(records):
        table.add(name, valid(some), rate(some, _all_accepted), len(some))
    errata = [line for record in records if record.done for line in record.values["errata"]]
    notes = [f"allowed, because the ground truth does it: {line}" for line in errata]
    return Summary([table], [Expectation("every task is officially valid", valid(records).value == 1)], notes)


def sabotage_summary(records: Sequence[Record]) -> Summary:
    """Summarise the judge by kind of sabotage."""
    kinds = {kind: [turn for turn in _turns(records) if turn["kind"] == kind] for kind in KINDS}
    table = Table(
        "The rule judge on spoilt first attempts",
        ["first attempt", "sensitivity (failed, where wrong)", "specificity (accepted, where right)", "turns"],
        note=f"{_ORACLE} Right or wrong is the real classes' word on the attempt, not the kind's: a call made twice "
        "may change nothing, two calls may change places.",
    )
    rungs = rungs_of(records)
    expectations = [Expectation("every task ends officially valid", valid(records).value == 1)]
    for kind, turns in [*kinds.items(), ("all", _turns(records))]:
        found, spared = caught(turns, rungs), cleared(turns, rungs)
        table.add(kind, found if found.n else None, spared if spared.n else None, len(turns))
        for word, rated in (("sensitivity", found), ("specificity", spared)):
            if rated.n:
                expectations.append(Expectation(f"{kind}: {word} of {WANTED:.0%}", rated.value >= WANTED))
    ended = Table(
        "Tasks after the second attempt", ["category", "officially valid", "all turns accepted"], note=_ORACLE
    )
    for name, some in groups(records):
        ended.add(name, valid(some), rate(some, _all_accepted))
    wrong = [turn for turn in _turns(records) if turn["done"] != turn["accepted"]]
    notes = [f"misjudged: {turn['task']}, turn {turn['turn']} ({turn['kind']})" for turn in wrong]
    return Summary([table, ended], expectations, notes)


def recorded_summary(records: Sequence[Record], *, unchecked: bool) -> Summary:
    """Summarise recorded trajectories: states and verdicts beside the real ones."""
    table = Table(
        "Recorded trajectories through the graph",
        ["model", "state after each turn equal (turns)", "in all turns (tasks)", "verdict as official", "as recorded"],
        note=_ORACLE + (" Any tool and any arguments were let through." if unchecked else ""),
    )
    for name, some in [*by_group(records, key="model").items(), ("all", records)]:
        whole = Counter[str]()
        for record in some:
            if record.done:
                whole.update(same=record.values["same"], turns=record.values["turns"])
        turns = share(whole["same"], whole["turns"], tools="real", rungs=rungs_of(some))
        same = rate(some, lambda record: not record.values["state_cause"])
        today = rate(some, lambda record: record.values["ours"] == record.values["today"])
        was = rate(some, lambda record: record.values["ours"] == record.values["recorded"])
        table.add(name, turns, same, today, was)
    causes = Table("Disagreements and their causes", ["what differs", "cause", "trajectories"])
    words = {"state_cause": "state", "verdict_cause": "verdict", "recorded_cause": "recorded and today's verdict"}
    notes, open_ones = [], 0
    for key, word in words.items():
        for cause, ids in sorted(_causes(records, key).items(), key=lambda each: -len(each[1])):
            causes.add(word, cause, len(ids))
            notes.append(f"{word}: {cause}: {', '.join(ids)}")
            open_ones += len(ids) if cause == UNEXPLAINED else 0
    return Summary([table, causes], [Expectation("every disagreement is explained", open_ones == 0)], notes)


def by_recorded_model(records: Sequence[Record]) -> Table:
    """Summarise recorded plans on simulated tools: what is left of them, scored officially."""
    table = Table("Recorded plans on simulated tools", ["model", "officially valid", "all turns accepted"])
    for name, some in [*by_group(records, key="model").items(), ("all", records)]:
        table.add(name, valid(some), rate(some, _all_accepted))
    return table


def model_summary(records: Sequence[Record]) -> Summary:
    """Summarise a live planner: officially valid tasks, and what they took."""
    table = Table("Multi-turn accuracy", ["category", "officially valid", "attempts a task", "tool calls a task"])
    for name, some in groups(records):
        attempts = mean(some, lambda record: record.values["attempts"])
        table.add(name, valid(some), attempts, mean(some, lambda record: record.values["tool_calls"]))
    return Summary([table, *official_errors(records)], notes=list(unjudged(records)))


def retried_summary(records: Sequence[Record]) -> Summary:
    """Summarise recorded first attempts, and what a judge's feedback and a live model made of them."""
    table = Table(
        "Recorded first attempts, retried by a live model",
        ["recorded model", "as recorded", "rehearsed", "attempts a task", "tool calls a task"],
        note="As recorded: today's official verdict on the recorded calls. Old tasks whose tools are gone stand aside.",
    )
    for name, some in [*by_group(records, key="model").items(), ("all", records)]:
        planned = rate(some, lambda record: bool(record.values["planned"]))
        attempts = mean(some, lambda record: record.values["attempts"])
        table.add(name, planned, valid(some), attempts, mean(some, lambda record: record.values["tool_calls"]))
    return Summary([table, *official_errors(records)])


def unjudged(records: Sequence[Record]) -> Iterator[str]:
    """Yield a note where no model judged."""
    done = [record for record in records if record.done]
    if done and not any("judge" in record.values["usage"] for record in done):
        yield "not judged: no model was given for checklist and judge (--model), so there was no retry"


def official_errors(records: Sequence[Record]) -> Iterator[Table]:
    """Yield a table of the errors that the official checker finds."""
    errors = Table("Official errors", ["error", "tasks"])
    for error, count in Counter(record.values["official"] for record in records if record.done).most_common():
        if error:
            errors.add(error, count)
    if errors.rows:
        yield errors


def groups(records: Sequence[Record]) -> Iterator[tuple[str, Sequence[Record]]]:
    """Yield records by category, then all where there are several."""
    found = by_group(records)
    yield from found.items()
    if len(found) > 1:
        yield "all", records


def valid(records: Iterable[Record]) -> Measured:
    """Return the share of tasks that the official checker calls valid."""
    return rate(records, lambda record: bool(record.values["valid"]))


def caught(turns: Iterable[Mapping[str, Any]], rungs: Mapping[str, int]) -> Measured:
    """Return the sensitivity: of the attempts that are wrong, the share that the judge fails."""
    return _share(turns, done=False, of=lambda turn: not turn["accepted"], rungs=rungs)


def cleared(turns: Iterable[Mapping[str, Any]], rungs: Mapping[str, int]) -> Measured:
    """Return the specificity: of the attempts that are right, the share that the judge accepts."""
    return _share(turns, done=True, of=lambda turn: turn["accepted"], rungs=rungs)


def _share(
    turns: Iterable[Mapping[str, Any]],
    *,
    done: bool,
    of: Callable[[Mapping[str, Any]], bool],
    rungs: Mapping[str, int],
) -> Measured:
    some = [turn for turn in turns if turn["done"] is done]
    return share(sum(map(of, some)), len(some), tools="real", rungs=rungs)


def write_results(records: Iterable[Record], folder: Path) -> None:
    """Write the plans as the official evaluator reads them: a file a category, a line a task."""
    for name, some in by_group(record for record in records if record.done).items():
        folder.mkdir(parents=True, exist_ok=True)
        plans = [{"id": record.id.partition(":")[0], "result": record.values["plan"]} for record in some]
        lines = [json.dumps(each, ensure_ascii=False) for each in plans]
        (folder / f"BFCL_v4_{name}_result.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _turns(records: Iterable[Record]) -> list[JsonObject]:
    return [{**turn, "task": record.id} for record in records if record.done for turn in record.values["turns"]]


def _all_accepted(record: Record) -> bool:
    return all(record.values["accepted"])


def _causes(records: Iterable[Record], key: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for record in records:
        if record.done and record.values[key]:
            found.setdefault(record.values[key].partition(": turn")[0], []).append(record.id)
    return found


SUITE = MultiTurn
