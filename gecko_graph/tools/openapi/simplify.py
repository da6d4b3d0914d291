"""Simplify JSON Schemas without changing their meaning: fewer `$defs`, fewer `allOf`.

Models and people read a schema more easily if small or once-used definitions are inlined. Circular definitions, and
large ones with several uses, stay in `$defs`. The result is a fixed point.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable
from graphlib import TopologicalSorter
from itertools import chain
from typing import Any

from ...schemas.subschemas import ANNOTATIONS, IN_PLACE, children, rebuild, walk
from ...state import JsonObject

SMALL = 1_000
"""Characters of JSON up to which a definition is always inlined."""

MANY = 300
"""Number of definitions from which a schema is not simplified."""

DEEP = 30
"""Nesting depth from which a definition is not inlined; chains of inlined definitions would grow without limit."""

PREFIX = "#/$defs/"
_MERGEABLE = ANNOTATIONS | {"type", "properties", "required"}


def defs_of(schema: Any) -> list[str]:
    """Return the names of referenced definitions, one entry per reference; its own `$defs` are not searched."""
    references = (one.get("$ref") for one in walk(_without_defs(schema)))
    return [one.removeprefix(PREFIX) for one in references if isinstance(one, str) and one.startswith(PREFIX)]


def in_place_defs(schema: Any) -> set[str]:
    """Return the definitions that may apply to the same value as the schema."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            found.update(defs_of({"$ref": one["$ref"]}) if "$ref" in one else ())
            waiting.extend(part for key in IN_PLACE & one.keys() for part in one[key])
            waiting.extend(one[key] for key in ("not", "if", "then", "else") if key in one)
            waiting.extend(one.get("dependentSchemas", {}).values())
    return found


def as_object(schema: Any) -> JsonObject:
    """Return a boolean schema as an object; others unchanged."""
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    found: JsonObject = schema
    return found


class Simplifier:
    """Simplifies the schemas of one document; results for shared definitions are cached."""

    def __init__(self) -> None:
        self._done: dict[tuple[Any, int], tuple[Any, Any]] = {}
        """By function and argument's identity: the argument (kept alive) and the result."""

    def simplify(self, schema: JsonObject) -> JsonObject:
        """Return an equivalent schema with fewer definitions and without needless `allOf`."""
        if len(schema.get("$defs", ())) > MANY:
            return schema
        schema = self._with_defs(_without_defs(schema), schema.get("$defs", {}))
        circular = self._circular(schema.get("$defs", {}))
        for _ in range(10):
            before, schema = schema, self._merge(self._inline(schema, circular))
            if schema == before:
                break
        return schema

    def _once(self, function: Callable[[Any], Any], value: Any) -> Any:
        key = (function, id(value))
        if key not in self._done:
            self._done[key] = (value, function(value))
        return self._done[key][1]

    def _with_defs(self, body: JsonObject, defs: JsonObject) -> JsonObject:
        """Return a schema with the definitions that it needs."""
        needed = self._closure(defs_of(body), defs)
        return {**body, "$defs": {name: defs[name] for name in needed}} if needed else body

    def _closure(self, names: list[str], defs: JsonObject) -> list[str]:
        """Return the definitions reachable from these, in order of discovery."""
        found: dict[str, None] = {}
        waiting = deque(names)
        while waiting:
            name = waiting.popleft()
            if name in defs and name not in found:
                found[name] = None
                waiting.extend(self._once(defs_of, defs[name]))
        return list(found)

    def _inline(self, schema: JsonObject, circular: set[str]) -> JsonObject:
        body, defs = _without_defs(schema), dict(schema.get("$defs", {}))
        uses = Counter(chain(defs_of(body), *(self._once(defs_of, one) for one in defs.values())))
        gone: JsonObject = {}
        straight = defs.keys() - circular
        needs = {name: straight.intersection(self._once(defs_of, defs[name])) for name in defs if name in straight}
        for name in TopologicalSorter(needs).static_order():
            defs[name] = self._fill(defs[name], gone)
            if self._once(_is_shallow, defs[name]) and (uses[name] == 1 or self._once(_is_small, defs[name])):
                gone[name] = defs[name]
        kept = {name: self._fill(one, gone) for name, one in defs.items() if name not in gone}
        return self._with_defs(as_object(_inline_refs(body, gone)), kept)

    def _fill(self, definition: Any, gone: JsonObject) -> Any:
        bodies = {name: gone[name] for name in self._once(defs_of, definition) if name in gone}
        key = (tuple((name, id(one)) for name, one in bodies.items()), id(definition))
        if bodies and key not in self._done:
            self._done[key] = ((definition, bodies), _inline_refs(definition, bodies))
        return self._done[key][1] if bodies else definition

    def _circular(self, defs: JsonObject) -> set[str]:
        """Return the definitions that refer back to themselves; inlining others does not change the set."""
        for name, one in defs.items():
            if ("circular", id(one)) not in self._done:
                self._done["circular", id(one)] = (one, name in self._closure(self._once(defs_of, one), defs))
        return {name for name, one in defs.items() if self._done["circular", id(one)][1]}

    def _merge(self, schema: JsonObject) -> JsonObject:
        body: JsonObject = _merge_all_of(_without_defs(schema))
        defs = {name: self._once(_merged_or_same, one) for name, one in schema.get("$defs", {}).items()}
        return {**body, "$defs": defs} if defs else body


def _without_defs(schema: Any) -> Any:
    return {key: value for key, value in schema.items() if key != "$defs"} if isinstance(schema, dict) else schema


def _is_small(schema: Any) -> bool:
    return len(json.dumps(schema)) <= SMALL


def _is_shallow(schema: Any) -> bool:
    level = [schema]
    for _ in range(DEEP):
        level = [part for one in level if isinstance(one, dict) for part in children(one)]
        if not level:
            return True
    return False


def _inline_refs(schema: Any, bodies: JsonObject) -> Any:
    if not isinstance(schema, dict):
        return schema
    name = str(schema.get("$ref", "")).removeprefix(PREFIX)
    around = rebuild(schema, lambda one: _inline_refs(one, bodies))
    if name in bodies and schema["$ref"] == PREFIX + name:
        del around["$ref"]
        return combine(bodies[name], around)
    return around


def combine(body: Any, around: JsonObject) -> Any:
    """Return a schema equivalent to `{"allOf": [body], **around}`, flat if possible."""
    if not around:
        return body
    if isinstance(body, dict) and around.keys() <= ANNOTATIONS:
        return {**body, **around}
    if isinstance(body, dict) and _is_narrowing(body, around):
        narrower = {name: {**body["properties"][name], **one} for name, one in around["properties"].items()}
        required = dict.fromkeys([*body.get("required", []), *around.get("required", [])])
        return {**body, **around, "properties": {**body["properties"], **narrower}, "required": list(required)}
    return {"allOf": [body], **around} if "allOf" not in around else {**around, "allOf": [body, *around["allOf"]]}


def _is_narrowing(body: JsonObject, around: JsonObject) -> bool:
    """Return whether `around` only lists values for some of the body's properties, as a discriminator does."""
    mine, theirs = body.get("properties"), around.get("properties")
    return (
        around.keys() <= ANNOTATIONS | {"properties", "required"}
        and isinstance(mine, dict)
        and isinstance(theirs, dict)
        and all(_is_narrower_enum(mine.get(name), one) for name, one in theirs.items())
    )


def _is_narrower_enum(mine: Any, theirs: Any) -> bool:
    if not isinstance(mine, dict) or not isinstance(theirs, dict) or mine.keys() & {"const", "$ref"}:
        return False
    listed: Any = mine["enum"] if "enum" in mine else theirs.get("enum")
    return theirs.keys() == {"enum"} and all(one in listed for one in theirs["enum"])


def _merge_all_of(schema: Any) -> Any:
    """Merge `allOf` of plain objects into one object, and `allOf` of one schema into that schema."""
    if not isinstance(schema, dict):
        return schema
    schema = rebuild(schema, _merge_all_of)
    parts = schema.get("allOf")
    if not isinstance(parts, list) or not parts or not all(isinstance(one, dict) for one in parts):
        return schema
    around = {key: value for key, value in schema.items() if key != "allOf"}
    merged = combine(parts[0], around) if len(parts) == 1 else _merge_objects([*parts, around])
    return schema if merged is None else merged


def _merged_or_same(schema: Any) -> Any:
    merged = _merge_all_of(schema)
    return schema if merged == schema else merged


def _merge_objects(parts: list[JsonObject]) -> JsonObject | None:
    """Return one object schema for all parts; None if they are not plain objects or conflict."""
    if not any("properties" in part for part in parts) or not all(_is_plain_object(part) for part in parts):
        return None
    whole: JsonObject = {"type": "object"} if any(part.get("type") == "object" for part in parts) else {}
    properties, required = JsonObject(), dict[str, None]()
    for part in parts:
        for name, one in part.get("properties", {}).items():
            if properties.setdefault(name, one) != one:
                return None
        required.update(dict.fromkeys(part.get("required", [])))
        whole.update({key: value for key, value in part.items() if key in ANNOTATIONS})
    return {**whole, "properties": properties, **({"required": list(required)} if required else {})}


def _is_plain_object(part: JsonObject) -> bool:
    return (
        part.keys() <= _MERGEABLE
        and part.get("type", "object") == "object"
        and isinstance(part.get("properties", {}), dict)
    )
