"""Which change each value of a document comes from, folded from patches.

A change stamps what it adds or replaces. What it moves or copies keeps its stamps, and so do items that it shifts in a
list. What it takes out of an object leaves a stamp where nothing stands any more; out of a list it stamps the list
itself, whose length comes from it. What a doubtful change moves, copies or leaves is doubtful as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple

from ..state import Json, Operation, Patch
from .patch import apply_patch, find, pointer, tokens

Untrusted = Callable[[], Sequence[str]]
"""Returns JSON Pointers to the parts of a task state that are only supposed, found when they are asked for."""

Key = str | int


class Stamp(NamedTuple):
    """Where a value comes from: a call by its attempt's step, from 1; without one from before. `doubtful`: supposed."""

    doubtful: bool = False
    turn: int = 0
    attempt: int = 0
    step: int = 0
    call: str = ""
    tool: str = ""
    rung: str = ""


@dataclass(slots=True)
class _Node:
    """The stamp of a value, of all below it that is not listed, and those below it that differ."""

    own: Stamp
    rest: Stamp
    kids: dict[Key, _Node] = field(default_factory=dict)

    def below(self, key: Key) -> _Node:
        return self.kids.get(key) or _Node(self.rest, self.rest)

    def shift(self, place: int, by: int) -> None:
        """Let items of a list from a place on move up or down."""
        self.kids = {key + by * (key >= place): kid for key, kid in self.kids.items() if isinstance(key, int)}


class Stamps:
    """A document, which is not changed, with the stamp of each of its values."""

    def __init__(self, document: Json, first: Stamp) -> None:
        self.document = document
        self._root = _Node(first, first)

    def mark(self, path: str, stamp: Stamp) -> None:
        """Stamp what stands at a JSON Pointer and below; with `-` as its last token only the object or list itself."""
        *above, last = ["", *tokens(path)]
        if last == "-" and above:
            self._open(above[1:]).own = stamp
        else:
            self._put(tokens(path), _Node(stamp, stamp), is_new=False)

    def apply(self, patch: Patch, stamp: Stamp) -> None:
        """Apply a change, and stamp what it changes. Raises PatchConflict, with the operations before it applied."""
        for operation in patch:
            after = apply_patch(self.document, [operation])
            self._book(operation, stamp)
            self.document = after

    def _book(self, operation: Operation, stamp: Stamp) -> None:
        name, path = operation["op"], tokens(operation["path"])
        source = tokens(operation["from"]) if name in ("move", "copy") else path
        if name == "test" or (name == "move" and source == path):
            return
        keeps = name in ("move", "copy") and not stamp.doubtful
        node = deepcopy(self._node(source)) if keeps else _Node(stamp, stamp)
        if name in ("remove", "move"):
            self._take(source, stamp)
            # where an item goes to, its index counts without what was taken
            self.document = apply_patch(self.document, [{"op": "remove", "path": pointer(source)}])
        if name != "remove":
            self._put(path, node, is_new=name != "replace")

    def _put(self, path: Sequence[str], node: _Node, *, is_new: bool) -> None:
        if not path:
            self._root = node
            return
        parent, key = self._open(path[:-1]), self._key(path)
        if isinstance(key, int) and is_new:
            parent.shift(key, 1)
        parent.kids[key] = node

    def _take(self, path: Sequence[str], stamp: Stamp) -> None:
        parent, key = self._open(path[:-1]), self._key(path)
        if isinstance(key, str):
            parent.kids[key] = _Node(stamp, stamp)
            return
        parent.kids.pop(key, None)
        parent.shift(key, -1)
        parent.own = parent.own if parent.own.doubtful else stamp

    def _key(self, path: Sequence[str]) -> Key:
        """Return the last token of a path as the key of its parent: in a list the index."""
        parent = find(self.document, list(path[:-1]))
        if not isinstance(parent, list):
            return path[-1]
        return len(parent) if path[-1] == "-" else int(path[-1])

    def _open(self, path: Sequence[str]) -> _Node:
        """Return the node at a path, put there where there is none yet."""
        node = self._root
        for depth in range(len(path)):
            key = self._key(path[: depth + 1])
            node = node.kids.setdefault(key, node.below(key))
        return node

    def _node(self, path: Sequence[str]) -> _Node:
        node, value = self._root, self.document
        for token in path:
            if isinstance(value, list):
                value, node = value[int(token)], node.below(int(token))
            else:
                value, node = value.get(token) if isinstance(value, dict) else None, node.below(token)
        return node

    def at(self, path: str) -> Stamp:
        """Return the stamp of what stands at a JSON Pointer, or of its absence there.

        Raises:
            PatchConflict: It is not a JSON Pointer.
            LookupError, ValueError: A list has no such item.
        """
        return self._node(tokens(path)).own

    def doubtful(self) -> list[str]:
        """Return JSON Pointers to the parts that are doubtful as a whole.

        Of an object or list that is doubtful only by itself, not in what it holds, the pointer ends in `/-`. An object
        with a doubtful member of the name `-` counts as doubtful as a whole: the two pointers would be the same.
        """
        return list(_doubtful(self._root, self.document, ()))


def _doubtful(node: _Node, value: Json, path: tuple[Key, ...]) -> Iterator[str]:
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


def _is_all(node: _Node) -> bool:
    return node.own.doubtful and node.rest.doubtful and all(map(_is_all, node.kids.values()))


def _is_any(node: _Node) -> bool:
    return node.own.doubtful or node.rest.doubtful or any(map(_is_any, node.kids.values()))


def is_doubtful(path: Sequence[Key], parts: Sequence[str]) -> bool:
    """Return whether something at a path, above it or below it is among the doubtful parts."""
    place = f"{pointer(path)}/"
    return any(place.startswith(f"{part}/") or part.startswith(place) for part in parts)
