"""The words that statements are read by: `english.toml`, by stem.

A word of `PREDICATES` names what a clause says of its subject, with a sign: `deleted` is the negative of `kept`, `off`
of `on`, `unknown` of `known`. All other words are compared as they are, without their endings and by synonyms.
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
"""Ends the name of a concept that cannot hold beside the one of its name without."""


def stem(word: str) -> str:
    """Return a word without its ending: `cancel`, `cancelled`, `canceling` and `cancellation` are one."""
    word = word.removesuffix("'s").replace("'", "")
    for ending, least, to in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            word = word[: -len(ending)] + to
            break
    word = word.rstrip("e") if len(word) > 3 else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def phrase(words: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of some alternatives as whole words."""
    return re.compile(rf"\b(?:{'|'.join(words)})\b", re.I)


def pattern(name: str) -> re.Pattern[str]:
    """Return a pattern, whose parts stand one after the other."""
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
    """Return the concept that cannot hold beside one."""
    return concept.removesuffix(_CONTRARY) if concept.endswith(_CONTRARY) else concept + _CONTRARY


PREDICATES: Mapping[str, tuple[str, int]] = dict(_read_concepts())
"""By stem: the concept and its sign."""
_EMPTY = set_of("empty") | set_of("unit_words")
_ALIKE = {stem(other): stem(words[0]) for words in map(str.split, WORDS["synonyms"].split(";")) for other in words[1:]}
_IDIOMS = [(re.compile("|".join(alternatives), re.I), to) for to, *alternatives in WORDS["idioms"]["rows"]]


def _stems(words: str) -> frozenset[str]:
    return frozenset(_ALIKE.get(stem(word), stem(word)) for word in words.split())


KIN = {concept: words.split() for concept, words in _read_rows("kin")}
"""By concept those that may stand for it: who has renamed it has changed it."""
IMPLIED = {kind: _stems(words) for kind, words in _read_rows("implied")}
"""By kind of figure the words that need not be said beside one, such as `price` beside euros."""
PLACES = _stems(WORDS["places"])
"""Words that may be added."""


def plain(text: str) -> str:
    """Return a text without idioms: by their plain words."""
    for pattern, to in _IDIOMS:
        text = pattern.sub(to, text.strip())
    return text


def is_empty(word: str) -> bool:
    """Return whether a word says nothing of what a clause is about."""
    return word in _EMPTY


def topic_of(word: str) -> str:
    """Return a word as it is compared: without its ending, one for its synonyms; empty for one that says nothing."""
    word = word.partition("'")[0] or word
    one = stem(word)
    if {word, word.removesuffix("s")} & _EMPTY or word[-1].isdigit():
        return ""
    return _ALIKE.get(one, one)
