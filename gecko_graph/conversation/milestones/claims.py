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
from ...values.statements import Clause, concepts_of, is_place, read_clauses, split_sentences, topic_of

Kind: TypeAlias = Literal["says", "denies", "asks"]
Verdict: TypeAlias = Literal["holds", "broken", "unsure"]

_POLITE = re.compile(
    r"(?:(?:sure|of course|certainly|okay|ok|absolutely|with pleasure|hello|hi|thanks|great)\b\W*)+", re.I
)
_DONE = re.compile(r"\W*(?:all )?(?:done|sorted|set|taken care of|finished|completed)\b[.!]", re.I)
_YES_NO = re.compile(r"\W*(?:(yes|yep|yeah|correct|indeed)|no|nope)\b(?! (?:problem|worries|doubt))", re.I)
_POLAR = re.compile(r"(?:is|are|am|was|were|do|does|did|can|could|may|has|have|will)\b", re.I)
_MODAL = re.compile(r"\b(?:can|could|may|might|must|will|should|possible|allowed|is going to)\b", re.I)
_PAST = re.compile(r"\b(?:was|were|been)\b", re.I)
_OTHERS = re.compile(r"(?:and |but )?(?:the|your|all|my) (?:other|rest|remaining)", re.I)
_BEFORE = re.compile(r"\b(?:from|instead of|rather than|not|was|were|out of) (?:\w+ )?[$€£]?\d\S*", re.I)
_WAS = re.compile(r"\b(?:was|were|had)\b", re.I)
_NOW = re.compile(r"\b(?:now|new)\b", re.I)
_PRONOUN = re.compile(
    r"(?:and |so |but |as )?(?:it|they|this|that|these|both|which|she|he|those"
    r"|the (?:\w+ )?ones?)\b",
    re.I,
)
_SUBJECTLESS = re.compile(r"(?:\w+ed|kept|sent|left|put|set|made|lands?|leaves?)\b", re.I)
_SUBJECT = re.compile(r"(?:the|an?|any) ([a-z]+) (?:is|was|were|are|has|have|can|may|could|will|[a-z]+s)\b", re.I)
_SEVERAL = re.compile(r"\b(?:and|but|or|both|not|other|except)\b", re.I)
_WE = re.compile(r"\W*(?:i'm sorry,? |sorry,? |unfortunately,? )?(?:but )?(?:we|i)\b", re.I)
_BARE = re.compile(r"(?:and |so )?(?:it|that|this|there|you|they|he|she)\b", re.I)
_IT = re.compile(r"\b(?:it|its|them|they|that|this)\b", re.I)
_HIM = re.compile(r"\b(?:him|her|them|his|their)\b", re.I)
_UNABLE = re.compile(r"\b(?:can't|cannot|can not|couldn't|could not|unable|not able|no way|haven't|didn't)\b", re.I)
_PROMISE = re.compile(
    r"\b(?:(?:i|we)(?:'ll| will| can|'d| would| could|'m going to|'m about to)\b(?!'t| not)|let me|shall i|should i|if you"
    r"|will (?:\w+ )?be|would you like|do you want|it'll|tried to)\b",
    re.I,
)
_PREPARED = re.compile(r"\b(?:prepared|drafted|ready|found|looked|checked|see|can see)\b", re.I)
_TAKEN_BACK = re.compile(
    r"\b(?:that's (?:wrong|not (?:right|true|correct))|correction|scratch that|i was wrong|my mistake|on second thought"
    r"|i misspoke|i take (?:that|it) back)\b",
    re.I,
)
_OPEN_QUESTION = re.compile(r"\b(?:how|what|what's|when|when's|where|where's|which|who|who's)\b", re.I)
_TOKEN = re.compile(r"\w+")
_MARKS = [
    [re.compile(r"(?<![\w'])(?:[B-HJ-Z]|A(?! [a-z]))(?![\w'&])")],
    *([re.compile(rf"\b(?:{each})\b", re.I) for each in group.split("/")] for group in (
        "below|under|at most|less than/above|over|at least|more than", "before/after|past",
        "(?:per|an?|each|every) hour|hourly/(?:per|an?|each|every) (?:day|night)|daily|nightly"
        "/(?:per|an?|each|every) week|weekly/(?:per|an?|each|every) month|monthly"
        "/(?:per|an?|each|every) year|yearly|annual(?:ly)?",
    )),
]  # fmt: skip
"""Small words of which one cannot stand for another: letters, comparisons, periods."""
_CAPITAL = re.compile(r"(?<= )[A-Z]\w*")


_ACTIONS = [
    {"exist", "valid"}, {"add", "book", "order", "upload", "share", "install"}, {"invite"}, {"archive"}, {"merge"}, {"copy"},
    {"send", "share", "pay", "transfer", "refund", "exchange"}, {"rename"}, {"print"},
]  # fmt: skip
"""What can be done with things, those together of which one may be said for the other."""


class Judged(NamedTuple):
    """A verdict, with the sentence that decided it (empty where none did), and why."""

    verdict: Verdict
    sentence: str = ""
    reason: str = ""


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
        return _judge_question(claim, answer, " ".join(asked))
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
        self._stated = [each for each in self._clauses if each.mood in moods and not (each.future and self._event)]

    def read(self) -> _Read:
        """Return how the answer stands to the part, by the first rule that knows."""
        if _TAKEN_BACK.search(self._answer):
            return _Read("unsure", self._answer[:80], "something is taken back")
        rules = (
            self._by_clauses,
            self._by_figures,
            self._by_names,
            self._by_slot,
            self._by_other_event,
            self._by_yes_or_done,
            self._by_refusal,
            self._by_silence,
        )
        return next((found for rule in rules if (found := rule())), _Read())

    # clauses
    def _by_clauses(self) -> _Read | None:
        turns = [(turn, each) for each in self._stated if (turn := self._turn_in(each))]
        if not turns:
            return None
        turn, clause = next((pair for pair in turns if self._is_full(pair[1])), turns[0])
        signs = [(name, sign * turn) for name, signs in self._part.signs.items() for sign in signs]
        signs += [("done", turn)] if "done" not in self._part.signs else []
        others = [each for each in self._stated if any(-sign in each.signs.get(name, ()) for name, sign in signs)]
        others = [each for each in others if not (self._is_before(each, clause) or _OTHERS.match(each.text))]
        if any(other != turn for other, _ in turns) or any(
            each is not clause and self._is_near(each) for each in others
        ):
            return _Read("unsure", clause.text, "it is said and denied")
        return _Read("stated" if turn > 0 else "denied", clause.text, "" if turn > 0 else "the opposite is said")

    def _is_before(self, other: Clause, clause: Clause) -> bool:
        """Return whether a clause says what was so before: "It was off, so I turned it on"."""
        earlier = self._clauses.index(other) < self._clauses.index(clause)
        return earlier and bool(_WAS.search(other.text)) and not _WAS.search(clause.text)

    def _turn_in(self, clause: Clause) -> int:
        """Return 1 where a clause says the part, -1 for the opposite, 0 where it may be about other things."""
        turn = self._turn_of(clause)
        if not turn or (clause.limited and not self._part.limited) or self._is_crossed(clause):
            return 0
        whole = (self._is_full(clause) or self._is_carried(clause)) and self._has_figures(clause)
        about = whole or (turn < 0 and clause.negative and self._is_short(clause))
        return turn if about and self._has_names(clause) else 0

    def _is_full(self, clause: Clause) -> bool:
        """Return whether a clause has all words of the part, and one that says more than of what sort it is."""
        told = [
            each
            for each in self._figures
            if is_said(each, clause.text) and (each.kind != "number" or len(each.text) > 2)
        ]
        shared = self._words & {*clause.words} or (told and self._part.signs.keys() & clause.signs.keys())
        shared = shared or len(told) == len(self._figures) > 1
        return bool(shared) and not self._missing(clause)

    def _is_short(self, clause: Clause) -> bool:
        """Return whether a denial leaves out only what is known, and its figures: "It wasn't paid" is of any sum."""
        strange = self._strange(clause) | (self._missing(clause) - self._known - self._inherited(clause) - self._loose)
        rivals = [each for wanted in self._figures for each in rivals_of(wanted, clause.text, [self._part.text])]
        said = [each for each in self._stated if not each.negative and any(is_said(one, each.text) for one in self._figures)]
        plain = self._event or self._part.signs
        return bool(plain and self._touches(clause)) and not (strange or rivals or said)

    def _is_crossed(self, clause: Clause) -> bool:
        """Return whether the two differ in a small word: `from M to S` for `from S to M`, `above` for `below`."""
        (ends, starts), (others, begins) = _ends_of(self._part.text), _ends_of(clause.text)
        said = {each.lower() for each in _TOKEN.findall(self._part.text)}
        if (ends & begins) or (starts & others) or (ends and others and not ends & others and others & said):
            return True
        text = clause.text + clause.tail
        marks = ((_marks(self._part.text, each), _marks(text, each)) for each in _MARKS)
        return any(own and other and not own & other for own, other in marks)

    def _is_near(self, clause: Clause) -> bool:
        """Return whether a clause may be about the part's things: it shares a word with it, or has none of its own."""
        if any(rivals_of(wanted, clause.text, [self._part.text]) for wanted in self._figures):
            return False
        return bool(self._words & {*clause.words}) or not self._strange(clause)

    def _missing(self, clause: Clause) -> set[str]:
        return {word for word in self._words if word not in clause.words}

    def _strange(self, clause: Clause) -> set[str]:
        return {word for word in clause.words if word not in self._words and not is_place(word)} - self._known

    def _inherited(self, clause: Clause) -> set[str]:
        """Return the words of the clause before one that goes on about the same."""
        place = self._clauses.index(clause)
        before = self._clauses[place - 1] if place else None
        goes_on = _PRONOUN.match(clause.text) or _SUBJECTLESS.match(clause.text) or not clause.words
        follows = before and (goes_on or before.text.endswith(":"))
        return {*before.words} if before and follows else set()

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
        text, sentence = (
            clause.text + clause.tail,
            [each.text for each in self._clauses if each.sentence == clause.sentence],
        )
        for wanted in self._figures:
            said = is_said(wanted, text)
            around = self._answer if not said else text if self._is_full(clause) else " ".join(sentence)
            if any(not self._is_own(each) for each in rivals_of(wanted, around, [self._asked, self._part.text])):
                return False
            if not said and not (wanted not in self._new and len(self._requests) < 2):
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
        others = [
            each for each in self._stated if each not in (clause, before) and (each.signs or find_figures(each.text))
        ]
        if inherited & self._known and not inherited & self._words:  # `it` is something else of the request
            return False
        figures = [each for each in self._figures if is_said(each, clause.text + clause.tail)]
        titles = self._loose if figures or self._part.names & {*clause.words} else set()
        missing = self._missing(clause) - inherited - titles - self._subject_of(clause)
        known = self._known & clause.names if missing else self._known
        added = {word for word in clause.words if word not in self._words and not is_place(word)}
        if added - inherited - known or any(missing & {*each.words} for each in others):
            return False
        if missing - self._known:  # a bare answer: "It's $12."
            new = [each for each in figures if each.kind != "number" and each in self._new]
            return bool(new and _BARE.match(clause.text))
        new = [each for each in find_figures(clause.text) if not self._is_own(each) and not is_given(each, self._asked)]
        if missing and any(not is_said(each, self._part.text) for each in new):
            return False
        shared = self._words & {*clause.words} or not missing or _IT.search(clause.text) or not clause.words
        return bool(figures or (shared and self._touches(clause)))

    def _subject_of(self, clause: Clause) -> set[str]:
        """Return the part's subject where a clause says `we` for it, or what the user called it in a short request."""
        found = _SUBJECT.match(self._part.text)
        subject = {topic_of(found[1].lower())} if found else set()
        if not subject or self._part.names or self._part.signs.keys() - clause.signs.keys():
            return set()
        told = len(self._requests) == 1 and not _SEVERAL.search(self._asked) and {*clause.words} & self._known
        return subject if told or _WE.match(clause.text) else set()

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
        turned = (part.negated ^ clause.negated) & self._words & {*clause.words}
        late = _WAS.search(clause.text) and not (part.signs or _WAS.search(part.text))
        return 0 if turn > 0 and (turned or late) else turn

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
            if other := self._find_other(wanted):
                return _Read("absent", other.text, f"{wanted.text} was to be said")
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
        """Return the figures that a text has in the place of a wanted one, but for what was so before."""
        text = _BEFORE.sub(" ", spell_figures(text))
        return [each for each in rivals_of(wanted, text, [self._asked]) if not self._is_own(each)]

    def _find_other(self, wanted: Figure) -> Clause | None:
        """Return the only clause that says the part, with another figure in the place of the wanted one."""
        told = [each for each in self._stated if not self._missing(each) and self._turn_of(each) > 0 and each.signs]
        if not self._words or len(told) != 1 or is_said(wanted, told[0].text + told[0].tail) or told[0].limited:
            return None
        elsewhere = [each for each in self._clauses if is_said(wanted, each.text)]
        if any(not each.signs or self._turn_of(each) > 0 for each in elsewhere):
            return None
        return told[0] if self._rivals(wanted, told[0].text) else None

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
            others = [each for each in rivals_of(wanted, sentence, [self._asked]) if not self._is_own(each)]
            for one, other in ((one, other) for one in own for other in others):
                pair = rf"{re.escape(one.text)}\W*(?:\w+\W+){{0,3}}?or {re.escape(other.text)}"
                if re.search(pair, sentence):
                    return sentence
        return ""

    def _by_names(self) -> _Read | None:
        """Find that a name is not said which the user has not given either, or a clause that says another one."""
        words = {word for each in self._clauses for word in each.words}
        new = {each for each in self._part.names - self._known if not any(each[:5] == word[:5] for word in words)}
        told = [each for each in self._stated if each.names - self._words - self._known and self._touches(each)]
        if new and told and not _HIM.search(self._answer):
            return _Read("absent", told[0].text, f"{' '.join(sorted(new))} was to be said")
        names = self._part.names
        if not names or names & words or _HIM.search(self._answer):
            return None
        for clause in self._stated:
            others, shared = clause.names & self._strange(clause), (self._words - names) & {*clause.words}
            if others and shared and not self._missing(clause) - names and self._turn_of(clause) > 0:
                return _Read("absent", clause.text, f"{' '.join(sorted(names))} was to be said")
        return None

    # without a clause of its own
    def _by_slot(self) -> _Read | None:
        """Read a clause as the answer to the user's question: it says what was asked, and speaks of nothing else."""
        asked = any(each.mood == "asked" and _OPEN_QUESTION.search(each.text) for each in self._requests)
        new = [each for each in self._new if each.kind != "number" or (each.value or 0) > 12]
        if not asked or not new or self._part.negative:
            return None
        for clause in self._clauses:
            text = clause.text + clause.tail
            if clause.limited or clause.negative or not (clause in self._stated or (clause.mild and not self._event)):
                continue
            if not all(is_said(each, text) for each in self._new) or not self._part.names <= {*clause.words} | self._known:
                continue
            rivals = [each for one in new for each in self._rivals(one, self._answer)]
            foreign = clause.signs.keys() - self._part.signs.keys() - {"know", "exist"}
            turned = self._turn_of(clause) <= 0
            missing = self._missing(clause) - self._known
            if self._part.acts & missing and {each.kind for each in new} & {"time", "date", "weekday", "number", "code"}:
                continue
            after = missing & {*_words_after(new[-1], self._part.text)}
            strange = {word for each in read_clauses(text) for word in self._strange(each) - each.acts}
            if rivals or foreign or turned or after or strange or (missing and new[0].kind == "number"):
                continue
            if not self._has_names(clause) or self._is_crossed(clause):
                continue
            return _Read("stated", clause.text)
        return None

    def _by_other_event(self) -> _Read | None:
        """Find that something else was done with the part's things, or with all but one that it names."""
        own = self._part.signs.keys()
        if self._part.negative or any(own & concepts_of(each.text) for each in self._stated if not each.negative):
            left = [each for each in self._clauses if self._part.names & each.negated and not each.signs]
            return _Read("absent", left[0].text, "it is said of others only") if left else None
        near = {other for group in _ACTIONS if own & group for other in group}
        plain = all(each.signs or not each.words for each in self._stated)
        for clause in self._stated if near and self._event and plain else ():
            done = {name for name in clause.signs if any(name in group for group in _ACTIONS)} - near
            whole = not self._missing(clause) - self._loose - self._known and self._has_names(clause)
            if done and whole and self._words & {*clause.words} and not clause.negative and not clause.limited:
                return _Read("absent", clause.text, "something else was done")
        return None

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
        promised = [each for each in self._clauses if _PROMISE.search(each.text) and (each.mood != "stated" or each.future)]
        offered = [each for each in promised if self._names_event(each)]
        done = [each for each in self._stated if not each.negative and self._names_event(each)]
        told = [each for each in self._stated if not each.negative and (each.words or each.signs) and each.mood == "stated"]
        offers = offered if all(_PREPARED.search(each.text) for each in told) else []
        if (self._event or self._part.signs) and offers and not done:
            return _Read("absent", offered[0].text, "it is only promised or offered")
        rest = [each for each in split_sentences(self._answer) if not (each.endswith("?") or _OFFER.search(each))]
        if not self._stated and not near and all(map(_POLITE.fullmatch, rest)):
            return _Read("absent", self._answer[:80], "nothing is stated")
        return None

    def _names_event(self, clause: Clause) -> bool:
        """Return whether a clause names the part's predicate, and nothing that is strange."""
        named = self._part.signs.keys() & concepts_of(clause.text)
        named = named or (not self._part.signs and self._words & {*clause.words} - self._known)
        return bool(named) and bool(self._words & {*clause.words} or not self._strange(clause) - clause.acts)


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


def _marks(text: str, sorts: Sequence[re.Pattern[str]]) -> set[int | str]:
    return {found[0] if len(sorts) == 1 else number for number, each in enumerate(sorts) for found in each.finditer(text)}


def _ends_of(text: str) -> tuple[set[str], set[str]]:
    """Return the words after `to`, and those after `from`."""
    ends = {found[1].lower() for found in re.finditer(r"\b(?:to|into) \W?(\w+)", text)}
    return ends, {found[1].lower() for found in re.finditer(r"\bfrom \W?(\w+)", text)}


# questions -----------------------------------------------------------------------------------------------------------

_SLOTS = {
    "birth": r"born|birth\w*",
    "duration": r"how long|how much time|length|duration|how many (?:minutes|hours|days|weeks|nights)",
    "time": r"when|(?:what|which) (?:time|day|date|hour|month|weekday)|(?:the|a|your) (?:\w+ )?(?:time|day|date|hour)",
    "amount": r"how (?:much|many)|amount|number of|quantity|(?:what|which) sum",
    "name": r"who|whose|whom|(?:full |last |first )?name",
    "place": r"where|address|destination|location|(?:what|which) (?:place|city)",
    "reason": r"why|reason|what for",
    "content": r"what (?:[\w']+ ){0,6}(?:say|tell|write)|what(?:'s| is) the (?:text|message)|content|wording",
}
_SLOT = {name: re.compile(rf"\b(?:{pattern})\b", re.I) for name, pattern in _SLOTS.items()}
_OPEN_SLOTS = ("reason", "birth", "content")
"""Slots that are asked for in other words than the claim's: what was done wrong for the reason of a return."""
_COUNTABLE = {"time", "should", "would", "do", "are", "will", "of", "is", "shall", "can", "money", "minutes", "hours"}
_SLOT_WORDS = re.compile(
    r"\b(?:how|what|which|when|who|whose|why|where|long|much|many|amount|number of|length|duration|time|date|reason"
    r"|lasts?|name|say|tell|write|plan(?:ning)?)\b",
    re.I,
)
_FOCUS = re.compile(
    r"\b(?:which|what) (?:of (?:the|these|those) )?(?:two |three |the |\d+ )?([\w-]+)|^whether (?:to |the )?([\w-]+)"
    r"|^the ([\w' -]+?)(?: (?:of|to|for)\b|$)",
    re.I,
)
_REQUEST = re.compile(
    r"\b(?:please (?:tell|send|give|provide|share|specify)|let me know (?!if you)|tell me"
    r"|i(?:'ll| just| still| also)? need)\b",
    re.I,
)
_MAY_ASK = re.compile(
    r"\b(?:please|need|let me know|give me|send me|specify|provide|confirm|choose|waiting for|to know"
    r"|just say|missing|wonder)\b",
    re.I,
)
_OFFER = re.compile(r"\b(?:anything else|something else|help (?:you )?with|happy to|feel free)\b", re.I)
_DIRECT = re.compile(r"\b(?:you|your|i|we|us|please|shall|should)\b", re.I)
_WHICH = re.compile(r"\bwhich (?!time|day|date|month|week|hour|sum|amount|evening|morning|afternoon|slot|year|quantity|is|are)[a-z]+\b", re.I)
_RHETORICAL = re.compile(r"^\W*(?:did|didn't|do|don't|remember|guess)\b", re.I)


def _judge_question(claim: str, answer: str, asked: str) -> Judged:
    asking = [each for each in split_sentences(answer) if each.rstrip("\"') ").endswith("?") or _REQUEST.search(each)]
    if not asking:
        return Judged("unsure") if _MAY_ASK.search(answer) else Judged("broken", "", "nothing is asked")
    if all(_OFFER.search(each) for each in asking):
        return Judged("broken", asking[0], "it only offers more help")
    last = split_sentences(answer)[-1]
    direct = [each for each in asking if (each is asking[-1] and each == last) or _DIRECT.search(each)]
    direct = [each for each in direct if not _RHETORICAL.match(each)]
    if found := next((each for each in direct if _asks_for(claim, each, asked)), None):
        return Judged("holds", found)
    slot, other = _slot_of(claim), _slot_of(asking[0])
    alike = {slot, other} <= {"birth", "time", "duration"} or {slot, other} <= {"amount", "name", "place", "content"}
    if len(asking) == 1 and slot and other and not alike and not _SLOT[slot].search(asking[0]):
        return Judged("broken", asking[0], "something else is asked")
    which = _WHICH.search(asking[0])
    if len(asking) == 1 and slot in ("time", "duration", "amount") and which and not _SLOT[slot].search(asking[0]):
        return Judged("broken", asking[0], "something else is asked")
    return Judged("unsure", asking[0])


def _slot_of(text: str) -> str:
    return next((name for name, pattern in _SLOT.items() if pattern.search(text)), "")


def _asks_for(claim: str, sentence: str, asked: str) -> bool:
    """Return whether a sentence asks for what a claim names, and for nothing that is strange beside it."""
    slot, said = _slot_of(claim), _topics(_SLOT_WORDS.sub(" ", sentence))
    wanted = _topics(_SLOT_WORDS.sub(" ", claim))
    acts = {word for each in read_clauses(sentence) for word in each.acts}
    others = concepts_of(_SLOT_WORDS.sub(" ", sentence)) - concepts_of(asked)
    alike = concepts_of(_SLOT_WORDS.sub(" ", claim)) & others or wanted <= _topics(asked) | said
    acts = acts if alike and not (others - concepts_of(claim)) else set()
    if slot:
        strange = any(not _is_among(word, wanted | _topics(asked)) for word in said - acts)
        missing = any(not _is_among(word, said) for word in wanted)
        counted = {*re.findall(r"how (?:many|much) (\w+)", sentence.lower())} - {
            *re.findall(r"\w+", f"{claim} {asked}".lower())
        }
        if slot != _slot_of(sentence) or counted - _COUNTABLE or (missing and strange and slot not in _OPEN_SLOTS):
            return False
        return not (missing and slot in ("name", "place")) or all(
            _is_among(word, said | _topics(asked)) for word in wanted
        )
    if re.search(r"\bwhich (?:ones?|of (?:them|these|those))\b", sentence, re.I) and claim.lower().startswith("which"):
        return all(_is_among(word, said | _topics(asked)) for word in wanted)
    focus = _FOCUS.search(claim)
    head = _topics(next(filter(None, focus.groups()))) if focus else wanted
    return bool(head) and all(_is_among(word, said | _topics(sentence)) for word in head)


def _is_among(word: str, words: set[str]) -> bool:
    return word in words or any(each[:5] == word[:5] and len(word) > 4 for each in words)


def _topics(text: str) -> set[str]:
    return {topic_of(word.lower()) for word in re.findall(r"[^\W\d_](?:[\w'.-]*[^\W_])?", text)} - {""}
