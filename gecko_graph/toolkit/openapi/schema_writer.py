"""JSON Schemas with `$defs` of their own as OpenAPI 3.1 has them: references into `components/schemas`."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from ...schemas.complaints import find_faults
from ...schemas.subschemas import rebuild, walk
from ...state import JsonObject
from ..names import unique_name
from .simplify import PREFIX, defs_of

COMPONENTS = "#/components/schemas/"
_STEPS = 4
_NOT_WRITTEN = ("$schema", "$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$vocabulary", "$defs", "definitions")


class SchemaWriter:
    """Writes schemas, and collects the definitions that they share as components."""

    def __init__(self) -> None:
        self.components: JsonObject = {}
        self._known: dict[tuple[str, str], str] = {}
        self._seen: dict[int, tuple[Any, tuple[str, list[str]]]] = {}
        self._defs: JsonObject = {}
        self._hashes: dict[str, str] = {}
        self._waiting: list[tuple[str, str]] = []

    def write(self, schema: Any, *, within: JsonObject | None = None) -> Any:
        """Return one schema as it stands in the document.

        Args:
            schema: The schema.
            within: The schema that holds its `$defs`; itself by default.
        """
        holder = within if within is not None else schema
        defs = holder.get("$defs") if isinstance(holder, dict) else None
        self._defs = defs if isinstance(defs, dict) else {}
        self._hashes = self._hash_definitions(self._defs)
        written = self._written(schema)
        while self._waiting:
            name, component = self._waiting.pop()
            one = self._written(self._defs[name])
            named = isinstance(one, dict) and component != name
            self.components[component] = {"x-gecko-name": name, **one} if named else one
        return written

    def _written(self, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        plain = {key: one for key, one in schema.items() if key not in _NOT_WRITTEN}
        reference = plain.pop("$ref", None)
        written = rebuild(plain, self._written)
        if isinstance(reference, str) and reference.startswith(PREFIX) and reference.removeprefix(PREFIX) in self._defs:
            written["$ref"] = COMPONENTS + self._component(reference.removeprefix(PREFIX))
        _add_required_properties(written)
        return _without_refused(written, {**schema, "$defs": self._defs})

    def _hash_definitions(self, defs: JsonObject) -> dict[str, str]:
        """Return a hash for each definition, of it and of what it leads to in a few steps."""
        own = {name: self._hash_definition(one) for name, one in defs.items()}
        needs = {name: [one for one in others if one in defs] for name, (_, others) in own.items()}
        marks = {name: mark for name, (mark, _) in own.items()}
        for _ in range(min(len(defs), _STEPS)):
            marks = {name: _hash(marks[name], *(marks[one] for one in others)) for name, others in needs.items()}
        return marks

    def _hash_definition(self, definition: Any) -> tuple[str, list[str]]:
        """Return a definition's own hash, and what it refers to. Tools share definitions, so each is read once."""
        if id(definition) not in self._seen:
            mark = _hash(json.dumps(definition, sort_keys=True))
            self._seen[id(definition)] = (definition, (mark, defs_of(definition)))
        return self._seen[id(definition)][1]

    def _component(self, name: str) -> str:
        key = (name, self._hashes[name])
        if key not in self._known:
            plain = re.sub(r"[^A-Za-z0-9._-]", "_", name) or "schema"
            component = self._known[key] = unique_name(plain, self.components)
            self.components[component] = {}
            self._waiting.append((name, component))
        return self._known[key]


def _hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _add_required_properties(written: JsonObject) -> None:
    """Add an open schema for each required property without one: validators want them listed."""
    required = written.get("required")
    if isinstance(required, list) and isinstance(written.get("properties", {}), dict):
        missing = [name for name in required if name not in written.get("properties", {})]
        if missing:
            written["properties"] = {**written.get("properties", {}), **{name: {} for name in missing}}


def _without_refused(written: JsonObject, schema: JsonObject) -> JsonObject:
    """Return the schema with what validators of documents refuse under names that they pass over."""
    if "default" in written and not _is_sure_default(schema):
        written["x-gecko-default"] = written.pop("default")
    if isinstance(written.get("pattern"), str) and not _is_python(written["pattern"]):
        written["x-gecko-pattern"] = written.pop("pattern")
    patterns = written.get("patternProperties")
    if isinstance(patterns, dict) and not all(map(_is_python, patterns)):
        written["patternProperties"] = {key: one for key, one in patterns.items() if _is_python(key)}
    return written


def _is_sure_default(schema: JsonObject) -> bool:
    """Return whether every validator accepts the default: they differ in formats, patterns and `$ref` in data."""
    leaves = _scalars(schema["default"])
    if "$ref" in leaves:
        return False
    if any(isinstance(one, str) for one in leaves) and any(one.keys() & {"format", "pattern"} for one in walk(schema)):
        return False
    return not find_faults({key: one for key, one in schema.items() if key != "default"}, schema["default"])


def _scalars(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for key, one in value.items() for leaf in (key, *_scalars(one))]
    if isinstance(value, list):
        return [leaf for one in value for leaf in _scalars(one)]
    return [value]


def _is_python(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
