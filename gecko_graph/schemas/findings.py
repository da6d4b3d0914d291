"""Validation errors in words: the path, the expected and the actual value, never the correct one.

They state how many values a schema lists, not which; patterns that spell out values, and bounds that leave one value,
are not shown (paper, appendix A.3: error messages do not contain or suggest the correct value).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jsonschema import ValidationError

from ..state import Json
from ..values.digest import Finding, find_non_json
from ..values.places import excerpt, short_pointer
from .formats import EXPECTED, compile_pattern

MAX_DEPTH = 64
"""Most levels of nesting of a value: deeper ones cannot be checked safely, and real tools do not accept them."""

KINDS: Mapping[str, str] = {
    "string": "a string", "integer": "an integer", "number": "a number", "boolean": "a boolean", "null": "null",
    "array": "an array", "object": "an object",
}  # fmt: skip


def find_unstorable(value: Json) -> Finding | None:
    """Return the first part of a value that is not JSON, or that a checkpoint cannot store."""
    return find_non_json(value, levels=MAX_DEPTH)


def findings(error: ValidationError) -> Iterator[Finding]:
    """Yield an error in words; if no alternative fits, the errors of the closest one."""
    if error.validator in ("anyOf", "oneOf") and error.context:
        options = group_by_branch(error)
        if all(_wrong_kind(branch) for branch in options):
            kinds = [
                _kinds(inner.validator_value) for branch in options for inner in branch if inner.validator == "type"
            ]
            yield _finding(error, " or ".join(dict.fromkeys(kinds)) or "one of the kinds that the schema allows")
            return
        for inner in min(options, key=_distance):
            yield from findings(inner)
        return
    expected = _EXPECTED.get(str(error.validator), _ANY)
    yield _finding(error, expected if isinstance(expected, str) else expected(error))


def group_by_branch(error: ValidationError) -> list[list[ValidationError]]:
    found: dict[Any, list[ValidationError]] = {}
    for number, inner in enumerate(error.context or ()):
        # jsonschema gives no path for a `false` branch
        branch = inner.relative_schema_path[0] if inner.relative_schema_path else f"false {number}"
        found.setdefault(branch, []).append(inner)
    return list(found.values())


def _wrong_kind(branch: list[ValidationError]) -> bool:
    return any(not error.relative_path and error.validator in ("type", None) for error in branch)


def _distance(branch: list[ValidationError]) -> tuple[bool, int, int]:
    """Return a branch's distance from fitting: wrong type, differing tags, number of errors."""
    tags = sum(len(error.relative_path) <= 1 and error.validator in ("const", "enum", "not") for error in branch)
    return _wrong_kind(branch), tags, len(branch)


def _finding(error: ValidationError, expected: str) -> Finding:
    missing = error.validator in ("required", "dependentRequired")
    return Finding(
        short_pointer(list(error.absolute_path)), expected, "nothing" if missing else excerpt(error.instance)
    )


def _kinds(types: Any) -> str:
    kinds = [types] if isinstance(types, str) else types
    return " or ".join(KINDS.get(kind, kind) for kind in kinds)


def kind_of(schema: Any) -> str:
    """Return the type that a schema states, in words."""
    types = schema.get("type") if isinstance(schema, dict) else None
    return _kinds(types) if types else "a value"


def _required(error: ValidationError) -> str:
    properties = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
    return f"{kind_of(properties.get(error.path[-1]))}; it is required"


def _enum(error: ValidationError) -> str:
    values: Any = error.validator_value
    count = len(values)
    return "the one value that the schema lists" if count == 1 else f"one of the {count} values that the schema lists"


def _pattern(error: ValidationError) -> str:
    pattern = compile_pattern(error.validator_value)
    if pattern is None or pattern.spells_out:
        return "a string of the form that the schema prescribes"
    return f"a string that matches the pattern {error.validator_value}"


def _count(noun: str, word: str) -> Callable[[ValidationError], str]:
    return lambda error: f"{word} {error.validator_value} {noun if error.validator_value == 1 else noun + 's'}"


def _at_most(noun: str, kind: str) -> Callable[[ValidationError], str]:
    counted = _count(noun, f"{kind} of at most")
    # "at most 0 items" would reveal []
    return lambda error: counted(error) if error.validator_value else f"{kind} of the size that the schema prescribes"


def _bound(word: str) -> Callable[[ValidationError], str]:
    return lambda error: (
        "a number within the narrow bounds of the schema"
        if _is_narrow(error.schema)
        else f"a number {word} {error.validator_value}"
    )


def _is_narrow(schema: Any) -> bool:
    """Return whether bounds and steps of a schema may leave a single number, so that a bound would reveal it."""
    lows = [schema[key] for key in ("minimum", "exclusiveMinimum") if key in schema]
    highs = [schema[key] for key in ("maximum", "exclusiveMaximum") if key in schema]
    step = max(schema.get("multipleOf", 0), schema.get("type") == "integer")
    return bool(lows and highs) and min(highs) - max(lows) <= 2 * step


_ANY = "a value that the schema allows here"
_EXPECTED: Mapping[str, str | Callable[[ValidationError], str]] = {
    "type": lambda error: _kinds(error.validator_value),
    "required": _required,
    "dependentRequired": "a value; it is required beside what is given",
    "enum": _enum,
    "const": "the one value that the schema fixes",
    "minimum": _bound("of at least"),
    "maximum": _bound("of at most"),
    "exclusiveMinimum": _bound("greater than"),
    "exclusiveMaximum": _bound("less than"),
    "multipleOf": _bound("that is a multiple of"),
    "minLength": _count("character", "a string of at least"),
    "maxLength": _at_most("character", "a string"),
    "pattern": _pattern,
    "format": lambda error: EXPECTED.get(str(error.validator_value), "a value of the prescribed format"),
    "minItems": _count("item", "an array of at least"),
    "maxItems": _at_most("item", "an array"),
    "uniqueItems": "an array whose items all differ",
    "contains": "an array with an item of the kind that the schema asks for",
    "minContains": _count("item", "of the kind that the schema asks for, at least"),
    "maxContains": _count("item", "of the kind that the schema asks for, at most"),
    "items": "an array without further items",
    "unevaluatedItems": "an array without further items",
    "minProperties": _count("member", "an object of at least"),
    "maxProperties": _at_most("member", "an object"),
    "additionalProperties": "nothing of this name",
    "unevaluatedProperties": "an object without members that the schema does not define",
    "oneOf": "a value that fits exactly one of the alternatives, not several",
    "not": lambda error: (
        "a value other than those that the schema excludes" if error.validator_value else "nothing here"
    ),
    "None": "nothing here",
    "unfinished": "a value that can be checked to the end; this check stopped at its limit",
}
