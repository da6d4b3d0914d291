"""Candidate conditions on a call, as a check of the contract language and as bits over the rows."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial, reduce
from itertools import combinations
from operator import and_, or_
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from ..schemas.subschemas import is_number
from .terms import MISSING, TESTS, Term, are, bits, build_terms, derive, quote, types_of

Kind = Literal[
    "existence", "membership", "flag", "documented", "comparison", "sign", "equality", "constant", "set", "conjunction"
]
TRUSTED: tuple[Kind, ...] = ("existence", "membership", "flag", "comparison", "documented")
"""Kinds that may refuse a call once they are established; the others were refuted too often (facts of the issue)."""

TIERS: dict[Kind, int] = {
    "existence": 0, "membership": 0, "flag": 0, "documented": 1, "comparison": 1, "sign": 1,
    "equality": 2, "constant": 3, "set": 4, "conjunction": 5,
}  # fmt: skip
"""The order of trial; only conditions of the same or an earlier tier are rivals."""

ITEM = "one"
"""The variable for an item in checks of a list."""

MOST_PAIRS, MOST_NUMBERS, MOST_SEEN, MOST_WORDS, LEAST_TEXTS, MANY, STEM = 40, 24, 12, 6, 3, 2, 5
_IDENTIFIER = re.compile(r"(?=.*\d)(?=.*[^\W\d])[\w:.@-]+")
"""Words with digits, such as identifiers and times, of which new ones are to be expected."""

UNMET = 0.02
"""Share of values seen once (an estimate of unseen values) below which a set counts as closed."""

Documented = Mapping[str, Sequence[Any]]
"""Constants that the tools' documents name, by field; under `PROSE` those of the description."""

PROSE = "#"


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """A check that is true or false for rows.

    Args:
        check: The check.
        kind: Its form.
        true: Bits of the rows for which it is true.
        known: Bits of the rows on which it can be evaluated.
        cost: Its description length.
        terms: Its terms.
        guarded: Whether the terms must not be None.
        needs: Further conditions for its evaluation.
        spoken: Of a conjunction: the terms that a part compares with words.
        parts: The parts of a conjunction.
    """

    check: str
    kind: Kind
    true: int
    known: int
    cost: int
    terms: tuple[Term, ...] = ()
    guarded: bool = True
    needs: tuple[str, ...] = ()
    spoken: tuple[Term, ...] = ()
    parts: tuple[Condition, ...] = ()

    @property
    def words(self) -> tuple[Term, ...]:
        """The terms that it compares with constants; it says nothing about other constants."""
        is_word = self.kind in ("documented", "constant", "set") and (" == " in self.check or " in [" in self.check)
        return self.terms if is_word else self.spoken

    @property
    def fails(self) -> int:
        """Bits of the rows for which it is known to be false."""
        return self.known & ~self.true

    @property
    def guards(self) -> list[str]:
        """The conditions for its evaluation that some rows lack, in order."""
        some = (guard for term in self.terms for guard in (*term.guards, *(term.given if self.guarded else ())))
        return list(dict.fromkeys([*some, *self.needs]))

    def speaks(self, about: Collection[str]) -> int:
        """Return how many of these arguments (`args.id`) and words it mentions."""
        return len(words_in(self.check).intersection(about)) + sum("." in each and each in self.check for each in about)

    @property
    def level(self) -> int:
        """The order of trial by terms: counts and times are tried after plain values."""
        return int(any(term.of in ("count", "time") for term in self.terms))

    @property
    def is_open(self) -> bool:
        """Whether it is true of constants that were never seen."""
        return self.kind in ("constant", "set") and (" != " in self.check or self.check.startswith("not "))

    @property
    def whole(self) -> str:
        return " and ".join([*self.guards, f"({self.check})"])

    def within(self, rows: int) -> Condition:
        return replace(self, true=self.true & rows, known=self.known & rows)

    def negated(self) -> Condition:
        """Return the opposite, of the same kind."""
        check = _OPPOSITE.get(self.check.split(" ")[1], "") if self.check.count(" ") == 2 else ""
        first, _, last = self.check.split(" ") if check else ("", "", "")
        text = f"{first} {check} {last}" if check else f"not ({self.check})"
        return replace(self, check=text, true=self.fails)


@lru_cache(maxsize=100_000)
def words_in(text: str) -> frozenset[str]:
    """Return the stems of the words in a text or in an expression's names."""
    return frozenset(word.lower().rstrip("s")[:STEM] for word in re.findall(r"[A-Z]?[a-z]{2,}", text))


def conjoined(some: Sequence[Condition], rows: int) -> Condition:
    """Return a conjunction, which is known in all of these rows: a part that cannot be evaluated is false."""
    if len(some) == 1 and not some[0].guards:
        return some[0]
    true, cost = reduce(and_, (one.true for one in some)), sum(one.cost for one in some)
    words, whole = tuple(term for one in some for term in one.words), " and ".join(one.whole for one in some)
    return Condition(whole, "conjunction", true, rows, cost, spoken=words, parts=tuple(some))


_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def places(rows: int) -> Iterator[int]:
    while rows:
        low = rows & -rows
        yield low.bit_length() - 1
        rows ^= low


class Form(NamedTuple):
    """A form of conditions on values that pass `tests`; its text has a placeholder for each expression."""

    text: str
    kind: Kind
    tests: tuple[str, ...]
    holds: Callable[..., Any]
    cost: int = 0
    guarded: bool = True

    def of(self, *terms: Term) -> Condition:
        pairs = [*zip(terms, self.tests, strict=True)]
        known = reduce(and_, (term.where(test) for term, test in pairs))
        columns = (term.numbers if test == "number" else term.values for term, test in pairs)
        true, cost = bits(map(self.holds, *columns)) & known, self.cost + sum(term.cost for term in terms)
        check = self.text.format(*(term.text for term in terms))
        return Condition(check, self.kind, true, known, cost, terms, guarded=self.guarded)


def _is_in(key: Any, holder: Any) -> bool:
    return str(key) in holder if isinstance(holder, dict) else isinstance(holder, list) and key in holder


SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

GIVEN = Form("{} is not None", "existence", ("there",), lambda value: value is not None, guarded=False)
FILLED = Form("len({}) > 0", "existence", ("sized",), bool, cost=1)
FLAG = Form("{}", "flag", ("given",), lambda value: value is True)
COUNT = Form("{} != 0", "flag", ("number",), bool)
MEMBER = Form("{} in {}", "membership", ("key", "holder"), _is_in)
EQUAL = Form("{} == {}", "equality", ("key or none", "key or none"), operator.eq, guarded=False)
COMPARED = [Form(f"{{}} {sign} {{}}", "comparison", ("number", "number"), SIGNS[sign]) for sign in ("<=", "<")]
SIGNED = [Form(f"{{}} {sign} 0", "sign", ("number",), partial(SIGNS[_TURNED[sign]], 0)) for sign in (">", ">=")]


def build_conditions(terms: Sequence[Term]) -> list[Condition]:
    """Return conditions over these terms, and their opposites, without duplicates."""
    known, keys = numbers(terms), [term for term in terms if term.where("key")]
    holders = [term for term in terms if term.of != "argument" and term.where("holder")]
    plain = [term for term in holders if term.of == "state" and term.where("flat") == term.where("there")]
    holders += derive(plain, "{}.values()", dict, lambda value: [*value.values()])
    pairs = [*combinations(known, 2)]
    products = [combine(a, b, "*") for a, b in pairs if "argument" in (a.of, b.of)][:MOST_PAIRS]
    pairs += [(a, b) for a in products for b in known if b.text not in a.text]
    whole = [term for term in terms if (given := term.where("given")) and given == term.where("flag")]
    counts = [
        term for term in (*known, *products) if term.of != "argument" and term.where("counts") == term.where("number")
    ]
    equal = (EQUAL.of(*pair) for pair in combinations(keys[:MOST_PAIRS], 2) if any(term.of != "state" for term in pair))
    found = [
        *(GIVEN.of(term) for term in terms if term.where("there") != term.where("given")),
        *(one for one in map(FILLED.of, terms) if one.fails),
        *map(FLAG.of, whole),
        *(MEMBER.of(key, holder) for holder in holders for key in keys if holder.text not in key.text),
        *(form.of(*pair) for pair in pairs for form in COMPARED),
        *map(COUNT.of, counts),  # "there are any" is a flag
        *(form.of(term) for term in (*known, *products) for form in SIGNED),
        *(one for one in equal if one.true.bit_count() > 1),
    ]
    both = (one for each in found for one in (each, each.negated()))
    return list({one.check: one for one in both if one.known}.values())


def are_any(counts: Sequence[Term]) -> Iterator[Condition]:
    for one in (COUNT.of(term) for term in counts if term.where("counts") == term.where("number")):
        yield from (one, one.negated()) if one.known else ()


def of_items(many: Term, states: Sequence[Any]) -> Iterator[Condition]:
    """Yield conditions that every item of a list argument satisfies: those over its items as rows of their own."""
    rows = [(at, item) for at, some in enumerate(many.values) if isinstance(some, list) for item in some]
    listed, owners = many.where("list"), [at for at, _ in rows]

    def rows_of(items: int) -> int:
        return reduce(or_, (1 << owners[at] for at in places(items)), 0)

    every = (1 << len(rows)) - 1
    terms = build_terms([item for _, item in rows], [states[at] for at in owners], "state", ITEM) if rows else []
    for one in build_conditions(terms):
        if one.kind in TRUSTED and any(ITEM in term.text for term in one.terms):
            known = listed & ~rows_of(every & ~one.known)
            true = known & ~rows_of(every & ~one.true)
            check, needs = (f"all({text} for {ITEM} in {many.text})" for text in (one.check, " and ".join(one.guards)))
            guards = (*many.given, *([needs] if one.guards else []))
            yield Condition(check, one.kind, true, known, one.cost + many.cost, (many,), guarded=False, needs=guards)


def numbers(terms: Sequence[Term]) -> list[Term]:
    """Return the terms that are numbers, simple ones first; booleans are excluded, though the test accepts them."""
    return [term for term in terms if term.where("number") and not term.where("flag")][:MOST_NUMBERS]


def combine(a: Term, b: Term, sign: str) -> Term:
    pairs = zip(a.values, b.values, strict=True)
    values = [SIGNS[sign](x, y) if is_number(x) and is_number(y) else MISSING for x, y in pairs]
    return Term(f"({a.text} {sign} {b.text})", values, a.cost + b.cost + 1, "lookup", (a, b))


def constants(
    terms: Sequence[Term],
    failed: int,
    lawful: int,
    documented: Documented = MappingProxyType({}),
    about: Collection[str] = (),
) -> list[Condition]:
    """Return conditions with a constant that separate successful from failed rows, or mention words of the error."""
    given, fields = ([term for term in terms if term.of == of] for of in ("argument", "state"))
    sums = [combine(a, b, "+") for a in numbers(given) for b in numbers(fields)][:MOST_PAIRS]
    found: list[Condition] = []
    sides = list(places(failed)), list(places(lawful))
    lengths = derive(given, "len({})", dict | list | str, len)
    names = {key.text for term in terms if term.of == "lookup" for key in term.keys}
    for term in [*(term for term in terms if term.text not in names), *lengths, *sums]:
        bad, good = ([value for at in rows if (value := term.values[at]) is not MISSING] for rows in sides)
        if bad and good:
            found += _seen(term, bad, good, documented, about) if term.of != "count" else ()
            if term.where("number") and not term.where("flag"):
                few, many = ([value for value in some if is_number(value)] for some in (bad, good))
                found += _threshold(term, few, many, documented.get(PROSE, ()))
    return found


def _seen(
    term: Term, bad: list[Any], good: list[Any], documented: Documented, about: Collection[str]
) -> Iterator[Condition]:
    """Yield the words that a term has, and sets: the document's, and those of one side with repeated values."""
    own = documented.get(term.text.rpartition(".")[2], ())
    counts, odd = (Counter(quote(value) for value in some if _is_scalar(value)) for some in (good, bad))
    known = {quote(value): value for value in (*good, *bad) if _is_scalar(value)}
    once, odd_once = (sum(count == 1 for count in some.values()) for some in (counts, odd))
    closed = [*([counts] if once <= UNMET * len(good) else ()), *([odd] if 2 * odd_once <= len(odd) else ())]
    sides = [some for some in closed if 1 < len(some) <= MOST_SEEN]
    apart = [[known[each] for each in some] for some in sides] if not counts.keys() & odd.keys() else []
    apart = [some for some in apart if not any(_is_single(term, value) for value in some)]
    few = known.values() if len(known) <= MOST_WORDS else ()
    words = [[value] for value in few if words_in(str(value)).intersection(about) or not _is_single(term, value)]
    for few in [*words, *([list(own)] if len(own) > 1 else ()), *apart]:
        said = sorted(map(quote, few))
        check = f"{term.text} in [{', '.join(said)}]" if len(few) > 1 else f"{term.text} == {said[0]}"
        is_own = few[0] in own if len(few) == 1 else few == [*own]
        kind: Kind = "documented" if is_own else "constant" if len(few) == 1 else "set"
        form = Form("", kind, ("scalar",), lambda value, few=few: _is_scalar(value) and value in few, len(few), False)
        one = replace(form.of(term), check=check)
        yield from (one, one.negated())


def _is_single(term: Term, value: Any) -> bool:
    """Return whether a value identifies a single thing: an identifier, or a value that one looked-up thing has."""
    if isinstance(value, str) and _IDENTIFIER.fullmatch(value):
        return True
    if term.of != "lookup" or not term.keys:
        return False
    rows = [at for at, each in enumerate(term.values) if each == value]
    return len({tuple(str(key.values[at]) for key in term.keys) for at in rows}) < MANY


def _threshold(term: Term, bad: list[Any], good: list[Any], named: Sequence[Any]) -> Iterator[Condition]:
    """Yield limits: those of the successful rows, and the numbers in the tool's document."""
    if not (bad and good):
        return
    edges: list[tuple[str, Any, Kind]] = [(">=", min(good), "constant"), ("<=", max(good), "constant")]
    for sign, edge, kind in [*edges, *((sign, one, "documented") for one in named for sign in _TURNED)]:
        if not all(SIGNS[sign](value, edge) for value in bad):
            form = Form(f"{{}} {sign} {quote(edge)}", kind, ("number",), partial(SIGNS[_TURNED[sign]], edge), cost=2)
            yield form.of(term)
    low, high = min(good), max(good)
    if min(bad) < low and high < max(bad):
        text = f"({{0}} >= {quote(low)} and {{0}} <= {quote(high)})"
        yield Form(text, "constant", ("number",), lambda value: low <= value <= high, cost=3).of(term)


_is_scalar = TESTS["scalar"]


def documented_in(schema: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the constants in a schema with their property names, and those quoted in its descriptions."""
    if isinstance(schema, dict):
        own = [*schema.get("enum", []), *(schema[key] for key in ("const", "minimum", "maximum") if key in schema)]
        quoted = re.findall(r"""["']([^"']{1,40})["']""", str(schema.get("description", "")))
        yield from ((name, value) for value in (*own, *quoted) if _is_scalar(value))
        for key, inner in schema.get("properties", {}).items():
            yield from documented_in(inner, key)
        yield from documented_in(schema.get("items"), name)


def numbers_in(*texts: str) -> list[int | float]:
    """Return the numbers in a tool's texts; without 0, which a sign covers."""
    found = {float(one) for text in texts for one in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w])", text)} - {0.0}
    return [int(one) if one.is_integer() else one for one in sorted(found)][:MOST_SEEN]


def forms_of(values: Sequence[Any], text: str) -> Iterator[str]:
    """Yield the rules that an argument keeps in these rows: its type, sign, length, characters that it lacks."""
    given = [value for value in values if value is not MISSING]
    if not given:
        return
    yield are(text, *types_of(given))
    some = [value for value in given if is_number(value)]
    if some and min(some) >= 0 and not any(isinstance(value, bool) for value in given):
        yield f"({text} {'>' if min(some) > 0 else '>='} 0 if isinstance({text}, (int, float)) else True)"
    texts = [value for value in given if isinstance(value, str)]
    signs = [f"{quote(sign)} not in {text}" for sign in "/*\n" if texts and not any(sign in value for value in texts)]
    if len({len(value) for value in texts}) == 1 and len(set(texts)) >= LEAST_TEXTS:
        signs.append(f"len({text}) == {len(texts[0])}")
    yield from (f"({sign} if isinstance({text}, str) else True)" for sign in signs)
    for kind, empty in ((str, "''"), (list, "[]")):
        if any(isinstance(value, kind) for value in given) and kind() not in given:
            yield f"{text} != {empty}"
