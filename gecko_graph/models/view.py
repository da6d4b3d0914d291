"""The view of a large JSON value in a prompt: an outline and the relevant parts, within a budget of characters."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import log2
from typing import Any, NamedTuple

from ..state import Json
from .drawing import Drawing, escape, folded, scalar, whole
from .focus import MAX_WORDS, MOST_UPPER, Container, Occurrence, Outline, ends, is_circumstance

_SHORT = 200
"""Longest text that is always shown, in characters."""

_SMALL = 300
"""Largest container near the root that is always shown, in characters: a current folder, a list of doors."""

_LEAST, _MISSES = 60, 20
"""The selection stops with less room than this, or after so many consecutive parts that did not fit."""

_RECORD = 800
"""Largest record that is shown whole because of a match in it, in characters."""

_SEVERAL = 10
"""Most child containers of a record; a container with more is a collection."""

_NAMED = 2.0
"""Weight of a container's name from which the container counts as named by the focus."""

_MANY, _VERY_MANY = 200, 5_000
"""Most entries of a container that are shown, and that are searched."""

_LENGTHENED = 5
"""Containers whose texts may use the remaining room."""

_ALONE = 20
"""Most occurrences of a value that is followed as a reference; a more frequent value identifies nothing."""

_SMALL_RECORD = 2_000
"""Largest container that counts as a record, in characters."""

_REFERRERS = 6
_IDENTITY = re.compile(r"user|account|owner|login|session|name|_id\b|\bid\b|active|current|selected", re.IGNORECASE)
_STEP = re.compile(r"[^/\\]+")
_LONGEST_WAY = 30
_CLOSE = (3.0, 3.0, 2.5, 2.0)
"""Factors for containers at or below an addressed one, by distance."""

_MOST_KIDS = 1_000


class StateView(NamedTuple):
    """The part of a state that a prompt shows.

    Attributes:
        text: The view.
        shows: Whether the whole value at a path (keys, and indices as text) is shown.
    """

    text: str
    shows: Callable[[Sequence[str]], bool]


def view(state: Json, *, focus: Sequence[str] = (), budget: int) -> str:
    """Return the state as text of at most `budget` characters: whole if it fits, else an outline of relevant parts.

    The text is JSON with marks for omitted parts: `{… 12 keys: "a", "b", …}`, `… 214 more keys (of 220)`, `… items 3 to
    40 (of 44)`, `"start" … 900 of 1,200 characters left out … "end"`. Items of an incomplete list have their index.

    Shown in this order while the budget lasts: short values at the root and in its containers (user, session,
    counters); containers addressed by a path among these values (current folder); matches of the focus, with their
    record and the records it refers to; in up to a third of the budget, an outline of the rest.

    Args:
        state: A JSON document.
        focus: Words to look for, the most specific first, see `focus_words`.
        budget: Characters, at least 500.
    """
    return draw_view(state, focus=focus, budget=budget).text


def view_named(state: Json, *, focus: Sequence[str], named: Sequence[str], budgets: Sequence[int]) -> str:
    """Return the view with the smallest budget that shows all members named by words.

    Args:
        state: A JSON document.
        focus: Words to look for, see `view`.
        named: Words; a member with such a name must be shown whole.
        budgets: Characters, smallest first; the last is used if none is enough.
    """
    outline = Outline(state) if isinstance(state, (dict, list)) else None
    found = [place for word in named[:MAX_WORDS] for place in outline.find(word)] if outline else []
    found += [place for word in named[:MAX_WORDS] for place in outline.find_respelt(word)] if outline else []
    keys = {(*place.node.path(), str(place.key)) for place in found if place.in_key and place.fit == 1}
    for budget in budgets[:-1]:
        drawn = draw_view(state, focus=focus, budget=budget)
        if all(map(drawn.shows, keys)):
            return drawn.text
    return view(state, focus=focus, budget=budgets[-1])


def draw_view(state: Json, *, focus: Sequence[str] = (), budget: int) -> StateView:
    """Return the `view` of a state, with a test whether it shows a path."""
    entire = escape(json.dumps(state, ensure_ascii=False, separators=(",", ":")))
    if len(entire) <= budget:
        spaced = whole(state)
        return StateView(spaced if len(spaced) <= budget else entire, lambda path: True)
    if not isinstance(state, (dict, list)):
        texts = (scalar(state, max(limit, 0)) for limit in (budget - 100, budget // 6 - 100, 0))
        return StateView(next((text for text in texts if len(text) <= budget), entire[:budget]), lambda path: False)
    outline = Outline(state)
    found = find_relevant(outline, focus[:MAX_WORDS])
    drawing = _select_within(outline.nodes[0], found, budget)
    if drawing is None:
        return StateView(folded(state)[:budget], lambda path: False)
    meant = [node for weight, node in found.ranked[:_LENGTHENED] if weight >= 0.5 * found.ranked[0][0]]
    return StateView(drawing.lengthened(meant, budget), drawing.shows)  # for example the file to read


def _select_within(root: Container, found: Findings, budget: int) -> Drawing | None:
    """Select within the budget. Sizes are overestimated, so larger budgets are tried if something was refused."""
    drawing, is_starved = _select(root, found, budget)
    length = len(drawing.text())
    rooms = [budget * tenths // 10 for tenths in (8, 6, 4, 2)] if length > budget else []
    if length <= budget and is_starved:
        more = min(2 * budget, budget * budget // length)
        rooms = [more, (more + budget) // 2]
    others = (_select(root, found, room)[0] for room in rooms)
    fitting = next((other for other in others if len(other.text()) <= budget), None)
    return fitting or (drawing if length <= budget else None)


# what is shown --------------------------------------------------------------------------------------


def _select(root: Container, found: Findings, budget: int) -> tuple[Drawing, bool]:
    """Return the selected parts of a state that is too large, and whether a relevant part did not fit."""
    drawing = Drawing(root, budget)
    drawing.limit(budget // 3)
    _show_circumstances(drawing, root, budget)
    drawing.limit(budget // 3)
    for node in found.addressed:
        if node.size > budget // 8 or not drawing.show_whole(node):
            drawing.open(node, names=budget // 4)
            _show_scalars(drawing, node, limit=_SHORT)
    drawing.limit(budget)
    _show_relevant(drawing, found, budget)
    is_starved = drawing.refused > 0
    drawing.limit(max(drawing.room - budget * 2 // 3, budget // 8))
    _show_scalars(drawing, root, limit=_SHORT)
    _show_kids(drawing, root)
    for branch in root.kids.values():
        _sketch(drawing, branch)
    return drawing, is_starved


def _show_circumstances(drawing: Drawing, root: Container, budget: int) -> None:
    """Show entries of the root and of its containers: runtime variables first, then matches."""
    drawing.open(root)
    entries: list[tuple[tuple[bool, bool, int, int], Container, Any]] = []
    for node in [root, *islice(root.kids.values(), _MANY)]:
        for place, key in enumerate(islice(node.keys, _VERY_MANY)):
            is_likely = key in node.marks or is_circumstance(key)
            is_collection = node.depth and key in node.kids and len(node.kids) > _SEVERAL
            if not is_collection and (place < _MANY or is_likely):
                rank = (not is_circumstance(key), key not in node.marks, node.depth, len(entries))
                entries.append((rank, node, key))
    for _, node, key in sorted(entries, key=lambda entry: entry[0]):
        kid = node.kids.get(key)
        if kid and kid.size <= _SMALL:
            drawing.show_whole(kid)
        elif kid or not isinstance(node.value[key], str) or len(node.value[key]) <= _SHORT or not node.depth:
            drawing.show(node, key, limit=max(_SHORT, budget // 6) if key in node.marks else _SHORT)


def _show_relevant(drawing: Drawing, found: Findings, budget: int) -> None:
    misses = 0
    for weight, node in found.ranked:
        room, refused = drawing.room, drawing.refused
        is_weak = weight < 0.1 * found.ranked[0][0] and room < budget * 3 // 4
        if is_weak or room < _LEAST or misses > _MISSES:
            break
        record = node
        while record.parent and record.parent.parent and record.parent.size <= _RECORD:
            record = record.parent
        is_small = record.size <= budget // (4 if node.named >= _NAMED else 8)
        if not (is_small and drawing.show_whole(record)) and drawing.open(node):
            for key in sorted(node.marks, key=lambda key: -node.marks[key])[:_MANY]:
                drawing.show(node, key, limit=max(_SHORT, budget // 6))
            _show_scalars(drawing, node, limit=budget // 6 if node.named else _SHORT)
            _show_kids(drawing, node)
        misses = misses + 1 if drawing.refused > refused and drawing.room == room else 0


def _show_scalars(drawing: Drawing, node: Container, *, limit: int, count: int = 30) -> None:
    for key in ends([key for key in node.keys if key not in node.kids], count):
        drawing.show(node, key, limit=limit)


def _show_kids(drawing: Drawing, node: Container) -> None:
    kids = list(node.kids.values())
    if len(kids) == 1:
        drawing.open(kids[0], names=_SMALL)
    for kid in kids if len(kids) <= _SEVERAL else [kids[0], kids[-1]]:
        if kid.size > 2 * _SMALL or not drawing.show_whole(kid):
            drawing.show(node, kid.key, limit=_SHORT)


def _sketch(drawing: Drawing, branch: Container) -> None:
    queue = [branch]
    for node in queue:
        if drawing.room <= drawing.floor:
            return
        if not (drawing.is_open(node) or (node.parent and drawing.is_open(node.parent))):
            continue
        if node.size > 2 * _SMALL or not drawing.show_whole(node):
            _show_scalars(drawing, node, limit=_SHORT // 2, count=30 if isinstance(node.value, dict) else 6)
            _show_kids(drawing, node)
        kids = list(node.kids.values())
        queue += kids if len(kids) <= _SEVERAL else ends(kids, 2)


# what is relevant -----------------------------------------------------------------------------------


class Findings(NamedTuple):
    """The parts of a state that match a focus.

    Attributes:
        ranked: Matching containers with their weight, heaviest first.
        addressed: Containers that a path near the root addresses (current folder), each with the container of its
            members, such as `contents`.
    """

    ranked: list[tuple[float, Container]]
    addressed: list[Container]


def find_relevant(outline: Outline, words: Sequence[str]) -> Findings:
    """Find the parts of a state that match a focus; sets `marks`, `score` and `named` of the outline's nodes.

    Early, long and rare words weigh more, and matches of a whole key or value. References are followed one step: the
    values of a matching record, and values at the root that identify the user, are looked up as keys and identifiers.
    """
    wanted = dict.fromkeys(word.lower() for word in words if word)
    weights = {word: 1 / (1 + rank / 25) for rank, word in enumerate(wanted)}
    for word, weight in weights.items():
        _weigh_word(outline, word, weight)
    for reference, weight in list(_references(outline)):
        if reference not in weights:
            weights[reference] = weight
            _follow(outline, reference, weight)
    places = list(_addressed(outline))
    near = {node.index for node in places}
    weighed = ((_relevance(node, near), node) for node in outline.found.values())
    ranked = sorted(weighed, key=lambda find: (-find[0], -find[1].index))  # of equal ones the latest
    return Findings(ranked, places)


def _weigh_word(outline: Outline, word: str, weight: float) -> None:
    """Add a word's weight. A name identifies one record; a field's name occurs in all records of a kind."""
    kinds: dict[str, list[Occurrence]] = defaultdict(list)
    for place in [*outline.find(word), *outline.find_respelt(word)]:
        is_field = place.fit == 1 and place.in_key and place.key not in place.node.kids
        kinds["field" if is_field else "name" if place.is_name else str(place.fit == 1)].append(place)
    length = min(max(len(word), 2), 10) / 5
    for kind, places in kinds.items():
        spread = len(places) if kind == "field" else 1 + log2(len(places))
        _add_weight(outline, places, weight * (max(length, 1.0) if kind == "name" else length) / spread)


def _add_weight(outline: Outline, places: Sequence[Occurrence], weight: float) -> None:
    """Add weights; repeated matches of a word in one container count once."""
    best: dict[int, float] = defaultdict(float)
    for place in places:
        node, fit = place.node, place.fit
        worth = 4 * fit if place.in_key or place.is_name else 2.0 if fit == 1 else 2 * fit * fit
        node.marks[place.key] = node.marks.get(place.key, 0.0) + weight * worth
        if place.in_key and place.key in node.kids:
            node = node.kids[place.key]
            node.named += weight * worth
        elif weight * worth > best[node.index]:
            node.score += weight * worth - best[node.index]
            best[node.index] = weight * worth
        outline.found[node.index] = node


def _references(outline: Outline) -> Iterator[tuple[str, float]]:
    """Yield lower-case values that may refer to other records: of the best records, and of the user."""
    records = [node for node in outline.found.values() if node.depth > 1 and node.size < _SMALL_RECORD]
    for node in sorted(records, key=lambda node: -(node.score + node.named))[:_REFERRERS]:
        values = node.value.values() if isinstance(node.value, dict) else node.value
        for value in islice(values, MOST_UPPER):
            yield from ((name, min(1.0, (node.score + node.named) / 4)) for name in _reference(value))
    for node in outline.upper:
        for key in islice(node.value, _MOST_KIDS) if isinstance(node.value, dict) else ():
            if _IDENTITY.search(key):
                yield from ((name, 0.5) for name in _reference(node.value[key]))


def _reference(value: Json) -> Iterator[str]:
    if isinstance(value, str) and 2 < len(value) <= 40 and " " not in value:
        yield value.lower()
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) > 99:
        yield str(value)


def _follow(outline: Outline, reference: str, weight: float) -> None:
    places = outline.find(reference, whole=True)
    if len(places) <= _ALONE:
        keys = [place for place in places if place.in_key]
        values = [place for place in places if not place.in_key]
        _add_weight(outline, keys, 0.75 * weight / (1 + log2(len(keys) or 1)))
        _add_weight(outline, values, 0.2 * weight / (1 + log2(len(values) or 1)))


def _relevance(node: Container, near: set[int]) -> float:
    """Return a container's relevance; `near` has the indices of addressed containers.

    Of equal names, such as a file in many folders, the one in the current folder wins over those below it.
    """
    own = node.score + node.named
    names, close = 0.0, _CLOSE[0] if node.index in near else 1.0
    for steps, above in enumerate(reversed(node.way()[:-1]), 1):
        names += above.named / steps
        if steps < len(_CLOSE) and above.index in near:
            close = max(close, _CLOSE[steps])
    return (own + min(own, 0.5 * names)) * close


def _addressed(outline: Outline) -> Iterator[Container]:
    seen = set[int]()
    for node, steps in _ways(outline):
        around = [node, node.parent] if node.parent else [node]
        for place in (place for above in around for place in (above, *above.kids.values())):
            if end := _walk(place, steps):
                inner = max(end.kids.values(), key=lambda kid: kid.size) if 0 < len(end.kids) <= 3 else end
                yield from (each for each in (end, inner) if each.index not in seen)
                seen |= {end.index, inner.index}


def _ways(outline: Outline) -> Iterator[tuple[Container, list[str]]]:
    """Yield lists of names, and paths, at the root and in its containers."""
    for node in outline.upper:
        for key in node.keys[:MOST_UPPER] if isinstance(node.value, dict) else ():
            value = node.value[key]
            if isinstance(value, str) and len(value) < 300 and is_circumstance(key):
                value = _STEP.findall(value)
            if isinstance(value, list) and 0 < len(value) <= _LONGEST_WAY:
                yield node, [step for step in value if isinstance(step, str)]


def _walk(node: Container, steps: Sequence[str]) -> Container | None:
    """Return the container at the end of the steps; wrappers such as `contents` may come between two of them."""
    here: Container | None = node
    for step in steps:
        here = _enter(here, step, 2) if here else None
    return None if here is node else here


def _enter(node: Container, step: str, slack: int) -> Container | None:
    if step in node.kids:
        return node.kids[step]
    if isinstance(node.value, list):
        kids = (kid for kid in islice(node.kids.values(), _MOST_KIDS) if isinstance(kid.value, dict))
        return next((kid for kid in kids if step in (kid.value.get("name"), kid.value.get("id"))), None)
    inner = node.kids.values() if slack and len(node.kids) < 10 else ()
    return next((end for kid in inner if (end := _enter(kid, step, slack - 1))), None)
