"""What a schema's keywords say about the kind and the members of a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..schemas.pattern import compile_pattern
from ..state import JsonObject
from .dice import Dice
from .flatten import COMPOSED
from .naming import vocabulary
from .spelling import spell

_HINTS: Mapping[str, frozenset[str]] = {
    "object": vocabulary("properties required additionalProperties patternProperties minProperties"),
    "array": vocabulary("items prefixItems minItems contains uniqueItems"),
    "string": vocabulary("pattern minLength maxLength format"),
    "number": vocabulary("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"),
}


_CHECKED_AFTERWARDS = COMPOSED | vocabulary(
    "not if contains propertyNames dependentRequired dependentSchemas unevaluatedItems unevaluatedProperties "
    "patternProperties"
)


def is_composed(schema: Any) -> bool:
    """True if a value made for the flattened schema still has to be held against the schema itself."""
    return isinstance(schema, dict) and not schema.keys().isdisjoint(_CHECKED_AFTERWARDS)


def kinds(flat: JsonObject) -> list[str]:
    """The kinds of value that a schema allows, null last; where it does not say, what its keywords speak of."""
    if "type" in flat:
        kinds = [flat["type"]] if isinstance(flat["type"], str) else list(flat["type"])
        return sorted(kinds, key=lambda kind: kind == "null")
    spoken_of = [kind for kind, keys in _HINTS.items() if not flat.keys().isdisjoint(keys)]
    return [
        *spoken_of,
        *(kind for kind in ("string", "integer", "object", "array", "boolean") if kind not in spoken_of),
    ]


def rule_for(flat: JsonObject, name: str) -> Any:
    """The schema of a member."""
    if name in flat.get("properties", {}):
        return flat["properties"][name]
    for source, rule in flat.get("patternProperties", {}).items():
        if (pattern := compile_pattern(source)) and pattern.matches(name):
            return rule
    return flat.get("additionalProperties", True)


def is_hidden(rule: Any) -> bool:
    """True for a member that a result does not show."""
    return rule is False or (
        isinstance(rule, dict) and (rule.get("writeOnly") is True or rule.get("deprecated") is True)
    )


def new_names(flat: JsonObject, dice: Dice) -> Iterator[str]:
    """Names for members that are nowhere listed."""
    for source in flat.get("patternProperties", {}):
        pattern = compile_pattern(source)
        for _ in range(3):
            if pattern and (name := spell(pattern, dice, least=6) or spell(pattern, dice)):
                yield name
    if flat.get("additionalProperties", True) is not False:
        named = flat.get("propertyNames", {})
        pattern = compile_pattern(named["pattern"]) if isinstance(named, dict) and "pattern" in named else None
        listed = named.get("enum", []) if isinstance(named, dict) else []
        yield from (name for name in listed if isinstance(name, str))
        for _ in range(30):
            yield (pattern and (spell(pattern, dice, least=6) or spell(pattern, dice))) or f"key_{dice.letters(4)}"
