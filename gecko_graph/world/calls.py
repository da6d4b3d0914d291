"""Answer calls on a task state without a graph, and keep a world's history of states."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from functools import partial
from itertools import chain, cycle
from typing import Any, NamedTuple

from ..errors import PatchConflict, StateError
from ..models.ask import AnyAsk, Reply
from ..models.node import NodeScope, Update
from ..state import VERSION, Call, Complaint, JsonObject, Step
from ..tools import Toolkit
from ..values.digest import check_json, clone
from ..values.notes import without_change
from ..values.patch import booked_patch, fold_patches
from .channels import AttemptState, apply_update
from .check import validator
from .commit import state_updater
from .ladder import Rungs, simulator
from .reducers import Grown, fold_state, gather_facts

NOTES = ("facts", "argument_verdicts", "asked")
"""Keys that a call adds to a world, apart from its step."""

Given = tuple[Call, Complaint | None]
Nodes = Sequence[partial[Any]]


def answer_calls(
    state: AttemptState, scope: NodeScope, *, given: Sequence[Given], nodes: Nodes
) -> Generator[list[AnyAsk], list[Reply], Update]:
    """Answer the calls of one message with validator, simulator and state_updater, as one node function."""
    refused = [{"v": VERSION, "call": call, "complaints": [complaint]} for call, complaint in given if complaint]
    writes: Update = {"steps": refused, "facts": {}, "argument_verdicts": []}
    update: Update = {"pending": [call for call, complaint in given if complaint is None]}
    order_of_nodes = chain(nodes, cycle(nodes[1:]))
    while update["pending"] or update.get("proposals"):
        state = apply_update(state, update)
        update = yield from next(order_of_nodes)(state, scope)
        for key in writes.keys() & update.keys():
            writes[key] = {**update[key], **writes[key]} if key == "facts" else writes[key] + update[key]
    if len(given) > 1:
        order = [call["id"] for call, _ in given]
        writes["steps"].sort(key=lambda step: order.index(step["call"]["id"]))
    last = update.get("task_state", [])
    return {**writes, "task_state": last if isinstance(last, dict) else fold_state(state["task_state"], [last])}


def simulate_call(
    state: JsonObject, scope: NodeScope, call: Call, *, before: JsonObject, steps: list[Step], nodes: Nodes
) -> Generator[Sequence[AnyAsk], list[Reply], Step]:
    values = Point.first(before).values | {"task_state": state, "steps": steps}
    update = yield from answer_calls(values, scope, given=[(call, None)], nodes=nodes)
    step: Step = update["steps"][0]
    return step


def build_nodes(toolkit: Toolkit, rungs: Rungs) -> list[partial[Any]]:
    return [
        partial(validator, toolkit=toolkit),
        partial(simulator, toolkit=toolkit, rungs=rungs),
        partial(state_updater, toolkit=toolkit),
    ]


class Point(NamedTuple):
    """A world's state after some calls: the keys that nodes read, and each call's notes.

    Points share their history, so that a new point costs the same after 10 calls as after 100,000.
    """

    values: AttemptState
    notes: Grown[JsonObject]

    @classmethod
    def first(cls, state: JsonObject) -> Point:
        values: Any = {
            "number": 1, "turn": 0, "task": "", "before": state, "conversation": [], "lesson": None, "usage": {},
            "task_state": state, "trace": [], "steps": Grown(lambda step: step["call"]["id"]), "facts": {},
            "asked": {}, "argument_verdicts": Grown(operator.itemgetter("key")),
        }  # fmt: skip
        return cls(values, Grown())

    def after(self, update: Mapping[str, Any]) -> Point:
        note = {key: update[key] for key in NOTES if update.get(key)}
        notes = self.notes.grow([*({} for _ in update["steps"][1:]), note])
        return Point(apply_update(self.values, update), notes)

    def through(
        self,
        steps: Sequence[Step],
        notes: Collection[JsonObject],
        *,
        check: Callable[[JsonObject, JsonObject], None] | None = None,
    ) -> Point:
        """Return the point after replaying these calls. Raises PatchConflict.

        `check` gets the states before and after each simulated call, and may raise.
        """
        if check is None:
            patches = (booked_patch(step["outcome"]) for step in steps if "outcome" in step)
            values = apply_update(self.values, {"task_state": [*chain.from_iterable(patches)], "steps": steps})
            for note in filter(None, notes):
                values = apply_update(values, note)
            return Point(values, self.notes.grow(notes))
        point = self
        for step, note in zip(steps, notes, strict=True):
            before, point = point, point.through([step], [note])
            if "outcome" in step and step["outcome"]["simulated"]:
                check(before.values["task_state"], point.values["task_state"])
        return point

    def replayed(self, records: Sequence[JsonObject], check: Callable[[JsonObject, JsonObject], None] | None) -> Point:
        """Return the point after these calls; a change that does not apply is left out and marked as refused."""
        steps: list[Any] = [record["step"] for record in records]
        notes = [record["note"] for record in records]
        try:
            return self.through(steps, notes, check=check)
        except PatchConflict as conflict:
            if len(records) == 1:
                steps[0]["outcome"] = without_change(steps[0]["outcome"], f"the change does not apply: {conflict}")
                return self.through(steps, notes)
        point = self
        for record in records:
            point = point.replayed([record], check)
        return point

    def back_to(self, count: int) -> Point:
        return Point.first(self.values["before"]).through(self.values["steps"][:count], self.notes[:count])


def read_state(state: Any, *, what: str = "state") -> JsonObject:
    """Return a copy of a task state. Raises StateError if it is no JSON object."""
    check_json(state, what=what)
    if not isinstance(state, dict):
        raise StateError(f"{what}: expected a JSON object (a dict with text keys), got {type(state).__name__}")
    return clone(state)


def fold_snapshot(old: JsonObject, writes: Sequence[JsonObject]) -> JsonObject:
    """Return a world's snapshot after writes (reducer): whole snapshots, or `{"records", "usage"}` of further calls."""
    for write in writes:
        old = write if is_snapshot(write) else _extend(old, write)
    return old


def is_snapshot(write: JsonObject) -> bool:
    return "records" not in write


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
