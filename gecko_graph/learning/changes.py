"""Effects: which changes of the state the rows of a branch have in common, and how results branch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import PatchConflict
from ..state import Json, JsonObject
from ..values.difference import json_equal, make_patch
from ..values.patch import apply_patch, find, pointer, tokens
from .explain import LEAST, Explainer, Value
from .terms import MISSING, Term, are, is_key, quote, stable_fields

APPEND = "-"
MOST_CHANGES, DEEP = 8, 3


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one row: where, and to what; MISSING for what is removed."""

    op: str
    path: tuple[str, ...]
    value: Any


@dataclass(frozen=True, slots=True)
class Program:
    """What a branch does: effects, or a result.

    Args:
        data: As the contract has it.
        fits: Whether it gives what was seen in a row.
        needs: What must hold so that it can be evaluated.
        lets: Values drawn anew.
        rows: Bits of the rows that it gives.
    """

    data: Any
    needs: tuple[str, ...]
    rows: int
    lets: JsonObject = field(default_factory=dict)


def changes_of(before: JsonObject, after: JsonObject) -> list[Change]:
    """Return the changes between two states; an item added at the end of a list has the path token `-`."""
    found = []
    state: Json = before
    for one in make_patch(before, after):
        path = tokens(one["path"])
        holder = _holder(state, path)
        op = one["op"]
        if isinstance(holder, list) and op == "add" and path[-1] in (APPEND, str(len(holder))):
            path = [*path[:-1], APPEND]
        elif op == "replace" and isinstance(holder, dict):
            op, old, new = "add", holder.get(path[-1]), one["value"]
            if (
                isinstance(old, list)
                and isinstance(new, list)
                and 0 <= len(new) - len(old) <= 2
                and new[: len(old)] == old
            ):
                found += [Change("add", (*path, APPEND), item) for item in new[len(old) :]]
                state = apply_patch(state, [one])
                continue
        found.append(Change(op, tuple(path), one.get("value", MISSING)))
        state = apply_patch(state, [one])
    return found


def _holder(state: Json, path: list[str]) -> Json:
    try:
        return find(state, path[:-1])
    except PatchConflict:
        return None


def find_effects(
    befores: Mapping[int, JsonObject],
    afters: Mapping[int, JsonObject],
    explainer: Explainer,
    parts: Sequence[int] = (),
) -> list[Program]:
    """Return programs of effects, those that give most rows first; together they may not give all."""
    seen = {row: changes_of(before, afters[row]) for row, before in befores.items()}
    still = sum(1 << row for row, changes in seen.items() if not changes)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row, changes in seen.items():
        if 0 < len(changes) <= MOST_CHANGES:
            groups.setdefault(_shape(changes), []).append(row)
    programs = [Program([], (), still)] if still else []
    for rows in groups.values():
        for some in _whole_or_parts(dict.fromkeys(rows), parts) if len(rows) >= LEAST else ():
            made = list(_program(list(some), seen, befores, afters, explainer))
            programs += made
            if made and len(some) == len(rows):
                break
    return sorted(programs, key=lambda one: (-one.rows.bit_count(), len(one.data)))


def _shape(changes: Sequence[Change]) -> tuple[Any, ...]:
    if len(changes) == 1 and len(changes[0].path) > DEEP:
        return ((changes[0].op, changes[0].path[0], changes[0].path[-1] == APPEND, _kind(changes[0].value)),)
    rough = [(one.op, one.path[0] if one.path else "", len(one.path), one.path[-1] == APPEND) for one in changes]
    if len(set(rough)) == len(rough):
        return tuple(sorted(rough))
    return tuple(sorted((one.op, len(one.path), *one.path) for one in changes))


def _kind(value: Any) -> str:
    return ",".join(sorted(value)) if isinstance(value, dict) else type(value).__name__


def _program(
    rows: Sequence[int],
    seen: Mapping[int, Sequence[Change]],
    befores: Mapping[int, JsonObject],
    afters: Mapping[int, JsonObject],
    explainer: Explainer,
) -> Iterator[Program]:
    ordered = {
        row: sorted(seen[row], key=lambda one: (one.op == "remove", one.path[:1], len(one.path), one.path[1:]))
        for row in rows
    }
    effects: list[tuple[str, list[Value], Value | None]] = []
    for number in range(len(ordered[rows[0]])):
        column = {row: ordered[row][number] for row in rows}
        path = _explain_path({row: one.path for row, one in column.items()}, befores, explainer)
        if path is None:
            return
        value = None
        if (op := column[rows[0]].op) != "remove":
            value = explainer.explain({row: one.value for row, one in column.items()}, f"new_{number}")
            if value is None:
                return
        effects.append((op, path, value))
    parts = [part for _, path, value in effects for part in [*path, *([value] if value else [])]]
    data: list[JsonObject] = [
        {"op": op, "path": [part.template for part in path], **({"value": value.template} if value else {})}
        for op, path, value in effects
    ]
    needs = tuple(dict.fromkeys(need for part in parts for need in part.needs))
    lets = {name: let for part in parts for name, let in part.lets.items()}
    fitting = sum(1 << row for row in befores if json_equal(_run(befores[row], row, effects), afters[row]))
    if fitting.bit_count() >= LEAST:
        yield Program(data, needs, fitting, lets)


def _run(state: Json, row: int, effects: Sequence[tuple[str, list[Value], Value | None]]) -> Any:
    """Return what effects make of a row's state, MISSING where they cannot be applied."""
    for op, path, value in effects:
        place, new = _spliced(path, row), value.at(row) if value else None
        if new is MISSING or not all(is_key(token) for token in place):
            return MISSING
        try:
            one: Any = {"op": op, "path": pointer(place), **({"value": new} if value else {})}
            state = apply_patch(state, [one])
        except PatchConflict:
            return MISSING
    return state


def _spliced(path: Sequence[Value], row: int) -> list[Any]:
    """Return the tokens of a path in a row; the first of a cursor's gives all of them."""
    place: list[Any] = []
    for part in path:
        token = part.at(row)
        place += token if isinstance(token, list) else [] if token is None else [token]
    return place


def _explain_path(
    paths: Mapping[int, tuple[str, ...]], befores: Mapping[int, JsonObject], explainer: Explainer
) -> list[Value] | None:
    """Return how each token of a path comes about: a constant, a term's value, the place of one in a list."""
    lengths = {len(path) for path in paths.values()}
    if (below := _explain_cursor(paths, explainer)) is not None or len(lengths) > 1:
        return below
    found = []
    for place in range(max(lengths)):
        column = {row: path[place] for row, path in paths.items()}
        if len(set(column.values())) == 1:
            token = next(iter(column.values()))
            named = _named(column, explainer.terms) if place and token != APPEND else None
            found.append(named or Value(token, lambda _, token=token: token))  # type: ignore[misc]
            continue
        part = _named(column, explainer.terms) or _indexed(column, paths, place, befores, explainer.terms)
        if part is None:
            return None
        found.append(part)
    return found


def _named(column: Mapping[int, str], terms: Sequence[Term]) -> Value | None:
    for term in terms:
        if all(is_key(term.values[row]) and str(term.values[row]) == token for row, token in column.items()):
            test = (are(term.text, "string", "integer"),)
            return Value("{{ " + term.text + " }}", lambda row, term=term: term.values[row], (*term.needs, *test))  # type: ignore[misc]
    return None


def _indexed(
    column: Mapping[int, str],
    paths: Mapping[int, tuple[str, ...]],
    place: int,
    befores: Mapping[int, JsonObject],
    terms: Sequence[Term],
) -> Value | None:
    """Return the index in a list as the place of a term's value, or as its last one."""
    holders = {row: _holder(befores[row], [*paths[row][: place + 1]]) for row in column}
    if not all(isinstance(holder, list) for holder in holders.values()):
        return None
    for whole in (term for term in terms if all(term.values[row] == holders[row] for row in column)):
        if all(int(token) == len(holders[row]) - 1 for row, token in column.items()):  # type: ignore[arg-type]
            needs = (*whole.typed(), f"{whole.text} != []")
            return Value("{{ (" + whole.text + " | length) - 1 }}", _last(whole), needs)
        for term in terms:
            for key in stable_fields([item for row in column for item in holders[row]]):  # type: ignore[union-attr]
                if all(_find_at(holders[row], key, term.values[row]) == int(token) for row, token in column.items()):
                    keys = f"({whole.text} | map(attribute={quote(key)}))"
                    needs = (*whole.typed(), *term.needs, f"{term.text} in {keys}")
                    return Value("{{ index(" + keys + f", {term.text}) }}}}", _index(whole, term, key), needs)
            if all(_is_at(holders[row], int(token), term.values[row]) for row, token in column.items()):
                needs = (*whole.typed(), *term.needs, f"{term.text} in {whole.text}")
                return Value("{{ index(" + whole.text + f", {term.text}) }}}}", _index(whole, term), needs)
    return None


def _last(whole: Term) -> Callable[[int], Any]:
    return lambda row: len(whole.values[row]) - 1 if isinstance(whole.values[row], list) else MISSING


def _index(whole: Term, term: Term, key: str = "") -> Callable[[int], Any]:
    def at(row: int) -> Any:
        items, one = whole.values[row], term.values[row]
        if key:
            return MISSING if (found := _find_at(items, key, one)) is None else found
        return items.index(one) if isinstance(items, list) and one in items else MISSING

    return at


def _find_at(items: Any, key: str, value: Any) -> int | None:
    """Return the place of the first record of a list that has a value as a field."""
    keys = [item.get(key) if isinstance(item, dict) else None for item in items] if isinstance(items, list) else []
    return keys.index(value) if is_key(value) and value in keys else None


def _is_at(holder: Any, index: int, value: Any) -> bool:
    return is_key(value) and value in holder and holder.index(value) == index


def _explain_cursor(paths: Mapping[int, tuple[str, ...]], explainer: Explainer) -> list[Value] | None:
    """Return a path that begins where the state says that one works, as in a tree of folders."""
    for cursor in (term for term in explainer.terms if term.path):
        said, steps = cursor.path or ("", [])
        depth = {row: len(steps[row] or ()) for row in paths}
        if not all(steps[row] and list(path[: depth[row]]) == steps[row] for row, path in paths.items()):
            continue
        rest = {row: path[depth[row] :] for row, path in paths.items()}
        if len({len(each) for each in rest.values()}) != 1 or any(not each for each in rest.values()):
            continue
        tail = _explain_tokens(rest, explainer.terms)
        if tail is not None:
            tokens_of = [Value(token, lambda row: None, cursor.typed()) for token in said.split("\n")]
            whole = replace(tokens_of[0], at=lambda row, steps=steps: steps[row] or MISSING)  # type: ignore[misc]
            return [whole, *tokens_of[1:], *tail]
    return None


def _explain_tokens(paths: Mapping[int, tuple[str, ...]], terms: Sequence[Term]) -> list[Value] | None:
    found = []
    for place in range(len(next(iter(paths.values())))):
        column = {row: path[place] for row, path in paths.items()}
        token = next(iter(column.values()))
        part = _named(column, terms)
        if part is None and len(set(column.values())) == 1:
            part = Value(token, lambda _, token=token: token)  # type: ignore[misc]
        if part is None:
            return None
        found.append(part)
    return found


def cover(programs: Sequence[Program], rows: int) -> tuple[list[Program], int]:
    """Return few programs that give (nearly) all rows, and the rows that none gives."""
    chosen: list[Program] = []
    left = rows
    while left and len(chosen) < 4:
        best = max(programs, key=lambda one: (one.rows & left).bit_count(), default=None)
        if best is None or (best.rows & left).bit_count() < LEAST:
            break
        chosen.append(best)
        left &= ~best.rows
    return chosen, left


def find_results(seen: Mapping[int, Any], explainer: Explainer, parts: Sequence[int] = ()) -> list[Program]:
    """Return programs of results by their shapes, those that give most rows first.

    Where one shape has no program, `parts` of the rows are tried: bits, such as the calls with one value of an argument.
    """
    groups: dict[str, dict[int, Any]] = {}
    for row, value in seen.items():
        groups.setdefault(_result_shape(value), {})[row] = value
    programs = []
    for shape, _ in Counter({shape: len(rows) for shape, rows in groups.items()}).most_common(6):
        for rows in _whole_or_parts(groups[shape], parts):
            value = explainer.explain(rows, "new")
            if value is not None:
                fitting = sum(1 << row for row, each in seen.items() if _fits(value.at(row), each))
                programs.append(Program(value.template, value.needs, fitting, value.lets))
                if len(rows) == len(groups[shape]):
                    break
    return sorted(programs, key=lambda one: -one.rows.bit_count())


def _whole_or_parts(rows: Mapping[int, Any], parts: Sequence[int]) -> Iterator[dict[int, Any]]:
    yield dict(rows)
    for part in parts:
        some = {row: value for row, value in rows.items() if part >> row & 1}
        if LEAST <= len(some) < len(rows):
            yield some


def _fits(made: Any, seen: Json) -> bool:
    return made is not MISSING and json_equal(made, seen)


def _result_shape(value: Json) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(sorted(value)) + "}" if len(value) <= 12 else "{}"
    return type(value).__name__
