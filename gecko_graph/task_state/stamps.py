"""Which change each value of a document comes from, folded from patches.

A change stamps what it adds or replaces. What it moves or copies keeps its stamps, and so do items that it shifts in
a list. What it takes out of an object leaves a stamp where nothing stands any more; out of a list it stamps the list
itself, whose length comes from it. What a doubtful change moves, copies or leaves is doubtful as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ..state import Json, Operation, Patch
from .patch import apply_patch, find, pointer, tokens


class Doubtful(Protocol):
    """A stamp: where a value comes from."""

    @property
    def doubtful(self) -> bool:
        """Whether it is only supposed."""


Untrusted = Callable[[], Sequence[str]]
"""Returns JSON Pointers to the parts of a task state that are only supposed, found when they are asked for."""

S = TypeVar("S", bound=Doubtful)
Key = str | int


@dataclass(slots=True)
class _Node(Generic[S]):
    """The stamp of a value, of all below it that is not listed, and those below it that differ."""

    own: S
    rest: S
    kids: dict[Key, _Node[S]] = field(default_factory=dict)


class Stamps(Generic[S]):
    """A document with the stamp of each of its values.

    Args:
        document: A JSON value; it is not changed.
        first: The stamp of all its values.
    """

    def __init__(self, document: Json, first: S) -> None:
        self.document = document
        self._root = _Node(first, first)

    def mark(self, path: str, stamp: S) -> None:
        """Stamp what stands at a JSON Pointer and below; with `-` as its last token only the object or list itself."""
        names = tokens(path)
        if names[-1:] == ["-"]:
            self._open(names[:-1]).own = stamp
        elif names:
            self._open(names[:-1]).kids[self._key(names)] = _Node(stamp, stamp)
        else:
            self._root = _Node(stamp, stamp)

    def apply(self, patch: Patch, stamp: S) -> None:
        """Apply a change, and stamp what it changes. Raises PatchConflict, with the operations before it applied."""
        for operation in patch:
            after = apply_patch(self.document, [operation])
            self._book(operation, stamp)
            self.document = after

    def _book(self, operation: Operation, stamp: S) -> None:
        name, path = operation["op"], tokens(operation["path"])
        source = tokens(operation["from"]) if name in ("move", "copy") else path
        if name == "test" or (name == "move" and source == path):
            return
        node = _Node(stamp, stamp) if name in ("add", "replace", "remove") else self._node(source)
        node = _Node(stamp, stamp) if stamp.doubtful else deepcopy(node)
        if name in ("remove", "move"):
            self._take(source, stamp)
            # where an item goes to, its index counts without what was taken
            self.document = apply_patch(self.document, [{"op": "remove", "path": pointer(source)}])
        if name == "replace" and path:
            self._open(path[:-1]).kids[self._key(path)] = node
        elif name != "remove":
            self._put(path, node)

    def _put(self, path: Sequence[str], node: _Node[S]) -> None:
        if not path:
            self._root = node
            return
        parent, key = self._open(path[:-1]), self._key(path)
        if isinstance(key, int):
            parent.kids = {kid + (isinstance(kid, int) and kid >= key): one for kid, one in parent.kids.items()}  # type: ignore[operator]
        parent.kids[key] = node

    def _take(self, path: Sequence[str], stamp: S) -> None:
        parent, key = self._open(path[:-1]), self._key(path)
        if isinstance(key, str):
            parent.kids[key] = _Node(stamp, stamp)
            return
        parent.kids = {kid - (kid > key): one for kid, one in parent.kids.items() if kid != key}  # type: ignore[operator]
        parent.own = parent.own if parent.own.doubtful else stamp

    def _key(self, path: Sequence[str]) -> Key:
        """Return the last token of a path as the key of its parent: in a list the index."""
        parent = find(self.document, list(path[:-1]))
        if not isinstance(parent, list):
            return path[-1]
        return len(parent) if path[-1] == "-" else int(path[-1])

    def _open(self, path: Sequence[str]) -> _Node[S]:
        """Return the node at a path, put there where there is none yet."""
        node, value = self._root, self.document
        for token in path:
            key: Key = int(token) if isinstance(value, list) else token
            value = value[key]
            node = node.kids.setdefault(key, _Node(node.rest, node.rest))
        return node

    def _node(self, path: Sequence[str]) -> _Node[S]:
        """Return the node at a path, as it would be put there."""
        node, value = self._root, self.document
        for token in path:
            if isinstance(value, list):
                value, node = value[int(token)], node.kids.get(int(token)) or _Node(node.rest, node.rest)
            else:
                value = value.get(token) if isinstance(value, dict) else None
                node = node.kids.get(token) or _Node(node.rest, node.rest)
        return node

    def at(self, path: str) -> S:
        """Return the stamp of what stands at a JSON Pointer, or of its absence there.

        Raises:
            PatchConflict: It is not a JSON Pointer.
            LookupError, ValueError: A list has no such item.
        """
        return self._node(tokens(path)).own

    def doubtful(self) -> list[str]:
        """Return JSON Pointers to the parts that are doubtful as a whole.

        Of an object or list that is doubtful only by itself, not in what it holds, the pointer ends in `/-`.
        """
        return list(_doubtful(self._root, self.document, ()))


def _doubtful(node: _Node[S], value: Json, path: tuple[Key, ...]) -> Iterator[str]:
    if _is_all(node):
        yield pointer(path)
        return
    if node.own.doubtful:
        yield pointer((*path, "-"))
    members = value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}
    if node.rest.doubtful:
        yield from (pointer((*path, key)) for key in members if key not in node.kids)
    for key, kid in node.kids.items():
        yield from _doubtful(kid, members.get(key), (*path, key))


def _is_all(node: _Node[S]) -> bool:
    return node.own.doubtful and node.rest.doubtful and all(map(_is_all, node.kids.values()))


def is_doubtful(path: Sequence[Key], parts: Sequence[str]) -> bool:
    """Return whether something at a path, above it or below it is among the doubtful parts."""
    place = pointer(path)
    return any(part == place or place.startswith(f"{part}/") or part.startswith(f"{place}/") for part in parts)
