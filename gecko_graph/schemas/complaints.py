"""Argument and result rules: validate values against schemas (paper, section 3.1 and appendix A.3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple, Protocol

from ..state import Call, Complaint, Json, JsonObject
from ..values.paths import excerpt, json_path
from .findings import Finding, find_non_json, findings
from .pattern import Pattern, compile_pattern
from .rules import Same, check, rules_of
from .subschemas import follow

MAX_COMPLAINTS = 20


class Described(Protocol):
    """Anything with a name and a schema of its arguments: a tool."""

    @property
    def name(self) -> str:
        """The tool's name, for the complaints."""

    @property
    def parameters(self) -> JsonObject:
        """JSON Schema of the object of arguments."""


def find_complaints(tool: Described, args: JsonObject) -> list[Complaint]:
    """Validate a call's arguments against the tool's schema.

    Defaults are not filled in first. A top-level object schema without `additionalProperties` is closed, nested ones
    are open, as in JSON Schema. Malformed parts of a schema are ignored.

    Returns:
        At most `MAX_COMPLAINTS` complaints, in the schema's order; none if the arguments pass.
    """
    if not isinstance(args, dict):
        found = [Finding("$", "an object of arguments", excerpt(args))]
    elif non_json := find_non_json(args):
        found = [non_json]
    else:
        found = [*_find_unknown(tool.parameters, args), *_find_errors(tool.parameters, args)]
    return [
        {"tool": tool.name, "path": path, "expected": expected, "got": got, "source": "rule"}
        for path, expected, got in dict.fromkeys(found[:MAX_COMPLAINTS])
    ]


def unknown_tool(call: Call) -> Complaint:
    """Build the complaint about a call of a tool that does not exist."""
    return about(call, expected="the name of one of the given tools", got=excerpt(call["name"]))


def malformed(call: Call) -> Complaint:
    """Build the complaint about a call whose arguments are not a JSON object."""
    return about(call, expected="arguments as one JSON object", got=excerpt(call.get("malformed", "")))


def about(call: Call, *, expected: str, got: str) -> Complaint:
    """Build a rule's complaint about a call as a whole."""
    return {"tool": str(call["name"]), "path": "$", "expected": expected, "got": got, "source": "rule"}


def find_faults(schema: JsonObject, value: Json) -> list[str]:
    """Validate a value and return its errors, one line each: `at $.a[0]: expected ..., got ...`.

    The schema, JSON Schema 2020-12, is compiled once and cached: never change it in place.
    """
    non_json = find_non_json(value)
    found = [non_json] if non_json else _find_errors(schema, value)
    lines = (f"at {path}: expected {expected}, got {got}" for path, expected, got in found[:MAX_COMPLAINTS])
    return list(dict.fromkeys(lines))


def _find_errors(schema: Any, value: Json) -> list[Finding]:
    errors = islice(check(rules_of(schema), value), MAX_COMPLAINTS)
    return [finding for error in errors for finding in findings(error)]


def _find_unknown(schema: Any, args: JsonObject) -> list[Finding]:
    closed = _closed_names(Same(schema))
    return [
        Finding(json_path((name,)), "no argument of this name", excerpt(value))
        for name, value in args.items()
        if closed is not None and not closed.defines(name)
    ]


class Closed(NamedTuple):
    """The names that a closed schema knows."""

    names: frozenset[str]
    patterns: tuple[Pattern, ...]

    def defines(self, name: str) -> bool:
        """Return whether the schema defines the name."""
        return name in self.names or any(pattern.matches(name) for pattern in self.patterns)


@lru_cache(maxsize=4096)
def _closed_names(key: Same) -> Closed | None:
    """Return the names that a top-level schema defines; None where it is open or states itself how closed it is."""
    root = rules_of(key.schema).schema
    if not isinstance(root, dict) or "additionalProperties" in root or "unevaluatedProperties" in root:
        return None
    parts = list(_parts(root, root, set()))
    if any(part is None or _is_opened(part) for part in parts):
        return None
    names = frozenset(name for part in parts if part for name in part.get("properties", ()))
    sources = [source for part in parts if part for source in part.get("patternProperties", ())]
    patterns = tuple(pattern for source in sources if (pattern := compile_pattern(source)))
    is_object = any(part is not None and part.get("type") == "object" for part in parts)
    return Closed(names, patterns) if names or patterns or is_object else None


def _is_opened(part: Mapping[str, Any]) -> bool:
    return any(part.get(key, False) is not False for key in ("additionalProperties", "unevaluatedProperties"))


def _parts(root: JsonObject, schema: Any, seen: set[int]) -> Iterator[JsonObject | None]:
    """Yield every schema that may apply to the same object; None for a reference that cannot be resolved."""
    if not isinstance(schema, dict) or id(schema) in seen:
        return
    seen.add(id(schema))
    yield schema
    for key in ("$ref", "$dynamicRef"):
        if key in schema:
            target = follow(root, schema[key])
            yield from [None] if target is None else _parts(root, target, seen)
    inner = [branch for key in ("allOf", "anyOf", "oneOf") for branch in schema.get(key, ())]
    inner += [schema[key] for key in ("if", "then", "else") if key in schema]
    inner += schema.get("dependentSchemas", {}).values()
    for branch in inner:
        yield from _parts(root, branch, seen)
