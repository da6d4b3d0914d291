"""What a text states: its clauses with their polarity, their figures, and the words that they are about.

A word of `PREDICATES` names what a clause says of its subject, with a sign: `deleted` is the negative of `kept`, `off`
of `on`, `unknown` of `known`. A negation turns the signs of its clause, so that "I did not keep it" and "it is deleted"
say the same. All other words are compared as they are, without their endings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

LONGEST = 20_000
"""Characters that are read of a text."""

# words ---------------------------------------------------------------------------------------------------------------

_CONCEPTS: Mapping[str, tuple[str, str]] = {
    "exist": (
        "keep kept remain remaining remains stay stays stayed retain retained untouched intact safe restored restore recovered"
        " recover still_there",
        "delete deleted deleting remove removed removing erase erased gone cleared discarded wiped purged trashed"
        " uninstalled dropped",
    ),
    "valid": (
        "active stands stand",
        "cancel cancelled canceled cancelling expired voided void revoked withdrawn scrapped called_off",
    ),
    "power": ("power_on enable enabled activate activated running", "power_off disable disabled deactivated inactive"),
    "know": (
        "know known knew tell find found determine determined locate located identify identified see saw available look"
        " check checked have_it lists listed",
        "unknown missing unavailable unsure lack lacking lacks absent unclear",
    ),
    "open": ("open opened unlock unlocked", "close closed shut lock locked locking"),
    "done": (
        "succeed succeeded success successful successfully complete completed went_through finished passed pass",
        "failed unsuccessful incomplete",
    ),
    "grant": (
        "approve approved accept accepted allow allowed permit permitted eligible valid possible qualifies unblocked",
        "reject rejected declined decline refused denied invalid impossible ineligible forbidden blocked block prohibited frozen",
    ),
    "send": (
        "send sent texted messaged forwarded emailed mailed notified delivered dispatched shipped told informed let_know gone_out",
        "unsent undelivered",
    ),
    "create": (
        "create created add added book booked booking_is reserve reserved place placed schedule scheduled saved save"
        " stored registered wrote written logged recorded uploaded ordered bought purchased made filed copied copy merged"
        " merge invited invite deployed signed",
        "",
    ),
    "use": ("applied apply used redeemed", "unused"),
    "include": ("included includes include", "excluded excludes extra"),
    "link": ("connected subscribed joined paired linked", "disconnected unsubscribed unpaired"),
    "run": ("started start starts resumed", "stopped stop stops paused ended"),
    "show": ("visible shown unmuted", "hidden muted"),
    "set": ("set sets", ""),
    "pay": ("pay paid charge charged billed transfer transferred", "unpaid"),
    "refund": ("refund refunded refunding reimbursed credited", "non-refundable nonrefundable"),
    "change": (
        "change changed update updated move moved moving reschedule rescheduled postponed pushed rename renamed edited"
        " replaced replace modified corrected shifted adjusted rebooked extended renewed switched swapped assigned"
        " reassigned converted",
        "unchanged same",
    ),
    "level": ("raise raised increase increased higher up", "lower lowered decrease decreased reduced reduce down"),
    "full": ("full sold_out", "empty vacant free"),
    "late": ("late delayed delay overdue behind", "on_time punctual early"),
}
PREDICATES: Mapping[str, tuple[str, int]] = {
    word: (concept, sign)
    for concept, sides in _CONCEPTS.items()
    for sign, words in zip((1, -1), sides, strict=True)
    for word in words.split()
}
_NOUNS = frozenset(
    "book charge transfer place order refund change update move power set schedule look check delay".split()
)
"""Predicates that are nouns too: they count as verbs after one of these words."""
_BEFORE_VERB = frozenset("to not can could will would did do does i you we please shall may be".split())
_STOP = frozenset(
    "a an the this that these those i you he she it we they me him her them my your his its our their mine yours is are"
    " was were be been being am do does did done have has had having will would shall should can could may might must of"
    " to in on at by for with from as into about over than then and or but so if when while there here not no any some"
    " all just now today very also too only still already which who whom what where how why please well ok okay sure yes"
    " up down out off again one ones get got let per each both more most other such own s t re ve ll d m isn aren".split()
)
_ALIKE = {
    other: first
    for group in (
        "date day", "invit invitation", "cancel cancellation", "book reservation reserv booking", "delivery deliver", "bin trash",
        "trunk boot", "ic frost", "rain shower wet", "mail e-mail", "pet dog cat animal", "medium m", "larg l", "small s",
        "big larg", "picture photo", "assign assigne", "balanc account", "arriv land", "depart leav", "phone mobile cell telephon", "wi-fi wifi wireless", "cost pric valu worth", "photo pictur", "e-mail email",
        "meet appointment", "address place", "messag text sms", "bill invoic", "trip journey", "flat apartment", "car vehicl",
        "movi film", "document fil", "light lamp", "bag luggag suitcas", "pharmacy chemist", "doctor dr physician",
        "position location", "ticket issu", "parcel packag", "battery power",
    )
    for first, *others in [group.split()]
    for other in others
}  # fmt: skip
_UNITS = frozenset(
    "metr meter kilometr kilometer km mil cm mm min minut hour second week month year kg kilo gram pound dollar euro cent usd eur"
    " gbp buck percent degre celsiu fahrenheit am pm o'clock oclock mb gb gigabyt megabyt monday tuesday wednesday thursday friday"
    " saturday sunday january february march april jun july august september october november december half quarter past"
    " morn afternoon even night two thre four fiv six seven eight nin ten eleven twelv twenty thirty us inch foot feet liter litr".split()
)
"""Words that belong to a figure."""
_IDIOMS = (
    (r"\b(?:no (?:problem|worries|need|doubt|trouble)|not only|not just|don't (?:worry|hesitate)|why not|if not)\b", " "),
    (r"\bnothing else\b[^.;,!?]*|\bno other\b[^.;,!?]*|\bnot .{0,30}\bother\b[^.;,!?]*", " "),
    (r"^(?:no(?=[,.!:])|yes|sure|okay|ok|of course|certainly|absolutely|done|alright)[,.!:]? ", ""),
    (r"\b(?:failed|unable|refused|refuses|forgot|fails|impossible|declined) to\b", "not"),
    (r"\b(?:wasn't|was not|am not|'m not|isn't|is not|not) able to\b", "not"),
    (r"\b(?:can't|cannot|can not|won't|\w+n't|never|none|nobody|nothing|neither|nor|without|hardly)\b", "not"),
    (r"\bnot (?:\w+ )?(?:more|less|later|earlier|longer|heavier) than\b|\bno (?:more|less|later|earlier) than\b", " "),
    (r"\bno longer (?=in|on|there|exist|part|listed|among|show)", "is deleted "),
    (r"\bno longer\b|\bno\b(?! ?\.? ?\d)", "not"),
    (r"\b(?:managed|was able|were able|able) to\b", " "),
    (r"\b(?:turn|switch|shut|power)(?:s|ed|ing|ned|ning)?\b((?: [\w'-]+){0,6}?) (on|off)\b", r"\1 power_\2"),
    (r"\b(is|are|was|were|be|now|'s|stays?|remains?|still|both|currently|not|already) off\b(?! (?:by|from))", r"\1 power_off"),
    (r"\b(is|are|was|were|be|now|'s|stays?|remains?|still|both|currently|not|already) on\b"
     r"(?=$|[.,;!)]| (?:now|again|already|at|for|as|before|until|in the))", r"\1 power_on"),
    (r"\btoo late to\b|\bheld off\b|\bholding off\b|\brefrained from\b|\bavoided\b", "not"),
    (r"\bcalled off\b", "called_off"), (r"\bgone out\b|\bwent out\b", "gone_out"), (r"\bstill there\b", "still_there"),
    (r"\bfully booked\b|\bsold out\b|\ball taken\b|\bare taken\b", "sold_out"), (r"\brun out\b", "expired"),
    (r"\bon time\b", "on_time"),
    (r"\bwent through\b", "went_through"),
    (r"\blet (?:him|her|them|\w+) know\b", "let_know"),
    (r"\bnot (?:yet )?(?:have|has|had)(?= (?:a|an|any|the|your|access|his|her|their|that|enough|its)\b)", "not have_it"),
    (r"\b(?:have|has|had) not(?= (?:\w+ )?(?:number|access|address|information|record|way|tool|date|idea)\b)",
     "not have_it"),
    (r"\bset up\b", "created"), (r"\bhow much time\b|\bfor how long\b", "how long"),
)  # fmt: skip
_SUBSTITUTES = [(re.compile(pattern, re.I), to) for pattern, to in _IDIOMS]
_UNASSERTED = re.compile(
    r"\b(?:i|we)(?:'ll| will| would|'d| could| can| may| should|'m going to| am going to| are going to)\b(?! not)"
    r"|\b(?:you|it|they|that|this) (?:would|could|may|might|should)\b(?! not)|\blet me\b|\bshall i\b|\bif you\b|\bonce (?:you|i|that|it)\b|\bplan(?:ning)? to\b|\bwant(?:s|ed)? to\b"
    r"|\btry(?:ing)? to\b|\babout to\b|\bgoing to\b|\bready to\b|\bmaybe\b|\bperhaps\b|\bprobably\b|\bmight\b"
    r"|\bwould (?:be|have)\b|\bcould be\b|\bshould be\b",
    re.I,
)
_FUTURE = re.compile(r"\bwill\b|'ll\b|\bonce\b|\bas soon as\b", re.I)
FRAGMENT = 3
"""Words of a part that is no clause of its own: it is stated where the one before it is."""
_QUOTED = re.compile(r"(?<=\w[,:] )\"[^\"\n]*\"")
_SENTENCE = re.compile(r"(?<=[.!?;])[\"')\]]*\s+|\n+")
_CLAUSE = re.compile(
    r"[()\u2014]|,(?= (?:i|you|he|she|it|we|they|this|that|there|the|your|my|so|as|no|not|please|then|now)\b)|:(?!\d)| [-\u2013] |\b(?:but|however|although|though|because|since|while|yet|so|and|whereas"
    r"|except|unless|until|which|instead of|rather than|where)\b",
    re.I,
)
_WORD = re.compile(r"[^\W\d_](?:[\w'-]*[^\W_])?")
_CLEAN = str.maketrans(
    {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "*": "", "`": "", "#": " ", "\u00a0": " "}
)
_DOTTED = re.compile(r"\b([ap])\.m\.?|\b(e)\.g\.|\b(i)\.e\.|\b(Mr|Mrs|Ms|Dr|No|St|approx)\.(?= )")


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence.

    Args:
        text: As it is written.
        sentence: The number of its sentence.
        words: What it is about, without endings.
        signs: By concept of `PREDICATES`, 1 or -1 for each of its words, turned by a negation.
        negative: Whether it is negated.
        asserted: Whether it is stated: False in questions, promises, offers and guesses.
        question: Whether its sentence asks.
        future: Whether it is still to come.
    """

    text: str
    sentence: int
    words: frozenset[str]
    signs: Mapping[str, frozenset[int]] = field(hash=False)
    negative: bool
    asserted: bool
    question: bool
    future: bool


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, list items among them, without Markdown."""
    text = _QUOTED.sub(lambda found: found[0].replace("?", ""), text.translate(_CLEAN))
    plain = _DOTTED.sub(lambda found: next(filter(None, found.groups())) + ("m" if found[1] else ""), text)
    parts = (
        re.sub(r"^\s*(?:[-\u2022]|\d{1,2}[.)](?=\s))\s*", "", part).strip() for part in _SENTENCE.split(plain[:LONGEST])
    )
    return [part for part in parts if any(map(str.isalnum, part))]


@lru_cache(maxsize=512)
def read_clauses(text: str) -> tuple[Clause, ...]:
    """Return the clauses of a text in their order."""
    return tuple(
        clause for number, sentence in enumerate(split_sentences(text)) for clause in _read_sentence(sentence, number)
    )


def _read_sentence(sentence: str, number: int) -> Iterator[Clause]:
    question = sentence.rstrip("\"') ").endswith("?")
    start, stated = 0, not question
    for end in [*(found.span() for found in _CLAUSE.finditer(sentence)), (len(sentence), len(sentence))]:
        part, start = sentence[start : end[0]].strip(), end[1]
        if not any(map(str.isalnum, part)):
            continue
        plain = f" {part}"
        for pattern, to in _SUBSTITUTES:
            plain = pattern.sub(to, plain.strip())
        tokens = [found[0].lower() for found in _WORD.finditer(plain)]
        negated = "not" in tokens
        signs: dict[str, set[int]] = {}
        used: set[str] = set()
        for before, word in zip(["to", *tokens], tokens, strict=False):
            base = word if word in PREDICATES else word.removesuffix("s")
            if base in PREDICATES and (base not in _NOUNS or before in _BEFORE_VERB):
                concept, sign = PREDICATES[base]
                used.add(word)
                signs.setdefault(concept, set()).add(-sign if negated else sign)
        fixed = {concept: frozenset(each) for concept, each in signs.items()}
        words = frozenset(_topics(word for word in tokens if word not in used))
        asserted = not question and not _UNASSERTED.search(plain) and (stated or len(tokens) > FRAGMENT)
        stated = asserted
        yield Clause(part, number, words, fixed, negated, asserted, question, bool(_FUTURE.search(part)))


def _topics(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        one = stem(word)
        if word not in _STOP and one not in _STOP and one not in _UNITS and len(one) > 1 and not word[-1].isdigit():
            yield _ALIKE.get(one, one)


def stem(word: str) -> str:
    """Return a word without its ending: `reminders`, `reminder's` and `reminder` are one."""
    word = word.removesuffix("'s").replace("'", "")
    for ending, least in (("ies", 4), ("ied", 4), ("ing", 6), ("ed", 5), ("es", 5), ("s", 4)):
        if word.endswith(ending) and len(word) >= least and not word.endswith("ss"):
            return (word[: -len(ending)] + ("y" if ending in ("ies", "ied") else "")).rstrip("e")
    return word.rstrip("e") if len(word) > 3 else word
