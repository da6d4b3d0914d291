"""Read a model's patch, and reject it if it would lose values that the model has not seen."""

from __future__ import annotations

from contextlib import suppress
from typing import TypeAlias

from ..errors import PatchConflict
from ..models.focus import focus_words
from ..models.formatting import cut
from ..models.roles import SimulatedEffect, StateChange
from ..models.view import StateView, draw_view
from ..state import Call, Json, JsonObject, Operation, Patch
from ..values.digest import check_json
from ..values.patch import apply_patch, find, tokens
from ..values.places import scalars_of
from .rung import RungRequest

_Path: TypeAlias = list[str]

_WHOLE = "the whole state cannot be replaced, moved or copied: change the parts that the call changes"
_SHIFTED = "an operation before it has shifted the list's items: remove items at the end, from the highest index down"
_MISSING = (
    "a write that succeeds changes the state: give its patch. If the call cannot be done, say so; if it truly changes "
    'nothing, give the empty patch again with "unchanged": true'
)
_UNSEEN = "this would lose parts that the view leaves out: change only the parts that the call changes"


def view_for(request: RungRequest, refused: Patch, *focus: Json) -> StateView:
    """Return a model's view of the state: the places of a refused patch first, then those that the call concerns."""
    places = [operation["path"] for operation in refused]
    words = focus_words(places, request.call["name"], request.call["args"], *focus)
    return draw_view(request.state, focus=words, budget=request.context.view_chars)


def read_patch(reply: SimulatedEffect | StateChange, request: RungRequest, view: StateView) -> Patch:
    """Return a reply's patch if it applies to the state before the call.

    A removal of unseen things is allowed if the call's arguments name them, and an argument may replace an unseen
    scalar.

    Raises:
        PatchConflict: It does not apply, loses unseen values, or is missing; the message is for the model.
        StateError: It contains a value that is not JSON.
    """
    check_json(reply.patch, what="the patch")
    conflict: PatchConflict | None = None
    try:
        apply_patch(request.state, reply.patch)
    except PatchConflict as raised:  # losses are reported first
        conflict = raised
    guard = _Guard(request.state, view, request.call)
    for operation in reply.patch:
        if problem := guard.problem(operation):
            raise PatchConflict(f"{operation['op']} {cut(operation['path'], budget=200)}: {problem}")
        guard.follow(operation)
    if conflict is not None:
        raise PatchConflict(f"it does not apply to the state: {conflict}")
    changes = request.tool.effect == "write" or "patch" not in reply.model_fields_set
    if changes and not reply.patch and not reply.unchanged:
        raise PatchConflict(_MISSING)
    return reply.patch


class _Guard:
    """Checks the operations of one patch in order, against the state before it."""

    def __init__(self, state: JsonObject, view: StateView, call: Call) -> None:
        self._state, self._view = state, view
        scalars = (each for each in scalars_of(call["args"]) if isinstance(each, (str, int)))
        self._given = [str(each) for each in scalars if not isinstance(each, bool)]
        self._named = {part for text in self._given for part in (text, *text.split("/")) if len(part) > 1}
        self._moved: list[_Path] = []
        """Targets to which the patch has moved unseen values; they must not be changed."""
        self._shifts: list[tuple[_Path, int]] = []
        """Lists with the first index whose item has changed."""

    def problem(self, operation: Operation) -> str | None:
        """Return a message for the model on a forbidden loss, or None."""
        kind, path = operation["op"], tokens(operation["path"])
        source = tokens(operation["from"]) if kind in ("move", "copy") else None
        if kind == "test":
            return None
        if not path or source == []:
            return _WHOLE
        puts = kind in ("add", "move", "copy")
        if any(self._is_shifted(each) for each in (path[:-1] if puts else path, source or [])):
            return _SHIFTED
        if any(_meet(each, moved) for moved in self._moved for each in (path, source) if each):
            return _UNSEEN
        if puts and _item(path, self._state):
            return None  # inserting into a list replaces nothing
        return _UNSEEN if self._is_hidden(path, operation) else None

    def follow(self, operation: Operation) -> None:
        """Record the values that an operation moves and shifts."""
        kind, path = operation["op"], tokens(operation["path"])
        source = tokens(operation["from"]) if kind == "move" else path
        if kind == "move" and not self._view.shows(source):
            self._moved.append(path)
        if kind in ("remove", "move") and (item := _item(source, self._state)):
            self._shifts.append(item)
        if kind in ("add", "move", "copy") and (item := _item(path, self._state)):
            self._shifts.append((item[0], item[1] + 1))

    def _is_shifted(self, path: _Path) -> bool:
        below = [(path[len(above) :], first) for above, first in self._shifts if _meet(path, above)]
        return any(rest and _is_index(rest[0]) and int(rest[0]) >= first for rest, first in below)

    def _is_hidden(self, path: _Path, operation: Operation) -> bool:
        """Return whether an operation loses a value that was neither shown nor named by the call's arguments."""
        try:
            value = find(self._state, path)
        except PatchConflict:  # the patch itself has added it
            return False
        if self._view.shows(path):
            return False
        if operation["op"] == "remove":
            members = value.values() if isinstance(value, dict) else ()
            return not ({path[-1], *(str(each) for each in members if isinstance(each, (str, int)))} & self._named)
        return isinstance(value, (dict, list)) or str(operation.get("value")) not in self._given


def _meet(one: _Path, other: _Path) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _item(path: _Path, state: JsonObject) -> tuple[_Path, int] | None:
    """Return the list and the index of a path; None if it is not below an existing list."""
    with suppress(PatchConflict):
        if path and _is_index(path[-1]) and isinstance(find(state, path[:-1]), list):
            return path[:-1], int(path[-1])
    return None


def _is_index(token: str) -> bool:
    return token.isdecimal() and len(token) < 10
