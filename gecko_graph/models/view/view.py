"""The view of a task state in a prompt: an outline and the relevant parts, within a budget of characters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ...state import Json
from .drawing import Drawing, compact, folded, scalar, whole
from .outline import Node, Outline
from .relevance import Findings, find_relevant, is_circumstance
from .words import MAX_WORDS, focus_words

__all__ = ["View", "draw_view", "focus_words", "view"]

_SHORT = 200
"""Characters up to which a text is always shown."""

_SMALL = 300
"""Characters up to which a container near the root is always shown: a current folder, a list of doors."""

_LEAST = 60
"""Characters below which the search for more to show stops."""

_MISSES = 20
"""Successive parts that did not fit, after which the search stops."""

_RECORD = 800
"""Characters up to which a container is shown whole, together with the match in it."""

_SEVERAL = 10
"""Child containers up to which a container counts as a record, not as a collection."""

_NAMED = 2.0
"""Weight of a name from which a container counts as the one that is meant."""

_LENGTHENED = 5
"""Containers whose texts may use the remaining room."""

_MANY, _VERY_MANY = 200, 5_000
"""Entries of one container that may be shown, and those that are searched for relevant ones."""


class View(NamedTuple):
    """The part of a state that a prompt shows.

    Attributes:
        text: The view.
        shows: Whether all of the value at a path in the state (keys, and indices as text) is shown.
    """

    text: str
    shows: Callable[[Sequence[str]], bool]


def view(state: Json, *, focus: Sequence[str] = (), budget: int) -> str:
    """Return the state as text of at most `budget` characters: all of it if it fits, else an outline of relevant parts.

    It is JSON, with marks for omitted parts: `{… 12 keys: "a", "b", …}`, `… 214 more keys (of 220)`,
    `… items 3 to 40 (of 44)`, `"start" … 900 of 1,200 characters left out … "end"`. Items of a list that is not whole
    bear their index. Texts from the state are in JSON quotes, so that none can pass for a mark.

    In this order and as far as the budget allows, it shows: short values at the root and in its containers (user,
    session, counters); the containers that a path among these leads to (current folder); what the focus finds, with
    the record it is in and the records that it refers to; and, up to a third of the budget, an outline of the rest.

    Args:
        state: A JSON document.
        focus: Words to look for, the most specific first: see `focus_words`.
        budget: Characters, at least 500.
    """
    return draw_view(state, focus=focus, budget=budget).text


def draw_view(state: Json, *, focus: Sequence[str] = (), budget: int) -> View:
    """Return the `view` of a state, with a test for what it shows."""
    text = _entire(state, budget)
    if text is not None:
        return View(text, lambda path: True)
    if not isinstance(state, (dict, list)):
        return View(_clipped(state, budget), lambda path: False)
    outline = Outline(state)
    found = find_relevant(outline, focus[:MAX_WORDS])
    return _fitting(outline.nodes[0], found, budget) or View(folded(state)[:budget], lambda path: False)


def _fitting(root: Node, found: Findings, budget: int) -> View | None:
    """Return the selection; its texts are lengthened to fill the remaining room."""
    selection = _selected(root, found, budget)
    if selection is None:
        return None
    text = selection.text()
    longer = selection.lengthened(budget - len(text))
    if len(longer) > budget:  # fall back to the shorter text
        selection, longer = _selected(root, found, budget) or selection, text
    return View(longer, selection.drawing.shows)


def _selected(root: Node, found: Findings, budget: int) -> _Selection | None:
    """Select within the budget; sizes are overestimated, so try a larger budget where something was refused."""
    selection = _Selection(root, found, budget)
    length = len(selection.text())
    if length > budget:
        return _first_within(root, found, budget, [budget * tenths // 10 for tenths in (8, 6, 4, 2)])
    if selection.starved:
        more = min(2 * budget, budget * budget // length)
        return _first_within(root, found, budget, [more, (more + budget) // 2]) or selection
    return selection


def _first_within(root: Node, found: Findings, budget: int, rooms: Sequence[int]) -> _Selection | None:
    others = (_Selection(root, found, room) for room in rooms)
    return next((other for other in others if len(other.text()) <= budget), None)


def _entire(state: Json, budget: int) -> str | None:
    text = compact(state)
    if len(text) > budget:
        return None
    spaced = whole(state)
    return spaced if len(spaced) <= budget else text


def _clipped(value: Json, budget: int) -> str:
    for limit in (budget - 100, budget // 6 - 100, 0):
        text = scalar(value, max(limit, 0))
        if len(text) <= budget:
            return text
    return text[:budget]


class _Selection:
    """The selected parts of a state that is too large."""

    def __init__(self, root: Node, found: Findings, budget: int) -> None:
        self.root = root
        self.found = found
        self.budget = budget
        self.drawing = Drawing(root, budget)
        self._limit(budget // 3)
        self._show_circumstances()
        self._limit(budget // 3)
        self._show_addressed()
        self._limit(budget)
        self._show_relevant()
        self.starved = self.drawing.refused > 0
        self._limit(max(self.drawing.room - budget * 2 // 3, budget // 8))
        self._outline_rest()

    def text(self) -> str:
        return self.drawing.text()

    def lengthened(self, room: int) -> str:
        """Return the text with `room` more characters for the most relevant texts, such as a file to be read."""
        self.drawing.room, self.drawing.floor = room, 0
        for weight, node in self.found.ranked[:_LENGTHENED]:
            if weight < 0.5 * self.found.ranked[0][0]:
                break
            self.drawing.lengthen(node)
        return self.text()

    def _limit(self, characters: int) -> None:
        """Let the next step use so many characters, if there are as many."""
        self.drawing.floor = max(0, self.drawing.room - max(0, characters))

    def _show_circumstances(self) -> None:
        drawing = self.drawing
        drawing.open(self.root)
        for _, node, key in sorted(_near_root(self.root), key=lambda entry: entry[0]):
            kid = node.kids.get(key)
            if kid and kid.size <= _SMALL:
                drawing.show_whole(kid)
            elif kid or not isinstance(node.value[key], str) or len(node.value[key]) <= _SHORT or not node.depth:
                drawing.show(node, key, limit=max(_SHORT, self.budget // 6) if key in node.marks else _SHORT)

    def _show_addressed(self) -> None:
        for node in self.found.addressed:
            if node.size > self.budget // 8 or not self.drawing.show_whole(node):
                self.drawing.open(node, names=self.budget // 4)
                self._show_scalars(node, limit=_SHORT)

    def _show_relevant(self) -> None:
        misses = 0
        for weight, node in self.found.ranked:
            room, refused = self.drawing.room, self.drawing.refused
            weak = weight < 0.1 * self.found.ranked[0][0] and room < self.budget * 3 // 4
            if weak or room < _LEAST or misses > _MISSES:
                break
            self._show_found(node)
            misses = misses + 1 if self.drawing.refused > refused and self.drawing.room == room else 0

    def _show_found(self, node: Node) -> None:
        record = node
        while record.parent and record.parent.parent and record.parent.size <= _RECORD:
            record = record.parent
        room = self.budget // (4 if node.named >= _NAMED else 8)
        if record.size <= room and self.drawing.show_whole(record):
            return
        if not self.drawing.open(node):
            return
        marked = sorted(node.marks, key=lambda key: -node.marks[key])
        for key in marked[:_MANY]:
            self.drawing.show(node, key, limit=max(_SHORT, self.budget // 6))
        self._show_scalars(node, limit=self.budget // 6 if node.named else _SHORT)
        self._show_kids(node)

    def _show_scalars(self, node: Node, *, limit: int, count: int = 30) -> None:
        plain = [key for key in node.keys if key not in node.kids]
        for key in _ends(plain, count):
            self.drawing.show(node, key, limit=limit)

    def _show_kids(self, node: Node) -> None:
        kids = list(node.kids.values())
        if len(kids) == 1:
            self.drawing.open(kids[0], names=_SMALL)
        for kid in kids if len(kids) <= _SEVERAL else [kids[0], kids[-1]]:
            if kid.size > 2 * _SMALL or not self.drawing.show_whole(kid):
                self.drawing.show(node, kid.key, limit=_SHORT)

    def _outline_rest(self) -> None:
        """Outline the rest from the root outwards, branches with relevant content first."""
        self._show_scalars(self.root, limit=_SHORT)
        self._show_kids(self.root)
        for branch in self.found.branches:
            self._sketch_branch(branch)

    def _sketch_branch(self, branch: Node) -> None:
        queue = [branch]
        for node in queue:
            if self.drawing.room <= self.drawing.floor:
                return
            if self.drawing.is_open(node) or (node.parent and self.drawing.is_open(node.parent)):
                self._sketch(node)
                kids = list(node.kids.values())
                queue += kids if len(kids) <= _SEVERAL else _ends(kids, 2)

    def _sketch(self, node: Node) -> None:
        if node.size > 2 * _SMALL or not self.drawing.show_whole(node):
            self._show_scalars(node, limit=_SHORT // 2, count=30 if isinstance(node.value, dict) else 6)
            self._show_kids(node)


def _near_root(root: Node) -> Iterator[tuple[tuple[bool, bool, int, int], Node, Any]]:
    """Yield entries of the root and of its containers, with their sort keys."""
    count = 0
    for node in [root, *islice(root.kids.values(), _MANY)]:
        for key in _first_keys(node):
            if node.depth and key in node.kids and len(node.kids) > _SEVERAL:
                continue
            count += 1
            yield (not is_circumstance(key), key not in node.marks, node.depth, count), node, key


def _first_keys(node: Node) -> Iterator[Any]:
    """Yield the first keys, and later ones that were found or look like runtime variables."""
    for place, key in enumerate(islice(node.keys, _VERY_MANY)):
        if place < _MANY or key in node.marks or is_circumstance(key):
            yield key


def _ends(keys: list[Any], count: int) -> list[Any]:
    return keys if len(keys) <= count else keys[: count - count // 2] + keys[-(count // 2) :]
