"""Terms of rules: expressions of the contract language with their value in each row.

A term is an argument, a field of the state, a lookup in the state by another term, or derived from one of these (its
length). Keys that only some objects have, such as account ids, are never named; they are only looked up. A row in which
an expression has no value has MISSING.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from keyword import iskeyword
from math import nan
from typing import Any, Final, cast

from ..schemas.subschemas import is_number
from ..state import Json

MISSING: Final = object()
FIELDS, DEPTH, TERMS = 30, 3, 160
STABLE = 0.9
"""Least share of the objects at a place that must have a field so that rules may name it."""

LEAST_HITS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """An expression and its values.

    Args:
        text: The expression.
        values: Its value in each row, or MISSING.
        cost: Length of the description; of two terms that fit equally well the shorter one is used.
        of: `argument`, `state` or `lookup`.
        keys: Terms that are keys of its lookup; it has no value if one of them is None.
        path: For a value that a list of keys in the state leads to: its path in the state as tokens of a template, and
            the tokens in each row.
    """

    text: str
    values: Sequence[Any]
    cost: int
    of: str
    keys: tuple[Term, ...] = ()
    path: tuple[Sequence[str], Sequence[Any]] | None = None
    _seen: dict[Any, Any] = field(default_factory=dict, init=False)

    def where(self, test: str) -> int:
        """Return the rows, as a bit set, whose value passes a test of `TESTS`."""
        if test not in self._seen:
            self._seen[test] = bits(map(TESTS[test], self.values))
        return cast("int", self._seen[test])

    @property
    def numbers(self) -> list[float]:
        """The values for comparisons: NaN, neither larger nor smaller, for anything but a number."""
        if "numbers" not in self._seen:
            self._seen["numbers"] = [value if is_number(value) else nan for value in self.values]
        return cast("list[float]", self._seen["numbers"])

    @property
    def guards(self) -> tuple[str, ...]:
        """Conditions under which the term has a value, as far as some rows lack one.

        Evaluation fails if anything else is missing.
        """
        own = [f"defined({self.text})"] if MISSING in self.values else []
        return (*(guard for key in self.keys for guard in (*key.guards, *key.given)), *own)

    @property
    def given(self) -> tuple[str, ...]:
        """The condition that the value is not None, if it may be None; every argument may be omitted."""
        return (f"{self.text} is not None",) if None in self.values or self.of == "argument" else ()

    def typed(self) -> tuple[str, ...]:
        """Return conditions under which the value exists and has a type that it had in the rows."""
        return (*self.guards, are(self.text, *types_of(self.values)))


def are(text: str, *types: str) -> str:
    """Return the condition that a value exists and has one of these types; tests of undefined values raise an error."""
    known = [one for one in types if one != "None"]
    kinds = known[0] if len(known) == 1 else f"({', '.join(known)})"
    either = " or ".join(
        [*([f"{text} is None"] if "None" in types else ()), *([f"isinstance({text}, {kinds})"] if known else ())]
    )
    either = f"({either})" if " or " in either else either
    return either if text.startswith("args.") and text.count(".") == 1 else f"defined({text}) and {either}"


def types_of(values: Iterable[Any]) -> list[str]:
    """Return the types of values by their names in the contract language's `isinstance`; `float` implies `int`."""
    found = {"None" if value is None else type(value).__name__ for value in values if value is not MISSING}
    return sorted(found | ({"int"} if "float" in found else set()))


def member(base: str, key: str) -> str:
    return f"{base}.{key}" if key.isidentifier() and not iskeyword(key) and "__" not in key else f"{base}[{quote(key)}]"


@lru_cache(maxsize=10_000, typed=True)
def quote(value: Json) -> str:
    if value is None or isinstance(value, bool):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def stable_fields(values: Sequence[Any]) -> list[str]:
    """Return the keys that nearly all of these objects have; empty objects do not count."""
    objects = [value for value in values if isinstance(value, dict) and value]
    counts = Counter(key for value in objects for key in value if key.isidentifier())
    least = max(STABLE * len(objects), LEAST_HITS)
    return [key for key, count in counts.items() if count >= least][:FIELDS]


def build_terms(args: Sequence[Any], states: Sequence[Any], root: str, name: str = "args") -> list[Term]:
    """Return the terms of a tool's calls.

    Args:
        args: The arguments of each call, with None for omitted optional ones; or other values to build terms of.
        states: The known state of each call, or MISSING.
        root: Name of the state in expressions.
        name: Name of the arguments in expressions.
    """
    arguments = list(_arguments(args, name)) if _mostly(args, dict) else [Term(name, args, 1, "argument")]
    fields = list(_fields(states, root, "state", 0, 1))
    cursors = list(_cursors(fields))
    containers = [term for term in (*fields, *cursors) if _mostly(term.values, dict)]
    keys = [term for term in arguments if term.where("key")]
    own = [term for term in fields if term.where("key")]
    first = [one for key in (*keys, *own) for one in _lookups(key, containers)]
    further = [term for term in first if term.where("key")][:12]
    roots = [term for term in containers if term.cost <= 2]
    second = [one for key in further for one in _lookups(key, roots) if one.text.count("at(") < 3]
    found = [*arguments, *fields, *cursors, *first, *second]
    unique = {term.text: term for term in found}
    return sorted(unique.values(), key=lambda term: term.cost)[:TERMS]


def _arguments(args: Sequence[Any], root: str) -> Iterator[Term]:
    for name in sorted({name for each in args if isinstance(each, dict) for name in each}):
        values, text = [each.get(name) if isinstance(each, dict) else MISSING for each in args], member(root, name)
        yield Term(text, values, 1, "argument")
        if _mostly(values, dict):
            yield from _fields(values, text, "argument", DEPTH, 2)


def _fields(
    values: Sequence[Any], text: str, of: str, depth: int, cost: int, keys: tuple[Term, ...] = ()
) -> Iterator[Term]:
    for key in stable_fields(values):
        inner, name = [_at(value, [key]) for value in values], member(text, key)
        yield Term(name, inner, cost, of, keys)
        if depth < DEPTH and _mostly(inner, dict) and not is_collection(inner):
            yield from _fields(inner, name, of, depth + 1, cost + 1, keys)


def is_collection(values: Sequence[Any]) -> bool:
    """Return whether these objects are collections (things of one kind by key), of which rules name no single thing."""
    held = [value for value in values if isinstance(value, dict) and value]
    things = [(key, thing) for value in held for key, thing in value.items()]
    if not things or not all(isinstance(thing, dict) for _, thing in things):
        return False
    is_own = all(key in map(str, thing.values()) for key, thing in things if thing)
    return is_own or len({frozenset(value) for value in held}) > 1 or any(map(str.isdigit, things[0][0]))


def _cursors(fields: Sequence[Term]) -> Iterator[Term]:
    """Yield the value in a tree that a list of keys in the state leads to, such as the current folder."""
    for path in (term for term in fields if _mostly(term.values, list)):
        steps = [place if place and TESTS["names"](place) else None for place in path.values]
        for tree in (term for term in fields if _mostly(term.values, dict)):
            pairs = zip(steps, tree.values, strict=True)
            between = Counter(key for some, whole in pairs for key in _after(whole, some))
            for key in [each for each, count in between.items() if count >= LEAST_HITS][:2]:
                root = tree.text.split(".")[1:]
                tokens = [[token for each in some for token in (each, key)] if some else None for some in steps]
                found = [_at(whole, some) for whole, some in zip(tree.values, tokens, strict=True)]
                if sum(each is not MISSING for each in found) >= STABLE * sum(map(bool, steps)):
                    between_keys = f"[part for step in {path.text} for part in [{quote(key)}, step]][1:]"
                    text = f"at({tree.text}, [{between_keys}, {quote(key)}])"
                    template = [*root, f"{{{{ {between_keys} }}}}", key]
                    yield Term(text, found, 2, "lookup", (), (template, [some and [*root, *some] for some in tokens]))


def _after(whole: Any, path: list[str] | None) -> list[str]:
    first = _at(whole, path and path[:1])
    return [key for key, value in first.items() if isinstance(value, dict)] if isinstance(first, dict) else []


def _at(whole: Any, keys: Sequence[str] | None) -> Any:
    for key in keys or ():
        whole = whole.get(key, MISSING) if isinstance(whole, dict) else MISSING
    return MISSING if keys is None else whole


def _lookups(key: Term, containers: Sequence[Term]) -> Iterator[Term]:
    for one in (one for one in containers if one.text not in key.text):
        pairs = zip(one.values, key.values, strict=True)
        found = [_at(whole, [str(each)] if is_key(each) else None) for whole, each in pairs]
        if sum(value is not MISSING for value in found) >= LEAST_HITS:
            text, cost = f"at({one.text}, [{key.text}])", one.cost + key.cost
            yield Term(text, found, cost, "lookup", (key,))
            if _mostly(found, dict):
                yield from _fields(found, text, "lookup", DEPTH - 1, cost + 1, (key,))


def bits(flags: Iterable[Any]) -> int:
    return int(bytes(map(bool, flags))[::-1].hex()[1::2] or "0", 2)


def grouped(rows: Iterable[tuple[int, Any]]) -> dict[Any, int]:
    by_label: dict[Any, int] = {}
    for row, label in rows:
        by_label[label] = by_label.get(label, 0) | 1 << row
    return by_label


def is_key(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


TESTS: dict[str, Callable[[Any], bool]] = {
    "there": lambda value: value is not MISSING,
    "given": lambda value: value is not MISSING and value is not None,
    "flag": lambda value: isinstance(value, bool),
    "number": is_number,
    "counts": lambda value: type(value) is int,
    "key": is_key,
    "key or none": lambda value: value is None or is_key(value),
    "scalar": lambda value: (
        value is None or isinstance(value, int | float) or (isinstance(value, str) and len(value) <= 60)
    ),
    "holder": lambda value: isinstance(value, dict | list),
    "sized": lambda value: isinstance(value, dict | list | str),
    "flat": lambda value: isinstance(value, dict) and all(map(is_key, value.values())),
    "names": lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    "list": lambda value: isinstance(value, list),
}
"""Conditions that a value must fulfil for a use."""


def _mostly(values: Sequence[Any], kind: type) -> bool:
    known = [value for value in values if value is not MISSING and value is not None]
    return bool(known) and sum(isinstance(value, kind) for value in known) >= STABLE * len(known)


def derive(terms: Sequence[Term], form: str, of: Any, compute: Callable[[Any], Any]) -> list[Term]:
    """Return the terms that an operation such as `len({})` makes of these terms, if they have values."""
    made = []
    for term in terms:
        values = [compute(value) if isinstance(value, of) else MISSING for value in term.values]
        if any(value is not MISSING for value in values):
            made.append(replace(term, text=form.format(term.text), values=values, cost=term.cost + 1, path=None))
    return made
