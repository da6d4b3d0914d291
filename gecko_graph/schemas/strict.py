"""A schema that guards the task state: no part of it is ignored, and only the changed parts of a state are checked.

Patches are applied copy-on-write, so an unchanged part is the same object before and after: it was valid under the same
rule and still is. This holds for rules that apply to one place each (`properties`, `items`, `allOf`, `$ref`, ...). All
other keywords of a changed level (`required`, `uniqueItems`, `anyOf`, `if`, `unevaluatedProperties`, ...) are checked
in full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import compress, repeat
from operator import is_not
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator

from ..errors import ContractError
from ..state import RUNTIME, Json, JsonObject
from ..values.digest import Finding
from ..values.identity import cache_by_identity
from ..values.places import pointer_step, pointer_tokens
from .findings import find_unstorable, findings
from .formats import compile_pattern
from .rules import check, explain, member_rules, rules_of_part
from .subschemas import follow, mentions

_META = Draft202012Validator(Draft202012Validator.META_SCHEMA)


def check_schema(
    schema: Any, *, where: str, line_of: Callable[[tuple[str, ...]], int | None] = lambda _: None
) -> JsonObject:
    """Return a JSON Schema 2020-12 after checking that each part can be validated, and each reference stays inside.

    Args:
        schema: The schema; the result is cached by identity, so never change it in place.
        where: Document and place of the schema, for messages.
        line_of: Returns the line of a part in its file, for messages.

    Raises:
        ContractError: It is invalid; the message names document, place, line and reason.
    """
    if not isinstance(schema, dict):
        raise ContractError(f"{where}: expected a JSON Schema as an object, got {type(schema).__name__}")
    if fault := _find_fault(schema):
        line = line_of(tuple(pointer_tokens(fault.partition(": ")[0])))
        raise ContractError(f"{where}{fault}{f' (line {line})' if line else ''}")
    return schema


def leave_room(schema: JsonObject) -> JsonObject:
    """Return a schema of the task state that, if closed, allows the runtime variables."""
    closed = {"additionalProperties", "unevaluatedProperties"} & schema.keys()
    if not closed or RUNTIME in schema.get("properties", {}):
        return schema
    return {**schema, "properties": {**schema.get("properties", {}), RUNTIME: {"type": "object"}}}


@cache_by_identity(256)
def _find_fault(schema: JsonObject) -> str:
    """Return place and reason of a schema's fault, "" if there is none."""
    found: Finding | None = find_unstorable(schema)
    if found is None and (error := best_match(_META.iter_errors(schema))):
        found = next(findings(error))
    if found:
        return f"{found.path}: expected {found.expected}, got {found.got}"
    if mentions(schema, "patternProperties") and mentions(schema, "unevaluatedProperties"):
        return ": patternProperties and unevaluatedProperties together cannot be checked; use one of them"
    return next(_find_unchecked(schema, schema, ""), "")


def _find_unchecked(root: JsonObject, part: Any, place: str) -> Iterator[str]:
    """Yield the keywords that validation would ignore, each with its place and the reason."""
    for key, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        here = place + pointer_step(key)
        if key in ("$ref", "$dynamicRef") and isinstance(value, str) and follow(root, value) is None:
            is_inside = value.startswith("#")
            why = "has no target" if is_inside else "is outside of the schema, and is never fetched"
            yield f"{here}: {value!r} {why}: write it under $defs, as #/$defs/NAME"
        elif key == "$ref" and isinstance(value, str) and _is_circular(root, value):
            yield f"{here}: {value!r} refers to itself through references only"
        elif key == "$id" and isinstance(value, str) and place:
            yield f"{here}: only the whole schema may have an $id"
        elif any(compile_pattern(source) is None for source in _patterns(key, value)):
            yield f"{here}: this pattern cannot be checked: it is malformed, too large, or has a backreference"
        else:
            yield from _find_unchecked(root, value, here)


def _is_circular(root: JsonObject, reference: str) -> bool:
    seen: list[str] = []
    while reference not in seen:
        seen.append(reference)
        target = follow(root, reference)
        if not isinstance(target, dict) or not isinstance(target.get("$ref"), str):
            return False
        reference = target["$ref"]
    return True


def _patterns(key: object, value: Any) -> list[str]:
    names = value if key == "patternProperties" and isinstance(value, dict) else ()
    return [value] if key == "pattern" and isinstance(value, str) else list(names)


_LOCAL = frozenset(
    {"properties", "patternProperties", "additionalProperties", "items", "prefixItems", "allOf", "$ref", "$defs"}
)
_NOTHING = object()

Place = tuple[str | int, ...]


def check_change(rules: Validator, before: Json, after: Json) -> Iterator[ValidationError]:
    """Yield the errors of a changed value, given that the old one had none; none exactly if the full check finds none.

    Args:
        rules: The result of `rules_of`, for a schema that `check_schema` accepts.
        before: A valid value.
        after: The changed value; unchanged parts are shared with `before`.
    """
    yield from _check(rules, rules.schema, before, after, (), frozenset())


def _check(
    rules: Validator, schema: Any, before: Any, after: Json, place: Place, seen: frozenset[int]
) -> Iterator[ValidationError]:
    """Yield the errors of one value under one schema; `seen` are the references followed at this value."""
    if before is after or schema is True or id(schema) in seen:
        return
    both = next((kind for kind in (dict, list) if isinstance(before, kind) and isinstance(after, kind)), None)
    rest = schema if both is None or not isinstance(schema, dict) else _whole_part(schema)
    # for a whole level the quick test would read everything below it
    for error in (check if rest is schema else explain)(rules_of_part(rules, rest), after):
        error.path.extendleft(reversed(place))
        yield error
    if rest is schema:
        return
    for part in [*schema.get("allOf", ()), *([follow(rules.schema, schema["$ref"])] if "$ref" in schema else [])]:
        yield from _check(rules, part, before, after, place, seen | {id(schema)})
    members = _changed_members(schema, before, after) if both is dict else _changed_items(schema, before, after)
    for key, rule, old in members:
        yield from _check(rules, rule, old, after[key], (*place, key), frozenset())


@cache_by_identity(4096)
def _whole_part(schema: JsonObject) -> Any:
    if {"unevaluatedProperties", "unevaluatedItems"} & schema.keys():  # they depend on the others' results
        return schema
    return {keyword: value for keyword, value in schema.items() if keyword not in _LOCAL}


def _changed_members(schema: JsonObject, before: JsonObject, after: JsonObject) -> Iterator[tuple[str, Any, Any]]:
    old = map(before.get, after, repeat(_NOTHING))
    names = [*compress(after, map(is_not, after.values(), old))]  # an object may have very many members
    for name, rule in member_rules(names, schema):
        yield name, rule, before.get(name, _NOTHING)


def _changed_items(schema: JsonObject, before: list[Json], after: list[Json]) -> Iterator[tuple[int, Any, Any]]:
    """Yield the changed items of a list, each with its rule and the old item; moved items are unchanged."""
    first = schema.get("prefixItems", [])
    old = dict(enumerate(before))
    for index, rule in enumerate(first[: len(after)]):
        yield index, rule, old.get(index, _NOTHING)
    if "items" in schema:
        known = {id(item) for item in before[len(first) :]}
        for index in range(len(first), len(after)):
            if id(after[index]) not in known:
                yield index, schema["items"], old.get(index, _NOTHING)
