"""GeckoEnv: tasks as an environment; a `World` answers the calls, and the policy never sees the goal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from random import Random
from typing import Any, Literal, NamedTuple, cast, get_args

from ..conversation.milestones.measures import check_installed
from ..conversation.played import score_world
from ..conversation.scenario import Scenario
from ..conversation.score import find_status
from ..conversation.tools import show_step
from ..errors import GeckoError, did_you_mean
from ..models.formatting import text_of
from ..state import JsonObject, Step
from ..values.digest import clone, digest
from ..values.places import as_text
from ..world.world import World

Reward = Literal["terminal", "stepwise"]
MAX_STEPS = 30
REFUSED_COST = 0.05


class Stepped(NamedTuple):
    observation: JsonObject
    reward: float
    done: bool
    info: JsonObject


class GeckoEnv:
    """Tasks as an environment in plain Python.

    A reset forks the task's start world, so that all episodes of a task begin with the same digest. Nothing that a
    policy sees contains the goal.

    Args:
        tasks: Scenarios with a user and milestones, generated or written.
        reward: `terminal`: 1.0 at the end if the goal is met, else 0.0. `stepwise`: the gain in milestone similarity of
            each step, minus a cost for refused calls.
        max_steps: Steps after which an episode ends.

    Raises:
        GeckoError: No tasks, a task without user or milestones, or two tasks with the same name.
    """

    def __init__(self, tasks: Sequence[Scenario], *, reward: Reward = "terminal", max_steps: int = MAX_STEPS) -> None:
        if reward not in get_args(Reward):
            raise GeckoError(f"reward: expected one of {', '.join(get_args(Reward))}, got {reward!r}")
        self.tasks = index_tasks(tasks)
        self._is_stepwise, self._max_steps = reward == "stepwise", max_steps
        self._starts: dict[str, World] = {}
        self._world: World | None = None

    def reset(self, task: str | int | None = None, seed: int | None = None) -> JsonObject:
        """Begin an episode, and return the policy's observation.

        Args:
            task: Name or index of the task; by default a random one.
            seed: Seed of the random choice.

        Returns:
            `{"messages", "tools"}`, both in OpenAI's form.

        Raises:
            GeckoError: There is no such task.
        """
        names = list(self.tasks)
        drawn = Random(seed).randrange(len(names)) if task is None else task
        name = names[drawn] if isinstance(drawn, int) and -len(names) <= drawn < len(names) else str(drawn)
        if name not in self.tasks:
            raise GeckoError(f"no task {name!r}{did_you_mean(name, names)}")
        self.task, case = name, self.tasks[name]
        if name not in self._starts:
            knobs = case.limits.model_copy(update={"semantic_validation": False})
            self._starts[name] = World(case.tools, state=case.state, context=knobs, derive=False)
        self._world = self._starts[name].fork()
        faces = (each["function"]["name"] for each in case.tools.as_openai())
        self._faces = dict(zip(case.tools.names, faces, strict=True))
        self._messages: list[JsonObject] = [{"role": "user", "content": case.words}]
        self._steps, self._refused, self._done = 0, 0, False
        self._reached, self._info = self._measure(None)[0] if self._is_stepwise else 0.0, self._tell(None)
        return self._observe()

    def step(self, calls: Any = (), answer: str | None = None) -> Stepped:
        """Execute calls, and optionally answer, which ends the episode.

        Args:
            calls: A list of `{"name", "args"}` or OpenAI's tool calls. Anything else is refused like a call with
                invalid arguments, and reported in the observation.
            answer: The final message to the user.

        Raises:
            GeckoError: There was no reset.
        """
        if self._world is None:
            raise GeckoError("step: reset the environment first")
        if self._done:
            return Stepped(self._observe(), 0.0, True, dict(self._info))
        answer = None if answer is None else str(answer)
        given = [calls] if isinstance(calls, str | Mapping) or not isinstance(calls, Iterable) else list(calls)
        made = self._world.call_all([_read(each, self._world) for each in given])
        self._steps += 1
        refused = sum("outcome" not in step or step["outcome"]["status"] != "ok" for step in made)
        self._refused += refused
        self._show(made, answer)
        self._done = answer is not None or self._steps >= self._max_steps
        reward, met = 0.0, False
        if self._done or self._is_stepwise:
            reached, met = self._measure(answer)
            reward = reached - self._reached - refused * REFUSED_COST if self._is_stepwise else float(met)
            self._reached = reached
        self._info = self._tell(met if self._done else None)
        return Stepped(self._observe(), reward, self._done, dict(self._info))

    def fork(self) -> GeckoEnv:
        """Return another environment in the same episode; later steps are independent."""
        other = copy(self)
        if self._world is not None:
            other._world, other._messages = self._world.fork(), list(self._messages)
        return other

    @property
    def log(self) -> list[Step]:
        """The episode's calls so far, including refused ones; a copy."""
        return self._world.log if self._world is not None else []

    def _observe(self) -> JsonObject:
        case = self.tasks[self.task]
        return {"messages": clone(self._messages), "tools": clone(case.tools.as_openai())}

    def _tell(self, met: bool | None) -> JsonObject:
        """Return the episode's `info`: its start and its progress."""
        begun = digest(self.tasks[self.task].state)
        told = {"task": self.task, "start_digest": begun, "steps": self._steps, "refused": self._refused}
        return told if met is None else {**told, "success": met}

    def _measure(self, answer: str | None) -> tuple[float, bool]:
        """Return the similarity to the goal, and whether the goal is met."""
        world = cast("World", self._world)
        found = score_world(self.tasks[self.task], world, answer)
        return found["milestone_similarity"] or 0.0, find_status(found, "ended", ()) == "passed"

    def _show(self, made: Sequence[Step], answer: str | None) -> None:
        """Add the calls with their results, and the answer, to the policy's messages."""
        shown: JsonObject = {"role": "assistant", "content": answer}
        for step in made:
            call = step["call"]
            name = self._faces.get(call["name"], call["name"])
            function = {"name": name, "arguments": call.get("malformed") or as_text(call["args"])}
            shown.setdefault("tool_calls", []).append({"id": call["id"], "type": "function", "function": function})
        self._messages += [shown] if made or answer is not None else []
        for step in made:
            text = text_of(show_step(cast("World", self._world), step)[1])
            self._messages.append({"role": "tool", "tool_call_id": step["call"]["id"], "content": text})


def index_tasks(tasks: Sequence[Scenario]) -> dict[str, Scenario]:
    """Return tasks by name. Raises GeckoError if one cannot be played, or has no goal to score."""
    check_installed()
    found: dict[str, Scenario] = {}
    for number, case in enumerate(tasks):
        if not isinstance(case, Scenario) or case.user is None or not case.goal.milestones:
            raise GeckoError(f"tasks[{number}]: expected a scenario with a user and milestones")
        if case.name in found:
            raise GeckoError(f"tasks[{number}]: duplicate name {case.name!r}")
        found[case.name] = case
    if not found:
        raise GeckoError("tasks: expected at least one")
    return found


def _read(given: Any, world: World) -> Any:
    """Return a call in a world's form; any other value is returned unchanged, to be refused."""
    inner = given.get("function", given) if isinstance(given, Mapping) else None
    if not isinstance(inner, Mapping):
        return given
    name, args = inner.get("name"), inner.get("args", inner.get("arguments", {}))
    if isinstance(args, str):
        with suppress(ValueError, RecursionError):
            args = json.loads(args)
    return {"name": world.toolkit.resolve(name) if isinstance(name, str) else name, "args": args}
