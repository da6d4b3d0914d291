"""`gate`: forward execution (ToolGate, algorithm 1), by default and strict."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver

from gecko_graph import Models, Toolkit, ToolSpec
from gecko_graph.graph import Gecko
from gecko_graph.state import JsonObject
from gecko_graph.toolgate import graph as toolgate
from gecko_graph.toolgate.channels import ToolGateRecord
from gecko_graph.world.ladder import simulator

from ..bfcl import MULTI_TURN, package
from ..bfcl.arms import judging, knobs, recorded_steps, seen_of, speaker
from ..bfcl.classes import methods
from ..bfcl.forward import LIES, RIGHT, Follower, Service, stopped
from ..bfcl.official import check
from ..bfcl.rehearse import Played, Player, plan_of, play_turns
from ..bfcl.simulated import Stage
from ..bfcl.tasks import CATEGORY_HELP, Task, categories_of, read_recorded, read_tasks
from ..harness.figures import Case, Record, Table, mean, rate
from ..harness.options import EvalError, Options
from ..harness.suite import Expectation, Suite, Summary, by_group, rehearsed

STRICT, LYING = "strict", "lying"
ARMS = ("toolgate", STRICT)
READS = re.compile(
    r"(cat|diff|du|grep|ls|pwd|sort|tail|wc|gallon_to_liter|liter_to_gallon)$|\w+_get_login_status$"
    r"|(check|compute|display|estimate|filter|find|get|list|notify|retrieve|search|verify|view)(_|[A-Z]|$)"
)
"""Names of tools that change nothing, or only the position of a random source; all tools of MathAPI are such too."""

PAPER = {
    "hallucinated_value": ("P: value or entity hallucination", 8.4),
    "schema": ("P: schema and format", 5.1),
    "state_dependency": ("P: state dependency missing", 4.1),
    "policy": ("P: a written policy (ours)", None),
    "empty": ("Q: empty or null", 6.3),
    "semantic": ("Q: semantic mismatch", 3.7),
    "state_update": ("Q: inconsistent update", 1.8),
}
"""Table 3: refusals in percent of the tool invocations on MCP-Universe; None if it has no such row."""


class Gate(Suite):
    """Forward execution on BFCL's multi-turn tasks by contract: by default, and strict.

    Both arms play the same tasks on the same simulated tools; the resulting plan is run on the real classes and scored
    officially (the rehearsal on them is `bfcl --tools contract`). Without a model the ground truth or recorded calls
    plan: each call is taken as a need, and the calls recorded after a refused one as the next tries. That shows what
    the gate refuses and what it costs, not the accuracy of a method.
    """

    name = "gate"
    tools = "simulated"
    planner = "ground-truth"
    examples = (
        "--limit 20",
        "--planner recorded:../shared/data/bfcl_multiturn_recorded.jsonl.gz --limit 40",
        "--service lying --arms toolgate,strict",
        "--model openai:gpt-5-mini --limit 20 --arms toolgate",
    )

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--category", default=MULTI_TURN[0], metavar="A,B", help=CATEGORY_HELP)
        add(
            "--service",
            choices=("right", LYING),
            default="right",
            help="lying: a quarter of the answers is wrong on purpose",
        )
        add("--arms", default=",".join(ARMS), metavar="A,B", help=f"any of {', '.join(ARMS)} (all)")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        package.version()
        self._categories = categories_of(options.own.category)
        self._arms = [arm for arm in options.own.arms.split(",") if arm]
        if unknown := [arm for arm in self._arms if arm not in ARMS]:
            raise EvalError(f"--arms {unknown[0]}: expected some of {', '.join(ARMS)}")

    def cases(self) -> Iterator[Case]:
        for task, row, name in self._tasks():
            for arm in self._arms:
                facts = {"arm": arm, "task": name}
                yield Case(f"{name}@{arm}", (task, row, arm), group=task.category, facts=facts, unit=task.id)

    def _tasks(self) -> Iterator[tuple[Task, Any, str]]:
        if self.options.planner.kind != "recorded":
            yield from ((task, None, task.id) for task in read_tasks(self.options.data, self._categories))
            return
        for task, row in read_recorded(self.options.data, self._categories, self.options.planner.file):
            yield task.begin(len(row["turns"])), row, f"{task.id}:{row['model']}"

    async def run_case(self, case: Case) -> JsonObject:
        task, row, arm = case.data
        service = Service(f"{self.options.seed} {task.id}") if self.options.own.service == LYING else None
        stage = Stage(task, "contract")
        if self.options.planner.kind == "model":
            context = self.options.context(**stage.knobs)
            player = Player(self.options.speakers(), context, cache(stage.toolkit))
            played = await play_arm(stage, arm, player, service=service)
        else:
            turns = written_turns(task, row)
            stage.redrawn.seen = seen_of(task, row)
            spoken = speaker([[*turn, {"say": "Done."}] for turn in turns], fill=stage.redrawn.fill)
            toolkit = cache(stage.truthful if row is None else stage.toolkit)
            player = Player({**judging(self.options), **spoken}, knobs(self.options, 0, **stage.knobs), toolkit)
            played = await play_arm(stage, arm, player, [single_calls(turn) for turn in turns], service)
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
            **({"said": stopped(service.said, steps)} if service else {}),
            "stops": [each.rehearsal["verdict"]["feedback"][:200] for each in real if not each.accepted],
        }

    def summarise(self, records: Sequence[Record]) -> Summary:
        by_arm = by_group(records, key="arm")
        arms = {arm: by_arm[arm] for arm in self._arms if arm in by_arm}
        live = self.options.planner.kind == "model"
        figures = [beside(arms), table_3(arms)]
        if self.options.own.service == LYING:
            figures.append(what_is_stopped(arms))
        expected = []
        if self.options.planner.kind == "ground-truth" and "toolgate" in arms and self.options.own.service != LYING:
            whole = rate(arms["toolgate"], is_valid)
            expected = [Expectation("forward execution refuses no call of the truth: 97 % valid", whole.value >= 0.97)]
        return Summary(figures, expected, [] if live else [NOT_LIVE])


def is_valid(record: Record) -> bool:
    return bool(record.values["valid"])


NOT_LIVE = (
    "not measured: accuracy, tokens and cost of the method, which need a model (--model). Here calls were written "
    "down, and forward execution leaves out a call where none that follows it is accepted in its place"
)


def written_turns(task: Task, row: Mapping[str, Any] | None) -> list[list[JsonObject]]:
    """Return the planner's messages by turn, without the last one: the truth's calls, or the recorded ones."""
    if row is None:
        return [[task.read(call) for call in turn.truth] for turn in task.turns]
    return [recorded_steps(task, turn)[:-1] for turn in row["turns"]]


def single_calls(messages: Sequence[JsonObject]) -> list[JsonObject]:
    return [call for each in messages for call in each.get("calls", [each])]


def beside(arms: Mapping[str, Sequence[Record]]) -> Table:
    """Return the success and cost of each arm's tasks (tables 1 and 2, figure 2)."""
    columns = ["", "officially valid", "turns answered", "calls tried a task", "of them refused or failed", "seconds"]
    table = Table("Forward execution, by arm", columns)
    for arm, records in arms.items():
        turns = [turn for record in records if record.done for turn in record.values["answered"]]
        cells: list[Any] = [arm, rate(records, is_valid)]
        cells.append(f"{sum(turns)} of {len(turns)}")
        cells += [mean(records, lambda record, key=key: record.values[key]) for key in ("steps", "failed")]  # type: ignore[misc]
        table.add(*cells, mean(records, lambda record: record.seconds, form="seconds"))
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
        table.add(*cells, "-" if percent is None else f"{percent:.1f}")
    return table


def what_is_stopped(arms: Mapping[str, Sequence[Record]]) -> Table:
    """Return which of a service's answers each arm refuses, by their fault."""
    table = Table("Answers of the lying service that were refused", ["", RIGHT, *LIES])
    for arm, records in arms.items():
        said = [record.values["said"] for record in records if record.done]
        cells = []
        for kind in (RIGHT, *LIES):
            given, refused = (sum(each.get(kind, [0, 0])[at] for each in said) for at in (0, 1))
            cells.append(f"{refused} of {given}")
        table.add(arm, *cells)
    return table


def answered(tool: ToolSpec) -> ToolSpec:
    """Return a tool without its documented result schema, which does not match the classes' answers."""
    reads = READS.match(tool.name) or tool.name in methods("MathAPI")
    return replace(tool, result=None, effect="read" if reads else tool.effect)


async def play_arm(
    stage: Stage,
    arm: str,
    player: Player,
    written: Sequence[Sequence[JsonObject]] = (),
    service: Service | None = None,
) -> list[Played]:
    """Play a task in an arm, turn by turn on one thread; `written` are the calls of each turn, without a live model."""

    def graph(turn: int, saver: BaseCheckpointSaver[Any]) -> Gecko:
        models = dict(player.models)
        if written:
            follower: BaseChatModel = Follower(calls=list(written[turn]), fill=stage.redrawn.fill)
            models |= dict.fromkeys(("reasoner", "reranker", "planner"), follower)
        tools = Toolkit(map(answered, player.toolkit(turn)), lets={})
        return toolgate.compose(
            tools,
            models=Models().replace(**models),
            default=player.context,
            checkpointer=saver,
            replace={} if service is None else {"simulator": partial(simulator, toolkit=tools, rungs=service.rungs)},
            strict=arm == STRICT,
        )

    said = [turn.said for turn in stage.task.turns]
    return await play_turns(stage.task.id, said, stage.start, graph, finish=gated_turn, after=stage.advance)


def gated_turn(run: Mapping[str, Any], before: JsonObject) -> Played:
    """Return a turn of forward execution in the form of a rehearsal: one attempt, accepted if it was answered."""
    record: ToolGateRecord = run["record"]
    word = "accepted" if record["status"] == "answered" else "failed"
    verdict: Any = {"status": word, "score": float(word == "accepted"), "items": [], "feedback": record["reason"]}
    attempt = {**record, "number": 1, "stop_reason": record["reason"], "verdict": verdict}
    rehearsal: Any = {**record, "verdict": verdict, "attempts": [attempt], "chosen": 1}
    return Played(rehearsal, before, run["task_state"])


SUITE = Gate
