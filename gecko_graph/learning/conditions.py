"""Conditions: what may hold of a call, as a check of the contract language and as bits over the rows."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from operator import and_, or_
from types import MappingProxyType
from typing import Any, Literal

from .terms import MISSING, TESTS, Term, are, bits, derive, is_key, is_number, quote, test_of

Kind = Literal[
    "existence", "membership", "flag", "documented", "comparison", "sign", "equality", "constant", "set", "conjunction"
]
TRUSTED: tuple[Kind, ...] = ("existence", "membership", "flag", "comparison", "documented")
"""Kinds that may refuse a call once they are established: the others were refuted too often (facts of the issue)."""

TIERS: dict[Kind, int] = {
    "existence": 0, "membership": 0, "flag": 0, "documented": 1, "comparison": 1, "sign": 1,
    "equality": 2, "constant": 3, "set": 4, "conjunction": 5,
}  # fmt: skip
"""What is tried first: a rival of a later tier is none."""

MOST_PAIRS, MOST_NUMBERS, MOST_SEEN, MOST_WORDS, LEAST_TEXTS = 40, 24, 12, 6, 3
UNMET = 0.02
"""Share of values met once, which is how often a new one is met, below which a set is taken for closed."""

Documented = Mapping[str, Sequence[Any]]
"""Constants that the tools' documents name, by the name of the field that may have them."""


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """A check that rows fulfil or not.

    Args:
        check: The check.
        kind: Its form.
        true: Bits of the rows in which it holds.
        known: Bits of those in which it can be evaluated.
        cost: How long a description it is.
        terms: What it speaks of.
        guarded: Terms that must not be none.
    """

    check: str
    kind: Kind
    true: int
    known: int
    cost: int
    terms: tuple[Term, ...] = ()
    guarded: bool = True

    @property
    def fails(self) -> int:
        """Bits of the rows in which it is known not to hold."""
        return self.known & ~self.true

    @property
    def guards(self) -> list[str]:
        """What must hold so that it can be evaluated, of what some rows lack, in its order."""
        some = (guard for term in self.terms for guard in (*term.guards, *(term.given if self.guarded else ())))
        return list(dict.fromkeys(some))

    def names(self, about: Collection[str]) -> bool:
        """Return whether it speaks of one of these terms."""
        return any(each in term.text for term in self.terms for each in about)

    @property
    def is_open(self) -> bool:
        """Whether it holds of constants that were never seen."""
        return self.kind in ("constant", "set") and (" != " in self.check or self.check.startswith("not "))

    @property
    def whole(self) -> str:
        """Itself with its guards."""
        return " and ".join([*self.guards, f"({self.check})"])

    def negated(self) -> Condition:
        """Return the opposite, of the same kind."""
        check = _OPPOSITE.get(self.check.split(" ")[1], "") if self.check.count(" ") == 2 else ""
        first, _, last = self.check.split(" ") if check else ("", "", "")
        text = f"{first} {check} {last}" if check else f"not ({self.check})"
        return replace(self, check=text, true=self.fails)


def joined(some: Sequence[Condition], word: Literal["and", "or"], rows: int) -> Condition:
    """Return conditions as one, which is known in all of these rows: what cannot be evaluated does not hold."""
    if len(some) == 1 and not some[0].guards:
        return some[0]
    true = reduce(and_ if word == "and" else or_, (one.true for one in some))
    check = f" {word} ".join(one.whole if word == "and" else f"({one.whole})" for one in some)
    return Condition(check, "conjunction", true, rows, sum(one.cost for one in some))


_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def places(rows: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set."""
    while rows:
        low = rows & -rows
        yield low.bit_length() - 1
        rows ^= low


def build_conditions(terms: Sequence[Term]) -> list[Condition]:
    """Return conditions over these terms, both ways round, each once."""
    found = [*_single(terms), *_members(terms), *_compared(terms), *_equal(terms)]
    both = (one for each in found for one in (each, each.negated()))
    return list({one.check: one for one in both if one.known}.values())


def _of(
    check: str, kind: Kind, known: int, flags: Iterable[Any], *terms: Term, cost: int = 0, guarded: bool = True
) -> Condition:
    return Condition(check, kind, bits(flags) & known, known, cost + sum(term.cost for term in terms), terms, guarded)


def _single(terms: Sequence[Term]) -> Iterator[Condition]:
    """Yield whether something is there at all, and flags."""
    for term in terms:
        text, there, given = term.text, term.where("there"), term.where("given")
        if there != given:
            yield Condition(f"{text} is not none", "existence", given, there, term.cost, (term,), guarded=False)
        filled = _of(f"({text} | length) > 0", "existence", term.where("sized"), map(bool, term.values), term, cost=1)
        if filled.fails:
            yield filled
        if given and given == term.where("flag"):
            yield _of(text, "flag", given, (value is True for value in term.values), term)


def _members(terms: Sequence[Term]) -> Iterator[Condition]:
    """Yield whether a key, or each item of an argument, is in an object or a list of the state."""
    holders = [term for term in terms if term.of != "argument" and term.where("holder")]
    plain = [term for term in holders if term.of == "state" and all(map(_is_flat, term.values))]
    keys = [term for term in terms if term.where("key")]
    lists = [term for term in terms if term.of == "argument" and term.where("keys")]
    for holder in [*holders, *derive(plain, " | values", lambda value: list(value.values()))]:
        known = holder.where("holder")
        for key in (key for key in keys if holder.text not in key.text):
            both, found = known & key.where("key"), map(_is_in, key.values, holder.values)
            yield _of(f"{key.text} in {holder.text}", "membership", both, found, key, holder)
        for many in lists:
            check, both = f"all(one in {many.text}, one in {holder.text})", known & many.where("keys")
            pairs = zip(many.values, holder.values, strict=True)
            flags = (TESTS["keys"](some) and all(_is_in(one, whole) for one in some) for some, whole in pairs)
            yield _of(check, "membership", both, flags, many, holder, cost=1)


def _is_flat(value: Any) -> bool:
    return value is MISSING or (isinstance(value, dict) and all(map(is_key, value.values())))


def _is_in(key: Any, holder: Any) -> bool:
    return str(key) in holder if isinstance(holder, dict) else isinstance(holder, list) and key in holder


def numbers(terms: Sequence[Term]) -> list[Term]:
    """Return the terms that are numbers, the simple ones first; a flag is none, but the language's test takes it."""
    return [term for term in terms if term.where("number") and not term.where("flag")][:MOST_NUMBERS]


def _compared(terms: Sequence[Term]) -> Iterator[Condition]:
    """Yield comparisons of two numbers, of a product and a number, and of one with nothing."""
    known = numbers(terms)
    products = [combine(a, b, "*") for a, b in combinations(known, 2) if "argument" in (a.of, b.of)][:MOST_PAIRS]
    for left, right in [*combinations(known, 2), *((a, b) for a in products for b in known if b.text not in a.text)]:
        both = left.where("number") & right.where("number")
        for sign in ("<=", "<"):
            flags = map(SIGNS[sign], left.numbers, right.numbers)
            yield _of(f"{left.text} {sign} {right.text}", "comparison", both, flags, left, right)
    for term in [*known, *products]:
        there = term.where("number")
        if term.of != "argument" and all(type(value) is int for value in term.values if is_number(value)):
            # a count: whether there are any is a flag
            yield _of(f"{term.text} != 0", "flag", there, term.numbers, term)
        for sign in (">", ">="):
            yield _of(f"{term.text} {sign} 0", "sign", there, (SIGNS[sign](x, 0) for x in term.numbers), term)


SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip


def combine(a: Term, b: Term, sign: str) -> Term:
    """Return the sum, difference or product of two terms."""
    pairs = zip(a.values, b.values, strict=True)
    values = [SIGNS[sign](x, y) if is_number(x) and is_number(y) else MISSING for x, y in pairs]
    return Term(f"({a.text} {sign} {b.text})", values, a.cost + b.cost + 1, "lookup", (a, b))


def _equal(terms: Sequence[Term]) -> Iterator[Condition]:
    scalars = [term for term in terms if term.where("key")][:MOST_PAIRS]
    for left, right in combinations(scalars, 2):
        if not left.of == right.of == "state":
            known = left.where("key or none") & right.where("key or none")
            flags = map(operator.eq, left.values, right.values)
            one = _of(f"{left.text} == {right.text}", "equality", known, flags, left, right, guarded=False)
            if one.true.bit_count() > 1:
                yield one


def constants(
    terms: Sequence[Term], failed: int, lawful: int, documented: Documented = MappingProxyType({})
) -> list[Condition]:
    """Return conditions with a constant that hold in the lawful rows and not in the failed ones, or tell words."""
    given, fields = ([term for term in terms if term.of == of] for of in ("argument", "state"))
    sums = [combine(a, b, "+") for a in numbers(given) for b in numbers(fields)][:MOST_PAIRS]
    found: list[Condition] = []
    sides = list(places(failed)), list(places(lawful))
    lengths = derive(given, " | length", lambda value: len(value) if TESTS["sized"](value) else MISSING)
    for term in [*terms, *lengths, *sums]:
        bad, good = ([value for at in rows if (value := term.values[at]) is not MISSING] for rows in sides)
        if bad and good:
            found += _seen(term, bad, good, documented)
            if term.where("number") and not term.where("flag"):
                found += _threshold(term, *([value for value in some if is_number(value)] for some in (bad, good)))
    return found


def _seen(term: Term, bad: list[Any], good: list[Any], documented: Documented) -> Iterator[Condition]:
    """Yield the words that a term has, and sets: the document's; those of lawful rows where new ones are hardly met."""
    own = documented.get(term.text.rpartition(".")[2], ())
    counts, odd = (Counter(quote(value) for value in some if _is_scalar(value)) for some in (good, bad))
    known = {quote(value): value for value in (*good, *bad) if _is_scalar(value)}
    is_closed = sum(count == 1 for count in counts.values()) <= UNMET * len(good)
    sides = [some for some in (counts if is_closed else {}, odd) if 1 < len(some) <= MOST_SEEN]
    apart = [[known[each] for each in some] for some in sides] if not counts.keys() & odd.keys() else []
    words = [[value] for value in known.values() if len(known) <= MOST_WORDS]
    for few in [*words, *([list(own)] if len(own) > 1 else ()), *apart]:
        said = sorted(map(quote, few))
        check = f"{term.text} in [{', '.join(said)}]" if len(few) > 1 else f"{term.text} == {said[0]}"
        is_own = few[0] in own if len(few) == 1 else few == [*own]
        kind: Kind = "documented" if is_own else "constant" if len(few) == 1 else "set"
        flags = (_is_scalar(value) and value in few for value in term.values)
        one = _of(check, kind, term.where("scalar"), flags, term, cost=len(few), guarded=False)
        yield from (one, one.negated())


def _threshold(term: Term, bad: list[Any], good: list[Any]) -> Iterator[Condition]:
    for sign, edge in ((">=", min(good, default=0)), ("<=", max(good, default=0))):
        if bad and good and not all(SIGNS[sign](value, edge) for value in bad):
            flags = (SIGNS[sign](x, edge) for x in term.numbers)
            yield _of(f"{term.text} {sign} {quote(edge)}", "constant", term.where("number"), flags, term, cost=2)


_is_scalar = TESTS["scalar"]


def documented_in(schema: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the constants that a schema names, with the property that may have each; also what its text quotes."""
    if isinstance(schema, dict):
        own = [*schema.get("enum", []), *(schema[key] for key in ("const", "minimum", "maximum") if key in schema)]
        quoted = re.findall(r"""["']([^"']{1,40})["']""", str(schema.get("description", "")))
        yield from ((name, value) for value in (*own, *quoted) if _is_scalar(value))
        for key, inner in schema.get("properties", {}).items():
            yield from documented_in(inner, key)
        yield from documented_in(schema.get("items"), name)


def forms_of(values: Sequence[Any], text: str) -> Iterator[str]:
    """Yield what is always so of an argument in these rows: its type, its sign, its length, signs that it lacks."""
    given = [value for value in values if value is not MISSING]
    if not given:
        return
    yield are(text, *sorted({test_of(value) for value in given}))
    some = [value for value in given if is_number(value)]
    if some and min(some) >= 0 and not any(isinstance(value, bool) for value in given):
        yield f"({text} {'>' if min(some) > 0 else '>='} 0 if {text} is number else true)"
    texts = [value for value in given if isinstance(value, str)]
    signs = [f"{quote(sign)} not in {text}" for sign in "/*\n" if texts and not any(sign in value for value in texts)]
    if len({len(value) for value in texts}) == 1 and len(set(texts)) >= LEAST_TEXTS:
        signs.append(f"({text} | length) == {len(texts[0])}")
    yield from (f"({sign} if {text} is string else true)" for sign in signs)
    for kind, empty in ((str, "''"), (list, "[]")):
        if any(isinstance(value, kind) for value in given) and kind() not in given:
            yield f"{text} != {empty}"
