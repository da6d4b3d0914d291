"""Whether an answer makes a claim, denies it or asks for it: decided by rule where its sentences are plain.

A claim holds where a sentence states all that it names, with its sign; it is broken where one states the opposite, or
where a figure of it is not said. All else is unsure, and for the role `claim_judge`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from ...values.finding import Found
from ...values.quantities import Figure, find_figures, is_said
from ...values.statements import Clause, read_clauses, stem

Kind: TypeAlias = Literal["says", "denies", "asks"]
Verdict: TypeAlias = Literal["holds", "broken", "unsure"]

_CONFIRMS = re.compile(r"^\W*(?:all )?(?:done|sorted|set|taken care of|finished|completed)\b", re.I)
_REQUEST = re.compile(
    r"\?|\b(?:please (?:tell|send|give|provide|confirm|share|specify|let)|let me know|tell me|could you|can you"
    r"|i(?:'d| would)? (?:just |still |also )?need (?:to know|your|the|you)|i'll need)\b",
    re.I,
)
_OFFER = re.compile(r"\b(?:anything else|something else|help (?:you )?with|happy to|feel free)\b", re.I)
_ASKED = {
    **dict.fromkeys(("when", "day", "date", "time", "hour", "o'clock"), "(time)"),
    **dict.fromkeys(("who", "whose", "whom", "name", "person", "contact", "called"), "(name)"),
    **dict.fromkeys(("where", "place", "address", "location", "city"), "(place)"),
    **dict.fromkeys(("many", "much", "number", "amount", "quantity"), "(amount)"),
}
_MANY = re.compile(r"\b(?:either|one of|or)\b", re.I)
_NAME = re.compile(r"(?<![.!?:\"] )(?<!^)\b[A-Z][a-z]+\b")


class Judged(NamedTuple):
    """A verdict, with the sentence that decided it (empty where none did), and why."""

    verdict: Verdict
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
    clauses = read_clauses(answer)
    if not clauses:
        return Judged("broken", "", "the answer is empty")
    if kind == "asks":
        return _judge_question(claim, clauses)
    return _Statement(kind, claim, answer, " ".join(asked)).judge()


def _judge_question(claim: str, clauses: Sequence[Clause]) -> Judged:
    asking = [each for each in clauses if each.question or _REQUEST.search(each.text)]
    if not asking:
        return Judged("broken", "", "nothing is asked")
    wanted = _topic([read_clauses(claim)])
    best = max(asking, key=lambda each: len(wanted & _topic([[one for one in asking if one.sentence == each.sentence]])))
    found = _topic([[one for one in asking if one.sentence == best.sentence]])
    if len(wanted & found) >= max(len(wanted) / 2, 1):
        return Judged("holds", best.text)
    if not wanted & found and all(_OFFER.search(each.text) for each in asking):
        return Judged("broken", best.text, "it only offers more help")
    return Judged("unsure", best.text)


def _topic(parts: Sequence[Sequence[Clause]]) -> set[str]:
    words = {word for part in parts for each in part for word in (*each.words, *each.signs, *_interrogatives(each.text))}
    return {_ASKED.get(word, word) for word in words}


def _interrogatives(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.lower()) if word in _ASKED]


class _Statement:
    """An answer beside what it must say or deny."""

    def __init__(self, kind: Kind, claim: str, answer: str, asked: str) -> None:
        self._turn = -1 if kind == "denies" else 1
        self._claim, self._answer, self._asked = read_clauses(claim), answer, asked
        self._clauses = read_clauses(answer)
        self._signs = {name: sign for each in self._claim for name, sign in each.signs.items()}
        self._negative = any(each.negative for each in self._claim) != (kind == "denies")
        self._is_modal = any(not each.asserted for each in self._claim)
        self._words = {word for each in self._claim for word in each.words}
        self._figures = find_figures(claim)
        self._said = [each for each in self._clauses if each.asserted or (self._is_modal and not each.question)]

    def judge(self) -> Judged:
        if figure := self._judge_figures():
            return figure
        if not self._said:
            return Judged("broken", self._clauses[0].text, "nothing is stated")
        if self._signs and (ruled := self._judge_signs()):
            return ruled
        return self._judge_plain()

    # figures
    def _judge_figures(self) -> Judged | None:
        """Return a verdict where a figure is not said, or is denied."""
        figures, said = find_figures(self._answer), Found([self._answer], keys=False)
        known, before = find_figures(self._asked), Found([self._asked], keys=False)
        for wanted in self._figures if self._turn > 0 else ():
            if not is_said(wanted, figures, said):
                others = [each for each in figures if each.kind == wanted.kind and not is_said(each, known, before)]
                if others:
                    return Judged("broken", others[0].text, f"{wanted.text} was to be said, not {others[0].text}")
                if is_said(wanted, known, before):
                    continue
                if _is_small(wanted) or wanted.kind in ("date", "weekday"):
                    return Judged("unsure", "", f"{wanted.text} is not said")
                return Judged("broken", "", f"{wanted.text} is not said")
            places = [each for each in self._clauses if is_said(wanted, find_figures(each.text), Found([each.text]))]
            if not places:
                continue
            if not self._negative and all(each.negative or each.question for each in places):
                return Judged("broken" if places[0].question or not self._signs else "unsure", places[0].text)
            rivals = {each for one in places for each in find_figures(one.text) if each.kind == wanted.kind}
            if len(rivals) > len(self._figures) and any(_MANY.search(each.text) for each in places):
                return Judged("unsure", places[0].text, "several are named")
        return None

    # predicates
    def _judge_signs(self) -> Judged | None:
        """Return a verdict where a predicate of the claim is stated, with its sign or with the opposite one."""
        held: list[Clause] = []
        for name, signs in self._signs.items():
            wanted = {sign * self._turn for sign in signs}
            stated = [each for each in self._said if name in each.signs]
            near = [each for each in stated if self._is_near(each)] or stated
            right = [each for each in near if each.signs[name] == wanted]
            wrong = [each for each in near if each.signs[name] != wanted]
            if right and wrong:
                return Judged("unsure", right[0].text, "it is said and denied")
            if wrong:
                sure = self._is_near(wrong[0]) or not wrong[0].words
                return Judged("broken" if sure else "unsure", wrong[0].text, "the opposite is said")
            held += right
        if not held:
            return None
        missing = self._find_missing()
        return Judged("holds" if not missing else "unsure", held[0].text, ", ".join(sorted(missing)))

    def _is_near(self, clause: Clause) -> bool:
        """Return whether a clause's sentence is about what the claim is about."""
        words = {word for each in self._clauses if each.sentence == clause.sentence for word in each.words}
        return not self._words or bool(words & self._words)

    def _find_missing(self) -> set[str]:
        """Return the claim's words that neither answer nor request hold, where that leaves its subject open."""
        said = {word for each in self._clauses for word in each.words}
        known = {word for each in read_clauses(self._asked) for word in each.words}
        names = {stem(each.lower()) for one in self._claim for each in _NAME.findall(one.text)}
        missing = self._words - said
        if missing & names - known:
            return missing & names
        strange = said - known - self._words
        if len(missing) * 2 > len(self._words):
            return missing if missing - known or strange else set()
        return set()

    def _judge_plain(self) -> Judged:
        """Judge a claim none of whose predicates is stated."""
        full = [each for each in self._said if self._covers(each)]
        right = [each for each in full if each.negative == self._negative]
        if right and not self._signs:
            return Judged("holds", right[0].text)
        if full and not right:
            return Judged("broken", full[0].text, "the opposite is said")
        if self._negative and not any(each.negative for each in self._clauses):
            return Judged("broken", self._said[0].text, "nothing is denied")
        if self._figures and self._turn > 0 and not self._signs:
            return Judged("holds", self._said[0].text)
        if not self._negative and self._turn > 0 and _CONFIRMS.search(self._answer) and not self._figures:
            return Judged("holds" if len(self._said) == 1 else "unsure", self._said[0].text)
        return Judged("unsure")

    def _covers(self, clause: Clause) -> bool:
        words = {word for each in self._clauses if each.sentence == clause.sentence for word in each.words}
        return bool(self._words) and self._words <= words and bool(self._words & clause.words)


def _is_small(figure: Figure) -> bool:
    return figure.kind == "number" and figure.value is not None and abs(figure.value) <= 12
