"""The vocabulary of statements: `english.toml`, by stem.

A word of `PREDICATES` names a clause's predicate with a sign: `deleted` is the negative of `kept`, `off` of `on`,
`unknown` of `known`. All other words are compared without endings and by synonyms.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_ENDINGS = (
    ("ations", 4, ""), ("ation", 4, ""), ("ions", 4, ""), ("ion", 4, ""), ("ments", 3, ""), ("ment", 3, ""),
    ("als", 4, ""), ("al", 4, ""), ("ies", 2, "y"), ("ied", 2, "y"), ("ating", 4, ""), ("ated", 4, ""), ("ates", 4, ""),
    ("ate", 4, ""), ("ing", 3, ""), ("ed", 3, ""), ("es", 3, ""), ("s", 3, ""),
)  # fmt: skip
WORDS: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("english.toml").read_text(encoding="utf-8"))
_CONTRARY = "~"
"""Suffix of the concept that contradicts the one without it."""


def stem(word: str) -> str:
    """Return a word without its ending: `cancel`, `cancelled`, `canceling` and `cancellation` have the same stem."""
    word = word.removesuffix("'s").replace("'", "")
    for ending, least, to in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            word = word[: -len(ending)] + to
            break
    word = word.rstrip("e") if len(word) > 3 else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def phrase(words: Sequence[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(words)})\b", re.I)


def pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of the table, with its parts concatenated."""
    return re.compile("".join(WORDS["patterns"][name]), re.I)


def set_of(name: str) -> frozenset[str]:
    """Return the words of a table."""
    return frozenset(WORDS[name].split())


def _read_rows(name: str) -> Iterator[tuple[str, str]]:
    for name_, _, words in (each.partition(":") for each in WORDS[name].split(";")):
        yield name_.strip(), words


def _read_concepts() -> Iterator[tuple[str, tuple[str, int]]]:
    for concept, words in _read_rows("concepts"):
        for number, side in enumerate(re.split("[/|]", words)):
            named = (contrary_of(concept), 1) if number and "|" in words else (concept, -1 if number else 1)
            yield from ((stem(word), named) for word in side.split())


def contrary_of(concept: str) -> str:
    return concept.removesuffix(_CONTRARY) if concept.endswith(_CONTRARY) else concept + _CONTRARY


PREDICATES: Mapping[str, tuple[str, int]] = dict(_read_concepts())
"""Stem to concept and sign."""
_EMPTY = set_of("empty") | set_of("unit_words")
_ALIKE = {stem(other): stem(words[0]) for words in map(str.split, WORDS["synonyms"].split(";")) for other in words[1:]}
_IDIOMS = [(re.compile("|".join(alternatives), re.I), to) for to, *alternatives in WORDS["idioms"]["rows"]]


def _stems(words: str) -> frozenset[str]:
    return frozenset(_ALIKE.get(stem(word), stem(word)) for word in words.split())


KIN = {concept: words.split() for concept, words in _read_rows("kin")}
"""Concept to concepts that imply it: who has renamed a thing has changed it."""
IMPLIED = {kind: _stems(words) for kind, words in _read_rows("implied")}
"""Kind of figure to words that may be omitted beside one, such as `price` beside euros."""
PLACES = _stems(WORDS["places"])
"""Words that may be added."""


def plain(text: str) -> str:
    """Return a text with idioms replaced by plain words."""
    for pattern, to in _IDIOMS:
        text = pattern.sub(to, text.strip())
    return text


def is_empty(word: str) -> bool:
    """Return whether a word adds nothing to a clause's topic."""
    return word in _EMPTY


def topic_of(word: str) -> str:
    """Return the form of a word for comparisons: its stem, or that of its first synonym; "" if it adds no meaning."""
    word = word.partition("'")[0] or word
    one = stem(word)
    if {word, word.removesuffix("s")} & _EMPTY or word[-1].isdigit():
        return ""
    return _ALIKE.get(one, one)
