"""What a text states: its clauses with their mood and polarity, and the words that they are about.

A word of `PREDICATES` names what a clause says of its subject, with a sign: `deleted` is the negative of `kept`, `off`
of `on`, `unknown` of `known`. A negation turns the signs of the predicates after it, so that "I did not keep it" and
"it is deleted" say the same; that a limit was not lowered does not say that it was raised. All other words are compared
as they are, without their endings and by groups of synonyms.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

from .quantities import find_figures

LONGEST = 20_000
"""Characters that are read of a text."""
Mood: TypeAlias = Literal["stated", "open", "asked"]
"""`open` is what is promised, offered, guessed, tried, or holds on a condition."""

_ENDINGS = (
    ("ations", 4, ""), ("ation", 4, ""), ("ions", 4, ""), ("ion", 4, ""), ("ments", 3, ""), ("ment", 3, ""),
    ("als", 4, ""), ("al", 4, ""), ("ies", 2, "y"), ("ied", 2, "y"), ("ating", 4, ""), ("ated", 4, ""), ("ates", 4, ""),
    ("ate", 4, ""), ("ing", 3, ""), ("ed", 3, ""), ("es", 3, ""), ("s", 3, ""),
)  # fmt: skip


def stem(word: str) -> str:
    """Return a word without its ending: `cancel`, `cancelled`, `canceling` and `cancellation` are one."""
    word = word.removesuffix("'s").replace("'", "")
    for ending, least, to in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least and not word.endswith("ss"):
            word = word[: -len(ending)] + to
            break
    word = word.rstrip("e") if len(word) > 3 else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


_WORDS: Mapping[str, str] = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def _read_concepts() -> Iterator[tuple[str, tuple[str, int]]]:
    for name, _, words in (each.partition(":") for each in _WORDS["concepts"].split(";")):
        concept = name.strip()
        for number, side in enumerate(re.split("[/|]", words)):
            named = (f"{concept}{_CONTRARY}", 1) if number and "|" in words else (concept, -1 if number else 1)
            yield from ((stem(word), named) for word in side.split())


_CONTRARY = "~"
"""Ends the name of a concept that cannot hold beside the one of its name without."""
PREDICATES: Mapping[str, tuple[str, int]] = dict(_read_concepts())
"""By stem: the concept and its sign."""
_NOUNS = frozenset(map(stem, _WORDS["nouns"].split()))
_BEFORE_VERB, _LIGHT, _ARTICLES = (frozenset(_WORDS[name].split()) for name in ("before_verb", "light", "articles"))
_EMPTY = frozenset(f"{_WORDS['empty']} {_WORDS['units']}".split())
_ALIKE = {stem(other): stem(words[0]) for words in map(str.split, _WORDS["synonyms"].split(";")) for other in words[1:]}


def _read_rows(name: str) -> dict[str, tuple[str, ...]]:
    rows = (each.partition(":") for each in _WORDS[name].split(";"))
    return {row.strip(): tuple(words.split()) for row, _, words in rows}


def _topic(word: str) -> str:
    return _ALIKE.get(stem(word), stem(word))


_KIN = _read_rows("kin")
_IMPLIED = {kind: frozenset(map(_topic, words)) for kind, words in _read_rows("implied").items()}
_RIVALS = [frozenset(map(_topic, words.split())) for words in _WORDS["rivals"].split(";")]
DEEDS = {(each.rstrip("-"), -1 if each.endswith("-") else 1) for each in _WORDS["deeds"].split()}
_PLACES = frozenset(map(_topic, _WORDS["places"].split()))
_IDIOMS = (
    (r"\bno longer (?=in|on|there|exist|part|listed|among|show)", "is deleted "),
    (r"\b(?:from|in|to) (?:your|the|my) contacts\b", " "),
    (r"\b(?:no (?:problem|worries|need|doubt|trouble|matter|issues?|idea why)|not to worry|not a problem|not only"
     r"|not just|don't (?:worry|hesitate)|why not|if not)\b", " "),
    (r"\bnothing else\b[^.;,!?]*|\bno other\b[^.;,!?]*"
     r"|\bnot (?:\w+ ){0,3}anything else\b[^.;,!?]*|\bnot (?:\w+ ){1,4}other\b[^.;,!?]*", " "),
    (r"^(?:no(?=[,.!:])|yes|sure|okay|ok|of course|certainly|absolutely|done|all set|alright)\b[,.!:]? ?", ""),
    (r"\b(?:at|with|for|in|by) no\b", "without"), (r"\b(?:can't|couldn't) (?:wait|agree|be happier)\b", " "),
    (r"\bi can (?:confirm|see|tell you|assure you|report)\b(?: that)?", "i"),
    (r"\b(?:free|available|open) (?=(?:time |appointment )?(?:slot|appointment|time|room|date|seat|place|spot)s?\b)",
     ""),
    (r"\b(is|are|'s|'re) free\b(?! (?:of|for))", r"\1 available"), (r"\bsigned (?:\w+ )?up\b", "enrolled"),
    (r"\b(?:is|are|was|were)?(?:n't| not) (?:possible|allowed|permitted)\b|\bimpossible\b(?! to)", "notall can"),
    (r"\b(?:possible|allowed|permitted)\b", "can"),
    (r"\b(?:failed|unable|refused|refuses|forgot|fails|impossible|declined|too late) to\b", "not"),
    (r"\b(?:wasn't|was not|am not|'m not|isn't|is not|not) able to\b|\bno way (?:to|of)\b", "not"),
    (r"\bheld off\b|\bholding off\b|\brefrained from\b|\bavoided\b|\bno longer (?:active|valid"
     r"|available)\b", "not valid"),
    (r"\bnot (?:\w+ )?(?:more|less|later|earlier|longer|heavier) than\b|\bno (?:more|less|later|earlier) than\b", " "),
    (r"\b(?:can't|cannot|can not|won't|\w+n't|never|hardly|no longer)\b", "not"),
    (r"\b(?:none|nobody|neither|nor|no one|no(?! ?\.? ?\d))\b", "nothing"),
    (r"\b(?:managed|was able|were able) to\b", " "),
    (r"\b(?:turn|switch|shut|power)(?:s|ed|ing|ned|ning)?\b((?: [\w'-]+){0,6}?) (on|off)\b", r"power_\2 \1"),
    (r"\b(is|are|was|were|be|now|'s|stays?|remains?|still|both|currently|not|already) (on|off)\b"
     r"(?=$|[.,;:!)]| (?:now|again|already|at level|as before|before|until|for now|in the))", r"\1 power_\2"),
    (r"\bcalled off\b", "called_off"), (r"\b(?:gone|went) out\b", "gone_out"), (r"\brun out\b", "expired"),
    (r"\bfully booked\b|\bsold out\b|\b(?:all|is|are|was|already) taken\b(?! (?:by|on|with|once|twice|at|from|in"
     r"|to)\b)", "sold_out"), (r"\bin stock\b", "in_stock"),
    (r"\bout of stock\b", "out_of_stock"), (r"\bon time\b", "on_time"),
    (r"\b(?:go|goes|gone|went) through\b", "went_through"),
    (r"\blet ((?:\w+ ){1,3}?)know\b", r"let_know \1"), (r"\bcheck(?:ed)? ((?:\w+ ){0,3}?)out to\b", r"lent \1 to"),
    (r"\bis (?:now |already )?(?:scheduled|planned|set) (?:for|to|at)\b", "is now at"),
    (r"\bi(?:'ll| will) remind you\b|\byou(?:'ll| will) be reminded\b|\byou(?:'ll| will) (?:get|have) a reminder\b",
     "I have set the reminder"), (r"\bi(?:'ll| will) wake you\b", "I have set the alarm"),
    (r"(?<!n't )(?<!not )\b(?:needs?|has|have) to\b(?! be)", "must"), (r"\bon (?:its|their) way\b", "shipped"),
    (r"\bon loan\b", "lent"), (r"\breopened\b", "open"), (r"\bchecked (?:\w+ ){0,2}in\b"
     r"|\bcheck (?:\w+ ){0,2}in\b", "checked_in"),
    (r"\btak(?:es|ing) off\b|\btook off\b", "takeoff"), (r"\bstill (?:there|here)\b", "kept"),
    (r"\bturn(?:ed)?((?: [\w']+){0,3}) down\b", r"declined\1"), (r"\bset up\b", "created"),
    (r"\b(?:touch(?:es)? down|gets? in|be there(?= in| at| by| on))\b", "arrives"), (r"\b(?:go|went) up\b", "rose"),
    (r"\bturned up\b", "found"), (r"\bwhere (?:you|i|we) (?:are|am)\b", "location"), (r"\b(?:go|went) down\b", "fell"),
    (r"\b(?:open|served|runs?|lasts?|good) (?:un)?till? (?=\d|[a-z]+ ?(?:in|pm|am|o'clock))", "closes at "),
    (r"\b(?:br(?:ing|ought)|g[eo]t) (\w+(?: \w+)?) back\b", r"restored \1"),
    (r"\b(?:is|are) back\b(?! (?:on|in|at))", "is restored"),
    (r"\bstill (?:one of|on|in|among|listed)\b(?! (?:the way|stock|time))", "kept in"),
    (r"\bshould (?=arrive|be (?:there|here|with))|\b(?:scheduled|expected|due|planned) to\b", "will "),
    (r"\b(?:not|nothing)(?: yet)? (?:have|has|had|having)\b(?! (?:been|to)\b)|\b(?:have|has"
     r"|had) nothing\b", "not have_it"),
    (r"\bnot (?:look up|work out)\b", "unknown"),
)  # fmt: skip
_SUBSTITUTES = [(re.compile(pattern, re.I), to) for pattern, to in _IDIOMS]
_OPEN = re.compile(
    r"\b(?:i|we)(?:'ll| will| would|'d| could| can| may| should|'m going to| am going to| are going to)\b(?! not|'t)"
    r"|\b(?:would|could|can|(?-i:may)|might|should|must"
    r"|you (?:asked|wanted|want|said|told|mentioned|requested)|request(?:ed)? to)\b(?! not|'t| no longer| never| only)"
    r"|\b(?:let me|shall|if|whether|once|unless|as soon as|before (?:i|we))\b"
    r"|^(?:in order )?to (?!be\b)"
    r"|^(?:close|open|cancel|delete|remove|send|book|add|move|change|keep|pay|lock|unlock|start|stop|enable|disable"
    r"|power_\w+|set) (?:it|them|the|your|this|that|a)\b"
    r"|\b(?:plan(?:ning)?|wants?|wanted|trying|try|tried|about|going|ready|needs?|have|has|had|yet|still|waiting"
    r"|due|supposed) to\b"
    r"|\b(?:would|could|should) (?:be|have)\b|\bplease\b",
    re.I,
)
_MILD = re.compile(r"(?<!\bi )(?<!\bwe )\b(?:can|may|will|must)\b|(?<=you|hey)'ll\b|(?<=\bit)'ll\b", re.I)
_ACT = re.compile(
    r"\b(?:i|you|we|they|it|\w+n't|that|will|can|may|must|not|has|have|to|'ve|'ll|'d) (?:only |just |now )?([a-z]{3,})"
    r"|(?:is|are|'s|'re) (?:currently |now )?([a-z]+ing)\b"
    r"|^([a-z]{3,}) (?=(?:(?:with|on|for|to) )?(?:it\b|the\b|your\b|some\b|an?\b|[$€£]?\d))"
    r"|[a-z] (?!is|was|has)([a-z]{3,}s) (?=at\b|for\b|[$€£]?\d)",
    re.I,
)
"""Where a verb stands: after a pronoun or auxiliary, first in an order, or before a figure."""
_FUTURE = re.compile(r"\bwill\b|'ll\b|\bgoing to\b", re.I)
_LIMITS = re.compile(
    r"\b(?:only|except|apart from|other than|instead of|rather than|partly|used to|supposed|anything but|far from"
    r"|(?:is|are|was|were|ran|'re|'s) out of (?!stock)|all but|as if|instead|by mistake|wrong|different"
    r"|needn't|(?:not|n't) (?:need|have) to)\b",
    re.I,
)
_GUESS = re.compile(
    r"\b(?:maybe|perhaps|probably|might|possibly|likely|imagine|pretend|wondered|i (?:believe|think|guess)|either"
    r"|one of|or"
    r"|hopefully|apparently|(?:not|n't) (?:sure|certain|true|right|correct|the case)|doubt|wish|rumou?r|thought"
    r"|believed|pretending"
    r"|previously|originally|formerly)\b",
    re.I,
)
_VERBAL = re.compile(
    r"\b(?:is|are|was|were|be|has|have|had|do|does|did|will|can|i|you|it|they|we|he|she|there|that)\b|\w'(?:s|re"
    r"|ve|ll|d)\b",
    re.I,
)
_TITLE = re.compile(r"\"[^\"\n]{1,200}\"|(?<!\w)'[^'\n]{1,100}'(?!\w)")
_QUOTED = re.compile(r"\"[^\"\n]{1,300}\"")
_SENTENCE = re.compile(r"(?<=[.!?;])[\"')\]]{0,3}\s+|\n+")
_APPOSED = re.compile(r"(?<=[a-z]), ([A-Z]\w+(?: [A-Z]\w+)+),")
_LINE = re.compile(r"^([^:]{1,40}): (on|off|open|closed|locked|unlocked|sent|paid|done)[.!]?$", re.I)
_CLAUSE = re.compile(
    r",? and (?=(?:\w+ed|kept|sent|left|put|set|made|lands?|leaves?) (?:the|your|my|it|them|an?|all|both|at|on|to)\b)|"
    r"[()\u2014]|,? and (?=[$€£]?\d[\d.,]*(?: [\w]+){0,3}? (?:is|are|was|were|will|has|have|remains?)\b)"
    r"|,? (?:and|as|so|then) (?=(?:i|you|he|she|it|we|they|this|that|there|the|your|my|not|is|was|has"
    r"|an? (?:[\w.]+ ){1,6}(?:is|are|was|were|costs?|has)"
    r"|have|are"
    r"|\w+(?:'s|'ve|'re))\b)|,(?= (?!\d))|:(?! ?[$€£]?\d)"
    r"|:(?= \d+ \w+ (?:is|are|was|were)\b)| [-\u2013] |,? \b(?:(?<!\ball )but|however|although|though|because"
    r"|since|while|yet|whereas|except|unless"
    r"|which|instead of|rather than|so)\b",
    re.I,
)
_NOMINAL = re.compile(r"(?:ions?|ments?|als?)$")
_BEFORE_ING = {"am", "is", "are", "was", "were", "be", "been", "now", "still", "already", "currently"}
_WORD = re.compile(r"[^\W\d](?:[\w'-]*[^\W_])?")
_CLEAN = str.maketrans(
    {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "*": "", "`": "", "#": " ", "\u00a0": " "}
)
_DOTTED = re.compile(r"\b([ap])\.m\.?|\b(e)\.g\.|\b(i)\.e\.|\b(Mr|Mrs|Ms|Dr|No|St|approx)\.(?= )")
_ITEM = re.compile(r"^[^\S\n]*(?:[-\u2022]|\d{1,2}[.)](?=\s))[^\S\n]*", re.M)
_NAME = re.compile(r"(?<=[\w,:\"'] )\"?([A-Z][\w'-]*[a-z])|^([A-Z][\w'-]*[a-z])(?= [A-Z])")


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence.

    Args:
        text: As it is written.
        sentence: The number of its sentence.
        words: What it is about, without endings, in their order.
        signs: By concept of `PREDICATES`, the signs of its words, turned by a negation before them.
        excluded: The concepts that cannot hold beside them.
        negated: The words that stand after a negation.
        apart: Those that it is of, up to the next predicate.
        negative: Whether it has a negation.
        mood: Whether it is stated, open or asked.
        future: Whether it is still to come.
        mild: Whether it is open only by what somebody else can, may or will do.
        limited: Whether a word such as `only` or `almost` takes something back.
        names: Those of the words that are names.
        acts: Those that stand in the place of a verb.
        tail: The text of the fragments after it, which have no verb of their own.
    """

    text: str
    sentence: int
    words: tuple[str, ...]
    signs: Mapping[str, frozenset[int]] = field(hash=False)
    excluded: frozenset[str]
    negated: frozenset[str]
    apart: frozenset[str]
    negative: bool
    mood: Mood
    future: bool
    mild: bool
    limited: bool
    names: frozenset[str]
    acts: frozenset[str]
    tail: str = ""


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, list items among them, without Markdown."""
    text = _QUOTED.sub(lambda found: found[0].replace("?", ""), text[:LONGEST].translate(_CLEAN))
    plain = _DOTTED.sub(lambda found: next(filter(None, found.groups())) + ("m" if found[1] else ""), text)
    parts = (part.strip() for part in _SENTENCE.split(_ITEM.sub("", plain)))
    return [part for part in parts if any(map(str.isalnum, part))]


@lru_cache(maxsize=256)
def read_clauses(text: str) -> tuple[Clause, ...]:
    """Return the clauses of a text in their order."""
    return tuple(
        clause for number, sentence in enumerate(split_sentences(text)) for clause in _read_sentence(sentence, number)
    )


def _read_sentence(sentence: str, number: int) -> Iterator[Clause]:
    sentence = _APPOSED.sub(r" \1", _LINE.sub(r"\1 is \2", sentence))
    asked = sentence.rstrip("\"') ").endswith("?")
    guessed = bool(_GUESS.search(sentence))
    parts: list[str] = []
    start = 0
    for end in [*(found.span() for found in _CLAUSE.finditer(sentence)), (len(sentence), len(sentence))]:
        if any(map(str.isalnum, sentence[start : end[0]])):
            colon = ":" if sentence[end[0] : end[1]] == ":" else ""
            parts.append(sentence[start : end[0]].strip(" ,()\u2014") + colon)
        start = end[1]
    read: list[Clause] = []
    for part in parts:
        clause = _read_clause(part, number)
        if read and not (clause.signs or _VERBAL.search(part)):  # a fragment of the clause before it
            clause = replace(clause, mood=read[-1].mood)
            read[-1] = replace(read[-1], tail=f"{read[-1].tail}, {part}")
        read.append(clause)
    for clause in read:
        if clause.words or clause.signs or find_figures(clause.text):
            yield replace(clause, mood="asked" if asked else clause.mood, limited=clause.limited or guessed)


def _plain(text: str) -> str:
    for pattern, to in _SUBSTITUTES:
        text = pattern.sub(to, text.strip())
    return text


def _read_clause(part: str, number: int) -> Clause:
    plain = _plain(part)
    quoted = {place for found in _TITLE.finditer(plain) for place in range(*found.span())}
    found = [*_WORD.finditer(plain)]
    tokens = [f"={each[0].lower()}" if each.start() in quoted else each[0].lower() for each in found]
    small = [not place or each[0].islower() or each[0].isupper() for place, each in enumerate(found)]
    verbs = [_is_verb(before, word) and own for before, word, own in zip(["", *tokens], tokens, small, strict=False)]
    if not any(verbs) and _LIGHT & {*tokens}:
        verbs = [stem(word) in PREDICATES for word in tokens]
    signs, words, apart = _turned(tokens, verbs)
    return Clause(
        text=part,
        sentence=number,
        words=tuple(words),
        signs={concept: frozenset(each) for concept, each in signs.items()},
        excluded=frozenset(_contrary_of(name) for name, each in signs.items() if 1 in each),
        negated=frozenset(word for word, turned in words.items() if turned),
        apart=frozenset(apart),
        negative=bool({"not", "nothing", "notall"} & {*tokens}),
        mood="open" if _OPEN.search(plain) else "stated",
        mild=not _OPEN.search(_MILD.sub(" ", plain)),
        future=bool(_FUTURE.search(plain)),
        limited=bool(_LIMITS.search(part)),
        names=names_of(part) & {*words},
        acts=frozenset(topic_of(each.lower()) for found in _ACT.finditer(part) for each in found.groups() if each),
    )


_TEXTED = {"text", "texted", "texting", "replied", "answered", "messaged", "emailed"}
"""Predicates that name their object: who is texted is sent a text."""


def _turned(tokens: list[str], verbs: list[bool]) -> tuple[dict[str, set[int]], dict[str, bool], set[str]]:
    """Return the signs by concept, the words with whether they stand after a negation, and those that it is of.

    A negation is of what follows it up to a predicate: in `I have not sent it to Ann` of the sending, not of Ann.
    """
    signs: dict[str, set[int]] = {}
    words: dict[str, bool] = {}
    apart: set[str] = set()
    turn, taken, anew = 1, False, True
    last_verb = max((place for place, verb in enumerate(verbs) if verb), default=len(verbs))
    for place, (word, verb) in enumerate(zip(tokens, verbs, strict=True)):
        if word == "notall" or (word == "nothing" and place > last_verb):  # "I sent nothing"
            signs = {concept: {-sign for sign in each} for concept, each in signs.items()}
            words = {topic: not turned for topic, turned in words.items()}
        if word in ("not", "without", "nothing", "notall"):
            turn, taken, anew = -1 if anew else -turn, False, False
        elif word in _ANEW:
            anew = True
        elif verb and turn > 0 and _is_unsaid(tokens[place - 1] if place else "", word):
            continue
        elif verb:
            concept, sign = PREDICATES[stem(word)]
            signs.setdefault(concept, set()).add(sign * turn)
            taken = True
        if (not verb or word in _TEXTED) and (topic := topic_of(word.removeprefix("="))):
            words[topic] = turn < 0
            apart |= {topic} if turn < 0 and not taken else set()
    return signs, words, apart


_ANEW = {"and", "i", "we", "you", "it", "they", "or"}
"""Words after which a negation is the first one again."""


def _contrary_of(concept: str) -> str:
    return concept.removesuffix(_CONTRARY) if concept.endswith(_CONTRARY) else concept + _CONTRARY


def _is_unsaid(before: str, word: str) -> bool:
    """Return whether a predicate is only named: `to cancel it`, `cancelling it`, `the cancelled order`."""
    if word.endswith("ing"):
        return before not in _BEFORE_ING and before[-2:] not in ("'m", "'s", "re")
    return before == "to" or (word.endswith("ed") and before in ("the", "a", "your", "my", "any", "this", "that"))


def _is_verb(before: str, word: str) -> bool:
    one = stem(word)
    if one not in PREDICATES or word in _EMPTY:
        return False
    if word in _TIMED:
        return before not in _ARTICLES
    noun = (one in _NOUNS and not word.endswith("ed")) or _NOMINAL.search(word)
    return not noun or before in _BEFORE_VERB or before[-3:] in ("'ve", "'ll")


_TIMED = {"leaves", "lands", "ends", "rises", "returns", "runs"}


def concepts_of(text: str) -> set[str]:
    """Return the concepts that a text names, whether as predicates or not."""
    return {PREDICATES[one][0] for word in _WORD.findall(_plain(text).lower()) if (one := stem(word)) in PREDICATES}


def topic_of(word: str) -> str:
    """Return a word as it is compared: without its ending, one for its synonyms; empty for one that says nothing."""
    word = word.partition("'")[0] or word
    one = stem(word)
    if {word, word.removesuffix("s")} & _EMPTY or word[-1].isdigit():
        return ""
    return _ALIKE.get(one, one)


def names_of(text: str) -> frozenset[str]:
    """Return the names in a text: capital words but for one that only starts a sentence."""
    return frozenset(topic_of(each.lower()) for pair in _NAME.findall(text) for each in pair if each) - {""}


def is_place(word: str) -> bool:
    """Return whether a word may be added."""
    return word in _PLACES


_SMALL_WORDS = [
    [re.compile(r"(?<![\w'])(?:[B-HJ-Z]|A(?! [a-z]))(?![\w'&])")],
    *([re.compile(rf"\b(?:{each})\b", re.I) for each in group.split("/")] for group in (
        "below|under|at most|less than/above|over|at least|more than", "before/after|past",
        "new/old|still|former", "today|tonight|this (?:morning|afternoon|evening)/tomorrow/yesterday",
        "(?:per|an?|each|every) hour|hourly/(?:per|an?|each|every) (?:day|night)|daily|nightly"
        "/(?:per|an?|each|every) week|weekly/(?:per|an?|each|every) month|monthly"
        "/(?:per|an?|each|every) year|yearly|annual(?:ly)?",
    )),
]  # fmt: skip
"""Small words of which one cannot stand for another: letters, comparisons, periods."""


def is_crossed(one: str, other: str) -> bool:
    """Return whether two texts differ in a small word: `from M to S` and `from S to M`, `above` and `below`."""
    (ends, starts), (others, begins) = _ends_of(one), _ends_of(other)
    moved = ends and others and not ends & others and others & {*re.findall(r"\w+", one.lower())}
    marks = ((_marks(one, each), _marks(other, each)) for each in _SMALL_WORDS)
    return bool(ends & begins or starts & others or moved) or any(a and b and not a & b for a, b in marks)


def _marks(text: str, sorts: Sequence[re.Pattern[str]]) -> set[int | str]:
    found = [(number, hit[0]) for number, each in enumerate(sorts) for hit in each.finditer(text)]
    return {hit if len(sorts) == 1 else number for number, hit in found}


def _ends_of(text: str) -> tuple[set[str], set[str]]:
    """Return the words after `to`, and those after `from`."""
    ends, starts = (re.findall(rf"\b(?:{each}) \W?([^\W\d]\w*)(?! \d)", text.lower()) for each in ("to|into", "from"))
    return {*ends}, {*starts}


def kin_of(concept: str) -> Sequence[str]:
    """Return the concepts that may stand for one: who has renamed it has changed it."""
    return _KIN.get(concept, ())


def implied_by(kind: str) -> frozenset[str]:
    """Return the words that need not be said beside a figure of a kind, such as `price` beside euros."""
    return _IMPLIED.get(kind, frozenset())


def opponents_of(word: str) -> frozenset[str]:
    """Return the words that cannot stand for one: `brother` for `sister`."""
    return frozenset(other for group in _RIVALS if word in group for other in group if other != word)


def nouns_of(text: str) -> set[str]:
    """Return the words that stand where a noun does: first, or behind an article or preposition."""
    tokens = [each[0].lower() for each in _WORD.finditer(text)]
    behind = (not place or {*tokens[max(place - 3, 0) : place]} & _ARTICLES for place in range(len(tokens)))
    return {topic_of(token) for token, noun in zip(tokens, behind, strict=True) if noun} - {""}
