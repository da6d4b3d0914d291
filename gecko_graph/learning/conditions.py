"""Conditions: what may hold of a call, as a check of the contract language and as bits over the rows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

from ..state import Json
from .terms import MISSING, Term, are, derive, is_key, quote, test_of

Kind = Literal["existence", "membership", "flag", "comparison", "equality", "constant", "set"]
TRUSTED: tuple[Kind, ...] = ("existence", "membership", "flag", "comparison")
"""Kinds that may refuse a call once they are established: the others were refuted too often (facts of the issue)."""

TIERS: dict[Kind, int] = {
    "existence": 0, "membership": 0, "flag": 0, "comparison": 1, "equality": 2, "constant": 3, "set": 4,
}  # fmt: skip
"""What is tried first: a rival of a later tier is none."""

MOST_PAIRS, MOST_NUMBERS, MOST_SEEN, LEAST_TEXTS = 40, 24, 12, 3


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """A check that rows fulfil or not.

    Args:
        check: The check.
        kind: Its form.
        true: Bits of the rows in which it holds.
        known: Bits of those in which it can be evaluated.
        cost: How long a description it is.
        needs: Checks that must hold before it can be evaluated, in their order.
    """

    check: str
    kind: Kind
    true: int
    known: int
    cost: int
    needs: tuple[str, ...] = ()

    @property
    def fails(self) -> int:
        """Bits of the rows in which it is known not to hold."""
        return self.known & ~self.true

    def negated(self) -> Condition:
        """Return the opposite, of the same kind."""
        check = _OPPOSITE.get(self.check.split(" ")[1], "") if self.check.count(" ") == 2 else ""
        first, _, last = self.check.split(" ") if check else ("", "", "")
        text = f"{first} {check} {last}" if check else f"not ({self.check})"
        return replace(self, check=text, true=self.fails)


_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
Test = Callable[..., bool | None]


def bits(answers: Iterable[bool | None]) -> tuple[int, int]:
    """Return the bits of what is true, and of what is known, of three-valued answers."""
    digits = [("1" if each else "0", "0" if each is None else "1") for each in answers]
    true, known = ("".join(pair[at] for pair in reversed(digits)) or "0" for at in (0, 1))
    return int(true, 2), int(known, 2)


def build_conditions(terms: Sequence[Term]) -> list[Condition]:
    """Return conditions over these terms, both ways round, each once."""
    found = [*_existing(terms), *_members(terms), *_flags(terms), *_compared(terms), *_equal(terms)]
    both = [one for each in found for one in (each, each.negated())]
    unique: dict[str, Condition] = {}
    for one in both:
        if one.known:
            unique.setdefault(one.check, one)
    return list(unique.values())


def _of(check: str, kind: Kind, test: Test, terms: Sequence[Term], needs: Sequence[str], cost: int = 0) -> Condition:
    rows = zip(*(term.values for term in terms), strict=True)
    true, known = bits(None if MISSING in row else test(*row) for row in map(tuple, rows))
    cost += sum(term.cost for term in terms)
    return Condition(check, kind, true, known, cost, tuple(dict.fromkeys(needs)))


def _existing(terms: Sequence[Term]) -> Iterator[Condition]:
    """Yield whether something is there at all: an argument that may be left out, a value that may be none, items."""
    for term in terms:
        values = [value for value in term.values if value is not MISSING]
        if any(value is None for value in values):
            needs = (*term.needs, f"{term.text} is defined")
            yield _of(f"{term.text} is not none", "existence", lambda value: value is not None, [term], needs)
        if any(isinstance(value, list | dict | str) and not value for value in values):
            needs = (*term.needs, are(term.text, "sequence"))
            test = lambda value: None if not isinstance(value, list | dict | str) else bool(value)  # noqa: E731
            yield _of(f"({term.text} | length) > 0", "existence", test, [term], needs, 1)


def _members(terms: Sequence[Term]) -> Iterator[Condition]:
    """Yield whether a key, or each item of an argument, is in an object or a list of the state."""
    holders = [term for term in terms if term.of != "argument" and any(isinstance(v, dict | list) for v in term.values)]
    plain = [term for term in holders if term.of == "state" and all(map(_is_flat, term.values))]
    keys = [term for term in terms if any(is_key(value) for value in term.values)]
    lists = [term for term in terms if term.of == "argument" and any(isinstance(v, list) and v for v in term.values)]
    for holder in [*holders, *derive(plain, " | values", lambda value: list(value.values()))]:
        own = (*holder.needs, f"{are(holder.text, 'sequence')} and {holder.text} is not string")
        for key in keys:
            if holder.text not in key.text:
                needs = (*own, *key.needs, are(key.text, "string", "integer"))
                yield _of(f"{key.text} in {holder.text}", "membership", _is_in, [key, holder], needs)
        for many in lists:
            needs = (*own, f"{are(many.text, 'sequence')} and {many.text} is not string")
            yield _of(f"all(one in {many.text}, one in {holder.text})", "membership", _are_in, [many, holder], needs, 1)


def _is_flat(value: Any) -> bool:
    return value is MISSING or (isinstance(value, dict) and all(map(is_key, value.values())))


def _is_in(key: Any, holder: Any) -> bool | None:
    if not is_key(key) or not isinstance(holder, dict | list):
        return None
    return str(key) in holder if isinstance(holder, dict) else key in holder


def _are_in(keys: Any, holder: Any) -> bool | None:
    if not isinstance(keys, list) or not all(map(is_key, keys)) or not isinstance(holder, dict | list):
        return None
    return all(_is_in(key, holder) for key in keys)


def _flags(terms: Sequence[Term]) -> Iterator[Condition]:
    for term in terms:
        if any(isinstance(value, bool) for value in term.values):
            needs = (*term.needs, f"{term.text} is defined", f"{term.text} in [true, false]")
            yield _of(term.text, "flag", lambda value: value if isinstance(value, bool) else None, [term], needs)


def numbers(terms: Sequence[Term]) -> list[Term]:
    """Return the terms that are numbers, the simple ones first; a flag is none, but the language's test takes it."""
    known = [term for term in terms if not any(isinstance(value, bool) for value in term.values)]
    return [term for term in known if any(map(is_number, term.values))][:MOST_NUMBERS]


def is_number(value: Any) -> bool:
    """Return whether a value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _compared(terms: Sequence[Term]) -> Iterator[Condition]:
    """Yield comparisons of two numbers, of a product and a number, and of one with nothing."""
    known = numbers(terms)
    products = [combine(a, b, "*") for a, b in combinations(known, 2) if "argument" in (a.of, b.of)][:MOST_PAIRS]
    for left, right in [*combinations(known, 2), *((a, b) for a in products for b in known if b.text not in a.text)]:
        needs = (*left.needs, *right.needs, are(left.text, "number"), are(right.text, "number"))
        for sign in ("<=", "<"):
            yield _of(f"{left.text} {sign} {right.text}", "comparison", _numeric(sign), [left, right], needs)
    for term in known:
        if term.of != "argument" and all(type(value) is int for value in term.values if is_number(value)):
            # a count: whether there are any is a flag
            yield _of(f"{term.text} != 0", "flag", _numeric("!=", 0), [term], (*term.needs, are(term.text, "integer")))
        for sign in (">", ">="):
            needs = (*term.needs, are(term.text, "number"))
            yield _of(f"{term.text} {sign} 0", "constant", _numeric(sign, 0), [term], needs)


_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "!=": operator.ne,
    "+": operator.add, "*": operator.mul,
}  # fmt: skip


def _numeric(sign: str, *edge: float) -> Test:
    def test(*values: Any) -> bool | None:
        return _SIGNS[sign](*values, *edge) if all(map(is_number, values)) else None

    return test


def combine(a: Term, b: Term, sign: str) -> Term:
    """Return the sum or product of two terms."""
    pairs = zip(a.values, b.values, strict=True)
    values = [_SIGNS[sign](x, y) if is_number(x) and is_number(y) else MISSING for x, y in pairs]
    needs = (*a.needs, *b.needs, are(a.text, "number"), are(b.text, "number"))
    return Term(f"({a.text} {sign} {b.text})", values, a.cost + b.cost + 1, "lookup", needs)


def _equal(terms: Sequence[Term]) -> Iterator[Condition]:
    scalars = [term for term in terms if any(is_key(value) for value in term.values)][:MOST_PAIRS]
    for left, right in combinations(scalars, 2):
        if left.of == right.of == "state":
            continue
        needs = (*left.needs, *right.needs, f"{left.text} is defined", f"{right.text} is defined")
        one = _of(f"{left.text} == {right.text}", "equality", _equality, [left, right], needs)
        if one.true.bit_count() > 1:
            yield one


def _equality(a: Any, b: Any) -> bool | None:
    return a == b if (is_key(a) or a is None) and (is_key(b) or b is None) else None


def constants(terms: Sequence[Term], failed: int, lawful: int) -> Iterator[Condition]:
    """Yield conditions with a constant that hold in the lawful rows and not in the failed ones."""
    given, fields = ([term for term in terms if term.of == of] for of in ("argument", "state"))
    sums = [combine(a, b, "+") for a in numbers(given) for b in numbers(fields)][:MOST_PAIRS]
    for term in [*terms, *derive(given, " | length", _length), *sums]:
        bad, good = (
            [v for at, v in enumerate(term.values) if rows >> at & 1 and v is not MISSING] for rows in (failed, lawful)
        )
        if bad and good:
            yield from _seen(
                term, *({quote(value): value for value in some if _is_scalar(value)} for some in (bad, good))
            )
            if numbers([term]):
                yield from _threshold(term, *([value for value in some if is_number(value)] for some in (bad, good)))


def _seen(term: Term, bad: dict[str, Any], good: dict[str, Any]) -> Iterator[Condition]:
    for few, word, sign in ((good, "in", "=="), (bad, "not in", "!=")):
        if bad and good and not bad.keys() & good.keys() and len(few) <= MOST_SEEN:

            def test(value: Any, few: dict[str, Any] = few, word: str = word) -> bool | None:
                return (value in few.values()) == (word == "in") if _is_scalar(value) else None

            check = (
                f"{term.text} {word} [{', '.join(sorted(few))}]" if len(few) > 1 else f"{term.text} {sign} {min(few)}"
            )
            kind: Kind = "constant" if len(few) == 1 else "set"
            yield _of(check, kind, test, [term], (*term.needs, f"{term.text} is defined"), len(few))


def _threshold(term: Term, bad: list[Any], good: list[Any]) -> Iterator[Condition]:
    for sign, edge in ((">=", min(good, default=0)), ("<=", max(good, default=0))):
        test = _numeric(sign, edge)
        if bad and good and not any(map(test, bad)):
            needs = (*term.needs, are(term.text, "number"))
            yield _of(f"{term.text} {sign} {quote(edge)}", "constant", test, [term], needs, 2)


def _length(value: Any) -> Any:
    return len(value) if isinstance(value, str | list | dict) else MISSING


def _is_scalar(value: Json) -> bool:
    return value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= 60)


def forms_of(values: Sequence[Any], text: str) -> Iterator[str]:
    """Yield what is always so of an argument in these rows: its type, its sign, signs that it lacks."""
    given = [value for value in values if value is not MISSING]
    if given:
        yield are(text, *sorted({test_of(value) for value in given}))
    checks = [(f"{text} > 0", _numeric(">", 0)), (f"{text} >= 0", _numeric(">=", 0))]
    checks = [] if any(isinstance(value, bool) for value in given) else checks
    positive = [
        check for check, test in checks if any(map(is_number, given)) and all(test(v) is not False for v in given)
    ]
    yield from (f"({check} if {text} is number else true)" for check in positive[:1])
    texts = [value for value in given if isinstance(value, str)]
    lacking = [sign for sign in "/*\n" if texts and not any(sign in value for value in texts)]
    yield from (f"({quote(sign)} not in {text} if {text} is string else true)" for sign in lacking)
    lengths = {len(value) for value in texts}
    if len(lengths) == 1 and len(set(texts)) >= LEAST_TEXTS:
        yield f"(({text} | length) == {min(lengths)} if {text} is string else true)"
    for kind, empty in ((str, "''"), (list, "[]")):
        some = [value for value in given if isinstance(value, kind)]
        if some and all(some):
            yield f"{text} != {empty}"
