"""Whether an answer makes a claim, denies it or asks for it: decided by rule where its sentences are plain.

What the clauses that are about a claim say decides. Where there is none, the answer may still say something else in
its place, or nothing that could be meant by it; all else is unsure, and for the role `claim_judge`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from ...values.quantities import Figure, find_figures, has_numeral, is_said, is_same, may_say, rivals_of, spell_figures
from ...values.statements import Clause, concepts_of, names_of, read_clauses, split_sentences
from ...values.words import DEEDS, WORDS, kin_of, opponents_of, phrase
from .comparison import BARE, STILL, WITHOUT, Comparison
from .questions import OFFER, Judged, Verdict, judge_question

Kind: TypeAlias = Literal["says", "denies", "asks"]

_POLITE = re.compile(
    r"(?:(?:sure|of course|certainly|ok(?:ay)?|absolutely|with pleasure|hello|hi|thanks|great)\b\W*)+", re.I
)
_DONE = re.compile(r"\W*(?:all )?(?:done|sorted|set|taken care of|finished|completed)\b[.!]", re.I)
_YES_NO = re.compile(r"\W*(?:(yes|yep|yeah|correct|indeed)|no|nope)\b(?! (?:problem|worries|doubt))", re.I)
_POLAR = re.compile(r"(?:is|are|am|was|were|do|does|did|can|could|may|has|have|will)\b", re.I)
_HIM = re.compile(r"\b(?:him|her|them|his|their)\b", re.I)
_UNABLE = re.compile(r"\b(?:can't|cannot|can not|couldn't|could not|unable|not able|no way|haven't|didn't)\b", re.I)
_PROMISE = phrase(WORDS["phrases"]["promise"])
_TAKEN_BACK = phrase(WORDS["phrases"]["taken_back"])
_REPORT = phrase(WORDS["phrases"]["report"])
_NEGATIVE = phrase(WORDS["phrases"]["negative"])
"""What may be meant as a denial: more than denies anything."""
_MEANS = {"via", "on", "using", "through", "with", "by", "at", "in", "from"}
_THERE = re.compile(r"(?:but |and )?there (?:is|are|was|were)\b|i(?:'ve)? found\b", re.I)
_OF_THEM = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|\d+) (?:out )?of\b|\b(?:end|start|begin)s? (?:in|with)\b",
    re.I,
)
"""What may be said by telling each, or all: `Ann and Bob came, Cid did not`, 555-0177 for a number that ends in 77."""
_FORMER = re.compile(r"\b(?:old|former|previous|original|earlier)\b", re.I)
_COMPLEMENT = re.compile(r"\b(?:is|are|was|were|has|have|had|can|will|to|from|by|at|in|on|with|for)\b", re.I)


class _Read(NamedTuple):
    """How an answer stands to a part of a claim.

    It is `replaced` where another figure, name or deed stands in its place, `absent` where it is only promised, is said
    of something else, or not at all.
    """

    stance: Literal["stated", "denied", "replaced", "absent", "unsure"] = "unsure"
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
    return Judged(verdict, sentence, reads[0].reason, contradicts=bool(stances & {"denied", "replaced"}))


def find_nearest(claim: str, answer: str) -> str:
    """Return the sentence of an answer that shares most words with a claim."""
    words = {word for each in read_clauses(claim) for word in (*each.words, *each.signs)}
    shared = {
        sentence: len(words & {word for each in read_clauses(sentence) for word in (*each.words, *each.signs)})
        for sentence in split_sentences(answer)
    }
    return max(shared, key=lambda each: shared[each], default="")


def _read(part: Comparison) -> _Read:
    """Return how the answer stands to the part, by the first rule that knows."""
    return next((read for rule in _RULES if (read := rule(part))), _Read())


# what its clauses say -----------------------------------------------------------------------------------------------


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


def _is_of_another(part: Comparison, clause: Clause) -> bool:
    """Return whether a clause names another than the request, of which another clause says another figure."""
    asked = {each for request in part.requests for each in request.names} - part.part.names
    others = [each for each in part.stated if each is not clause and asked & {*each.words} - {*clause.words}]
    strange = clause.names & part.strange(clause)
    return bool(strange) and any(part.rivals(wanted, each.text) for each in others for wanted in part.figures)


def _by_other_figure(part: Comparison) -> _Read | None:
    """Find a clause that says another figure in the place of the part's, or an answer that does not say a new one."""
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
        if new and (none or wanted.kind != "number" or _is_special(wanted)):
            return _Read("absent", "", f"{wanted.text} is not said")
    return None


def _is_special(figure: Figure) -> bool:
    """Return whether a number is none of those that stand in any text."""
    return (figure.value or 0) > 12 or bool((figure.value or 0) % 1)


def _find_alternative(part: Comparison, wanted: Figure) -> str:
    """Return a sentence that says a figure or another one of its kind: `284 dollars or 270 dollars`."""
    for sentence in map(spell_figures, split_sentences(part.answer)):
        figures = find_figures(sentence)
        for one in (
            each.text for each in figures if is_same(wanted, each) or (wanted.value and has_numeral(wanted, each))
        ):
            others = "|".join(re.escape(each.text) for each in part.rivals(wanted, sentence))
            if others and re.search(rf"{re.escape(one)}\W*(?:\w+\W+){{0,3}}?or (?:\w+ ){{0,3}}?(?:{others})", sentence):
                return sentence
    return ""


def _may_tell_figure(part: Comparison, clause: Clause) -> bool:
    """Return whether a figure of a clause may be one of the part's things."""
    if any(is_said(each, clause.text) for each in part.figures):
        return True
    if not part.strange(clause) and not part.new and all(each.kind != "number" for each in part.figures):
        return True
    shared = part.words & {*clause.words} or not part.strange(clause)
    return bool(shared and (part.touches(clause) or not part.words or BARE.match(clause.text)))


def _by_other_name(part: Comparison) -> _Read | None:
    """Find a clause that names another in the place of a name that is not said."""
    words, names = {word for each in part.clauses for word in each.words}, part.part.names
    absent = {each for each in names if not any(each[:5] == word[:5] for word in words)}
    for clause in part.stated if absent else ():
        if _HIM.search(clause.text):
            continue
        whole = absent == names and not part.missing(clause) - names and part.turn_of(clause) > 0
        partly = part.agrees(clause) and names & clause.names
        near = part.touches(clause) or any(is_said(each, clause.text) for each in part.figures)
        other = {
            each for each in clause.names & part.strange(clause) if _may_replace(part, absent, each, clause)
        } and near
        if other and (whole or partly or absent - part.known):
            return _Read("replaced", clause.text, f"{' '.join(sorted(absent))} was to be said")
    return None


def _may_replace(part: Comparison, names: set[str], other: str, clause: Clause) -> bool:
    """Return whether another name stands where one of the part's would, and not for a means: `via WhatsApp`."""
    before = re.search(rf"(\w+) \W?{re.escape(other)}", clause.text, re.I)
    own = (re.search(rf"(\w+) \W?{re.escape(each)}", part.part.text, re.I) for each in names)
    return not before or before[1].lower() not in _MEANS - {each[1].lower() for each in own if each}


def _by_new_figures(part: Comparison) -> _Read | None:
    """Find a clause that says all new figures of the part, and in which nothing else is named."""
    new = [each for each in part.new if each.kind not in ("number", "duration") or _is_special(each)]
    if not new or part.part.negative or any(part.rivals(each, part.answer) for each in part.figures):
        return None
    return next((_Read("stated", each.text) for each in part.stated if part.says_new_figures(each)), None)


# what it says in its place, or leaves out ---------------------------------------------------------------------------


def _by_yes_or_done(part: Comparison) -> _Read | None:
    """Read a yes, a no or a `done` as an answer to a request that has all of the part."""
    requests = [each for each in part.requests if not part.missing(each)]
    turn = part.turn_of(requests[0]) if len(requests) == len(part.requests) == 1 else 0
    if not turn or requests[0].negative or part.new:
        return None
    if any(each.limited or (each.negative and turn > 0) for each in part.clauses) and _YES_NO.match(part.answer):
        return None
    if requests[0].mood == "asked":
        found = _YES_NO.match(part.answer) if _POLAR.match(requests[0].text) else None
        return _Read("stated" if (turn > 0) == bool(found[1]) else "denied", found[0].strip()) if found else None
    done = _DONE.match(part.answer) and not part.stated and turn > 0
    return _Read("stated", part.answer[:80]) if done else None


def _by_refusal(part: Comparison) -> _Read | None:
    """Find a clause that in general words says that it could not be done."""
    near = [each for each in part.stated if part.touches(each) or part.opposes(each)]
    unable = [each for each in near if _UNABLE.search(each.text)]
    refused = [each for each in unable if not part.strange(each) - each.acts]
    if part.event and len(part.requests) == 1:  # of what the request was about in other words
        refused = refused or [each for each in near if part.opposes(each) and _may_be_it(part, each)]
    if refused and all(each.negative or part.opposes(each) for each in near) and not part.part.negative:
        return _Read("denied", refused[0].text, "it is refused")
    return None


def _may_be_it(part: Comparison, clause: Clause) -> bool:
    """Return whether a clause names nothing else by a name or figure."""
    rivals = any(rivals_of(each, clause.text, [part.part.text]) for each in part.figures)
    return not (rivals or clause.names & part.strange(clause) or clause.limited)


def _by_still(part: Comparison) -> _Read | None:
    """Find a clause that says of the part's things that they are as they were."""
    told = not part.event or part.part.negative or any(map(part.agrees, part.stated))
    for clause in () if told else part.stated:
        shared = part.words & {*clause.words} or any(is_said(each, clause.text) for each in part.figures)
        if shared and STILL.search(clause.text) and not clause.negative:
            kept = 1 in part.part.signs.get("exist", ())
            return _Read("stated", clause.text) if kept else _Read("denied", clause.text, "it is as it was")
    return None


def _by_silence(part: Comparison) -> _Read | None:
    """Find that what was to be done is only promised or offered, or that nothing is stated at all."""
    if _DONE.match(part.answer) or _YES_NO.match(part.answer) or part.part.negative:
        return None
    promised = [each for each in part.clauses if each.mood != "stated" or each.future]
    offered = [each for each in promised if _PROMISE.search(each.text) and _names_event(part, each)]
    told = [each for each in part.stated if not each.negative and (each.words or each.signs)]
    if (part.event or part.part.signs) and offered and not told:
        return _Read("absent", offered[0].text, "it is only promised or offered")
    rest = [each for each in split_sentences(part.answer) if not (each.endswith("?") or OFFER.search(each))]
    if not part.stated and not any(map(part.touches, part.clauses)) and all(map(_POLITE.fullmatch, rest)):
        return _Read("absent", part.answer[:80], "nothing is stated")
    return None


def _names_event(part: Comparison, clause: Clause) -> bool:
    """Return whether a clause names the part's predicate, and nothing that is strange."""
    shared, signs = part.words & {*clause.words}, part.part.signs.keys()
    named = signs & concepts_of(clause.text) if signs else shared - part.known
    return bool(named and (shared or not part.strange(clause) - clause.acts))


def _by_other_thing(part: Comparison) -> _Read | None:
    """Find a clause that says it of another thing, or an answer without a new name that it was to end on."""
    said = {word for each in part.clauses for word in each.words}
    rivals = {each for word in part.words - said for each in opponents_of(word)}
    for clause in part.stated:
        beside = clause.negative or WITHOUT.search(part.part.text)
        if part.agrees(clause) and rivals & {*clause.words} and not beside:
            return _Read("absent", clause.text, f"it is said of {' '.join(sorted(rivals & {*clause.words}))}")
    verb = _COMPLEMENT.search(part.part.text)
    named = names_of(part.part.text[verb.end() :]) & part.part.names if verb else frozenset()
    new = {each for each in named - part.known if not any(each[:4] == word[:4] for word in said)}
    if new and not _HIM.search(part.answer) and not part.part.negative:
        return _Read("absent", "", f"{' '.join(sorted(new))} is not said")
    return None


def _by_other_deed(part: Comparison) -> _Read | None:
    """Find a clause that tells of the part's things that something else was done with them."""
    deeds = {(name, *signs) for name, signs in part.part.signs.items()} & DEEDS
    told = {each for clause in part.stated for each in clause.signs}
    if len(deeds) != 1 or not part.event or part.part.negative or told & part.kin:
        return None
    if any(name in kin_of(each) for each in told for name, _ in deeds):
        return None
    for clause in part.stated:
        said = [is_said(each, clause.text) for each in part.figures]
        shared = part.words & {*clause.words} or any(said)
        done = {(each, *signs) for each, signs in clause.signs.items()} & DEEDS
        beside = clause.negative or clause.limited or _FORMER.search(clause.text)
        if shared and done and not (beside or (said and all(said))):
            return _Read("replaced", clause.text, "something else was done")
    return None


def _by_no_report(part: Comparison) -> _Read | None:
    """Find that nothing in the answer tells of an event, but that it was not to be or is still to come."""
    told = _DONE.match(part.answer) or _YES_NO.match(part.answer) or _OF_THEM.search(part.part.text)
    if not part.event or part.part.negative or told:
        return None
    others = [each for each in part.clauses if each.mild and not each.negative and part.words & {*each.words}]
    if any(_may_report(part, each) for each in (*part.stated, *others)):
        return None
    if any(is_said(each, clause.text) for each in part.figures for clause in part.clauses):
        return None
    negative = [each for each in part.stated if each.negative]
    gone = any(-1 in signs for signs in part.part.signs.values())
    if gone and not all(_UNABLE.search(each.text) for each in negative):
        return None  # `it won't come` may say that it was cancelled
    same = [each for each in negative if part.kin & each.signs.keys() or not each.signs]
    if near := [each for each in same if not part.strange(each) - each.acts]:
        return _Read("denied", near[0].text, "nothing says that it was done")
    if negative or any(each.mood != "stated" for each in part.clauses):
        return _Read("absent", part.answer[:80], "nothing says that it was done")
    return None


def _may_report(part: Comparison, clause: Clause) -> bool:
    shared = part.words & {*clause.words} and not _THERE.match(clause.text)
    near = part.kin & clause.signs.keys() or shared or not clause.words
    return not clause.negative and bool(near or _REPORT.search(clause.text))


def _by_no_denial(part: Comparison) -> _Read | None:
    """Find that an answer has no word of denial where something is to be denied."""
    unknown = -1 in part.part.signs.get("know", ()) and not part.denied
    if not (unknown or part.denied != part.part.negative) or "?" in part.answer or _NEGATIVE.search(part.answer):
        return None
    against = [(name, -sign) for name, signs in part.part.signs.items() for sign in signs]
    turned = any(sign in each.signs.get(name, ()) for each in part.clauses for name, sign in against)
    if turned or not part.clauses or any(each.mood != "stated" for each in part.clauses):
        return None
    return _Read("stated" if part.denied else "absent", part.answer[:80], "nothing is denied")


_RULES: Sequence[Callable[[Comparison], _Read | None]] = (
    _by_correction, _by_clauses, _by_other_figure, _by_other_name, _by_new_figures, _by_yes_or_done, _by_refusal,
    _by_still, _by_silence, _by_other_thing, _by_other_deed, _by_no_report, _by_no_denial,
)  # fmt: skip
