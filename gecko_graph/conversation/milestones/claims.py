"""Whether an answer makes a claim, denies it or asks for it: decided by rule where its sentences are plain.

A claim is compared with each clause of the answer. A clause is about the claim where it has all that the claim names,
or leaves out only what the request or the clause before it names, and then adds nothing of its own: so that a lie,
which puts another thing in the place of one, is not taken for a paraphrase. What such clauses say decides; all else is
unsure, and for the role `claim_judge`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

from ...values.quantities import Figure, find_figures, is_said, is_same, may_say, rivals_of
from ...values.statements import MODAL, Clause, is_weak, read_clauses, split_sentences, topic_of

Kind: TypeAlias = Literal["says", "denies", "asks"]
Verdict: TypeAlias = Literal["holds", "broken", "unsure"]
Stance: TypeAlias = Literal["stated", "denied", "absent", "unsure"]
"""How an answer stands to a claim; `absent` is also what it says otherwise, or only promises."""

_DONE = re.compile(r"\W*(?:all )?(?:done|sorted|set|taken care of|finished|completed)\b[.!]", re.I)
_YES_NO = re.compile(r"\W*(?:(yes|yep|yeah|correct|indeed)|no|nope)\b(?! (?:problem|worries|doubt))", re.I)
_POLAR = re.compile(r"(?:.*[,.:] )?(?:is|are|am|was|were|do|does|did|can|could|may|has|have|will)\b", re.I)
_PAST = re.compile(r"\b(?:was|were|been)\b", re.I)
_RESULT = re.compile(r"\b(?:now|new)\b", re.I)
_PRONOUN = re.compile(r"(?:and |so |but |as )?(?:it|they|this|that|these|both|which|she|he|those)\b", re.I)
_BARE = re.compile(r"(?:and |so )?(?:it|that|this|there|you|they|he|she)\b", re.I)
_HIM = re.compile(r"\b(?:him|her|them|his|their)\b", re.I)
_UNABLE = re.compile(r"\b(?:can't|cannot|can not|couldn't|could not|unable|not able|wasn't able|no way|haven't|didn't)\b", re.I)
_PROMISE = re.compile(
    r"\b(?:i|we)(?:'ll| will| can| could|'d| would|'m going to| am going to)\b(?!'t| not)|\blet me\b|\bshall i\b|\bif you\b", re.I
)
_MAY_ASK = re.compile(
    r"\b(?:please|need|tell me|let me know|give me|send me|specify|provide|confirm|choose|pick|waiting for|depends"
    r"|(?:want|like|have|ought) to know|must know)\b",
    re.I,
)
_REQUEST = re.compile(
    r"\b(?:please (?:tell|send|give|provide|confirm|share|specify|let)|let me know (?!if you)|tell me|could you|can you"
    r"|i(?:'d| would)? (?:just |still |also )?need (?:to know|your|the|you)|i'll need)\b",
    re.I,
)
_OFFER = re.compile(r"\b(?:anything else|something else|help (?:you )?with|happy to|feel free)\b", re.I)


class Judged(NamedTuple):
    """A verdict, with the sentence that decided it (empty where none did), and why."""

    verdict: Verdict
    sentence: str = ""
    reason: str = ""


class _Read(NamedTuple):
    stance: Stance
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
    reads = [_Comparison(part, answer, " ".join(asked)).read() for part in read_clauses(claim)]
    stances = {each.stance for each in reads}
    first = next((each for each in reads if each.stance != "stated"), reads[0] if reads else _Read("unsure"))
    verdict: Verdict = "unsure"
    if kind == "says" and stances & {"denied", "absent"}:
        first = next(each for each in reads if each.stance in ("denied", "absent"))
        verdict = "broken"
    elif stances == {"stated"}:
        verdict = "holds" if kind == "says" else "broken"
    elif kind == "denies" and stances == {"denied"}:
        verdict = "holds"
    return Judged(verdict, first.sentence, first.reason)


class _Comparison:
    """A part of a claim beside an answer."""

    def __init__(self, part: Clause, answer: str, asked: str) -> None:
        self._part, self._answer, self._asked = part, answer, asked
        self._clauses = read_clauses(answer)
        self._requests = read_clauses(asked)
        self._figures = find_figures(part.text)
        self._known = {word for each in self._requests for word in each.words}
        self._known_signs = {name for each in self._requests for name in each.signs}
        self._is_modal = bool(MODAL.search(part.text))
        self._stated = [each for each in self._clauses if self._is_stated(each)]

    def read(self) -> _Read:
        """Return how the answer stands to the part, by the first rule that knows."""
        rules = (
            self._read_clauses, self._read_figures, self._read_names, self._read_yes_or_done, self._read_refusal,
            self._read_silence,
        )  # fmt: skip
        return next((found for rule in rules if (found := rule())), _Read("unsure"))

    def _is_stated(self, clause: Clause) -> bool:
        if clause.future and _PAST.search(self._part.text):
            return False
        return clause.mood == "stated" or (clause.mood == "open" and self._is_modal)

    # clauses
    def _read_clauses(self) -> _Read | None:
        signs = [(sign, each) for each in self._stated if (sign := self._sign_in(self._part, each))]
        if not signs:
            return None
        sign, clause = next((pair for pair in signs if self._is_full(self._part, pair[1])), signs[0])
        if any(other != sign for other, _ in signs):
            return _Read("unsure", clause.text, "it is said and denied")
        return _Read("stated" if sign > 0 else "denied", clause.text, "" if sign > 0 else "the opposite is said")

    def _sign_in(self, part: Clause, clause: Clause) -> int:
        """Return 1 where a clause says the part, -1 where it says the opposite, 0 where it may be about other things."""
        if clause.limited and not part.limited:
            return 0
        if not (self._has_names(part, clause) and self._has_figures(clause)):
            return 0
        if not self._is_full(part, clause) and not self._is_carried(part, clause):
            return 0
        return self._turn_of(part, clause)

    @staticmethod
    def _missing(part: Clause, clause: Clause) -> set[str]:
        return {word for word in part.words if word not in clause.words and not is_weak(word)}

    def _is_full(self, part: Clause, clause: Clause) -> bool:
        """Return whether a clause has all words of the part, and one that says more than of what sort it is."""
        shared = [word for word in part.words if word in clause.words]
        return bool(shared) and not self._missing(part, clause)

    def _strange(self, part: Clause, clause: Clause) -> set[str]:
        return {word for word in clause.words if word not in part.words and not is_weak(word)} - self._known

    def _has_names(self, part: Clause, clause: Clause) -> bool:
        """Return whether a clause has all names of the part in their order, or none and no other name either."""
        names = part.names | (clause.names & {*part.words})
        own = [word for word in part.words if word in names]
        said = [word for word in clause.words if word in names]
        return said == own or not (said or clause.names & self._strange(part, clause))

    def _has_figures(self, clause: Clause) -> bool:
        """Return whether a clause has the part's figures and no others in their place; it may leave out known ones."""
        known = [self._asked, self._part.text]
        for wanted in self._figures:
            said = is_said(wanted, clause.text + clause.tail)
            around = clause.text + clause.tail if said and self._is_full(self._part, clause) else self._around(clause, said)
            if rivals_of(wanted, around, known):
                return False
            if not said and not (is_said(wanted, self._asked) and len(self._requests) < 2):
                return False
        ordered = [next((own for own in self._figures if is_same(own, each)), None) for each in find_figures(clause.text + clause.tail)]
        places = [self._figures.index(each) for each in ordered if each]
        return places == sorted(places)

    def _around(self, clause: Clause, said: bool) -> str:
        near = [each.text for each in self._clauses if each.sentence == clause.sentence]
        return " ".join(near) if said else self._answer

    def _is_carried(self, part: Clause, clause: Clause) -> bool:
        """Return whether what a clause leaves out is known, and it adds nothing."""
        missing, strange = self._missing(part, clause), self._strange(part, clause)
        before = self._before(clause)
        follows = before and (_PRONOUN.match(clause.text) or not clause.words or before.text.endswith(":"))
        inherited = set(before.words) if before and follows else set()
        elsewhere = {
            word for each in self._stated if each not in (clause, before) and (each.signs or find_figures(each.text))
            for word in each.words
        }  # fmt: skip
        if strange - inherited or missing & elsewhere - inherited:
            return False
        figures = [each for each in self._figures if is_said(each, clause.text + clause.tail) and not is_said(each, self._asked)]
        if missing - self._known - inherited:  # a bare answer: "It's $12."
            return bool(_BARE.match(clause.text)) and any(each.kind != "number" for each in figures)
        return bool(figures or set(part.words) & {*clause.words} or part.signs.keys() & clause.signs.keys())

    def _before(self, clause: Clause) -> Clause | None:
        place = self._clauses.index(clause)
        return self._clauses[place - 1] if place else None

    def _turn_of(self, part: Clause, clause: Clause) -> int:
        if any(-1 in signs for name, signs in clause.signs.items() if name not in part.signs) and not clause.negative:
            return 0
        turns = set()
        for name, signs in part.signs.items():
            if name in clause.signs:
                mixed = len(signs) > 1 or len(clause.signs[name]) > 1
                turns.add(0 if mixed else 1 if signs == clause.signs[name] else -1)
            else:
                turns.add(self._turn_without(name, clause))
        if not turns:
            turned = bool(clause.negated & {*part.words})
            turns = {0 if clause.negative and not turned else 1 if turned == part.negative else -1}
        return turns.pop() if len(turns) == 1 else 0

    def _turn_without(self, name: str, clause: Clause) -> int:
        """Return what a clause says that has no word for the part's predicate: that there is none, or what is now."""
        if clause.negative:
            return -1 if name == "know" and clause.text.lower().startswith("there") and not clause.signs else 0
        told = any(is_said(each, clause.text) for each in self._figures) or self._part.names & {*clause.words}
        return int(bool(told) and not clause.signs and bool(_RESULT.search(clause.text)))

    # figures and names
    def _read_figures(self) -> _Read | None:
        """Find a clause that says another figure in the place of the part's, or an answer that says none."""
        for wanted in self._figures:
            if is_said(wanted, self._answer) or may_say(wanted, self._answer):
                continue
            for clause in self._stated:
                rivals = rivals_of(wanted, clause.text, [self._asked])
                if rivals and not clause.negative and (self._touches(clause) or _BARE.match(clause.text)):
                    if wanted.kind != "number" or rivals[0].label == wanted.label != "":
                        return _Read("absent", clause.text, f"{wanted.text} was to be said, not {rivals[0].text}")
            if not find_figures(self._answer) and not is_said(wanted, self._asked) and wanted.kind not in ("date", "weekday"):
                return _Read("absent", "", f"{wanted.text} is not said")
        return None

    def _read_names(self) -> _Read | None:
        """Find a clause that says the part with another name."""
        names = self._part.names
        if not names or any(names & {*each.words} for each in self._clauses) or _HIM.search(self._answer):
            return None
        part = replace(self._part, words=tuple(word for word in self._part.words if word not in names), names=frozenset())
        for clause in self._stated:
            others = clause.names & self._strange(part, clause)
            rest = replace(clause, words=tuple(word for word in clause.words if word not in others), names=frozenset())
            if others and self._is_full(part, rest) and self._turn_of(part, rest) > 0:
                return _Read("absent", clause.text, f"{' '.join(sorted(names))} was to be said")
        return None

    # without a clause of its own
    def _read_yes_or_done(self) -> _Read | None:
        found = _YES_NO.match(self._answer)
        requests = [each for each in self._requests if not self._missing(self._part, each)]
        signs = {self._turn_of(self._part, each) for each in requests}
        if len(signs) != 1 or 0 in signs:
            return None
        sign = signs.pop()
        polar = all(each.mood == "asked" and _POLAR.match(each.text) and not each.negative for each in requests)
        if found and polar and len(self._requests) == 1:
            return _Read("stated" if (sign > 0) == bool(found[1]) else "denied", found[0].strip())
        if _DONE.match(self._answer) and not self._stated and sign > 0 and all(each.mood != "asked" for each in requests):
            return _Read("stated", self._answer[:80])
        return None

    def _read_refusal(self) -> _Read | None:
        """Find a clause that in general words says that it could not be done."""
        relevant = [each for each in self._stated if self._touches(each)]
        refused = [each for each in relevant if each.negative and _UNABLE.search(each.text)]
        refused = [each for each in refused if not self._strange(self._part, each)]
        if refused and all(each.negative for each in relevant) and not self._part.negative:
            return _Read("denied", refused[0].text)
        return None

    def _touches(self, clause: Clause) -> bool:
        return bool({*clause.words} & {*self._part.words} or clause.signs.keys() & self._part.signs.keys())

    def _read_silence(self) -> _Read | None:
        if _DONE.match(self._answer) or _YES_NO.match(self._answer):
            return None
        related = [each for each in self._clauses if each.mood != "asked" and self._touches(each)]
        promised = [each for each in related if each.mood == "open" and _PROMISE.search(each.text)]
        if related and len(promised) == len(related) and any(self._sign_in(self._part, each) > 0 for each in promised):
            return _Read("absent", promised[0].text, "it is only promised or offered")
        if not self._stated and not related and not find_figures(self._answer):
            return _Read("absent", self._answer[:80], "nothing is stated")
        return None


# questions -----------------------------------------------------------------------------------------------------------

_SLOTS = {
    "birth": r"born|birth\w*",
    "duration": r"how long|how much time|length|duration|how many (?:minutes|hours|days|weeks|nights)",
    "time": r"when|(?:what|which) (?:time|day|date|hour|month|weekday)|(?:the|a|your) (?:\w+ )?(?:time|day|date|hour)",
    "amount": r"how (?:much|many)|amount|number of|quantity|(?:what|which) sum",
    "name": r"who|whose|whom|(?:full |last |first )?name",
    "place": r"where|address|destination|location|(?:what|which) (?:place|city)",
    "reason": r"why|reason|what for",
    "content": r"(?:what|which words?) .*(?:say|tell|write|text|message)|content|wording",
}
_SLOT = {name: re.compile(rf"\b(?:{pattern})\b", re.I) for name, pattern in _SLOTS.items()}
_ALIKE = {name: {name} for name in _SLOTS} | dict.fromkeys(("birth", "time", "duration"), {"birth", "time", "duration"})
"""Slots of which one may be asked for in the words of another."""
_SLOT_WORDS = re.compile(
    r"\b(?:how|what|which|when|who|whose|why|where|long|much|many|amount|number of|length|duration|time|date|reason|lasts?"
    r"|name|say|tell|write|plan(?:ning)?)\b",
    re.I,
)
_FOCUS = re.compile(
    r"\b(?:which|what) (?:of (?:the|these|those) )?(?:two |three |\d+ )?([\w-]+)|^(?:whether|if) (?:to |the )?([\w-]+)|^the (.+?)(?: (?:of|to|for)\b|$)",
    re.I,
)
_WHICH_ONE = re.compile(r"\bwhich (?:ones?|of (?:them|these|those))\b", re.I)


def _judge_question(claim: str, answer: str, asked: str) -> Judged:
    sentences = [each for each in split_sentences(answer) if each.rstrip("\"') ").endswith("?") or _REQUEST.search(each)]
    if not sentences:
        return Judged("unsure") if _MAY_ASK.search(answer) else Judged("broken", "", "nothing is asked")
    for sentence in sentences:
        if _asks_for(claim, sentence, answer, asked):
            return Judged("holds", sentence)
    if all(_OFFER.search(each) for each in sentences):
        return Judged("broken", sentences[0], "it only offers more help")
    slot, other = _slot_of(claim), _slot_of(sentences[0])
    if len(sentences) == 1 and slot and other and other not in _ALIKE[slot] and not _SLOT[slot].search(sentences[0]):
        return Judged("broken", sentences[0], "something else is asked")
    return Judged("unsure", sentences[0])


def _slot_of(text: str) -> str:
    return next((name for name, pattern in _SLOT.items() if pattern.search(text)), "")


def _asks_for(claim: str, sentence: str, answer: str, asked: str) -> bool:
    """Return whether a sentence asks for what a claim names, and for nothing that is strange beside it."""
    slot, said = _slot_of(claim), _topics(_SLOT_WORDS.sub(" ", sentence))
    wanted = _topics(_SLOT_WORDS.sub(" ", claim))
    missing = {word for word in wanted if not _is_among(word, said)}
    strange = {word for word in said if not _is_among(word, wanted | _topics(asked))}
    if slot:
        return slot == _slot_of(sentence) and (slot in ("reason", "birth", "content") or not (missing and strange))
    if _WHICH_ONE.search(sentence) and claim.lower().startswith("which"):
        return all(_is_among(word, _topics(answer) | _topics(asked)) for word in missing)
    focus = _FOCUS.search(claim)
    head = _topics(next(filter(None, focus.groups()))) if focus else wanted
    return bool(head) and all(_is_among(word, said) for word in head)


def _is_among(word: str, words: set[str]) -> bool:
    return word in words or any(each[:5] == word[:5] and len(word) > 4 for each in words)


def _topics(text: str) -> set[str]:
    found = (topic_of(word.lower()) for word in re.findall(r"[^\W\d_][\w'.-]*[^\W_]", text))
    return {*found} - {""}
