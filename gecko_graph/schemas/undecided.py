"""Undecided arguments: those whose meaning no rule decides, so that a model is asked (paper, section 3.1)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jsonschema.protocols import Validator

from ..state import Json, JsonObject
from .findings import json_path
from .formats import FORMATS
from .pattern import compile_pattern
from .rules import accepts, canonical, extra_names, rules_of
from .subschemas import follow

MAX_LISTED = 8
"""Undecided places inside one argument that are listed one by one; more are named by the path of the whole."""

_FORMAT = re.compile(r"\bformat|\bform of\b|\babbreviat|\biso\b|yyyy|\bcode\b", re.IGNORECASE)


def undecided(parameters: JsonObject, args: JsonObject) -> list[str]:
    """JSON paths of the arguments whose meaning no rule decides: free text, unbounded numbers, what no schema names.

    Decided are booleans, null, enum, const, checked formats, numbers between two bounds, and a schema's own default.

    Args:
        parameters: JSON Schema of the argument object.
        args: Arguments that passed `complaints`.
    """
    rules = rules_of(parameters)
    return _Meaning(rules).open(args, (), [rules.schema])


def chosen(parameters: JsonObject, args: JsonObject, places: Sequence[str]) -> list[str]:
    """JSON paths of optional arguments whose values rules decide, but not that they are given at all.

    Args:
        parameters: JSON Schema of the argument object.
        args: Arguments that passed `complaints`.
        places: What `undecided` has found.
    """
    rules = parameters.get("properties", {})
    free = [name for name in args if args[name] is not None and name not in parameters.get("required", ())]
    usual = (rules[name].get("default") if isinstance(rules.get(name), dict) else None for name in free)
    changed = [json_path((name,)) for name, default in zip(free, usual, strict=True) if default != args[name]]
    return [path for path in changed if not any(leads_into(place, path) for place in places)]


def prescribes_format(parameters: JsonObject, place: str) -> bool:
    """True if what a schema says of an argument prescribes how its value is to be written.

    Args:
        parameters: JSON Schema of the argument object.
        place: JSON path of the argument, or of something in it.
    """
    rules = parameters.get("properties", {}).items()
    rule = next((rule for name, rule in rules if leads_into(place, json_path((name,)))), None)
    return _FORMAT.search(json.dumps(rule, default=str)) is not None


def leads_into(place: str, outer: str) -> bool:
    """True if a JSON path is the other, or leads into it."""
    return place.startswith(outer) and place[len(outer) : len(outer) + 1] in ("", ".", "[")


class _Meaning:
    """Looks for values whose meaning is open, along a schema."""

    def __init__(self, rules: Validator) -> None:
        self._rules = rules

    def open(self, value: Json, path: tuple[str | int, ...], schemas: list[Any]) -> list[str]:
        """The undecided places in `value`, of which `schemas` speak."""
        parts = list(self._applying(schemas, value))
        if any(_decides(part, value) for part in parts) or value is None or isinstance(value, bool):
            return []
        if isinstance(value, dict | list):
            return self._inside(value, path, parts)
        return [] if isinstance(value, int | float) and _bounded(parts) else [json_path(path)]

    def _inside(self, value: Json, path: tuple[str | int, ...], parts: list[JsonObject]) -> list[str]:
        """The undecided places among the members or items; where they are many, the path of the whole."""
        found: list[str] = []
        members: Iterable[tuple[str | int, Json]] = value.items() if isinstance(value, dict) else enumerate(value)
        for token, item in members:
            found += self.open(item, (*path, token), [inner for part in parts for inner in _speaks_of(part, token)])
        return found if len(found) <= MAX_LISTED or not path else [json_path(path)]

    def _applying(self, schemas: list[Any], value: Json) -> Iterator[JsonObject]:
        """The schemas and what they lead to: references, allOf, and those alternatives that accept the value."""
        stack, seen = list(reversed(schemas)), set[int]()
        while stack:
            schema = stack.pop()
            if not isinstance(schema, dict) or id(schema) in seen:
                continue
            seen.add(id(schema))
            yield schema
            stack += schema.get("allOf", ())
            stack += (follow(self._rules.schema, schema[key]) for key in ("$ref", "$dynamicRef") if key in schema)
            options = [each for key in ("anyOf", "oneOf") for each in schema.get(key, ())]
            stack += (each for each in options if accepts(self._rules.evolve(schema=each), value))


def _decides(schema: JsonObject, value: Json) -> bool:
    if "enum" in schema or "const" in schema:
        return True
    if isinstance(value, str) and schema.get("format") in FORMATS:
        return True
    return "default" in schema and canonical(schema["default"]) == canonical(value)


def _bounded(schemas: list[JsonObject]) -> bool:
    below = any(key in schema for schema in schemas for key in ("minimum", "exclusiveMinimum"))
    return below and any(key in schema for schema in schemas for key in ("maximum", "exclusiveMaximum"))


def _speaks_of(schema: JsonObject, token: str | int) -> Iterator[Any]:
    """What a schema says of one member or item."""
    if isinstance(token, int):
        prefix = schema.get("prefixItems", [])
        yield prefix[token] if token < len(prefix) else schema.get("items", True)
        return
    if token in schema.get("properties", {}):
        yield schema["properties"][token]
    for source, inner in schema.get("patternProperties", {}).items():
        if (pattern := compile_pattern(source)) and pattern.matches(token):
            yield inner
    if "additionalProperties" in schema and extra_names({token: None}, schema):
        yield schema["additionalProperties"]
