"""Calls on a `World` as a conversation, without a graph, and its score by the goal of a scenario."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from ..state import JsonObject
from ..world.world import World
from .channels import address
from .milestones.goal import Score
from .milestones.tables import Snapshot, find_names
from .scenario import Scenario
from .score import build_trajectory
from .tools import show_step


def build_messages(world: World, said: Sequence[AnyMessage], answer: str | None) -> list[AnyMessage]:
    """Return a conversation: its messages, a world's calls one by one, and the agent's answer, if any."""
    messages = [address(each, "user", "agent", steps=0) if isinstance(each, HumanMessage) else each for each in said]
    steps = world.log
    for number, step in enumerate(steps, 1):
        call, shown = show_step(world, step)
        messages.append(address(AIMessage("", tool_calls=[call]), "agent", "tools", steps=number - 1))
        messages.append(address(shown, "tools", "agent", steps=number))
    if answer is not None:
        messages.append(address(AIMessage(answer), "agent", "user", steps=len(steps)))
    return messages


def as_conversation(world: World, said: Sequence[AnyMessage], answer: str | None) -> JsonObject:
    """Return a world's calls after a conversation, in the form of `create_conversation`'s output."""
    return {"messages": build_messages(world, said, answer), "world": world.snapshot()}


def score_world(case: Scenario, world: World, answer: str | None) -> Score:
    """Return the score of a world's calls and an answer by the scenario's goal."""
    return case.goal.score(find_trajectory(case, world, answer))


def find_trajectory(case: Scenario, world: World, answer: str | None) -> list[Snapshot]:
    """Return the snapshots that a scenario's goal scores: from a world's calls and an answer."""
    tables = find_names(case.state, case.goal.tables)
    held: JsonObject = {"start": case.state, "log": world.log}
    return build_trajectory(build_messages(world, [HumanMessage(case.words)], answer), held, tables, case.tools)
