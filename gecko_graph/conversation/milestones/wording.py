"""The words and names of a claim's part beside those of an answer: which a clause has, leaves out, or adds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from ...values.quantities import Figure, find_figures, is_given, is_said, spell_figures
from ...values.statements import Clause, nouns_of, read_clauses
from ...values.words import DEEDS, PLACES, PREDICATES, implied_by, kin_of, topic_of

_MODAL = re.compile(r"\b(?:can|could|may|might|must|will|should|possible|allowed|is going to)\b", re.I)
_PAST = re.compile(r"\b(?:was|were|been)\b", re.I)
_OTHERS = re.compile(r"(?:and |but )?(?:the|your|all|my) (?:other|rest|remaining)", re.I)
_LEFT = re.compile(r"\b(?:left|remain\w*)\b", re.I)
NOW = re.compile(r"\b(?:now|new|is (?:set|scheduled|planned) (?:for|to|at))\b", re.I)
_PRONOUN = re.compile(
    r"(?:and |so |but |as )?(?:it|they|this|that|these|both|which|she|he|those|the (?:\w+ )?ones?)\b", re.I
)
_SEVERAL = re.compile(r"\b(?:and|but|or|both|not|other|except)\b", re.I)
_OWNED = re.compile(r"(\w+)'s (\w+)")
DEED = re.compile(r"\b(?:i|we)(?:'ve| have)? ([a-z]+ed)\b", re.I)
LINK = re.compile(r"\b(?:is|are|was|were|has|have|had|will|costs?|takes?|lasts?|[a-z]+s(?= [$€£]?\d))\b", re.I)
_BEHIND = re.compile(r"(?:^|(?<=\w ))(in|on|at|with|by|from|via|for|after|during|under) ((?:[\w'-]+ ?){1,4})", re.I)
_OBSTACLES = {("full", 1), ("grant", -1), ("done", -1), ("valid", -1), ("online", -1), ("ready", -1)}
_PAIR = re.compile(r"(\w+) (?=([A-Z][a-z]+))")
_AFTER_PREPOSITION = re.compile(
    r"\b(?:of|for|in|on|at|to|before|after|from|with) (?:the |an? )?([^\W\d_][\w'-]*)", re.I
)
_NAMED = re.compile(r"[A-Z][a-z]+\b")
NOUN = re.compile(r"[^\W\d_][\w'-]*")
WORD = re.compile(r"[^\W\d_][\w']*")
_CAPITAL = re.compile(r"(?<= )[A-Z]\w*")


class Wording:
    """A part of a claim beside an answer.

    Args:
        part: The clause of the claim.
        answer: The agent's message.
        asked: The user's messages before it: what stands there need not be said again.
        denied: Whether the part is to be denied.
    """

    def __init__(self, part: Clause, answer: str, asked: str, *, denied: bool = False) -> None:
        if named := _NAMED.match(part.text):
            part = replace(part, names=part.names | ({topic_of(named[0].lower())} & {*part.words}))
        self.part, self.answer, self.asked, self.denied = part, answer, asked, denied
        self.words = {*part.words}
        self.figures = _find_meant(part.text, f"{answer} {asked}")
        self.new = [each for each in self.figures if not is_given(each, asked)]
        self.clauses, self.requests = read_clauses(answer), read_clauses(asked)
        self.known = {word for each in self.requests for word in each.words}
        self.kin = {*part.signs, *(each for name in part.signs for each in kin_of(name) if not each.endswith("-"))}
        self.event = bool(_PAST.search(part.text) or DEED.match(part.text))
        moods = ("stated", "open") if _MODAL.search(part.text) else ("stated",)
        told = [each for each in self.clauses if each.mood in moods and not (each.future and self.event)]
        told = [
            each
            for each in self.clauses
            if each in told or (each.mild and not self.event and self.words & {*each.words})
        ]
        others = bool(_OTHERS.match(part.text) or _LEFT.search(part.text))
        self.stated = [each for each in told if others or not _OTHERS.match(each.text)]
        self.several = bool(_SEVERAL.search(asked))
        self._titles = _find_titles(part, self.figures)

    def touches(self, clause: Clause) -> bool:
        """Return whether a clause shares a word or a predicate with the part."""
        return bool(self.words & {*clause.words} or self.part.signs.keys() & clause.signs.keys())

    def opposes(self, clause: Clause) -> bool:
        """Return whether a clause has a predicate of the part with the opposite sign."""
        named = {PREDICATES[word][0] for word in clause.words if word in PREDICATES} & self.part.signs.keys()
        turned = {name: frozenset(-sign for sign in signs) for name, signs in self.part.signs.items()}
        turned |= {"done": frozenset([-1])} if named else {}  # the order failed
        return any(clause.signs.get(name) == signs for name, signs in turned.items())

    def is_obstacle(self) -> bool:
        """Return whether the part says why something that was asked for cannot be: that it is full, or expired."""
        asked = {name for each in self.requests for name in each.signs}
        signs = {(name, sign) for name, each in self.part.signs.items() for sign in each if name not in asked}
        return bool(signs & _OBSTACLES)

    def is_of_request(self, clause: Clause) -> bool:
        """Return whether a clause says what the request asks to do."""
        deeds = {(name, *signs) for each in self.requests for name, signs in each.signs.items()} & DEEDS
        return any((name, *signs) in deeds for name, signs in clause.signs.items())

    def agrees(self, clause: Clause) -> bool:
        """Return whether a clause has a predicate of the part with its sign."""
        return any(signs == clause.signs.get(name) for name, signs in self.part.signs.items())

    def missing(self, clause: Clause) -> set[str]:
        """Return the part's words that a clause does not have, nor implies."""
        done = {word for word in self.words if PREDICATES.get(word, ("",))[0] in clause.signs}  # an order: ordered
        done = set() if self.strange(clause) & nouns_of(clause.text) else done
        told = {word for each in self.figures if is_said(each, clause.text) for word in implied_by(each.kind)}
        return (
            self.words
            - {*clause.words}
            - done
            - told
            - self._modifiers(clause)
            - _nominal_kin(self.words, clause.words)
        )

    def strange(self, clause: Clause) -> set[str]:
        """Return the words of a clause that neither the part nor the request has."""
        strange = {word for word in clause.words if word not in self.words and word not in PLACES} - self.known
        return strange - _nominal_kin(strange, self.words)

    def _modifiers(self, clause: Clause) -> set[str]:
        """Return words that only say of what sort the one after them is, where that is said without another sort."""
        found = set()
        for word, head in pairwise(self.part.words):
            if word in clause.words or head not in clause.words or {word, head} & self.part.names:
                continue
            place = clause.words.index(head)
            before = clause.words[place - 1] if place else ""
            plain = before in self.words | self.known | {""} or not _is_followed(before, head, clause.text)
            if plain and _is_followed(word, head, self.part.text):
                found.add(word)
        return found - self.known

    def _inherited(self, clause: Clause) -> set[str]:
        """Return the words of the clause before one that goes on about the same."""
        before = self.clauses[place - 1] if (place := self.clauses.index(clause)) else None
        goes_on = _PRONOUN.match(clause.text) or not clause.words
        return {*before.words} if before and (goes_on or before.text.endswith(":")) else set()

    def _adjuncts(self, clause: Clause) -> set[str]:
        """Return the words behind prepositions that the part does not have: `by John Coltrane`, `with one change`."""
        all_, left = (WORD.findall(each) for each in (clause.text, self._without_adjuncts(clause.text)))
        return {topic_of(each.lower()) for each in all_} - {topic_of(each.lower()) for each in left}

    def _without_adjuncts(self, text: str) -> str:
        prepositions = {*f"{self.part.text} {self.asked}".lower().split()}
        return _BEHIND.sub(lambda hit: hit[0] if hit[1].lower() in prepositions else "", text)

    def _stands_elsewhere(self, words: set[str], clause: Clause) -> bool:
        """Return whether another clause that states something has one of some words."""
        place = self.clauses.index(clause)
        before = self.clauses[place - 1] if place and self._inherited(clause) else None
        others = [each for each in self.stated if each not in (clause, before)]
        if len(self.requests) == 1:
            others = [each for each in others if self.kin & each.signs.keys()]
        return any(words & {*each.words} for each in others if each.signs or find_figures(each.text))

    def aliased(self, clause: Clause) -> set[str]:
        """Return the part's word for what a clause names as the user did in a short request: `the event`, an exam."""
        odd = self.missing(clause) - self.known - self.part.names
        deeds = [each for each in self.requests if self.kin & each.signs.keys()]
        if len(deeds or self.requests) != 1 or len(odd) != 1 or self.several:
            return set()
        figures = any(each.kind != "code" and is_said(each, clause.text) for each in self.figures)
        whole = figures or (len(self.words) > 1 and odd == self.missing(clause))
        if not (self.kin & clause.signs.keys() or NOW.search(clause.text) or (whole and not self.part.signs)):
            return set()
        named = {*clause.words} & self.known or self._is_of_request(clause)
        nouns = {topic_of(each.lower()) for each in NOUN.findall(LINK.split(self.part.text)[0])}
        nouns |= {topic_of(each.lower()) for each in _AFTER_PREPOSITION.findall(self.part.text)}
        return odd if named and odd <= nouns else set()

    def _is_of_request(self, clause: Clause) -> bool:
        """Return whether a clause says what the request asks for, of the thing that it gives by a code, or of none."""
        codes = any(each.kind == "code" and is_given(each, self.asked) for each in find_figures(clause.text))
        agrees = self.part.signs.keys() & clause.signs.keys() & self.requests[0].signs.keys()
        return bool(agrees and (codes or not clause.words))

    def _is_of_owner(self, clause: Clause) -> bool:
        """Return whether a clause speaks of what belongs to a thing of the part: of `Ann's number`, not of Ann."""
        owned = [tuple(topic_of(each.lower()) for each in pair) for pair in _OWNED.findall(clause.text)]
        own = self.words if " of " in self.part.text or "'s" in self.part.text else set[str]()
        return any(owner in self.words and thing not in own | {""} for owner, thing in owned)

    def _has_names(self, clause: Clause) -> bool:
        """Return whether a clause has all names of the part in their order, or none and no other name either."""
        if not spelt_in(self.part, clause.text):
            return False
        deeds = [each for each in self.requests if self.kin & each.signs.keys()]
        asked = frozenset[str]().union(*(each.names for each in deeds or self.requests))
        first = _NAMED.match(clause.text)
        named = clause.names | ({topic_of(first[0].lower())} if first else set())
        if (asked | self.part.names) - {*clause.words} and named & self.strange(clause) - self._adjuncts(clause):
            return False
        known = f"{self.asked} {self.part.text}"
        others = [pair for pair in _PAIR.findall(clause.text) if pair[1] not in known and topic_of(pair[1].lower())]
        if any(re.search(rf"\b{word}\.? [A-Z]", self.asked) for word, _ in others):
            return False
        if self.part.names - {*clause.words} and clause.names & asked - self.words:
            return False  # Bob, in the place of Ann
        names = self.part.names | (clause.names & self.words)
        own, said = ([word for word in each.words if word in names] for each in (self.part, clause))
        # of a name that the user has given a part may be said, as of "City Library"
        parts = [f"{one} {other}" for one in own for other in own if {one, other} & {*said}]
        whole = {word for each in parts if each in self.part.text.lower() for word in each.split()}
        left = [word for word in own if word in said or word not in self.known & whole]
        return said in (own, left) or not (said or clause.names & self.strange(clause))


def _nominal_kin(words: Iterable[str], others: Iterable[str]) -> set[str]:
    """Return the words that as predicates are the same as one of some others: a reservation and a booking."""
    same = {PREDICATES[each] for each in others if each in PREDICATES} - {("send", 1)}
    return {word for word in words if PREDICATES.get(word) in same}


def _is_followed(word: str, head: str, text: str) -> bool:
    return bool(re.search(rf"\b{re.escape(word)}\w* {re.escape(head)}", text, re.I))


def _find_titles(part: Clause, figures: Sequence[Figure]) -> set[str]:
    """Return the words that only say of what sort a figure or name is: `order 4471`, `the plumber Hugo`."""
    text = spell_figures(part.text)
    marks = [re.escape(each.text) for each in figures] + [rf"(?-i:{each})" for each in _CAPITAL.findall(part.text)]
    found = (re.search(rf"([^\W\d_]+)(?: of| number)? ['\"#]?{each}(?: ([^\W\d_]+))?", text, re.I) for each in marks)
    words = {word for each in found if each for word in each.groups() if word}
    return {topic_of(word) for word in words if word.islower()} - {"", *part.names}


def spelt_in(part: Clause, text: str) -> bool:
    """Return whether a text has no name that differs from one of the part by its ending alone: Kovac and Kovacs."""
    own, said = ({word.removesuffix("'s") for word in WORD.findall(each.lower())} for each in (part.text, text))
    strange = {topic_of(word) for word in said - own}
    return not strange & {topic_of(word) for word in own - said} & part.names


def _find_meant(text: str, said: str) -> list[Figure]:
    """Return the figures of a text; of those with several units, as pounds are, in the unit that is said."""
    found = [each for each in find_figures(text) if each.value != 0 or "0" in text]
    kinds = {each.kind for each in find_figures(said)}
    alike = {each.text: {other.kind for other in found if other.text == each.text} for each in found}
    return [each for each in found if each.kind in kinds or not alike[each.text] & kinds]
