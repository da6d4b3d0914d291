"""Make random calls both on the real classes and by contract, and compare the states.

Each call starts from the real class's state, so differences do not accumulate. Arguments fit the tool's document; their
values are taken from recorded calls, from the state, and from a list of odd values.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.state import Json, JsonObject

from .classes import RUNTIME, Classes, unshared
from .contracted import class_toolkit
from .fidelity import Recorded, compared, simulated

LONGEST = 20
"""Most calls of one sequence."""

ODD: Sequence[Json] = (
    "", " ", ".", "..", "/", "a/b", "new.txt", "A b", "é", "x" * 30, "2024-09-01", "12/30", "none", 0, 1, 2, 3, 5, -1,
    7.5, 100, 0.1, 12345, 1e9, -2.5, True, False, [], ["a"], [1, 2, 2.5], [3], {},
)  # fmt: skip

DATES = ("2024-02-30", "2024-02-29", "2023-02-29", "2024-1-5", "2024-13-01", "2024/01/01", "24-01-01", "9999-12-31")
"""Odd values of arguments with "date" in their name."""

TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}

Step = tuple[str, JsonObject]


class Start(NamedTuple):
    """The start of a sequence: a class in a task's configuration."""

    kind: str
    task: str
    config: JsonObject


@dataclass(frozen=True, slots=True)
class Values:
    """Values of recorded calls, by tool and argument."""

    known: Mapping[tuple[str, str], list[Json]] = field(default_factory=dict)

    @classmethod
    def of(cls, calls: Iterable[Recorded]) -> Values:
        known: dict[tuple[str, str], list[Json]] = defaultdict(list)
        for one in calls:
            for key, value in one.args.items():
                if value not in known[one.name, key]:
                    known[one.name, key].append(value)
        return cls(known)

    def draw(self, source: Random, tool: str, key: str, rule: JsonObject, state: JsonObject) -> Json:
        """Return a value of the rule's type: mostly from the state or from recorded calls, rarely an odd one."""
        kinds = TYPES.get(str(rule.get("type")), (str, int))
        here = list(values_of(state))
        pools = [
            [value for name, value in here if name == key],
            self.known.get((tool, key), []),
            [value for _, value in here],
            list(near(state)),
            list(rule.get("enum", [])),
            DATES if "date" in key else ODD,
        ]
        fitting = [[one for one in pool if type(one) in kinds] for pool in pools]
        weighed = [(pool, weight) for pool, weight in zip(fitting, (4, 5, 2, 12, 5, 1), strict=True) if pool]
        pool = source.choices([pool for pool, _ in weighed], [weight for _, weight in weighed])[0]
        return source.choice(pool)


def values_of(value: Json, name: str = "") -> Iterator[tuple[str, Json]]:
    """Yield all values of a state with their keys; keys of objects count as values too."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield name, key
            if key.isdecimal():
                yield name, int(key)
            yield from values_of(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from values_of(item, name)
    if not isinstance(value, dict):
        yield name, value


def near(state: JsonObject) -> Iterator[str]:
    for files in state.values():
        if isinstance(files, dict) and "cwd" in files:
            here = {"contents": files["tree"]}
            for name in files["cwd"]:
                here = here["contents"].get(name, {"contents": {}})
            yield from here["contents"]


def random_step(source: Random, kind: str, values: Values, state: JsonObject) -> Step:
    """Return a call of one of the class's tools whose arguments fit its document."""
    tools = list(class_toolkit(kind))
    while True:
        tool = source.choice(tools)
        rules, required = tool.parameters["properties"], tool.parameters.get("required", [])
        chosen = [key for key in rules if key in required or source.random() < 0.5]
        args = {key: values.draw(source, tool.name, key, rules[key], state) for key in chosen}
        if not find_complaints(tool, args):
            return tool.name, args


class Real:
    """A class and its contracts, from one start."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.classes = Classes([start.kind], {start.kind: start.config})
        self.state = self.classes.initial_state
        runtime: Any = self.state[RUNTIME]
        self.hidden: Mapping[str, JsonObject] = {name: part.get("private", {}) for name, part in runtime.items()}

    def step(self, step: Step) -> JsonObject:
        """Make a call on both sides and keep the real state."""
        name, args = step
        result, raised, after = make_call(self.classes, self.start.kind, self.state, step)
        one = Recorded(self.start.kind, name, args, public(self.state), public(after), result, raised)
        got = simulated(class_toolkit(self.start.kind), one, self.hidden)
        self.state, self.hidden = after, got.hidden
        return compared(one, got)


def make_call(classes: Classes, kind: str, state: JsonObject, step: Step) -> tuple[Json, str | None, JsonObject]:
    """Return the real class's answer to a call in a state, what it raises, and the state after it.

    Raises ValueError as `Real.step` does.
    """
    (name, args), instances = step, classes.instances(state)
    result, raised = answered(getattr(instances[kind], name), {**unshared(kind, name), **args})
    return result, raised, classes.read(instances)


def answered(method: Callable[..., Any], args: JsonObject) -> tuple[Json, str | None]:
    """Return a method's answer as JSON, or as text if it is not JSON; and what it raises."""
    try:
        return json.loads(json.dumps(method(**args), default=str)), None
    except Exception as error:  # noqa: BLE001 - the benchmark's classes raise anything
        return None, f"{type(error).__name__}: {error}"


def public(state: JsonObject) -> JsonObject:
    return {name: part for name, part in state.items() if name != RUNTIME}


def compare_random(start: Start, *, seed: str, values: Values) -> tuple[list[JsonObject], int]:
    """Return the comparisons for a random sequence of calls.

    The second value counts sequences that ended early because the state could not be represented in JSON.
    """
    source, real = Random(seed), Real(start)
    made: list[JsonObject] = []
    for _ in range(source.randint(2, LONGEST)):
        try:
            made.append(real.step(random_step(source, start.kind, values, public(real.state))))
        except ValueError:
            return made, 1
    return made, 0
