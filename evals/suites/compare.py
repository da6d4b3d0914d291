"""`compare`: the rehearsal beside other ways to use more computing: score, tokens and tool calls in one table."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence

from gecko_graph.state import JsonObject

from ..baselines import BASELINES, CRITICAL, Create
from ..baselines.contest import contend, is_live, knobs
from ..baselines.problems import add_set, problems
from ..harness.figures import Figure, Published, Table
from ..harness.options import Options
from ..harness.suite import Case, EvalError, Record, Suite, Summary, by_group
from .ablation import costs, without

METHODS: Mapping[str, Create] = {**BASELINES, "gats": without()}

PUBLISHED = {
    "plain": (0.570, 80.3, 6.70),
    "reflexion": (0.600, 102.9, 6.62),
    "merge-to-one": (0.535, 111.2, 5.88),
    "self-refine": (0.590, 259.6, 23.88),
    "best-of-n": (0.585, 365.8, 13.78),
    "gats": (0.650, 238.2, 7.76),
}
"""Score, thousands of tokens, tool calls: tau2-bench airline, GPT-5-mini (the project's page)."""


class Compare(Suite):
    """GATS beside the planner alone, Reflexion, Self-refine, Best-of-n and Merge-to-one: score, tokens, tool calls.

    All play the same tasks over the same tools, with the same number of retries. A task's score is an independent
    word, never a method's own. Without a model only those methods run that need no critic and no prompt of their own:
    the planner alone and the rehearsal, both with plans that are written down.
    """

    name = "compare"
    tools = "simulated"
    planner = "ground-truth"
    planners = ("ground-truth", "model")
    examples = (
        "--model openai:gpt-5-mini --at-once 8",
        "--tasks multi_turn_base --limit 20 --model openai:gpt-5-mini",
        "--methods plain,gats --tasks multi_turn_base --limit 20",
    )

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add tasks and methods."""
        add_set(parser)
        every = ",".join(METHODS)
        parser.add_argument("--methods", default=every, metavar="A,B", help=f"of {', '.join(METHODS)} (all)")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        named = [name for name in options.own.methods.split(",") if name]
        if unknown := [name for name in named if name not in METHODS]:
            raise EvalError(f"--methods {unknown[0]}: the methods are {', '.join(METHODS)}")
        mute = set() if is_live(options) else {*CRITICAL, "merge-to-one"}
        self._methods = [name for name in named if name not in mute]
        self._unmeasured = [name for name in named if name in mute]
        if not self._methods:
            raise EvalError(f"--methods {','.join(named)}: these need a model: --model provider:name")

    def cases(self) -> Iterator[Case]:
        """Yield a case for each task and method; `--limit` counts tasks."""
        for problem in problems(self.options):
            for method in self._methods:
                facts = {"task": problem.id, "method": method}
                data = (problem, METHODS[method])
                yield Case(f"{problem.id}@{method}", data, problem.group, facts, problem.id, problem.tools)

    async def run_case(self, case: Case) -> JsonObject:
        """Play a task by a method."""
        problem, create = case.data
        return await contend(problem, create, self.options, context=knobs(self.options))

    def passed(self, record: Record) -> bool:
        """Return whether the independent verdict is solved."""
        return bool(record.values["solved"])

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return one table per set of tasks, and the published one."""
        live = is_live(self.options)
        figures: list[Figure] = [
            costs(f"Comparison: {group}", by_group(some, key="method"), live=live)
            for group, some in by_group(records).items()
        ]
        notes = [f"not measured: {name} needs a model (--model)" for name in self._unmeasured]
        if not live:
            notes.append("not measured: accuracy, tokens and cost of a model: the plans are written down")
        return Summary([*figures, published(self._methods)] if live else figures, notes=notes)


def published(methods: Sequence[str]) -> Table:
    """Return the project's own comparison."""
    table = Table(
        "Published: tau2-bench airline, GPT-5-mini", ["method", "score", "thousand tokens a task", "tool calls a task"]
    )
    for name in methods:
        score, tokens, calls = PUBLISHED[name]
        source = "project page"
        table.add(
            name, Published(score, source), Published(tokens, source, "number"), Published(calls, source, "number")
        )
    return table


SUITE = Compare
