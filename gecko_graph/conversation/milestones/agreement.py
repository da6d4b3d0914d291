"""Whether an answer agrees with what a good one has said: it need not repeat it, but must not contradict or deny it.

`agrees` asks for no more. `answers` also asks for what the user wanted to know: the figures of the good answer that he
has not given himself, where he asks for one. What an answer denies beside other things is for the role `claim_judge`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from ...values.quantities import Figure, find_figures, is_given, is_said, may_say
from ...values.statements import read_clauses, split_sentences
from ...values.words import WORDS, phrase, plain, topic_of
from .claims import judge_claim
from .questions import Judged

Kind: TypeAlias = Literal["agrees", "answers"]

CODES = ("code", "phone")
"""Kinds of figures that name one thing."""
_DENIAL = phrase(WORDS["phrases"]["denial"])
_BESIDE = phrase(WORDS["phrases"]["beside"])
_TO_KNOW = phrase(WORDS["phrases"]["to_know"])
_POLITE = phrase(WORDS["phrases"]["polite"])
_OPEN = phrase(WORDS["phrases"]["only_open"])
_PARTS = re.compile(
    r"[,;:]? (?:but|so|because|since|although|though|however|while|yet)\b|[;\u2014]| - |, and (?=\w)", re.I
)
_QUESTION = re.compile(r"([^.;!?\n]*)\?")
_POLAR = re.compile(r"(?:is|are|am|was|were|do|does|did|can|could|may|has|have|will|would|should|and|or)\b", re.I)
_WORD = re.compile(r"[^\W\d_][\w'-]*")


def judge_agreement(kind: Kind, claim: str, answer: str, asked: Sequence[str]) -> Judged:
    """Judge an answer by a good one, or by a sentence that it must not contradict.

    Args:
        kind: Whether it must also give what the user wanted to know.
        claim: The good answer, or the sentence.
        answer: The agent's message.
        asked: The user's messages before it.
    """
    if not any(map(str.isalnum, answer)):
        return Judged("broken", "", "the answer is empty")
    if {*split_sentences(claim)} <= {*split_sentences(answer)}:
        return Judged("holds", claim)
    said = [judge_claim("says", each, answer, asked) for each in split_sentences(claim)] or [Judged("unsure")]
    if contradicted := next((each for each in said if each.verdict == "broken" and each.contradicts), None):
        return contradicted
    if (beside := _find_other_code(claim, answer, asked)) or all(each.verdict == "holds" for each in said):
        return beside or Judged("holds", said[0].sentence)
    told, denied, opened = _split_parts(answer)
    if kind == "answers" and (lacking := _judge_wanted(claim, answer, asked)):
        return lacking
    if not any(_split_parts(claim)[1]):
        about = _topics(" ".join([claim, *asked]))
        own = [each for each in denied if not (words := _topics(each)) or words & about]
        return _judge_denials(told, own or (denied if kind == "answers" and not told else []), opened)
    if denied or (kind == "agrees" and not told):
        return Judged("unsure", (denied or [answer])[0])
    return Judged("unsure", told[0] if told else answer[:80])  # the good one denies something, this one does not


def _judge_denials(told: list[str], denied: list[str], opened: list[str]) -> Judged:
    """Judge an answer by its parts, where the good one denies nothing."""
    if denied and not told:
        return Judged("broken", denied[0], "it is denied", contradicts=True)
    if denied or (opened and not told):
        return Judged("unsure", (denied or opened)[0])
    return Judged("holds", told[0] if told else "")


def _judge_wanted(claim: str, answer: str, asked: Sequence[str]) -> Judged | None:
    """Judge whether an answer gives what the user wanted to know; None where nothing, or all of it, is said."""
    wanted = find_wanted_figures(claim, asked)
    said = [each for each in wanted if is_said(each, answer) or may_say(each, answer)]
    if not wanted or len(said) == len(wanted):
        return None
    return Judged("unsure", answer[:80]) if said else Judged("broken", "", f"{wanted[0].text} is not said")


def find_wanted_figures(claim: str, asked: Sequence[str]) -> list[Figure]:
    """Return the figures of a good answer that the user has not given, where he asks for something to be told."""
    if not asked or not asks_to_know(asked[-1]):
        return []
    return [each for each in find_figures(claim) if not any(is_given(each, text) for text in asked)]


def asks_to_know(text: str) -> bool:
    """Return whether a user asks for something to be told, which a yes or no would not be: `how much`, `tell me`."""
    questions = (each.strip() for each in _QUESTION.findall(text))
    return bool(_TO_KNOW.search(text)) or any(each and not _POLAR.match(each) for each in questions)


def _split_parts(answer: str) -> tuple[list[str], list[str], list[str]]:
    """Return the parts of an answer that tell something, those that deny something, and promises and questions."""
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


def _find_other_code(claim: str, answer: str, asked: Sequence[str]) -> Judged | None:
    """Find a sentence that names other codes beside the claim's, or one that denies the claim's."""
    own, known = {*find_codes(claim)}, {*find_codes(" ".join(asked))}
    for sentence in split_sentences(answer):
        named = {*find_codes(sentence)}
        if named & own and named - own - known:
            return Judged("broken", sentence, "something else is named beside it", contradicts=True)
    denied = [each.text for each in read_clauses(answer) if each.negative and own & {*find_codes(each.text)}]
    return Judged("broken", denied[0], "it is denied", contradicts=True) if denied else None


def find_codes(text: str) -> list[str]:
    """Return identifiers and telephone numbers in a text, without what groups their digits."""
    return ["".join(filter(str.isalnum, each.text)).casefold() for each in find_figures(text) if each.kind in CODES]


def _topics(text: str) -> set[str]:
    return {topic_of(each.lower()) for each in _WORD.findall(text)} - {""}
