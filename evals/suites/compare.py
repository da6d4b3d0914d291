"""`compare`: the rehearsal beside its parts, fewer retries and other methods: score, tokens, tool calls in one table.

A method is what builds a graph with the rehearsal's input and output: the rehearsal, a part of it taken out, a
baseline. One loop plays any method on any task of `baselines/problems.py`, and an independent word says what is solved.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver

from gecko_graph import GeckoContext, Models
from gecko_graph.graph import Gecko
from gecko_graph.state import JsonObject, Role

from ..baselines.methods import BASELINES, CRITICAL, PARTS, Create, without
from ..baselines.problems import MOST_CALLS, Problem, add_set, problems
from ..bfcl.rehearse import play_turns
from ..harness.figures import Case, Measured, Published, Record, Table, mean, rate
from ..harness.options import EvalError, Options
from ..harness.suite import Suite, Summary, by_group, rehearsed

WITHOUT: Mapping[str, Create] = {f"without {part}": without(part) for part in PARTS}
METHODS: Mapping[str, Create] = {"gats": without(), **WITHOUT, **BASELINES}

PAPER = {"gats": 0.72, "without validation": 0.705, "without state": 0.68, "without feedback": 0.615}
"""Figure 4 (a): BFCL multi-turn base, GPT-4o."""

PUBLISHED = {
    "plain": (0.570, 80.3, 6.70),
    "reflexion": (0.600, 102.9, 6.62),
    "merge-to-one": (0.535, 111.2, 5.88),
    "self-refine": (0.590, 259.6, 23.88),
    "best-of-n": (0.585, 365.8, 13.78),
    "gats": (0.650, 238.2, 7.76),
}
"""Score, thousands of tokens, tool calls: tau2-bench airline, GPT-5-mini (the project's page)."""


NOT_LIVE = (
    "not measured: accuracy, tokens and cost of the method, which need a model (--model). Here plans are written "
    "down and rule checks from the real end state judge, so the numbers show what a part does, not how good a model is"
)


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to run all tasks: a method, and how many retries it has."""

    name: str
    create: Create
    retries: int | None = None


class Compare(Suite):
    """GATS beside itself without a part or with fewer retries, and beside other ways to use more computing.

    All play the same tasks over the same tools. Whether a task was solved is an independent word, never a method's own:
    the scenario's checks on a replay of the plan, or BFCL's official checker. With --model a model plans and judges;
    without one the plans are written down (the ground truth, its first attempt spoilt), rule checks from the end state
    judge, and methods that need a critic or a prompt of their own are left out.
    """

    name = "compare"
    tools = "simulated"
    planner = "ground-truth"
    planners = ("ground-truth", "model")
    examples = (
        "--model openai:gpt-5-mini --at-once 8",
        "--arms 'gats,without validation,without state,without feedback' --tasks multi_turn_base --retries 0..3",
        "--arms gats,plain --tasks multi_turn_base --limit 20 --model openai:gpt-5-mini",
    )

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add tasks, methods, and how many retries are made."""
        add_set(parser)
        add = parser.add_argument
        add("--arms", default=",".join(METHODS), metavar="A,B", help=f"of {', '.join(METHODS)} (all)")
        add("--retries", default="", metavar="N..M", help="arms of gats with so many retries, such as 0..3 (none)")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        mute = set() if is_live(options) else {*CRITICAL, "merge-to-one", "create_agent"}
        named = arms_of(options.own.arms, options.own.retries)
        self._arms = [arm for arm in named if arm.name not in mute]
        self._unmeasured = [arm.name for arm in named if arm.name in mute]
        if not self._arms:
            raise EvalError(f"--arms {options.own.arms}: these need a model: --model provider:name")

    def cases(self) -> Iterator[Case]:
        """Yield a case for each task and arm; `--limit` counts tasks."""
        for problem in problems(self.options):
            for arm in self._arms:
                facts, data = {"task": problem.id, "arm": arm.name}, (problem, arm)
                yield Case(f"{problem.id}@{arm.name}", data, problem.group, facts, problem.id, problem.tools)

    async def run_case(self, case: Case) -> JsonObject:
        """Play a task by an arm."""
        problem, arm = case.data
        context = knobs(self.options, **({} if arm.retries is None else {"max_retries": arm.retries}))
        return await contend(problem, arm.create, self.options, context=context)

    def passed(self, record: Record) -> bool:
        """Return whether the independent verdict is solved."""
        return bool(record.values["solved"])

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return one table per set of tasks, and the published one."""
        live = is_live(self.options)
        figures: list[Table] = [
            costs(f"Comparison: {group}", by_group(some, key="arm"), live=live)
            for group, some in by_group(records).items()
        ]
        notes = [f"not measured: {name} needs a model (--model)" for name in self._unmeasured]
        return Summary([*figures, published()], notes=notes) if live else Summary(figures, notes=[NOT_LIVE, *notes])


def arms_of(named: str, retries: str) -> list[Arm]:
    """Return the arms that the options name.

    Raises:
        EvalError: An unknown method, or retries that are not a range.
    """
    names = [name for name in named.split(",") if name]
    if unknown := [name for name in names if name not in METHODS]:
        raise EvalError(f"--arms {unknown[0]}: the methods are {', '.join(METHODS)}")
    arms = [Arm(name, METHODS[name]) for name in names]
    if retries:
        first, _, last = retries.partition("..")
        if not (first.isdigit() and (last or first).isdigit()) or int(first) > int(last or first):
            raise EvalError(f"--retries {retries}: write a number or a range such as 0..3")
        counts = range(int(first), int(last or first) + 1)
        arms += [Arm("1 retry" if n == 1 else f"{n} retries", METHODS["gats"], n) for n in counts]
    return arms


def speakers(problem: Problem, options: Options) -> dict[Role, BaseChatModel]:
    """Return the model of each role: the options' models, and what was written down where they name no planner."""
    live = options.speakers()
    if critic := live.get("judge") or live.get("planner"):
        # the planner is also the critic, unless another one is named; a critic writes what it judges by
        live = {"judge": critic, "checklist": critic, **live}
    return live if "planner" in live else {**problem.speakers(options.seed), **live}


def is_live(options: Options) -> bool:
    """Return True where a model plans: only then is what is solved an accuracy."""
    return "planner" in options.model_names()


def knobs(options: Options, **given: Any) -> GeckoContext:
    """Return the knobs of a method: a live planner has the usual number of calls, a written one as many as it needs."""
    return options.context(**({} if is_live(options) else {"max_steps": MOST_CALLS}), **given)


async def contend(problem: Problem, create: Create, options: Options, *, context: GeckoContext) -> JsonObject:
    """Play a task by a method.

    Args:
        problem: The task.
        create: The method.
        options: Who speaks.
        context: The knobs.

    Returns:
        `solved` by the independent word, and what `rehearsed` returns; `usage` where a model was asked.
    """
    models = speakers(problem, options)
    speaking = Models().replace(**models)

    def graph(turn: int, saver: BaseCheckpointSaver[Any]) -> Gecko:
        return create(problem.toolkit(turn), models=speaking, default=context, checkpointer=saver)

    checks = None if "judge" in models else problem.checks  # the oracle's, where no model judges
    played = await play_turns(problem.id, problem.said, problem.state, graph, checklist=checks)
    record = rehearsed(*(each.rehearsal for each in played))
    if not is_live(options):
        record["usage"].pop("planner", None)  # what was written down costs nothing
    if not record["usage"]:
        del record["usage"]
    return {**record, "solved": problem.solved([each.rehearsal for each in played])}


def solved(records: Sequence[Record]) -> Measured:
    """Return the share of tasks solved, by the independent word."""
    return rate(records, lambda record: bool(record.values["solved"]))


def costs(title: str, rows: Mapping[str, Sequence[Record]], *, live: bool) -> Table:
    """Return what each row's tasks reached and cost; without a model, tokens and dollars are not measured."""
    columns = ["", "solved", "tool calls a task", "attempts a task", "seconds a task"]
    table = Table(title, [*columns, "tokens a task", "dollars a task"] if live else columns)
    for name, records in rows.items():
        cells: list[Any] = [name, solved(records)]
        cells += [mean(records, lambda record, key=key: record.values[key]) for key in ("tool_calls", "attempts")]  # type: ignore[misc]
        cells.append(seconds(records))
        if live:
            cells += [mean(records, tokens), dollars(records)]
        table.add(*cells)
    return table


def seconds(records: Sequence[Record]) -> Measured:
    """Return how long a task took."""
    return mean(records, lambda record: record.seconds, form="seconds")


def tokens(record: Record) -> float:
    """Return tokens of all roles, in and out."""
    return float(sum(each["input_tokens"] + each["output_tokens"] for each in record.values["usage"].values()))


def dollars(records: Sequence[Record]) -> Measured | str:
    """Return mean cost, where every model's price is known."""
    spent = [[each["cost"] for each in record.values["usage"].values()] for record in records if record.done]
    if any(cost is None for costs in spent for cost in costs):
        return "price unknown"
    return mean(records, lambda record: sum(each["cost"] for each in record.values["usage"].values()), form="dollars")


def published() -> Table:
    """Return the project's own comparison, and the paper's ablation (figure 4)."""
    heads = ["method", "score", "thousand tokens a task", "tool calls a task", "BFCL multi-turn base, GPT-4o"]
    table = Table("Published: tau2-bench airline, GPT-5-mini; ablation", heads)
    for name in METHODS:
        score, *others = PUBLISHED.get(name, (None, None, None))
        cells: list[Published | None] = [Published(score, "project page") if score else None]
        cells += [Published(each, "project page", "number") if each else None for each in others]
        table.add(name, *cells, Published(PAPER[name], "paper, figure 4 (a)") if name in PAPER else None)
    return table


SUITE = Compare
