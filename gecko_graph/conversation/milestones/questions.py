"""Decide whether an answer asks for a claim's item, by the slot and the other words of its question."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from ..english import PLACES, WORDS, pattern, phrase, set_of, topic_of
from ..statements import concepts_of, read_clauses, split_sentences

Verdict: TypeAlias = Literal["holds", "broken", "unsure"]


class ClaimVerdict(NamedTuple):
    """A verdict with the sentence that decided it ("" if none did), and the reason.

    For a claim that is to be said, `contradicts` distinguishes a denial or another statement from its absence.
    """

    verdict: Verdict
    sentence: str = ""
    reason: str = ""
    contradicts: bool = False


_SLOT = {name: phrase(words) for name, words in WORDS["slots"].items()}
_OPEN_SLOTS = ("reason", "birth", "content")
"""Slots for which a question may use other words than the claim, such as the fault for the reason of a return."""
_ALIKE = ({"birth", "time", "duration"}, {"amount", "size"}, {"name", "content", "place"})
"""Groups of slots; a question for one may ask for another."""
_COUNTABLE = set_of("countable")
_SLOT_WORDS = phrase(WORDS["phrases"]["slot_words"])
_FOCUS = pattern("focus")
_CHOICE = pattern("choice")
_REQUEST = phrase(WORDS["phrases"]["request"])
_MAY_ASK = phrase(WORDS["phrases"]["may_ask"])
OFFER = re.compile(r"\b(?:anything else|something else|help (?:you )?with|happy to|feel free)\b", re.I)
_DIRECT = re.compile(r"\b(?:you|your|i|we|us|please|shall|should)\b", re.I)
_WHICH = pattern("which")
_WHETHER = re.compile(r"\W*whether\b", re.I)
_CONSENT = pattern("consent")
_RHETORICAL = re.compile(r"^\W*(?:(?:did|didn't|do|don't) (?:you|i) (?:remember|know|see|say)|remember|guess)\b", re.I)


def judge_question(claim: str, answer: str, asked: str) -> ClaimVerdict:
    """Judge whether an answer asks for a claim's item, such as `which day` or `the order number`."""
    asking = [each for each in split_sentences(answer) if each.rstrip("\"') ").endswith("?") or _REQUEST.search(each)]
    if not asking:
        return ClaimVerdict("unsure") if _MAY_ASK.search(answer) else ClaimVerdict("broken", "", "nothing is asked")
    if all(OFFER.search(each) for each in asking):
        return ClaimVerdict("broken", asking[0], "it only offers more help")
    last = split_sentences(answer)[-1]
    direct = [each for each in asking if (each is asking[-1] and each == last) or _DIRECT.search(each)]
    direct = [each for each in direct if not _RHETORICAL.match(each)]
    if found := next(
        (each for each in direct if _asks_which(claim, each, answer, asked) or _asks_for(claim, each, asked)), None
    ):
        return ClaimVerdict("holds", found)
    if _WHETHER.match(claim) and (consent := next((each for each in direct if _CONSENT.search(each)), None)):
        known = _topics(f"{asked} {answer.partition(consent)[0]}")
        wanted, said = (_topics(_CONSENT.sub(" ", _WHETHER.sub(" ", each))) for each in (claim, consent))
        if wanted <= known | said and said <= known | wanted:
            return ClaimVerdict("holds", consent)
    slot, other = _slot_of(claim), _slot_of(asking[0])
    alike = any({slot, other} <= group for group in _ALIKE)
    which = slot in ("time", "duration", "amount", "place", "heat", "size") and _WHICH.search(asking[0])
    named = _topics(_SLOT_WORDS.sub(" ", claim)) & (_topics(asking[0]) | _topics(answer))
    if len(asking) == 1 and not slot and other in ("time", "heat", "size") and not named:
        return ClaimVerdict("broken", asking[0], "something else is asked")
    if len(asking) == 1 and slot and ((other and not alike) or which) and not _SLOT[slot].search(asking[0]):
        return ClaimVerdict("broken", asking[0], "something else is asked")
    return ClaimVerdict("unsure", asking[0])


def _asks_which(claim: str, sentence: str, answer: str, asked: str) -> bool:
    """Return whether a sentence asks for a choice among things in the answer: `which one`, `do you mean A or B`."""
    if not re.match(r"\W*(?:which|who|whether it is)\b", claim, re.I):
        return False
    if not _CHOICE.search(sentence) or concepts_of(sentence) - concepts_of(f"{claim} {asked}"):
        return False
    wanted = _topics(_SLOT_WORDS.sub(" ", claim)) - PLACES
    return all(_is_among(word, _topics(answer) | _topics(asked)) for word in wanted)


def _slot_of(text: str) -> str:
    return next((name for name, pattern in _SLOT.items() if pattern.search(text)), "")


def _asks_for(claim: str, sentence: str, asked: str) -> bool:
    """Return whether a sentence asks for a claim's item, and for nothing unrelated."""
    slot, plain, own = _slot_of(claim), _SLOT_WORDS.sub(" ", sentence), _SLOT_WORDS.sub(" ", claim)
    said, wanted, known = _topics(plain), _topics(own), _topics(asked)
    if slot:
        others = concepts_of(plain) - concepts_of(asked)
        verbal = (concepts_of(own) & others or wanted <= known | said) and not others - concepts_of(claim)
        open_ = slot in _OPEN_SLOTS or verbal or not concepts_of(own)
        acts = {word for each in read_clauses(sentence) for word in each.acts if open_}  # any verb is accepted
        strange = any(not _is_among(word, wanted | known) for word in said - acts)
        missing = any(not _is_among(word, said) for word in wanted)
        named = {*re.findall(r"\w+", f"{claim} {asked}".lower())}
        counted = {*re.findall(r"how (?:many|much) (\w+)", sentence.lower())} - named
        if slot != _slot_of(sentence) or counted - _COUNTABLE or (missing and strange and slot not in _OPEN_SLOTS):
            return False
        loose = not (missing and slot in ("name", "place"))
        return loose or all(_is_among(word, said | known) for word in wanted)
    if re.search(r"\bwhich (?:ones?|of (?:them|these|those))\b", sentence, re.I) and claim.lower().startswith("which"):
        return all(_is_among(word, said | known) for word in wanted)
    focus = _FOCUS.search(claim)
    head = _topics(next(filter(None, focus.groups()))) if focus else wanted
    return bool(head) and all(_is_among(word, said | _topics(sentence)) for word in head)


def _is_among(word: str, words: set[str]) -> bool:
    return word in words or any(each[:5] == word[:5] and len(word) > 4 for each in words)


def _topics(text: str) -> set[str]:
    return {topic_of(word.lower()) for word in re.findall(r"[^\W\d_](?:[\w'.-]*[^\W_])?", text)} - {""}
