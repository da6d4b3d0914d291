"""Tasks on which methods are compared: shipped scenarios, BFCL's multi-turn tasks, BFCL's single-turn tasks.

Whether a task was solved is never the method's own verdict: a scenario's plan is replayed on its contracts and its
checks evaluated; BFCL's official checkers judge the plan of a task of theirs. What only the ground truth knows (checks,
written plans, tools beyond the documents) is there for runs without a model and reaches no model that plans.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoContext, Models, Scenario, Toolkit, create_gecko
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.scenario import examples
from gecko_graph.state import ROLES, Call, ChecklistItem, Json, JsonObject, Rehearsal, Role

from ..bfcl import MULTI_TURN
from ..bfcl.calls import write_call
from ..bfcl.official import check
from ..bfcl.oracle import Truth, checklist, literal, truth_of
from ..bfcl.sabotage import spoilt_turns
from ..bfcl.single import ALL, CATEGORIES, Checker, chosen, of_plan, right_calls, tasks_of
from ..bfcl.single import Task as SingleTask
from ..bfcl.tasks import Task, read_tasks
from ..harness.figures import Tools
from ..harness.options import EvalError, Options

SCENARIOS = "scenarios"
SETS = (SCENARIOS, *MULTI_TURN, *CATEGORIES, ALL)

MOST_CALLS = 100
"""Calls in one attempt."""

WRITTEN = 3
"""Right attempts that are written down after the spoilt one."""

_DONE = {"say": "Done."}


class Problem(ABC):
    """A task to compare methods on; its turns share one thread.

    Attributes:
        id: Its name.
        group: The set that it is from.
        tools: Whose tools answer.
        turns: How many turns it has.
        state: The task state at the start.
    """

    id: str
    group: str
    tools: Tools
    turns: int = 1
    state: JsonObject

    @abstractmethod
    def said(self, turn: int) -> Sequence[tuple[str, str]]:
        """Return the user's messages of a turn."""

    @abstractmethod
    def toolkit(self, turn: int) -> Toolkit:
        """Return the tools of a turn."""

    @abstractmethod
    def checks(self, turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
        """Return rule checks of the turn's end: an oracle's, for runs in which no model judges."""

    @abstractmethod
    def speakers(self, seed: int) -> Mapping[Role, BaseChatModel]:
        """Return the models of a run without a live model: what was written down."""

    @abstractmethod
    def solved(self, turns: Sequence[Rehearsal]) -> bool:
        """Return whether the returned records, one a turn, solve the task, judged independently of the method."""


class ScenarioProblem(Problem):
    """A shipped scenario."""

    group = SCENARIOS
    tools: Tools = "simulated"

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.id, self.turns, self.state = scenario.name, len(scenario.turns), scenario.state

    def said(self, turn: int) -> Sequence[tuple[str, str]]:
        """Return the user's messages of a turn."""
        return [("user", self.scenario.turns[turn].user)]

    def toolkit(self, turn: int) -> Toolkit:
        """Return the same tools in each turn."""
        return self.scenario.tools

    def checks(self, turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
        """Return the scenario's checklist."""
        return list(self.scenario.turns[turn].checklist)

    def speakers(self, seed: int) -> Mapping[Role, BaseChatModel]:
        """Return the scenario's replies."""
        recorded: Any = self.scenario.models()
        return {role: recorded.get(role) for role in ROLES if recorded.has(role)}

    def solved(self, turns: Sequence[Rehearsal]) -> bool:
        """Replay the plans on the contracts and ask the checks; items without one are not judged.

        Where the scenario's own judge finds that the user must be asked, a question that left all as it was is right.
        """
        replies: list[JsonObject] = [
            {"planner": [[*map(_again, turn["plan"]), {"say": turn["answer"]}]]} for turn in turns
        ]
        models: dict[Role, BaseChatModel] = {"planner": RecordedModel(turns=replies)}
        context = GeckoContext.model_validate({"max_retries": 0, "max_steps": MOST_CALLS, "semantic_validation": False})
        gecko = create_gecko(
            self.scenario.tools, model=Models().replace(**models), context=context, checkpointer=InMemorySaver()
        )
        config: RunnableConfig = {"configurable": {"thread_id": "replay"}}
        for number in range(self.turns):
            given: Any = self.scenario.inputs(number)
            given["checklist"] = [item for item in given["checklist"] if "check" in item]
            played: Rehearsal = gecko.invoke(given, config)["rehearsal"]
            broken = {item["id"] for item in played["verdict"]["items"] if item["status"] != "success"}
            asks = "?" in played["answer"] and not played["attempts"][0]["change"]
            if broken - (self._to_ask(number) if asks else set()):
                return False
        return True

    def _to_ask(self, turn: int) -> set[str]:
        """Return the items that wait for the user, by the scenario's own judge."""
        replies: Any = self.scenario.turns[turn].replies.get("judge", [])
        return {item["id"] for each in replies if each.get("stopping_was_right") for item in each["items"]}


def _again(call: Call) -> JsonObject:
    return {"call": call["name"], "args": call["args"]}


class MultiTurnProblem(Problem):
    """A multi-turn task of BFCL on its executable classes. Without a model its ground truth plans, spoilt at first.

    Args:
        task: The task.
        number: Its number: which kind of sabotage it begins with.
        by_truth: Whether the ground truth plans, which may do what the documents do not mention.
    """

    tools: Tools = "real"

    def __init__(self, task: Task, number: int, by_truth: bool = True) -> None:
        self.task, self.number, self.by_truth = task, number, by_truth
        self.id, self.group, self.turns = task.id, task.category, len(task.turns)
        self.state = task.real.initial_state

    @cached_property
    def _truth(self) -> Truth:
        return truth_of(self.task)

    def said(self, turn: int) -> Sequence[tuple[str, str]]:
        """Return the user's messages of a turn."""
        return self.task.turns[turn].said

    def toolkit(self, turn: int) -> Toolkit:
        """Return the tools of a turn as documented; to the ground truth alone also what it needs beyond them."""
        return self.task.truthful(turn) if self.by_truth else self.task.toolkit(turn)

    def checks(self, turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
        """Return the oracle's checks from the real end state."""
        return checklist(before, self._truth.states[turn], self._truth.answers[turn], seen=seen)

    def speakers(self, seed: int) -> Mapping[Role, BaseChatModel]:
        """Return the ground truth, each turn's first attempt spoilt."""
        turns = spoilt_turns(self.task, self._truth, first=self.number, seed=seed)
        replies = [{"planner": [[*each.spoilt, _DONE], *([[*each.right, _DONE]] * WRITTEN)]} for each in turns]
        return {"planner": RecordedModel(turns=replies)}

    def solved(self, turns: Sequence[Rehearsal]) -> bool:
        """Return the official checker's verdict."""
        plan = [[[write_call(call["name"], call["args"])] for call in turn["plan"]] for turn in turns]
        return check(self.task, plan).valid


class SingleTurnProblem(Problem):
    """A single-turn task of BFCL, its tools simulated. Without a model its right calls are planned, spoilt at first.

    Args:
        task: The task.
        number: Its number: in which way the first attempt is spoilt.
        checker: The official evaluator.
    """

    tools: Tools = "simulated"

    def __init__(self, task: SingleTask, number: int, checker: Checker) -> None:
        self.task, self.number, self.checker = task, number, checker
        self.id, self.group, self.state = task.id, task.category, {}

    def said(self, turn: int) -> Sequence[tuple[str, str]]:
        """Return the task's conversation."""
        return [(each["role"], each["content"]) for each in self.task.messages]

    def toolkit(self, turn: int) -> Toolkit:
        """Return the task's tools."""
        return Toolkit.from_tools(self.task.functions)

    def checks(self, turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
        """Return the oracle's checks: the right calls were made, and no other."""
        right = right_calls(self.task)
        made = [_made(call, right.count(call)) for call in right]
        checks = dict.fromkeys([f"calls | length == {len(right)}", *made])
        description = "the calls that the task asks for were made ({})"
        return [
            {"id": f"calls-{number}", "description": description.format(number), "check": each}
            for number, each in enumerate(checks, 1)
        ]

    def speakers(self, seed: int) -> Mapping[Role, BaseChatModel]:
        """Return the right calls, the first attempt at them spoilt; where no tool fits there is nothing to spoil."""
        right = right_calls(self.task)
        replies = [_in_one(each) for each in (_spoilt(right, self.number), *[right] * WRITTEN)]
        return {"planner": RecordedModel(turns=[{"planner": replies}])}

    def solved(self, turns: Sequence[Rehearsal]) -> bool:
        """Return the official evaluator's verdict."""
        result = of_plan(turns[0]["plan"], answer=turns[0]["answer"])
        return self.checker.check(self.task.category, self.task.id, result).valid


def _made(call: JsonObject, times: int) -> str:
    name, args = literal(call["call"]), literal(call["args"])
    return f"calls | selectattr('name', 'eq', {name}) | selectattr('args', 'eq', {args}) | length == {times}"


def _in_one(calls: Sequence[JsonObject]) -> list[JsonObject]:
    return [{"calls": list(calls)}, _DONE] if calls else [_DONE]


def _spoilt(calls: Sequence[JsonObject], number: int) -> list[JsonObject]:
    """Return the calls with one dropped, doubled, of an unknown tool, or without its first argument."""
    if not calls:
        return []
    *before, last = calls
    lacking = {**last, "args": dict(list(last["args"].items())[1:])}
    ways: tuple[list[JsonObject], ...] = (
        [],
        [last, last],
        [{**last, "call": f"{last['call']}_x"}],
        [lacking] if lacking != last else [],
    )
    return [*before, *ways[number % len(ways)]]


def add_set(parser: ArgumentParser) -> None:
    """Add the option that chooses the tasks."""
    accepted = f"{SCENARIOS}, {', '.join(MULTI_TURN)}, {', '.join(CATEGORIES)}, or {ALL} for the last ten ({SCENARIOS})"
    parser.add_argument("--tasks", default=SCENARIOS, metavar="A,B", help=accepted)


def problems(options: Options) -> Iterator[Problem]:
    """Yield the tasks that `--tasks` names, in an order that never changes.

    Raises:
        EvalError: An unknown set of tasks, or its data are missing.
    """
    named = [name for name in options.own.tasks.split(",") if name]
    if not named or set(named) - set(SETS):
        raise EvalError(f"--tasks {options.own.tasks}: the sets are {', '.join(SETS)}")
    if SCENARIOS in named:
        yield from (ScenarioProblem(Scenario.load(path)) for path in examples().values())
    if categories := [name for name in named if name in MULTI_TURN]:
        by_truth = "planner" not in options.model_names()
        tasks = read_tasks(options.data, categories)
        yield from (MultiTurnProblem(task, number, by_truth) for number, task in enumerate(tasks))
    if categories := [name for name in named if name in (*CATEGORIES, ALL)]:
        yield from _single(",".join(categories))


def _single(categories: str) -> Iterator[Problem]:
    """Yield the single-turn tasks that have tools."""
    checker = Checker()
    for category in chosen(categories):
        some = (task for task in tasks_of(category) if task.functions)
        yield from (SingleTurnProblem(task, number, checker) for number, task in enumerate(some))
