"""Combine the schemas of documents before they are read: hidden properties, parents and their children."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from ...errors import ToolkitError
from ...schemas.reading import applying
from ...schemas.subschemas import ANNOTATIONS
from ...state import JsonObject
from .documents import Documents, Place, error_at

Direction = Literal["request", "response"]

_HIDDEN: dict[Direction, str] = {"request": "readOnly", "response": "writeOnly"}
_IN_PLACE = ("$ref", "allOf", "anyOf", "oneOf")
_DEEPEST_LISTED = 8
_NONE = frozenset[str]()


class Discriminator(NamedTuple):
    """A discriminator: its property, the values by target schema, the target of other values."""

    name: str
    mapped: dict[Place, list[str]]
    default: Place | None
    errors: list[ToolkitError]


class Composition:
    """The combined statements of schemas on one value, across references between documents."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._hidden: dict[tuple[Place, Direction], frozenset[str]] = {}
        self._named: dict[Place, frozenset[str]] = {}
        self._parents: dict[Place, frozenset[Place]] = {}

    def follow(self, reference: str, at: Place) -> tuple[Any, Place]:
        """Return the target of a reference and its place; None if it cannot be resolved."""
        with suppress(ToolkitError):
            target = self._documents.resolve(reference, at)
            return self._documents.at(target), target
        return None, at

    def hidden(self, schema: Any, place: Place, direction: Direction) -> frozenset[str]:
        """Return the properties that are absent in this direction (readOnly, writeOnly), by any part of the schema."""
        if not isinstance(schema, dict) or not ("properties" in schema or any(key in schema for key in _IN_PLACE)):
            return _NONE
        key = place, direction
        if key not in self._hidden:
            self._hidden[key] = _NONE  # ends the recursion of circular references
            self._hidden[key] = frozenset(self._find_hidden(schema, place, direction))
        return self._hidden[key]

    def _find_hidden(self, schema: JsonObject, place: Place, direction: Direction) -> Iterator[str]:
        members = schema.get("properties")
        for name, one in members.items() if isinstance(members, dict) else ():
            if self._is_hidden(one, place, _HIDDEN[direction]):
                yield name
        if isinstance(schema.get("$ref"), str):
            yield from self.hidden(*self.follow(schema["$ref"], place), direction)
        for key in _IN_PLACE[1:]:
            listed = schema[key] if isinstance(schema.get(key), list) else ()
            parts = [
                self.hidden(one, place / key / index, direction)
                for index, one in enumerate(listed)
                if not isinstance(one, dict) or one.get("type") != "null"
            ]
            yield from (_NONE.union if key == "allOf" else frozenset.intersection)(*parts) if parts else _NONE

    def _is_hidden(self, schema: Any, place: Place, key: str) -> bool:
        if not isinstance(schema, dict) or schema.get(key) is True or not ("$ref" in schema or "allOf" in schema):
            return isinstance(schema, dict) and schema.get(key) is True
        return any(part.get(key) is True for part, _ in applying([schema], place, self.follow, perhaps=False))

    def named(self, place: Place) -> frozenset[str]:
        """Return the properties that the schema at a place names or requires."""
        if place not in self._named:
            parts = [part for part, _ in applying([self._documents.at(place)], place, self.follow)]
            listed = [part.get(key) for part in parts for key in ("properties", "required")]
            self._named[place] = frozenset(str(name) for one in listed if isinstance(one, dict | list) for name in one)
        return self._named[place]

    def parents(self, place: Place) -> frozenset[Place]:
        """Return the schemas that the one at a place extends by `allOf` or `$ref`, transitively."""
        if place not in self._parents:
            self._parents[place] = frozenset()
            found = [at for _, at in applying([self._documents.at(place)], place, self.follow, perhaps=False)]
            self._parents[place] = frozenset(found) - {place}
        return self._parents[place]

    def is_parent(self, target: Place, child: Place | None) -> bool:
        """Return whether `target` has branches that lead back to a child which extends it."""
        parent = self._documents.at(target)
        if child is None or not isinstance(parent, dict):
            return False
        branches = list(self._branches(parent, target))
        if not branches:
            return "discriminator" in parent
        return any(child == one or child in self.parents(one) for one in branches)

    def _branches(self, parent: JsonObject, place: Place) -> Iterator[Place]:
        for key in ("oneOf", "anyOf"):
            for one in parent[key] if isinstance(parent.get(key), list) else ():
                if isinstance(one, dict) and isinstance(one.get("$ref"), str):
                    target, at = self.follow(one["$ref"], place)
                    yield from [] if target is None else [at]

    def children(self, parent: Place, given: Discriminator) -> list[Place]:
        """Return the schemas under `components` that extend the parent, and those of the discriminator's mapping."""
        found = dict[Place, None]()
        for document in dict.fromkeys((self._documents.root.document, parent.document)):
            place = Place(document, ("components", "schemas"))
            schemas = self._documents.at(place)
            for name, one in schemas.items() if isinstance(schemas, dict) else ():
                is_alias = isinstance(one, dict) and "$ref" in one and one.keys() <= ANNOTATIONS | {"$ref"}
                if not is_alias and parent in self.parents(place / name):
                    found[place / name] = None
        return [one for one in dict.fromkeys([*found, *given.mapped]) if one != parent]

    def discriminator(self, value: Any, place: Place) -> Discriminator:
        """Return a discriminator's property and mapping. Raises ToolkitError if it names no property."""
        name = value.get("propertyName") if isinstance(value, dict) else None
        if not isinstance(name, str):
            raise error_at(place, "must have a propertyName, which is text")
        mapped, errors, default = dict[Place, list[str]](), list[ToolkitError](), None
        mapping = value["mapping"] if isinstance(value.get("mapping"), dict) else {}
        for key, reference in [*mapping.items(), (None, value.get("defaultMapping"))]:
            if key is not None or reference is not None:
                try:
                    target = self._find_named(str(reference), place / "mapping" / key if key else place)
                except ToolkitError as error:
                    errors.append(error)
                    continue
                if key is None:
                    default = target
                else:
                    mapped.setdefault(target, []).append(key)
        return Discriminator(name, mapped, default, errors)

    def _find_named(self, reference: str, place: Place) -> Place:
        is_name = re.fullmatch(r"[\w.-]+", reference) and not reference.endswith((".yaml", ".yml", ".json"))
        return self._documents.resolve(f"#/components/schemas/{reference}" if is_name else reference, place)

    def conditions(
        self, given: Discriminator, targets: dict[int, Place], parent: Place | None = None
    ) -> dict[int, JsonObject]:
        """Return the condition of each target's branch, by number; unknown conditions are left out."""
        names: dict[int, list[Any]] = {}
        for number, target in targets.items():
            own = self._listed_values(self._documents.at(target), target, given.name, parent)
            known = given.mapped.get(target) or [*target.tokens[-1:]]
            fitting = known if own is None else [one for one in known if one in own]
            if fitting or (parent and own):
                names[number] = fitting or own or []
        others = [one for number in names if targets[number] != given.default for one in names[number]]
        found: dict[int, JsonObject] = {}
        for number, listed in names.items():
            found[number] = {"properties": {given.name: {"enum": listed}}, "required": [given.name]}
            if targets[number] == given.default and parent is None:
                found[number] = {"properties": {given.name: {"not": {"enum": others}}}} if others else {}
        return found

    def _listed_values(
        self, schema: Any, place: Place, name: str, parent: Place | None, depth: int = _DEEPEST_LISTED
    ) -> list[Any] | None:
        if not isinstance(schema, dict) or not depth:
            return None
        members = schema.get("properties")
        for part, _ in applying([members.get(name) if isinstance(members, dict) else None], place, self.follow):
            if "const" in part or isinstance(part.get("enum"), list):
                return part["enum"] if "enum" in part else [part["const"]]
        parts = [("$ref", [schema])] if isinstance(schema.get("$ref"), str) else []
        parts += [(key, schema[key]) for key in _IN_PLACE[1:] if isinstance(schema.get(key), list)]
        for key, listed in parts:
            inner = [self.follow(one["$ref"], place) if key == "$ref" else (one, place) for one in listed]
            found = [
                self._listed_values(one, at, name, parent, depth - 1)
                for one, at in inner
                if key != "$ref" or at != parent
            ]
            known = [one for one in found if one is not None]
            if known and (key in ("$ref", "allOf") or len(known) == len(found)):
                return known[0] if key in ("$ref", "allOf") else [value for values in known for value in values]
        return None
