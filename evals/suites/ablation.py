"""`ablation`: the rehearsal with a part taken out (paper, section 6.3 and figure 4), and with fewer retries (figure 5).

- without validation: neither rules nor a model look at arguments. What no tool could be given is refused all the same:
  a call of a tool that does not exist, and arguments that are not a JSON object.
- without state: no change of the task state is kept or estimated, and the judge sees none; the start state stays.
- without feedback: any call counts as success and none as failure. There is no checklist and no judge.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from langgraph.types import Checkpointer

from gecko_graph.context import GeckoContext
from gecko_graph.graph import Gecko, compose
from gecko_graph.models.ask import Ask, Reply
from gecko_graph.models.factory import Models
from gecko_graph.models.node import NodeFunction, NodeScope
from gecko_graph.nodes.judge import judge
from gecko_graph.nodes.state_updater import state_updater
from gecko_graph.nodes.validator import validator
from gecko_graph.state import ChecklistItem, JsonObject, UnjudgedAttempt, Verdict
from gecko_graph.tools import Toolkit
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.world.channels import AttemptState, GeckoState

from ..baselines import Create
from ..baselines.contest import contend, is_live, knobs
from ..baselines.problems import add_set, problems
from ..bfcl.rehearse import unseeing
from ..harness.figures import Bars, Figure, Lines, Measured, Published, Table, mean, rate
from ..harness.options import Options
from ..harness.suite import Case, EvalError, Record, Suite, Summary, by_group

PARTS = ("validation", "state", "feedback")

PAPER_TASKS = "multi_turn_base"

PAPER = {"full": 0.72, "without validation": 0.705, "without state": 0.68, "without feedback": 0.615}
"""Figure 4 (a): BFCL multi-turn base, GPT-4o."""

Step = Generator[list[Ask], list[Reply], dict[str, Any]]

CALLS_WERE_MADE: ChecklistItem = {"id": "calls", "description": "tool calls were made"}

ANYTHING: JsonObject = {"type": "object", "additionalProperties": True}


@dataclass(frozen=True, slots=True)
class Unruled:
    """The toolkit without its argument rules."""

    toolkit: Toolkit

    def get(self, name: str, /) -> ToolSpec | None:
        """Return the tool, with any arguments allowed."""
        tool = self.toolkit.get(name)
        return None if tool is None else replace(tool, parameters=ANYTHING)


def unvalidated(state: AttemptState, scope: NodeScope, *, toolkit: Toolkit) -> Any:
    """Let every call through that a tool can be given at all; no model is asked."""
    silent = replace(scope, context=scope.context.model_copy(update={"semantic_validation": False}))
    return validator(state, silent, toolkit=Unruled(toolkit))


def forgetful(state: AttemptState, scope: NodeScope, *, toolkit: Toolkit) -> Any:
    """Answer the planner, and forget what the calls have changed; no model is asked what it was."""
    mute = replace(scope, has_model=lambda role: False)
    update = yield from state_updater(state, mute, toolkit=toolkit)
    steps = [{**step, "outcome": {**step["outcome"], "patch": []}} for step in update["steps"]]
    return {**update, "steps": steps, "task_state": []}


def stateless_judge(state: GeckoState, scope: NodeScope) -> Any:
    """Return the judge with the calls and their results for evidence, and an empty task state."""
    blind: Any = {**state, "task_state": {}}
    return judge(blind, scope)


def unasked(state: Any, scope: NodeScope) -> dict[str, Any]:
    """Return one item in the place of a model's checklist, so that a failed attempt is followed by another."""
    return {"items": [CALLS_WERE_MADE], "items_failure": ""}


def naive_judge(state: GeckoState, scope: NodeScope) -> dict[str, Any]:
    """Return success if tool calls were made, failure if not, without naming what is missing."""
    return {"attempts": [{**each, "verdict": naive_verdict(each)} for each in state["attempts_to_judge"]]}


def naive_verdict(attempt: UnjudgedAttempt) -> Verdict:
    """Return `accepted` if the attempt has made any call."""
    made = bool(attempt["steps"])
    item: Any = {**CALLS_WERE_MADE, "status": "success" if made else "failed", "reason": "", "by": "rule"}
    return {
        "status": "accepted" if made else "failed",
        "score": float(made),
        "items": [item],
        "feedback": "" if made else "no tool calls were made",
    }


def nodes_without(parts: Sequence[str], toolkit: Toolkit) -> Mapping[str, NodeFunction]:
    """Return the functions in the place of the nodes that are taken out."""
    nodes: dict[str, NodeFunction] = {}
    if "validation" in parts:
        nodes["validator"] = partial(unvalidated, toolkit=toolkit)
    if "state" in parts:
        nodes |= {"state_updater": partial(forgetful, toolkit=toolkit), "judge": stateless_judge}
    if "feedback" in parts:
        nodes |= {"checklist": unasked, "judge": naive_judge}
    return nodes


def without(*parts: str) -> Create:
    """Return the rehearsal without some of its parts; with none named, the whole of it."""

    def create(toolkit: Toolkit, *, models: Models, default: GeckoContext, checkpointer: Checkpointer = None) -> Gecko:
        nodes = {"judge": unseeing(toolkit), **nodes_without(parts, toolkit)}
        return compose(toolkit, models=models, default=default, checkpointer=checkpointer, replace=nodes)

    return create


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to run all tasks: what is taken out, and how many retries it has."""

    name: str
    parts: tuple[str, ...] = ()
    retries: int | None = None


class Ablation(Suite):
    """The rehearsal whole, without one of its parts, and with fewer retries (paper, section 6.3, figures 4 and 5).

    Every arm plays the same tasks. Whether a task was solved is an independent word: the scenario's checks on a replay
    of the plan, or BFCL's official checker. With --model a model plans and judges; without one the plans are written
    down (the ground truth, its first attempt spoilt) and rule checks from the end state judge: that shows what each
    part does, not the accuracy of the method.
    """

    name = "ablation"
    tools = "simulated"
    planner = "ground-truth"
    planners = ("ground-truth", "model")
    examples = (
        "--without validation,state,feedback",
        "--tasks multi_turn_base --limit 20 --retries 0..3",
        "--tasks live_simple --without nothing --retries 0..3 --model openai:gpt-5-mini --limit 100",
        "--tasks multi_turn_base --model openai:gpt-4o --role-model judge=openai:gpt-4.1-mini",
    )

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add which parts are taken out, and how many retries are made."""
        add_set(parser)
        add = parser.add_argument
        add("--without", default=",".join(PARTS), metavar="A,B", help=f"parts: {', '.join(PARTS)} (all, one by one)")
        add("--retries", default="", metavar="N..M", help="arms with so many retries, such as 0..3 (none)")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._arms = arms_of(options.own.without, options.own.retries)

    def cases(self) -> Iterator[Case]:
        """Yield a case for each task and arm; `--limit` counts tasks."""
        for problem in problems(self.options):
            for arm in self._arms:
                facts = {"task": problem.id, "arm": arm.name}
                data = (problem, arm)
                yield Case(f"{problem.id}@{arm.name}", data, problem.group, facts, problem.id, problem.tools)

    async def run_case(self, case: Case) -> JsonObject:
        """Play a task by an arm."""
        problem, arm = case.data
        retries = {} if arm.retries is None else {"max_retries": arm.retries}
        context = knobs(self.options, **retries)
        return await contend(problem, without(*arm.parts), self.options, context=context)

    def passed(self, record: Record) -> bool:
        """Return whether the independent verdict is solved."""
        return bool(record.values["solved"])

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return tables by set of tasks, and figure 5 where retries were varied."""
        figures = [figure for some in by_group(records).values() for figure in self._figures(some)]
        return Summary(figures, notes=[] if is_live(self.options) else [NOT_LIVE])

    def _figures(self, records: Sequence[Record]) -> Iterator[Figure]:
        group, by_arm, live = records[0].group, by_group(records, key="arm"), is_live(self.options)
        named = [arm for arm in self._arms if arm.retries is None and arm.name in by_arm]
        yield costs(f"Without a part: {group}", {arm.name: by_arm[arm.name] for arm in named}, live=live)
        series: dict[str, Sequence[Measured | Published | None]] = {"here": [solved(by_arm[arm.name]) for arm in named]}
        if live and group == PAPER_TASKS:
            series["paper: GPT-4o"] = [
                Published(PAPER[arm.name], "paper, figure 4 (a)") if arm.name in PAPER else None for arm in named
            ]
        if len(named) > 1:
            yield Bars(f"Solved without a part: {group}", [arm.name for arm in named], series)
        if tried := {arm: by_arm[arm.name] for arm in self._arms if arm.retries is not None and arm.name in by_arm}:
            yield costs(f"By retries: {group}", {arm.name: some for arm, some in tried.items()}, live=live)
            yield from by_retries(group, {float(arm.retries or 0): some for arm, some in tried.items()}, live=live)


NOT_LIVE = (
    "not measured: accuracy, tokens and cost of the method, which need a model (--model). Here plans are written "
    "down and rule checks from the real end state judge, so the numbers show what a part does, not how good a model is."
)


def arms_of(without: str, retries: str) -> list[Arm]:
    """Return the arms that the options name, the whole rehearsal first.

    Raises:
        EvalError: An unknown part, or retries that are not a range.
    """
    parts = [part for part in without.split(",") if part and part != "nothing"]
    if unknown := [part for part in parts if part not in PARTS]:
        raise EvalError(f"--without {unknown[0]}: the parts are {', '.join(PARTS)}, or nothing")
    arms = [Arm("full"), *(Arm(f"without {part}", (part,)) for part in parts)]
    if retries:
        first, _, last = retries.partition("..")
        if not (first.isdigit() and (last or first).isdigit()) or int(first) > int(last or first):
            raise EvalError(f"--retries {retries}: write a number or a range such as 0..3")
        arms += [Arm("1 retry" if n == 1 else f"{n} retries", (), n) for n in range(int(first), int(last or first) + 1)]
    return arms


def by_retries(group: str, tried: Mapping[float, Sequence[Record]], *, live: bool) -> Iterator[Lines]:
    """Yield figure 5: accuracy, latency and, of a model, cost over retries."""
    yield Lines(
        f"Solved by retries: {group}",
        {"solved": [(n, solved(some)) for n, some in tried.items()]},
        x="retries",
        y="share of tasks",
    )
    yield Lines(
        f"Latency by retries: {group}",
        {"seconds": [(n, seconds(some)) for n, some in tried.items()]},
        x="retries",
        y="seconds a task",
        note="Several cases at once wait for each other; --at-once 1 measures one alone.",
    )
    if live:
        spent = {n: dollars(some) for n, some in tried.items()}
        known = [(n, cost) for n, cost in spent.items() if isinstance(cost, Measured)]
        points = known or [(n, mean(some, tokens)) for n, some in tried.items()]
        word = "dollars" if known else "tokens"
        yield Lines(f"Cost by retries: {group}", {word: points}, x="retries", y=f"{word} a task")


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


SUITE = Ablation
