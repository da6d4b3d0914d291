"""What a text states: its clauses with their mood and polarity, and the words that they are about.

A word of `PREDICATES` names what a clause says of its subject, with a sign: `deleted` is the negative of `kept`, `off`
of `on`, `unknown` of `known`. A negation turns the signs of the predicates after it, so that "I did not keep it" and
"it is deleted" say the same; that a limit was not lowered does not say that it was raised. All other words are compared
as they are, without their endings and by groups of synonyms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
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


_CONCEPTS = """
exist: keep kept remain stay retain untouched intact safe restore recover / delete remove erase gone clear discard wipe
purge trash uninstall drop unassigned; valid: active valid stands / cancel expire expiry void revoke withdraw withdrawn
scrap terminate called_off; power: power_on enable activate running / power_off disable deactivate inactive; know: know known knew tell find found determine locate identify see have_it exist available in_stock / unknown
missing lack unclear unavailable out_of_stock; open: open unlock / close shut lock; done: succeed success successful
complete went_through worked pass / fail unsuccessful incomplete crash abort; grant: approve accept allow permit grant
eligible unblocked unfrozen confirm / reject decline refuse deny ineligible forbidden block freeze frozen prohibit;
send: send sent text message forward email mail notify deliver inform let_know gone_out / unsent undelivered; ship: ship
dispatch; add: add insert save store record register enter create schedule set enrol enroll; book: book reserve; order:
order place purchase bought buy | sell sold; upload: upload; copy: copy duplicate; merge: merge | split; invite: invite
/ uninvited disinvited; assign: assign assignee reassign; deploy: deploy release; use: apply applied redeem; request:
request; play: play; convert: convert; include: include contain cover / exclude; link: connect subscribe join pair link
/ disconnect unsubscribe unpaired; run: start resume restart begin began / stop pause end finish; arm: arm / disarm
unarmed; show: show shown visible unmute publish / hide hidden mute; pay: pay paid charge bill / unpaid; transfer:
transfer; refund: refund reimburse / nonrefundable; return: returned; exchange: exchange swap; change: change update
move modify edit correct shift adjust switch push reschedule postpone rebook / unchanged; rename: rename; renew: renew
extend; level: raise increase rise rose risen climb | lower decrease reduce fell fallen; size: biggest largest tallest
longest highest most | smallest shortest lowest least fewest; full: full sold_out occupied / empty vacant free; late:
late delay overdue | on_time punctual early; depart: depart leave takeoff | arrive land; moon: rises | sets; win: win
won | lose lost; checked_in: checked_in; ready: ready; archive: archive; share: share; install: install; print: print;
owe: owe; earn: receive
"""
"""Each with its predicates; after `/` what holds where they do not, after `|` what cannot hold beside them."""


def _read_concepts() -> Iterator[tuple[str, tuple[str, int, str]]]:
    for name, _, words in (each.partition(":") for each in _CONCEPTS.split(";")):
        concept, contrary = name.strip(), f"{name.strip()}~"
        for number, side in enumerate(re.split("[/|]", words)):
            named = (contrary, 1, concept) if number and "|" in words else (concept, -1 if number else 1, contrary)
            yield from ((stem(word), named) for word in side.split())


PREDICATES: Mapping[str, tuple[str, int, str]] = dict(_read_concepts())
"""By stem: the concept, its sign, and the one that cannot hold beside it."""
_NOUNS = frozenset(map(stem, """
book charge transfer place order refund change update move schedule delay email text message copy duplicate exchange
request record store plan link pass look play return correct end complete full present set assignee land leave free
most safe issue bill register release cover share print fall rise lock bill record split mail
""".split()))  # fmt: skip
"""Predicates that may be something else: they count after one of `_BEFORE_VERB`, and beside one of `_LIGHT`."""
_BEFORE_VERB = frozenset("""
to not can could will would did do does i you we please shall may it's is are was were be been being get still has have
it they that's now and already
""".split())  # fmt: skip
_LIGHT = {"made", "make", "making", "issued", "issue", "processed", "process", "initiated", "can"}
"""Beside one of these the noun is the predicate: `a transfer was made`, `a refund is possible`."""
_STOP_TEXT = """
a an the this that these those i you he she it we they me him her them my your his its our their mine yours is are was
were be been being am do does did done doing have has had having will would shall should can could may might must of to
in on at for by with from as into about over than then and or but so if when while there here not no any some just now
today very also too already which who whom whose what where how why please well ok okay sure yes up down out off again
one ones get got gets getting let per each more other such own s t re ve ll d m isn aren issued processed initiated
process made make makes making both successfully currently really actually right unfortunately sorry afraid thanks
thank still yet user customer passenger guest patient client assistant agent person people need want like go goes went
going come comes new total hi hello great good nice fine enjoy happy glad course problem worry all next upon via
within us because since though although however except even else much many way it's i'm i've you've you're we've
that's there's exactly approximately roughly nearly around set_it is_now local time possible able says say said
file_it stand stands something anything everything nothing called named entire whole altogether together normally
usually always tonight tomorrow yesterday morning instead anymore additional further extra full short long quite
simply regular normal due respectively fully ever soon later earlier early ago moment minute ways order_it following
according above below amount amounts amounting coming standing cover covered run runs running holds hold contain
contains keeps give given gave ask asked wish wished request_it use using used far away precisely
confirmation current existing target back nicely remaining left lasts lasted lasting best suit suits almost works work seem seems look
looks take takes taking stays put side name until till before after
"""
_STOP = frozenset(_STOP_TEXT.split())
_SYNONYMS = """
writ wrot written; day date; invit; delivery deliver; trash bin; trunk boot; mail e-mail; larg big l; small s; medium m;
picture photo pic imag; balanc account; phon mobil cell telephon cellular smartphon; wifi wi-fi wireless wlan; cost pric
worth; meet appoint session; invoic; trip journey; flat apart; car vehicl; movi film; light
lamp; bag luggag suitcas baggag; pharmacy chemist; doctor dr physician; posit location whereabout gps; parcel packag
shipment; tv television; heat heater thermostat; basket cart; last latest recent; freeze frost; rain shower rainy wet;
storag spac; display; password passcod; fee surcharg; event entry; ticket bug; dry; pet animal;
discount rebat; likely likelihood chanc probability odd; messag text sms; month monthly; year yearly annual annually;
week weekly; tyr tir; setting option; hour hourly; shop; fly flight travel; distanc far; weigh weight heavy; night overnight; deadlin du;
reason why; coordinat latitud longitud; tool function
"""
"""Words in groups that are one."""
_PLACE_WORDS = "list calendar inbox system app drive screen item thing tool function order file status"
"""Words that may be added: they say where or of what sort something is."""
_UNIT_WORDS = """
metre meter kilometre kilometer km mile cm mm min minute hour second week month year kg kilo kilogram gram pound dollar euro
cent usd eur gbp buck percent degree celsius fahrenheit c f am pm o'clock mb gb gigabyte megabyte monday tuesday
wednesday thursday friday saturday sunday january february march april june july august september october november
december half quarter past afternoon evening night two three four five six seven eight nine ten eleven twelve
twenty thirty forty fifty sixty inch foot feet liter litre day date once twice time st nd rd th point zero dozen couple
first
"""
_IDIOMS = (
    (r"\b(?:from|in|to) (?:your|the|my) contacts\b", " "),
    (r"\b(?:no (?:problem|worries|need|doubt|trouble|matter|issues?|idea why)|not to worry|not a problem|not only"
     r"|not just|don't (?:worry|hesitate)|why not|if not)\b", " "),
    (r"\bnothing else\b[^.;,!?]*|\bno other\b[^.;,!?]*|\bnot (?:\w+ ){0,3}anything else\b[^.;,!?]*|\bnot (?:\w+ ){1,4}other\b[^.;,!?]*", " "),
    (r"^(?:no(?=[,.!:])|yes|sure|okay|ok|of course|certainly|absolutely|done|all set|alright)\b[,.!:]? ?", ""),
    (r"\b(?:at|with|for|in|by) no\b", "without"), (r"\b(?:can't|couldn't) (?:wait|agree|be happier)\b", " "),
    (r"\bi can (?:confirm|see|tell you|assure you|report)\b(?: that)?", "i"),
    (r"\b(?:free|available|open) (?=(?:time |appointment )?(?:slot|appointment|time|room|date|seat)s?\b)", ""),
    (r"\b(?:is|are|was|were)?(?:n't| not) (?:possible|allowed|permitted)\b|\bimpossible\b(?! to)", "notall can"),
    (r"\b(?:possible|allowed|permitted)\b", "can"),
    (r"\b(?:failed|unable|refused|refuses|forgot|fails|impossible|declined|too late) to\b", "not"),
    (r"\b(?:wasn't|was not|am not|'m not|isn't|is not|not) able to\b|\bno way (?:to|of)\b", "not"),
    (r"\bheld off\b|\bholding off\b|\brefrained from\b|\bavoided\b|\bno longer (?:active|valid"
     r"|available)\b", "not valid"),
    (r"\bno longer (?=in|on|there|exist|part|listed|among|show)", "is deleted "),
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
    (r"\bout of stock\b", "out_of_stock"), (r"\bon time\b", "on_time"), (r"\b(?:go|goes|gone|went) through\b", "went_through"),
    (r"\blet (?:him|her|them|\w+) know\b", "let_know"), (r"\bchecked (?:\w+ ){0,2}in\b"
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
    r"\b(?:i|you|we|they|it|that|will|can|may|must|not|has|have|to|'ve|'ll|'d) (?:only |just |now |currently )?([a-z]{3,})"
    r"|(?:is|are|'s|'re) (?:currently |now )?([a-z]+ing)\b|^([a-z]{3,}) (?=(?:(?:with|on|for|to) )?(?:it\b|the\b|your\b|some\b|an?\b|[$€£]?\d))|[a-z] (?!is|was|has)([a-z]{3,}s) (?=at\b|for\b|[$€£]?\d)",
    re.I,
)
"""Where a verb stands: after a pronoun or auxiliary, first in an order, or before a figure."""
_FUTURE = re.compile(r"\bwill\b|'ll\b|\bgoing to\b", re.I)
_LIMITS = re.compile(
    r"\b(?:only|except|apart from|other than|instead of|rather than|partly|used to|supposed|anything but|far from"
    r"|all but|as if|instead|by mistake|wrong|different"
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
_LINE = re.compile(r"^([^:]{1,40}): (on|off|open|closed|locked|unlocked|sent|paid|done)$", re.I)
_CLAUSE = re.compile(
    r",? and (?=(?:\w+ed|kept|sent|left|put|set|made|lands?|leaves?) (?:the|your|my|it|them|an?|all|both|at|on|to)\b)|"
    r"[()\u2014]|,? (?:and|as|so|then) (?=(?:i|you|he|she|it|we|they|this|that|there|the|your|my|not|is|was|has"
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
            read = [replace(each, tail=f"{each.tail}, {part}") if each is read[-1] else each for each in read]
        read.append(clause)
    for clause in read:
        if clause.words or clause.signs or find_figures(clause.text):
            yield replace(clause, mood="asked" if asked else clause.mood, limited=clause.limited or guessed)


def _read_clause(part: str, number: int) -> Clause:
    plain = part
    for pattern, to in _SUBSTITUTES:
        plain = pattern.sub(to, plain.strip())
    quoted = {place for found in _TITLE.finditer(plain) for place in range(*found.span())}
    found = [*_WORD.finditer(plain)]
    tokens = [f"={each[0].lower()}" if each.start() in quoted else each[0].lower() for each in found]
    verbs = [_is_verb(before, word) for before, word in zip(["", *tokens], tokens, strict=False)]
    if not any(verbs) and _LIGHT & {*tokens}:
        verbs = [stem(word) in PREDICATES for word in tokens]
    signs, excluded, words = _turned(tokens, verbs)
    return Clause(
        text=part,
        sentence=number,
        words=tuple(words),
        signs={concept: frozenset(each) for concept, each in signs.items()},
        excluded=frozenset(excluded),
        negated=frozenset(word for word, turned in words.items() if turned),
        negative=bool({"not", "nothing", "notall"} & {*tokens}),
        mood="open" if _OPEN.search(plain) else "stated",
        mild=not _OPEN.search(_MILD.sub(" ", plain)),
        future=bool(_FUTURE.search(part)),
        limited=bool(_LIMITS.search(part)),
        names=names_of(part) & {*words},
        acts=frozenset(topic_of(each.lower()) for found in _ACT.finditer(part) for each in found.groups() if each),
    )


def _turned(tokens: list[str], verbs: list[bool]) -> tuple[dict[str, set[int]], set[str], dict[str, bool]]:
    """Return the signs by concept, the concepts that cannot hold, and the words with whether they are negated."""
    signs: dict[str, set[int]] = {}
    excluded: set[str] = set()
    words: dict[str, bool] = {}
    turn = 1
    for place, (word, verb) in enumerate(zip(tokens, verbs, strict=True)):
        last = any(verbs[:place]) and not any(verbs[place:])  # "I sent nothing"
        if word == "notall" or (word == "nothing" and last):
            signs = {concept: {-sign for sign in each} for concept, each in signs.items()}
            words = {topic: not turned for topic, turned in words.items()}
        if word in ("not", "without", "nothing", "notall"):
            turn = -turn
        elif verb and turn > 0 and _is_unsaid(tokens[place - 1] if place else "", word):
            continue
        elif verb:
            concept, sign, contrary = PREDICATES[stem(word)]
            signs.setdefault(concept, set()).add(sign * turn)
            if turn > 0:
                excluded.add(contrary)
            if stem(word) in ("text", "email"):  # who is texted is sent a text
                words[topic_of(word)] = turn < 0
        elif topic := topic_of(word.removeprefix("=")):
            words[topic] = turn < 0
    return signs, excluded, words


def _is_unsaid(before: str, word: str) -> bool:
    """Return whether a predicate is only named: `to cancel it`, `cancelling it`, `the cancelled order`."""
    if word.endswith("ing"):
        return before not in _BEFORE_ING and before[-2:] not in ("'m", "'s", "re")
    return before == "to" or (word.endswith("ed") and before in ("the", "a", "your", "my", "any", "this", "that"))


def _is_verb(before: str, word: str) -> bool:
    one = stem(word)
    if one not in PREDICATES or (one in _STOP and word in _STOP):
        return False
    noun = (one in _NOUNS and not word.endswith("ed")) or _NOMINAL.search(word)
    return not noun or before in _BEFORE_VERB or before[-3:] in ("'ve", "'ll")


def concepts_of(text: str) -> set[str]:
    """Return the concepts that a text names, whether as predicates or not."""
    plain = text
    for pattern, to in _SUBSTITUTES:
        plain = pattern.sub(to, plain)
    return {PREDICATES[one][0] for word in _WORD.findall(plain.lower()) if (one := stem(word)) in PREDICATES}


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


_ALIKE = {stem(other): stem(group.split()[0]) for group in _SYNONYMS.split(";") for other in group.split()[1:]}
_PLACES = frozenset(_ALIKE.get(stem(word), stem(word)) for word in _PLACE_WORDS.split())
_EMPTY = _STOP | {*_UNIT_WORDS.split(), "nothing", "notall"}
