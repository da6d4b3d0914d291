"""Schemas as people and OpenAPI write them, read as self-contained JSON Schema 2020-12.

What changes on the way:

- `$ref` to anywhere becomes an entry of the schema's own `$defs`, or is written out where it stands (see `simplify`).
  What stands beside a `$ref` counts too; in OpenAPI 3.0 only what describes (its own rule: the rest is ignored).
- OpenAPI 3.0: `nullable` becomes `type: [..., "null"]` or `anyOf` with null, and is heeded in 3.1 too, where people
  still write it; `exclusiveMinimum: true` becomes a number; `example` becomes `examples`.
- Older drafts: a list in `items` becomes `prefixItems`; `required: true` of a property becomes the object's `required`.
- A reference is a JSON Pointer from the document's root: `$dynamicRef` and `$recursiveRef` are errors, an `$id` changes
  nothing, which is said where references stand below it. `dependencies` is an error.
- A `discriminator` beside `oneOf` or `anyOf` becomes a condition on each of its branches: the property is required and
  has the branch's names. Where the branch itself lists other values for the property, the branch counts. Without
  branches it decides nothing and is dropped. A child that extends such a parent by `allOf` extends it without its
  branches, or it would contain itself.
- `readOnly` properties are left out of arguments, `writeOnly` ones out of results.
- What only documents (`xml`, `externalDocs`, `x-...`) is dropped.
"""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal

from ...errors import ToolkitError
from ...schemas.subschemas import ANNOTATIONS, IN_PLACE, LISTS, MAPS, SINGLES, mentions
from ...schemas.tidy import TYPES
from ...state import Json, JsonObject
from ..names import unique_name
from .keywords import branch_values, check_keyword, make_nullable, with_property_values
from .references import Documents, Place, error_at, expect_object, json_type, list_items, member
from .simplify import PREFIX, Simplifier, as_object, closure, defs_of, in_place_defs, rename_defs

Direction = Literal["request", "response"]

ANY = "any"
"""Stands for a type that allows everything, until it is dropped."""

Version = Literal["3.0", "3.1", "json"]

_DROPPED = frozenset(
    {
        "$schema",
        "$id",
        "$anchor",
        "$dynamicAnchor",
        "$recursiveAnchor",
        "$vocabulary",
        "$defs",
        "definitions",
        "optional",
    }
)
_OPENAPI_ONLY = frozenset(
    {"xml", "externalDocs", "discriminator", "nullable", "readOnly", "writeOnly", "example", "$comment"}
)
_BESIDE_3_0 = ANNOTATIONS | {"nullable", "example"}
_BRANCHES = frozenset({"oneOf", "anyOf"})
_NOT_READ = {
    **dict.fromkeys(("$dynamicRef", "$recursiveRef"), "$ref"),
    "dependencies": "dependentRequired or dependentSchemas",
}
"""Keywords that would change what a schema means, and what is read in their place."""
_HIDDEN: dict[Direction, str] = {"request": "readOnly", "response": "writeOnly"}


class SchemaReader:
    """Reads the schemas of a document and of those that it refers to.

    The version `json` is plain JSON Schema, of which nothing is dropped; `types` is what other names for types mean.
    """

    def __init__(self, documents: Documents, *, version: Version, types: dict[str, str | None] | None = None) -> None:
        self._documents = documents
        self._version = version
        self._types: dict[str, str | None] = {**{name: name for name in TYPES}, **(types or {})}
        self._names: dict[Place, str] = {}
        self._places: dict[str, Place] = {}
        self._wanted_names: dict[str, str] = {}
        self._finite: set[tuple[str, Direction]] = set()
        self._bodies: dict[tuple[str, Direction], Any] = {}
        self._needs: dict[tuple[str, Direction], list[str]] = {}
        self._queue: list[tuple[str, Any, Place, Direction]] = []
        self.simplify = Simplifier().simplify
        self.notes: dict[str, None] = {}
        """What was left out, with its place: for `problems`."""

    def read(self, schema: Any, place: Place, *, direction: Direction) -> JsonObject:
        """Return one schema, self-contained.

        Raises:
            ToolkitError: It is not a schema, or a reference in it leads nowhere; the message names the place.
        """
        known = len(self._bodies)
        try:
            body = as_object(self._read_schema(schema, place, direction))
            self._read_queued()
        except ToolkitError:
            self._discard_since(known)
            raise
        needed = closure(defs_of(body), {name: names for (name, way), names in self._needs.items() if way == direction})
        whole = {**body, "$defs": {name: self._bodies[name, direction] for name in needed}} if needed else body
        self._check_ends(whole.get("$defs", {}), direction)
        return self.simplify(whole)

    def _discard_since(self, known: int) -> None:
        """Drop all definitions but the first `known`: the next schema must not find them half read."""
        self._queue.clear()
        for key in list(self._bodies)[known:]:
            del self._bodies[key]
            self._needs.pop(key, None)

    def _read_queued(self) -> None:
        """Read the definitions in the queue: without recursion, as references can lead through very many."""
        while self._queue:
            name, schema, place, direction = self._queue.pop()
            body = self._bodies[name, direction] = self._read_schema(schema, place, direction)
            self._needs[name, direction] = defs_of(body)

    def restore_names(self, schema: JsonObject) -> JsonObject:
        """Return the schema with its definitions under their own names, where two do not share one.

        While a document is read, a name means one definition in all of it; a tool's schema has fewer of them.
        """
        defs = schema.get("$defs", {})
        names = {name: name for name in defs if self._wanted_names[name] == name}
        taken = {*names}
        for name in defs:
            if name not in names:
                names[name] = unique_name(self._wanted_names[name], taken)
                taken.add(names[name])
        return schema if all(name == given for name, given in names.items()) else rename_defs(schema, names)

    def _check_ends(self, defs: dict[str, Any], direction: Direction) -> None:
        """Raise ToolkitError for a schema whose validation would never end."""
        fresh = {name: one for name, one in defs.items() if (name, direction) not in self._finite}
        needs = {name: sorted(in_place_defs(one) & fresh.keys()) for name, one in fresh.items()}
        try:
            TopologicalSorter(needs).prepare()
        except CycleError as error:
            why = "this schema refers to itself without a property or item between"
            raise error_at(self._places[error.args[1][0]], why) from None
        self._finite.update((name, direction) for name in fresh)

    def _read_schema(self, schema: Any, place: Place, direction: Direction) -> Any:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise error_at(place, f"a schema must be an object, not {json_type(schema)}")
        self._check_keys(schema, place)
        if "$ref" not in schema:
            return self._read_keywords(schema, place, direction)
        if not isinstance(schema["$ref"], str):
            raise error_at(place / "$ref", f"must be text, not {json_type(schema['$ref'])}")
        return self._read_reference(schema, self._documents.resolve(schema["$ref"], place), place, direction)

    def _check_keys(self, schema: JsonObject, place: Place) -> None:
        """Raise ToolkitError for a key that is not read; note an `$id` that references may have been written for."""
        for key in _NOT_READ.keys() & schema.keys():
            raise error_at(place / key, f"is not read: write {_NOT_READ[key]}")
        if place.tokens and "$id" in schema and mentions(schema, "$ref"):
            note = f"{place / '$id'}: is not heeded: references below it lead from the document's root"
            if self._version == "json":
                raise ToolkitError(note)
            self.notes[note] = None

    def _read_reference(self, schema: JsonObject, target: Place, place: Place, direction: Direction) -> JsonObject:
        self._documents.follow(schema, place)
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        if self._version == "3.0":
            beside = {key: value for key, value in beside.items() if key in _BESIDE_3_0}
        nullable = self._version != "json" and beside.pop("nullable", None) is True
        around = self._read_keywords(beside, place, direction)
        is_bare = self._is_recursive_parent(place, target)
        referring = {"$ref": PREFIX + self._define(target, direction, is_bare=is_bare), **around}
        return make_nullable(referring) if nullable else referring

    def _is_recursive_parent(self, place: Place, target: Place) -> bool:
        """Return whether a reference in an `allOf` names a parent whose branches lead back here."""
        if "allOf" not in place.tokens[-2:-1]:
            return False
        child = Place(place.document, place.tokens[:-2])
        parent = self._documents.at(target)
        if not isinstance(parent, dict):
            return False
        branches = {key: parent[key] for key in _BRANCHES if key in parent}
        return child in self._places_in_place(branches, target)

    def _places_in_place(self, schema: Any, place: Place) -> set[Place]:
        """Return all places of schemas that a value must fit as well, or may have to, when it must fit this one."""
        found: set[Place] = set()
        waiting = [(schema, place)]
        while waiting:
            one, here = waiting.pop()
            for key in IN_PLACE & one.keys() if isinstance(one, dict) else ():
                waiting.extend(list_items(one[key], here / key))
            if isinstance(one, dict) and isinstance(one.get("$ref"), str):
                target = self._documents.resolve(one["$ref"], here)
                if target not in found:
                    found.add(target)
                    waiting.append((self._documents.at(target), target))
        return found

    def _define(self, target: Place, direction: Direction, *, is_bare: bool = False) -> str:
        """Return the name of the definition for what stands at a place; of a bare parent without its branches."""
        schema, key, wanted = self._documents.at(target), target, self._name_for(target)
        if is_bare:
            schema = {key: one for key, one in schema.items() if key not in _BRANCHES}
            key, wanted = target / "(base)", f"{wanted}_base"
        name = self._names.get(key) or self._add_name(key, wanted)
        if (name, direction) not in self._bodies:
            self._bodies[name, direction] = {}
            self._queue.append((name, schema, target, direction))
        return name

    def _name_for(self, target: Place) -> str:
        stem = target.document.replace("\\", "/").rpartition("/")[2].partition(".")[0]
        return target.tokens[-1] if target.tokens else stem

    def _add_name(self, key: Place, wanted: str) -> str:
        wanted = re.sub(r"[^A-Za-z0-9_.-]", "_", wanted) or "schema"
        name = self._names[key] = unique_name(wanted, self._places)
        self._places[name], self._wanted_names[name] = key, wanted
        return name

    def _read_keywords(self, schema: JsonObject, place: Place, direction: Direction) -> JsonObject:
        read: JsonObject = {}
        for key, value in schema.items():
            if key not in ("$ref", "additionalItems") and not self._is_dropped(key, value):
                read[key] = self._read_keyword(key, value, place / key, direction)
        self._upgrade_keywords(schema, read, place, direction)
        if read.get("type") == ANY:
            del read["type"]
        self._drop_hidden(schema, read, place, direction)
        if self._version == "json":
            return read
        if "example" in schema:
            read.setdefault("examples", [schema["example"]])
        self._upgrade_bounds(read)
        self._apply_discriminator(schema, read, place)
        return make_nullable(read) if schema.get("nullable") is True else read

    def _is_dropped(self, key: str, value: Any) -> bool:
        if key in _DROPPED or (value is None and key in ("title", "description")):
            return True
        if key == "required" and (value is None or isinstance(value, bool)):
            return True
        if self._version == "json":
            return False
        return key in _OPENAPI_ONLY or key.startswith("x-")

    def _read_keyword(self, key: str, value: Any, place: Place, direction: Direction) -> Any:
        if key in MAPS:
            members = self._properties_of(value, place).items()
            return {name: self._read_schema(one, there, direction) for name, (one, there) in members}
        if key in LISTS or (key == "items" and isinstance(value, list)):
            return [self._read_schema(one, there, direction) for one, there in list_items(value, place)]
        if key in SINGLES:
            return self._read_schema(value, place, direction)
        if key == "type":
            return self._read_type(value, place)
        return check_keyword(key, value, place, strict=self._version == "json")

    def _properties_of(self, value: Any, place: Place) -> dict[str, tuple[Any, Place]]:
        """Return an object's schemas with their places. Documents in several files may keep the object in another."""
        members = {name: (one, place / name) for name, one in expect_object(value, place).items()}
        if not isinstance(value.get("$ref"), str):
            return members
        del members["$ref"]
        target = self._documents.resolve(value["$ref"], place)
        return {**self._properties_of(*self._documents.follow(self._documents.at(target), target)), **members}

    def _read_type(self, value: Any, place: Place) -> Any:
        if isinstance(value, list):
            known = [self._read_type(one, place / index) for index, one in enumerate(value)]
            return ANY if ANY in known or not known else list(dict.fromkeys(known))
        name = value.lower() if isinstance(value, str) and self._version == "json" else value
        if not isinstance(name, str) or name not in self._types:
            raise error_at(place, f"{value!r} is not a type; use one of {', '.join(TYPES)}")
        return self._types[name] or ANY

    def _upgrade_keywords(self, schema: JsonObject, read: JsonObject, place: Place, direction: Direction) -> None:
        """Translate older drafts' tuples and required properties."""
        if isinstance(schema.get("items"), list):
            read["prefixItems"] = read.pop("items")
            if "additionalItems" in schema:
                read["items"] = self._read_schema(schema["additionalItems"], place / "additionalItems", direction)
        members = self._properties_of(schema.get("properties") or {}, place / "properties")
        needed = [name for name, (one, _) in members.items() if isinstance(one, dict) and one.get("required") is True]
        if needed:
            read["required"] = list(dict.fromkeys([*read.get("required", []), *needed]))

    def _drop_hidden(self, schema: JsonObject, read: JsonObject, place: Place, direction: Direction) -> None:
        """Remove the properties that this direction does not carry."""
        if self._version == "json" or not isinstance(read.get("properties"), dict):
            return
        members = self._properties_of(schema["properties"], place / "properties")
        hidden = {name for name, (one, there) in members.items() if self._has_flag(one, there, _HIDDEN[direction])}
        if not hidden:
            return
        read["properties"] = {name: one for name, one in read["properties"].items() if name not in hidden}
        if "required" in read:
            read["required"] = [name for name in read["required"] if name not in hidden]

    def _has_flag(self, schema: Any, place: Place, flag: str) -> bool:
        if isinstance(schema, dict) and schema.get(flag) is True:
            return True
        schema, place = self._documents.follow(schema, place)
        return isinstance(schema, dict) and schema.get(flag) is True

    @staticmethod
    def _upgrade_bounds(read: JsonObject) -> None:
        for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if isinstance(read.get(exclusive), bool):
                excluded = read.pop(exclusive)
                if excluded and bound in read:
                    read[exclusive] = read.pop(bound)

    def _apply_discriminator(self, schema: JsonObject, read: JsonObject, place: Place) -> None:
        discriminator = schema.get("discriminator")
        key = next((one for one in ("oneOf", "anyOf") if one in schema), None)
        if discriminator is None or key is None:
            return
        here = place / "discriminator"
        if isinstance(discriminator, str):
            discriminator = {"propertyName": discriminator}
        name = expect_object(discriminator, here).get("propertyName")
        if not isinstance(name, str):
            raise error_at(here, "must have a propertyName, which is text")
        given = self._read_mapping(member(discriminator, "mapping", {}), here / "mapping")
        for index, branch in enumerate(schema[key]):
            if isinstance(branch, dict) and isinstance(branch.get("$ref"), str):
                target = self._documents.resolve(branch["$ref"], place / key / index)
                names = given.get(target) or [target.tokens[-1] if target.tokens else self._names[target]]
                own = branch_values(self._documents, branch, place / key / index, name)
                fitting = names if own is None else [one for one in names if one in own]
                if fitting:
                    read[key][index] = with_property_values(read[key][index], name, fitting)
                elif target in given:
                    why = f"maps {names[0]!r} to a schema that allows other values for {name!r}: the schema counts"
                    self.notes[f"{here}: {why}"] = None

    def _read_mapping(self, mapping: Json, place: Place) -> dict[Place, list[str]]:
        """Return the names that a discriminator gives to each schema."""
        names: dict[Place, list[str]] = {}
        for name, reference in expect_object(mapping, place).items():
            if not isinstance(reference, str):
                raise error_at(place / name, f"must be text, not {json_type(reference)}")
            bare = re.fullmatch(r"[A-Za-z0-9_.-]+", reference) and not reference.endswith((".yaml", ".yml", ".json"))
            target = f"#/components/schemas/{reference}" if bare else reference
            try:
                names.setdefault(self._documents.resolve(target, place / name), []).append(name)
            except ToolkitError as error:
                self.notes[f"{error}; this name is not used"] = None
        return names
