"""Where each value of a task state comes from: the given state, what a model supposed, or the call that wrote it.

Folded from the steps' patches; what has no step was there before. Trusted is what a caller, a contract, a function, an
example or a real tool has established (ToolGate, section 3.2); not what an inventing rung or a model wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from .errors import PatchConflict, StateError
from .simulation.ladder import INVENTING
from .simulation.state_rules import RUNTIME
from .state import Json, JsonObject, Outcome, Rehearsal, Step
from .task_state.digest import clone, digest
from .task_state.patch import find, pointer, tokens
from .task_state.stamps import Stamps


class Source(NamedTuple):
    """Where a value comes from; without a step from before the first one."""

    doubtful: bool
    """Whether a model only supposed it."""
    step: int = 0
    call: str = ""
    tool: str = ""
    rung: str = ""
    attempt: int = 0
    turn: int = 0

    def record(self) -> JsonObject:
        """Return it as plain JSON, as `blame` does."""
        if not self.step:
            return {"from": "supposed" if self.doubtful else "task_state"}
        numbers = {key: number for key, number in (("turn", self.turn), ("attempt", self.attempt)) if number}
        found = {**numbers, "step": self.step, "call": self.call, "tool": self.tool, "rung": self.rung}
        return found | ({"supposed": True} if self.doubtful else {})


GIVEN, SUPPOSED = Source(False), Source(True)
NOT_KNOWN = "(not known)"


def is_supposed(outcome: Outcome, inventing: Collection[str] = INVENTING) -> bool:
    """Return whether a model has made up what an outcome changes."""
    return bool(outcome.get("invented") or outcome.get("supposed") or outcome["rung"] in inventing)


def begin_fold(state: Json, supposed: Iterable[str]) -> Stamps[Source]:
    """Return a state with the sources of its values, of which a model made up some places."""
    stamps = Stamps(state, GIVEN)
    mark_supposed(stamps, supposed)
    return stamps


def mark_supposed(stamps: Stamps[Source], places: Iterable[str]) -> None:
    """Mark places as supposed; what is not there any more is passed over, what is known to be supposed stays."""
    for place in places:
        with suppress(PatchConflict, LookupError, ValueError, TypeError):
            if not stamps.at(place).doubtful:
                stamps.mark(place, SUPPOSED)


def fold_steps(
    stamps: Stamps[Source],
    steps: Sequence[Step],
    *,
    attempt: int = 0,
    turn: int = 0,
    inventing: Collection[str] = INVENTING,
) -> Stamps[Source]:
    """Apply what the steps of an attempt have written, and return the same stamps.

    Raises:
        PatchConflict: A change does not apply: the state is not the one that the steps began from.
    """
    for number, step in enumerate(steps, 1):
        if outcome := step.get("outcome"):
            call = step["call"]
            source = Source(False, number, call["id"], call["name"], outcome["rung"], attempt, turn)
            stamps.apply(outcome["patch"] or [], source._replace(doubtful=is_supposed(outcome, inventing)))
            stamps.apply(outcome.get("observed", []), source)
    return stamps


def find_untrusted(
    start: JsonObject, supposed: Sequence[str], steps: Sequence[Step], inventing: Collection[str] = INVENTING
) -> list[str]:
    """Return JSON Pointers to what is only supposed of the state that the steps have made of `start`.

    Args:
        start: The task state before the steps.
        supposed: Places of it that a model made up.
        steps: The steps, refused ones included.
        inventing: Names of the rungs that make things up.

    Returns:
        The pointers; `[""]`, all of it, where the steps do not apply.
    """
    ran = [step["outcome"] for step in steps if "outcome" in step]
    if not supposed and not any(outcome["patch"] and is_supposed(outcome, inventing) for outcome in ran):
        return []
    try:
        return fold_steps(begin_fold(start, supposed), steps, inventing=inventing).doubtful()
    except PatchConflict:  # the state was edited in between
        return [""]


def trusted_part(state: JsonObject, untrusted: Iterable[str]) -> JsonObject:
    """Return a task state without what a model only supposed; an item of a list leaves its place behind.

    Args:
        state: The state; it is not changed.
        untrusted: What `find_untrusted` returned.
    """
    kept = clone(state)
    for path in untrusted:
        if not path:
            return {}
        *parents, last = tokens(path)
        owner = find(kept, parents)
        if isinstance(owner, dict):
            owner.pop(last, None)
        else:
            owner[int(last)] = NOT_KNOWN
    return kept


def source_at(stamps: Stamps[Source], path: str) -> JsonObject | None:
    """Return the source of what stands at a JSON Pointer, or of what took it away; None where nothing ever stood.

    Raises:
        StateError: It is not a JSON Pointer.
    """
    try:
        names = tokens(path)
    except PatchConflict as conflict:
        raise StateError(f"blame: {conflict}; write a JSON Pointer, such as /orders/7") from None
    try:
        find(stamps.document, names)
    except PatchConflict:
        with suppress(LookupError, ValueError, TypeError):
            return source.record() if (source := stamps.at(path)).step else None
        return None
    return stamps.at(path).record()


def blame(
    rehearsals: Rehearsal | Sequence[Rehearsal], path: str, *, state: JsonObject, attempt: int | None = None
) -> JsonObject | None:
    """Return where a value of the task state comes from.

    Args:
        rehearsals: The record of a rehearsal, or of all turns in order: the accepted ones have changed the state.
        path: JSON Pointer of the value at the end: `/orders/7/status`.
        state: The task state that the first turn was given.
        attempt: Which attempt of the last turn; the chosen one if None.

    Returns:
        `{"turn", "attempt", "step", "call", "tool", "rung"}`, all counted from 1, with `supposed` where a model made it
        up; `{"from": "task_state"}` or `{"from": "supposed"}` where it was there before; None where nothing ever stood.
        Of a place where nothing stands any more it is the call that took it away.

    Raises:
        StateError: The path is not a JSON Pointer, there is no such attempt, or a turn began from another state.
    """
    turns = [rehearsals] if isinstance(rehearsals, Mapping) else list(rehearsals)
    stamps = Stamps(state, GIVEN)
    for turn, record in enumerate(turns, 1):
        is_last = turn == len(turns)
        number = attempt if is_last and attempt is not None else record["chosen"]
        if made_up := record.get("supposed_state"):
            new = {key: value for key, value in made_up["state"].items() if key not in stamps.document}
            new |= {RUNTIME: {}} if RUNTIME not in {**stamps.document, **new} else {}  # made up, and empty
            stamps.apply([{"op": "add", "path": pointer([key]), "value": new[key]} for key in new], SUPPOSED)
            mark_supposed(stamps, made_up["paths"])
        if is_last or record["verdict"]["word"] == "accepted":
            _fold_turn(stamps, record, number, turn)
    return source_at(stamps, path)


def _fold_turn(stamps: Stamps[Source], record: Rehearsal, number: int, turn: int) -> None:
    chosen = next((each for each in record["attempts"] if each["number"] == number), None)
    if chosen is None:
        raise StateError(f"blame: turn {turn} has no attempt {number}")
    if digest(stamps.document) != chosen["start_digest"]:
        raise StateError(f"blame: turn {turn} began from another task state; state is the one that turn 1 was given")
    fold_steps(stamps, chosen["steps"], attempt=number, turn=turn)
