"""World: a task state that tools act on, one call at a time, without a graph.

The nodes `validator`, `simulator` and `state_updater` answer, as in a rehearsal: no checkpointer, no superstep, no
events.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from .channels import AttemptState, apply_update
from .context import GeckoContext
from .errors import GeckoError, RunFailure, StateError, ToolkitError
from .models.ask import AnyAsk, Reply
from .models.factory import ModelLike, Models
from .models.node import NodeScope, Update, arun_node, book_attempt, run_node, silent
from .models.usage import add_usage
from .nodes.planner import LONGEST_ID, LONGEST_NAME
from .nodes.simulator import simulator
from .nodes.state_updater import state_updater
from .nodes.validator import validator
from .schemas.complaints import about
from .schemas.findings import excerpt
from .simulation.ladder import ladder_of, rungs_of
from .simulation.rung import Rung
from .state import VERSION, Call, Complaint, JsonObject, Role, Step, Usage
from .task_state.digest import check_json, clone, digest
from .toolkit import Toolkit
from .waiting import WaitingLine

_NOTES = ("facts", "semantic", "asked")
"""What a call adds to a world beside its step."""


class World:
    """A task state that tools act on, one call at a time.

    A call is answered as in a rehearsal: checked by the validator, answered by the ladder, committed whole or not at
    all. The calls of one world wait for each other, from whichever thread or event loop they come.

    Args:
        toolkit: The tools that can be called.
        state: The task state to begin with, a JSON object; it is copied.
        model: The model of validator, simulator and state_updater: `"provider:name"` or any chat model.
        models: Models of single roles; roles without one are left to the rules.
        context: The knobs; those of turns and attempts (`max_steps`, budgets, retries) have no meaning here.
        rungs: Further rungs, as for `create_gecko`.
        prompts: A folder with prompts of your own, as for `create_gecko`.

    Raises:
        ToolkitError: The toolkit is not a Toolkit, or has no tools.
        StateError: The state is not a JSON object.
        ModelError: A model cannot be built.
        GeckoError: The context is not a GeckoContext, its ladder names an unknown rung, or a prompt cannot be used.
    """

    def __init__(
        self,
        toolkit: Toolkit,
        *,
        state: JsonObject | None = None,
        model: ModelLike | None = None,
        models: Mapping[Role, ModelLike] | None = None,
        context: GeckoContext | None = None,
        rungs: Iterable[Rung] = (),
        prompts: str | Path | None = None,
    ) -> None:
        knobs = check_setup(toolkit, context).model_copy(update={"token_budget": None, "time_budget_s": None})
        check_json(given := {} if state is None else state, what="state")
        if not isinstance(given, dict):
            raise StateError(f"state: expected a JSON object (a dict with text keys), got {type(state).__name__}")
        self._models = Models.bind(model, models, prompts=prompts)
        self._scope = NodeScope(knobs, silent, self._models.has)
        by_name = rungs_of(rungs)
        ladder_of(knobs, by_name)
        self._nodes: list[partial[Any]] = [
            partial(validator, toolkit=toolkit),
            partial(simulator, toolkit=toolkit, rungs=by_name),
            partial(state_updater, toolkit=toolkit),
        ]
        self._start: JsonObject = clone(given)
        self._usage: Usage = {}
        self._line = WaitingLine()
        self._now = _Point.first(self._start)
        self._taken: set[str] = set()

    def call(self, call: Any) -> Step:
        """Answer one call; a bad one is refused with complaints, it never raises.

        Args:
            call: `{"name", "args"}`, and perhaps an `"id"` that no call before has had. Other keys are left out.

        Returns:
            `{"call", "complaints"}` for a call that was refused before it ran, else `{"call", "outcome"}`; a copy.

        Raises:
            GeckoError: The world would wait for itself: called by one of its own tools, or in an event loop while an
                `acall` is under way there.
        """
        with self._line.turn():
            state = self._now.values
            update = run_node(self._answer(call), state, self._scope, models=self._models, book=book_attempt)
            return self._commit(update)

    async def acall(self, call: Any) -> Step:
        """Answer as `call` does, without blocking the event loop."""
        async with self._line.aturn():
            state = self._now.values
            update = await arun_node(self._answer(call), state, self._scope, models=self._models, book=book_attempt)
            return self._commit(update)

    @property
    def state(self) -> JsonObject:
        """Return the task state as it is now; a copy."""
        return clone(self._now.values["task_state"])

    @property
    def log(self) -> list[Step]:
        """Return the steps so far in their order, refused calls included; a copy."""
        return clone(self._now.values["steps"])

    @property
    def usage(self) -> Usage:
        """Return what models have cost in this world by role, undone calls included; a fork begins at nothing."""
        return dict(self._usage)

    def fork(self) -> World:
        """Return another world that begins as this one is now; neither sees the other's later calls."""
        other = copy(self)
        other._line, other._usage = WaitingLine(), {}
        other._go_to(self._now)
        return other

    def undo(self) -> Step | None:
        """Drop the last call that was answered, and refused ones after it: state, log and facts are as before it.

        Returns:
            The step that was dropped; None where no call was answered.
        """
        with self._line.turn():
            steps = self._now.values["steps"]
            last = next((index for index in reversed(range(len(steps))) if "outcome" in steps[index]), None)
            if last is None:
                return None
            self._go_to(_Point.first(self._start).through(steps[:last], self._now.notes[:last]))
            return clone(steps[last])

    def snapshot(self) -> JsonObject:
        """Return the world as plain JSON, for `restore`: its start, state, log and facts, what each call noted."""
        now = self._now
        return clone(
            {
                "v": VERSION,
                "start": self._start,
                "state": now.values["task_state"],
                "log": now.values["steps"],
                "facts": now.values["facts"],
                "notes": list(now.notes),
                "usage": self._usage,
            }
        )

    @classmethod
    def restore(cls, toolkit: Toolkit, snapshot: Mapping[str, Any], **more: Any) -> World:
        """Return the world of a snapshot: it goes on as the original would have.

        Args:
            toolkit: The same tools.
            snapshot: What `snapshot` returned.
            more: `model`, `models`, `context`, `rungs` and `prompts`, as for a new world.

        Raises:
            GeckoError: As for a new world; the snapshot is not one, or was edited.
        """
        try:
            check_json(snapshot, what="snapshot")
            world = cls(toolkit, state=snapshot["start"], **more)
            world._go_to(world._now.through(clone(snapshot["log"]), clone(snapshot["notes"])))
            world._usage = add_usage({}, snapshot["usage"])
            same = digest(world.snapshot()) == digest(snapshot)
        except (LookupError, TypeError, ValueError, AttributeError, RunFailure) as error:
            raise StateError(f"snapshot: expected what World.snapshot() returned ({excerpt(str(error))})") from None
        if not same:
            raise StateError("snapshot: it was edited; to begin with another state, use World(toolkit, state=...)")
        return world

    def _answer(self, given: Any) -> partial[Generator[list[AnyAsk], list[Reply], Update]]:
        call, complaint = read_call(given, taken=self._taken, number=len(self._now.values["steps"]) + 1)
        return partial(answer_call, call=call, complaint=complaint, nodes=self._nodes)

    def _commit(self, update: Update) -> Step:
        self._usage = add_usage(self._usage, update.pop("usage", {}))
        self._now = self._now.after(update)
        step: Step = clone(update["steps"][0])
        self._taken.add(step["call"]["id"])
        return step

    def _go_to(self, point: _Point) -> None:
        self._now = point
        self._taken = {step["call"]["id"] for step in point.values["steps"]}


class _Point(NamedTuple):
    """A point of a world: the attempt's keys that its nodes read, and what each call noted. Never changed in place."""

    values: AttemptState
    notes: tuple[JsonObject, ...]

    @classmethod
    def first(cls, state: JsonObject) -> _Point:
        values: AttemptState = {
            "number": 1, "turn": 0, "task": "", "before": state, "conversation": [], "lesson": None,
            "task_state": state, "trace": [], "steps": [], "facts": {}, "semantic": [], "asked": {}, "usage": {},
        }  # fmt: skip
        return cls(values, ())

    def after(self, update: Update) -> _Point:
        note = {key: update[key] for key in _NOTES if update.get(key)}
        return _Point(apply_update(self.values, update), (*self.notes, note))

    def through(self, steps: list[Step], notes: Collection[JsonObject]) -> _Point:
        """Return the point after these calls: as when they were made."""
        point = self
        for step, note in zip(steps, notes, strict=True):
            outcome = step.get("outcome")
            patch = (outcome["patch"] or []) if outcome else []
            point = point.after({"steps": [step], "task_state": patch, **note})
        return point


def check_setup(toolkit: Toolkit, context: GeckoContext | None) -> GeckoContext:
    """Return the knobs, with toolkit and context checked.

    Raises:
        ToolkitError: The toolkit is not a Toolkit, or has no tools.
        GeckoError: The context is not a GeckoContext.
    """
    if not isinstance(toolkit, Toolkit):
        raise ToolkitError(f"expected a Toolkit, such as Toolkit.from_tools([...]), got {type(toolkit).__name__}")
    if not len(toolkit):
        raise ToolkitError("the toolkit has no tools: there is nothing to rehearse")
    if context is not None and not isinstance(context, GeckoContext):
        raise GeckoError(f"context: expected a GeckoContext(max_retries=...), got {type(context).__name__}")
    return context or GeckoContext()


def answer_call(
    state: AttemptState, scope: NodeScope, *, call: Call, complaint: Complaint | None, nodes: Sequence[partial[Any]]
) -> Generator[list[AnyAsk], list[Reply], Update]:
    """Answer one call with validator, simulator and state_updater, as one node function."""
    if complaint:
        return {"steps": [{"v": VERSION, "call": call, "complaints": [complaint]}]}
    writes: Update = {"steps": [], "task_state": [], "facts": {}, "semantic": []}
    state = apply_update(state, {"pending": [call]})
    for node in nodes:
        update = yield from node(state, scope)
        state = apply_update(state, update)
        for key in writes.keys() & update.keys():
            writes[key] = {**update[key], **writes[key]} if key == "facts" else writes[key] + update[key]
        if writes["steps"]:  # refused before it ran, or at the end
            break
    return writes


def read_call(given: object, *, taken: Collection[str], number: int) -> tuple[Call, Complaint | None]:
    """Return the call as a step keeps it, and what is wrong with its form.

    Args:
        given: The call as it came in: anything.
        taken: The ids that are taken.
        number: Of the call, for the id of a call that has none.
    """
    fields = given if isinstance(given, dict) else {}
    name, identifier = fields.get("name"), fields.get("id")
    while f"call_{number}" in taken:
        number += 1
    call: Call = {"id": f"call_{number}", "name": "", "args": {}}
    if _is_text(name):
        call["name"] = name[:LONGEST_NAME]
    if free := _is_text(identifier) and 0 < len(identifier) <= LONGEST_ID and identifier not in taken:
        call["id"] = identifier
    args = fields.get("args", {})
    try:
        check_json(args, what="args")
        if isinstance(args, dict):
            call["args"] = clone(args)
        else:
            call["malformed"] = args if _is_text(args) else excerpt(args)
    except StateError as error:
        call["malformed"] = str(error)
    if not isinstance(given, dict) or not _is_text(name):
        return call, about(call, expected='a call as {"name", "args"}', got=_describe(given))
    if identifier is not None and not free:
        expected = f"an id of 1 to {LONGEST_ID} characters that no call before has had, or none"
        return call, about(call, expected=expected, got=_describe(identifier))
    return call, None


def _is_text(value: object) -> TypeGuard[str]:
    try:
        check_json(value, what="")
    except StateError:
        return False
    return isinstance(value, str)


def _describe(value: object) -> str:
    try:
        check_json(value, what="the value")
    except StateError as error:
        return str(error)
    return excerpt(value)
