"""Tasks on which methods are compared, one loop that plays any method on them, and an independent word on the result.

A method is what builds a graph with the rehearsal's input and output: the rehearsal, a part of it taken out, a
baseline. Whether a task was solved is never the method's own verdict: a scenario's plan is replayed on its contracts
and its checks evaluated; BFCL's official checker judges the plan of a multi-turn task.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoContext, Scenario, Toolkit, create_gecko
from gecko_graph.graph import Model
from gecko_graph.models.factory import Models
from gecko_graph.models.recorded import RecordedModel
from gecko_graph.scenario.shipped import examples
from gecko_graph.state import Call, ChecklistItem, Json, JsonObject, Rehearsal, Role

from .baselines import Create
from .bfcl import MULTI_TURN
from .bfcl.calls import write_call
from .bfcl.official import check
from .bfcl.oracle import Truth, checklist, truth_of
from .bfcl.rehearse import Played, answers, finished
from .bfcl.sabotage import Scene, spoil
from .bfcl.tasks import Task, read_tasks
from .options import Options
from .rehearsed import rehearsed
from .suite import EvalError, Tools

SCENARIOS = "scenarios"
SETS = (SCENARIOS, *MULTI_TURN)

MOST_CALLS = 100
"""Calls in one attempt."""

_DONE = {"say": "Done."}


class Problem(Protocol):
    """A task to compare methods on; its turns share one thread."""

    @property
    def id(self) -> str:
        """Its name."""

    @property
    def group(self) -> str:
        """The set that it is from."""

    @property
    def tools(self) -> Tools:
        """Whose tools answer."""

    @property
    def turns(self) -> int:
        """How many turns it has."""

    @property
    def state(self) -> JsonObject:
        """The task state at the start."""

    def said(self, turn: int) -> Sequence[tuple[str, str]]:
        """What the user says in a turn."""

    def toolkit(self, turn: int) -> Toolkit:
        """The tools of a turn."""

    def checks(self, turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
        """Rule checks of the turn's end: an oracle's, for runs in which no model judges."""

    def speakers(self, seed: int) -> Mapping[Role, BaseChatModel]:
        """Who speaks where there is no model: what was written down."""

    def solved(self, turns: Sequence[Rehearsal]) -> bool:
        """Whether what was returned, one record a turn, solves the task; not the method's own word."""


@dataclass(frozen=True)
class ScenarioProblem:
    """A shipped scenario."""

    scenario: Scenario
    tools: Tools = "simulated"
    group: str = SCENARIOS

    @property
    def id(self) -> str:
        """The scenario's name."""
        return self.scenario.name

    @property
    def turns(self) -> int:
        """How many turns it has."""
        return len(self.scenario.turns)

    @property
    def state(self) -> JsonObject:
        """The task state at the start."""
        return self.scenario.state

    def said(self, turn: int) -> Sequence[tuple[str, str]]:
        """What the user says in a turn."""
        return [("user", self.scenario.turns[turn].user)]

    def toolkit(self, turn: int) -> Toolkit:
        """The same tools in each turn."""
        return self.scenario.tools

    def checks(self, turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
        """The scenario's checklist."""
        return list(self.scenario.turns[turn].checklist)

    def speakers(self, seed: int) -> Mapping[Role, BaseChatModel]:
        """The scenario's replies."""
        return self.scenario.models()

    def solved(self, turns: Sequence[Rehearsal]) -> bool:
        """Replay the plans on the contracts and ask the checks; items without one are nobody's to judge here.

        Where the scenario's own judge says that the user must be asked, a question that left all as it was is right.
        """
        said: list[JsonObject] = [
            {"planner": [[*map(_again, turn["plan"]), {"say": turn["answer"]}]]} for turn in turns
        ]
        models: dict[Role, Model] = {"planner": RecordedModel(turns=said)}
        context = GeckoContext.model_validate({"max_retries": 0, "max_steps": MOST_CALLS, "semantic_validation": False})
        gecko = create_gecko(self.scenario.tools, models=models, context=context, checkpointer=InMemorySaver())
        config: RunnableConfig = {"configurable": {"thread_id": "replay"}}
        for number in range(self.turns):
            given = self.scenario.inputs(number)
            given["checklist"] = [item for item in given["checklist"] if "check" in item]
            played: Rehearsal = gecko.invoke(given, config)["rehearsal"]
            broken = {item["id"] for item in played["verdict"]["items"] if item["status"] != "success"}
            asks = "?" in played["answer"] and not played["attempts"][0]["change"]
            if broken - (self._to_ask(number) if asks else set()):
                return False
        return True

    def _to_ask(self, turn: int) -> set[str]:
        """The items that wait for the user, by the scenario's own judge."""
        said: Any = self.scenario.turns[turn].replies.get("judge", [])
        return {item["id"] for each in said if each.get("ask_user") for item in each["items"]}


def _again(call: Call) -> JsonObject:
    return {"call": call["name"], "args": call["args"]}


@dataclass(frozen=True)
class MultiTurnProblem:
    """A multi-turn task of BFCL on its executable classes. Without a model its ground truth plans, spoilt at first.

    Args:
        task: The task.
        number: Its number: which kind of sabotage it begins with.
    """

    task: Task
    number: int
    tools: Tools = "real"

    @property
    def id(self) -> str:
        """The official id."""
        return self.task.id

    @property
    def group(self) -> str:
        """The official category."""
        return self.task.category

    @property
    def turns(self) -> int:
        """How many turns it has."""
        return len(self.task.turns)

    @property
    def state(self) -> JsonObject:
        """The real classes' initial state."""
        return self.task.real.initial_state

    @cached_property
    def _truth(self) -> Truth:
        return truth_of(self.task)

    def said(self, turn: int) -> Sequence[tuple[str, str]]:
        """What the user says in a turn."""
        return self.task.turns[turn].said

    def toolkit(self, turn: int) -> Toolkit:
        """The tools of a turn, with what its ground truth needs beyond the documents."""
        return self.task.truthful(turn)

    def checks(self, turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
        """The oracle's checks from the real end state."""
        return checklist(before, self._truth.states[turn], self._truth.answers[turn], seen=seen)

    def speakers(self, seed: int) -> Mapping[Role, BaseChatModel]:
        """The ground truth, each turn's first attempt spoilt."""
        said: list[JsonObject] = []
        state = self.state
        for number, turn in enumerate(self.task.turns):
            right = [self.task.read(call) for call in turn.truth]
            wrong, scene = right, Scene(self.task, number, state)
            if right:
                _, wrong = spoil(right, scene=scene, first=self.number + number, seed=f"{seed}:{self.id}:{number}")
            said.append({"planner": [[*wrong, _DONE], *([[*right, _DONE]] * 3)]})
            state = self._truth.states[number]
        return {"planner": RecordedModel(turns=said)}

    def solved(self, turns: Sequence[Rehearsal]) -> bool:
        """The official checker's word."""
        told = [[[write_call(call["name"], call["args"])] for call in turn["plan"]] for turn in turns]
        return check(self.task, told).valid


def add_set(parser: ArgumentParser) -> None:
    """The option that chooses the tasks."""
    told = f"{', '.join(SETS)} ({SCENARIOS})"
    parser.add_argument("--tasks", default=SCENARIOS, metavar="A,B", help=told)


def problems(options: Options) -> Iterator[Problem]:
    """The tasks that `--tasks` names, in an order that never changes.

    Raises:
        EvalError: An unknown set of tasks, or its data are missing.
    """
    named = [name for name in options.own.tasks.split(",") if name]
    if unknown := [name for name in named if name not in SETS]:
        raise EvalError(f"--tasks {unknown[0]}: the sets are {', '.join(SETS)}")
    if SCENARIOS in named:
        yield from (ScenarioProblem(Scenario.load(path)) for path in examples().values())
    if categories := [name for name in named if name != SCENARIOS]:
        tasks = read_tasks(options.data, categories)
        yield from (MultiTurnProblem(task, number) for number, task in enumerate(tasks))


def speakers(problem: Problem, options: Options) -> dict[Role, BaseChatModel]:
    """Who speaks for which role: the options' models, and what was written down where they name no planner."""
    live = options.speakers()
    if "planner" in live:
        return {"judge": live["planner"], **live}  # whoever plans is the critic, unless another one is named
    return {**problem.speakers(options.seed), **live}


async def contend(problem: Problem, create: Create, options: Options, *, context: GeckoContext) -> JsonObject:
    """Play a task by a method.

    Args:
        problem: The task.
        create: The method.
        options: Who speaks.
        context: The knobs.

    Returns:
        `solved` by the independent word, `verdict`, `attempts`, `tool_calls`, `rungs`, `usage`, and `planned_by`.
    """
    models = speakers(problem, options)
    is_live = bool(options.model_names())
    played = await play(
        problem, create, models=Models.bind(models=models), context=context, ruled="judge" not in models
    )
    told = rehearsed(*(each.rehearsal for each in played))
    if not is_live:
        del told["usage"]  # what was written down costs nothing
    return {**told, "solved": problem.solved([each.rehearsal for each in played])}


async def play(problem: Problem, create: Create, *, models: Models, context: GeckoContext, ruled: bool) -> list[Played]:
    """Turn after turn on one thread; after each, the state is the one that the returned plan leads to.

    Args:
        problem: The task.
        create: The method.
        models: Who speaks.
        context: The knobs.
        ruled: Give the oracle's checks, because no model judges.
    """
    saver = InMemorySaver()
    config: RunnableConfig = {"configurable": {"thread_id": problem.id}}
    state, given = problem.state, {"task_state": problem.state}
    played: list[Played] = []
    seen: list[Json] = []
    for turn in range(problem.turns):
        graph = create(problem.toolkit(turn), models=models, default=context, checkpointer=saver)
        inputs: dict[str, Any] = {"messages": list(problem.said(turn)), **given}
        if ruled:
            inputs["checklist"] = problem.checks(turn, state, seen)
        played.append(finished(await graph.ainvoke(inputs, config), state))
        state = played[-1].after
        given = {} if played[-1].accepted else {"task_state": state}
        seen += answers(played[-1].chosen)
    return played
