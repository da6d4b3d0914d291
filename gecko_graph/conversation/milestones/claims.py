"""Whether an answer makes a claim, denies it or asks for it: decided by rule where its sentences are plain.

A claim holds where a sentence states all that it names, with its sign; it is broken where one states the opposite, or
where a figure of it is not said. All else is unsure, and for the role `claim_judge`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from ...values.finding import Found
from ...values.quantities import Figure, find_figures, is_rival, is_said, spell_figures
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
    **dict.fromkeys(("why", "reason"), "(reason)"),
    **dict.fromkeys(("long", "length", "duration", "last"), "(duration)"),
    **dict.fromkeys(("say", "tell", "write", "text", "message", "messag", "content"), "(words)"),
    **dict.fromkeys(("born", "birth"), "(birth)"),
    **dict.fromkeys(("many", "much", "number", "amount", "quantity"), "(amount)"),
}
_MANY = re.compile(r"\b(?:either|one of|or)\b", re.I)
_NAME = re.compile(r"(?<![.!?:\"] )(?<!^)\b[A-Z][a-z]+\b")


_CAPITAL = re.compile(r"\b[A-Z][a-z]+\b")
_PAST = re.compile(r"\b(?:was|were|been|has|have)\b", re.I)
_PROMISE = re.compile(r"\b(?:I'll|I will|I can|I could|I'm going to|let me|shall I|I'd)\b", re.I)
_ANYTHING = re.compile(r"\b(?:anything|nothing|yet|so far|at all|able|can't|cannot|couldn't|unable|none)\b", re.I)


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
    kinds = {word for word in wanted if word.startswith("(")}
    best = max(
        asking, key=lambda each: len(wanted & _topic([[one for one in asking if one.sentence == each.sentence]]))
    )
    found = _topic([[one for one in asking if one.sentence == best.sentence]])
    other = {word for word in found if word.startswith("(")} - kinds
    if kinds and not kinds & found:
        return Judged("broken" if other else "unsure", best.text, "something else is asked" if other else "")
    if len(wanted & found) >= max(len(wanted) / 2, 1):
        return Judged("holds", best.text)
    if not wanted & found and all(_OFFER.search(each.text) for each in asking):
        return Judged("broken", best.text, "it only offers more help")
    return Judged("unsure", best.text)


def _topic(parts: Sequence[Sequence[Clause]]) -> set[str]:
    # a word may be spelt as it is, or without its ending
    words = {
        word for part in parts for each in part for word in (*each.words, *each.signs, *_interrogatives(each.text))
    }
    return {_ASKED.get(word, word) for word in words}


def _interrogatives(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.lower()) if word in _ASKED]


class _Statement:
    """An answer beside what it must say or deny."""

    def __init__(self, kind: Kind, claim: str, answer: str, asked: str) -> None:
        self._turn = -1 if kind == "denies" else 1
        self._claim, self._clauses = read_clauses(claim), read_clauses(answer)
        self._answer, self._asked = answer, asked
        # what a claim has with both signs ("the deleted file can be restored") says nothing by itself
        self._signs = {name: sign for each in self._claim for name, sign in each.signs.items() if len(sign) == 1}
        self._negative = any(each.negative for each in self._claim) != (kind == "denies")
        self._words = {word for each in self._claim for word in each.words}
        self._known = {word for each in read_clauses(asked) for word in each.words}
        self._names = {stem(each.lower()) for each in _CAPITAL.findall(claim)} & self._words
        self._figures = find_figures(claim)
        is_modal = any(not each.asserted for each in self._claim)
        is_past = _PAST.search(claim)
        said = [each for each in self._clauses if not (each.future and is_past)]
        self._said = [each for each in said if each.asserted or (is_modal and not each.question)]

    def judge(self) -> Judged:
        """Return the verdict: by figures first, then by predicates, else by the words."""
        if ruled := self._judge_figures():
            return ruled
        if not self._said:
            return Judged("broken", self._clauses[0].text, "nothing is stated")
        ruled = self._judge_signs() if self._signs else self._judge_words()
        return self._judge_rest(ruled) if ruled.verdict == "unsure" and not ruled.reason else ruled

    def _judge_rest(self, ruled: Judged) -> Judged:
        """Judge what neither predicates nor words settle: a refusal in general words, and what is only promised."""
        relevant = [each for each in self._said if each.words & self._words or set(each.signs) & set(self._signs)]
        if self._negative and self._turn < 0:
            refused = [each for each in self._said if each.negative and (each in relevant or self._is_about(each))]
            refused = [each for each in refused if _ANYTHING.search(each.text) or self._words <= each.words]
            if refused and all(each.negative for each in relevant):
                return Judged("holds", refused[0].text)
        promised = [each for each in self._clauses if not each.question and _PROMISE.search(each.text)]
        promised = [
            each for each in promised if set(each.signs) & set(self._signs) and each.words & (self._words | self._known)
        ]
        if self._turn > 0 and promised and not relevant:
            return Judged("broken", promised[0].text, "it is only promised or offered")
        return ruled

    def _judge_figures(self) -> Judged | None:
        """Return a verdict where a figure is not said, is denied, or is one of several."""
        figures, said = find_figures(self._answer), Found([spell_figures(self._answer)], keys=False)
        known, before = find_figures(self._asked), Found([spell_figures(self._asked)], keys=False)
        for wanted in self._figures if self._turn > 0 else ():
            if not is_said(wanted, figures, said):
                rivals = [each for each in figures if is_rival(wanted, each) and not is_said(each, known, before)]
                if wanted.kind == "number":  # of other things there may be other numbers
                    rivals = [each for each in rivals if each.label == wanted.label != ""]
                if rivals:
                    sure = not _is_ambiguous(wanted, rivals)
                    reason = f"{wanted.text} was to be said, not {rivals[0].text}"
                    return Judged("broken" if sure else "unsure", rivals[0].text, reason)
                if is_said(wanted, known, before):
                    continue
                sure = wanted.kind not in ("date", "weekday") and not _is_small(wanted)
                return Judged("broken" if sure else "unsure", "", f"{wanted.text} is not said")
            places = self._find(wanted, self._clauses)
            if not places:
                return Judged("unsure", "", f"{wanted.text} is not in one sentence")
            if not any(each in self._said for each in places):
                return Judged("unsure", places[0].text, f"{wanted.text} is not stated")
            if not self._negative and not self._signs and all(each.negative for each in places):
                return Judged("broken" if self._is_about(places[0]) else "unsure", places[0].text, "it is denied")
            if not any(self._is_alone(wanted, each) for each in places):
                return Judged("unsure", places[0].text, "several are named")
        return None

    def _find(self, wanted: Figure, clauses: Sequence[Clause]) -> list[Clause]:
        return [each for each in clauses if is_said(wanted, find_figures(each.text), Found([spell_figures(each.text)]))]

    def _is_alone(self, wanted: Figure, clause: Clause) -> bool:
        """Return whether no other figure stands in a sentence where the claim has one."""
        sentence = " ".join(each.text for each in self._clauses if each.sentence == clause.sentence)
        rivals = {each.text for each in find_figures(sentence) if is_rival(wanted, each)}
        own = {each.text for each in self._figures if is_rival(wanted, each)}
        if len(rivals) <= max(len(own), 1):
            return True
        return not _MANY.search(sentence) and len(self._words) > 1 and self._words <= clause.words

    # predicates
    def _judge_signs(self) -> Judged:
        """Judge a claim by its predicates, where the answer states them of the same things."""
        held: list[Clause] = []
        for name, signs in self._signs.items():
            wanted = {sign * self._turn for sign in signs}
            stated = [each for each in self._said if name in each.signs and self._is_about(each)]
            right = [each for each in stated if each.signs[name] == wanted]
            wrong = [each for each in stated if each.signs[name] != wanted]
            if right and wrong:
                for_it, against = (max(len(self._words & each.words) for each in some) for some in (right, wrong))
                if for_it == against:
                    return Judged("unsure", right[0].text, "it is said and denied")
                right, wrong = (right, []) if for_it > against else ([], wrong)
                right = [each for each in right if len(self._words & each.words) == for_it]
                wrong = [each for each in wrong if len(self._words & each.words) == against]
            if wrong:
                sure = len(self._signs) == 1 and self._is_whole(wrong[0])
                return Judged("broken" if sure else "unsure", wrong[0].text, "the opposite is said")
            held += [each for each in right if self._is_whole(each)]
        if held and len(held) >= len(self._signs):
            return Judged("holds", held[0].text)
        if self._turn > 0 and not self._figures and _CONFIRMS.search(self._answer) and len(self._said) == 1:
            return Judged("unsure", self._said[0].text)
        return Judged("unsure", held[0].text if held else "")

    def _is_about(self, clause: Clause) -> bool:
        """Return whether a clause is about the same things: a word of its sentence is the claim's, or none is new."""
        words = self._sentence(clause)
        return bool(words & self._words) or not words - self._known - self._words

    def _is_whole(self, clause: Clause) -> bool:
        """Return whether a clause leaves nothing of the claim open, and no word of it belongs to another sentence."""
        words = self._sentence(clause)
        missing_here = self._words - clause.words
        missing, strange = self._words - words, clause.words - self._words - self._known
        elsewhere = {word for each in self._clauses for word in each.words} - words
        if missing & self._names - self._known or (missing & self._names and self._names_other(clause)):
            return False
        if missing & elsewhere and strange:
            return False
        placed = [each for wanted in self._figures for each in self._find(wanted, self._clauses)]
        if placed and not any(
            clause.sentence - 2 < each.sentence <= clause.sentence + (self._turn > 0) for each in placed
        ):
            return False
        if clause in placed and missing_here & self._with_other_figures(clause):
            return False
        return len(missing - self._known) * 2 <= len(self._words) or not strange

    def _with_other_figures(self, clause: Clause) -> set[str]:
        """Return the words of the other clauses that have figures."""
        return {word for each in self._clauses if each is not clause and find_figures(each.text) for word in each.words}

    def _names_other(self, clause: Clause) -> bool:
        return any(stem(each.lower()) not in self._words | self._known for each in _NAME.findall(clause.text))

    def _sentence(self, clause: Clause) -> set[str]:
        return {word for each in self._clauses if each.sentence == clause.sentence for word in each.words}

    def _judge_words(self) -> Judged:
        """Judge a claim without a predicate: all its words and figures in one sentence, and how that is turned."""
        placed = self._said
        for wanted in self._figures if self._turn > 0 else ():
            placed = self._find(wanted, placed) or placed
        size = len(self._words) + len(self._figures)
        least = 1.0 if size < 3 else 0.6
        full = [each for each in placed if self._is_whole(each) and self._share(each) >= least]
        full = full or [each for each in placed if self._is_carried(each)]
        right = [each for each in full if each.negative == self._negative]
        if right and len(right) == len(full):
            return Judged("holds", right[0].text)
        if full and not right and size > 1 and all(self._share(each) == 1 for each in full):
            return Judged("broken", full[0].text, "the opposite is said")
        return Judged("unsure", full[0].text if full else "")

    def _is_carried(self, clause: Clause) -> bool:
        """Return whether a clause has the claim's figures, alone of their kinds, and hardly a word of it is missing."""
        missing = self._words - clause.words - self._known
        elsewhere = {word for each in self._clauses if each is not clause for word in each.words}
        figures = find_figures(self._answer)
        alone = all(sum(is_rival(wanted, each) for each in figures) == 1 for wanted in self._figures)
        units = all(each.kind != "number" for each in self._figures)
        own = not self._names_other(clause) and not (self._words - clause.words) & elsewhere
        return bool(self._figures) and self._turn > 0 and alone and units and own and len(missing) < 2

    def _share(self, clause: Clause) -> float:
        """Return the share of the claim's words that a clause's sentence has."""
        words = self._sentence(clause) if len(self._words) > 1 else clause.words
        return len(self._words & words) / len(self._words) if self._words else 0.0


def _is_small(figure: Figure) -> bool:
    return figure.kind == "number" and figure.value is not None and abs(figure.value) <= 12


def _is_ambiguous(wanted: Figure, others: Sequence[Figure]) -> bool:
    """Return whether another figure may be the same: half a day apart, or without its sign."""
    if wanted.value is None:
        return False
    return any(each.value in (-wanted.value, wanted.value - 720, wanted.value + 720) for each in others)
