"""Explanations of values: the template of the contract language that gives what was seen in some rows.

Tried in this order: a constant, a term, arithmetic of two, the members of an object, a text with holes, a value that
is drawn anew, a table of what was seen.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..state import Json, JsonObject
from ..values.difference import json_equal
from .conditions import is_number
from .observation import is_masked
from .terms import MISSING, Term, are, derive, quote
from .texts import fit_text

LEAST = 3
LONGEST_TABLE = 200
DIGITS = 6
_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


@dataclass(frozen=True, slots=True)
class Value:
    """How a value comes about.

    Args:
        template: As the contract has it.
        at: Its value in a row, by number; MISSING where it has none.
        needs: What must hold, so that it can be evaluated and is known.
        lets: Values that are drawn anew, by name.
    """

    template: Json
    at: Callable[[int], Any]
    needs: tuple[str, ...] = ()
    lets: JsonObject = field(default_factory=dict)


@dataclass(slots=True)
class Explainer:
    """Finds templates over some terms; `drawn` collects what is drawn anew, as terms for what comes after."""

    terms: Sequence[Term]
    tables: bool = True
    drawn: list[Term] = field(default_factory=list)
    may_draw: bool = True

    def explain(self, seen: Mapping[int, Any], place: str = "new") -> Value | None:
        """Return how the values of these rows come about; None where nothing simple does."""
        if len(seen) < LEAST or any(is_masked(value) for value in seen.values()):
            return None
        rows, values = list(seen), list(seen.values())
        first = values[0]
        if all(json_equal(first, value) for value in values):
            return self._constant(first, rows)
        return (
            self._term(seen)
            or (self._sum(seen) if all(is_number(value) for value in values) else None)
            or (self._object(seen, place) if isinstance(first, dict) else None)
            or (self._text(seen) if all(isinstance(value, str) for value in values) else None)
            or (self._list(seen, place) if isinstance(first, list) else None)
            or (self._drawn(seen, place) if self.may_draw else None)
            or (self._table(seen) if self.tables else None)
        )

    def _constant(self, value: Json, rows: Sequence[int]) -> Value:
        # a value that every row has may also be that of a term; a constant is the plainer reading of a small one
        if value not in (None, True, False, 0, 1, "", [], {}) and not isinstance(value, dict):
            for term in self.terms:
                if all(json_equal(term.values[row], value) for row in rows if term.values[row] is not MISSING):
                    if all(term.values[row] is not MISSING for row in rows) and term.of == "argument":
                        return _of_term(term)
        return Value(escape(value), lambda _: value)

    def _term(self, seen: Mapping[int, Any]) -> Value | None:
        (row, value), *_ = seen.items()
        for term in self.terms:
            if _same(term.values[row], value) and all(_same(term.values[at], each) for at, each in seen.items()):
                return _of_term(term)
        return None

    def _sum(self, seen: Mapping[int, Any]) -> Value | None:
        known = [term for term in self.terms if all(is_number(term.values[row]) for row in seen)][:30]
        for text, values, needs in _sums(known, seen):
            if all(_close(values[row], value) for row, value in seen.items()):
                if any(type(values[row]) is not type(value) for row, value in seen.items()):
                    if not all(isinstance(value, float) for value in seen.values()):
                        continue
                    text, values = f"({text}) | float", [each if each is MISSING else float(each) for each in values]
                return Value("{{ " + text + " }}", lambda row, values=values: values[row], needs)  # type: ignore[misc]
        return None

    def _object(self, seen: Mapping[int, Any], place: str) -> Value | None:
        keys = list(next(iter(seen.values())))
        if not keys or not all(
            isinstance(value, dict) and list(value) == keys or isinstance(value, dict) and {*value} == {*keys}
            for value in seen.values()
        ):
            return None
        parts: dict[str, Value] = {}
        for key in keys:
            part = self.explain({row: value[key] for row, value in seen.items()}, f"{place}_{key}")
            if part is None:
                return None
            parts[key] = part
        return _whole({key: part.template for key, part in parts.items()}, parts)

    def _list(self, seen: Mapping[int, Any], place: str) -> Value | None:
        lengths = {len(value) if isinstance(value, list) else -1 for value in seen.values()}
        if len(lengths) != 1 or not 0 < min(lengths) <= 4:
            return None
        parts = [
            self.explain({row: value[at] for row, value in seen.items()}, f"{place}_{at}") for at in range(min(lengths))
        ]
        if any(part is None for part in parts):
            return None
        known: list[Value] = [part for part in parts if part is not None]
        needs = tuple(dict.fromkeys(need for part in known for need in part.needs))
        return Value([part.template for part in known], lambda row: _all([part.at(row) for part in known]), needs)

    def _text(self, seen: Mapping[int, Any]) -> Value | None:
        rows = list(seen)
        picked = [Term(t.text, [t.values[row] for row in rows], t.cost, t.of, t.needs) for t in self.terms]
        template = fit_text(list(seen.values()), picked)
        if template is None:
            return None
        used = [term for term in self.terms if "{{ " + term.text + " }}" in template]
        pieces = re.split(r"\{\{ (.+?) \}\}", template)
        by_text = {term.text: term for term in used}

        def at(row: int) -> Any:
            values = [by_text[piece].values[row] if odd % 2 else piece for odd, piece in enumerate(pieces)]
            return MISSING if MISSING in values else "".join(v if isinstance(v, str) else json.dumps(v) for v in values)

        if any(piece not in by_text for piece in pieces[1::2]):
            return None
        return Value(template, at, tuple(dict.fromkeys(need for term in used for need in term.typed())))

    def _drawn(self, seen: Mapping[int, Any], place: str) -> Value | None:
        """Return a value that is another one in each row and of one shape: an identifier, a token."""
        values = list(seen.values())
        if len(values) < 5 or len({quote(v) for v in values if _is_plain(v)}) < 0.9 * len(values):
            return None
        name = re.sub(r"\W", "_", place)
        if all(isinstance(value, int) and not isinstance(value, bool) and value > 999 for value in values):
            lengths = {len(str(value)) for value in values}
            if max(lengths) - min(lengths) > 1:
                return None
            draw = f"{{{{ random_int({10 ** (min(lengths) - 1)}, {10 ** max(lengths) - 1}) }}}}"
        elif all(isinstance(value, str) and value.isdigit() and len(value) == len(values[0]) >= 4 for value in values):
            draw = "{{ new_id('', " + quote("9" * len(values[0])) + ") }}"
        else:
            return None
        longest = len(self.terms[0].values) if self.terms else max(seen) + 1
        term = Term(name, [seen.get(row, MISSING) for row in range(longest)], 1, "drawn")
        self.drawn.append(term)
        return Value("{{ " + name + " }}", lambda row: seen.get(row, MISSING), (), {name: draw})

    def _table(self, seen: Mapping[int, Any]) -> Value | None:
        """Return what was seen for each value of one argument: nothing is known of another."""
        for term in self.terms:
            if term.of != "argument":
                continue
            table: dict[str, Any] = {}
            times: dict[str, int] = {}
            for row, value in seen.items():
                key = term.values[row]
                if not isinstance(key, str) or not json_equal(table.setdefault(key, value), value):
                    break
                times[key] = times.get(key, 0) + 1
            else:
                repeated = sum(count > 1 for count in times.values())
                if repeated >= 2 and 2 * repeated >= len(times) and len(table) <= LONGEST_TABLE and _is_small(table):
                    text = json.dumps(table, ensure_ascii=False).replace("null", "none")
                    needs = (
                        are(term.text, "string"),
                        f"{term.text} in {json.dumps(sorted(table), ensure_ascii=False)}",
                    )
                    return Value("{{ at(" + text + f", [{term.text}]) }}}}", _reader(term, table), needs)
        return None


def _reader(term: Term, table: JsonObject) -> Callable[[int], Any]:
    return lambda row: table.get(term.values[row], MISSING) if isinstance(term.values[row], str) else MISSING


def _is_small(table: JsonObject) -> bool:
    values = [each for value in table.values() for each in (value if isinstance(value, list) else [value])]
    plain = all(_is_plain(value) and value is not None and not isinstance(value, bool) for value in values)
    return plain and "{{" not in json.dumps(table)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _of_term(term: Term) -> Value:
    needs = term.typed()
    texts = [value for value in term.values if isinstance(value, str)]
    if term.of != "argument" and texts and not any("\n" in value for value in texts):
        needs = (
            *needs,
            f"('\\n' not in {term.text} if {term.text} is string else true)",
        )  # what lines are for was not seen
    return Value("{{ " + term.text + " }}", lambda row: term.values[row] if row < len(term.values) else MISSING, needs)


def _whole(template: Json, parts: Mapping[str, Value]) -> Value:
    def at(row: int) -> Any:
        made = {key: part.at(row) for key, part in parts.items()}
        return MISSING if MISSING in made.values() else made

    needs = tuple(dict.fromkeys(need for part in parts.values() for need in part.needs))
    return Value(template, at, needs, {name: let for part in parts.values() for name, let in part.lets.items()})


def _all(values: list[Any]) -> Any:
    return MISSING if any(value is MISSING for value in values) else values


def _same(a: Any, b: Any) -> bool:
    return a is not MISSING and json_equal(a, b)


def _close(a: Any, b: Any) -> bool:
    return a is not MISSING and is_number(a) and bool(a == b)


def escape(value: Json) -> Json:
    """Return a constant as a template: texts with braces are written as expressions."""
    if isinstance(value, str):
        return "{{ " + quote(value) + " }}" if "{{" in value or "{%" in value else value
    if isinstance(value, dict):
        return {key: escape(each) for key, each in value.items()}
    return [escape(each) for each in value] if isinstance(value, list) else value


Sum = tuple[str, Sequence[Any], tuple[str, ...]]


def _sums(known: Sequence[Term], seen: Mapping[int, Any]) -> Iterator[Sum]:
    """Yield sums, differences and products of two terms, and of one with a short constant."""
    row, value = next(iter(seen.items()))
    for a in known:
        x = a.values[row]
        for sign, constant in (("+", value - x), ("*", value / x if x else 0)):
            constant = round(constant, DIGITS)
            constant = (
                int(constant)
                if constant == int(constant) and not (sign == "*" and isinstance(value, float) and isinstance(x, int))
                else constant
            )
            if constant and _is_short(constant) and (sign == "+" or len({a.values[r] for r in seen}) >= LEAST):
                said = (
                    f"{a.text} {sign} {constant}" if constant > 0 else f"{a.text} - {-constant}" if sign == "+" else ""
                )
                if said:
                    yield said, [_apply(sign, each, constant) for each in a.values], a.typed()
    for a in known:
        for b in known:
            for sign in _SIGNS if a.text <= b.text else "-":
                if a is not b and _apply(sign, a.values[row], b.values[row]) == value:
                    pairs = zip(a.values, b.values, strict=True)
                    yield f"{a.text} {sign} {b.text}", [_apply(sign, x, y) for x, y in pairs], (*a.typed(), *b.typed())


def _apply(sign: str, a: Any, b: Any) -> Any:
    return _SIGNS[sign](a, b) if is_number(a) and is_number(b) else MISSING


def _is_short(constant: float) -> bool:
    return len(f"{abs(constant):.12g}".replace(".", "").strip("0")) <= DIGITS


def richer(terms: Sequence[Term]) -> list[Term]:
    """Return terms with what results are often made of: keys, values, lengths."""
    holders = [term for term in terms if any(isinstance(value, dict) for value in term.values)]
    lists = [term for term in terms if any(isinstance(value, list | str) for value in term.values)]
    texts = [term for term in terms if term.of == "lookup" and any(isinstance(value, str) for value in term.values)]
    counts = [term for term in terms if any(type(value) is int for value in term.values)]
    return [
        *terms,
        *derive(counts, " | float", lambda value: float(value) if is_number(value) else MISSING),
        *derive(holders, " | keys", lambda value: list(value) if isinstance(value, dict) else MISSING),
        *derive(holders, " | values", lambda value: list(value.values()) if isinstance(value, dict) else MISSING),
        *derive(
            [*holders, *lists],
            " | length",
            lambda value: len(value) if isinstance(value, list | dict | str) else MISSING,
        ),
        *derive(texts, ".split() | length", lambda value: len(value.split()) if isinstance(value, str) else MISSING),
        *derive(
            texts, " | lines | length", lambda value: len(value.splitlines()) if isinstance(value, str) else MISSING
        ),
        *derive(lists, " | last", lambda value: value[-1] if isinstance(value, list | str) and value else MISSING),
    ]
