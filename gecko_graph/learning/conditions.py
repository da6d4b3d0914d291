"""Conditions: what may hold of a call, as a check of the contract language and as bits over the rows."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import combinations
from operator import and_, or_
from typing import Any, Literal

from ..state import Json
from .terms import MISSING, Term, are, derive, is_key, quote, test_of

Kind = Literal[
    "existence", "membership", "flag", "documented", "comparison", "equality", "constant", "set", "conjunction"
]
TRUSTED: tuple[Kind, ...] = ("existence", "membership", "flag", "comparison", "documented")
"""Kinds that may refuse a call once they are established: the others were refuted too often (facts of the issue)."""

TIERS: dict[Kind, int] = {
    "existence": 0, "membership": 0, "flag": 0, "documented": 1, "comparison": 1,
    "equality": 2, "constant": 3, "set": 4, "conjunction": 5,
}  # fmt: skip
"""What is tried first: a rival of a later tier is none."""

MOST_PAIRS, MOST_NUMBERS, MOST_SEEN, MOST_WORDS, LEAST_TEXTS = 40, 24, 12, 6, 3
UNMET = 0.02
"""Share of values met once, which is how often a new one is met, below which a set is taken for closed."""

Documented = frozenset[tuple[str, Any]]
"""Constants that the tools' documents name, each with the name of the field that may have it."""


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
Test = Callable[..., bool | None]


def bits(answers: Iterable[bool | None]) -> tuple[int, int]:
    """Return the bits of what is true, and of what is known, of three-valued answers."""
    digits = [("1" if each else "0", "0" if each is None else "1") for each in answers]
    true, known = ("".join(pair[at] for pair in reversed(digits)) or "0" for at in (0, 1))
    return int(true, 2), int(known, 2)


def build_conditions(terms: Sequence[Term]) -> list[Condition]:
    """Return conditions over these terms, both ways round, each once."""
    found = [*_single(terms), *_members(terms), *_compared(terms), *_equal(terms)]
    both = (one for each in found for one in (each, each.negated()))
    return list({one.check: one for one in both if one.known}.values())


def _of(check: str, kind: Kind, test: Test, *terms: Term, cost: int = 0, guarded: bool = True) -> Condition:
    rows = zip(*(term.values for term in terms), strict=True)
    true, known = bits(None if MISSING in row else test(*row) for row in rows)
    return Condition(check, kind, true, known, cost + sum(term.cost for term in terms), terms, guarded)


def _single(terms: Sequence[Term]) -> Iterator[Condition]:
    """Yield whether something is there at all, and flags."""
    for term in terms:
        text, values = term.text, [value for value in term.values if value is not MISSING]
        given = [value for value in values if value is not None]
        if len(given) < len(values):
            yield _of(f"{text} is not none", "existence", lambda value: value is not None, term, guarded=False)
        if any(isinstance(value, list | dict | str) and not value for value in given):
            yield _of(f"({text} | length) > 0", "existence", _is_filled, term, cost=1)
        if given and all(isinstance(value, bool) for value in given):
            yield _of(text, "flag", lambda value: value, term)
        for field in _items_fields(values) if term.of == "state" else ():
            has = partial(_all_have, field)
            yield _of(f"all(one in {text}, one.{field} is defined)", "set", has, term, cost=1)


def _is_filled(value: Any) -> bool | None:
    return bool(value) if isinstance(value, list | dict | str) else None


def _items_fields(values: Sequence[Any]) -> list[str]:
    """Return fields that some records of a list lack."""
    items = [item for value in values if isinstance(value, list) for item in value[:20]][:500]
    counts = Counter(key for item in items if isinstance(item, dict) for key in item if key.isidentifier())
    return [key for key, count in counts.items() if len(items) / 2 <= count < len(items)][:8]


def _all_have(field: str, items: Any) -> bool | None:
    is_list = isinstance(items, list) and all(isinstance(item, dict) for item in items)
    return all(field in item for item in items) if is_list else None


def _members(terms: Sequence[Term]) -> Iterator[Condition]:
    """Yield whether a key, or each item of an argument, is in an object or a list of the state."""
    holders = [term for term in terms if term.of != "argument" and any(isinstance(v, dict | list) for v in term.values)]
    plain = [term for term in holders if term.of == "state" and all(map(_is_flat, term.values))]
    keys = [term for term in terms if any(is_key(value) for value in term.values)]
    lists = [term for term in terms if term.of == "argument" and any(isinstance(v, list) and v for v in term.values)]
    for holder in [*holders, *derive(plain, " | values", lambda value: list(value.values()))]:
        for key in keys:
            if holder.text not in key.text:
                yield _of(f"{key.text} in {holder.text}", "membership", _is_in, key, holder)
        for many in lists:
            yield _of(f"all(one in {many.text}, one in {holder.text})", "membership", _are_in, many, holder, cost=1)


def _is_flat(value: Any) -> bool:
    return value is MISSING or (isinstance(value, dict) and all(map(is_key, value.values())))


def _is_in(key: Any, holder: Any) -> bool | None:
    if not is_key(key) or not isinstance(holder, dict | list):
        return None
    return str(key) in holder if isinstance(holder, dict) else bool(key in holder)


def _are_in(keys: Any, holder: Any) -> bool | None:
    if not isinstance(keys, list) or not all(map(is_key, keys)) or not isinstance(holder, dict | list):
        return None
    return all(key in holder for key in (map(str, keys) if isinstance(holder, dict) else keys))


def is_numeric(term: Term) -> bool:
    """Return whether a term is a number; a flag is none, but the language's test takes it."""
    return any(map(is_number, term.values)) and not any(isinstance(value, bool) for value in term.values)


def numbers(terms: Sequence[Term]) -> list[Term]:
    """Return the terms that are numbers, the simple ones first."""
    return list(filter(is_numeric, terms))[:MOST_NUMBERS]


def is_number(value: Any) -> bool:
    """Return whether a value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _compared(terms: Sequence[Term]) -> Iterator[Condition]:
    """Yield comparisons of two numbers, of a product and a number, and of one with nothing."""
    known = numbers(terms)
    products = [combine(a, b, "*") for a, b in combinations(known, 2) if "argument" in (a.of, b.of)][:MOST_PAIRS]
    for left, right in [*combinations(known, 2), *((a, b) for a in products for b in known if b.text not in a.text)]:
        for sign in ("<=", "<"):
            yield _of(f"{left.text} {sign} {right.text}", "comparison", _numeric(sign), left, right)
    for term in known:
        if term.of != "argument" and all(type(value) is int for value in term.values if is_number(value)):
            # a count: whether there are any is a flag
            yield _of(f"{term.text} != 0", "flag", _numeric("!=", 0), term)
        yield from (_of(f"{term.text} {sign} 0", "constant", _numeric(sign, 0), term) for sign in (">", ">="))


SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "!=": operator.ne,
    "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip


def _numeric(sign: str, *edge: float) -> Test:
    def test(*values: Any) -> bool | None:
        return SIGNS[sign](*values, *edge) if all(map(is_number, values)) else None

    return test


def combine(a: Term, b: Term, sign: str) -> Term:
    """Return the sum, difference or product of two terms."""
    pairs = zip(a.values, b.values, strict=True)
    values = [SIGNS[sign](x, y) if is_number(x) and is_number(y) else MISSING for x, y in pairs]
    return Term(f"({a.text} {sign} {b.text})", values, a.cost + b.cost + 1, "lookup", (a, b))


def _equal(terms: Sequence[Term]) -> Iterator[Condition]:
    scalars = [term for term in terms if any(is_key(value) for value in term.values)][:MOST_PAIRS]
    for left, right in combinations(scalars, 2):
        if not left.of == right.of == "state":
            one = _of(f"{left.text} == {right.text}", "equality", _equality, left, right, guarded=False)
            if one.true.bit_count() > 1:
                yield one


def _equality(a: Any, b: Any) -> bool | None:
    return a == b if (is_key(a) or a is None) and (is_key(b) or b is None) else None


def constants(terms: Sequence[Term], failed: int, lawful: int, documented: Documented = frozenset()) -> list[Condition]:
    """Return conditions with a constant that hold in the lawful rows and not in the failed ones, or tell words."""
    given, fields = ([term for term in terms if term.of == of] for of in ("argument", "state"))
    sums = [combine(a, b, "+") for a in numbers(given) for b in numbers(fields)][:MOST_PAIRS]
    found: list[Condition] = []
    plain = [term for term in terms if " ~ " not in term.text]
    for term in [*plain, *derive(given, " | length", _length), *sums]:
        bad, good = (
            [v for at, v in enumerate(term.values) if rows >> at & 1 and v is not MISSING] for rows in (failed, lawful)
        )
        if bad and good:
            found += _seen(term, bad, good, documented)
            if is_numeric(term):
                found += _threshold(term, *([value for value in some if is_number(value)] for some in (bad, good)))
    return found


def _seen(term: Term, bad: list[Any], good: list[Any], documented: Documented) -> Iterator[Condition]:
    """Yield the words that a term has, and sets: of the lawful ones only where new ones are hardly met any more."""
    name = term.text.rpartition(".")[2]
    counts, odd = (Counter(quote(value) for value in some if _is_scalar(value)) for some in (good, bad))
    known = {quote(value): value for value in (*good, *bad) if _is_scalar(value)}
    is_closed = sum(count == 1 for count in counts.values()) <= UNMET * len(good)
    sides = [some for some in (counts if is_closed else {}, odd) if 1 < len(some) <= MOST_SEEN]
    apart = [[*some] for some in sides] if not counts.keys() & odd.keys() else []
    for few in [*([each] for each in known if len(known) <= MOST_WORDS), *apart]:
        values, is_one = [known[each] for each in few], len(few) == 1
        said = few[0] if is_one else f"[{', '.join(sorted(few))}]"
        kind: Kind = "constant" if is_one else "set"
        kind = "documented" if all((name, value) in documented for value in values) else kind
        check, test = f"{term.text} {'==' if is_one else 'in'} {said}", partial(_is_one_of, values)
        one = _of(check, kind, test, term, cost=len(few), guarded=False)
        yield from (one, one.negated())


def _is_one_of(few: list[Any], value: Any) -> bool | None:
    return value in few if _is_scalar(value) else None


def _threshold(term: Term, bad: list[Any], good: list[Any]) -> Iterator[Condition]:
    for sign, edge in ((">=", min(good, default=0)), ("<=", max(good, default=0))):
        test = _numeric(sign, edge)
        if bad and good and not all(map(test, bad)):
            yield _of(f"{term.text} {sign} {quote(edge)}", "constant", test, term, cost=2)


def documented_in(schema: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the constants that a schema names, with the property that may have each; also what its text quotes."""
    if isinstance(schema, dict):
        own = [*schema.get("enum", []), *(schema[key] for key in ("const", "minimum", "maximum") if key in schema)]
        quoted = re.findall(r"""["']([^"']{1,40})["']""", str(schema.get("description", "")))
        yield from ((name, value) for value in (*own, *quoted) if _is_scalar(value))
        for key, inner in schema.get("properties", {}).items():
            yield from documented_in(inner, key)
        yield from documented_in(schema.get("items"), name)


def _length(value: Any) -> Any:
    return len(value) if isinstance(value, str | list | dict) else MISSING


def _is_scalar(value: Json) -> bool:
    return value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= 60)


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
