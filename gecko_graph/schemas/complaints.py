"""Argument and result rules: what a schema has to say about a value (paper, section 3.1 and appendix A.3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple, Protocol

from ..state import Call, Complaint, Json, JsonObject
from .findings import Finding, excerpt, findings, first_foreign, json_path
from .pattern import Pattern, compile_pattern
from .rules import Same, check, rules_of
from .subschemas import follow

MAX_COMPLAINTS = 20


class Described(Protocol):
    """What has a name and a schema of its arguments: a tool."""

    @property
    def name(self) -> str:
        """The tool's name, for the complaints."""

    @property
    def parameters(self) -> JsonObject:
        """JSON Schema of the object of arguments."""


def complaints(tool: Described, args: JsonObject) -> list[Complaint]:
    """What the rules have against a call's arguments.

    Defaults are not filled in before. An object schema at the top that says nothing of further names is closed, nested
    ones are as JSON Schema has them. Where a schema is malformed it is no rule.

    Args:
        tool: The tool that is called.
        args: The arguments, as the model gave them.

    Returns:
        At most `MAX_COMPLAINTS` complaints, in the schema's order; none if the arguments pass.
    """
    if not isinstance(args, dict):
        found = [Finding("$", "an object of arguments", excerpt(args))]
    elif foreign := first_foreign(args):
        found = [foreign]
    else:
        found = [*_unknown(tool.parameters, args), *_wrong(tool.parameters, args)]
    return [
        {"tool": tool.name, "path": path, "expected": expected, "got": got, "source": "rule"}
        for path, expected, got in dict.fromkeys(found[:MAX_COMPLAINTS])
    ]


def unknown_tool(call: Call) -> Complaint:
    """The complaint about a call of a tool that does not exist."""
    return about(call, expected="the name of one of the given tools", got=excerpt(call["name"]))


def malformed(call: Call) -> Complaint:
    """The complaint about a call whose arguments are no JSON object."""
    return about(call, expected="arguments as one JSON object", got=excerpt(call.get("malformed", "")))


def about(call: Call, *, expected: str, got: str) -> Complaint:
    """A rule's complaint about a call as a whole."""
    return {"tool": str(call["name"]), "path": "$", "expected": expected, "got": got, "source": "rule"}


def faults(schema: JsonObject, value: Json) -> list[str]:
    """What is wrong with a value, one line each: `at $.a[0]: expected ..., got ...`. Empty if it fits.

    Args:
        schema: JSON Schema 2020-12; compiled once and cached, so never change it in place.
        value: A tool's result, a model's reply.
    """
    foreign = first_foreign(value)
    found = [foreign] if foreign else _wrong(schema, value)
    lines = (f"at {path}: expected {expected}, got {got}" for path, expected, got in found[:MAX_COMPLAINTS])
    return list(dict.fromkeys(lines))


def _wrong(schema: Any, value: Json) -> list[Finding]:
    errors = islice(check(rules_of(schema), value), MAX_COMPLAINTS)
    return [finding for error in errors for finding in findings(error)]


def _unknown(schema: Any, args: JsonObject) -> list[Finding]:
    closed = _closed(Same(schema))
    return [
        Finding(json_path((name,)), "no argument of this name", excerpt(value))
        for name, value in args.items()
        if closed is not None and not closed.knows(name)
    ]


class Closed(NamedTuple):
    """The names that a closed schema knows."""

    names: frozenset[str]
    patterns: tuple[Pattern, ...]

    def knows(self, name: str) -> bool:
        """True if the schema speaks of the name."""
        return name in self.names or any(pattern.matches(name) for pattern in self.patterns)


@lru_cache(maxsize=4096)
def _closed(key: Same) -> Closed | None:
    """What a top-level schema knows; None where it is open, or says by itself how closed it is."""
    root = rules_of(key.schema).schema
    if not isinstance(root, dict) or "additionalProperties" in root or "unevaluatedProperties" in root:
        return None
    parts = list(_parts(root, root, set()))
    if any(part is None or _opens(part) for part in parts):
        return None
    names = frozenset(name for part in parts if part for name in part.get("properties", ()))
    sources = [source for part in parts if part for source in part.get("patternProperties", ())]
    patterns = tuple(pattern for source in sources if (pattern := compile_pattern(source)))
    says_object = any(part is not None and part.get("type") == "object" for part in parts)
    return Closed(names, patterns) if names or patterns or says_object else None


def _opens(part: Mapping[str, Any]) -> bool:
    return any(part.get(key, False) is not False for key in ("additionalProperties", "unevaluatedProperties"))


def _parts(root: JsonObject, schema: Any, seen: set[int]) -> Iterator[JsonObject | None]:
    """Every schema that may speak of the same object; None for a reference that leads nowhere."""
    if not isinstance(schema, dict) or id(schema) in seen:
        return
    seen.add(id(schema))
    yield schema
    for key in ("$ref", "$dynamicRef"):
        if key in schema:
            target = follow(root, schema[key])
            yield from [None] if target is None else _parts(root, target, seen)
    inner = [each for key in ("allOf", "anyOf", "oneOf") for each in schema.get(key, ())]
    inner += [schema[key] for key in ("if", "then", "else") if key in schema]
    inner += schema.get("dependentSchemas", {}).values()
    for each in inner:
        yield from _parts(root, each, seen)
