"""The official multi-turn checker and replay, each on private instances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from threading import Lock
from typing import Any, NamedTuple

from . import package
from .classes import forget
from .tasks import Task

Plan = Sequence[Sequence[Sequence[str]]]
"""The decoded official result format: turns of steps of calls, each written as a Python call."""

_NUMBERS = count(1)
_ALONE = Lock()


class Verdict(NamedTuple):
    """The verdict of the official checker: valid, or the kind of error."""

    valid: bool
    error: str = ""


def check(task: Task, plan: Plan, *, turns: int | None = None) -> Verdict:
    """Return the official checker's verdict on a plan after the task's past: on all turns, or the first ones.

    A missing turn counts as a forced end, as in the official evaluator.
    """
    truth = [list(turn.truth) for turn in task.turns][:turns]
    if len(plan) < len(truth):
        return Verdict(False, "multi_turn:force_terminated")
    decoded = [[list(step) for step in turn] for turn in plan][: len(truth)]
    if task.past:
        truth, decoded = [[*task.past], *truth], [[[call] for call in task.past], *decoded]
    entry = {"id": task.id, "initial_config": task.config, "involved_classes": list(task.classes)}
    checker = package.load(package.CHECKER)
    with _private(task) as name:
        result = checker.multi_turn_checker(decoded, truth, entry, task.category, name)
    return Verdict(bool(result["valid"]), str(result.get("error_type", "")))


class Replay:
    """The real classes, called as the benchmark calls them, turn by turn. Use as a context manager.

    They start after the task's past, whose answers are in `past`.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._open = _private(task)
        self._name = ""
        self.past: list[str] = []

    def __enter__(self) -> Replay:
        self._name = self._open.__enter__()
        self.past, _ = self.run(self._task.past)
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def run(self, calls: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
        """Return the answers to these calls, and the instances by class afterwards."""
        task, utils = self._task, package.load(package.UTILS)
        answers, instances = utils.execute_multi_turn_func_call(
            list(calls), task.config, list(task.classes), self._name, task.id, long_context=task.is_long
        )
        return answers, instances


def same_state(instances: dict[str, Any], real: dict[str, Any]) -> bool:
    """Return the result of the official comparison of two sets of instances."""
    return bool(package.load(package.CHECKER).state_checker(instances, real)["valid"])


def really_done(task: Task, plan: Plan) -> bool:
    """Return whether a plan's turns are valid and lead to the same real state as the ground truth.

    The official checker ignores private attributes (the current folder, the position of the random source), which the
    next turn depends on.
    """
    truth: Plan = [[turn.truth] for turn in task.turns[: len(plan)]]
    return check(task, plan, turns=len(plan)).valid and _hidden(task, plan) == _hidden(task, truth)


def _hidden(task: Task, plan: Plan) -> dict[str, Any]:
    """Return the private attributes of the real classes after a plan, in a comparable form."""
    with Replay(task) as real:
        _, instances = real.run([call for turn in plan for step in turn for call in step])
    found = {}
    for name, instance in instances.items():
        kept = {key: value for key, value in vars(instance).items() if key.startswith("_")}
        if "_random" in kept:
            kept["_random"] = kept["_random"].getstate()
        if "_current_dir" in kept:
            kept["_current_dir"] = instance.pwd()
        found[name] = kept
    return found


@contextmanager
def _private(task: Task) -> Iterator[str]:
    """Yield an unused model name; the official code keeps instances in its module by this name forever.

    One at a time: a mutable default argument is shared by all instances.
    """
    utils = package.load(package.UTILS)
    name = f"gecko{next(_NUMBERS)}x"
    with _ALONE:
        forget(task.classes)
        try:
            yield name
        finally:
            forget(task.classes)
            for key in [key for key in vars(utils) if key.startswith(f"{name}_")]:
                delattr(utils, key)
