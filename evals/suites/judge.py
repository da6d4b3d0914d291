"""`judge`: is an attempt that succeeds called a success, and one that fails a failure? The paper's Table 2."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel

from gecko_graph.state import JsonObject, Role

from ..bfcl import package
from ..bfcl.arms import judging, knobs, recorded_steps, ruled_by_record, speaker
from ..bfcl.official import check
from ..bfcl.rehearse import Player, play
from ..bfcl.simulated import LADDERS, Kind, Stage, ruled
from ..bfcl.tasks import Task, read_recorded, read_tasks
from ..harness.figures import Case, Measured, Published, Record, Table, rate
from ..harness.options import EvalError, Options
from ..harness.suite import Expectation, Suite, Summary, rehearsed

Arm = Literal["real", "simulated"]

CATEGORY = "multi_turn_base"
WANTED = 0.99
SOURCE = "arXiv 2602.19218, table 2"
PAPER: Mapping[Arm, tuple[float, float]] = {"real": (0.967, 0.875), "simulated": (0.913, 0.875)}
"""The paper's true-positive and true-negative rates with an LLM judge."""

_RULES = (
    "The rule judge knows the ground truth's end state and answers: an upper bound for a judge, and a test of the "
    "tools; no accuracy of the method."
)


@dataclass(frozen=True, slots=True)
class Given:
    """An attempt at a whole task that is to be judged.

    Args:
        task: The task.
        turns: The recorded replies of its planner.
        arm: Whose tools answer.
    """

    task: Task
    turns: Sequence[Mapping[str, Any]]
    arm: Arm


class Judge(Suite):
    """The verdict on given attempts at BFCL's multi-turn base tasks, with real and with simulated tools (Table 2).

    The attempts are the ground truth and the recorded trajectories of two models, but for old tasks whose tools are
    gone; the official checker says which succeed. Without a model, rule checks from the real end state judge. With
    --role-model judge=MODEL that model judges by a checklist of its own; with --model it also simulates what no
    contract does.
    """

    name = "judge"
    tools = "none"
    examples = (
        "",
        "--role-model judge=openai:gpt-5-mini --tools real",
        "--model openai:gpt-5-mini --limit 40",
    )

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add whose tools answer, and whether contracts may simulate."""
        add = parser.add_argument
        add("--tools", default="real,simulated", metavar="A,B", help="whose tools answer: real, simulated (both)")
        add("--without-contracts", action="store_true", help="a model or the schema simulates the file system, too")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        package.version()
        self._arms = arms_of(options.own.tools)
        self._models = judging(options)

    def cases(self) -> Iterator[Case]:
        """Yield a case for each attempt and each kind of tools."""
        for task in read_tasks(self.options.data, [CATEGORY]):
            turns = [{"steps": [[call] for call in turn.truth], "text": ["Done."]} for turn in task.turns]
            yield from self._cases(task, turns, "ground truth")
        for task, row in read_recorded(self.options.data, [CATEGORY]):
            if task.playable:
                yield from self._cases(task, row["turns"], row["model"])

    def _cases(self, task: Task, turns: Sequence[Mapping[str, Any]], who: str) -> Iterator[Case]:
        # the official checker's word on the attempt as it was made
        facts = {"by": who, "succeeds": check(task, [turn["steps"] for turn in turns]).valid}
        for arm in self._arms:
            name, given = f"{task.id}:{who}:{arm}", Given(task, turns, arm)
            yield Case(name, given, group=arm, facts=facts, unit=task.id, tools=arm)

    async def run_case(self, case: Case) -> JsonObject:
        """Rehearse the attempt and let it be judged."""
        given: Given = case.data
        task, spoken = given.task, [recorded_steps(given.task, turn) for turn in given.turns]
        player = self._player(given, {**self._models, **speaker(spoken)})
        played = await play(task.begin(len(spoken)), player)
        values = rehearsed(*(each.rehearsal for each in played))
        del values["usage"]["planner"]  # its calls are recorded
        whole = len(played) >= len(task.turns)
        return {**values, "judged": whole and all(each.accepted for each in played)}

    def _player(self, given: Given, models: Mapping[Role, BaseChatModel]) -> Player:
        context = knobs(self.options, 0, **({"ladder": LADDERS["real"]} if given.arm == "real" else {}))
        by_model = "judge" in self._models
        if given.arm == "real":
            checks = None if by_model else ruled_by_record(given.task)
            # nothing is refused: it is the verdict on what was done that is measured, not the validator
            return Player(models, context, cache(given.task.unchecked), checks)
        kind: Kind = "model" if self.options.own.without_contracts else "contract"
        stage = Stage(given.task, kind)
        return Player(models, context, cache(stage.toolkit), None if by_model else ruled(given.task), stage.start)

    def passed(self, record: Record) -> bool:
        """Return whether the verdict is the official checker's."""
        return bool(record.values["judged"] == record.facts["succeeds"])

    def is_random(self) -> bool:
        """Return true with a model, and where simulated tools make values up."""
        return super().is_random() or "simulated" in self._arms

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return table 2: one table for real, one for simulated tools."""
        name = self.options.model_names().get("judge")
        figures = [table for table in (self._table(arm, records, name) for arm in PAPER) if table is not None]
        expectations = []
        real = [record for record in records if record.group == "real"]
        if real and name is None:
            for word, rated in (("positive", positives(real)), ("negative", negatives(real))):
                holds = not rated.n or rated.value >= WANTED
                expectations.append(Expectation(f"rule judge, real tools: true-{word} rate of {WANTED:.0%}", holds))
        return Summary(figures, expectations, list(self._missed(records, name)))

    def _table(self, arm: Arm, records: Sequence[Record], name: str | None) -> Table | None:
        some = [record for record in records if record.group == arm]
        if not some:
            return None
        who = f"judge {name}" if name else "rule judge"
        table = Table(
            f"Table 2: task success and failure, {arm} tools",
            ["judge", "true positive", "true negative"],
            note="" if name else _RULES,
        )
        table.add(who, positives(some), negatives(some))
        for part, chosen in slices(some):
            table.add(f"{who}: {part}", positives(chosen), negatives(chosen))
        table.add("LLM judge, paper", *(Published(value, SOURCE) for value in PAPER[arm]))
        return table

    def _missed(self, records: Sequence[Record], name: str | None) -> Iterator[str]:
        for record in records:
            wrong = record.done and record.values["judged"] != record.facts["succeeds"]
            if wrong and record.group == "real" and name is None:
                word = "success" if record.facts["succeeds"] else "failure"
                complaints = f"{record.values['complaints']} complaints of the validator"
                yield f"a {word} not called so: {record.id} ({complaints})"

    def tell(self, record: Record) -> str:
        """Return what the attempt is and what the verdict calls it."""
        return f"succeeds {record.facts['succeeds']}, judged {record.values['judged']}, {record.values['verdicts']}"


def arms_of(text: str) -> list[Arm]:
    """Return the kinds of tools that `--tools` names.

    Raises:
        EvalError: It names none, or another one.
    """
    named = [name for name in text.split(",") if name]
    if not named or set(named) - set(PAPER):
        raise EvalError(f"--tools {text}: write real, simulated or real,simulated")
    return [arm for arm in PAPER if arm in named]


def positives(records: Sequence[Record]) -> Measured:
    """Return, of the attempts that succeed, the share that is called a success."""
    return rate(records, lambda record: bool(record.values["judged"]), where=lambda record: record.facts["succeeds"])


def negatives(records: Sequence[Record]) -> Measured:
    """Return, of the attempts that fail, the share that is called a failure."""
    return rate(records, lambda record: not record.values["judged"], where=lambda record: not record.facts["succeeds"])


def slices(records: Sequence[Record]) -> Iterator[tuple[str, list[Record]]]:
    """Yield records by planner; and, of simulated tools, those that contracts answered alone."""
    for who in dict.fromkeys(record.facts["by"] for record in records):
        yield f"attempts of {who}", [record for record in records if record.facts["by"] == who]
    if any(record.tools == "simulated" for record in records):
        alone = [record for record in records if record.done and set(record.values["rungs"]) <= {"contract"}]
        yield "contracts answered all calls", alone
        yield "other rungs answered some", [record for record in records if record not in alone]


SUITE = Judge
