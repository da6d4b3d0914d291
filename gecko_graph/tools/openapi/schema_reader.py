"""Schemas as people and OpenAPI write them, read as self-contained JSON Schema 2020-12.

What changes on the way:

- `$ref` to anywhere becomes an entry of the schema's own `$defs`, or is written out where it stands (see `simplify`).
  What stands beside a `$ref` counts too; in OpenAPI 3.0 only what describes (its own rule: the rest is ignored).
- OpenAPI 3.0: `nullable` becomes `type: [..., "null"]` or `anyOf` with null, and is heeded in 3.1 too, where people
  still write it; `exclusiveMinimum: true` becomes a number; `example` becomes `examples`.
- Older drafts: a list in `items` becomes `prefixItems`; `required: true` of a property becomes the object's `required`.
- A `discriminator` beside `oneOf` or `anyOf` becomes a condition on each of its branches: the property is required and
  has the branch's names. Where the branch itself lists other values for the property, the branch counts. Without
  branches it decides nothing and is dropped. A child that extends such a parent by `allOf` extends it without its
  branches, or it would contain itself.
- `readOnly` properties are left out of arguments, `writeOnly` ones out of results.
- What only documents (`xml`, `externalDocs`, `x-...`) is dropped, and `$id` with it: a reference is a JSON Pointer from
  the document's root.
"""

from __future__ import annotations

import re
from collections import deque
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal

from ...schemas.subschemas import ANNOTATIONS, BOUNDS, COUNTS, IN_PLACE, LISTS, MAPS, SINGLES, TYPES, is_well_formed
from ...state import JsonObject
from ..spec import unique_name
from .documents import Documents, Place, error_at, expect_object, json_type, list_items, member
from .simplify import PREFIX, Simplifier, as_object, defs_of, in_place_defs

Direction = Literal["request", "response"]
Version = Literal["3.0", "3.1", "json"]

ANY = "any"
"""Stands for a type that allows everything, until it is dropped."""

_DROPPED = frozenset(
    {"$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$defs", "definitions"}
    | {"optional", "additionalItems"}
)
_OPENAPI_ONLY = frozenset(
    {"xml", "externalDocs", "discriminator", "nullable", "readOnly", "writeOnly", "example", "$comment"}
)
_BESIDE_3_0 = ANNOTATIONS | {"$ref", "nullable", "example"}
_BRANCHES = frozenset({"oneOf", "anyOf"})
_NOT_READ = frozenset({"$dynamicRef", "$recursiveRef", "dependencies"})
"""Keywords that would change what a schema means."""
_HIDDEN: dict[Direction, str] = {"request": "readOnly", "response": "writeOnly"}
_ANNOTATION_TYPES = {"title": str, "description": str, "examples": list}
_DEEPEST_LISTED = 5


class SchemaReader:
    """Reads the schemas of a document and of those that it refers to.

    The version `json` is plain JSON Schema, of which nothing is dropped; `types` is what other names for types mean.
    """

    def __init__(self, documents: Documents, *, version: Version, types: dict[str, str | None] | None = None) -> None:
        self._documents = documents
        self._version = version
        self._types: dict[str, str | None] = {**{name: name for name in TYPES}, **(types or {})}
        self._names: dict[tuple[Place, bool], str] = {}
        """Names of the definitions, by place and whether its branches are left out."""
        self._places: dict[str, tuple[Place, bool]] = {}
        self._definitions: dict[tuple[str, Direction], tuple[Any, list[str]]] = {}
        """Definitions with the names of those that they refer to."""
        self._finite: set[tuple[str, Direction]] = set()
        self.simplify = Simplifier().simplify

    def read(self, schema: Any, place: Place, *, direction: Direction) -> JsonObject:
        """Return one schema, self-contained.

        Raises:
            ToolkitError: It is not a schema, or a reference in it leads nowhere; the message names the place.
        """
        body = as_object(self._read_schema(schema, place, direction))
        defs: JsonObject = {}
        waiting = deque(defs_of(body))
        while waiting:
            name = waiting.popleft()
            if name not in defs:
                defs[name], referred = self._definition(name, direction)
                waiting.extend(referred)
        self._check_ends(defs, direction)
        return self.simplify({**body, "$defs": defs} if defs else body)

    def _definition(self, name: str, direction: Direction) -> tuple[Any, list[str]]:
        if (name, direction) not in self._definitions:
            place, is_bare = self._places[name]
            schema: Any = self._documents.at(place)
            if is_bare:
                schema = {key: one for key, one in schema.items() if key not in _BRANCHES}
            body = self._read_schema(schema, place, direction)
            self._definitions[name, direction] = (body, defs_of(body))
        return self._definitions[name, direction]

    def _check_ends(self, defs: JsonObject, direction: Direction) -> None:
        """Raise ToolkitError for a schema whose validation would never end."""
        fresh = {name: one for name, one in defs.items() if (name, direction) not in self._finite}
        needs = {name: sorted(in_place_defs(one) & fresh.keys()) for name, one in fresh.items()}
        try:
            TopologicalSorter(needs).prepare()
        except CycleError as error:
            why = "this schema refers to itself without a property or item between"
            raise error_at(self._places[error.args[1][0]][0], why) from None
        self._finite.update((name, direction) for name in fresh)

    def _read_schema(self, schema: Any, place: Place, direction: Direction) -> Any:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise error_at(place, f"a schema must be an object, not {json_type(schema)}")
        if self._version == "3.0" and "$ref" in schema:
            schema = {key: value for key, value in schema.items() if key in _BESIDE_3_0}
        upgraded = _upgrade(schema, self._version)
        read = {key: self._read_keyword(key, value, place, direction) for key, value in upgraded.items()}
        if read.get("type") == ANY:
            del read["type"]
        self._require_members(schema, read)
        if self._version == "json":
            return read
        self._drop_hidden(schema, read, place / "properties", direction)
        if "discriminator" in schema:
            self._apply_discriminator(schema, read, place)
        return make_nullable(read) if schema.get("nullable") is True else read

    def _read_keyword(self, key: str, value: Any, place: Place, direction: Direction) -> Any:
        here = place / key
        if key in MAPS:
            items = expect_object(value, here).items()
            return {name: self._read_schema(one, here / name, direction) for name, one in items}
        if key in LISTS:
            return [self._read_schema(one, there, direction) for one, there in list_items(value, here)]
        if key in SINGLES:
            return self._read_schema(value, here, direction)
        if key == "type":
            return self._read_type(value, here)
        if key in _NOT_READ or (key != "pattern" and not is_well_formed(key, value)):
            raise error_at(here, f"cannot be read: {str(value)[:60]}")
        if key == "$ref":
            return self._read_reference(value, place)
        return int(value) if key in COUNTS else value

    def _read_reference(self, reference: str, place: Place) -> str:
        """Return the reference to the definition of what it leads to."""
        self._documents.follow({"$ref": reference}, place)
        target = self._documents.resolve(reference, place)
        key = (target, self._is_parent(target, place))
        if key not in self._names:
            stem = target.document.replace("\\", "/").rpartition("/")[2].partition(".")[0]
            wanted = re.sub(r"[^A-Za-z0-9_.-]", "_", target.tokens[-1] if target.tokens else stem) or "schema"
            self._names[key] = unique_name(f"{wanted}_base" if key[1] else wanted, self._places)
            self._places[self._names[key]] = key
        return PREFIX + self._names[key]

    def _is_parent(self, target: Place, place: Place) -> bool:
        """Return whether a reference in an `allOf` names a parent whose branches lead back here."""
        parent = self._documents.at(target)
        if place.tokens[-2:-1] != ("allOf",) or not isinstance(parent, dict):
            return False
        listed = [one for key in _BRANCHES & parent.keys() if isinstance(parent[key], list) for one in parent[key]]
        references = [one["$ref"] for one in listed if isinstance(one, dict) and isinstance(one.get("$ref"), str)]
        child = Place(place.document, place.tokens[:-2])
        return any(self._documents.resolve(one, target) == child for one in references)

    def _read_type(self, value: Any, place: Place) -> Any:
        if isinstance(value, list):
            known = [self._read_type(one, place / index) for index, one in enumerate(value)]
            return ANY if ANY in known or not known else list(dict.fromkeys(known))
        name = value.lower() if isinstance(value, str) and self._version == "json" else value
        if not isinstance(name, str) or name not in self._types:
            raise error_at(place, f"{value!r} is not a type; use one of {', '.join(TYPES)}")
        return self._types[name] or ANY

    @staticmethod
    def _require_members(schema: JsonObject, read: JsonObject) -> None:
        """Require what says so of itself, as older drafts have it."""
        members = schema.get("properties") or {}
        needed = [name for name, one in members.items() if isinstance(one, dict) and one.get("required") is True]
        if needed or "required" in read:
            read["required"] = list(dict.fromkeys([*read.get("required", []), *needed]))

    def _drop_hidden(self, schema: JsonObject, read: JsonObject, place: Place, direction: Direction) -> None:
        """Remove the properties that this direction does not carry."""
        for name, one in schema.get("properties", {}).items():
            target = self._documents.follow(one, place / name)[0]
            if any(isinstance(each, dict) and each.get(_HIDDEN[direction]) is True for each in (one, target)):
                del read["properties"][name]
                if "required" in read:
                    read["required"] = [other for other in read["required"] if other != name]

    def _apply_discriminator(self, schema: JsonObject, read: JsonObject, place: Place) -> None:
        key = next((one for one in ("oneOf", "anyOf") if one in schema), None)
        if key is None:
            return
        here = place / "discriminator"
        given = expect_object(schema["discriminator"], here)
        name = given.get("propertyName")
        if not isinstance(name, str):
            raise error_at(here, "must have a propertyName, which is text")
        mapped: dict[Place, list[str]] = {}
        for value, reference in expect_object(member(given, "mapping", {}), here / "mapping").items():
            is_name = re.fullmatch(r"[\w.-]+", str(reference)) and not str(reference).endswith((".yaml", ".json"))
            written = f"#/components/schemas/{reference}" if is_name else str(reference)
            mapped.setdefault(self._documents.resolve(written, here / "mapping" / value), []).append(value)
        for index, branch in enumerate(schema[key]):
            if not isinstance(branch, dict) or "$ref" not in branch:
                continue
            target = self._documents.resolve(branch["$ref"], place / key / index)
            names = mapped.get(target) or [*target.tokens[-1:]]
            own = self._listed_values(branch, place / key / index, name)
            if fitting := names if own is None else [one for one in names if one in own]:
                condition = {"properties": {name: {"enum": fitting}}, "required": [name]}
                read[key][index] = {**read[key][index], **condition}

    def _listed_values(self, schema: Any, place: Place, name: str, depth: int = _DEEPEST_LISTED) -> list[Any] | None:
        """Return the values that a schema itself lists for a property; None where it lists none."""
        schema, place = self._documents.follow(schema, place)
        if not isinstance(schema, dict) or not depth:
            return None
        members = schema.get("properties")
        listed = members.get(name) if isinstance(members, dict) else None
        value, _ = self._documents.follow(listed, place / "properties" / name)
        if isinstance(value, dict) and ("const" in value or isinstance(value.get("enum"), list)):
            return value["enum"] if "enum" in value else [value["const"]]
        for key in IN_PLACE & schema.keys():
            parts = [self._listed_values(one, at, name, depth - 1) for one, at in list_items(schema[key], place / key)]
            known = [one for one in parts if one is not None]
            if known and (key == "allOf" or len(known) == len(parts)):
                return known[0] if key == "allOf" else [value for values in known for value in values]
        return None


def _upgrade(schema: JsonObject, version: Version) -> JsonObject:
    """Return a schema object without what only documents, and in the words of 2020-12."""
    new = {
        key: value
        for key, value in schema.items()
        if key not in _DROPPED and isinstance(value, _ANNOTATION_TYPES.get(key, object))
    }
    if isinstance(new.get("items"), list):
        new["prefixItems"] = new.pop("items")
    if isinstance(new.get("required", ()), bool | None):
        del new["required"]
    if version == "json":
        return new
    new = {key: value for key, value in new.items() if key not in _OPENAPI_ONLY and not key.startswith("x-")}
    if "example" in schema:
        new.setdefault("examples", [schema["example"]])
    for bound, exclusive in zip(BOUNDS[:2], BOUNDS[2:], strict=True):
        if isinstance(new.get(exclusive), bool) and new.pop(exclusive) and bound in new:
            new[exclusive] = new.pop(bound)
    return new


def make_nullable(schema: JsonObject) -> JsonObject:
    """Return the schema, which also takes null."""
    kinds = schema.get("type")
    if kinds is None and not schema.keys() - ANNOTATIONS:
        return schema
    if kinds is None or schema.keys() & {"$ref", "allOf", "anyOf", "oneOf", "not", "const"}:
        annotations = {key: value for key, value in schema.items() if key in ANNOTATIONS}
        rest = {key: value for key, value in schema.items() if key not in ANNOTATIONS}
        return {"anyOf": [rest, {"type": "null"}], **annotations}
    kinds = kinds if isinstance(kinds, list) else [kinds]
    listed = {"enum": [*schema["enum"], None]} if None not in schema.get("enum", [None]) else {}
    return {**schema, "type": kinds if "null" in kinds else [*kinds, "null"], **listed}
