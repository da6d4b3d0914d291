"""Origins of values: the record of an origin, and the origins of a task state, folded from the steps' patches.

A change marks the values that it adds or replaces; values without a step existed before. Moved, copied and shifted
values keep their marks. A value removed from an object leaves a mark of its absence; one removed from a list marks the
list, whose length has changed. Everything that a doubtful change touches is doubtful.

Trusted values were established by a caller, a contract, a function, an example or a real tool (ToolGate, section 3.2),
and not written by an inventing rung or a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import PatchConflict, StateError
from ..state import RUNTIME, Json, JsonObject, Operation, Origin, Outcome, Patch, Rehearsal, Step
from .digest import clone, digest
from .patch import apply_patch, find, tokens
from .places import Place, pointer

Untrusted = Callable[[], Sequence[str]]
"""Returns JSON Pointers to the supposed parts of a task state, computed on demand."""

Key = str | int
NOT_KNOWN = "(not known)"


class Mark(NamedTuple):
    """The compact form of an origin (`state.Origin`): most are never written out."""

    kind: str = "stated"
    source: str = "state"
    place: Place | str = ""
    """A place or JSON Pointer in a result or state, or the id of a message."""
    step: int = 0
    rung: str = ""
    attempt: int = 0
    shown: str = ""
    turn: int = 0
    call: str = ""
    tool: str = ""

    @property
    def doubtful(self) -> bool:
        """Return whether the value has no real source."""
        return self.kind == "chosen"

    def origin(self) -> Origin:
        """Return the record, without unknown fields."""
        path = self.place if isinstance(self.place, str) else pointer(self.place)
        known: Any = {name: value for name, value in zip(self._fields[3:], self[3:], strict=True) if value}
        return {"kind": self.kind, "from": self.source, "path": path, **known}  # type: ignore[typeddict-item]


GIVEN, SUPPOSED = Mark(), Mark("chosen")


def is_supposed(outcome: Outcome) -> bool:
    """Return whether a model made up an outcome's change, or it follows from a document alone."""
    return bool(outcome.get("invented") or outcome.get("supposed") or outcome.get("evidence") == "derived")


@dataclass(slots=True)
class _MarkNode:
    """The mark of a value, of all its members that are not listed, and its listed members with other marks."""

    own: Mark
    rest: Mark
    kids: dict[Key, _MarkNode] = field(default_factory=dict)

    def below(self, key: Key) -> _MarkNode:
        return self.kids.get(key) or _MarkNode(self.rest, self.rest)

    def shift(self, place: int, by: int) -> None:
        """Shift the items of a list from a position on."""
        self.kids = {key + by * (key >= place): kid for key, kid in self.kids.items() if isinstance(key, int)}


class OriginMap:
    """An immutable task state with the origin of each value."""

    def __init__(self, document: Json, first: Mark = GIVEN) -> None:
        self.document = document
        self._root = _MarkNode(first, first)
        self.has_doubts = first.doubtful  # without doubts, as in most cases, the tree is not searched

    def mark(self, path: str, mark: Mark) -> None:
        """Mark the value at a JSON Pointer and all below; with `-` as last token only the container itself."""
        self.has_doubts = self.has_doubts or mark.doubtful
        *above, last = ["", *tokens(path)]
        if last == "-" and above:
            self._open(above[1:]).own = mark
        else:
            self._put(tokens(path), _MarkNode(mark, mark), is_new=False)

    def apply(self, patch: Patch, mark: Mark) -> None:
        """Apply a patch, and mark its changes. Raises PatchConflict, with the operations before it applied."""
        self.has_doubts = self.has_doubts or mark.doubtful
        for operation in patch:
            after = apply_patch(self.document, [operation])
            self._book(operation, mark)
            self.document = after

    def _book(self, operation: Operation, mark: Mark) -> None:
        name, path = operation["op"], tokens(operation["path"])
        source = tokens(operation["from"]) if name in ("move", "copy") else path
        if name == "test" or (name == "move" and source == path):
            return
        keeps = name in ("move", "copy") and not mark.doubtful
        node = deepcopy(self._node(source)) if keeps else _MarkNode(mark, mark)
        if name in ("remove", "move"):
            self._take(source, mark)
            # the target index of a move does not count the removed item
            self.document = apply_patch(self.document, [{"op": "remove", "path": pointer(source)}])
        if name != "remove":
            self._put(path, node, is_new=name != "replace")

    def _put(self, path: Sequence[str], node: _MarkNode, *, is_new: bool) -> None:
        if not path:
            self._root = node
            return
        parent, key = self._open(path[:-1]), self._key(path)
        if isinstance(key, int) and is_new:
            parent.shift(key, 1)
        parent.kids[key] = node

    def _take(self, path: Sequence[str], mark: Mark) -> None:
        parent, key = self._open(path[:-1]), self._key(path)
        if isinstance(key, str):
            parent.kids[key] = _MarkNode(mark, mark)
            return
        parent.kids.pop(key, None)
        parent.shift(key, -1)
        parent.own = parent.own if parent.own.doubtful else mark

    def _key(self, path: Sequence[str]) -> Key:
        """Return the last token of a path as a key of its parent: in a list the index."""
        parent = find(self.document, list(path[:-1]))
        if not isinstance(parent, list):
            return path[-1]
        return len(parent) if path[-1] == "-" else int(path[-1])

    def _open(self, path: Sequence[str]) -> _MarkNode:
        node = self._root
        for depth in range(len(path)):
            key = self._key(path[: depth + 1])
            node = node.kids.setdefault(key, node.below(key))
        return node

    def _node(self, path: Sequence[str]) -> _MarkNode:
        node, value = self._root, self.document
        for token in path:
            if isinstance(value, list):
                value, node = value[int(token)], node.below(int(token))
            else:
                value, node = value.get(token) if isinstance(value, dict) else None, node.below(token)
        return node

    def suppose(self, places: Iterable[str]) -> OriginMap:
        """Mark places as supposed, and return self; missing and already doubtful places are skipped."""
        for place in places:
            with suppress(PatchConflict, LookupError, ValueError, TypeError):
                if not self.at(place.removesuffix("/-")).doubtful:
                    self.mark(place, SUPPOSED)
        return self

    def book(self, steps: Sequence[Step], *, first: int = 1, attempt: int = 0, turn: int = 0) -> OriginMap:
        """Apply the changes of an attempt's steps, and return self. Raises PatchConflict."""
        for number, step in enumerate(steps, first):
            if outcome := step.get("outcome"):
                rung = "model" if outcome.get("supposed") and not outcome.get("invented") else outcome["rung"]
                at = Mark(step=number, rung=rung, attempt=attempt, turn=turn)
                at = at._replace(call=step["call"]["id"], tool=step["call"]["name"])
                self.apply(outcome["patch"] or [], at._replace(kind="chosen") if is_supposed(outcome) else at)
                self.apply(outcome.get("observed", []), at)
        return self

    def at(self, path: str) -> Mark:
        """Return the mark of the value at a JSON Pointer, or of its absence.

        Raises:
            PatchConflict: It is not a JSON Pointer.
            LookupError, ValueError: A list has no such item.
        """
        return self._node(tokens(path)).own

    def origin_at(self, path: str) -> Origin | None:
        """Return the origin of the current or last value at a JSON Pointer; None if there never was one.

        Raises:
            StateError: It is not a JSON Pointer.
        """
        try:
            names = tokens(path)
        except PatchConflict as conflict:
            raise StateError(f"blame: {conflict}; write a JSON Pointer, such as /orders/7") from None
        mark = GIVEN
        with suppress(LookupError, ValueError):
            mark = self._node(names).own
        if not mark.step:
            try:
                find(self.document, names)
            except PatchConflict:
                return None
        return mark._replace(place=path).origin()

    def doubtful(self) -> list[str]:
        """Return JSON Pointers to the parts that are doubtful as a whole.

        If only a container itself is doubtful, not its members, the pointer ends in `/-`. An object with a doubtful
        member named `-` counts as doubtful as a whole, because both would have the same pointer.
        """
        return list(_doubtful(self._root, self.document, ())) if self.has_doubts else []


def find_untrusted(start: JsonObject, supposed: Sequence[str], steps: Sequence[Step]) -> list[str]:
    """Return JSON Pointers to the supposed parts of the state that the steps have made from `start`.

    `supposed` are the parts of `start` that a model made up.

    Returns:
        The pointers; `[""]` (the whole state) if the steps do not apply because the state was edited in between.
    """
    changed = [step["outcome"] for step in steps if "outcome" in step and step["outcome"]["patch"]]
    if not supposed and not any(map(is_supposed, changed)):
        return []
    try:
        return OriginMap(start).suppose(supposed).book(steps).doubtful()
    except PatchConflict:
        return [""]


def _doubtful(node: _MarkNode, value: Json, path: tuple[Key, ...]) -> Iterator[str]:
    members = value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}
    if _is_all(node) or (("-" in members or "-" in node.kids) and _is_any(node.below("-"))):
        yield pointer(path)
        return
    if node.own.doubtful:
        yield pointer((*path, "-"))
    if node.rest.doubtful:
        yield from (pointer((*path, key)) for key in members if key not in node.kids)
    for key, kid in node.kids.items():
        yield from _doubtful(kid, members.get(key), (*path, key))


def _is_all(node: _MarkNode) -> bool:
    return node.own.doubtful and node.rest.doubtful and all(map(_is_all, node.kids.values()))


def _is_any(node: _MarkNode) -> bool:
    return node.own.doubtful or node.rest.doubtful or any(map(_is_any, node.kids.values()))


def is_doubtful(path: Sequence[Key], parts: Sequence[str]) -> bool:
    """Return whether a place at, above or below a path is doubtful."""
    place = f"{pointer(path)}/"
    return any(place.startswith(f"{part}/") or part.startswith(place) for part in parts)


def trusted_part(state: JsonObject, untrusted: Iterable[str]) -> JsonObject:
    """Return a copy of a task state without the parts of `find_untrusted`; list items are replaced by a placeholder."""
    kept = clone(state)
    for path in untrusted:
        if not path:
            return {}
        *parents, last = tokens(path)
        owner = find(kept, parents)
        if isinstance(owner, dict):
            owner.pop(last, None)
        elif last != "-":  # else only the list's length is supposed
            owner[int(last)] = NOT_KNOWN
    return kept


def blame(
    rehearsals: Rehearsal | Sequence[Rehearsal], path: str, *, state: JsonObject, attempt: int | None = None
) -> Origin | None:
    """Return where a value of the task state comes from.

    Args:
        rehearsals: The record of a rehearsal, or of all turns in order; accepted ones have changed the state.
        path: JSON Pointer to the value in the final state: `/orders/7/status`.
        state: The task state at the start of the first turn.
        attempt: Number of the last turn's attempt; by default the chosen one.

    Returns:
        The origin, `from` the state, with turn, attempt, step, call, tool and rung of the call that wrote or removed
        the value; without a step if the value existed before. None if there never was a value.

    Raises:
        StateError: The path is no JSON Pointer, there is no such attempt, or a turn started from another state.
    """
    turns = [rehearsals] if isinstance(rehearsals, Mapping) else list(rehearsals)
    origins = OriginMap(state)
    for turn, record in enumerate(turns, 1):
        if made_up := record.get("supposed_state"):
            whole = {RUNTIME: {}, **made_up["state"], **origins.document}  # runtime variables are in no record
            new = [
                {"op": "add", "path": pointer([key]), "value": whole[key]} for key in whole.keys() - origins.document
            ]
            origins.apply(new, SUPPOSED)
            origins.suppose(made_up["paths"])
        is_last = turn == len(turns)
        if is_last or record["verdict"]["status"] == "accepted":
            number = attempt if is_last and attempt is not None else record["chosen"]
            chosen = next((each for each in record["attempts"] if each["number"] == number), None)
            if chosen is None or digest(origins.document) != chosen["start_digest"]:
                why = "began from another task state than `state` gives" if chosen else f"has no attempt {number}"
                raise StateError(f"blame: turn {turn} {why}")
            origins.book(chosen["steps"], turn=turn, attempt=number)
    return origins.origin_at(path)
