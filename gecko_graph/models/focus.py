"""The words to look for in a large state, and an index of the state: its containers, and where words occur.

For speed each container's keys and scalars are joined to one text, and words are searched in all texts at once.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, chain, islice
from typing import Any, NamedTuple

from ..state import Json
from ..values.places import scalars_of

MAX_WORDS = 120
"""Most words of a focus; the first ones weigh most."""

_LONGEST = 80
"""Longest text that is searched as a whole (a name, an identifier, a title), in characters."""

_START, _FIRST = 4_000, 400
"""Characters read of a text, and texts read of a part: a result can be as large as a state."""

_TERM = re.compile(r"\w+(?:[-.:@#&'+]+\w+)*")
"""A term in a text: `final_report.pdf`, `2024-05-01`, `o'neil`; in a path each step."""

_PART = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z\d])(?=[A-Z])")

_IDLE = frozenset(
    """
    a about above after again all also am an and any are around as at be because been before being below but by can
    could currently did do does doing done down each either else every few first for from further get give go had
    has have having he help her here hers him his how however i if in into is it its itself just kindly last let
    like ll make may me might more most must my need needed next no nor not now of off ok okay on once one only onto
    or other our out over own please re really same see set shall she should show since so some still such sure take
    than thank thanks that the their them then there these they this those through to too two under until up us use
    using ve very via want was we well were what when where whether which while who whom why will with within
    without would yes yet you your
    """.split()  # noqa: SIM905 - easier to read than two hundred quoted words
)

_SEPARATORS = re.compile(r"[\W_]+")
LEAST_RESPELT = 6
"""Shortest word, in letters, that also matches keys with another spelling."""

_MARGIN = "\x1f"
"""Separates keys and scalars in the joined text. One inside a value only affects the value's relevance."""

_CONTAINERS = frozenset((dict, list))
MOST_UPPER = 40
_MOST_KEYS = 10_000
"""Most keys, from the root on, that are indexed by spelling."""
_FEW, _MANY = 80, 400
"""Most matches of a word that are read, and of those that are a whole key or scalar."""

_CIRCUMSTANCE = re.compile(
    r"(?<![a-z])(?:users?|username|account|owner|login|logged|auth|authenticated|session|token|active|current|selected"
    r"|cwd|pwd|working|folder|directory|path|now|today|time|date|count|counter|next|last|id|ids|status|mode|version|balance"
    r"|limit)(?![a-z])"
)
_NAMING = re.compile(r"(?:^|_)(?:id|name|title|key|code|symbol|number|email|slug|uuid|ref)$|[a-z](?:Id|Name|Key|Code)$")


# the words ------------------------------------------------------------------------------------------


def focus_words(*parts: Json) -> list[str]:
    """Return the words to look for in a state, the most specific first; for `view`.

    Args:
        parts: Texts that the view is for, the most specific first: a call's name and arguments, its result, the task,
            checklist items. Values come before their keys, whole texts before their words.

    Returns:
        At most `MAX_WORDS` different lower-case words, at most half of them from one part.
    """
    words: dict[str, None] = {}
    for part in parts:
        terms = dict.fromkeys(term for term in _terms(part) if term not in _IDLE)
        words.update(dict.fromkeys(islice(terms, MAX_WORDS // 2)))
    return list(words)[:MAX_WORDS]


def _terms(part: Json) -> Iterator[str]:
    """Yield short texts as a whole, then the terms of all texts, then the words of the terms and of the first keys."""
    scalars = (str(each) for each in scalars_of(part) if each is not None and not isinstance(each, bool))
    texts = [text[:_START] for text in islice(scalars, _FIRST)]
    yield from (plain for text in texts if 0 < len(plain := text.strip().lower()) <= _LONGEST)
    terms = [term for text in texts for term in _TERM.findall(text)]
    yield from (term.lower() for term in terms if len(term) <= _LONGEST)
    for term in chain(terms, islice(_keys(part), _FIRST)):
        yield from split_term(term)


def _keys(part: Json) -> Iterator[str]:
    if isinstance(part, dict):
        for key, value in part.items():
            yield str(key)
            yield from _keys(value)
    elif isinstance(part, (list, tuple)):
        yield from chain.from_iterable(map(_keys, part))


def split_term(term: str) -> Iterator[str]:
    """Yield the words in a term, also in the singular: `lockDoors` gives lock, doors, door."""
    for piece in _PART.findall(_CAMEL.sub(" ", term)):
        word = piece.lower()
        if 3 <= len(word) <= _LONGEST:
            yield word
            if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
                yield word[:-1]


def is_circumstance(key: object) -> bool:
    """Return whether a key looks like a runtime variable: current folder, user, session, counter."""
    return isinstance(key, str) and bool(_CIRCUMSTANCE.search(_CAMEL.sub("_", key).lower()))


# the state ------------------------------------------------------------------------------------------


class Container:
    """A non-empty container.

    Attributes:
        value: The container itself.
        parent: Its parent container, which has it under `key`; None at the root.
        index: Its number among all containers of the state, breadth first.
        depth: Its distance from the root.
        kids: Its child containers by key.
        size: Approximate size as JSON, in characters.
        marks: Weights of matching entries by key.
        score: Relevance of its own entries; `named`: relevance of its name.
    """

    def __init__(self, value: Any, parent: Container | None, key: str | int | None, index: int) -> None:
        self.value, self.parent, self.key, self.index = value, parent, key, index
        self.depth: int = parent.depth + 1 if parent else 0
        self.size = 0
        self.score = self.named = 0.0
        self.kids: dict[Any, Container] = {}
        self.marks: dict[Any, float] = {}

    @cached_property
    def keys(self) -> Sequence[Any]:
        return list(self.value) if isinstance(self.value, dict) else range(len(self.value))

    def way(self) -> list[Container]:
        return [*(self.parent.way() if self.parent else ()), self]

    def path(self) -> list[str]:
        """Return the keys and indices that lead to it, as text."""
        return [str(node.key) for node in self.way()[1:]]


class Occurrence(NamedTuple):
    """A match of a word in a key or a scalar.

    `fit` is 1 for the whole key or scalar, 0.5 for a word in it, less for a part of a word.
    """

    node: Container
    key: Any
    in_key: bool
    fit: float

    @property
    def is_name(self) -> bool:
        """Whether it names a record: a whole key, or a whole identifier."""
        return self.fit == 1 and (self.in_key or (isinstance(self.key, str) and bool(_NAMING.search(self.key))))


class Outline:
    """The containers of a state, breadth first; `found` are those that match the focus."""

    def __init__(self, state: Json) -> None:
        self.nodes: list[Container] = [Container(state, None, None, 0)]
        self.found: dict[int, Container] = {}
        texts = list(map(self._read, self.nodes))  # the list grows while it is read
        for node, text in zip(reversed(self.nodes), reversed(texts), strict=True):
            node.size += len(text) + 4 * len(node.value)
            if node.parent:
                node.parent.size += node.size
        self._text = _lowered(f"{_MARGIN}{_MARGIN.join(texts)}{_MARGIN}")
        self._starts = list(accumulate((len(text) + 1 for text in texts), initial=1))

    @property
    def upper(self) -> list[Container]:
        return [self.nodes[0], *islice(self.nodes[0].kids.values(), MOST_UPPER)]

    def _read(self, node: Container) -> str:
        """Return the container's text, and append its child containers to the queue."""
        value = node.value
        items = value.values() if isinstance(value, dict) else value
        branches = not _CONTAINERS.isdisjoint(map(type, items))
        text = _MARGIN.join(self._branch(node, items) if branches else map(str, items))
        return _MARGIN.join((*value, text)) if isinstance(value, dict) else text

    def _branch(self, node: Container, items: Collection[Any]) -> Iterator[str]:
        value, count = node.value, len(self.nodes)
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        inner = [(key, item) for key, item in pairs if type(item) in _CONTAINERS and item]
        node.kids = {key: Container(item, node, key, count + n) for n, (key, item) in enumerate(inner)}
        self.nodes += node.kids.values()
        return ("" if type(item) in _CONTAINERS else str(item) for item in items)

    def find(self, word: str, *, whole: bool = False) -> list[Occurrence]:
        """Find a lower-case word, from the root on; of too many matches the first and the last."""
        length = len(word)
        starts = [found.start() for found in re.finditer(re.escape(word), self._text)]
        exact = [start for start in starts if self._text[start - 1] == _MARGIN == self._text[start + length]]
        if whole or len(starts) > _FEW:
            starts = sorted({*ends(exact, _MANY), *(() if whole else ends(starts, _FEW))})
        places: list[Occurrence] = []
        index, field, counted = 0, 0, 1
        for start in starts:
            if start >= self._starts[index + 1]:
                index = bisect_right(self._starts, start) - 1
                field, counted = 0, self._starts[index]
            field += self._text.count(_MARGIN, counted, start)
            counted = start
            places += self._place(self.nodes[index], field, self._fit(start, start + length))
        return places

    def find_respelt(self, word: str) -> list[Occurrence]:
        """Find keys with another spelling of a word: `watch_list` for watchlist."""
        places = self._squeezed.get(_squeeze(word), ()) if len(word) >= LEAST_RESPELT else ()
        respelt = [(node, key) for node, key in places if word not in str(key).lower()]
        return [Occurrence(node, key, True, 1.0) for node, key in ends(respelt, _MANY)]

    @cached_property
    def _squeezed(self) -> dict[str, list[tuple[Container, Any]]]:
        found: dict[str, list[tuple[Container, Any]]] = {}
        keys = ((node, key) for node in self.nodes if isinstance(node.value, dict) for key in node.value)
        for node, key in islice(keys, _MOST_KEYS):
            found.setdefault(_squeeze(key), []).append((node, key))
        return found

    def _place(self, node: Container, field: int, fit: float) -> list[Occurrence]:
        count, keyed = len(node.value), isinstance(node.value, dict)
        entry = field - count if keyed and field >= count else field
        return [Occurrence(node, node.keys[entry], keyed and field < count, fit)] if fit and 0 <= entry < count else []

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


def _squeeze(key: object) -> str:
    """Return a key without separators, in the singular."""
    return _SEPARATORS.sub("", str(key).lower()).removesuffix("s")


def _lowered(text: str) -> str:
    """Return a text in lower case with the same length: a dotted capital I, which would become two letters, stays."""
    small = text.lower()
    return small if len(small) == len(text) else "".join(min(each.lower(), each, key=len) for each in text)


def ends(keys: Sequence[Any], count: int) -> Sequence[Any]:
    """Return the keys, or of more than `count` the first and the last."""
    return keys if len(keys) <= count else [*keys[: count - count // 2], *keys[-(count // 2) :]]
