"""Terms: what a rule may speak of, as an expression of the contract language and with its value in each row.

A term is an argument, a field of the state, what is looked up there by another term, or something of it (a length).
Whatever is nobody's stable field, such as the keys of accounts, is only looked up. Values are MISSING where the
expression has none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

from ..state import Json

MISSING: Final = object()
ROOT = "\0"
"""Stands in a term's text where `state` or `before` will."""

FIELDS, DEPTH, TERMS = 30, 3, 160
STABLE = 0.9
"""Share of the objects at a place that have a field which rules may name."""

LEAST_HITS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """An expression and its values.

    Args:
        text: The expression, with `ROOT` for the state.
        values: Its value in each row, or MISSING.
        cost: How long a description it is: of two that fit the shorter one is taken.
        needs: What must hold for it to be evaluated at all.
        of: `argument`, `state` or `lookup`.
    """

    text: str
    values: Sequence[Any]
    cost: int
    of: str
    needs: tuple[str, ...] = ()
    path: tuple[str, Sequence[Any]] | None = None
    """Of a cursor: its path in the state as a template's tokens, joined by a new line, and the tokens in each row."""

    def typed(self) -> tuple[str, ...]:
        """Return conditions under which it has a value of a type that it had in the rows."""
        tests = sorted({test_of(value) for value in self.values if value is not MISSING})
        return (*self.needs, are(self.text, *tests))


def are(text: str, *tests: str) -> str:
    """Return the condition that a value is there and passes one of these tests: what is undefined raises in a test."""
    either = " or ".join(f"{text} is {test}" for test in tests)
    either = f"({either})" if len(tests) > 1 else either
    return either if text.startswith("args.") and text.count(".") == 1 else f"{text} is defined and {either}"


def test_of(value: Json) -> str:
    """Return the test of the contract language that a value of its type passes; `true` for those that have none."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "number"
    if isinstance(value, int):
        return "integer"
    return {str: "string", float: "number", dict: "mapping", list: "sequence"}[type(value)]


def member(base: str, key: str) -> str:
    """Return the expression of a member."""
    return f"{base}.{key}" if key.isidentifier() and not key.startswith("__") else f"{base}[{quote(key)}]"


def quote(value: Json) -> str:
    """Return a scalar as the contract language writes it."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return json.dumps(value, ensure_ascii=False)


def stable_fields(values: Sequence[Any]) -> list[str]:
    """Return the keys that nearly all of these objects have."""
    objects = [value for value in values if isinstance(value, dict)]
    counts = Counter(key for value in objects for key in value)
    least = STABLE * len(objects)
    return [key for key, count in counts.items() if count >= least and count >= LEAST_HITS and key.isidentifier()][
        :FIELDS
    ]


def values_at(values: Sequence[Any], key: str) -> list[Any]:
    """Return the members under a key, MISSING where there is none."""
    return [value.get(key, MISSING) if isinstance(value, dict) else MISSING for value in values]


def build_terms(args: Sequence[Any], states: Sequence[Any], root: str = ROOT) -> list[Term]:
    """Return the terms of a tool's calls.

    Args:
        args: The arguments of each call, absent optional ones as None.
        states: The known state of each, or MISSING.
        root: How the state is called.
    """
    arguments = list(_arguments(args))
    fields = list(_fields(states, root, "state", 0, 1))
    cursors = list(_cursors(fields))
    containers = [term for term in (*fields, *cursors) if _holds(term, dict)]
    lists = [term for term in fields if _holds(term, list)]
    keys = [term for term in arguments if _is_key(term)]
    pairs = list(_pairs(keys))
    own = [term for term in fields if _is_key(term)]
    first = [one for key in (*keys, *own) for one in _lookups(key, containers, lists)]
    further = [term for term in first if _is_key(term)][:12]
    roots = [term for term in containers if term.cost <= 2]
    second = [one for key in further for one in _lookups(key, roots, []) if one.text.count("at(") < 3]
    found = [*arguments, *pairs, *fields, *cursors, *first, *second]
    unique = {term.text: term for term in found}
    return sorted(unique.values(), key=lambda term: term.cost)[:TERMS]


def _arguments(args: Sequence[Any]) -> Iterator[Term]:
    for name in sorted({name for each in args for name in each}):
        values = [each.get(name) for each in args]
        yield Term(member("args", name), values, 1, "argument")
        inner = [MISSING if value is None else value for value in values]
        if _mostly(inner, dict):
            for key in stable_fields(inner):
                text = member("args", name)
                yield Term(member(text, key), values_at(inner, key), 2, "argument", (are(text, "mapping"),))


def _pairs(keys: Sequence[Term]) -> Iterator[Term]:
    """Yield two short texts as one: what a hidden table may be looked up by."""
    texts = [
        term
        for term in keys
        if all(value is None or (isinstance(value, str) and len(value) < 30) for value in term.values)
    ]
    for a, b in list(combinations(texts, 2))[:6]:
        both = [
            f"{x}|{y}" if x is not None and y is not None else MISSING for x, y in zip(a.values, b.values, strict=True)
        ]
        needs = (are(a.text, "string"), are(b.text, "string"))
        yield Term(f"({a.text} ~ '|' ~ {b.text})", both, 3, "argument", needs)


def _fields(
    values: Sequence[Any], text: str, of: str, depth: int, cost: int, needs: tuple[str, ...] = ()
) -> Iterator[Term]:
    for key in stable_fields(values):
        inner, name = values_at(values, key), member(text, key)
        yield Term(name, inner, cost, of, needs)
        if depth < DEPTH and _mostly(inner, dict):
            yield from _fields(inner, name, of, depth + 1, cost + 1, (*needs, are(name, "mapping")))


def _cursors(fields: Sequence[Term]) -> Iterator[Term]:
    """Yield what stands where a list of keys in the state leads to in a tree: the folder that one works in."""
    for path in (term for term in fields if _holds(term, list)):
        for tree in (term for term in fields if _holds(term, dict) and term is not path):
            between = Counter[str]()
            for place, whole in zip(path.values, tree.values, strict=True):
                for key in _keys_between(place, whole):
                    between[key] += 1
            for key in [each for each, count in between.items() if count >= LEAST_HITS][:2]:
                found = [_walk(whole, place, key) for place, whole in zip(path.values, tree.values, strict=True)]
                if sum(each is not MISSING for each in found) >= STABLE * sum(map(_is_path, path.values)):
                    text = f"at({tree.text}, [{path.text} | interleave({quote(key)}), {quote(key)}])"
                    needs = (*path.needs, *tree.needs, are(path.text, "sequence"))
                    steps = [
                        [*_root_path(tree), *_steps(place, key)] if _is_path(place) else None for place in path.values
                    ]
                    said = "\n".join([*_root_path(tree), f"{{{{ {path.text} | interleave({quote(key)}) }}}}", key])
                    yield Term(text, found, 2, "lookup", needs, (said, steps))


def _keys_between(place: Any, whole: Any) -> list[str]:
    first = whole.get(place[0]) if isinstance(whole, dict) and _is_path(place) else None
    return [key for key, value in first.items() if isinstance(value, dict)] if isinstance(first, dict) else []


def _is_path(place: Any) -> bool:
    return isinstance(place, list) and bool(place) and all(isinstance(key, str) for key in place)


def _root_path(tree: Term) -> list[str]:
    return tree.text.removeprefix(ROOT + ".").split(".")


def _steps(place: list[str], between: str) -> list[str]:
    return [token for key in place for token in (key, between)]


def _walk(whole: Any, place: Any, between: str) -> Any:
    if not _is_path(place):
        return MISSING
    for token in _steps(place, between):
        whole = whole.get(token, MISSING) if isinstance(whole, dict) else MISSING
    return whole


def _lookups(key: Term, containers: Sequence[Term], lists: Sequence[Term]) -> Iterator[Term]:
    """Yield what stands under a key in the containers, and the record of a list that has it as one of its fields."""
    # `at` refuses keys that are neither texts nor whole numbers
    needs = (*key.needs, are(key.text, "string", "integer"))
    for one in containers:
        if one.text in key.text:
            continue
        found = [_get(whole, each) for whole, each in zip(one.values, key.values, strict=True)]
        text = f"at({one.text}, [{key.text}])"
        yield from _found(text, found, one.cost + key.cost, (*needs, *one.needs))
    for one in lists:
        for field in stable_fields([item for value in one.values if isinstance(value, list) for item in value][:500])[
            :8
        ]:
            found = [_find(whole, field, each) for whole, each in zip(one.values, key.values, strict=True)]
            text = f"({one.text} | selectattr({quote(field)}, 'eq', {key.text}) | first)"
            yield from _found(text, found, one.cost + key.cost + 1, (*key.needs, *one.needs, are(one.text, "sequence")))


def _found(text: str, found: Sequence[Any], cost: int, needs: tuple[str, ...]) -> Iterator[Term]:
    if sum(value is not MISSING for value in found) >= LEAST_HITS:
        yield Term(text, found, cost, "lookup", needs)
        if _mostly([value for value in found if value is not MISSING], dict):
            yield from _fields(found, text, "lookup", DEPTH - 1, cost + 1, (*needs, are(text, "mapping")))


def _get(whole: Any, key: Any) -> Any:
    if not isinstance(whole, dict) or not is_key(key):
        return MISSING
    return whole.get(str(key), MISSING)


def _find(whole: Any, field: str, key: Any) -> Any:
    items = whole if isinstance(whole, list) else []
    return next((item for item in items if isinstance(item, dict) and is_key(key) and item.get(field) == key), MISSING)


def is_key(value: Any) -> bool:
    """Return whether a value may be a key: a text or a whole number."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def _is_key(term: Term) -> bool:
    return any(is_key(value) for value in term.values)


def _holds(term: Term, kind: type) -> bool:
    return _mostly([value for value in term.values if value is not MISSING and value is not None], kind)


def _mostly(values: Sequence[Any], kind: type) -> bool:
    known = [value for value in values if value is not MISSING]
    return bool(known) and sum(isinstance(value, kind) for value in known) >= STABLE * len(known)


def derive(terms: Sequence[Term], suffix: str, compute: Callable[[Any], Any]) -> list[Term]:
    """Return a filter of each term, such as ` | length`, where it has a value."""
    made = []
    for term in terms:
        values = [MISSING if value is MISSING else compute(value) for value in term.values]
        if any(value is not MISSING for value in values):
            # only of the types that have it: the filter refuses the others
            own = [MISSING if value is MISSING else each for each, value in zip(term.values, values, strict=True)]
            needs = replace(term, values=own).typed()
            made.append(Term(f"({term.text}{suffix})", values, term.cost + 1, term.of, needs))
    return made
