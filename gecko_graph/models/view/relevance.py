"""The parts of a state that concern a focus: those found by its words, and those that they refer to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import log2

from ...state import Json
from .outline import Found, Node, Outline
from .words import CAMEL, split_term

_ALONE = 20
"""Occurrences up to which a reference is followed: a value that occurs more often does not identify anything."""

_RECORD = 2_000
"""Characters below which a container counts as a record, not as a collection."""

_REFERRERS = 6
_REFERENCES = 40
_CIRCUMSTANCE = re.compile(
    r"(?<![a-z])(?:users?|username|account|owner|login|logged|auth|authenticated|session|token|active|current|selected"
    r"|cwd|pwd|working|folder|directory|path|now|today|time|date|count|counter|next|last|id|ids|status|mode|version|balance"
    r"|limit)(?![a-z])"
)
_NAMING = re.compile(r"(?:^|_)(?:id|name|title|key|code|symbol|number|email|slug|uuid|ref)$|[a-z](?:Id|Name|Key|Code)$")
_IDENTITY = re.compile(r"user|account|owner|login|session|name|_id\b|\bid\b|active|current|selected", re.IGNORECASE)
_STEP = re.compile(r"[^/\\]+")
_LONGEST_WAY = 30
_CLOSE = (3.0, 3.0, 2.5, 2.0)
"""Factors for containers below an addressed one, by distance; the first is for the addressed one itself."""

_MANY = 1_000
_FIELDS = 100


def is_circumstance(key: object) -> bool:
    """Return whether a key looks like a runtime variable: current folder, user, session, counter."""
    return isinstance(key, str) and bool(_CIRCUMSTANCE.search(CAMEL.sub("_", key).lower()))


@dataclass(frozen=True)
class Findings:
    """The parts of a state that concern a focus.

    Attributes:
        ranked: The found containers with their weight, the heaviest first.
        addressed: Those to which a path at the root or below it leads (current folder), and in each the container of
            its things, such as `contents`.
        branches: The containers in the root, those with the most relevant content first.
    """

    ranked: list[tuple[float, Node]]
    addressed: list[Node]
    branches: list[Node]


def find_relevant(outline: Outline, words: Sequence[str]) -> Findings:
    """Find the parts of a state that concern a focus; sets `marks`, `score` and `named` of the outline's nodes.

    A word counts for more the earlier it comes, the longer it is, the fewer places it occurs in, and if it is a whole
    key or a whole value. What is found leads on by one step: the values of a record that was found, and those at the
    root that identify the user, are looked up as the keys and identifiers of others.
    """
    wanted = list(dict.fromkeys(word.lower() for word in words if word))
    for rank, word in enumerate(wanted):
        _weigh_word(outline, word, 1 / (1 + rank / 25))
    _weigh_names(outline, wanted)
    seen = set(wanted)
    for reference, weight in list(_references(outline)):
        if reference not in seen:
            seen.add(reference)
            _follow(outline, reference, weight)
    places = _addressed(outline)
    near = {node.index for node in places}
    weighed = ((_relevance(node, near), node) for node in outline.found.values())
    ranked = sorted(weighed, key=lambda find: (-find[0], -find[1].index))  # of equal ones the latest
    return Findings(ranked, places, _branches(outline))


def _addressed(outline: Outline) -> list[Node]:
    found: dict[int, Node] = {}
    for node, steps in _ways(outline):
        around = [node, node.parent] if node.parent else [node]
        for place in (place for above in around for place in (above, *above.kids.values())):
            end = _walk(place, steps)
            if end:
                found.setdefault(end.index, end)
                inner = max(end.kids.values(), key=lambda kid: kid.size) if 0 < len(end.kids) <= 3 else end
                found.setdefault(inner.index, inner)
    return list(found.values())


def _branches(outline: Outline) -> list[Node]:
    weights: dict[int, float] = {}
    for node in outline.found.values():
        top = node
        while top.parent and top.parent.parent:
            top = top.parent
        weights[top.index] = max(weights.get(top.index, 0.0), node.score + node.named)
    return sorted(outline.nodes[0].kids.values(), key=lambda kid: -weights.get(kid.index, 0.0))


def _relevance(node: Node, near: set[int]) -> float:
    """Return a container's relevance to the focus; `near` has the indices of addressed containers.

    Of things of one name, as a file in many folders, the one in the current folder is meant rather than one below it.
    """
    own = node.score + node.named
    names, close = 0.0, _CLOSE[0] if node.index in near else 1.0
    above, steps = node.parent, 1
    while above:
        names += above.named / steps
        if steps < len(_CLOSE) and above.index in near:
            close = max(close, _CLOSE[steps])
        above, steps = above.parent, steps + 1
    return (own + min(own, 0.5 * names)) * close


def _weigh_word(outline: Outline, word: str, weight: float) -> None:
    length = min(max(len(word), 2), 10) / 5
    kinds: dict[str, list[Found]] = {"name": [], "field": [], "whole": [], "part": []}
    for place in outline.find(word):
        kinds[_kind(place)].append(place)
    names, fields, whole, parts = kinds.values()
    _mark(outline, names, weight * max(length, 1.0) / (1 + log2(len(names) or 1)))
    _mark(outline, fields, weight * length / (len(fields) or 1))
    _mark(outline, whole, weight * length / (1 + log2(len(whole) or 1)))
    _mark(outline, parts, weight * length / (1 + log2(len(parts) or 1)))


def _kind(place: Found) -> str:
    """Classify an occurrence: a name identifies a record, a field is the same in all records of a kind."""
    if place.fit < 1:
        return "part"
    if place.in_key:
        return "name" if place.key in place.node.kids else "field"
    return "name" if _is_name(place) else "whole"


def _is_name(place: Found) -> bool:
    return place.fit == 1 and (place.in_key or (isinstance(place.key, str) and bool(_NAMING.search(place.key))))


def _weigh_names(outline: Outline, words: Sequence[str]) -> None:
    """Return names near the root count without regard to how often their words occur further down.

    They are found by their single words, too (door in `doorStatus`), and with other joints (watchlist is `watch_list`).
    """
    weights = {word: 1 / (1 + rank / 25) for rank, word in reversed(list(enumerate(words)))}
    joined = {"".join(filter(str.isalnum, word)): weight for word, weight in weights.items() if len(word) > 4}
    for node in _upper(outline):
        for key in islice(node.value, _FIELDS) if isinstance(node.value, dict) else ():
            plain = "".join(filter(str.isalnum, key.lower()))
            weight = sum(weights.get(word, 0.0) for word in set(split_term(key))) + 2 * joined.get(plain, 0.0)
            if weight:
                _mark(outline, [Found(node, key, in_key=True, fit=0.5)], weight)


def _upper(outline: Outline) -> list[Node]:
    root = outline.nodes[0]
    return [root, *islice(root.kids.values(), _REFERENCES)]


def _mark(outline: Outline, places: Sequence[Found], weight: float) -> None:
    """Add weights; several occurrences of a word in one container count once."""
    best: dict[int, float] = {}
    for place in places:
        node, value = place.node, weight * _worth(place)
        node.mark(place.key, value)
        if place.in_key and place.key in node.kids:
            node = node.kids[place.key]
            node.named += value
        elif value > best.get(node.index, 0.0):
            node.score += value - best.get(node.index, 0.0)
            best[node.index] = value
        outline.found[node.index] = node


def _worth(place: Found) -> float:
    if place.in_key or _is_name(place):
        return 4 * place.fit
    return 2.0 if place.fit == 1 else 2 * place.fit * place.fit


def _references(outline: Outline) -> Iterator[tuple[str, float]]:
    """Yield lower-case values that may refer to other records: those of the first records and of the user."""
    records = [node for node in outline.found.values() if node.depth > 1 and node.size < _RECORD]
    for node in sorted(records, key=lambda node: -(node.score + node.named))[:_REFERRERS]:
        values = node.value.values() if isinstance(node.value, dict) else node.value
        for value in islice(values, _REFERENCES):
            yield from ((name, min(1.0, (node.score + node.named) / 4)) for name in _reference(value))
    for node in _upper(outline):
        for key in islice(node.value, _MANY) if isinstance(node.value, dict) else ():
            if _IDENTITY.search(key):
                yield from ((name, 0.5) for name in _reference(node.value[key]))


def _reference(value: Json) -> Iterator[str]:
    if isinstance(value, str) and 2 < len(value) <= 40 and " " not in value:
        yield value.lower()
    elif isinstance(value, int) and not isinstance(value, bool) and abs(value) > 99:
        yield str(value)


def _follow(outline: Outline, reference: str, weight: float) -> None:
    places = outline.find_whole(reference)
    if len(places) <= _ALONE:
        keys = [place for place in places if place.in_key]
        values = [place for place in places if not place.in_key]
        _mark(outline, keys, 0.75 * weight / (1 + log2(len(keys) or 1)))
        _mark(outline, values, 0.2 * weight / (1 + log2(len(values) or 1)))


def _ways(outline: Outline) -> Iterator[tuple[Node, list[str]]]:
    """Yield lists of names and paths at the root and in its containers."""
    for node in _upper(outline):
        for key in list(node.keys)[:_REFERENCES] if isinstance(node.value, dict) else ():
            value = node.value[key]
            if isinstance(value, str) and len(value) < 300 and is_circumstance(key):
                value = _STEP.findall(value)
            if isinstance(value, list) and 0 < len(value) <= _LONGEST_WAY:
                yield node, [step for step in value if isinstance(step, str)]


def _walk(node: Node, steps: Sequence[str]) -> Node | None:
    """Return where the steps lead from a container; wrappers such as `contents` may lie between two of them."""
    here: Node | None = node
    for step in steps:
        here = _enter(here, step, 2) if here else None
    return None if here is node else here


def _enter(node: Node, step: str, slack: int) -> Node | None:
    if step in node.kids:
        return node.kids[step]
    if isinstance(node.value, list):
        return next((kid for kid in list(node.kids.values())[:_MANY] if _is_called(kid, step)), None)
    for kid in node.kids.values() if slack and len(node.kids) < 10 else ():
        end = _enter(kid, step, slack - 1)
        if end:
            return end
    return None


def _is_called(node: Node, name: str) -> bool:
    return isinstance(node.value, dict) and name in (node.value.get("name"), node.value.get("id"))
