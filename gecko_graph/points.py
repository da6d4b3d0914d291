"""A point of a world: its task state and its calls so far. Never changed in place, so that worlds share points."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from .channels import AttemptState, apply_update
from .state import JsonObject, Step
from .task_state.patch import booked_patch

NOTES = ("facts", "semantic", "asked")
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
            "task_state": state, "trace": [], "steps": [], "facts": {}, "semantic": [], "asked": {}, "usage": {},
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
