"""Whether a schema says only what validation checks: of a schema that guards, nothing may be ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from ..errors import ContractError
from ..state import RUNTIME, JsonObject
from ..values.paths import path_tokens
from .findings import Finding, find_non_json, findings
from .pattern import compile_pattern
from .rules import Same
from .subschemas import follow, mentions

DEPTH = 6
"""References and alternatives that are followed to see whether an object is allowed."""

_META = Draft202012Validator(Draft202012Validator.META_SCHEMA)


def check_schema(
    schema: Any, *, where: str, line_of: Callable[[tuple[str, ...]], int | None] = lambda _: None
) -> JsonObject:
    """Return a JSON Schema 2020-12, checked: every part of it can be checked, and every reference stays inside it.

    Args:
        schema: The schema; a checked one is known by the object itself, so never change it in place.
        where: Document and place of the schema, for messages.
        line_of: Returns the line of a part of it in its file, for messages.

    Raises:
        ContractError: It is not one; the message names document, place, line and reason.
    """
    if not isinstance(schema, dict):
        raise ContractError(f"{where}: expected a JSON Schema as an object, got {type(schema).__name__}")
    if fault := _find_fault(Same(schema)):
        line = line_of(tuple(fault.partition(": ")[0].split("/")[1:]))
        raise ContractError(f"{where}{fault}{f' (line {line})' if line else ''}")
    return schema


def leave_room(schema: JsonObject) -> JsonObject:
    """Return a schema of the task state; a closed one with room for the runtime variables."""
    closed = {"additionalProperties", "unevaluatedProperties"} & schema.keys()
    if not closed or RUNTIME in schema.get("properties", {}):
        return schema
    return {**schema, "properties": {**schema.get("properties", {}), RUNTIME: {"type": "object"}}}


@lru_cache(maxsize=256)
def _find_fault(key: Same) -> str:
    """Return place and reason of what is wrong with a schema; an empty text where nothing is."""
    found: Finding | None = find_non_json(key.schema)
    if found is None and (error := best_match(_META.iter_errors(key.schema))):
        found = next(findings(error))
    if found:
        place = "".join(f"/{token}" for token in path_tokens(found.path))
        return f"{place}: expected {found.expected}, got {found.got}"
    if mentions(key.schema, "patternProperties") and mentions(key.schema, "unevaluatedProperties"):
        return ": patternProperties and unevaluatedProperties together cannot be checked; use one of them"
    fault = next(_find_unchecked(key.schema, key.schema, ""), "")
    return fault or ("" if _allows_object(key.schema, key.schema) else ": it allows no object, and a task state is one")


def _allows_object(root: JsonObject, part: Any, depth: int = DEPTH) -> bool:
    """Return whether types, values, references and alternatives of a schema may allow an object."""
    if not isinstance(part, dict) or not depth:
        return part is not False
    allows = partial(_allows_object, root, depth=depth - 1)
    values = part.get("enum", [part.get("const", {})])
    every = [part.get("anyOf"), part.get("oneOf"), *([one] for one in part.get("allOf", ()))]
    every += [[follow(root, part["$ref"])]] if "$ref" in part else []
    is_typed = "object" in part.get("type", "object") and any(isinstance(value, dict) for value in values)
    return is_typed and all(any(map(allows, one)) for one in every if one)


def _find_unchecked(root: JsonObject, part: Any, place: str) -> Iterator[str]:
    """Yield the keywords that validation would ignore, each with its place and the reason."""
    for key, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        here = f"{place}/{key}"
        if key in ("$ref", "$dynamicRef") and isinstance(value, str) and follow(root, value) is None:
            is_inside = value.startswith("#")
            why = "leads nowhere" if is_inside else "is outside of the schema, and is never fetched"
            yield f"{here}: {value!r} {why}: write it under $defs, as #/$defs/NAME"
        elif key == "$ref" and isinstance(value, str) and _is_circular(root, value):
            yield f"{here}: {value!r} leads back to itself, through nothing but references"
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
