"""Decide by rule whether an answer makes a claim, denies it or asks for it, if its sentences are plain.

Clauses about the claim decide. Without one, the answer may state another value, or nothing that could mean the claim;
everything else is unsure, and left to the role `claim_judge`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from ..english import PLACES, WORDS, pattern, phrase, set_of, topic_of
from ..quantities import Figure, find_figures, has_numeral, is_said, is_same, may_say, spell_figures
from ..statements import SentenceClause, concepts_of, read_clauses, split_sentences
from .comparison import BARE, Comparison

Kind: TypeAlias = Literal["says", "denies", "asks"]
Verdict: TypeAlias = Literal["holds", "broken", "unsure"]


class ClaimVerdict(NamedTuple):
    """A verdict with the sentence that decided it ("" if none did), and the reason.

    For a claim that is to be said, `contradicts` distinguishes a denial or another statement from its absence.
    """

    verdict: Verdict
    sentence: str = ""
    reason: str = ""
    contradicts: bool = False


_TAKEN_BACK = phrase(WORDS["phrases"]["taken_back"])
_NEGATIVE = phrase(WORDS["phrases"]["negative"])
"""Words that may be a denial, in addition to those that certainly deny."""
_OF_THEM = pattern("of_them")
"""Facts that may be told separately or together: `Ann and Bob came, Cid did not`, 555-0177 for `ends in 77`."""


class _Read(NamedTuple):
    """An answer's stance on a part of a claim.

    `replaced`: it states another figure, name or action instead. `absent`: it only promises the part, states it of
    another thing, or does not state it.
    """

    stance: Literal["stated", "denied", "replaced", "absent", "unsure"] = "unsure"
    sentence: str = ""
    reason: str = ""


def judge_claim(kind: Kind, claim: str, answer: str, asked: Sequence[str] = ()) -> ClaimVerdict:
    """Judge an answer by one claim.

    Args:
        kind: Whether the answer must say it, deny it, or ask for it.
        claim: A plain sentence, such as `the reminder was deleted`.
        answer: The agent's message.
        asked: The user's earlier messages, whose content need not be repeated.
    """
    if not any(map(str.isalnum, answer)):
        return ClaimVerdict("broken", "", "the answer is empty")
    if kind == "asks":
        return judge_question(claim, answer, " ".join(asked))
    parts = (Comparison(part, answer, " ".join(asked), denied=kind == "denies") for part in read_clauses(claim))
    reads = [_read(part) for part in parts] or [_Read()]
    stances = {each.stance for each in reads}
    verdict: Verdict = "unsure"
    if kind == "says" and stances & {"denied", "replaced", "absent"}:
        reads = [each for each in reads if each.stance not in ("stated", "unsure")]
        verdict = "broken"
    elif stances == {"stated"} or (kind == "denies" and stances == {"denied"}):
        verdict = "holds" if (kind == "says") == (stances == {"stated"}) else "broken"
    sentence = reads[0].sentence or ("" if verdict == "broken" else find_nearest(claim, answer))
    return ClaimVerdict(verdict, sentence, reads[0].reason, contradicts=bool(stances & {"denied", "replaced"}))


def find_nearest(claim: str, answer: str) -> str:
    """Return the sentence of an answer that shares most words with a claim."""
    words = {word for each in read_clauses(claim) for word in (*each.words, *each.signs)}
    shared = {
        sentence: len(words & {word for each in read_clauses(sentence) for word in (*each.words, *each.signs)})
        for sentence in split_sentences(answer)
    }
    return max(shared, key=lambda each: shared[each], default="")


def _read(part: Comparison) -> _Read:
    """Return the stance of the answer to the part, by the first rule that decides."""
    return next((read for rule in _RULES if (read := rule(part))), _Read())


# rules about the clauses ---------------------------------------------------------------------------------------------


def _by_correction(part: Comparison) -> _Read | None:
    return _Read("unsure", part.answer[:80], "something is taken back") if _TAKEN_BACK.search(part.answer) else None


def _by_clauses(part: Comparison) -> _Read | None:
    turns = [(turn, each) for each in part.stated if (turn := part.turn_in(each))]
    if not turns:
        return None
    turn, clause = next((pair for pair in turns if part.is_full(pair[1])), turns[0])
    signs = [(name, sign * turn) for name, signs in part.part.signs.items() for sign in signs]
    signs += [("done", turn)] if "done" not in part.part.signs else []
    others = [each for each in part.stated if any(-sign in each.signs.get(name, ()) for name, sign in signs)]
    others = [each for each in others if each is not clause]
    if any(other != turn for other, _ in turns) or any(map(part.is_near, others)):
        return _Read("unsure", clause.text, "it is said and denied")
    if _is_of_another(part, clause) or part.is_miscounted(clause):
        return _Read("unsure", clause.text, "another figure may be the one that was asked for")
    return _Read("stated" if turn > 0 else "denied", clause.text, "" if turn > 0 else "the opposite is said")


def _is_of_another(part: Comparison, clause: SentenceClause) -> bool:
    """Return whether a clause names another thing than the request, and another clause has that thing's figure."""
    asked = {each for request in part.requests for each in request.names} - part.part.names
    others = [each for each in part.stated if each is not clause and asked & {*each.words} - {*clause.words}]
    strange = clause.names & part.strange(clause)
    return bool(strange) and any(part.rivals(wanted, each.text) for each in others for wanted in part.figures)


def _by_other_figure(part: Comparison) -> _Read | None:
    """Find a clause with another figure than the part's, or that a figure unknown to the user is missing."""
    for wanted in part.figures:
        if hedged := _find_alternative(part, wanted):
            return _Read("replaced", hedged, f"{wanted.text} is one of several")
        if part.is_said(wanted, part.answer) or may_say(wanted, part.answer) or _OF_THEM.search(part.part.text):
            continue
        for clause in part.stated:
            rivals = part.rivals(wanted, clause.text + clause.tail)
            counted = rivals and (wanted.kind != "number" or part.is_counted_as(wanted, rivals[0], clause))
            if counted and not clause.negative and _may_tell_figure(part, clause):
                return _Read("replaced", clause.text, f"{wanted.text} was to be said, not {rivals[0].text}")
        none = not find_figures(part.answer) and any(each.negative for each in part.stated)
        new = wanted in part.new and not may_say(wanted, part.asked)
        value = wanted.value or 0
        if new and (none or wanted.kind != "number" or value > 12 or value % 1):  # small numbers occur in any text
            return _Read("absent", "", f"{wanted.text} is not said")
    return None


def _find_alternative(part: Comparison, wanted: Figure) -> str:
    """Return a sentence with alternative figures of one kind: `284 dollars or 270 dollars`; "" if there is none."""
    for sentence in map(spell_figures, split_sentences(part.answer)):
        figures = find_figures(sentence)
        for one in (
            each.text for each in figures if is_same(wanted, each) or (wanted.value and has_numeral(wanted, each))
        ):
            others = "|".join(re.escape(each.text) for each in part.rivals(wanted, sentence))
            if others and re.search(rf"{re.escape(one)}\W*(?:\w+\W+){{0,3}}?or (?:\w+ ){{0,3}}?(?:{others})", sentence):
                return sentence
    return ""


def _may_tell_figure(part: Comparison, clause: SentenceClause) -> bool:
    if any(is_said(each, clause.text) for each in part.figures):
        return True
    if not part.strange(clause) and not part.new and all(each.kind != "number" for each in part.figures):
        return True
    shared = part.words & {*clause.words} or not part.strange(clause)
    return bool(shared and (part.touches(clause) or not part.words or BARE.match(clause.text)))


def _by_no_denial(part: Comparison) -> _Read | None:
    """Find that an answer has no word of denial although something is to be denied."""
    unknown = -1 in part.part.signs.get("know", ()) and not part.denied
    if not (unknown or part.denied != part.part.negative) or "?" in part.answer or _NEGATIVE.search(part.answer):
        return None
    against = [(name, -sign) for name, signs in part.part.signs.items() for sign in signs]
    turned = any(sign in each.signs.get(name, ()) for each in part.clauses for name, sign in against)
    if turned or not part.clauses or any(each.mood != "stated" for each in part.clauses):
        return None
    return _Read("stated" if part.denied else "absent", part.answer[:80], "nothing is denied")


_RULES: Sequence[Callable[[Comparison], _Read | None]] = (
    _by_correction,
    _by_clauses,
    _by_other_figure,
    _by_no_denial,
)


# questions ------------------------------------------------------------------------------------------------------------

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
