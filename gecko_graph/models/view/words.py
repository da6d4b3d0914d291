"""Words that find the parts of a state that a call or a text concerns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from ...state import Json
from ...values.leaves import scalars_of

MAX_WORDS = 120
"""Words of a focus; the first ones count most."""

_LONGEST = 80
"""Characters up to which a text is searched as a whole: a name, an identifier, a title, not a message."""

_START, _FIRST = 4_000, 400
"""Characters read of a text, and texts read of a part: a result can be as large as a state."""

_TERM = re.compile(r"\w+(?:[-.:@#&'+]+\w+)*")
"""A term in a text: `final_report.pdf`, `2024-05-01`, `o'neil`; of a path each step."""

_PART = re.compile(r"[^\W\d_]+|\d+")
CAMEL = re.compile(r"(?<=[a-z\d])(?=[A-Z])")

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


def focus_words(*parts: Json) -> list[str]:
    """Return the words to look for in a state, the most specific first; for `view`.

    Args:
        parts: What the view is for, the most specific first: a call's name and arguments, a result, the task, the items
            of a checklist. Values come before their keys, whole texts before their words.

    Returns:
        At most `MAX_WORDS` different words in small letters, at most half of them of one part.
    """
    words: dict[str, None] = {}
    for part in parts:
        terms = (word for word in (*_whole(part), *_words(part), *_names(part)) if word not in _IDLE)
        words.update(dict.fromkeys(islice(dict.fromkeys(terms), MAX_WORDS // 2)))
    return list(words)[:MAX_WORDS]


def _texts(part: Json) -> list[str]:
    texts = (str(each) for each in scalars_of(part) if each is not None and not isinstance(each, bool))
    return [text[:_START] for text in islice(texts, _FIRST)]


def _whole(part: Json) -> Iterator[str]:
    """Yield short texts and numbers as they are, then the terms in all of them."""
    texts = _texts(part)
    for text in texts:
        plain = text.strip().lower()
        if plain and len(plain) <= _LONGEST:
            yield plain
    for text in texts:
        yield from (term.lower() for term in _TERM.findall(text) if len(term) <= _LONGEST)


def _words(part: Json) -> Iterator[str]:
    for text in _texts(part):
        for term in _TERM.findall(text):
            yield from split_term(term)


def _names(part: Json) -> Iterator[str]:
    """Yield the words of the first keys, such as `card_id`."""
    for key in islice(_keys(part), _FIRST):
        yield from split_term(key)


def _keys(part: Json) -> Iterator[str]:
    if isinstance(part, dict):
        for key, value in part.items():
            yield str(key)
            yield from _keys(value)
    elif isinstance(part, (list, tuple)):
        for value in part:
            yield from _keys(value)


def split_term(term: str) -> Iterator[str]:
    """Yield the words in a term, in the singular too: `lockDoors` gives lock, doors, door."""
    for piece in _PART.findall(CAMEL.sub(" ", term)):
        word = piece.lower()
        if not 3 <= len(word) <= _LONGEST:
            continue
        yield word
        if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
            yield word[:-1]
