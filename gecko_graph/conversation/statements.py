"""Parse the statements of a text: its clauses with mood and polarity, and the words of their topic.

A negation inverts the signs of the predicates after it, so that "I did not keep it" equals "it is deleted"; but "the
limit was not lowered" does not imply that it was raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from .english import PREDICATES, WORDS, contrary_of, is_empty, pattern, phrase, plain, set_of, stem, topic_of
from .quantities import find_figures

LONGEST = 20_000
"""Characters of a text that are read."""
Mood: TypeAlias = Literal["stated", "open", "asked"]
"""`open`: promised, offered, guessed, tried, or conditional."""

_NOUNS = frozenset(map(stem, set_of("nouns")))
_BEFORE_VERB, _LIGHT, _ARTICLES = map(set_of, ("before_verb", "light", "articles"))

_OPEN = pattern("open")
_MILD = pattern("mild")
_ACT = pattern("act")
"""The position of a verb: after a pronoun or auxiliary, first in an order, or before a figure."""
_FUTURE = re.compile(r"\bwill\b|'ll\b|\bgoing to\b", re.I)
_LIMITS = phrase(WORDS["phrases"]["limits"])
_GUESS = phrase(WORDS["phrases"]["guess"])
_VERBAL = pattern("verbal")
_TITLE = re.compile(r"\"[^\"\n]{1,200}\"|(?<!\w)'[^'\n]{1,100}'(?!\w)")
_QUOTED = re.compile(r"\"[^\"\n]{1,300}\"")
_SENTENCE = re.compile(r"(?<=[.!?;])[\"')\]]{0,3}\s+|\n+")
_APPOSED = re.compile(r"(?<=[a-z]), ([A-Z]\w+(?: [A-Z]\w+)+),")
_LINE = re.compile(r"^([^:]{1,40}): (on|off|open|closed|locked|unlocked|sent|paid|done)[.!]?$", re.I)
_CLAUSE = pattern("clause")
_COUNTED = re.compile(r"\d $")
_NOMINAL = re.compile(r"(?:ions?|ments?|als?)$")
_BEFORE_ING = {"am", "is", "are", "was", "were", "be", "been", "now", "still", "already", "currently"}
_WORD = re.compile(r"[^\W\d](?:[\w'-]*[^\W_])?")
_CLEAN = str.maketrans(
    {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "*": "", "`": "", "#": " ", "\u00a0": " "}
)
_DOTTED = re.compile(r"\b([ap])\.m\.?|\b(e)\.g\.|\b(i)\.e\.|\b(Mr|Mrs|Ms|Dr|No|St|approx)\.(?= )")
_INITIAL = re.compile(r"\b([A-Z][a-z]+) [A-Z]\.(?= [A-Z][a-z])")
_TRIED = re.compile(r"\btried to\b(?=[^.;!?]*\bbut\b)", re.I)
_ASIDE = pattern("aside")
_ITEM = re.compile(r"^[^\S\n]*(?:[-\u2022]|\d{1,2}[.)](?=\s))[^\S\n]*", re.M)
_NAME = re.compile(r"(?<=[\w,:\"'] )\"?([A-Z][\w'-]*[a-z])|^([A-Z][\w'-]*[a-z])(?= [A-Z])")


@dataclass(frozen=True, slots=True)
class SentenceClause:
    """A part of a sentence.

    Args:
        text: Its text.
        sentence: The number of its sentence.
        words: Words of its topic, without endings, in order.
        signs: Concept of `PREDICATES` to the signs of its words, inverted after a negation.
        excluded: The concepts that contradict them.
        negated: The words after a negation.
        apart: The negated words up to the next predicate.
        negative: Whether it has a negation.
        mood: Whether it is stated, open or asked.
        future: Whether it is about the future.
        mild: Whether it is open only due to what others can, may or will do.
        limited: Whether a word such as `only` or `almost` restricts it.
        names: The words that are names.
        acts: The words in the position of a verb.
        tail: The text of following fragments without a verb.
    """

    text: str
    sentence: int
    words: tuple[str, ...]
    signs: Mapping[str, frozenset[int]] = field(hash=False)
    excluded: frozenset[str]
    negated: frozenset[str]
    apart: frozenset[str]
    negative: bool
    mood: Mood
    future: bool
    mild: bool
    limited: bool
    names: frozenset[str]
    acts: frozenset[str]
    tail: str = ""


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, including list items, without Markdown."""
    text = _QUOTED.sub(lambda found: found[0].replace("?", ""), text[:LONGEST].translate(_CLEAN))
    text = _ASIDE.sub("", _TRIED.sub("could not", _INITIAL.sub(r"\1", text)))
    plain = _DOTTED.sub(lambda found: next(filter(None, found.groups())) + ("m" if found[1] else ""), text)
    parts = (part.strip() for part in _SENTENCE.split(_ITEM.sub("", plain)))
    return [part for part in parts if any(map(str.isalnum, part))]


@lru_cache(maxsize=256)
def read_clauses(text: str) -> tuple[SentenceClause, ...]:
    return tuple(
        clause for number, sentence in enumerate(split_sentences(text)) for clause in _read_sentence(sentence, number)
    )


def _read_sentence(sentence: str, number: int) -> Iterator[SentenceClause]:
    sentence = _APPOSED.sub(r" \1", _LINE.sub(r"\1 is \2", sentence))
    asked = sentence.rstrip("\"') ").endswith("?")
    guessed = bool(_GUESS.search(sentence))
    parts: list[str] = []
    start = 0
    for end in [*(found.span() for found in _CLAUSE.finditer(sentence)), (len(sentence), len(sentence))]:
        if any(map(str.isalnum, sentence[start : end[0]])):
            between = sentence[end[0] : end[1]].lower()
            colon = ":" if between == ":" else ", except" if "except" in between else ""
            parts.append(sentence[start : end[0]].strip(" ,()\u2014") + colon)
        start = end[1]
    read: list[SentenceClause] = []
    for part in parts:
        clause = _read_clause(part, number)
        if read and not (clause.signs or _VERBAL.search(part)):  # a fragment of the previous clause
            clause = replace(clause, mood=read[-1].mood)
            read[-1] = replace(read[-1], tail=f"{read[-1].tail}, {part}")
        read.append(clause)
    for clause in read:
        if clause.words or clause.signs or find_figures(clause.text):
            yield replace(clause, mood="asked" if asked else clause.mood, limited=clause.limited or guessed)


def _read_clause(part: str, number: int) -> SentenceClause:
    text = plain(part)
    quoted = {place for found in _TITLE.finditer(text) for place in range(*found.span())}
    found = [*_WORD.finditer(text)]
    tokens = [f"={each[0].lower()}" if each.start() in quoted else each[0].lower() for each in found]
    small = [not place or each[0].islower() or each[0].isupper() for place, each in enumerate(found)]
    verbs = [_is_verb(before, word) and own for before, word, own in zip(["", *tokens], tokens, small, strict=False)]
    counted = [_COUNTED.search(text, 0, each.start()) for each in found]
    verbs = [
        verb and not (number and word.endswith("s")) for verb, number, word in zip(verbs, counted, tokens, strict=True)
    ]
    if not any(verbs) and _LIGHT & {*tokens}:
        verbs = [stem(word) in PREDICATES for word in tokens]
    signs, words, apart = _turned(tokens, verbs)
    return SentenceClause(
        text=part,
        sentence=number,
        words=tuple(words),
        signs={concept: frozenset(each) for concept, each in signs.items()},
        excluded=frozenset(contrary_of(name) for name, each in signs.items() if 1 in each),
        negated=frozenset(word for word, turned in words.items() if turned),
        apart=frozenset(apart),
        negative=bool({"not", "nothing", "notall"} & {*tokens}),
        mood="open" if _OPEN.search(text) else "stated",
        mild=not _OPEN.search(_MILD.sub(" ", text)),
        future=bool(_FUTURE.search(text)),
        limited=bool(_LIMITS.search(part)),
        names=names_of(part) & {*words},
        acts=frozenset(topic_of(each.lower()) for found in _ACT.finditer(part) for each in found.groups() if each),
    )


_TEXTED = {"text", "texted", "texting", "replied", "answered", "messaged", "emailed"}
"""Predicates that contain their object: who is texted is sent a text."""


def _turned(tokens: list[str], verbs: list[bool]) -> tuple[dict[str, set[int]], dict[str, bool], set[str]]:
    """Return the signs by concept, the words with whether a negation precedes them, and the words that it negates.

    A negation applies up to the next predicate: in `I have not sent it to Ann` to the sending, not to Ann.
    """
    signs: dict[str, set[int]] = {}
    words: dict[str, bool] = {}
    apart: set[str] = set()
    turn, taken, anew = 1, False, True
    last_verb = max((place for place, verb in enumerate(verbs) if verb), default=len(verbs))
    for place, (word, verb) in enumerate(zip(tokens, verbs, strict=True)):
        if word == "notall" or (word == "nothing" and place > last_verb):  # "I sent nothing"
            signs = {concept: {-sign for sign in each} for concept, each in signs.items()}
            words = {topic: not turned for topic, turned in words.items()}
        if word in ("not", "without", "nothing", "notall"):
            turn, taken, anew = -1 if anew else -turn, False, False
        elif word in _ANEW:
            anew = True
        elif verb and turn > 0 and _is_unsaid(tokens[place - 1] if place else "", word):
            continue
        elif verb:
            concept, sign = PREDICATES[stem(word)]
            signs.setdefault(concept, set()).add(sign * turn)
            taken = True
        if (not verb or word in _TEXTED) and (topic := topic_of(word.removeprefix("="))):
            words[topic] = turn < 0
            apart |= {topic} if turn < 0 and not taken else set()
    return signs, words, apart


_ANEW = {"and", "i", "we", "you", "it", "they", "or"}
"""Words that end the scope of a negation."""


def _is_unsaid(before: str, word: str) -> bool:
    """Return whether a predicate is not asserted: `to cancel it`, `cancelling it`, `the cancelled order`."""
    if word.endswith("ing"):
        return before not in _BEFORE_ING and before[-2:] not in ("'m", "'s", "re")
    return before == "to" or (word.endswith("ed") and before in ("the", "a", "your", "my", "any", "this", "that"))


def _is_verb(before: str, word: str) -> bool:
    one = stem(word)
    if one not in PREDICATES or is_empty(word):
        return False
    if word in _TIMED:
        return before not in _ARTICLES
    noun = (one in _NOUNS and not word.endswith("ed")) or _NOMINAL.search(word)
    return not noun or before in _BEFORE_VERB or before[-3:] in ("'ve", "'ll")


_TIMED = {"leaves", "lands", "ends", "rises", "returns", "runs"}


def concepts_of(text: str) -> set[str]:
    return {PREDICATES[one][0] for word in _WORD.findall(plain(text).lower()) if (one := stem(word)) in PREDICATES}


def names_of(text: str) -> frozenset[str]:
    """Return the names in a text: capitalized words, except one that only begins a sentence."""
    return frozenset(topic_of(each.lower()) for pair in _NAME.findall(text) for each in pair if each) - {""}


_SMALL_WORDS = [
    [re.compile(r"(?<![\w'])(?:[B-HJ-Z]|A(?! [a-z]))(?![\w'&])")],
    *([phrase([each]) for each in sorts] for sorts in WORDS["small_words"]),
]
"""Small words that exclude each other: letters, comparisons, ordinals, periods."""
_HARDLY_SAME = [[phrase([each]) for each in sorts] for sorts in WORDS["hardly_same"]]
"""Words that rarely replace each other: a deadline, a remainder, a debt."""


def has_happened(one: SentenceClause, other: SentenceClause) -> bool:
    """Return whether one clause states as past what the other states as present: `it arrived` for `it arrives`."""
    if _DUE.search(one.text) and _WAS_DONE.search(other.text):
        return True
    found = (PREDICATES.get(stem(each.lower())) for each in _HAPPENED.findall(other.text))
    return not _PAST.search(one.text) and any(each and each[0] in one.signs for each in found)


_DUE = re.compile(r"\bdue\b", re.I)
_WAS_DONE = re.compile(r"\b(?:was|were|been) (?:made|paid|done|sent|\w+ed)\b", re.I)
_PAST = re.compile(r"\w+ed\b|\b(?:was|were|had)\b", re.I)
_HAPPENED = re.compile(r"(?:\b(?:it|he|she|they|has|have)|[a-z]{3,}(?<!are|was|ere|een|ets)) (\w+ed)\b", re.I)


def is_crossed(one: str, other: str) -> bool:
    """Return whether two texts differ in a small word: `from M to S` and `from S to M`, `above` and `below`."""
    (ends, starts), (others, begins) = _ends_of(one), _ends_of(other)
    own, said = ({*re.findall(r"\w+", each.lower())} for each in (one, other))
    moved = ends and others and not ends & others and (others & own or ends & said)
    marks = ((_marks(one, each), _marks(other, each)) for each in (*_SMALL_WORDS, *_HARDLY_SAME))
    return bool(ends & begins or starts & others or moved) or any(a and b and not a & b for a, b in marks)


def _marks(text: str, sorts: Sequence[re.Pattern[str]]) -> set[int | str]:
    found = [(number, hit[0]) for number, each in enumerate(sorts) for hit in each.finditer(text)]
    return {hit if len(sorts) == 1 else number for number, hit in found}


def _ends_of(text: str) -> tuple[set[str], set[str]]:
    """Return the words after `to`, and those after `from`."""
    ends, starts = (
        re.findall(rf"\b(?:{each}) \W?([^\W\d]\w*)(?! \d)", text.lower()) for each in ("to|into|now called", "from")
    )
    return {*ends} - {"both", "the", "your", "my"}, {*starts}


def nouns_of(text: str) -> set[str]:
    """Return the words in the position of a noun: first, or after an article or preposition."""
    tokens = [each[0].lower() for each in _WORD.finditer(text)]
    behind = (not place or {*tokens[max(place - 3, 0) : place]} & _ARTICLES for place in range(len(tokens)))
    return {topic_of(token) for token, noun in zip(tokens, behind, strict=True) if noun} - {""}
