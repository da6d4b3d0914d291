"""An index of a large state: its containers from the root outwards, and where words occur in it.

Work per value runs at the speed of C: each container's keys and scalars are joined to one text, and words are
looked for in the texts of all containers at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from ...state import Json

_MARGIN = "\x1f"
"""Separates keys and scalars in the text. One inside a value only changes how relevant the value is."""

_CONTAINERS = frozenset((dict, list))

_FEW, _MANY = 80, 400
"""Occurrences read of a word, and of those where it is a whole key or scalar; more of them add little."""


class Node:
    """A non-empty container.

    Attributes:
        value: The container itself.
        parent: The container that it is in; None at the root.
        key: Its key or index there; None at the root.
        index: Its number among all containers of the state, breadth first.
        depth: How far from the root it is.
        kids: Those of its entries that are such containers.
        size: About how many characters of JSON it takes, with all its content.
        marks: Entries that were found, with their weight.
        score: How much its own entries concern the focus.
        named: How much its name does.
    """

    # a large state has many nodes, of which few are used: rarely needed attributes are class attributes
    score = 0.0
    named = 0.0
    kids: Mapping[Any, Node] = {}
    marks: Mapping[Any, float] = {}

    def __init__(self, value: Any, parent: Node | None, key: str | int | None, index: int) -> None:
        self.value = value
        self.parent = parent
        self.key = key
        self.index = index
        self.depth: int = parent.depth + 1 if parent else 0
        self.size = 0

    @property
    def keys(self) -> Sequence[Any]:
        """The keys of its entries, or their indices."""
        return list(self.value) if isinstance(self.value, dict) else range(len(self.value))

    def way(self) -> list[Node]:
        """Return the containers from the root to this one."""
        way: list[Node] = []
        node: Node | None = self
        while node:
            way.append(node)
            node = node.parent
        return way[::-1]

    def mark(self, key: Any, weight: float) -> None:
        """Add to the weight of an entry."""
        if not self.marks:
            self.marks = {}
        self.marks[key] = self.marks.get(key, 0.0) + weight  # type: ignore[index]


class Found(NamedTuple):
    """An occurrence of a word in a key or a scalar."""

    node: Node
    key: Any
    in_key: bool
    fit: float
    """1 for the whole key or scalar, 0.5 for a word in it, less for a part of a word."""


class Outline:
    """The containers of a state, breadth first.

    Attributes:
        nodes: All of them; the root is the first.
        found: Those with a score or a name that concerns the focus.
    """

    def __init__(self, state: Json) -> None:
        self.nodes: list[Node] = [Node(state, None, None, 0)]
        self.found: dict[int, Node] = {}
        self._keys: dict[int, Sequence[Any]] = {}
        texts = list(map(self._read, self.nodes))  # which grow as they are read
        for node, text in zip(reversed(self.nodes), reversed(texts), strict=True):
            node.size += len(text) + 4 * len(node.value)
            if node.parent:
                node.parent.size += node.size
        self._text = _lowered(texts)
        self._starts = list(accumulate((len(text) + 1 for text in texts), initial=1))

    def _read(self, node: Node) -> str:
        """Return the container's text; its containers join the queue."""
        value = node.value
        items = value.values() if isinstance(value, dict) else value
        branches = not _CONTAINERS.isdisjoint(map(type, items))
        text = _MARGIN.join(self._branch(node, items) if branches else map(str, items))
        return _MARGIN.join((*value, text)) if isinstance(value, dict) else text

    def _branch(self, node: Node, items: Collection[Any]) -> Iterator[str]:
        value, count = node.value, len(self.nodes)
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        inner = [(key, item) for key, item in pairs if type(item) in _CONTAINERS and item]
        node.kids = {key: Node(item, node, key, count + n) for n, (key, item) in enumerate(inner)}
        self.nodes += node.kids.values()
        return ("" if type(item) in _CONTAINERS else str(item) for item in items)

    def find(self, word: str) -> list[Found]:
        """Find a lower-case word, from the root outwards; of very many occurrences the first and the last."""
        places, all_seen = self._places(word, 0, _FEW)
        return places if all_seen else list(dict.fromkeys(places + self.find_whole(word)))

    def find_whole(self, word: str) -> list[Found]:
        """Find a lower-case word as a whole key or scalar; of very many occurrences the first and the last."""
        return self._places(f"{_MARGIN}{word}{_MARGIN}", 1, _MANY)[0]

    def _places(self, needle: str, margin: int, most: int) -> tuple[list[Found], bool]:
        positions, all_seen = self._positions(needle, most)
        places: list[Found] = []
        index, field, counted = 0, 0, 1
        for at in positions:
            start, end = at + margin, at + len(needle) - margin
            if start >= self._starts[index + 1]:
                index = bisect_right(self._starts, start) - 1
                field, counted = 0, self._starts[index]
            field += self._text.count(_MARGIN, counted, start)
            counted = start
            place = self._place(self.nodes[index], field, self._fit(start, end))
            if place:
                places.append(place)
        return places, all_seen

    def _positions(self, needle: str, most: int) -> tuple[list[int], bool]:
        """Find a text: of very many occurrences the first and the last, which are the latest of a list."""
        text, at = self._text, -1
        first: list[int] = []
        for _ in range(most // 2):
            at = text.find(needle, at + 1)
            if at < 0:
                return first, True
            first.append(at)
        last: list[int] = []
        end = len(text)
        for _ in range(most // 2):
            before = text.rfind(needle, at + 1, end)
            if before < 0:
                return first + last[::-1], True
            last.append(before)
            end = before + len(needle) - 1
        return first + last[::-1], False

    def _place(self, node: Node, field: int, fit: float) -> Found | None:
        count, keyed = len(node.value), isinstance(node.value, dict)
        entry = field - count if keyed and field >= count else field
        if not fit or not 0 <= entry < count:
            return None
        return Found(node, self._key(node, entry), keyed and field < count, fit)

    def _key(self, node: Node, entry: int) -> Any:
        if node.index not in self._keys:
            self._keys[node.index] = node.keys
        return self._keys[node.index][entry]

    def _fit(self, start: int, end: int) -> float:
        before, after = self._text[start - 1], self._text[end]
        if before == after == _MARGIN:
            return 1.0
        inside = before.isalnum()
        if not inside and not after.isalnum():
            return 0.5
        if end - start < 4 or self._text[start:end].isdigit():
            return 0.0
        return 0.2 if inside else 0.3


def _lowered(texts: list[str]) -> str:
    """Return all texts in lower case, a margin around each; every letter keeps its position."""
    joined = f"{_MARGIN}{_MARGIN.join(texts)}{_MARGIN}"
    small = joined.lower()
    return small if len(small) == len(joined) else "".join(map(_small, joined))


def _small(letter: str) -> str:
    """Return the lower-case letter, unless it is several: a dotted capital I becomes two."""
    small = letter.lower()
    return small if len(small) == 1 else letter
