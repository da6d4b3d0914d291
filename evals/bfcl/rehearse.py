"""Play a multi-turn task with the graph, turn by turn on one thread; each turn starts from the end state before."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import MessageLikeRepresentation
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import GeckoContext, Models, Toolkit
from gecko_graph.graph import Gecko, compose
from gecko_graph.models.ask import Ask, Reply
from gecko_graph.models.node import NodeFunction, NodeScope
from gecko_graph.nodes.judge import judge
from gecko_graph.state import Attempt, ChecklistItem, Json, JsonObject, Rehearsal, Role
from gecko_graph.world.channels import GeckoState
from gecko_graph.world.turn import states_of

from .classes import RUNTIME
from .official import Plan
from .tasks import Task, write_call


class Checklist(Protocol):
    """Returns the conditions for the end of a turn."""

    def __call__(self, turn: int, before: JsonObject, seen: Sequence[Json]) -> list[ChecklistItem]:
        """Return the checks of a turn from its start state and the answers of the turns before."""


@dataclass(frozen=True, slots=True)
class Player:
    """The models, knobs, tools (by turn) and checks that play a task.

    Without a checklist the checklist model writes it; `after` is called with each played turn.
    """

    models: Mapping[Role, BaseChatModel]
    context: GeckoContext
    toolkit: Callable[[int], Toolkit]
    checklist: Checklist | None = None
    start: JsonObject | None = None
    after: Callable[[Played], None] | None = None


@dataclass(frozen=True, slots=True)
class Played:
    """One turn: its record, the task state at its start, and that after the chosen attempt, accepted or not."""

    rehearsal: Rehearsal
    before: JsonObject
    after: JsonObject

    @property
    def accepted(self) -> bool:
        return self.rehearsal["verdict"]["status"] == "accepted"

    @property
    def chosen(self) -> Attempt:
        number = self.rehearsal["chosen"]
        return next(each for each in self.rehearsal["attempts"] if each["number"] == number)


async def play(task: Task, player: Player) -> list[Played]:
    made: dict[str, Any] = {}

    def graph(turn: int, saver: BaseCheckpointSaver[Any]) -> Gecko:
        if (tools := player.toolkit(turn)) is not made.get("tools"):
            nodes = {"judge": unseeing(tools)} if player.checklist is None else {}
            models = Models().replace(**dict(player.models))
            gecko = compose(tools, models=models, default=player.context, checkpointer=saver, replace=nodes)
            made.update(tools=tools, gecko=gecko)
        return cast("Gecko", made["gecko"])

    said = [[*turn.before, *turn.said] for turn in task.turns]
    start = task.real.initial_state if player.start is None else player.start
    return await play_turns(task.id, said, start, graph, checklist=player.checklist, after=player.after)


async def play_turns(
    thread: str,
    said: Sequence[Sequence[MessageLikeRepresentation]],
    start: JsonObject,
    graph: Callable[[int, BaseCheckpointSaver[Any]], Gecko],
    *,
    checklist: Checklist | None = None,
    finish: Callable[[Mapping[str, Any], JsonObject], Played] | None = None,
    after: Callable[[Played], None] | None = None,
) -> list[Played]:
    """Play turn by turn on one thread, each on the graph that `graph` returns for it.

    A turn that was not accepted does not change the thread's state. Because its returned plan counts all the same, the
    next turn is given the state after that plan, as real tools would have it. `finish` makes the turn from a run's
    output and the state before it; by default that of a rehearsal.
    """
    saver, played, seen = InMemorySaver(), list[Played](), list[Json]()
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    state, given = start, {"task_state": start}
    for number, messages in enumerate(said):
        inputs: JsonObject = {"messages": [*messages], **given}
        if checklist is not None:
            inputs["checklist"] = checklist(number, state, seen)
        run = await graph(number, saver).ainvoke(inputs, config)
        played.append((finish or finished)(run, state))
        if after is not None:
            after(played[-1])
        state = played[-1].after
        given = {} if state is run["task_state"] else {"task_state": state}
        seen += answers(played[-1].chosen)
    return played


def unseeing(toolkit: Toolkit) -> NodeFunction:
    """Return the judge node without the classes' runtime state, which is no evidence."""

    def run(state: GeckoState, scope: NodeScope) -> Generator[list[Ask], list[Reply], dict[str, Any]]:
        unjudged = state["bookkeeping"]["attempts_to_judge"]
        shown = [{**each, "change": [op for op in each["change"] if not _is_runtime(op["path"])]} for each in unjudged]
        task_state = {key: value for key, value in (state.get("task_state") or {}).items() if key != RUNTIME}
        kept = {**state["bookkeeping"], "attempts_to_judge": shown}
        seen: Any = {**state, "task_state": task_state, "bookkeeping": kept}
        update = yield from judge(seen, scope, toolkit=toolkit)
        changes = {each["number"]: each["change"] for each in unjudged}
        return {**update, "attempts": [{**each, "change": changes[each["number"]]} for each in update["attempts"]]}

    return run


def _is_runtime(path: str) -> bool:
    return path == f"/{RUNTIME}" or path.startswith(f"/{RUNTIME}/")


def finished(run: Mapping[str, Any], before: JsonObject) -> Played:
    rehearsal: Rehearsal = run["rehearsal"]
    known = Played(rehearsal, before, before)
    after = run["task_state"] if known.accepted else states_of(before, known.chosen)[1]
    return Played(rehearsal, before, after)


def answers(attempt: Attempt) -> list[Json]:
    return [step["outcome"]["result"] for step in attempt["steps"] if "outcome" in step]


def written(attempt: Attempt) -> list[list[str]]:
    """Return an attempt's successful calls as one turn of the official result format: steps of one call each."""
    return [
        [write_call(step["call"]["name"], step["call"]["args"])]
        for step in attempt["steps"]
        if "outcome" in step and step["outcome"]["status"] == "ok"
    ]


def plan_of(played: Sequence[Played]) -> Plan:
    return [[[write_call(call["name"], call["args"])] for call in each.rehearsal["plan"]] for each in played]
