"""Ground-truth plans, spoilt: what an attempt may do wrong, or do differently without harm."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.state import JsonObject
from gecko_graph.values.difference import json_equal

from .oracle import Truth
from .tasks import Task

Calls = list[JsonObject]
"""Calls as the recorded planner writes them: `{"call", "args"}`."""

Spoil = Callable[[Calls, Random, "Scene"], Calls | None]
"""Makes other calls of a turn's right ones; None where it cannot."""


class Scene:
    """Where a turn takes place.

    Args:
        task: The task.
        turn: Number of the turn, from 0.
        state: The task state that it begins with.
    """

    def __init__(self, task: Task, turn: int, state: Mapping[str, Any]) -> None:
        self.task, self.state = task, state
        self.tools = task.truthful(turn)

    def reads(self) -> list[str]:
        """Return tools without arguments that leave the state as it is now: tried on the real classes."""
        found = []
        for tool in self.tools:
            if tool.parameters.get("required") or tool.simulate is None:
                continue
            after = copy.deepcopy(dict(self.state))
            answer = tool.simulate(after)
            if json_equal(after, dict(self.state)) and "rror" not in str(answer):
                found.append(tool.name)
        return found


def dropped(calls: Calls, dice: Random, scene: Scene) -> Calls:
    """Drop one call."""
    gone = dice.randrange(len(calls))
    return [call for number, call in enumerate(calls) if number != gone]


def doubled(calls: Calls, dice: Random, scene: Scene) -> Calls:
    """Make one call twice."""
    twice = dice.randrange(len(calls))
    return [call for number, call in enumerate(calls) for _ in range(2 if number == twice else 1)]


def disordered(calls: Calls, dice: Random, scene: Scene) -> Calls | None:
    """Let two different calls change places."""
    pairs = [(i, j) for i in range(len(calls)) for j in range(i) if calls[i] != calls[j]]
    if not pairs:
        return None
    first, second = dice.choice(pairs)
    made = list(calls)
    made[first], made[second] = made[second], made[first]
    return made


def another_value(calls: Calls, dice: Random, scene: Scene) -> Calls | None:
    """Give one argument another value of its type."""
    return _changed(calls, dice, scene, other, fits=True)


def another_type(calls: Calls, dice: Random, scene: Scene) -> Calls | None:
    """Give one argument a value of a type that its rule forbids."""
    return _changed(calls, dice, scene, mistyped, fits=False)


def unknown(calls: Calls, dice: Random, scene: Scene) -> Calls:
    """Let one call name an unknown tool."""
    made = list(calls)
    wrong = dice.randrange(len(calls))
    made[wrong] = {**calls[wrong], "call": f"{calls[wrong]['call']}_all"}
    return made


def whole(calls: Calls, dice: Random, scene: Scene) -> Calls:
    """Return the calls as they are."""
    return list(calls)


def extra_read(calls: Calls, dice: Random, scene: Scene) -> Calls | None:
    """Put a read first that was not asked for."""
    reads = scene.reads()
    return [{"call": dice.choice(reads), "args": {}}, *calls] if reads else None


KINDS: Mapping[str, Spoil] = {
    "dropped": dropped,
    "doubled": doubled,
    "wrong order": disordered,
    "wrong value": another_value,
    "wrong type": another_type,
    "unknown tool": unknown,
    "whole": whole,
    "extra read": extra_read,
}


def spoil(calls: Calls, *, scene: Scene, first: int, seed: str) -> tuple[str, Calls]:
    """Spoil a turn's calls in the first way that can be, beginning with one kind and going round.

    Args:
        calls: The right calls; at least one.
        scene: Where they are made.
        first: Number of the kind to begin with.
        seed: Of the choices.
    """
    kinds = list(KINDS.items())
    for step in range(len(kinds)):
        name, change = kinds[(first + step) % len(kinds)]
        made = change(copy.deepcopy(calls), Random(f"{seed}:{name}"), scene)
        if made is not None:
            return name, made
    raise AssertionError("calls can always be left whole")


class Turn(NamedTuple):
    """A turn's calls, spoilt and right; without calls there is no kind."""

    kind: str
    spoilt: Calls
    right: Calls


def spoilt_turns(task: Task, truth: Truth, *, first: int, seed: int) -> list[Turn]:
    """Spoil the ground truth of each turn, each in the way that follows the one of the turn before."""
    turns = []
    for number, turn in enumerate(task.turns):
        right, kind = [task.read(call) for call in turn.truth], ""
        wrong = right
        if right:
            scene = Scene(task, number, truth.states[number - 1] if number else task.real.initial_state)
            kind, wrong = spoil(right, scene=scene, first=first + number, seed=f"{seed}:{task.id}:{number}")
        turns.append(Turn(kind, wrong, right))
    return turns


def _changed(
    calls: Calls, dice: Random, scene: Scene, change: Callable[[Any, Mapping[str, Any]], Any], *, fits: bool
) -> Calls | None:
    places = [(number, key) for number, call in enumerate(calls) for key in call["args"]]
    dice.shuffle(places)
    for number, key in places:
        call = calls[number]
        tool = scene.tools[call["call"]]
        rule = tool.parameters.get("properties", {}).get(key, {})
        value = change(call["args"][key], rule)
        made = {**call, "args": {**call["args"], key: value}}
        if value != call["args"][key] and (not find_complaints(tool, made["args"])) == fits:
            return [*calls[:number], made, *calls[number + 1 :]]
    return None


def other(value: Any, rule: Mapping[str, Any]) -> Any:
    """Return another value of the same type, one that the rule's enum lists where it has one."""
    if rule.get("enum"):
        return next((each for each in rule["enum"] if each != value), value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"{value}_2"
    return [*value, *value[:1]] if isinstance(value, list) else value


def mistyped(value: Any, rule: Mapping[str, Any]) -> Any:
    """Return a value of another type."""
    if isinstance(value, str):
        return 7
    return [value] if isinstance(value, list | dict) else str(value)
