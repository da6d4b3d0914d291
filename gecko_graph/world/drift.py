"""Drift: where a real result, or the state after it, is not what was predicted; and what to make of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..schemas.complaints import find_faults
from ..schemas.made_up.naming import is_identifier
from ..state import Call, Json, JsonObject, Outcome, Patch, Step
from ..values.changes import net_changes
from ..values.difference import same_value
from ..values.digest import clone
from ..values.leaves import as_text, map_scalars
from ..values.patch import booked_patch, fold_patches, pointer, tokens
from ..values.paths import path_tokens, places
from ..values.spellings import atoms_of, forms_of, whole_form
from .records import Drift, ExecutedCall

SHORTEST = 4
"""Characters that are hardly equal by chance; of fewer ones name or form must say that they are an identifier."""
SPOT = r"(?<![^\W_])(?:{})(?![^\W_])"
MOST_DRIFTS = 20
"""Places of one call that are listed."""


def real_values(call: Call, predicted: Json, real: Json, *, made_up: Collection[str] = ()) -> dict[str, Json]:
    """Return what a prediction made up, by the JSON path in the result: path to the value that reality has there.

    Made up is what could not be known before the call: a number, date or identifier that is not among its arguments.
    """
    known = {whole_form(str(value)) for _, value in places(call["args"]) if not isinstance(value, dict | list)}
    found: dict[str, Json] = {}
    for path, old, new in _differing(predicted, real):
        if (
            (path in made_up or _is_specific(old, path))
            and type(old) is type(new)
            and whole_form(str(old)) not in known
        ):
            found[path] = new
    return found


def with_real_values(patch: Patch, predicted: Json, real: Mapping[str, Json]) -> Patch:
    """Return the predicted patch with the values that the prediction made up replaced by the real ones."""
    values = dict(places(predicted))
    pairs: dict[Any, Json] = {}
    for path, new in real.items():
        pairs[values[path]] = new if pairs.get(values[path], new) == new else values[path]
    return [_with_pairs(operation, pairs) for operation in patch]


def in_reality(text: str, results: Iterable[tuple[Json, Json]]) -> str | None:
    """Return a text that was written on predicted results with the real ones' values; `results` are pairs of both.

    None where no rule can tell: two real values for one, none, or a predicted one that the text spells otherwise.
    """
    values: dict[str, set[str]] = {}
    for _, old, new in (each for pair in results for each in _differing(*pair)):
        if old not in (None, "") and not isinstance(old, bool | dict | list):
            values.setdefault(as_text(old), set()).add("" if isinstance(new, dict | list | None) else as_text(new))
    if not values:
        return text
    spots = re.compile(SPOT.format("|".join(map(re.escape, sorted(values, key=len, reverse=True)))))
    said, left = set(spots.findall(text)), set(forms_of(spots.sub(" ", text)))
    is_known = all(len(values[each]) == 1 and "" not in values[each] for each in said)
    others = (atom.wholes for each in values for atom in atoms_of(each) if atom.is_specific)
    return spots.sub(lambda at: min(values[at[0]]), text) if is_known and all(map(left.isdisjoint, others)) else None


def find_drift(
    call: Call, predicted: Outcome, outcome: Outcome, real: Mapping[str, Json], schema: JsonObject | None
) -> list[Drift]:
    """Return where an outcome differs from the predicted one in more than what that made up."""
    if predicted["status"] != outcome["status"]:
        return [{"kind": "status", "path": "$", "predicted": predicted["status"], "real": outcome["status"]}]
    found: list[Drift] = []
    if outcome["status"] == "ok" and schema is not None:
        faults = find_faults(schema, outcome["result"])
        found += [{"kind": "schema", "path": "$", "predicted": None, "real": fault} for fault in faults[:3]]
    for path, old, new in _differing(predicted["result"], outcome["result"]):
        if path not in real:
            found.append({"kind": "value", "path": path, "predicted": old, "real": new})
            if outcome["status"] == "ok":
                found += booked_places(outcome["patch"] or [], path, old, new)
    return found[:MOST_DRIFTS]


def booked_places(patch: Patch, at: str, old: Json, new: Json) -> Iterator[Drift]:
    """Yield the places of the state at which a change has a predicted value that the real result contradicts."""
    for operation in patch:
        where = tokens(operation["path"])
        if isinstance(old, str) and old in where and _is_specific(old, at):  # a key that was made up
            yield {"kind": "state", "path": pointer(where[: where.index(old) + 1]), "predicted": old, "real": new}
            continue
        for path, value in places(operation.get("value")):
            place = [*where, *path_tokens(path)]
            if place[-1:] == path_tokens(at)[-1:] and new is not None and type(value) is type(old) and value == old:
                yield {"kind": "state", "path": pointer(place), "predicted": old, "real": new}


def state_drift(expected: JsonObject, real: JsonObject) -> list[Drift]:
    """Return where the task state is another one than expected: changed places, not what is there in addition."""
    return [
        {"kind": "state", "path": each.path, "predicted": each.old, "real": each.new}
        for each in net_changes(expected, real)[:MOST_DRIFTS]
        if each.kind != "add"
    ]


def as_contract_case(entry: ExecutedCall, start: JsonObject, steps: Sequence[Step]) -> JsonObject:
    """Return a real call as a case that the tool's contract fails: the state before it, the call, what it came to."""
    before = start
    for step in steps:
        if step["call"]["id"] == entry["call"]["id"]:
            break
        before = fold_patches(before, [booked_patch(step["outcome"])])
    call = {"name": entry["call"]["name"], "args": entry["call"]["args"]}
    return clone({"state": before, "call": call, "status": entry["status"], "result": entry.get("result")})


def differing(predicted: Json, real: Json) -> set[str]:
    """Return the JSON paths at which two results differ."""
    return {path for path, *_ in _differing(predicted, real)}


def _differing(predicted: Json, real: Json, here: str = "$") -> Iterator[tuple[str, Json, Json]]:
    """Yield the places where two results differ, with both values; None for what one of them does not have."""
    old, new = dict(places(predicted, here)), dict(places(real, here))
    for path in dict.fromkeys([*old, *new]):
        one, other = old.get(path), new.get(path)
        both = isinstance(one, dict | list) and type(one) is type(other)
        if not both and not (same_value(one, other) and (path in old) == (path in new)):
            yield path, one, other


def _is_specific(value: Json, path: str = "$") -> bool:
    """Return whether a value can be told from others by equality: no plain word, or an identifier by its name."""
    is_named = any(is_identifier(str(token)) for token in path_tokens(path)[-1:])
    is_long = isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) >= SHORTEST
    return is_long and (is_named or any(atom.is_specific for atom in atoms_of(value)))


def _with_pairs(operation: Mapping[str, Any], pairs: Mapping[Any, Json]) -> JsonObject:
    """Return an operation with other values, also as names in its path and value."""

    def change(each: Json) -> Json:
        return pairs.get(each, each) if isinstance(each, str | int) and not isinstance(each, bool) else each

    names = {str(old): str(new) for old, new in pairs.items()}
    moved = {**operation, "path": pointer([names.get(token, token) for token in tokens(operation["path"])])}
    return moved | {key: map_scalars(operation[key], change, keys=True) for key in ("value",) if key in operation}
