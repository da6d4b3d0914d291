"""The parts of the task state's collections that reads have shown: all, things by some values, or single things.

An existing collection is known as a whole, unless the runtime state's `shown` names it: then only its present things
are known, and the listed parts are known to contain no other things.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from ..contracts.language.things import OPEN, look, marks_of
from ..contracts.run import SHOWN, subtree
from ..state import RUNTIME, JsonObject, Patch
from ..values.patch import apply_patch, tokens
from ..values.places import pointer

MOST_PARTS = 200
"""Most remembered parts of one collection, the latest."""

Place: TypeAlias = tuple[str, ...]


def note_shown(before: JsonObject, patch: Patch, found: Mapping[Place, JsonObject | None]) -> JsonObject:
    """Return the state after a read, with a record of the known parts of its collections.

    Args:
        before: The state before the read.
        patch: The read's observation, applied to it.
        found: Collection to the values that its listed things share, {} for all things; None for single things.

    Returns:
        The state; an empty result creates an empty collection, and things missing in a listed part are removed.
    """
    after: Any = apply_patch(before, patch)
    marks: dict[str, Any] = {**(subtree(before, (RUNTIME, SHOWN)) or {})}
    for place, part in found.items():
        key, there = pointer(place), _at(before, place)
        paths = [*map(_path, patch)]
        listed = {path[len(place)] for path in paths if path[: len(place)] == place and path[len(place) :]}
        is_written = any(path == place[: len(path)] for path in paths)  # as a whole
        gone = [] if is_written else [name for name in _sharing(there, part) if name not in listed]
        after = apply_patch(after, [*_opening(after, place), *_removing(after, place, gone)])
        if part == {} or (there is not None and key not in marks):
            marks.pop(key, None)
        else:
            parts = marks.get(key, [])
            marks[key] = [*parts, *([part] if part and part not in parts else ())][-MOST_PARTS:]
    return _with_marks(after, marks)


def close_read(state: JsonObject, patch: Patch) -> JsonObject:
    """Return a state in which the things that a read has shown are no longer open."""
    opened, read = marks_of(state, OPEN), {one["path"] for one in patch}
    if not read & opened.keys():
        return state
    left = {place: by for place, by in opened.items() if place not in read}
    return {**state, RUNTIME: {**state[RUNTIME], OPEN: left}}


def find_partly_known(state: JsonObject, found: Mapping[Place, JsonObject | None]) -> dict[Place, JsonObject | None]:
    """Return the collections that a state does not know as a whole."""
    left = dict[Place, JsonObject | None]()
    for place, part in found.items():
        _, depth, is_known = look(state, place)
        if place[:1] != (RUNTIME,) and (pointer(place) in marks_of(state) if depth == len(place) else not is_known):
            left[place] = part
    return left


def forget_shown(state: JsonObject, more: Iterable[str] = ()) -> JsonObject:
    """Return a state whose collections, and `more`, are known only as far as their present things."""
    marks = subtree(state, (RUNTIME, SHOWN))
    known = [*(marks if isinstance(marks, dict) else ()), *more]
    return _with_marks(state, {key: [] for key in known if _at(state, tuple(tokens(key))) is not None})


def without_marks(state: JsonObject) -> JsonObject:
    """Return a state without the record of its known parts."""
    runtime = state.get(RUNTIME)
    if not isinstance(runtime, dict) or (runtime and not runtime.keys() & {SHOWN, OPEN, "serial"}):
        return state
    left = {key: each for key, each in runtime.items() if key not in (SHOWN, OPEN, "serial")}
    return {key: left if key == RUNTIME else each for key, each in state.items() if left or key != RUNTIME}


def _with_marks(state: JsonObject, marks: JsonObject) -> JsonObject:
    runtime = state.get(RUNTIME)
    known = runtime if isinstance(runtime, dict) else {}
    if marks == known.get(SHOWN, {}):
        return state
    left = {name: each for name, each in known.items() if name != SHOWN}
    return {**state, RUNTIME: {**left, SHOWN: marks} if marks else left}


def _at(state: JsonObject, place: Place) -> Any:
    holder = subtree(state, place[:-1])
    return holder.get(place[-1]) if isinstance(holder, dict) else None


def _path(operation: Mapping[str, Any]) -> Place:
    return tuple(tokens(operation["path"]))


def _sharing(things: Any, part: JsonObject | None) -> Iterator[str]:
    """Yield the keys of the things that have all values of a part."""
    if part is not None and isinstance(things, dict):
        for name, each in things.items():
            if isinstance(each, dict) and part.items() <= each.items():
                yield name


def _opening(state: JsonObject, place: Place) -> Patch:
    ends = range(1, len(place) + 1)
    return [{"op": "add", "path": pointer(place[:end]), "value": {}} for end in ends if _at(state, place[:end]) is None]


def _removing(state: JsonObject, place: Place, gone: list[str]) -> Patch:
    there = _at(state, place)
    return [{"op": "remove", "path": pointer((*place, name))} for name in gone if name in (there or ())]
