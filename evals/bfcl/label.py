"""Whether a turn is really done: by the official checker, and by what the real classes keep for the next turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .official import Plan, Replay, check
from .tasks import Task


def really_done(task: Task, plan: Plan) -> bool:
    """Return True if a plan's turns are valid and leave the real classes where the ground truth leaves them.

    The official checker does not look at private attributes: the current folder, the place of the random source. The
    next turn begins with them, so an attempt that changes them is wrong, too. Neither looks at our JSON.

    Args:
        task: The task.
        plan: Its first turns, in the official result format.
    """
    turns = len(plan)
    if not check(task, plan, turns=turns).valid:
        return False
    truth: Plan = [[turn.truth] for turn in task.turns[:turns]]
    return hidden(task, plan) == hidden(task, truth)


def hidden(task: Task, plan: Plan) -> dict[str, Any]:
    """Return the private attributes of the real classes after a plan, in a form that can be compared."""
    instances: Mapping[str, Any] = {}
    with Replay(task) as real:
        for turn in plan:
            _, instances = real.run([call for step in turn for call in step])
        return {name: _private(instance) for name, instance in instances.items()}


def _private(instance: Any) -> dict[str, Any]:
    kept = {key: value for key, value in vars(instance).items() if key.startswith("_")}
    if "_random" in kept:
        kept["_random"] = kept["_random"].getstate()
    if "_current_dir" in kept:
        kept["_current_dir"] = _folders(kept["_current_dir"])
    return kept


def _folders(folder: Any) -> Sequence[str]:
    names = []
    while folder is not None:
        names.append(folder.name)
        folder = folder.parent
    return names
