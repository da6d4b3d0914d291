"""World: a task state on which tools act, by a rehearsal's nodes without graph and checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from time import time
from typing import Any, Literal, NoReturn, TypeAlias

from ..context import GeckoContext
from ..derive.contracts import with_derived
from ..errors import GeckoError, PatchConflict, RunFailure, StateError, ToolkitError
from ..models.answer import AT_ONCE, AWAITED, Driver, WaitingLine, aperform, finish, perform
from ..models.ask import AnyAsk, Dialogue, ModelAsk, Reply
from ..models.factory import Models, ModelsLike
from ..models.node import NodeFunction, NodeScope, Update, run_node, silent
from ..models.usage import add_usage
from ..schemas.complaints import malformed
from ..state import VERSION, Json, JsonObject, Origin, Outcome, Step, Usage
from ..tools import Toolkit
from ..tools.check import LONGEST_ID, Rejection, read_call
from ..tools.own_data import starting_state
from ..tools.real import is_undecided
from ..values.digest import check_json, clone, digest, shallow
from ..values.observation import Observe, Observer
from ..values.origins import OriginMap
from ..values.places import excerpt
from .as_tools import WorldTool, build_tools
from .booking import book_call, observe_call
from .calls import Given, Point, answer_calls, build_nodes, read_state
from .ladder import ladder_of, rungs_of
from .records import ExecutedCall
from .rung import Answer, Rung, answered_calls, is_real, untrusted_of
from .state_rules import StateRules
from .turn import TakenIds

By: TypeAlias = Literal["tool", "person"]


class ModelNeeded(GeckoError):
    """A model would be asked in a world that answers by rules only."""


class World:
    """A task state that tools act on, one call at a time.

    A call is answered as in a rehearsal: checked by the validator, answered by the ladder, committed completely or not
    at all. The calls of one world are serialized, across threads and event loops.

    Args:
        toolkit: The tools that can be called.
        state: The start state, a JSON object; it is copied.
        model: The model of validator, simulator and state_updater, or `Models` by role; roles without a model are left
            to the rules.
        context: The knobs; those of turns and attempts (`max_steps`, budgets, retries) have no effect here.
        rungs: Further rungs, as for `create_gecko`.
        observe: Receives a row for each real call: a file, or a function of the row.
        derive: Whether tools of an OpenAPI document without a contract have one derived from it.

    Raises:
        ToolkitError: The toolkit is not a Toolkit, or has no tools.
        StateError: The state is not a JSON object.
        ModelError: A model cannot be built.
        GeckoError: The context is no GeckoContext, its ladder names an unknown rung, or a prompt or `observe` is bad.
    """

    def __init__(
        self,
        toolkit: Toolkit,
        *,
        state: JsonObject | None = None,
        model: ModelsLike = None,
        context: GeckoContext | None = None,
        rungs: Iterable[Rung] = (),
        observe: Observe = None,
        derive: bool = True,
    ) -> None:
        knobs = check_setup(toolkit, context).model_copy(update={"token_budget": None, "time_budget_s": None})
        toolkit = with_derived(toolkit, given := read_state({} if state is None else state), derive=derive)
        self._rules, self._checked = StateRules.of(toolkit), set[str]()
        self._models = Models.of(model).chosen(knobs.model)
        self._scope = NodeScope(knobs, silent, self._models.has, watched=False)
        self._rungs = rungs_of(rungs)
        ladder_of(knobs, self._rungs)
        self._nodes = build_nodes(toolkit, self._rungs)
        self._start = starting_state(toolkit, given)
        self._usage: Usage = {}
        self._line, self._toolkit, self._observer = WaitingLine(), toolkit, Observer.of(observe)
        if state is not None or self._start:
            self._check_start()
        self._now = Point.first(self._start)

    def __reduce__(self) -> Any:
        more: dict[str, Any] = {"context": self._scope.context, "observe": self._observer and self._observer.target}
        more |= {"model": self._models, "rungs": [*self._rungs.values()], "derive": False}
        return partial(World.restore, self._toolkit, self.snapshot(), **more), ()

    def call(self, call: Any) -> Step:
        """Answer one call; an invalid one is refused with complaints, without an exception.

        Args:
            call: `{"name", "args"}`, and optionally a new `"id"`, as in LangChain; or one of OpenAI's forms, with
                `arguments`. The name may be one of `Toolkit.as_openai`.

        Returns:
            `{"call", "complaints"}` for a call that was refused before it ran, else `{"call", "outcome"}`; a copy.

        Raises:
            GeckoError: The world would wait for itself: called by one of its own tools, or in an event loop during an
                `acall` there.
        """
        return self.call_all([call])[0]

    async def acall(self, call: Any) -> Step:
        """Answer as `call` does, without blocking the event loop."""
        return (await self.acall_all([call]))[0]

    def call_all(self, calls: Iterable[Any]) -> list[Step]:
        """Answer the calls of one message, under `GeckoContext.parallel_calls`; their steps are in the same order."""
        with self._line.turn():
            return finish(self._run(self._answer(calls), AT_ONCE))  # type: ignore[no-any-return]

    async def acall_all(self, calls: Iterable[Any]) -> list[Step]:
        """Answer as `call_all` does, without blocking the event loop."""
        async with self._line.aturn():
            return await self._run(self._answer(calls), AWAITED)

    def read_calls(self, calls: Sequence[Mapping[str, Any]]) -> list[JsonObject]:
        """Return LangChain tool calls for `call_all`: with the tools' own names, and without ids in use."""
        taken, read = self._taken(), list[JsonObject]()
        for each in calls:
            id_ = each.get("id") or ""
            given = {"name": self._toolkit.resolve(each["name"]), "args": each["args"]}
            read.append({**given, "id": id_} if 0 < len(id_) <= LONGEST_ID and id_ not in taken else given)
            taken.add(id_)
        return read

    def as_tools(self, find: Callable[[Any], World] | None = None) -> list[WorldTool]:
        """Return LangChain tools that this world answers, or the world that `find` returns for a call's runtime."""
        return build_tools(self._toolkit, find or (lambda _: self))

    def record(
        self, call: Mapping[str, Any], answer: Answer, predicted: Outcome | None = None, *, by: By = "tool"
    ) -> ExecutedCall:
        """Book a call that was really made, so that the task state follows reality.

        Its changes are found as by the agent's `sync`: by contract or `simulate`, with made-up values replaced by those
        of the real result; else by the model, if there is one.

        Args:
            call: The call, with its real arguments, in a form that `call` takes.
            answer: Its result.
            predicted: A simulation's answer to it, for a tool without contract and `simulate`.
            by: The source of the result.

        Returns:
            A journal's entry, with its `drift`, and a broken result schema or postcondition as `departure`.

        Raises:
            ToolkitError: It is not a call, or the tool is unknown.
        """
        with self._line.turn():
            entry, node = self._entry(call, answer, predicted, by)
            finish(self._run(node, AT_ONCE, by=by))
            return clone(entry)

    async def arecord(
        self, call: Mapping[str, Any], answer: Answer, predicted: Outcome | None = None, *, by: By = "tool"
    ) -> ExecutedCall:
        """Record as `record` does, without blocking the event loop."""
        async with self._line.aturn():
            entry, node = self._entry(call, answer, predicted, by)
            await self._run(node, AWAITED, by=by)
            return clone(entry)

    def records(self, first: int = 0) -> list[JsonObject]:
        """Return the calls from number `first` on, each with its notes, for another world's `replay`; a copy."""
        steps, notes = self._now.values["steps"][first:], self._now.notes[first:]
        return clone([{"step": step, "note": note} for step, note in zip(steps, notes, strict=True)])

    def replay(self, records: Sequence[JsonObject], usage: Usage | None = None, *, own: bool = False) -> None:
        """Continue with calls that another world has answered, and with its models' usage.

        A change that does not apply is left out and marked as refused; `own` ones of this state are neither copied nor
        checked again.
        """
        with self._line.turn():
            self._usage = add_usage(self._usage, usage or {})
            self._now = self._now.replayed(
                records if own else clone(list(records)), None if own else self._check_change
            )

    def check(self, call: Mapping[str, Any]) -> Rejection | None:
        """Return why a call must not be made for real in this state, as `Toolkit.check`; None if it may."""
        now, unclear = self._now.values, self._scope.context.unclear or "pass"
        return self._toolkit.check(
            call, now["task_state"], unclear=unclear, calls=answered_calls(now["steps"]), untrusted=untrusted_of(now)()
        )

    @property
    def toolkit(self) -> Toolkit:
        """The tools that can be called."""
        return self._toolkit

    @property
    def state(self) -> JsonObject:
        """The current task state; a copy."""
        return clone(self._now.values["task_state"])

    def find_differences(self, other: World) -> list[tuple[Json, Json]]:
        """Return the values of root keys that differ from another world's task state; must not be mutated."""
        mine, theirs = self._now.values["task_state"], other._now.values["task_state"]
        pairs = [(mine.get(key), theirs.get(key)) for key in {**mine, **theirs}]
        return [pair for pair in pairs if pair[0] != pair[1]]

    def blame(self, path: str) -> Origin | None:
        """Return the call that wrote a value, as `gecko_graph.blame`. Raises StateError for no JSON Pointer."""
        return OriginMap(self._start).book(self._now.values["steps"]).origin_at(path)

    @property
    def log(self) -> list[Step]:
        """The steps so far in order, including refused calls; a copy."""
        return clone([*self._now.values["steps"]])

    @property
    def count(self) -> int:
        """The number of steps so far."""
        return len(self._now.notes)

    @property
    def usage(self) -> Usage:
        """The models' usage in this world by role, including undone calls; a fork begins at zero."""
        return dict(self._usage)

    def fork(self, *, by_rules: bool = False) -> World:
        """Return another world with this one's present state; later calls affect only one of them.

        With `by_rules`, it raises ModelNeeded if a model would be asked.
        """
        other: World = shallow(self)
        if by_rules:
            other._models = self._models.listening(_refuse)
        other._line, other._usage = WaitingLine(), {}
        return other

    def begin(self, state: JsonObject) -> World:
        """Return a new world in `state` with this one's tools, models and knobs; raises like the constructor."""
        other = self.fork()
        other._start = starting_state(self._toolkit, read_state(state))
        other._check_start()
        other._now = Point.first(other._start)
        return other

    def undo(self) -> Step | None:
        """Undo the last answered call and refused ones after it. Return its step, or None."""
        with self._line.turn():
            steps = self._now.values["steps"]
            last = next((index for index in reversed(range(len(steps))) if "outcome" in steps[index]), None)
            if last is None:
                return None
            self._now = self._now.back_to(last)
            return clone(steps[last])

    def back_to(self, count: int) -> World:
        """Return another world with this one's state after its first `count` steps. Raises StateError for too many."""
        if not 0 <= count <= len(self._now.notes):
            raise StateError(f"back_to: expected 0 to {len(self._now.notes)} steps, got {count}")
        other = self.fork()
        other._now = self._now.back_to(count)
        return other

    def snapshot(self) -> JsonObject:
        """Return the world as plain JSON, for `restore`: its start, state, log, facts and the notes of each call."""
        now = self._now
        return clone(
            {
                "v": VERSION,
                "start": self._start,
                "state": now.values["task_state"],
                "log": [*now.values["steps"]],
                "facts": {**now.values["facts"]},
                "notes": [*now.notes],
                "usage": self._usage,
            }
        )

    @classmethod
    def restore(cls, toolkit: Toolkit, snapshot: Mapping[str, Any], **more: Any) -> World:
        """Return the world of a snapshot; it continues as the original would.

        Args:
            toolkit: The same tools.
            snapshot: The return value of `snapshot`.
            more: `model`, `context`, `rungs` and `derive`, as for a new world.

        Raises:
            GeckoError: As for a new world; the snapshot is invalid, or was edited.
        """
        return cls(toolkit, **more).resume(snapshot)

    def resume(self, snapshot: Mapping[str, Any], *, own: bool = False) -> World:
        """Return a world at a snapshot with this one's tools, models and knobs; raises like `restore`.

        With `own`, the snapshot is a graph's own: it is shared, as it is never mutated, and only its state is checked.
        """
        try:
            check = None if own else self._check_change
            world = self.fork()
            if not own:
                check_json(snapshot, what="snapshot")
                snapshot = clone(dict(snapshot))
                world._start = snapshot["start"]
                world._check_start()
            world._start = snapshot["start"]
            world._now = Point.first(world._start).through(snapshot["log"], snapshot["notes"], check=check)
            world._usage = add_usage({}, snapshot["usage"])
            now = {"task_state": snapshot["state"], "facts": snapshot["facts"]}
            same = world._now.values | now == world._now.values if own else digest(world.snapshot()) == digest(snapshot)
        except (LookupError, TypeError, ValueError, AttributeError, RunFailure) as error:
            raise StateError(f"snapshot: expected a World.snapshot() ({excerpt(str(error))})") from None
        if not same:
            raise StateError("snapshot: it was edited; to begin with another state, use World(toolkit, state=...)")
        return world

    def _check_start(self) -> None:
        """Raise StateError if the start state violates schema or invariants; each state is checked once."""
        if any(self._rules) and (mark := digest(self._start)) not in self._checked:
            self._rules.check_start(self._start, what="state")
            self._checked.add(mark)

    def _check_change(self, before: JsonObject, after: JsonObject) -> None:
        if broken := self._rules.violations(before, after):
            raise PatchConflict(broken[0]["error"])

    def _answer(self, calls: Iterable[Any]) -> partial[Generator[list[AnyAsk], list[Reply], Update]]:
        if not self._start:
            self._check_start()  # no state was given
        taken, given = self._taken(), list[Given]()
        for number, each in enumerate(calls, len(self._now.values["steps"]) + 1):
            call, complaint = read_call(each, taken=taken, number=number)
            call["name"] = self._own_name(call["name"])
            given.append((call, complaint))
            taken.add(call["id"])
        return partial(answer_calls, given=given, nodes=self._nodes)

    def _own_name(self, name: str) -> str:
        """Return the tool's own name; a tool's name may equal another's provider name."""
        return name if name in self._toolkit else self._toolkit.resolve(name)

    def _entry(
        self, given: Mapping[str, Any], answer: Answer, predicted: Outcome | None, by: By
    ) -> tuple[ExecutedCall, partial[Any]]:
        number = len(self._now.values["steps"]) + 1
        call, complaint = read_call(given, taken=self._taken(), number=number)
        if "malformed" in call and complaint is None:
            complaint = malformed(call)
        if complaint and ("malformed" in call or not call["name"]):  # otherwise its id was taken, and is replaced
            raise ToolkitError(f"record: expected {complaint['expected']}, got {complaint['got']}")
        call["name"] = self._own_name(call["name"])
        if call["name"] not in self._toolkit:
            raise ToolkitError(f"record: unknown tool {call['name']!r}; known: {', '.join(self._toolkit.names)}")
        entry: ExecutedCall = {"call": call, "status": answer.status, "key": "", "tries": 1, "started_at": time()}
        entry |= {"ended_at": entry["started_at"], "by": by, "result": clone(answer.result)}
        if is_undecided(answer):
            entry["undecided"] = True
        return entry, partial(book_call, entry=entry, predicted=clone(predicted), toolkit=self._toolkit)

    async def _run(self, node: NodeFunction, driver: Driver, *, by: By = "tool") -> list[Step]:
        """Run a node on the current state, and commit its update."""
        known = self._now.values
        update, accounts = await run_node(node, self._now.values, self._scope, driver, models=self._models)
        self._usage = add_usage(self._usage, accounts.usage)
        if update["steps"]:
            self._now = self._now.after({**update, "asked": accounts.asked})
        steps: list[Step] = clone(update["steps"])
        if self._observer and by == "tool":
            done = [each for each in known["steps"] if is_real(each)]
            for step in filter(is_real, steps):
                work = observe_call(self._observer, self._toolkit, step, done, start=known["before"])
                await driver.do(perform, aperform, work)
                done.append(step)
        return steps

    def _taken(self) -> TakenIds:
        return TakenIds((), self._now.values["steps"])


def _refuse(ask: ModelAsk, dialogue: Dialogue) -> NoReturn:
    raise ModelNeeded(f"a model is asked as {ask.role}")


def check_setup(toolkit: Toolkit, context: GeckoContext | None) -> GeckoContext:
    """Return the knobs. Raises ToolkitError for no Toolkit or one without tools, GeckoError for another context."""
    if not isinstance(toolkit, Toolkit):
        raise ToolkitError(f"expected a Toolkit, such as Toolkit.from_tools([...]), got {type(toolkit).__name__}")
    if not len(toolkit):
        raise ToolkitError("the toolkit has no tools: there is nothing to rehearse")
    if context is not None and not isinstance(context, GeckoContext):
        raise GeckoError(f"context: expected a GeckoContext(max_retries=...), got {type(context).__name__}")
    return context or GeckoContext()
