"""A part of a claim beside an answer: which of its words, names and figures a clause has, and whether it says them.

A clause is about the part where it has all that the part names, or leaves out only what the request or the clause
before it names and then adds nothing of its own: so that a lie, which puts one thing in the place of another, is not
taken for a paraphrase.
"""

from __future__ import annotations

import re

from ...values.quantities import Figure, find_figures, is_given, is_said, is_same, rivals_of, spell_figures
from ...values.statements import Clause, is_crossed, is_turned, nouns_of, read_clauses
from ...values.words import PLACES, PREDICATES, WORDS, implied_by, kin_of, opponents_of, phrase, plain, stem, topic_of
from .wording import DEED, LINK, NOUN, NOW, WORD, Wording

_WAS = re.compile(r"\b(?:was|were|had)\b", re.I)
_ALREADY = re.compile(r"\balready\b(?<!have already)(?<!'ve already)", re.I)
STILL = phrase(WORDS["phrases"]["still"])
BARE = re.compile(r"(?:and |so )?(?:it|that|this|there|you|they|he|she)\b", re.I)
_NOTHING = re.compile(r"\bnothing\b", re.I)
_NONE = re.compile(r"\b(?:none of|no|all)\b", re.I)
_THERE = re.compile(r"there (?:is|are|was|were)\b", re.I)
_IT = re.compile(r"\b(?:it|its|them|they|that|this)\b", re.I)
_WITHOUT = re.compile(r"\bwithout\b", re.I)
_BOUND = re.compile(r"\b(?:(from|as of|starting)|until|till)\b", re.I)
_PASSIVE = re.compile(r"\b(?:by|from|to|with|and|or|was|were|is|are|been|for|of)\b", re.I)
_DID_NOTHING = re.compile(r"\w+(?:ed|ing|sent|set|made|put|done|bought) nothing\b(?! else)", re.I)
_EARLIER = re.compile(
    r"\b(?:yesterday|until|before|previous(?:ly)?|last|former(?:ly)?|earlier|ago|used|but|now|due|first)\b", re.I
)
_ENDED = re.compile(r"\w+ed\b")
_HAPPENED = re.compile(r"(?:\b(?:it|he|she|they|has|have)|[a-z]{3,}(?<!are|was|ere|een|ets)) (\w+ed)\b", re.I)
_UNTIL = re.compile(r"\b(?:until|till)\b", re.I)
_DUE = re.compile(r"\bdue\b", re.I)
_WAS_DONE = re.compile(r"\b(?:was|were|been) (?:made|paid|done|sent|\w+ed)\b", re.I)
_CARRIERS = ("done", "grant", "ship", "send")
"""Predicates that say of a noun what its verb would: the transfer went through."""


class Comparison(Wording):
    """How the clauses of an answer stand to a part: its predicates, figures and things."""

    def turn_in(self, clause: Clause) -> int:
        """Return 1 where a clause says the part, -1 for the opposite, 0 where it may be about other things."""
        if (
            clause.limited != self.part.limited
            or self._is_of_owner(clause)
            or is_crossed(self.part.text, clause.text + clause.tail)
        ):
            return 0
        if self._is_none(clause):
            return -1
        other = bool(clause.signs.keys() - self.kin) and not self.part.signs  # a full train for its seats
        whole = (self.is_full(clause) or (self._is_carried(clause) and not other)) and self._has_names(clause)
        turn = self.turn_of(clause) if whole else 0
        refused = turn < 0 and clause.negative and self.event and not find_figures(clause.text + clause.tail)
        return turn if refused or self._has_figures(clause) else 0

    def _is_none(self, clause: Clause) -> bool:
        """Return whether a clause says of none of the part's things what the part says of some."""
        if _DID_NOTHING.search(clause.text) and self.part.signs and not (self.part.negative or self.strange(clause)):
            return self.turn_of(clause) < 0
        counted = any(each.kind == "number" for each in self.figures) and not self.part.negative
        of_them = self.is_full(clause) or (self.words and not self.missing(clause) - self.known)
        return bool(counted and of_them and _NONE.search(clause.text)) and self.turn_of(clause) < 0

    def turn_of(self, clause: Clause) -> int:
        """Return 1 where a clause has the part's polarity, -1 for the opposite, 0 where that is not clear."""
        part = self.part
        named = self.part.signs.keys() & {PREDICATES[word][0] for word in clause.words if word in PREDICATES}
        own = self.kin | {PREDICATES[word][0] for word in part.words if word in PREDICATES}
        own |= {*_CARRIERS} if named else set()
        if any(-1 in signs for name, signs in clause.signs.items() if name not in own) and not clause.negative:
            return 0
        turns = {self._turn_by(name, signs, clause) for name, signs in part.signs.items()}
        turns = turns or {self._turn_by_negation(clause)}
        turn = turns.pop() if len(turns) == 1 else 0
        if turn > 0 and _has_happened(part, clause):
            return 0
        is_noun = clause.negative and not (part.negative or clause.negated) and part.signs
        if turn < 0 and _NOTHING.search(clause.text) and {*clause.words} - self.words - self.known:
            return 0  # nothing on her calendar: she is free
        if turn > 0 and is_noun and all(1 in signs for signs in part.signs.values()):
            return 0  # `your refund hasn't been issued`: what is negated is not known
        apart = (part.apart ^ clause.apart) & self.words & {*clause.words}
        return 0 if turn > 0 and (apart or self._is_of_before(clause)) else turn

    def _turn_by(self, name: str, signs: frozenset[int], clause: Clause) -> int:
        said = clause.signs.get(name) or frozenset([-1] if name in clause.excluded else ())
        said = said or frozenset([-1] if clause.negated & self.words and _WITHOUT.search(clause.text) else ())
        named = any(PREDICATES.get(word, ("",))[0] == name for word in clause.words)
        near = ((each.removesuffix("-"), -1 if each.endswith("-") else 1) for each in kin_of(name))
        said = said or next(
            (frozenset(sign * side for sign in clause.signs[each]) for each, side in near if each in clause.signs),
            frozenset(),
        )
        carried = [clause.signs[each] for each in _CARRIERS if each in clause.signs]
        if named and carried and not said:  # a cancellation that was declined
            own = {PREDICATES[word][1] for word in clause.words if PREDICATES.get(word, ("",))[0] == name}
            said = frozenset(sign * side for sign in carried[0] for side in own)
        until = bool(_UNTIL.search(self.part.text)) != bool(_UNTIL.search(clause.text)) and not clause.negative
        if (
            said
            and said != signs
            and until
            and name != "open"
            and any(is_said(each, clause.text) for each in self.figures)
        ):
            return 1  # valid until then: it expires then
        if said:
            return (1 if signs == said else -1) if len(said) == len(signs) == 1 else 0
        if clause.negative and _THERE.match(clause.text) and self.part.negated & clause.negated & self.words:
            return 1
        if clause.negative:
            return -1 if name == "know" and clause.text.lower().startswith("there") and not clause.signs else 0
        told = any(is_said(each, clause.text) for each in self.figures) or self.part.names & {*clause.words}
        if name == "run" and find_figures(clause.text) and (bound := _BOUND.search(clause.text)):
            return 1 if signs == {1 if bound[1] else -1} else -1
        given = (self.figures and not self.new) or any(is_given(each, self.asked) for each in find_figures(clause.text))
        implied = {PREDICATES[word][0] for each in self.new for word in implied_by(each.kind) if word in PREDICATES}
        if name in implied and told and not clause.signs:
            return 1 if 1 in signs else 0
        now = not clause.signs and NOW.search(clause.text)
        return int(bool(now and (told or given or len(self.words) > 1)))

    def _turn_by_negation(self, clause: Clause) -> int:
        turned = bool(clause.negated & self.words)
        if not turned and (clause.negative or (self.part.negative and (clause.signs or self.strange(clause)))):
            return 0
        return 1 if turned == self.part.negative else -1

    def _is_of_before(self, clause: Clause) -> bool:
        """Return whether a clause says what was so, is so still, or was so already."""
        part = self.part
        was = _WAS.search(clause.text) and _EARLIER.search(self.answer) and not (part.signs or _WAS.search(part.text))
        still = STILL.search(clause.text) and not STILL.search(part.text) and self.event
        return bool(was or still or (self.event and _ALREADY.search(clause.text)))

    def is_full(self, clause: Clause) -> bool:
        """Return whether a clause has all words of the part, and one that says more than of what sort it is."""
        said = [each for each in self.figures if is_said(each, clause.text)]
        told = [each for each in said if each.kind != "number" or len(each.text) > 2]
        alike = bool(told and self.part.signs.keys() & clause.signs.keys()) or len(told) == len(self.figures) > 1
        both = BARE.match(clause.text) and BARE.match(self.part.text) and self.part.signs.keys() <= clause.signs.keys()
        return bool(alike or self.words or both) and not self.missing(clause)

    def is_near(self, clause: Clause) -> bool:
        """Return whether a clause may be about the part's things: it shares a word with it, or has none of its own."""
        words = {*clause.words}
        rivals = any(rivals_of(wanted, clause.text, [self.part.text]) for wanted in self.figures)
        counts = (
            {each.value for each in part if each.kind == "number"} for part in (self.figures, find_figures(clause.text))
        )
        rivals = rivals or (all(both := [*counts]) and both[0].isdisjoint(both[1]))
        other = self.words - words and (words - self.words - PLACES) & self.known  # the hall's light for the kitchen's
        return not (rivals or other) and bool(self.words & words or not self.strange(clause))

    def _is_carried(self, clause: Clause) -> bool:
        """Return whether what a clause leaves out is known, and it adds nothing."""
        inherited = self._inherited(clause)
        if self.words and inherited & self.known and not inherited & self.words:
            return False  # `it` is something else of the request
        figures = [each for each in self.figures if is_said(each, clause.text + clause.tail)]
        titles = self._titles if figures or self.part.names & {*clause.words} else set()
        missing = self.missing(clause) - inherited - titles - self.aliased(clause)
        added = {word for word in clause.words if word not in self.words and word not in PLACES}
        added -= {topic_of(each.lower()) for each in DEED.findall(clause.text)} if self.agrees(clause) else set()
        added -= self._adjuncts(clause) if not missing - self.known else set()
        known = self.known & clause.names if missing else self.known
        if added - inherited - known or self._stands_elsewhere(missing, clause):
            return False
        if missing - self.known:  # a bare answer: "It's $12."
            bare = BARE.match(clause.text) and not self._foreign_signs(clause)
            return bool(bare) and any(each.kind != "number" and each in self.new for each in figures)
        if missing and any(not is_said(each, self.part.text) for each in self._foreign_figures(clause)):
            return False
        named = {word for word in clause.words if PREDICATES.get(word, ("",))[0] in self.part.signs}
        shared = self.words & {*clause.words} or not missing or named == {*clause.words} or _IT.search(clause.text)
        return bool(figures or (shared and self.touches(clause)))

    def _foreign_figures(self, clause: Clause) -> list[Figure]:
        text = self._without_adjuncts(spell_figures(clause.text))
        own = (any(is_same(each, other) for other in self.figures) for each in find_figures(text))
        pairs = zip(find_figures(text), own, strict=True)
        return [each for each, mine in pairs if not mine and not is_given(each, self.asked)]

    def _has_figures(self, clause: Clause) -> bool:
        """Return whether a clause has the part's figures in their order, and no others in their place."""
        text = clause.text + clause.tail
        beside = (each for each in self.clauses if each.sentence == clause.sentence and not self.strange(each))
        sentence = " ".join(each.text for each in beside)
        for wanted in self.figures:
            said = self.is_said(wanted, text)
            whole = clause.text if self.is_said(wanted, clause.text) else text
            around = self.answer if not said else whole if self.is_full(clause) else sentence
            given = wanted not in self.new and len(self.requests) < 2
            given = given and not rivals_of(wanted, self._subject_before(clause) + text, [self.part.text])
            if self.rivals(wanted, around) or not (said or given):
                return False
        own = [next((own for own in self.figures if is_same(own, each)), None) for each in find_figures(text)]
        places = [self.figures.index(each) for each in own if each]
        return places == sorted(places)

    def _subject_before(self, clause: Clause) -> str:
        """Return the text of the clause that has the subject of one that leaves it out: `and can't be cancelled`."""
        place = self.clauses.index(clause)
        before = self.clauses[place - 1] if place and not clause.words else clause
        return before.text if before.sentence == clause.sentence else ""

    def is_said(self, wanted: Figure, text: str) -> bool:
        """Return whether a text says a figure; of 10 km and 6.2 miles not by the one that the user has given."""
        twins = wanted in self.new and any(each is not wanted and is_same(each, wanted) for each in self.figures)
        said = (is_same(wanted, each) and not is_given(each, self.asked) for each in find_figures(text))
        return any(said) if twins else is_said(wanted, text)

    def rivals(self, wanted: Figure, text: str) -> list[Figure]:
        """Return the figures that a text has in the place of a wanted one."""
        found = rivals_of(wanted, text, [self.asked, self.part.text])
        return [each for each in found if not any(is_same(own, each) for own in self.figures)]

    def crosses(self, clause: Clause) -> bool:
        """Return whether a clause that has all of the part puts one of its things in the place of another."""
        told = all(self.is_said(each, clause.text) for each in self.figures)
        if not told or self.part.limited or not self.words or self.missing(clause) or self.turn_of(clause) < 0:
            return False
        if is_turned(self.part.text, clause.text) and is_turned(self.part.text, self.answer):
            return True
        own, said = ([word for word in each.words if word in self.part.names] for each in (self.part, clause))
        active = not _PASSIVE.search(f"{self.part.text} {clause.text}")
        active = active or (" than " in self.part.text and " than " in clause.text)
        return active and len({*own}) > 1 and own == said[::-1] and self.part.signs == clause.signs

    def stand_ins(self, wanted: Figure, clause: Clause) -> list[Figure]:
        """Return the figures that a clause with all else of the part has behind the same word: `to 71` for `to 17`."""
        if not self.is_full(clause) or self.turn_of(clause) <= 0:
            return []
        before = _word_before(wanted, self.part.text, least=2)
        found = rivals_of(wanted, clause.text, [self.part.text])
        return [each for each in found if before and before == _word_before(each, clause.text, least=2)]

    def is_miscounted(self, clause: Clause) -> bool:
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

    def is_counted_as(self, wanted: Figure, rival: Figure, clause: Clause) -> bool:
        """Return whether both are a number of the same things, or of the same thing: `hall 2`."""
        before = {_word_before(wanted, self.part.text), _word_before(rival, clause.text)}
        whole = all(each[:5] in wanted.labels for each in self.missing(clause))
        if whole and self.turn_of(clause) > 0 and self.words & {*clause.words}:
            return True
        return bool(wanted.labels & rival.labels) or (len(before) == 1 and "" not in before)

    def says_new_figures(self, clause: Clause) -> bool:
        """Return whether a clause says all new figures of the part, and nothing in its subject's place: `it's $12`."""
        text, part = clause.text, self.part
        if not all(self.is_said(each, text) for each in self.new):
            text += clause.tail
        odd = clause.limited or clause.negative or is_crossed(part.text, text)
        if odd or not all(self.is_said(each, text) for each in self.new) or not self._has_names(clause):
            return False
        late = _WAS.search(text) and _EARLIER.search(self.answer) and not _WAS.search(part.text)
        if late or self.turn_of(clause) <= 0:
            return False
        missing = self.missing(clause) - self._titles
        opposed = any(opponents_of(word) & {*clause.words} for word in missing)
        return not (opposed or self._stands_elsewhere(missing, clause) or self._names_another(missing, clause))

    def _names_another(self, missing: set[str], clause: Clause) -> bool:
        """Return whether a clause that has not all words of the part may speak of something else."""
        predicate = LINK.search(self.part.text)
        subject = self.part.text[: predicate.start()] if predicate else ""
        strange = {word for each in read_clauses(clause.text + clause.tail) for word in self.strange(each)}
        if missing - {topic_of(each.lower()) for each in WORD.findall(subject)} and strange:
            return True
        text = plain(clause.text)
        first = min((text.find(each.text) for each in find_figures(text)), default=-1)
        usual = {word for each in self.figures for word in implied_by(each.kind)}
        strange = (strange - usual) & nouns_of(text)
        before = strange & {topic_of(each.lower()) for each in NOUN.findall(text[: max(first, 0)])}
        return bool(missing and (before or (strange and missing & (self.known | self.part.names))))

    def _foreign_signs(self, clause: Clause) -> set[str]:
        """Return the predicates of a clause that the part has not; of one with all its words only negative ones."""
        foreign = clause.signs.keys() - self.kin - {"know", "exist"}
        if self.event or not self.words or self.missing(clause):
            return foreign
        return {name for name in foreign if -1 in clause.signs[name]}


def _has_happened(part: Clause, clause: Clause) -> bool:
    """Return whether a clause tells as past what the part says of now: `it arrived` for `it arrives`."""
    if _DUE.search(part.text) and _WAS_DONE.search(clause.text):
        return True
    if _ENDED.search(part.text) or _WAS.search(part.text):
        return False
    found = (PREDICATES.get(stem(each.lower())) for each in _HAPPENED.findall(clause.text))
    return any(each and each[0] in part.signs for each in found)


def _word_before(figure: Figure, text: str, least: int = 3) -> str:
    found = re.search(rf"([^\W\d_]{{{least},}}) {re.escape(figure.text)}(?!\w)", spell_figures(text))
    return (topic_of(found[1].lower()) or found[1].lower() * (least < 3)) if found else ""
