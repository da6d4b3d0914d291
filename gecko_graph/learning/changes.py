"""Branches: the common effects and result of a branch's rows.

A branch's effects and result are evaluated in the contract language, on each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from ..contracts.clauses import PatchBuilder, load_effects
from ..contracts.language.examine import ANY
from ..contracts.language.expression import Location, Scope
from ..contracts.language.template import Template
from ..contracts.run import BASE
from ..errors import ContractError, EvaluationFailed, PatchConflict
from ..state import Json, JsonObject
from ..values.difference import json_equal, make_patch
from ..values.patch import apply_patch, find, tokens
from .explain import LEAST, Explainer, ValueTemplate, join
from .terms import MISSING, Term, are, grouped, is_key, member, stable_fields

Kind = Literal["effects", "returns"]
Explain = Callable[[Mapping[int, Any]], ValueTemplate | None]
APPEND = "-"
MOST_CHANGES, DEEP, MOST_PROGRAMS = 8, 3, 4


@dataclass(frozen=True, slots=True)
class Program:
    """A branch's effects or result in the contract's form, and the bits of the rows that it explains."""

    value: ValueTemplate
    rows: int


@dataclass(frozen=True, slots=True)
class Lawful:
    """The successful rows of a tool by number: arguments, the state before and after, the result."""

    args: Mapping[int, JsonObject]
    befores: Mapping[int, JsonObject]
    afters: Mapping[int, JsonObject]
    results: Mapping[int, Json]
    parts: Sequence[int] = ()
    """Bits of rows that may be branches."""

    def find(self, seen: Mapping[int, Any], shape: Callable[[Any], Any], explain: Explain, kind: Kind) -> list[Program]:
        """Return programs for the rows' changes, grouped by shape; those that explain most rows first.

        If the rows of a shape have no program, their parts are tried; the programs need not cover all rows.
        """
        groups: dict[Any, dict[int, Any]] = {}
        for row, value in seen.items():
            groups.setdefault(shape(value), {})[row] = value
        programs: list[Program] = []
        for group in groups.values():
            for rows in self._whole_or_parts(group):
                found = explain(rows) if len(rows) >= LEAST else None
                given = self._given(found, kind) if found else 0
                if found and given.bit_count() >= LEAST:
                    programs.append(Program(found, given))
                    if len(rows) == len(group):
                        break
        return sorted(programs, key=lambda one: (-one.rows.bit_count(), len(str(one.value.template))))

    def _given(self, value: ValueTemplate, kind: Kind) -> int:
        """Return the bits of the rows that a template, or a list of effects, explains."""
        place = Location("learned", dict.fromkeys(BASE, ANY))
        try:
            effects = load_effects(value.template, place) if kind == "effects" else []
            template = Template(value.template, place) if kind == "returns" else None
        except ContractError:
            return 0
        given = 0
        for row, real in (self.afters if kind == "effects" else self.results).items():
            before = self.befores.get(row, {})
            state = before if kind == "effects" else self.afters.get(row, {})
            values = {"args": self.args[row], "before": before, "state": state, "call": {}, "calls": [], "now": ""}
            scope = Scope(values)
            try:
                change = PatchBuilder(scope, before)
                for effect in effects:
                    effect.apply(change)
                given |= json_equal(template.fill(scope) if template else change.state, real) << row
            except (EvaluationFailed, KeyError):
                continue
        return given

    def _whole_or_parts(self, rows: Mapping[int, Any]) -> Iterator[dict[int, Any]]:
        """Yield the rows, then parts of them, until the caller has a program for all."""
        yield dict(rows)
        objects = {row: value.values() for row, value in rows.items() if isinstance(value, dict)}
        words = grouped((row, tuple(one for one in some if isinstance(one, bool))) for row, some in objects.items())
        for part in [*(words.values() if len(words) > 1 else ()), *self.parts]:
            some = {row: value for row, value in rows.items() if part >> row & 1}
            if LEAST <= len(some) < len(rows):
                yield some


def shape_of(value: Json) -> str:
    return ",".join(sorted(value)) if isinstance(value, dict) else type(value).__name__


@dataclass(frozen=True, slots=True)
class Changed:
    """A change of a row: its place, and the new value; MISSING for a removal."""

    op: str
    path: tuple[str, ...]
    value: Any


def changes_of(before: JsonObject, after: JsonObject) -> list[Changed]:
    """Return the changes between two states; an item appended to a list has the path token `-`."""
    found: list[Changed] = []
    state: Json = before
    for one in make_patch(before, after):
        path, value = tuple(tokens(one["path"])), one.get("value", MISSING)
        holder, old = _at(state, path[:-1]), _at(state, path)
        if old == [] and isinstance(value, list) and len(value) == 1:
            path, value, holder = (*path, APPEND), value[0], old
        if isinstance(holder, list) and one["op"] == "add" and path[-1] in (APPEND, str(len(holder))):
            path = (*path[:-1], APPEND)
        is_put = one["op"] == "replace" and isinstance(holder, dict)
        found.append(Changed("add" if is_put or path[-1:] == (APPEND,) else one["op"], path, value))
        state = apply_patch(state, [one])
    return sorted(found, key=lambda each: (each.op == "remove", each.path[:1], len(each.path), each.path[1:]))


def _at(state: Json, path: Sequence[str]) -> Any:
    try:
        return find(state, list(path))
    except PatchConflict:
        return MISSING


def find_effects(lawful: Lawful, explainer: Explainer) -> list[Program]:
    seen = {
        row: changes_of(before, lawful.afters[row]) for row, before in lawful.befores.items() if row in lawful.afters
    }
    still = sum(1 << row for row, some in seen.items() if not some)
    some = {row: changes for row, changes in seen.items() if 0 < len(changes) <= MOST_CHANGES}
    explain = partial(_effects, befores=lawful.befores, explainer=explainer)
    found = lawful.find(some, _shape, explain, "effects")
    return [*([Program(ValueTemplate([]), still)] if still else []), *found]


def _shape(changes: Sequence[Changed]) -> tuple[Any, ...]:
    """Return a key by which changes of one kind are grouped: without keys of a map, or the depth in a tree."""
    if len(changes) == 1 and len(changes[0].path) > DEEP:
        return (changes[0].op, changes[0].path[0], changes[0].path[-1] == APPEND, shape_of(changes[0].value))
    rough = tuple((one.op, one.path[:1], len(one.path), one.path[-1:] == (APPEND,)) for one in changes)
    return rough if len(set(rough)) == len(rough) else tuple((one.op, one.path) for one in changes)


def _effects(
    rows: Mapping[int, Sequence[Changed]], befores: Mapping[int, JsonObject], explainer: Explainer
) -> ValueTemplate | None:
    effects: list[Json] = []
    parts: list[ValueTemplate] = []
    for number, first in enumerate(next(iter(rows.values()))):
        path = _explain_path({row: changes[number].path for row, changes in rows.items()}, befores, explainer.terms)
        seen = {row: changes[number].value for row, changes in rows.items()}
        value = None if first.op == "remove" else explainer.explain(seen, first.path[-1])
        if path is None or (value is None and first.op != "remove"):
            return None
        said = {"value": value.template} if value else {}
        effects.append({"op": first.op, "path": [part.template for part in path], **said})
        parts += [*path, *([value] if value else [])]
    return join(parts, effects)


Paths = Mapping[int, tuple[str, ...]]


def _explain_path(paths: Paths, befores: Mapping[int, JsonObject], terms: Sequence[Term]) -> list[ValueTemplate] | None:
    """Return an explanation of each token of a path; it may begin at the working folder in a tree."""
    for cursor in (term for term in terms if term.path):
        path_tokens, steps = cursor.path or ((), [])
        if all(steps[row] and list(path[: len(steps[row])]) == steps[row] for row, path in paths.items()):
            rest = {row: path[len(steps[row]) :] for row, path in paths.items()}
            if (tail := _explain_tokens(rest, {}, terms)) is not None:
                return [*(ValueTemplate(token, cursor.typed()) for token in path_tokens), *tail]
    return _explain_tokens(paths, befores, terms)


def _explain_tokens(
    paths: Paths, befores: Mapping[int, JsonObject], terms: Sequence[Term]
) -> list[ValueTemplate] | None:
    if len({len(path) for path in paths.values()}) > 1:
        return None
    found = []
    for place in range(len(next(iter(paths.values())))):
        column = {row: path[place] for row, path in paths.items()}
        is_same = len(set(column.values())) == 1
        token = next(iter(column.values()))
        part = _named(column, terms) if place or not is_same else None
        if part is None and is_same:
            part = ValueTemplate(token)
        if part is None and befores:
            holders = {row: _at(befores[row], path[:place]) for row, path in paths.items()}
            part = _indexed(column, holders, terms)
        if part is None:
            return None
        found.append(part)
    return found


def _named(column: Mapping[int, str], terms: Sequence[Term]) -> ValueTemplate | None:
    for term in terms:
        if all(is_key(term.values[row]) and str(term.values[row]) == token for row, token in column.items()):
            return ValueTemplate("{{ " + term.text + " }}", (*term.guards, are(term.text, "int", "str")))
    return None


def _indexed(column: Mapping[int, str], holders: Mapping[int, Any], terms: Sequence[Term]) -> ValueTemplate | None:
    """Return a list index as the position of a term's value or record, or as the last one."""
    if not all(isinstance(holder, list) for holder in holders.values()):
        return None
    fields = ["", *stable_fields([item for holder in holders.values() for item in holder])]
    for whole in (term for term in terms if all(term.values[row] == holders[row] for row in column)):
        if all(int(token) == len(holders[row]) - 1 for row, token in column.items()):
            return ValueTemplate("{{ len(" + whole.text + ") - 1 }}", (*whole.typed(), f"{whole.text} != []"))
        for term, key in ((term, key) for term in terms for key in fields):
            if all(_find(holders[row], key, term.values[row]) == int(token) for row, token in column.items()):
                keys = f"[{member('each', key)} for each in {whole.text}]" if key else whole.text
                needs = (*whole.typed(), *term.guards, f"{term.text} in {keys}")
                return ValueTemplate("{{ index(" + keys + f", {term.text}) }}}}", needs)
    return None


def _find(items: list[Any], key: str, value: Any) -> int | None:
    """Return the position of a value in a list, or of the first record with the value in a field."""
    keys = [item.get(key) if key and isinstance(item, dict) else item for item in items]
    return keys.index(value) if is_key(value) and value in keys else None


def cover(programs: Sequence[Program], rows: int) -> tuple[list[Program], int]:
    chosen: list[Program] = []
    while rows and programs and len(chosen) < MOST_PROGRAMS:
        best = max(programs, key=lambda one: (one.rows & rows).bit_count())
        if (best.rows & rows).bit_count() < LEAST:
            break
        chosen.append(best)
        rows &= ~best.rows
    return chosen, rows
