"""Where each value of a task state comes from: the given state, what a model supposed, or the call that wrote it.

Folded from the steps' patches; what has no step was there before. Trusted is what a caller, a contract, a function, an
example or a real tool has established (ToolGate, section 3.2); not what an inventing rung or a model wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from .errors import PatchConflict, StateError
from .schemas.well_formed import RUNTIME
from .simulation.ladder import INVENTING
from .state import JsonObject, Outcome, Rehearsal, Step
from .task_state.digest import clone, digest
from .task_state.patch import find, pointer, tokens
from .task_state.stamps import Stamp, Stamps

GIVEN, SUPPOSED = Stamp(), Stamp(doubtful=True)
NOT_KNOWN = "(not known)"


def mark_supposed(stamps: Stamps, places: Iterable[str]) -> Stamps:
    """Mark places as supposed, and return the stamps; what is not there, or is known to be supposed, stays."""
    for place in places:
        with suppress(PatchConflict, LookupError, ValueError, TypeError):
            if not stamps.at(place).doubtful:
                stamps.mark(place, SUPPOSED)
    return stamps


def is_supposed(outcome: Outcome, inventing: Collection[str]) -> bool:
    """Return whether a model has made up what an outcome changes."""
    return bool(outcome.get("invented") or outcome.get("supposed") or outcome["rung"] in inventing)


def fold_steps(
    stamps: Stamps, steps: Sequence[Step], inventing: Collection[str] = INVENTING, turn: int = 0, attempt: int = 0
) -> Stamps:
    """Apply what the steps of an attempt have written, and return the stamps. Raises PatchConflict."""
    for number, step in enumerate(steps, 1):
        if outcome := step.get("outcome"):
            call, doubtful = step["call"], is_supposed(outcome, inventing)
            stamp = Stamp(doubtful, turn, attempt, number, call["id"], call["name"], outcome["rung"])
            stamps.apply(outcome["patch"] or [], stamp)
            stamps.apply(outcome.get("observed", []), stamp._replace(doubtful=False))
    return stamps


def find_untrusted(
    start: JsonObject, supposed: Sequence[str], steps: Sequence[Step], inventing: Collection[str] = INVENTING
) -> list[str]:
    """Return JSON Pointers to what is only supposed of the state that the steps have made of `start`.

    `supposed` are places of it that a model made up, `inventing` the rungs that make things up.

    Returns:
        The pointers; `[""]`, all of it, where the steps do not apply: the state was edited in between.
    """
    changed = [step["outcome"] for step in steps if "outcome" in step and step["outcome"]["patch"]]
    if not supposed and not any(is_supposed(outcome, inventing) for outcome in changed):
        return []
    try:
        return fold_steps(mark_supposed(Stamps(start, GIVEN), supposed), steps, inventing).doubtful()
    except PatchConflict:
        return [""]


def trusted_part(state: JsonObject, untrusted: Iterable[str]) -> JsonObject:
    """Return a copy of a task state without what `find_untrusted` found; an item of a list leaves its place behind."""
    kept = clone(state)
    for path in untrusted:
        if not path:
            return {}
        *parents, last = tokens(path)
        owner = find(kept, parents)
        if isinstance(owner, dict):
            owner.pop(last, None)
        elif last != "-":  # else of the list only its length is supposed
            owner[int(last)] = NOT_KNOWN
    return kept


def source_at(stamps: Stamps, path: str) -> JsonObject | None:
    """Return where what stands at a JSON Pointer comes from, as `blame` does. Raises StateError."""
    try:
        names = tokens(path)
    except PatchConflict as conflict:
        raise StateError(f"blame: {conflict}; write a JSON Pointer, such as /orders/7") from None
    try:
        find(stamps.document, names)
        stamp = stamps.at(path)
    except PatchConflict:
        stamp = GIVEN
        with suppress(LookupError, ValueError):
            stamp = stamps.at(path)
        if not stamp.step:
            return None
    if not stamp.step:
        return {"from": "supposed" if stamp.doubtful else "task_state"}
    known = {key: value for key, value in stamp._asdict().items() if value and key != "doubtful"}
    return known | ({"supposed": True} if stamp.doubtful else {})


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
        if made_up := record.get("supposed_state"):
            whole = {RUNTIME: {}, **made_up["state"], **stamps.document}  # no variables: they stand in no record
            new = [{"op": "add", "path": pointer([key]), "value": whole[key]} for key in whole.keys() - stamps.document]
            stamps.apply(new, SUPPOSED)
            mark_supposed(stamps, made_up["paths"])
        is_last = turn == len(turns)
        if is_last or record["verdict"]["word"] == "accepted":
            number = attempt if is_last and attempt is not None else record["chosen"]
            chosen = next((each for each in record["attempts"] if each["number"] == number), None)
            if chosen is None or digest(stamps.document) != chosen["start_digest"]:
                why = "began from another task state than `state` gives" if chosen else f"has no attempt {number}"
                raise StateError(f"blame: turn {turn} {why}")
            fold_steps(stamps, chosen["steps"], turn=turn, attempt=number)
    return source_at(stamps, path)
