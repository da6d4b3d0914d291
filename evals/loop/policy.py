"""A tabular policy that learns in `GeckoEnv`, from words, tools and observations: never from state or goal."""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any

from gecko_graph.schemas.specimens import words
from gecko_graph.state import Json, JsonObject
from gecko_graph.training.env import GeckoEnv
from gecko_graph.training.tasks import Task, make_tasks
from gecko_graph.training.walks import CHAIN
from gecko_graph.values.places import scalars

from . import Given, Told
from .tasks import kits

KITS, TASKS, EPISODES, TRIES, UNKNOWN, RATE = ("shop",), 100, 10_000, 3, 0.6, 0.1
CHANCE, TRAINED, UNSEEN, SECONDS = 0.2, 0.8, 0.5, 360
_CLAUSE = re.compile(r"(?:\(\d+\) |this: )(.*?)\.(?= \(\d+\)|$)")
_PART = re.compile(r'(.+?)(?: the (.+?))? (?:of the one with (.+?) "(.*)"|as given by step (\d+)|"(.*)"|(\S+))')


class Policy:
    """Averages of what choices have come to, by what they were made for."""

    def __init__(self, seed: int, curious: float) -> None:
        self._rng, self.curious, self.learns = Random(seed), curious, True
        self._table: dict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._made: list[tuple[Any, float]] = []

    def choose(self, about: Any, options: Sequence[Any]) -> Any:
        """Return an option, mostly the one that was best so far."""
        curious = self._rng.random() < self.curious
        ranked = sorted(options, key=lambda one: (-self._value((about, one)), self._rng.random()))
        option = self._rng.choice(list(options)) if curious else ranked[0]
        self._made.append(((about, option), 0.0))
        return option

    def _value(self, key: Any) -> float:
        mean, count = self._table[key]
        return mean if count else UNKNOWN

    def credit(self, first: int, worth: float) -> None:
        """Note what the choices since the first have come to so far; what was refused is known at once."""
        self._made[first:] = [(key, worth) for key, _ in self._made[first:]]
        if not worth:
            self.finish(False, first)

    def finish(self, met: bool, first: int = 0) -> None:
        """Add the episode's choices to the table: where the goal was met all were right."""
        for key, worth in self._made[first:] if self.learns else ():
            mean, count = self._table[key]
            target = 1.0 if met else worth
            rate = max(RATE if target < mean else 5 * RATE, 1 / (count + 1))  # what was right once counts more
            self._table[key] = [mean + (target - mean) * rate, count + 1]
        del self._made[first:]

    @property
    def at(self) -> int:
        """How many choices were made."""
        return len(self._made)


class Episode:
    """One episode: clause by clause, each a call, with others before it that look something up."""

    def __init__(self, env: GeckoEnv, policy: Policy, observation: JsonObject) -> None:
        self._env, self._policy, self._results = env, policy, list[Json]()
        self._tools = {each["function"]["name"]: each["function"]["parameters"] for each in observation["tools"]}
        self._given: dict[int, tuple[str, Json]] = {}
        self._refused = 0
        self._words = str(observation["messages"][0]["content"])

    def play(self) -> bool:
        """Return whether the goal is met."""
        for number, clause in enumerate(_CLAUSE.findall(self._words), 1):
            head, _, rest = clause.partition(": ")
            parts = [found.groups() for each in rest.split("; ") if (found := _PART.fullmatch(each))]
            for _ in range(TRIES):
                first = self._policy.at
                name = self._policy.choose(("tool", head), list(self._tools))
                args = self._fill(self._tools[name], name, parts)
                reward, result = self._call(name, args)
                used = len({*map(str, _leaves(args))}) / len(parts) if parts else 1.0
                worth = 0.0 if reward is None else 1.0 if reward > 0 else 0.1 * min(used, 1.0) if not reward else 0.05
                self._policy.credit(first, worth)
                if worth:
                    self._given[number] = name, result
                    break
        met = self._env.step(answer="Done.").info["success"]
        self._policy.finish(met)
        return bool(met)

    def _call(self, name: str, args: JsonObject) -> tuple[float | None, Json]:
        """Return the reward of a call, None where it was refused, and what it gave."""
        before = self._refused
        stepped = self._env.step([{"name": name, "args": args}])
        self._refused = stepped.info["refused"]
        if self._refused > before:
            return None, None
        text = stepped.observation["messages"][-1]["content"]
        try:
            result = json.loads(text)
        except ValueError:
            result = text
        self._results.append(result)
        return stepped.reward, result

    def _fill(self, schema: JsonObject, name: str, parts: Sequence[Any]) -> JsonObject:
        """Return arguments: each is taken from the words that are called as it is, from others, or left out."""
        args = {}
        for key, rule in schema.get("properties", {}).items():
            if rule.get("type") == "array" and "properties" in rule.get("items", {}):
                size = len(rule["items"].get("required", ())) or 1
                mine = [part for part in parts if any(part[0] == _say(one) for one in rule["items"]["properties"])]
                rows = [self._fill(rule["items"], name, mine[at : at + size]) for at in range(0, len(mine), size)]
                args[key] = rows
                continue
            labels = [part[0] for part in parts]
            about = "argument", _say(key) in labels, key in schema.get("required", ())
            how = self._policy.choose(about, ["same", "other", "none"] if labels else ["none"])
            label = (
                _say(key)
                if how == "same"
                else self._policy.choose((name, key), sorted({*labels}))
                if how == "other"
                else ""
            )
            part = next((part for part in parts if part[0] == label), None)
            if part is not None and (value := self._resolve(part)) is not None:
                args[key] = value
        return args

    def _resolve(self, part: Any) -> Json:
        """Return the value that words name: themselves, of an earlier result, or of a row to be looked up."""
        label, field, column, text, step, quoted, bare = part
        field = field or label
        if bare is not None:
            return json.loads(bare) if re.fullmatch(r"-?\d+(\.\d+)?|true|false|null", bare) else bare
        if step is not None:
            name, result = self._given.get(int(step), ("", None))
            return self._pick(dict(_fields(result)), ("given", name), field)
        if quoted is not None:
            return quoted
        for _ in range(TRIES):
            if row := self._find(column, text):
                return self._pick(row, ("row",), field)
            first = self._policy.at
            reads = self._policy.choose(("look", label, column), list(self._tools))
            asked = self._tools[reads].get("properties", {})
            given = [key for key in asked if self._policy.choose(("look by", reads, key), [False, True])]
            self._call(reads, dict.fromkeys(given, text))
            self._policy.credit(first, float(self._find(column, text) is not None))
            self._policy.finish(False, first)
        return None

    def _find(self, column: str, text: str) -> JsonObject | None:
        rows = (row for row in _rows(self._results) if any(_say(key) == column and row[key] == text for key in row))
        return next(rows, None)

    def _pick(self, row: JsonObject, about: tuple[str, ...], label: str) -> Json:
        fields = {_say(key): value for key, value in row.items() if not isinstance(value, dict | list)}
        if not fields:
            return None
        if label in fields and self._policy.choose(about[:1], ["same", "other"]) == "same":
            return fields[label]
        return fields[self._policy.choose((*about, label), sorted(fields))]


def _say(name: str) -> str:
    return " ".join(words(name))


def _leaves(value: Json) -> Iterator[Json]:
    return (each for _, each in scalars(value))


def _rows(value: Json) -> Iterator[JsonObject]:
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _rows(each)


def _fields(value: Json) -> Iterator[tuple[str, Json]]:
    for row in _rows(value):
        yield from ((key, each) for key, each in row.items() if not isinstance(each, dict | list))


def rate(env: GeckoEnv, policy: Policy, tasks: Sequence[Task], rounds: int = 1) -> float:
    """Return how often a policy meets the goal."""
    played = [Episode(env, policy, env.reset(task.name)).play() for task in [*tasks] * rounds]
    return sum(played) / len(played)


def measure(given: Given) -> Iterator[Told]:
    """Yield chance, and what a policy comes to on the tasks that it was trained on, and on others."""
    for name in KITS:
        toolkit, states = kits(given)[name]
        made = (task for task in make_tasks(toolkit, states, 10 * TASKS) if task.chain >= CHAIN)
        tasks = list(islice(made, given.limit or TASKS))
        started, half = time.process_time(), len(tasks) // 2
        env, known, unseen = GeckoEnv(tasks, reward="stepwise"), tasks[:half], tasks[half:]
        chance = rate(env, Policy(0, 1.0), tasks)
        policy = Policy(1, 0.3)
        for at in range(rounds := (EPISODES if not given.limit else 20 * half) // half):
            policy.curious = 0.3 * (1 - at / rounds)
            rate(env, policy, known)
        policy.curious, policy.learns = 0.0, False
        trained, other = rate(env, policy, known), rate(env, policy, unseen)
        spent = time.process_time() - started
        yield Told(
            f"{name}: chance {chance:.2f} on {len(tasks)} tasks of {CHAIN} and more dependent calls", chance < CHANCE
        )
        yield Told(f"{name}: {trained:.2f} on {half} trained tasks", trained > TRAINED)
        yield Told(f"{name}: {other:.2f} on {len(unseen)} unseen tasks", other > UNSEEN)
        yield Told(f"{name}: {spent:.0f} CPU seconds of training and playing", spent < SECONDS)
