"""A point of a world: its task state and its calls so far. Never changed in place, so that worlds share points."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import StateError
from ..state import JsonObject, Step
from ..values.digest import check_json, clone
from ..values.patch import booked_patch, fold_patches
from .channels import AttemptState, apply_update, gather_facts

NOTES = ("facts", "argument_verdicts", "asked")
"""What a call of a world adds beside its step."""


class Point(NamedTuple):
    """The attempt's keys that a world's nodes read, and what each call noted."""

    values: AttemptState
    notes: tuple[JsonObject, ...]

    @classmethod
    def first(cls, state: JsonObject) -> Point:
        """Return the point before any call."""
        values: AttemptState = {
            "number": 1, "turn": 0, "task": "", "before": state, "conversation": [], "lesson": None,
            "task_state": state, "trace": [], "steps": [], "facts": {}, "argument_verdicts": [],
            "asked": {}, "usage": {},
        }  # fmt: skip
        return cls(values, ())

    def after(self, update: Mapping[str, Any]) -> Point:
        """Return the point after the calls of one message."""
        note = {key: update[key] for key in NOTES if update.get(key)}
        empty: list[JsonObject] = [{} for _ in update["steps"][1:]]
        return Point(apply_update(self.values, update), (*self.notes, *empty, note))

    def through(
        self,
        steps: list[Step],
        notes: Collection[JsonObject],
        *,
        check: Callable[[JsonObject, JsonObject], None] | None = None,
    ) -> Point:
        """Return the point after these calls, as when they were made. Raises PatchConflict.

        `check` raises for the states before and after a simulated call.
        """
        point = self
        for step, note in zip(steps, notes, strict=True):
            outcome = step.get("outcome")
            patch = booked_patch(outcome) if outcome else []
            before, point = point, point.after({"steps": [step], "task_state": patch, **note})
            if check and outcome and outcome["simulated"]:
                check(before.values["task_state"], point.values["task_state"])
        return point


def read_state(state: Any) -> JsonObject:
    """Return a copy of a task state. Raises StateError where it is no JSON object."""
    check_json(state, what="state")
    if not isinstance(state, dict):
        raise StateError(f"state: expected a JSON object (a dict with text keys), got {type(state).__name__}")
    return clone(state)


def fold_snapshot(old: JsonObject, writes: Sequence[JsonObject]) -> JsonObject:
    """Return a world's snapshot after its writes (reducer): whole ones, or `{"records", "usage"}` of more calls."""
    for write in writes:
        old = write if "start" in write else _extend(old, write)
    return old


def _extend(old: JsonObject, write: JsonObject) -> JsonObject:
    steps, notes = ([record[key] for record in write["records"]] for key in ("step", "note"))
    patches = [booked_patch(step["outcome"]) for step in steps if "outcome" in step]
    return old | {
        "state": fold_patches(old["state"], patches),
        "log": [*old["log"], *steps],
        "facts": gather_facts(old["facts"], [note.get("facts", {}) for note in notes]),
        "notes": [*old["notes"], *notes],
        "usage": write["usage"],
    }
