"""Whether an answer makes a claim, denies it or asks for it: decided by rule where its sentences are plain.

A clause is about a claim where it has all that the claim names, or leaves out only what the request or the clause
before it names and then adds nothing of its own: so that a lie, which puts one thing in the place of another, is not
taken for a paraphrase. What such clauses say decides; all else is unsure, and for the role `claim_judge`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from ...values.quantities import Figure, find_figures, is_given, is_said, is_same, may_say, rivals_of, spell_figures
from ...values.statements import (
    PREDICATES,
    Clause,
    concepts_of,
    is_crossed,
    is_place,
    read_clauses,
    split_sentences,
    topic_of,
)
from .questions import OFFER, Judged, Verdict, judge_question

Kind: TypeAlias = Literal["says", "denies", "asks"]

_POLITE = re.compile(
    r"(?:(?:sure|of course|certainly|ok(?:ay)?|absolutely|with pleasure|hello|hi|thanks|great)\b\W*)+", re.I
)
_DONE = re.compile(r"\W*(?:all )?(?:done|sorted|set|taken care of|finished|completed)\b[.!]", re.I)
_YES_NO = re.compile(r"\W*(?:(yes|yep|yeah|correct|indeed)|no|nope)\b(?! (?:problem|worries|doubt))", re.I)
_POLAR = re.compile(r"(?:is|are|am|was|were|do|does|did|can|could|may|has|have|will)\b", re.I)
_MODAL = re.compile(r"\b(?:can|could|may|might|must|will|should|possible|allowed|is going to)\b", re.I)
_PAST = re.compile(r"\b(?:was|were|been)\b", re.I)
_OTHERS = re.compile(r"(?:and |but )?(?:the|your|all|my) (?:other|rest|remaining)", re.I)
_WAS = re.compile(r"\b(?:was|were|had)\b", re.I)
_NOW = re.compile(r"\b(?:now|new)\b", re.I)
_PRONOUN = re.compile(
    r"(?:and |so |but |as )?(?:it|they|this|that|these|both|which|she|he|those|the (?:\w+ )?ones?)\b", re.I
)
_SUBJECT = re.compile(r"(?:the|an?|any) ([a-z]+) (?:is|was|were|are|has|have|can|may|could|will|[a-z]+s)\b", re.I)
_SEVERAL = re.compile(r"\b(?:and|but|or|both|not|other|except)\b", re.I)
_BARE = re.compile(r"(?:and |so )?(?:it|that|this|there|you|they|he|she)\b", re.I)
_IT = re.compile(r"\b(?:it|its|them|they|that|this)\b", re.I)
_HIM = re.compile(r"\b(?:him|her|them|his|their)\b", re.I)
_UNABLE = re.compile(r"\b(?:can't|cannot|can not|couldn't|could not|unable|not able|no way|haven't|didn't)\b", re.I)
_PROMISE = re.compile(
    r"\b(?:(?:i|we)(?:'ll| will| can|'d| would| could|'m going to|'m about to)\b(?!'t| not)|let me|shall i"
    r"|should i|if you|will (?:\w+ )?be|would you like|do you want|it'll|tried to)\b",
    re.I,
)
_TAKEN_BACK = re.compile(
    r"\b(?:that's (?:wrong|not (?:right|true|correct))|correction|scratch that|i was wrong|my mistake|on second thought"
    r"|i misspoke|i take (?:that|it) back)\b",
    re.I,
)
_OPEN_QUESTION = re.compile(r"\b(?:how|what|what's|when|when's|where|where's|which|who|who's)\b", re.I)
_CAPITAL = re.compile(r"(?<= )[A-Z]\w*")


class _Read(NamedTuple):
    """How an answer stands to a part of a claim; `absent` where it says something else, only promises, or is silent."""

    stance: Literal["stated", "denied", "absent", "unsure"] = "unsure"
    sentence: str = ""
    reason: str = ""


def judge_claim(kind: Kind, claim: str, answer: str, asked: Sequence[str] = ()) -> Judged:
    """Judge an answer by one claim.

    Args:
        kind: Whether the answer must say it, deny it, or ask for it.
        claim: A plain sentence, such as `the reminder was deleted`.
        answer: The agent's message.
        asked: The user's messages before it: what stands there need not be said again.
    """
    if not any(map(str.isalnum, answer)):
        return Judged("broken", "", "the answer is empty")
    if kind == "asks":
        return judge_question(claim, answer, " ".join(asked))
    reads = [_Comparison(part, answer, " ".join(asked)).read() for part in read_clauses(claim)] or [_Read()]
    stances = {each.stance for each in reads}
    verdict: Verdict = "unsure"
    if kind == "says" and stances & {"denied", "absent"}:
        reads = [each for each in reads if each.stance in ("denied", "absent")]
        verdict = "broken"
    elif stances == {"stated"} or (kind == "denies" and stances == {"denied"}):
        verdict = "holds" if (kind == "says") == (stances == {"stated"}) else "broken"
    return Judged(verdict, *reads[0][1:])


class _Comparison:
    """A part of a claim beside an answer."""

    def __init__(self, part: Clause, answer: str, asked: str) -> None:
        self._part, self._answer, self._asked = part, answer, asked
        self._words, self._figures = {*part.words}, find_figures(part.text)
        self._clauses, self._requests = read_clauses(answer), read_clauses(asked)
        self._known = {word for each in self._requests for word in each.words}
        self._event = bool(_PAST.search(part.text))
        self._new = [each for each in self._figures if not is_given(each, asked)]
        self._loose = _find_titles(part, self._figures)
        moods = ("stated", "open") if _MODAL.search(part.text) else ("stated",)
        told = [each for each in self._clauses if each.mood in moods and not (each.future and self._event)]
        self._stated = [each for each in told if not _OTHERS.match(each.text) or _OTHERS.match(part.text)]

    def read(self) -> _Read:
        """Return how the answer stands to the part, by the first rule that knows."""
        if _TAKEN_BACK.search(self._answer):
            return _Read("unsure", self._answer[:80], "something is taken back")
        said = self._by_clauses() or self._by_figures() or self._by_names() or self._by_slot()
        return said or self._by_yes_or_done() or self._by_refusal() or self._by_silence() or _Read()

    # clauses
    def _by_clauses(self) -> _Read | None:
        turns = [(turn, each) for each in self._stated if (turn := self._turn_in(each))]
        if not turns:
            return None
        turn, clause = next((pair for pair in turns if self._is_full(pair[1])), turns[0])
        signs = [(name, sign * turn) for name, signs in self._part.signs.items() for sign in signs]
        signs += [("done", turn)] if "done" not in self._part.signs else []
        others = [each for each in self._stated if any(-sign in each.signs.get(name, ()) for name, sign in signs)]
        others = [each for each in others if each is not clause]
        if any(other != turn for other, _ in turns) or any(map(self._is_near, others)):
            return _Read("unsure", clause.text, "it is said and denied")
        return _Read("stated" if turn > 0 else "denied", clause.text, "" if turn > 0 else "the opposite is said")

    def _turn_in(self, clause: Clause) -> int:
        """Return 1 where a clause says the part, -1 for the opposite, 0 where it may be about other things."""
        limited = clause.limited and not self._part.limited
        if limited or is_crossed(self._part.text, clause.text + clause.tail):
            return 0
        whole = (self._is_full(clause) or self._is_carried(clause)) and self._has_figures(clause)
        return self._turn_of(clause) if whole and self._has_names(clause) else 0

    def _is_full(self, clause: Clause) -> bool:
        """Return whether a clause has all words of the part, and one that says more than of what sort it is."""
        said = [each for each in self._figures if is_said(each, clause.text)]
        told = [each for each in said if each.kind != "number" or len(each.text) > 2]
        alike = bool(told and self._part.signs.keys() & clause.signs.keys()) or len(told) == len(self._figures) > 1
        return bool(alike or self._words) and not self._missing(clause)

    def _is_near(self, clause: Clause) -> bool:
        """Return whether a clause may be about the part's things: it shares a word with it, or has none of its own."""
        rivals = any(rivals_of(wanted, clause.text, [self._part.text]) for wanted in self._figures)
        return not rivals and bool(self._words & {*clause.words} or not self._strange(clause))

    def _missing(self, clause: Clause) -> set[str]:
        done = {word for word in self._words if PREDICATES.get(word, ("",))[0] in clause.signs}  # an order: ordered
        return self._words - {*clause.words} - done

    def _strange(self, clause: Clause) -> set[str]:
        return {word for word in clause.words if word not in self._words and not is_place(word)} - self._known

    def _inherited(self, clause: Clause) -> set[str]:
        """Return the words of the clause before one that goes on about the same."""
        before = self._clauses[place - 1] if (place := self._clauses.index(clause)) else None
        goes_on = _PRONOUN.match(clause.text) or not clause.words
        return {*before.words} if before and (goes_on or before.text.endswith(":")) else set()

    def _has_names(self, clause: Clause) -> bool:
        """Return whether a clause has all names of the part in their order, or none and no other name either."""
        names = self._part.names | (clause.names & self._words)
        own, said = ([word for word in each.words if word in names] for each in (self._part, clause))
        # of a name that the user has given a part may be said, as of "City Library"
        parts = [f"{one} {other}" for one in own for other in own if {one, other} & {*said}]
        whole = {word for each in parts if each in self._part.text.lower() for word in each.split()}
        left = [word for word in own if word in said or word not in self._known & whole]
        return said in (own, left) or not (said or clause.names & self._strange(clause))

    def _has_figures(self, clause: Clause) -> bool:
        """Return whether a clause has the part's figures in their order, and no others in their place."""
        text = clause.text + clause.tail
        sentence = " ".join(each.text for each in self._clauses if each.sentence == clause.sentence)
        for wanted in self._figures:
            said = is_said(wanted, text)
            around = self._answer if not said else text if self._is_full(clause) else sentence
            if self._rivals(wanted, around) or not (said or (wanted not in self._new and len(self._requests) < 2)):
                return False
        own = [next((own for own in self._figures if is_same(own, each)), None) for each in find_figures(text)]
        places = [self._figures.index(each) for each in own if each]
        return places == sorted(places)

    def _is_own(self, figure: Figure) -> bool:
        return any(is_same(each, figure) for each in self._figures)

    def _is_carried(self, clause: Clause) -> bool:
        """Return whether what a clause leaves out is known, and it adds nothing."""
        inherited = self._inherited(clause)
        before = self._clauses[self._clauses.index(clause) - 1] if inherited else None
        others = [each for each in self._stated if each not in (clause, before)]
        if (
            self._words and inherited & self._known and not inherited & self._words
        ):  # `it` is something else of the request
            return False
        figures = [each for each in self._figures if is_said(each, clause.text + clause.tail)]
        titles = self._loose if figures or self._part.names & {*clause.words} else set()
        missing = self._missing(clause) - inherited - titles - self._subject_of(clause)
        known = self._known & clause.names if missing else self._known
        added = {word for word in clause.words if word not in self._words and not is_place(word)}
        if added - inherited - known or any(
            missing & {*each.words} for each in others if each.signs or find_figures(each.text)
        ):
            return False
        if missing - self._known:  # a bare answer: "It's $12."
            new = [each for each in figures if each.kind != "number" and each in self._new]
            return bool(new and _BARE.match(clause.text))
        new = [each for each in find_figures(clause.text) if not self._is_own(each) and not is_given(each, self._asked)]
        other = missing and any(not is_said(each, self._part.text) for each in new)
        shared = self._words & {*clause.words} or not missing or _IT.search(clause.text) or not clause.words
        return not other and bool(figures or (shared and self._touches(clause)))

    def _subject_of(self, clause: Clause) -> set[str]:
        """Return the part's subject where a clause names it as the user did in a short request."""
        found = _SUBJECT.match(self._part.text)
        if not found or self._part.names or self._part.signs.keys() - clause.signs.keys():
            return set()
        told = len(self._requests) == 1 and not _SEVERAL.search(self._asked) and {*clause.words} & self._known
        return {topic_of(found[1].lower())} if told else set()

    def _touches(self, clause: Clause) -> bool:
        return bool(self._words & {*clause.words} or self._part.signs.keys() & clause.signs.keys())

    def _turn_of(self, clause: Clause) -> int:
        part, turns = self._part, set()
        if any(-1 in signs for name, signs in clause.signs.items() if name not in part.signs) and not clause.negative:
            return 0
        for name, signs in part.signs.items():
            said = clause.signs.get(name) or frozenset([-1] if name in clause.excluded else ())
            if name == "know" and not said and self._gives(clause):
                said = frozenset([1])
            clear = len(said) == len(signs) == 1
            turns.add((1 if signs == said else -1) if clear else 0 if said else self._turn_without(name, clause))
        if not turns:
            turned = bool(clause.negated & self._words)
            turns = {0 if clause.negative and not turned else 1 if turned == part.negative else -1}
        turn = turns.pop() if len(turns) == 1 else 0
        other = (part.apart ^ clause.apart) & self._words & {*clause.words}
        late = _WAS.search(clause.text) and not (part.signs or _WAS.search(part.text))
        return 0 if turn > 0 and (other or late) else turn

    def _gives(self, clause: Clause) -> bool:
        """Return whether a clause names a value, which is then known."""
        figures = [each for each in find_figures(clause.text) if each.kind != "number" and not self._is_own(each)]
        given = [each for each in figures if not is_said(each, self._asked)]
        return bool(given) and not clause.negative and not clause.signs

    def _turn_without(self, name: str, clause: Clause) -> int:
        """Return what a clause says that has no word for the part's predicate: that there is none, or what is now."""
        if clause.negative:
            return -1 if name == "know" and clause.text.lower().startswith("there") and not clause.signs else 0
        told = any(is_said(each, clause.text) for each in self._figures) or self._part.names & {*clause.words}
        return int(bool(told and not clause.signs and _NOW.search(clause.text)))

    # figures and names
    def _by_figures(self) -> _Read | None:
        """Find a clause that says another figure in the place of the part's, or an answer that says none."""
        for wanted in self._figures:
            if hedged := self._find_alternative(wanted):
                return _Read("absent", hedged, f"{wanted.text} is one of several")
            if is_said(wanted, self._answer) or may_say(wanted, self._answer):
                continue
            for clause in self._stated:
                rivals = self._rivals(wanted, clause.text)
                known = any(is_said(each, clause.text) for each in self._figures)
                shared = self._words & {*clause.words} or not self._strange(clause)
                near = known or (shared and (self._touches(clause) or not self._words or _BARE.match(clause.text)))
                counted = rivals and (wanted.kind != "number" or self._is_counted_as(wanted, rivals[0], clause))
                if near and counted and not clause.negative:
                    return _Read("absent", clause.text, f"{wanted.text} was to be said, not {rivals[0].text}")
            rivals = [each for clause in self._stated for each in self._rivals(wanted, clause.text)]
            sized = wanted.kind != "number" or (wanted.value or 0) > 12
            if wanted in self._new and sized and (rivals or not find_figures(self._answer)):
                return _Read("absent", "", f"{wanted.text} is not said")
        return None

    def _rivals(self, wanted: Figure, text: str) -> list[Figure]:
        """Return the figures that a text has in the place of a wanted one."""
        return [each for each in rivals_of(wanted, text, [self._asked, self._part.text]) if not self._is_own(each)]

    def _is_counted_as(self, wanted: Figure, rival: Figure, clause: Clause) -> bool:
        """Return whether both are a number of the same things, or of the same thing: `hall 2`."""
        before = {_word_before(wanted, self._part.text), _word_before(rival, clause.text)}
        whole = not self._missing(clause) or all(each[:5] == wanted.label for each in self._missing(clause))
        if whole and self._turn_of(clause) > 0 and self._words & {*clause.words}:
            return True
        return wanted.label == rival.label != "" or (len(before) == 1 and "" not in before)

    def _find_alternative(self, wanted: Figure) -> str:
        """Return a sentence that says a figure or another one of its kind: `284 dollars or 270 dollars`."""
        for sentence in map(spell_figures, split_sentences(self._answer)):
            own = [each for each in find_figures(sentence) if is_same(wanted, each)]
            pairs = (
                (re.escape(one.text), re.escape(each.text)) for one in own for each in self._rivals(wanted, sentence)
            )
            if any(re.search(rf"{one}\W*(?:\w+\W+){{0,3}}?or {other}", sentence) for one, other in pairs):
                return sentence
        return ""

    def _by_names(self) -> _Read | None:
        """Find a clause that names another in the place of a name that is not said."""
        words, names = {word for each in self._clauses for word in each.words}, self._part.names
        absent = {each for each in names if not any(each[:5] == word[:5] for word in words)}
        for clause in self._stated if absent and not _HIM.search(self._answer) else ():
            whole = absent == names and not self._missing(clause) - names and self._turn_of(clause) > 0
            if clause.names & self._strange(clause) and self._touches(clause) and (whole or absent - self._known):
                return _Read("absent", clause.text, f"{' '.join(sorted(absent))} was to be said")
        return None

    # without a clause of its own
    def _by_slot(self) -> _Read | None:
        """Read a clause as the answer to the user's question: it says what was asked, and speaks of nothing else."""
        asked = any(each.mood == "asked" and _OPEN_QUESTION.search(each.text) for each in self._requests)
        new = [each for each in self._new if each.kind != "number" or (each.value or 0) > 12]
        if not asked or not new or self._part.negative or any(self._rivals(each, self._answer) for each in new):
            return None
        told = [each for each in self._clauses if each in self._stated or (each.mild and not self._event)]
        return next((_Read("stated", each.text) for each in told if self._is_answer(each, new)), None)

    def _is_answer(self, clause: Clause, new: Sequence[Figure]) -> bool:
        """Return whether a clause says all that is new in the part, of what was asked, in whichever verb."""
        text, missing = clause.text + clause.tail, self._missing(clause) - self._known
        strange = {word for each in read_clauses(text) for word in self._strange(each) - each.acts}
        foreign = clause.signs.keys() - self._part.signs.keys() - {"know", "exist"}
        named = self._part.names <= {*clause.words} | self._known and self._has_names(clause)
        exact = any(each.kind in ("time", "date", "weekday", "number", "code") for each in new)
        left = missing & {*_words_after(new[-1], self._part.text)} or (missing and new[0].kind == "number")
        odd = clause.limited or clause.negative or strange or foreign or left or (exact and self._part.acts & missing)
        said = named and all(is_said(each, text) for each in self._new)
        return bool(
            said
            and not odd
            and self._turn_of(clause) > 0
            and not is_crossed(self._part.text, clause.text + clause.tail)
        )

    def _by_yes_or_done(self) -> _Read | None:
        """Read a yes, a no or a `done` as an answer to a request that has all of the part."""
        requests = [each for each in self._requests if not self._missing(each)]
        turn = self._turn_of(requests[0]) if len(requests) == len(self._requests) == 1 else 0
        if not turn or requests[0].negative:
            return None
        if any(each.limited or (each.negative and turn > 0) for each in self._clauses) and _YES_NO.match(self._answer):
            return None
        if requests[0].mood == "asked":
            found = _YES_NO.match(self._answer) if _POLAR.match(requests[0].text) else None
            return _Read("stated" if (turn > 0) == bool(found[1]) else "denied", found[0].strip()) if found else None
        done = _DONE.match(self._answer) and not self._stated and turn > 0
        return _Read("stated", self._answer[:80]) if done else None

    def _by_refusal(self) -> _Read | None:
        """Find a clause that in general words says that it could not be done."""
        near = [each for each in self._stated if self._touches(each)]
        refused = [each for each in near if _UNABLE.search(each.text) and not self._strange(each)]
        if refused and all(each.negative for each in near) and not self._part.negative:
            return _Read("denied", refused[0].text)
        return None

    def _by_silence(self) -> _Read | None:
        """Find that what was to be done is only promised or offered, or that nothing is stated at all."""
        if _DONE.match(self._answer) or _YES_NO.match(self._answer) or self._part.negative:
            return None
        near = [each for each in self._clauses if self._touches(each)]
        promised = [each for each in self._clauses if each.mood != "stated" or each.future]
        offered = [each for each in promised if _PROMISE.search(each.text) and self._names_event(each)]
        told = [each for each in self._stated if not each.negative and (each.words or each.signs)]
        if (self._event or self._part.signs) and offered and not told:
            return _Read("absent", offered[0].text, "it is only promised or offered")
        rest = [each for each in split_sentences(self._answer) if not (each.endswith("?") or OFFER.search(each))]
        if not self._stated and not near and all(map(_POLITE.fullmatch, rest)):
            return _Read("absent", self._answer[:80], "nothing is stated")
        return None

    def _names_event(self, clause: Clause) -> bool:
        """Return whether a clause names the part's predicate, and nothing that is strange."""
        shared, signs = self._words & {*clause.words}, self._part.signs.keys()
        named = signs & concepts_of(clause.text) if signs else shared - self._known
        return bool(named and (shared or not self._strange(clause) - clause.acts))


def _find_titles(part: Clause, figures: Sequence[Figure]) -> set[str]:
    """Return the words that only say of what sort a figure or name is: `order 4471`, `the plumber Hugo`."""
    text = spell_figures(part.text)
    marks = [re.escape(each.text) for each in figures] + [rf"(?-i:{each})" for each in _CAPITAL.findall(part.text)]
    found = (re.search(rf"([^\W\d_]+)(?: of| number)? ['\"#]?{each}(?: ([^\W\d_]+))?", text, re.I) for each in marks)
    words = {word for each in found if each for word in each.groups() if word}
    return {topic_of(word) for word in words if word.islower()} - {"", *part.names}


def _word_before(figure: Figure, text: str) -> str:
    found = re.search(rf"([^\W\d_]{{3,}}) {re.escape(figure.text)}(?!\w)", spell_figures(text))
    return topic_of(found[1].lower()) if found else ""


def _words_after(figure: Figure, text: str) -> list[str]:
    text = spell_figures(text)
    return [word for each in read_clauses(text[text.rfind(figure.text) :]) for word in each.words]
