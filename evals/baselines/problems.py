"""Tasks on which methods are compared: shipped scenarios, BFCL's multi-turn tasks, BFCL's single-turn tasks.

Whether a task was solved is never the method's own verdict: a scenario's plan is replayed on its contracts and its
checks evaluated; BFCL's official checkers judge the plan of a task of theirs. What only the ground truth knows (checks,
written plans, tools beyond the documents) is there for runs without a model and reaches no model that plans.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoContext, Models, Scenario, Toolkit, create_gecko
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.scenario import examples
from gecko_graph.state import ROLES, Call, ChecklistItem, Json, JsonObject, Rehearsal, Role

from ..bfcl import MULTI_TURN
from ..bfcl.official import check
from ..bfcl.oracle import checklist, literal, truth_of
from ..bfcl.rehearse import Checklist
from ..bfcl.sabotage import spoilt_turns
from ..bfcl.single import ALL, CATEGORIES, Checker, chosen, of_plan, right_calls, tasks_of
from ..bfcl.single import Task as SingleTask
from ..bfcl.tasks import Task, read_tasks, write_call
from ..harness.figures import Tools
from ..harness.options import EvalError, Options

SCENARIOS = "scenarios"
SETS = (SCENARIOS, *MULTI_TURN, *CATEGORIES, ALL)

MOST_CALLS = 100
"""Calls in one attempt."""

WRITTEN = 3
"""Right attempts that are written down after the spoilt one."""

_DONE = {"say": "Done."}


@dataclass(frozen=True, slots=True)
class Problem:
    """A task to compare methods on; its turns share one thread.

    Args:
        id: Its name.
        group: The set that it is from.
        tools: Whose tools answer.
        state: The task state at the start.
        said: The user's messages of each turn.
        toolkit: From a turn's number to its tools.
        checks: Rule checks of a turn's end: an oracle's, for runs in which no model judges.
        speakers: From a seed to the models of a run without a live model: what was written down.
        solved: Whether the returned records, one a turn, solve the task, judged independently of the method.
    """

    id: str
    group: str
    tools: Tools
    state: JsonObject
    said: Sequence[Sequence[Any]]
    toolkit: Callable[[int], Toolkit]
    checks: Checklist
    speakers: Callable[[int], Mapping[Role, BaseChatModel]]
    solved: Callable[[Sequence[Rehearsal]], bool]


def of_scenario(scenario: Scenario) -> Problem:
    """Return a shipped scenario, with the replies that it holds."""

    def speakers(seed: int) -> Mapping[Role, BaseChatModel]:
        recorded: Any = scenario.models()
        return {role: recorded.get(role) for role in ROLES if recorded.has(role)}

    return Problem(
        scenario.name,
        SCENARIOS,
        "simulated",
        scenario.state,
        said=[[("user", turn.user)] for turn in scenario.turns],
        toolkit=lambda turn: scenario.tools,
        checks=lambda turn, before, seen: list(scenario.turns[turn].checklist),
        speakers=speakers,
        solved=partial(solves_scenario, scenario),
    )


def solves_scenario(scenario: Scenario, turns: Sequence[Rehearsal]) -> bool:
    """Replay the plans on the contracts and ask the checks; items without one are not judged.

    Where the scenario's own judge finds that the user must be asked, a question that left all as it was is right.
    """
    replies = [{"planner": [[*map(_again, turn["plan"]), {"say": turn["answer"]}]]} for turn in turns]
    model = Models(planner=RecordedModel(turns=replies))
    context = GeckoContext(max_retries=0, max_steps=MOST_CALLS, semantic_validation=False)
    gecko = create_gecko(scenario.tools, model=model, context=context, checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "replay"}}
    for number in range(len(scenario.turns)):
        given: Any = scenario.inputs(number)
        given["checklist"] = [item for item in given["checklist"] if "check" in item]
        played: Rehearsal = gecko.invoke(given, config)["rehearsal"]
        broken = {item["id"] for item in played["verdict"]["items"] if item["status"] != "success"}
        asks = "?" in played["answer"] and not played["attempts"][0]["change"]
        if broken - (_to_ask(scenario, number) if asks else set()):
            return False
    return True


def _to_ask(scenario: Scenario, turn: int) -> set[str]:
    """Return the items that wait for the user, by the scenario's own judge."""
    replies: Any = scenario.turns[turn].replies.get("judge", [])
    return {item["id"] for each in replies if each.get("stopping_was_right") for item in each["items"]}


def _again(call: Call) -> JsonObject:
    return {"call": call["name"], "args": call["args"]}


def of_multi_turn(task: Task, number: int, by_truth: bool) -> Problem:
    """Return a multi-turn task of BFCL on its executable classes. Without a model its ground truth plans, first spoilt.

    Args:
        task: The task.
        number: Its number: which kind of sabotage it begins with.
        by_truth: Whether the ground truth plans, which may do what the documents do not mention.
    """
    truth = cache(lambda: truth_of(task))

    def checks(turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
        return checklist(before, truth().states[turn], truth().answers[turn], seen=seen)

    def speakers(seed: int) -> Mapping[Role, BaseChatModel]:
        turns = spoilt_turns(task, truth(), first=number, seed=seed)
        replies = [{"planner": [[*each.spoilt, _DONE], *([[*each.right, _DONE]] * WRITTEN)]} for each in turns]
        return {"planner": RecordedModel(turns=replies)}

    def solved(turns: Sequence[Rehearsal]) -> bool:
        plan = [[[write_call(call["name"], call["args"])] for call in turn["plan"]] for turn in turns]
        return check(task, plan).valid

    said, toolkit = [turn.said for turn in task.turns], task.truthful if by_truth else task.toolkit
    state = task.real.initial_state
    return Problem(task.id, task.category, "real", state, said, toolkit, checks, speakers, solved)


def of_single_turn(task: SingleTask, number: int, checker: Checker) -> Problem:
    """Return a single-turn task of BFCL, its tools simulated. Without a model its right calls plan, first spoilt.

    Args:
        task: The task.
        number: Its number: in which way the first attempt is spoilt.
        checker: The official evaluator.
    """

    def checks(turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
        right = right_calls(task)
        made = [_made(call, right.count(call)) for call in right]
        each_once = dict.fromkeys([f"len(calls) == {len(right)}", *made])
        description = "the calls that the task asks for were made ({})"
        return [
            {"id": f"calls-{at}", "description": description.format(at), "check": each}
            for at, each in enumerate(each_once, 1)
        ]

    def speakers(seed: int) -> Mapping[Role, BaseChatModel]:
        right = right_calls(task)
        replies = [_in_one(each) for each in (_spoilt(right, number), *[right] * WRITTEN)]
        return {"planner": RecordedModel(turns=[{"planner": replies}])}

    def solved(turns: Sequence[Rehearsal]) -> bool:
        result = of_plan(turns[0]["plan"], answer=turns[0]["answer"])
        return checker.check(task.category, task.id, result).valid

    said = [[(each["role"], each["content"]) for each in task.messages]]
    toolkit = Toolkit.from_tools(task.functions)
    return Problem(task.id, task.category, "simulated", {}, said, lambda turn: toolkit, checks, speakers, solved)


def _made(call: JsonObject, times: int) -> str:
    name, args = literal(call["call"]), literal(call["args"])
    return f"sum(1 for c in calls if c.name == {name} and c.args == {args}) == {times}"


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
        yield from (of_scenario(Scenario.load(path)) for path in examples().values())
    if categories := [name for name in named if name in MULTI_TURN]:
        by_truth = "planner" not in options.model_names()
        tasks = read_tasks(options.data, categories)
        yield from (of_multi_turn(task, number, by_truth) for number, task in enumerate(tasks))
    if categories := [name for name in named if name in (*CATEGORIES, ALL)]:
        yield from _single(",".join(categories))


def _single(categories: str) -> Iterator[Problem]:
    """Yield the single-turn tasks that have tools."""
    checker = Checker()
    for category in chosen(categories):
        some = (task for task in tasks_of(category) if task.functions)
        yield from (of_single_turn(task, number, checker) for number, task in enumerate(some))
