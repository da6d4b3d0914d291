"""Which places of the task state a call of a real class touches: what it reads, and what it changes.

A place is read where another value there, or nothing there, makes the class answer or change something else. Found by
trying: the real class is called on the state with one place altered. What is looked at without any consequence does not
count; what decides between two branches does.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gecko_graph.errors import PatchConflict
from gecko_graph.state import Json, JsonObject
from gecko_graph.values.patch import apply_patch, json_equal, make_patch, tokens

from .classes import Classes, methods

Path = tuple[str | int, ...]

_WORD_CHARS = 24
"""Characters up to which a text in a method's code is tried as a value: `running`, `locked`."""


@dataclass(frozen=True, slots=True)
class Touched:
    """A place that a call touches.

    Args:
        path: Where, from the root of the task state.
        how: `value`: a scalar is read or overwritten; `member`: it matters that it is there; `container`: something is
            added to it.
    """

    path: Path
    how: str


def touched(real: Classes, state: JsonObject, call: Mapping[str, Any]) -> list[Touched]:
    """Return the places of the state that a call reads or changes.

    Args:
        real: The task's classes.
        state: The task state before the call.
        call: `{"call", "args"}`.
    """
    owner = real.owners[call["call"]]
    probe = _Probe(real, call)
    usual = probe.run(state)
    assert usual is not None, "the state that the class itself has written can be read"
    others = _others(real, call)
    found = dict.fromkeys(_changed(owner, state, usual[1]))
    for path, value in _places(state[owner], (owner,)):
        if not isinstance(value, dict | list) and any(
            probe.differs(state, path, other, usual) for other in _alternatives(value, others)
        ):
            found.setdefault(Touched(path, "value"))
        elif len(path) > 2 and isinstance(path[-1], str) and probe.differs(state, path, _NOTHING, usual):
            found.setdefault(Touched(path, "member"))
    return list(found)


class _Nothing:
    """In place of a value: the place is not there."""


_NOTHING = _Nothing()


class _Probe:
    """Calls of the real class on states with one place altered."""

    def __init__(self, real: Classes, call: Mapping[str, Any]) -> None:
        self._real, self._run, self._args = real, real.simulate(call["call"]), call["args"]
        self._owner = real.owners[call["call"]]

    def run(self, state: JsonObject) -> tuple[Json, list[Any]] | None:
        """Return answer and change, or None where the class cannot be made from such a state."""
        after = dict(state)
        after["runtime_state"] = copy.deepcopy(state.get("runtime_state", {}))
        try:
            answer = self._run(after, **copy.deepcopy(self._args))
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        return answer, make_patch({self._owner: state[self._owner]}, {self._owner: after[self._owner]})

    def differs(self, state: JsonObject, path: Path, value: Any, usual: tuple[Json, list[Any]]) -> bool:
        """Return True if the call comes to something else with this value at the place."""
        altered = _altered(state, path, value)
        made = self.run(altered)
        if made is None or (json_equal(made[0], usual[0]) and self._is_same_change(altered, made[1], usual[1])):
            return False
        return self._is_kept(altered)

    @staticmethod
    def _is_same_change(state: JsonObject, one: list[Any], other: list[Any]) -> bool:
        """Return True if two patches make the same of a state; one that empties a list may be written in two ways."""
        if json_equal(one, other):
            return True
        try:
            return json_equal(apply_patch(state, one), apply_patch(state, other))
        except PatchConflict:
            return False

    def _is_kept(self, state: JsonObject) -> bool:
        """Return True if the class holds such a state; it does not know the words of our JSON (`type` of a folder)."""
        return json_equal(self._real.read(self._real.instances(state))[self._owner], state[self._owner])


def _altered(state: Any, path: Path, value: Any) -> Any:
    """Return a copy with one place altered; all else is shared."""
    token, *rest = path
    made: Any = dict(state) if isinstance(state, dict) else list(state)
    if rest:
        made[token] = _altered(state[token], tuple(rest), value)
    elif value is _NOTHING:
        del made[token]
    else:
        made[token] = value
    return made


def _places(value: Json, path: Path) -> Iterator[tuple[Path, Json]]:
    if isinstance(value, dict | list):
        for token, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, token), item
            yield from _places(item, (*path, token))


def _others(real: Classes, call: Mapping[str, Any]) -> list[Any]:
    """Return values that the class may compare with: the call's arguments, and the words in its methods' code."""
    given = list(_scalars(call["args"]))
    code = methods(real.owners[call["call"]])[call["call"]].__code__
    words = [each for each in _scalars(list(code.co_consts)) if not isinstance(each, str) or _is_word(each)]
    return [*given, *words]


def _is_word(text: str) -> bool:
    return 0 < len(text) <= _WORD_CHARS and " " not in text


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _scalars(each)
    elif isinstance(value, str | int | float | bool):
        yield value


def _alternatives(value: Json, others: Sequence[Any]) -> Iterator[Any]:
    """Yield other values for a scalar, of its own kind."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, type(value)(0), value * 1000 + 1000, -value - 1)
        yield from (other for other in others if type(other) in (int, float) and other != value)
    elif isinstance(value, str):
        yield from (value + " x", "")
        yield from (other for other in others if isinstance(other, str) and other != value)
    else:
        yield "x"


def _changed(owner: str, state: JsonObject, patch: Sequence[Mapping[str, Any]]) -> Iterator[Touched]:
    """Yield the places that a change needs to know: what it overwrites or removes, and where it adds."""
    now: Any = state
    for operation in patch:
        for pointer in filter(None, (operation["path"], operation.get("from"))):
            path = _path(now, tokens(pointer))
            if path[0] == owner:
                yield from _known_before(state, path)
        now = apply_patch(now, [dict(operation)])


def _path(document: Any, steps: Sequence[str]) -> Path:
    """Return a pointer's tokens with list indices as numbers."""
    path: list[str | int] = []
    for step in steps:
        if isinstance(document, list):
            place = len(document) if step == "-" else int(step)
            path.append(place)
            document = document[place] if place < len(document) else None
        else:
            path.append(step)
            document = document.get(step) if isinstance(document, dict) else None
    return tuple(path)


def _known_before(state: Any, path: Path) -> Iterator[Touched]:
    """Yield what was at a path before the call, else the container on the way to it."""
    at: Any = state
    for depth, token in enumerate(path):
        there = token in at if isinstance(at, dict) else isinstance(token, int) and token < len(at)
        if not there:
            yield Touched(path[:depth], "container")
            return
        at = at[token]
        if not isinstance(at, dict | list):
            yield Touched(path[: depth + 1], "value")
            return
    yield Touched(path, "member" if isinstance(path[-1], str) else "container")
