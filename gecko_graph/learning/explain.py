"""Explain values: find a template of the contract language that yields the values of some rows.

Tried in this order: a constant, a term, arithmetic of two terms, the members of an object, a text with holes, a table
of observed values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any

from ..derive.blanks import as_key
from ..schemas.subschemas import is_number
from ..state import Json
from ..values.difference import json_equal
from ..values.observation import is_masked
from ..values.places import as_text
from .conditions import SIGNS, combine
from .terms import MISSING, Term, are, derive, quote

LEAST, DIGITS, LONGEST_TABLE, MOST_NUMBERS, MOST_HOLES = 3, 6, 200, 30, 6
Seen = Mapping[int, Any]


@dataclass(frozen=True, slots=True)
class ValueTemplate:
    """An explanation of a value: a template, and the conditions for its evaluation."""

    template: Json
    needs: tuple[str, ...] = ()


def join(parts: Iterable[ValueTemplate], template: Json) -> ValueTemplate:
    return ValueTemplate(template, tuple(dict.fromkeys(need for part in parts for need in part.needs)))


@dataclass(slots=True)
class Explainer:
    """Finds templates over some terms."""

    terms: Sequence[Term]
    has_tables: bool = True

    def explain(self, seen: Seen, name: str = "") -> ValueTemplate | None:
        """Return an explanation of the rows' values; None if there is no simple one. `name` is the member's name."""
        if len(seen) < LEAST or any(is_masked(value) for value in seen.values()):
            return None
        values = list(seen.values())
        if all(json_equal(values[0], value) for value in values):
            return ValueTemplate(escape(values[0]))
        texts = partial(fit_text, terms=self.terms)
        of_kind = ((int | float, self._sum), (dict | list, self._members), (str, texts))
        ways = [
            partial(self._term, name=name),
            *(way for kind, way in of_kind if all(isinstance(value, kind) for value in values)),
        ]
        ways += [self._table] if self.has_tables else []
        return next((found for way in ways if (found := way(seen)) is not None), None)

    def _term(self, seen: Seen, name: str) -> ValueTemplate | None:
        """Return the first term with these values, preferably one with the member's name."""
        fitting = (
            term
            for term in self.terms
            if all(term.values[at] is not MISSING and json_equal(term.values[at], each) for at, each in seen.items())
        )
        if (term := next(fitting, None)) is None:
            return None
        if name and not term.text.endswith(f".{name}"):
            term = next((other for other in fitting if other.text.endswith(f".{name}")), term)
        needs = term.typed()
        texts = [value for value in term.values if isinstance(value, str)]
        if term.of != "argument" and texts and not any("\n" in value for value in texts):
            needs = (*needs, f"'\\n' not in {term.text}")  # the treatment of lines was not observed
        return ValueTemplate("{{ " + term.text + " }}", needs)

    def _sum(self, seen: Seen) -> ValueTemplate | None:
        known = [term for term in self.terms if all(is_number(term.values[row]) for row in seen)][:MOST_NUMBERS]
        for one in _sums(known, seen):
            if all(one.values[row] == value for row, value in seen.items()):
                if all(type(one.values[row]) is type(value) for row, value in seen.items()):
                    return ValueTemplate("{{ " + one.text + " }}", one.typed())
                if all(isinstance(value, float) for value in seen.values()):
                    return ValueTemplate("{{ float(" + one.text + ") }}", one.typed())
        return None

    def _members(self, seen: Seen) -> ValueTemplate | None:
        """Return the members of objects with the same keys, or of short lists of the same length."""
        first = next(iter(seen.values()))
        keys = list(first) if isinstance(first, dict) else list(range(min(len(first), LEAST)))
        if not keys or any(len(value) != len(keys) or type(value) is not type(first) for value in seen.values()):
            return None
        if isinstance(first, dict) and any(value.keys() != first.keys() for value in seen.values()):
            return None
        parts = list[ValueTemplate]()
        for key in keys:
            part = self.explain({row: value[key] for row, value in seen.items()}, str(key))
            if part is None:
                return None
            parts.append(part)
        made = [part.template for part in parts]
        return join(parts, dict(zip(keys, made, strict=True)) if isinstance(first, dict) else made)

    def _table(self, seen: Seen) -> ValueTemplate | None:
        """Return the results seen for each value of one argument; other values are unknown."""
        for term in (term for term in self.terms if term.of == "argument"):
            table: dict[str, Any] = {}
            keys = [term.values[row] for row in seen]
            if not all(isinstance(key, str) for key in keys):
                continue
            repeated = sum(keys.count(key) > 1 for key in set(keys))
            if repeated < 2 or 2 * repeated < len(set(keys)) or len(set(keys)) > LONGEST_TABLE:
                continue
            same = all(json_equal(table.setdefault(term.values[row], value), value) for row, value in seen.items())
            said = json.dumps(table, ensure_ascii=False, sort_keys=True)
            if same and not any(isinstance(value, dict | bool | None) for value in table.values()) and "{{" not in said:
                needs = (are(term.text, "str"), f"{term.text} in {json.dumps(sorted(table), ensure_ascii=False)}")
                return ValueTemplate("{{ at(" + said + f", [{term.text}]) }}}}", needs)
        return None


def escape(value: Json) -> Json:
    """Return a constant as a template: texts and keys that look like expressions or forms are quoted."""
    if isinstance(value, str):
        return "{{ " + quote(value) + " }}" if "{{" in value or "{%" in value else value
    if isinstance(value, dict):
        return {as_key(key): escape(each) for key, each in value.items()}
    return [escape(each) for each in value] if isinstance(value, list) else value


def fit_text(seen: Mapping[int, str], terms: Sequence[Term]) -> ValueTemplate | None:
    holes: list[tuple[Term, dict[int, str]]] = []
    for term in terms:
        if all(_show(term.values[row]) in text for row, text in seen.items()):
            shown = {row: _show(term.values[row]) for row in seen}
            holes += [(term, shown)] if len(set(shown.values())) > 1 else []
    holes = sorted(holes, key=lambda hole: (-sum(map(len, hole[1].values())), hole[0].cost))[:MOST_HOLES]
    if not holes:
        return None
    first = max(seen, key=lambda row: sum(len(shown[row]) > 1 for _, shown in holes))
    by = {shown[first]: (term, shown) for term, shown in reversed(holes) if shown[first]}
    pieces = re.split(f"({'|'.join(map(re.escape, sorted(by, key=len, reverse=True)))})", seen[first])
    used = [by[piece] for piece in pieces[1::2]]
    for row, text in seen.items():
        filled = [shown[row] for _, shown in used]
        if "".join(each for pair in zip(pieces[::2], [*filled, ""], strict=True) for each in pair) != text:
            return None
    said = ["{{ " + term.text + " }}" for term, _ in used]
    template = "".join(each for pair in zip(pieces[::2], [*said, ""], strict=True) for each in pair)
    return ValueTemplate(template, tuple(dict.fromkeys(need for term, _ in used for need in term.typed())))


def _show(value: Any) -> str:
    return as_text(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else "\0"


def _sums(known: Sequence[Term], seen: Seen) -> Iterator[Term]:
    """Yield sums, differences and products of two terms, or of one and a short constant, that match the first row."""
    row, value = next(iter(seen.items()))
    for a in known:
        x = a.values[row]
        varies = len({a.values[at] for at in seen}) >= LEAST
        made = {"+": round(value - x, DIGITS), "*": round(value / x, DIGITS) if x > 0 < value and varies else 0}
        for sign, constant in made.items():
            if constant and len(f"{abs(constant):.12g}".replace(".", "").strip("0")) <= DIGITS:
                constant = int(constant) if constant == int(constant) else constant
                text, sign = (str(-constant), "-") if constant < 0 else (str(constant), sign)
                yield combine(a, Term(text, [abs(constant)] * len(a.values), 1, "constant"), sign)
    for a, b in permutations(known, 2):
        for sign in "+-*":
            if (sign == "-" or a.text < b.text) and SIGNS[sign](a.values[row], b.values[row]) == value:
                yield combine(a, b, sign)


def richer(terms: Sequence[Term]) -> list[Term]:
    """Return terms with common forms of results: keys, values, lengths."""
    return [*terms, *(one for way in _MADE for one in derive(terms, *way))]


_MADE: Sequence[tuple[str, Any, Callable[[Any], Any]]] = (
    ("{}.keys()", dict, list),
    ("{}.values()", dict, lambda value: [*value.values()]),
    ("len({})", dict | list | str, len),
    ("len({}.split())", str, lambda value: len(value.split())),
    ("len({}.splitlines())", str, lambda value: len(value.splitlines())),
    ("{}[-1]", list | str, lambda value: value[-1] if value else MISSING),
)
"""Common forms of results: the form, the type of its values, and its function."""
