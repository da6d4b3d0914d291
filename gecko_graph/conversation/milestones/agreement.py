"""Decide whether an answer agrees with a good one: it must not contradict or deny it, but need not repeat it.

`agrees` requires no more. `answers` also requires the requested facts: the figures of the good answer that the user has
not given, if the user asks for one. An answer that also denies other things is left to the role `claim_judge`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from ..english import WORDS, pattern, phrase, plain, topic_of
from ..quantities import Figure, find_figures, is_given, is_said, may_say
from ..statements import read_clauses, split_sentences
from .claims import ClaimVerdict, judge_claim

Kind: TypeAlias = Literal["agrees", "answers"]

CODES = ("code", "phone")
"""Kinds of figures that identify one thing."""
_DENIAL = phrase(WORDS["phrases"]["denial"])
_BESIDE = phrase(WORDS["phrases"]["beside"])
_TO_KNOW = phrase(WORDS["phrases"]["to_know"])
_POLITE = phrase(WORDS["phrases"]["polite"])
_OPEN = phrase(WORDS["phrases"]["only_open"])
_PARTS = pattern("parts")
_QUESTION = re.compile(r"([^.;!?\n]*)\?")
_POLAR = re.compile(r"(?:is|are|am|was|were|do|does|did|can|could|may|has|have|will|would|should|and|or)\b", re.I)
_WORD = re.compile(r"[^\W\d_][\w'-]*")


def judge_agreement(kind: Kind, claim: str, answer: str, asked: Sequence[str]) -> ClaimVerdict:
    """Judge an answer by a good one, or by a sentence that it must not contradict.

    Args:
        kind: `answers` if it must also give the facts that the user asked for.
        claim: The good answer, or the sentence.
        answer: The agent's message.
        asked: The user's earlier messages.
    """
    if not any(map(str.isalnum, answer)):
        return ClaimVerdict("broken", "", "the answer is empty")
    stated = [each for each in split_sentences(answer) if not each.endswith("?")]
    if stated and stated == [each for each in split_sentences(claim) if not each.endswith("?")]:
        return ClaimVerdict("holds", stated[0])
    sentences = split_sentences(claim)
    said = [judge_claim("says", each, answer, asked) for each in sentences] or [ClaimVerdict("unsure")]
    pairs = zip(sentences, said, strict=False)
    if contradicted := next((each for own, each in pairs if each.contradicts and _is_about(own, each.sentence)), None):
        return contradicted
    if (beside := _find_other_code(claim, answer, asked)) or all(each.verdict == "holds" for each in said):
        return beside or ClaimVerdict("holds", said[0].sentence)
    lacking = _judge_wanted(claim, answer, asked) if kind == "answers" else None
    return lacking or _judge_denials(kind, claim, answer, asked)


def _judge_denials(kind: Kind, claim: str, answer: str, asked: Sequence[str]) -> ClaimVerdict:
    """Judge an answer by its denials of things that the good one or the user names, and by its other facts."""
    (told, denied, opened), (good, goods, _) = _split_parts(answer), _split_parts(claim)
    if goods:  # the good answer denies something itself
        alike = denied and not (told or good)
        return ClaimVerdict("holds" if alike else "unsure", (denied or told or [answer])[0])
    about = _topics(" ".join([claim, *asked]))
    own = [each for each in denied if not (words := _topics(each)) or words & about]
    own = own or (denied if kind == "answers" and not told else [])
    if own and not told:
        return ClaimVerdict("broken", own[0], "it is denied", contradicts=True)
    if own or (opened and not told):
        return ClaimVerdict("unsure", (own or opened)[0])
    return ClaimVerdict("holds", told[0] if told else "")


def _judge_wanted(claim: str, answer: str, asked: Sequence[str]) -> ClaimVerdict | None:
    """Judge whether an answer gives some of the requested facts; None if there are none, or it gives all."""
    wanted = find_wanted_figures(claim, asked)
    said = [each for each in wanted if is_said(each, answer) or may_say(each, answer)]
    if not wanted or len(said) == len(wanted):
        return None
    return ClaimVerdict("unsure", answer[:80]) if said else ClaimVerdict("broken", "", f"{wanted[0].text} is not said")


def find_wanted_figures(claim: str, asked: Sequence[str]) -> list[Figure]:
    """Return the figures of a good answer that the user has not given, if the user asks for a fact."""
    if not asked or not asks_to_know(asked[-1]):
        return []
    found = [each for each in find_figures(claim) if not any(is_given(each, text) for text in asked)]
    kinds = {
        kind for words, named in WORDS["asked_kinds"].items() if phrase([words]).search(asked[-1]) for kind in named
    }
    return [each for each in found if each.kind in kinds] or found


def asks_to_know(text: str) -> bool:
    """Return whether a user asks for a fact, not for yes or no: `how much`, `tell me`."""
    questions = (each.strip() for each in _QUESTION.findall(text))
    return bool(_TO_KNOW.search(text)) or any(each and not _POLAR.match(each) for each in questions)


def _split_parts(answer: str) -> tuple[list[str], list[str], list[str]]:
    """Return the parts of an answer that state something, that deny something, and its promises and questions."""
    told: list[str] = []
    denied: list[str] = []
    opened: list[str] = []
    for sentence in split_sentences(answer):
        for part in filter(None, map(str.strip, _PARTS.split(sentence))):
            if _DENIAL.search(_BESIDE.sub(" ", part)):
                denied.append(part)
            elif sentence.endswith("?") or _OPEN.search(plain(part)):
                opened.append(part)
            elif not _POLITE.fullmatch(part.strip(" .!,")):
                told.append(part)
    return told, denied, opened


def _find_other_code(claim: str, answer: str, asked: Sequence[str]) -> ClaimVerdict | None:
    own, known = {*find_codes(claim)}, {*find_codes(" ".join(asked))}
    for sentence in split_sentences(answer):
        named = {*find_codes(sentence)}
        if named & own and named - own - known:
            return ClaimVerdict("broken", sentence, "something else is named beside it", contradicts=True)
    denied = [each.text for each in read_clauses(answer) if each.negative and own & {*find_codes(each.text)}]
    return ClaimVerdict("broken", denied[0], "it is denied", contradicts=True) if denied else None


def find_codes(text: str) -> list[str]:
    """Return identifiers and telephone numbers in a text, without separators between digits."""
    return ["".join(filter(str.isalnum, each.text)).casefold() for each in find_figures(text) if each.kind in CODES]


def _is_about(claim: str, sentence: str) -> bool:
    """Return whether a sentence concerns the claim's things: not an hour, if the claim is about a price."""
    kinds = ({each.kind for each in find_figures(text)} - {"number"} for text in (claim, sentence))
    return bool(_topics(claim) & _topics(sentence) or set.intersection(*kinds))


def _topics(text: str) -> set[str]:
    return {topic_of(each.lower()) for each in _WORD.findall(text)} - {""}
