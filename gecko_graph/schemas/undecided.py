"""Arguments whose meaning rules cannot decide, so that a model is asked (paper, section 3.1)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from jsonschema.protocols import Validator

from ..state import Json, JsonObject
from ..values.paths import json_path
from .formats import FORMATS
from .rules import accepts, canonical, member_rules, rules_of
from .subschemas import follow

DESCRIPTION_CHARS = 2_000
MAX_LISTED = 8
"""Undecided paths listed inside one argument; more of them are replaced by the path of the whole argument."""

_OPTIONS = re.compile(r"(?i)\b(?:one of|either|options|choices|(?:allowed|possible|valid|accepted) values)\b([^.;]+)")
_QUOTED = re.compile(r"(?<!\w)(?:'([^'\n]{1,60})'|\"([^\"\n]{1,60})\"|`([^`\n]{1,60})`)(?!\w)")
_FORMAT = re.compile(r"\bformat|\bform of\b|\babbreviat|\biso\b|yyyy|\bcode\b", re.IGNORECASE)


def find_undecided(parameters: JsonObject, args: JsonObject) -> list[str]:
    """Return JSON paths of the arguments that rules cannot decide: free text, unbounded numbers, unknown names.

    Decided are booleans, null, enum, const, checked formats, numbers between two bounds, a schema's own default, and a
    text that its description lists as an option.
    The arguments have passed `complaints`.
    """
    rules = rules_of(parameters)
    return _find_open(rules, args, (), [rules.schema])


def find_chosen(parameters: JsonObject, args: JsonObject, places: Sequence[str]) -> list[str]:
    """Return JSON paths of optional arguments whose values rules decide, but not whether they should be given.

    A flag is left to the origins of values. The arguments have passed `complaints`; `places` are what `find_undecided`
    returned for them.
    """
    rules = parameters.get("properties", {})
    free = [name for name in args if name not in parameters.get("required", ()) and not _is_flag(args[name])]
    usual = (rules[name].get("default") if isinstance(rules.get(name), dict) else None for name in free)
    changed = [json_path((name,)) for name, default in zip(free, usual, strict=True) if default != args[name]]
    return [path for path in changed if not any(leads_into(place, path) for place in places)]


def prescribes_format(parameters: JsonObject, place: str) -> bool:
    """Return whether the schema of the argument at, or around, a JSON path prescribes how its value is written."""
    rules = parameters.get("properties", {}).items()
    rule = next((rule for name, rule in rules if leads_into(place, json_path((name,)))), None)
    return _FORMAT.search(json.dumps(rule, default=str)) is not None


def leads_into(place: str, outer: str) -> bool:
    """Return whether a JSON path equals another or leads into it."""
    return place.startswith(outer) and place[len(outer) : len(outer) + 1] in ("", ".", "[")


def _find_open(rules: Validator, value: Json, path: tuple[str | int, ...], schemas: list[Any]) -> list[str]:
    """Return the undecided paths in `value`, to which `schemas` apply; where they are many, the path of the whole."""
    parts = list(_applying(rules, schemas, value))
    if any(_decides(part, value) for part in parts) or value is None or isinstance(value, bool):
        return []
    if not isinstance(value, dict | list):
        return [] if isinstance(value, int | float) and _bounded(parts) else [json_path(path)]
    found: list[str] = []
    members: Iterable[tuple[str | int, Json]] = value.items() if isinstance(value, dict) else enumerate(value)
    for token, item in members:
        inside = [inner for part in parts for inner in _member_schemas(part, token)]
        found += _find_open(rules, item, (*path, token), inside)
    return found if len(found) <= MAX_LISTED or not path else [json_path(path)]


def _applying(rules: Validator, schemas: list[Any], value: Json) -> Iterator[JsonObject]:
    """Yield the schemas with their references, allOf, and those alternatives that accept the value."""
    stack, seen = list(reversed(schemas)), set[int]()
    while stack:
        schema = stack.pop()
        if not isinstance(schema, dict) or id(schema) in seen:
            continue
        seen.add(id(schema))
        yield schema
        stack += schema.get("allOf", ())
        stack += (follow(rules.schema, schema[key]) for key in ("$ref", "$dynamicRef") if key in schema)
        options = [option for key in ("anyOf", "oneOf") for option in schema.get(key, ())]
        stack += (option for option in options if accepts(rules.evolve(schema=option), value))


def _decides(schema: JsonObject, value: Json) -> bool:
    if "enum" in schema or "const" in schema:
        return True
    if isinstance(value, str) and schema.get("format") in FORMATS:
        return True
    if isinstance(value, str) and value.strip().casefold() in _options(str(schema.get("description", ""))):
        return True
    return "default" in schema and canonical(schema["default"]) == canonical(value)


def _is_flag(value: Json) -> bool:
    return value is None or isinstance(value, bool)


@lru_cache(maxsize=2_048)
def _options(description: str) -> frozenset[str]:
    """Return what a description lists: two texts in quotes or more, or what follows `one of`, `options are`."""
    text = description[:DESCRIPTION_CHARS]
    quoted = [next(filter(None, each)) for each in _QUOTED.findall(text)]
    listed = [re.split(r"[,|/]|\bor\b|\band\b|\bare\b|[:(]", each) for each in _OPTIONS.findall(text)]
    named = [*(quoted if len(quoted) > 1 else ()), *(part for parts in listed if len(parts) > 1 for part in parts)]
    return frozenset(each.strip(" \t\n'\"`()[]").casefold() for each in named)


def _bounded(schemas: list[JsonObject]) -> bool:
    below = any(key in schema for schema in schemas for key in ("minimum", "exclusiveMinimum"))
    return below and any(key in schema for schema in schemas for key in ("maximum", "exclusiveMaximum"))


def _member_schemas(schema: JsonObject, token: str | int) -> Iterator[Any]:
    if isinstance(token, int):
        prefix = schema.get("prefixItems", [])
        yield prefix[token] if token < len(prefix) else schema.get("items", True)
    else:
        yield from (rule for _, rule in member_rules([token], schema))
