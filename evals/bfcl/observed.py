"""Observations of the eight classes: recorded calls, and random calls on the real classes in their own state."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any

from gecko_graph import Toolkit
from gecko_graph.state import JsonObject
from gecko_graph.values.difference import make_patch
from gecko_graph.values.observation import Observation

from .classes import Classes, unshared
from .differential import LONGEST, Start, Values, answered, public, random_step
from .drawn import split_hidden
from .fidelity import Recorded, recorded_calls
from .tasks import documents

HELD_OUT = 5
"""One task of this many is held out, by its number, because variants of a task share calls."""


def is_held_out(task: str) -> bool:
    """Return whether a task is held out from the learner."""
    return hashlib.sha256(f"learn:{task.rpartition('_')[2]}".encode()).digest()[0] % HELD_OUT == 0


def plain_toolkit(kind: str) -> Toolkit:
    """Return a class's documented tools, without contracts or code."""
    return Toolkit.from_tools(documents(kind).values(), title=kind)


def observe(one: Recorded, source: str = "") -> Observation:
    """Return a recorded call as an observation, with the state of its class only."""
    before, after = (shown.get(one.kind, {}) for shown in (one.before, one.after))
    return Observation(
        tool=one.name,
        args=one.args,
        status="error" if one.fails else "ok",
        result=one.raised if one.raised else one.result,
        before=before,
        change=make_patch(before, after),
        source=source,
    )


def journal(tasks: Iterable[Mapping[str, Any]], kinds: Iterable[str]) -> Iterator[tuple[str, Recorded]]:
    """Yield the recorded calls of these classes, each with its task's id."""
    wanted = set(kinds)
    for task in tasks:
        for one in recorded_calls(task):
            if one.kind in wanted:
                yield task["id"], one


def random_calls(kind: str, starts: list[Start], values: Values, *, count: int, seed: str) -> Iterator[Recorded]:
    """Yield calls with documented arguments, made on the real class in sequences from its tasks' states."""
    source, made = Random(seed), 0
    while made < count:
        start = source.choice(starts)
        classes = Classes([kind], {kind: start.config})
        state = classes.initial_state
        for _ in range(source.randint(2, LONGEST)):
            try:
                one, state = _call(classes, kind, state, *random_step(source, kind, values, public(state)))
            except ValueError:
                break  # a folder that contains itself cannot be represented in JSON
            made += 1
            yield one


def _call(classes: Classes, kind: str, state: JsonObject, name: str, args: JsonObject) -> tuple[Recorded, JsonObject]:
    instances = classes.instances(state)
    result, raised = answered(getattr(instances[kind], name), {**unshared(kind, name), **args})
    after = classes.read(instances)
    before, now = (split_hidden(public(each))[0] for each in (state, after))
    return Recorded(kind, name, args, before, now, result, raised), after


def starts_of(tasks: Iterable[Mapping[str, Any]], kind: str) -> list[Start]:
    """Return the starts for random sequences of a class."""
    return [
        Start(kind, task["id"], task["initial_config"].get(kind, {}))
        for task in tasks
        if kind in task["involved_classes"]
    ]
