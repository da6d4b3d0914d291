"""Episodes of tasks over the wires of trainers: OpenEnv 0.10, and a resources server of NeMo Gym.

Each session is a `GeckoEnv` that begins as a fork of its task's start. Nothing that a policy is shown tells goal or
reward: the reward is 0.0 until the episode ends, then the goal's.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from ..conversation.user import Case
from ..errors import GeckoError
from ..state import Json, JsonObject, Step
from ..training.env import GeckoEnv
from .sessions import Refused

FINISH = "finish"
_ANSWER = {"type": "string", "description": "What is said to the user."}


class Episode:
    """One session of a trainer."""

    def __init__(self, env: GeckoEnv, finish: str) -> None:
        self._env, self._finish = env, finish
        self._lock = threading.Lock()
        self.id, self.task, self.steps, self.done, self._reward = "", "", 0, False, 0.0

    def reset(self, given: Mapping[str, Any]) -> str:
        """Begin an episode: `task` by name or number, `seed`, `episode_id`; returns the user's words.

        Raises:
            GeckoError: There is no such task.
        """
        with self._lock:
            task, seed = given.get("task"), given.get("seed")
            if not isinstance(task, str | int | None) or not isinstance(seed, int | None):
                raise GeckoError("reset: expected a task by name or number, and a seed that is a whole number")
            seen = self._env.reset(task, seed)
            self.id, self.task = str(given.get("episode_id") or uuid4()), self._env.task
            self.steps, self.done = 0, False
            return str(seen["messages"][0]["content"])

    def call(self, name: Any, args: Any) -> tuple[Step | None, float, bool]:
        """Make a call, or finish; returns the step, the reward and whether that was the end.

        Raises:
            GeckoError: There was no reset, or the episode is over.
        """
        with self._lock:
            if self.done or not self.id:
                raise GeckoError("the episode is over: reset" if self.done else "there is no episode yet: reset")
            if name == self._finish:
                answer = args.get("answer", "") if isinstance(args, Mapping) else ""
                stepped = self._env.step([], answer=str(answer))
            else:
                stepped = self._env.step([{"name": name, "args": args}])
            self.steps, self.done = self.steps + 1, stepped.done
            self._reward = stepped.reward if stepped.done else 0.0
            return None if name == self._finish else self._env.log[-1], self._reward, stepped.done

    def score(self, answer: str) -> float:
        """Return what the goal says: at the episode's end, or at this point if it ended here with an answer."""
        with self._lock:
            return self._reward if self.done or not self.id else float(self._env.fork().step([], answer=answer).reward)


class Episodes:
    """What both wires serve.

    Args:
        tasks: Cases with a user and milestones, by `GeckoEnv`'s rules; all have the same tools.
        most: NeMo Gym's sessions at once; the oldest gives way.

    Raises:
        GeckoError: A task cannot be played, or the tasks differ in their tools.
    """

    def __init__(self, tasks: Sequence[Case], *, most: int = 10_000) -> None:
        self.env, self._most = GeckoEnv(tasks), most
        cases = list(self.env.tasks.values())
        self.tools = cases[0].tools
        if any(case.tools.names != self.tools.names for case in cases):
            raise GeckoError("--tasks: expected tasks that all have the same tools")
        names = {each["function"]["name"] for each in self.tools.as_openai()} | {*self.tools.names}
        self.finish = next(name for name in _names(FINISH) if name not in names)
        self._open: OrderedDict[str, Episode] = OrderedDict()

    def begin(self) -> Episode:
        """Return a new session."""
        return Episode(self.env.fork(), self.finish)

    def describe(self, *, key: str = "input_schema") -> list[JsonObject]:
        """Return the tools as a policy is shown them, `finish` among them."""
        found = [each["function"] for each in self.tools.as_openai()]
        shown = [
            {"name": each["name"], "description": each.get("description", ""), key: each["parameters"]}
            for each in found
        ]
        end: JsonObject = {"type": "object", "properties": {"answer": _ANSWER}, "required": ["answer"]}
        return [*shown, {"name": self.finish, "description": "Answer the user; this ends the conversation.", key: end}]

    def seed(self, row: Mapping[str, Any]) -> str:
        """Begin the episode of a row, `{"task": name}`; returns the session's key."""
        episode, key = self.begin(), uuid4().hex
        episode.reset({"task": row.get("task", 0)})
        self._open[key] = episode
        while len(self._open) > self._most:
            self._open.popitem(last=False)
        return key

    def of(self, key: str | None) -> Episode:
        """Return the episode of a key. Raises Refused."""
        if key is None or key not in self._open:
            raise Refused(409, "there is no such session: POST seed_session first")
        return self._open[key]

    def close(self, key: str) -> None:
        """Forget an episode."""
        self._open.pop(key, None)


def _names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in range(2, 1_000))


def told(step: Step | None) -> tuple[Json, str]:
    """Return a call's result, and why it was refused or failed ("" where it was not)."""
    if step is None:
        return None, ""
    if "outcome" not in step:
        return None, json.dumps(step["complaints"], ensure_ascii=False)
    result = step["outcome"]["result"]
    return result, "" if step["outcome"]["status"] == "ok" else json.dumps(result, ensure_ascii=False)
