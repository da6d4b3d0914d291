"""`gate`: forward execution (ToolGate, algorithm 1) beside the rehearsal and a plain loop, and without P or Q."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from langchain_core.language_models import BaseChatModel

from gecko_graph.models.recorded import RecordedModel
from gecko_graph.state import JsonObject, Role

from ..bfcl import ALL_MULTI_TURN, LONG_CONTEXT, MULTI_TURN, package
from ..bfcl.arms import judging, knobs, recorded_steps, seen_in
from ..bfcl.gated import ARMS, GATED, play_arm
from ..bfcl.official import check
from ..bfcl.oracle import as_json, truth_of
from ..bfcl.rehearse import Player, plan_of
from ..bfcl.simulated import Stage, ruled
from ..bfcl.tasks import FILE, Task, read_tasks, task_of
from ..harness.datasets import read_jsonl
from ..harness.figures import Table, mean, rate
from ..harness.options import Options
from ..harness.rehearsed import rehearsed
from ..harness.suite import Case, EvalError, Expectation, Record, Suite, Summary, by_group
from .ablation import dollars, seconds, tokens

PAPER = {
    "hallucinated_value": ("P: value or entity hallucination", 8.4),
    "schema": ("P: schema and format", 5.1),
    "state_dependency": ("P: state dependency missing", 4.1),
    "empty": ("Q: empty or null", 6.3),
    "semantic": ("Q: semantic mismatch", 3.7),
    "state_update": ("Q: inconsistent update", 1.8),
}
"""Table 3: refusals in percent of the tool invocations on MCP-Universe."""
_DONE = {"say": "Done."}


class Gate(Suite):
    """Forward execution on BFCL's multi-turn tasks by contract, its ablations, the rehearsal, and a plain loop.

    All arms play the same tasks on the same simulated tools; the plan that comes out runs on the real classes and is
    scored officially. Without a model the ground truth or recorded calls plan: forward execution takes each as a need,
    and what was written after a refused call as the next try; the rehearsal is judged by rule and not retried. That
    shows what the gate refuses and what it costs, not the accuracy of a method.
    """

    name = "gate"
    tools = "simulated"
    planner = "ground-truth"
    examples = (
        "--limit 20",
        "--planner recorded:../shared/data/bfcl_multiturn_recorded.jsonl.gz --limit 40",
        "--model openai:gpt-5-mini --limit 20 --arms toolgate,GATS",
    )

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add categories and arms."""
        add = parser.add_argument
        text = f"of {', '.join(MULTI_TURN)}, or {ALL_MULTI_TURN} for the first three ({MULTI_TURN[0]})"
        add("--category", default=MULTI_TURN[0], metavar="A,B", help=text)
        add("--arms", default=",".join(ARMS), metavar="A,B", help=f"of {', '.join(ARMS)} (all)")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        package.version()
        named = options.own.category.split(",")
        short = [name for name in MULTI_TURN if name != LONG_CONTEXT] if ALL_MULTI_TURN in named else []
        self._categories = [*short, *(name for name in named if name in MULTI_TURN)]
        self._arms = [arm for arm in options.own.arms.split(",") if arm]
        if unknown := [arm for arm in self._arms if arm not in ARMS]:
            raise EvalError(f"--arms {unknown[0]}: expected some of {', '.join(ARMS)}")

    def cases(self) -> Iterator[Case]:
        """Yield a case for each task and arm."""
        for task, row, name in self._tasks():
            for arm in self._arms:
                facts = {"arm": arm, "task": name}
                yield Case(f"{name}@{arm}", (task, row, arm), group=task.category, facts=facts, unit=task.id)

    def _tasks(self) -> Iterator[tuple[Task, Any, str]]:
        if self.options.planner.kind != "recorded":
            for task in read_tasks(self.options.data, self._categories):
                yield task, None, task.id
            return
        rows = {row["id"]: row for row in read_jsonl(self.options.dataset(FILE))}
        assert self.options.planner.file is not None
        for row in read_jsonl(self.options.planner.file):
            if f"multi_turn_{row['category']}" in self._categories and row["task_id"] in rows:
                task = task_of(rows[row["task_id"]], other=row["v3_task"])
                yield task.begin(len(row["turns"])), row, f"{task.id}:{row['model']}"

    async def run_case(self, case: Case) -> JsonObject:
        """Play a task by an arm."""
        task, row, arm = case.data
        stage = Stage(task, "contract")
        if self.options.planner.kind == "model":
            context = self.options.context(**stage.knobs)
            played = await play_arm(stage, arm, Player(self.options.speakers(), context, cache(stage.toolkit)))
        else:
            turns = written_turns(task, row)
            stage.redrawn.seen = seen_of(task, row)
            models: dict[Role, BaseChatModel] = judging(self.options)
            messages = [{"planner": [[*turn, _DONE]]} for turn in turns]
            models["planner"] = RecordedModel(turns=messages, fill=stage.redrawn.fill)
            toolkit = cache(stage.truthful if row is None else stage.toolkit)
            checks = None if "judge" in models else ruled(task)
            player = Player(models, knobs(self.options, 0, **stage.knobs), toolkit, checks)
            played = await play_arm(stage, arm, player, [single_calls(turn) for turn in turns])
        real = stage.real(played)
        verdict = check(task, plan_of(real))
        record = rehearsed(*(each.rehearsal for each in real))
        if not self.options.model_names():
            del record["usage"]
        steps = [step for each in real for step in each.chosen["steps"]]
        rejected: Counter[str] = Counter()
        for each in real:
            counts: Any = each.rehearsal.get("rejected", {})
            rejected.update(counts)
        failed = [step for step in steps if step.get("outcome", {}).get("status") == "error"]
        return {
            **record,
            "valid": verdict.valid,
            "official": verdict.error,
            "answered": [each.accepted for each in real],
            "steps": len(steps),
            "failed": len(failed) + sum("complaints" in step for step in steps),
            "rejected": dict(rejected),
            "stops": [each.rehearsal["verdict"]["feedback"][:200] for each in real if not each.accepted],
        }

    def passed(self, record: Record) -> bool:
        """Return whether the plan is officially valid."""
        return bool(record.values["valid"])

    def tell(self, record: Record) -> str:
        """Return the official verdict, and why turns were not answered."""
        word = "valid" if record.values["valid"] else record.values["official"]
        return "; ".join([f"{word}, {record.values['steps']} calls tried", *record.values["stops"][:3]])

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return the arms beside each other, and table 3."""
        by_arm = by_group(records, key="arm")
        arms = {arm: by_arm[arm] for arm in self._arms if arm in by_arm}
        live = self.options.planner.kind == "model"
        figures = [beside(arms, live=live), table_3({arm: some for arm, some in arms.items() if arm in GATED})]
        expected = []
        if self.options.planner.kind == "ground-truth" and "toolgate" in arms:
            whole = rate(arms["toolgate"], self.passed)
            expected = [Expectation("forward execution refuses no call of the truth: 97 % valid", whole.value >= 0.97)]
        return Summary(figures, expected, [] if live else [NOT_LIVE])


NOT_LIVE = (
    "not measured: accuracy, tokens and cost of the method, which need a model (--model). Here calls were written "
    "down, and forward execution ends a turn where none that follows a refused call is accepted"
)


def written_turns(task: Task, row: Mapping[str, Any] | None) -> list[list[JsonObject]]:
    """Return the planner's messages by turn, without its last: the truth's calls, or the recorded ones."""
    if row is None:
        return [[task.read(call) for call in turn.truth] for turn in task.turns]
    return [recorded_steps(task, turn)[:-1] for turn in row["turns"]]


def seen_of(task: Task, row: Mapping[str, Any] | None) -> list[Any]:
    """Return what the calls' writer has seen, by turn."""
    if row is None:
        return seen_in([turn.truth for turn in task.turns], truth_of(task).answers, task)
    calls = [[call for step in turn["steps"] for call in step] for turn in row["turns"]]
    return seen_in(
        calls, [[as_json(each) for step in turn["tool_results"] for each in step] for turn in row["turns"]], task
    )


def single_calls(messages: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the calls of a turn's messages, in order."""
    return [call for each in messages for call in each.get("calls", [each])]


def beside(arms: Mapping[str, Sequence[Record]], *, live: bool) -> Table:
    """Return what each arm's tasks reached and took (tables 1 and 2, figure 2)."""
    columns = ["", "officially valid", "turns answered", "calls tried a task", "of them refused or failed", "seconds"]
    table = Table("Forward execution beside others", [*columns, "tokens", "dollars"] if live else columns)
    table.note = "Paper, figure 2 (ToolBench, GPT-5.2): steps a task 6.78 to 4.21." if live else ""
    for arm, records in arms.items():
        turns = [turn for record in records if record.done for turn in record.values["answered"]]
        cells: list[Any] = [arm, rate(records, lambda record: bool(record.values["valid"]))]
        cells.append(f"{sum(turns)} of {len(turns)}")
        cells += [mean(records, lambda record, key=key: record.values[key]) for key in ("steps", "failed")]  # type: ignore[misc]
        cells.append(seconds(records))
        table.add(*cells, *([mean(records, tokens), dollars(records)] if live else []))
    return table


def table_3(arms: Mapping[str, Sequence[Record]]) -> Table:
    """Return refusals by category, in percent of the calls tried (table 3)."""
    table = Table("Refusals by category, in percent of the calls tried", ["", *arms, "paper: MCP-Universe"])
    for key, (words, percent) in PAPER.items():
        cells: list[Any] = [words]
        for records in arms.values():
            done = [record for record in records if record.done]
            tried = sum(record.values["steps"] for record in done)
            found = sum(record.values["rejected"].get(key, 0) for record in done)
            cells.append(f"{100 * found / tried:.1f} ({found} of {tried})" if tried else "-")
        table.add(*cells, f"{percent:.1f}")
    return table


SUITE = Gate
