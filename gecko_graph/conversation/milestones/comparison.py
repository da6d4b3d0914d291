"""Compare a part of a claim with an answer: which of its words, names and figures a clause contains and asserts.

A clause is about the part if it contains all words of the part, or omits only words of the request or of the clause
before and then adds none. So a lie that replaces one thing by another does not pass as a paraphrase.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from ..english import IMPLIED, KIN, PLACES, PREDICATES, WORDS, pattern, phrase, topic_of
from ..quantities import Figure, find_figures, is_given, is_said, is_same, rivals_of, spell_figures, word_before
from ..statements import SentenceClause, has_happened, is_crossed, nouns_of, read_clauses

_MODAL = re.compile(r"\b(?:can|could|may|might|must|will|should|possible|allowed|is going to)\b", re.I)
_PAST = re.compile(r"\b(?:was|were|been)\b", re.I)
_OTHERS = re.compile(r"(?:and |but )?(?:the|your|all|my) (?:other|rest|remaining)", re.I)
_LEFT = re.compile(r"\b(?:left|remain\w*)\b", re.I)
_WAS = re.compile(r"\b(?:was|were|had)\b", re.I)
_ALREADY = re.compile(r"\balready\b(?<!have already)(?<!'ve already)", re.I)
_NOW = re.compile(r"\b(?:now|new|is (?:set|scheduled|planned) (?:for|to|at))\b", re.I)
STILL = phrase(WORDS["phrases"]["still"])
_PRONOUN = pattern("pronoun")
_SUBJECT = re.compile(r"(?:the|an?|any) ([a-z]+) (?:is|was|were|are|has|have|can|may|could|will|[a-z]+s)\b", re.I)
_SEVERAL = re.compile(r"\b(?:and|but|or|both|not|other|except)\b", re.I)
BARE = re.compile(r"(?:and |so )?(?:it|that|this|there|you|they|he|she)\b", re.I)
_NOTHING = re.compile(r"\bnothing\b", re.I)
_NONE = re.compile(r"\b(?:none of|no|all)\b", re.I)
_THERE = re.compile(r"there (?:is|are|was|were)\b", re.I)
_IT = re.compile(r"\b(?:it|its|them|they|that|this)\b", re.I)
WITHOUT = re.compile(r"\bwithout\b", re.I)
_OWNED = re.compile(r"(\w+)'s (\w+)")
_DEED = re.compile(r"\b(?:i|we)(?:'ve| have)? ([a-z]+ed)\b", re.I)
_FIRST = re.compile(r"^[A-Z][a-z]+\b")
_PAIR = re.compile(r"(\w+) (?=([A-Z][a-z]+))")
_UNTIL = re.compile(r"\b(?:until|till)\b", re.I)
_CARRIERS = ("done", "grant", "ship", "send")
"""Predicates that stand for the verb of a noun: the transfer went through."""
_WORDS = re.compile(r"[^\W\d_][\w']*")
_CAPITAL = re.compile(r"(?<= )[A-Z]\w*")


class Comparison:
    """A part of a claim, to be compared with an answer.

    Args:
        part: The clause of the claim.
        answer: The agent's message.
        asked: The user's earlier messages, whose content need not be repeated.
        denied: Whether the part is to be denied.
    """

    def __init__(self, part: SentenceClause, answer: str, asked: str, *, denied: bool = False) -> None:
        self.part, self.answer, self.asked, self.denied = part, answer, asked, denied
        self.words = {*part.words}
        self.figures = _find_meant(part.text, f"{answer} {asked}")
        self.new = [each for each in self.figures if not is_given(each, asked)]
        self.clauses, self.requests = read_clauses(answer), read_clauses(asked)
        self.known = {word for each in self.requests for word in each.words}
        self.kin = {*part.signs, *(each for name in part.signs for each in KIN.get(name, ()))}
        self.event = bool(_PAST.search(part.text) or _DEED.match(part.text))
        moods = ("stated", "open") if _MODAL.search(part.text) else ("stated",)
        told = [each for each in self.clauses if each.mood in moods and not (each.future and self.event)]
        told = [
            each
            for each in self.clauses
            if each in told or (each.mild and not self.event and self.words & {*each.words})
        ]
        others = bool(_OTHERS.match(part.text) or _LEFT.search(part.text))
        self.stated = [each for each in told if others or not _OTHERS.match(each.text)]
        self._titles = _find_titles(part, self.figures)

    def turn_in(self, clause: SentenceClause) -> int:
        """Return 1 if a clause states the part, -1 if it states the opposite, 0 if it may be about other things."""
        if (
            clause.limited != self.part.limited
            or self._is_of_owner(clause)
            or is_crossed(self.part.text, clause.text + clause.tail)
        ):
            return 0
        if self._is_none(clause):
            return -1
        other = bool(clause.signs.keys() - self.kin) and not self.part.signs  # "the train is full" for its seats
        whole = (self.is_full(clause) or (self._is_carried(clause) and not other)) and self._has_figures(clause)
        return self.turn_of(clause) if whole and self._has_names(clause) else 0

    def _is_none(self, clause: SentenceClause) -> bool:
        """Return whether a clause denies of all things what the part states of some."""
        counted = any(each.kind == "number" for each in self.figures) and not self.part.negative
        of_them = self.is_full(clause) or (self.words and not self.missing(clause) - self.known)
        return bool(counted and of_them and _NONE.search(clause.text)) and self.turn_of(clause) < 0

    def turn_of(self, clause: SentenceClause) -> int:
        """Return 1 if a clause has the part's polarity, -1 for the opposite, 0 if that is unclear."""
        part = self.part
        named = self.part.signs.keys() & {PREDICATES[word][0] for word in clause.words if word in PREDICATES}
        own = self.kin | {PREDICATES[word][0] for word in part.words if word in PREDICATES}
        own |= {*_CARRIERS} if named else set()
        if any(-1 in signs for name, signs in clause.signs.items() if name not in own) and not clause.negative:
            return 0
        turns = {self._turn_by(name, signs, clause) for name, signs in part.signs.items()}
        turns = turns or {self._turn_by_negation(clause)}
        turn = turns.pop() if len(turns) == 1 else 0
        is_noun = clause.negative and not (part.negative or clause.negated) and part.signs
        if turn < 0 and _NOTHING.search(clause.text) and {*clause.words} - self.words - self.known:
            return 0  # "nothing on her calendar" means that she is free
        if turn > 0 and is_noun and all(1 in signs for signs in part.signs.values()):
            return 0  # "your refund hasn't been issued": it is unclear which word is negated
        apart = (part.apart ^ clause.apart) & self.words & {*clause.words}
        late = apart or has_happened(part, clause) or self._is_of_before(clause)
        return 0 if turn > 0 and late else turn

    def _turn_by(self, name: str, signs: frozenset[int], clause: SentenceClause) -> int:
        said = clause.signs.get(name) or frozenset([-1] if name in clause.excluded else ())
        said = said or frozenset([-1] if clause.negated & self.words and WITHOUT.search(clause.text) else ())
        named = any(PREDICATES.get(word, ("",))[0] == name for word in clause.words)
        said = said or next((clause.signs[each] for each in KIN.get(name, ()) if each in clause.signs), frozenset())
        carried = [clause.signs[each] for each in _CARRIERS if each in clause.signs]
        if named and carried and not said:  # "the cancellation was declined"
            own = {PREDICATES[word][1] for word in clause.words if PREDICATES.get(word, ("",))[0] == name}
            said = frozenset(sign * side for sign in carried[0] for side in own)
        until = bool(_UNTIL.search(self.part.text)) != bool(_UNTIL.search(clause.text)) and not clause.negative
        if said and said != signs and until and any(is_said(each, clause.text) for each in self.figures):
            return int(name != "open")  # "valid until" means that it expires then
        if said:
            return (1 if signs == said else -1) if len(said) == len(signs) == 1 else 0
        if clause.negative and _THERE.match(clause.text) and self.part.negated & clause.negated & self.words:
            return 1
        if clause.negative:
            return -1 if name == "know" and clause.text.lower().startswith("there") and not clause.signs else 0
        told = any(is_said(each, clause.text) for each in self.figures) or self.part.names & {*clause.words}
        given = (self.figures and not self.new) or any(is_given(each, self.asked) for each in find_figures(clause.text))
        now = not clause.signs and _NOW.search(clause.text)
        return int(bool(now and (told or given or len(self.words) > 1)))

    def _turn_by_negation(self, clause: SentenceClause) -> int:
        turned = bool(clause.negated & self.words)
        if not turned and (clause.negative or (self.part.negative and (clause.signs or self.strange(clause)))):
            return 0
        return 1 if turned == self.part.negative else -1

    def _is_of_before(self, clause: SentenceClause) -> bool:
        """Return whether a clause is about an earlier, an unchanged, or an existing state."""
        part = self.part
        was = _WAS.search(clause.text) and not (part.signs or _WAS.search(part.text))
        still = STILL.search(clause.text) and not STILL.search(part.text) and (self.event or not part.signs)
        return bool(was or still or (self.event and _ALREADY.search(clause.text)))

    # words
    def is_full(self, clause: SentenceClause) -> bool:
        """Return whether a clause has all words of the part, and a word that is more than generic."""
        said = [each for each in self.figures if is_said(each, clause.text)]
        told = [each for each in said if each.kind != "number" or len(each.text) > 2]
        alike = bool(told and self.part.signs.keys() & clause.signs.keys()) or len(told) == len(self.figures) > 1
        both = BARE.match(clause.text) and BARE.match(self.part.text) and self.part.signs.keys() <= clause.signs.keys()
        return bool(alike or self.words or both) and not self.missing(clause)

    def is_near(self, clause: SentenceClause) -> bool:
        """Return whether a clause may be about the part's things: it shares a word with it, or has no own words."""
        words = {*clause.words}
        rivals = any(rivals_of(wanted, clause.text, [self.part.text]) for wanted in self.figures)
        other = self.words - words and (words - self.words - PLACES) & self.known  # not the kitchen's light
        return not (rivals or other) and bool(self.words & words or not self.strange(clause))

    def touches(self, clause: SentenceClause) -> bool:
        """Return whether a clause shares a word or a predicate with the part."""
        return bool(self.words & {*clause.words} or self.part.signs.keys() & clause.signs.keys())

    def agrees(self, clause: SentenceClause) -> bool:
        """Return whether a clause has a predicate of the part with the same sign."""
        return any(signs == clause.signs.get(name) for name, signs in self.part.signs.items())

    def missing(self, clause: SentenceClause) -> set[str]:
        """Return the part's words that a clause neither contains nor implies."""
        done = {word for word in self.words if PREDICATES.get(word, ("",))[0] in clause.signs}  # "ordered": order
        done = set() if self.strange(clause) & nouns_of(clause.text) else done
        told = {word for each in self.figures if is_said(each, clause.text) for word in IMPLIED.get(each.kind, ())}
        return self.words - {*clause.words} - done - told - self._modifiers(clause)

    def strange(self, clause: SentenceClause) -> set[str]:
        """Return the words of a clause that are neither in the part nor in the request."""
        return {word for word in clause.words if word not in self.words and word not in PLACES} - self.known

    def _modifiers(self, clause: SentenceClause) -> set[str]:
        """Return words that only qualify the next word, if that occurs without another qualifier."""
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

    def _inherited(self, clause: SentenceClause) -> set[str]:
        """Return the words of the previous clause if this one continues it."""
        before = self.clauses[place - 1] if (place := self.clauses.index(clause)) else None
        goes_on = _PRONOUN.match(clause.text) or not clause.words
        return {*before.words} if before and (goes_on or before.text.endswith(":")) else set()

    def _is_carried(self, clause: SentenceClause) -> bool:
        """Return whether the omitted words of a clause are known, and it adds none."""
        inherited = self._inherited(clause)
        if self.words and inherited & self.known and not inherited & self.words:
            return False  # "it" is another thing of the request
        figures = [each for each in self.figures if is_said(each, clause.text + clause.tail)]
        titles = self._titles if figures or self.part.names & {*clause.words} else set()
        missing = self.missing(clause) - inherited - titles - self._subject_of(clause)
        added = {word for word in clause.words if word not in self.words and word not in PLACES}
        added -= {topic_of(each.lower()) for each in _DEED.findall(clause.text)} if self.agrees(clause) else set()
        known = self.known & clause.names if missing else self.known
        if added - inherited - known or self._stands_elsewhere(missing, clause):
            return False
        if missing - self.known:  # a bare answer: "It's $12"
            bare = BARE.match(clause.text) and not self._foreign_signs(clause)
            return bool(bare) and any(each.kind != "number" and each in self.new for each in figures)
        if missing and any(not is_said(each, self.part.text) for each in self._foreign_figures(clause)):
            return False
        named = {word for word in clause.words if PREDICATES.get(word, ("",))[0] in self.part.signs}
        shared = self.words & {*clause.words} or not missing or named == {*clause.words} or _IT.search(clause.text)
        return bool(figures or (shared and self.touches(clause)))

    def _stands_elsewhere(self, words: set[str], clause: SentenceClause) -> bool:
        """Return whether another stated clause contains one of the words."""
        place = self.clauses.index(clause)
        before = self.clauses[place - 1] if place and self._inherited(clause) else None
        others = [each for each in self.stated if each not in (clause, before)]
        if len(self.requests) == 1:
            others = [each for each in others if self.kin & each.signs.keys()]
        return any(words & {*each.words} for each in others if each.signs or find_figures(each.text))

    def _foreign_figures(self, clause: SentenceClause) -> list[Figure]:
        own = (any(is_same(each, other) for other in self.figures) for each in find_figures(clause.text))
        pairs = zip(find_figures(clause.text), own, strict=True)
        return [each for each, mine in pairs if not mine and not is_given(each, self.asked)]

    def _subject_of(self, clause: SentenceClause) -> set[str]:
        """Return the part's subject if a clause names it as the user did in a short request."""
        found = _SUBJECT.match(self.part.text)
        if not found or self.part.names:
            return set()
        if self.part.signs.keys() - clause.signs.keys() and not _NOW.search(clause.text):
            return set()
        if len(self.requests) != 1 or _SEVERAL.search(self.asked):
            return set()
        named = {*clause.words} & self.known or self._is_of_request(clause)
        return {topic_of(found[1].lower())} if named else set()

    def _is_of_request(self, clause: SentenceClause) -> bool:
        """Return whether a clause states the requested fact, and names the thing by the requested code or not."""
        codes = any(each.kind == "code" and is_given(each, self.asked) for each in find_figures(clause.text))
        agrees = self.part.signs.keys() & clause.signs.keys() & self.requests[0].signs.keys()
        return bool(agrees and (codes or not clause.words))

    # names and figures
    def _is_of_owner(self, clause: SentenceClause) -> bool:
        """Return whether a clause is about a possession of a thing of the part: `Ann's number`, not Ann."""
        owned = [tuple(topic_of(each.lower()) for each in pair) for pair in _OWNED.findall(clause.text)]
        own = self.words if " of " in self.part.text or "'s" in self.part.text else set[str]()
        return any(owner in self.words and thing not in own | {""} for owner, thing in owned)

    def _has_names(self, clause: SentenceClause) -> bool:
        if self._names_another(clause) or not spelt_in(self.part, clause.text):
            return False
        names = self.part.names | (clause.names & self.words)
        own, said = ([word for word in each.words if word in names] for each in (self.part, clause))
        # a part of a name from the user is enough: "City Library"
        parts = [f"{one} {other}" for one in own for other in own if {one, other} & {*said}]
        whole = {word for each in parts if each in self.part.text.lower() for word in each.split()}
        left = [word for word in own if word in said or word not in self.known & whole]
        return said in (own, left) or not (said or clause.names & self.strange(clause))

    def _names_another(self, clause: SentenceClause) -> bool:
        """Return whether a clause names another thing than the request: Bergen for Oslo, Dr Mayer for Dr May."""
        deeds = [each for each in self.requests if self.kin & each.signs.keys()]
        asked = frozenset[str]().union(*(each.names for each in deeds or self.requests))
        named = clause.names | {topic_of(each.lower()) for each in _FIRST.findall(clause.text)}
        if (asked | self.part.names) - {*clause.words} and named & self.strange(clause):
            return True
        if self.part.names - {*clause.words} and clause.names & asked - self.words:
            return True
        known = f"{self.asked} {self.part.text}"
        others = [pair for pair in _PAIR.findall(clause.text) if pair[1] not in known and topic_of(pair[1].lower())]
        return any(re.search(rf"\b{word}\.? [A-Z]", self.asked) for word, _ in others)

    def _has_figures(self, clause: SentenceClause) -> bool:
        """Return whether a clause has the part's figures in order, and no others instead."""
        text = clause.text + clause.tail
        sentence = " ".join(each.text for each in self.clauses if each.sentence == clause.sentence)
        for wanted in self.figures:
            said = self.is_said(wanted, text)
            whole = clause.text if self.is_said(wanted, clause.text) else text
            around = self.answer if not said else whole if self.is_full(clause) else sentence
            given = wanted not in self.new and len(self.requests) < 2 and not rivals_of(wanted, text, [self.part.text])
            if self.rivals(wanted, around) or not (said or given):
                return False
        own = [next((own for own in self.figures if is_same(own, each)), None) for each in find_figures(text)]
        places = [self.figures.index(each) for each in own if each]
        return places == sorted(places)

    def is_said(self, wanted: Figure, text: str) -> bool:
        """Return whether a text contains a figure; of equal ones (10 km, 6.2 miles) only the one that is new counts."""
        twins = wanted in self.new and any(each is not wanted and is_same(each, wanted) for each in self.figures)
        said = (is_same(wanted, each) and not is_given(each, self.asked) for each in find_figures(text))
        return any(said) if twins else is_said(wanted, text)

    def rivals(self, wanted: Figure, text: str) -> list[Figure]:
        found = rivals_of(wanted, text, [self.asked, self.part.text])
        return [each for each in found if not any(is_same(own, each) for own in self.figures)]

    def is_miscounted(self, clause: SentenceClause) -> bool:
        """Return whether a clause has another number of the things that the part counts: `2 red mugs and 4 cups`."""
        text = spell_figures(clause.text).lower()
        for wanted in (each for each in self.figures if each.kind == "number" and each.labels):
            stems = "|".join(each.rstrip("s") for each in wanted.labels if each.rstrip("s") in self.words)
            counts = (
                re.findall(rf"\b(\d+)(?: (?!of\b|and\b|or\b|to\b)[a-z-]+){{0,2}}? (?:{stems})", text) if stems else ()
            )
            if counts and " or " not in text and f"{wanted.value or 0:g}" not in counts:
                return True
        return False

    def is_counted_as(self, wanted: Figure, rival: Figure, clause: SentenceClause) -> bool:
        """Return whether two numbers count the same things, or number the same kind: `hall 2`."""
        before = {word_before(wanted, self.part.text), word_before(rival, clause.text)}
        whole = all(each[:5] in wanted.labels for each in self.missing(clause))
        if whole and self.turn_of(clause) > 0 and self.words & {*clause.words}:
            return True
        return bool(wanted.labels & rival.labels) or (len(before) == 1 and "" not in before)

    def _foreign_signs(self, clause: SentenceClause) -> set[str]:
        """Return the predicates of a clause that the part lacks; only negative ones if the clause has all its words."""
        foreign = clause.signs.keys() - self.kin - {"know", "exist"}
        if self.event or not self.words or self.missing(clause):
            return foreign
        return {name for name in foreign if -1 in clause.signs[name]}


def _is_followed(word: str, head: str, text: str) -> bool:
    return bool(re.search(rf"\b{re.escape(word)}\w* {re.escape(head)}", text, re.I))


def _find_titles(part: SentenceClause, figures: Sequence[Figure]) -> set[str]:
    """Return the words that only qualify a figure or name: `order 4471`, `the plumber Hugo`."""
    text = spell_figures(part.text)
    marks = [re.escape(each.text) for each in figures] + [rf"(?-i:{each})" for each in _CAPITAL.findall(part.text)]
    found = (re.search(rf"([^\W\d_]+)(?: of| number)? ['\"#]?{each}(?: ([^\W\d_]+))?", text, re.I) for each in marks)
    words = {word for each in found if each for word in each.groups() if word}
    return {topic_of(word) for word in words if word.islower()} - {"", *part.names}


def spelt_in(part: SentenceClause, text: str) -> bool:
    """Return whether a text has no name that differs from one of the part only by its ending: Kovac and Kovacs."""
    own, said = ({word.removesuffix("'s") for word in _WORDS.findall(each.lower())} for each in (part.text, text))
    strange = {topic_of(word) for word in said - own}
    return not strange & {topic_of(word) for word in own - said} & part.names


def _find_meant(text: str, said: str) -> list[Figure]:
    """Return the figures of a text; ambiguous units, such as pounds, are read as the kind in `said`."""
    found = [each for each in find_figures(text) if each.value != 0 or "0" in text]
    kinds = {each.kind for each in find_figures(said)}
    alike = {each.text: {other.kind for other in found if other.text == each.text} for each in found}
    return [each for each in found if each.kind in kinds or not alike[each.text] & kinds]
