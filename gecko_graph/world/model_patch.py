"""A model's patch: read as the only thing it can mean, and refused where it would lose what the model has not seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TypeAlias

from ..errors import PatchConflict
from ..models.formatting import cut
from ..models.roles import SimulatedEffect, StateChange
from ..models.view.view import View, draw_view, focus_words
from ..state import Call, Json, JsonObject, Operation, Patch
from ..values.digest import check_json
from ..values.leaves import scalars_of
from ..values.patch import apply_patch, find, pointer, tokens
from .rung import RungRequest

_Path: TypeAlias = list[str]

_ESCAPED = 3
"""How often a model may have escaped a key."""

_WHOLE = "the whole state cannot be replaced, moved or copied: change the parts that the call changes"
_SHIFTED = "an operation before it has shifted the list's items: remove items at the end, from the highest index down"
_MISSING = (
    "a write that succeeds changes the state: give its patch. If the call cannot be done, say so; if it truly changes "
    'nothing, give the empty patch again with "unchanged": true'
)
_UNSEEN = "this would lose parts that the view leaves out: change only the parts that the call changes"


def view_for(request: RungRequest, refused: Patch, *focus: Json) -> View:
    """Return what a model is shown of the state: the places of a refused patch first, then what the call concerns."""
    places = [operation["path"] for operation in refused]
    words = focus_words(places, request.call["name"], request.call["args"], *focus)
    return draw_view(request.state, focus=words, budget=request.context.view_chars)


def read_patch(reply: SimulatedEffect | StateChange, request: RungRequest, view: View) -> Patch:
    """Return the patch of a reply as it can be applied to the state before the call.

    A path that leads nowhere is read as the one that it can mean: a "/" in a key was escaped twice or not at all. What
    the call's arguments name may be removed unseen, and one of them may replace a scalar unseen.

    Raises:
        PatchConflict: It does not apply, loses what was not shown, or is missing; the message is for the model.
        StateError: It holds what is not JSON.
    """
    check_json(reply.patch, what="the patch")
    patch, conflict = _applicable(reply.patch, request.state)
    guard = _Guard(request.state, view, request.call)
    for operation in patch:
        if problem := guard.problem(operation):
            raise PatchConflict(f"{operation['op']} {cut(operation['path'], budget=200)}: {problem}")
        guard.follow(operation)
    if conflict is not None:
        raise PatchConflict(f"it does not apply to the state: {conflict}")
    changes = request.tool.effect == "write" or "patch" not in reply.model_fields_set
    if changes and not patch and not reply.unchanged:
        raise PatchConflict(_MISSING)
    return patch


class _Guard:
    """Checks the operations of one patch in turn; every path is traced to where its value stood before the patch."""

    def __init__(self, state: JsonObject, view: View, call: Call) -> None:
        self._state, self._view = state, view
        scalars = (each for each in scalars_of(call["args"]) if isinstance(each, (str, int)))
        self._given = [str(each) for each in scalars if not isinstance(each, bool)]
        self._named = {part for text in self._given for part in (text, *text.split("/")) if len(part) > 1}
        self._moves: list[tuple[_Path, _Path]] = []
        self._shifts: list[tuple[_Path, int]] = []

    def problem(self, operation: Operation) -> str | None:
        """Return what must not happen, for the model; None if nothing."""
        kind, path = operation["op"], tokens(operation["path"])
        source = tokens(operation["from"]) if kind in ("move", "copy") else None
        if kind == "test":
            return None
        if not path or source == []:
            return _WHOLE
        puts = kind in ("add", "move", "copy")
        if any(self._is_shifted(each) for each in (path[:-1] if puts else path, source or [])):
            return _SHIFTED
        if puts and _item(path, self._state):
            return None  # an item that is put into a list takes no other's place
        return _UNSEEN if self._is_lost_unseen(path, operation) else None

    def follow(self, operation: Operation) -> None:
        """Remember what an operation has moved and shifted."""
        kind, path = operation["op"], tokens(operation["path"])
        if kind == "move":
            self._moves.insert(0, (tokens(operation["from"]), path))
        taken = {"remove": path, "move": tokens(operation.get("from", ""))}.get(kind)
        put = path if kind in ("add", "move", "copy") else None
        for place, step in ((taken, 0), (put, 1)):
            item = _item(place or [], self._state)
            self._shifts += [(item[0], item[1] + step)] if item else []

    def _is_shifted(self, path: _Path) -> bool:
        ends = [
            (path[len(above) : len(above) + 1], first) for above, first in self._shifts if path[: len(above)] == above
        ]
        return any(end and _is_index(end[0]) and int(end[0]) >= first for end, first in ends)

    def _is_lost_unseen(self, path: _Path, operation: Operation) -> bool:
        return any(self._is_hidden(each, operation) for each in _origins(path, self._moves))

    def _is_hidden(self, path: _Path, operation: Operation) -> bool:
        """Return whether a value of the state before was neither shown nor named by the call's arguments."""
        try:
            value = find(self._state, path)
        except PatchConflict:  # the patch itself has put it there
            return False
        if self._view.shows(path):
            return False
        if operation["op"] == "remove":
            members = value.values() if isinstance(value, dict) else ()
            return not ({path[-1], *(str(each) for each in members if isinstance(each, (str, int)))} & self._named)
        return isinstance(value, (dict, list)) or str(operation.get("value")) not in self._given


def _origins(path: _Path, moves: Sequence[tuple[_Path, _Path]]) -> Iterator[_Path]:
    """Yield where what stands at a path, and in it, stood before these moves, the latest first."""
    for number, (source, target) in enumerate(moves, 1):
        if path[: len(target)] == target:
            path = source + path[len(target) :]
        elif target[: len(path)] == path:
            yield from _origins(source, moves[number:])
    yield path


def _applicable(patch: Patch, state: JsonObject) -> tuple[Patch, PatchConflict | None]:
    """Return the patch, read as the one existing path of the same letters wherever it does not apply."""
    try:
        apply_patch(state, patch)
    except PatchConflict as conflict:
        places = ("path", "from")
        reading = [{**each, **{key: _existing(each[key], state) for key in places if key in each}} for each in patch]
        with suppress(PatchConflict):
            apply_patch(state, reading)
            return reading, None
        return patch, conflict
    return patch, None


def _existing(path: str, state: JsonObject) -> str:
    text = path
    for _ in range(_ESCAPED):
        text = text.replace("~1", "/").replace("~0", "~")
    parent, _, last = text.rpartition("/")
    found = list(_matches(state, text)) or [[*each, last] for each in _matches(state, parent)]
    return pointer(found[0]) if len(found) == 1 else path


def _matches(value: Json, text: str) -> Iterator[_Path]:
    if not text:
        yield []
    elif isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            rest = text[len(str(key)) + 1 :]
            if text.startswith(f"/{key}") and rest[:1] in ("", "/"):
                yield from ([str(key), *path] for path in _matches(inner, rest))


def _item(path: _Path, state: JsonObject) -> tuple[_Path, int] | None:
    """Return the list and the index that a path leads to; None where it leads to no existing list."""
    with suppress(PatchConflict):
        if path and _is_index(path[-1]) and isinstance(find(state, path[:-1]), list):
            return path[:-1], int(path[-1])
    return None


def _is_index(token: str) -> bool:
    return token.isdecimal() and len(token) < 10
