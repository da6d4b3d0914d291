"""Convert schemas of OpenAPI and older drafts to self-contained JSON Schema 2020-12.

- The target of a `$ref` becomes an entry of the schema's own `$defs`, or is inlined (see `simplify`). Keywords beside a
  `$ref` apply too; in OpenAPI 3.0 only annotations, as its specification says.
- OpenAPI 3.0: `nullable` becomes `type: [..., "null"]` or `anyOf` with null, also in 3.1 documents that still use it;
  `exclusiveMinimum: true` becomes a number; `example` becomes `examples`.
- Older drafts: a list in `items` becomes `prefixItems`; `required: true` of a property becomes the object's `required`.
- A `discriminator` beside `oneOf` or `anyOf` becomes a condition on each branch: the property is required and has one
  of the branch's names. If the branch itself lists other values of the property, those are used. Without branches, the
  children are the schemas that extend this one by `allOf` or are named by the mapping; each applies if the property
  has one of its names (`dependentSchemas`), and only the schema itself applies to other values. A child extends its
  parent without branches and children; otherwise it would contain itself.
- `readOnly` properties are left out of arguments, `writeOnly` ones out of results, regardless of which part of a
  composed schema marks them.
- Documentation (`xml`, `externalDocs`, `x-...`) is dropped; so are `$id` and anchors after they are resolved.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal, NamedTuple

from ...errors import ToolkitError
from ...schemas.subschemas import (
    ANNOTATIONS,
    BOUNDS,
    COUNTS,
    LISTS,
    MAPS,
    SINGLES,
    TURNING,
    TYPES,
    is_well_formed,
    rebuild,
    walk,
)
from ...state import JsonObject
from ...values.places import json_type
from ..spec import unique_name
from .composition import Composition, Direction
from .documents import Documents, Place, error_at, expect_object, list_items
from .simplify import PREFIX, Simplifier, as_object, defs_of, in_place_defs

Version = Literal["3.0", "3.1", "json"]

CORNER = "x-corner"
"""The key of a schema that, during reading, holds the errors of its omitted parts, by message."""

ANY = "any"
"""A type without restrictions, until it is dropped."""

_DROPPED = frozenset(
    {"$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$defs", "definitions"}
    | {"optional", "additionalItems"}
)
_OPENAPI_ONLY = frozenset(
    {"xml", "externalDocs", "discriminator", "nullable", "readOnly", "writeOnly", "example", "$comment"}
)
_BESIDE_3_0 = ANNOTATIONS | {"$ref", "nullable", "example"}
_BRANCHES = frozenset({"oneOf", "anyOf", "discriminator"})
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_SAME_VALUE = _REFERENCES | {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"}
_NOT_READ = frozenset({"dependencies", "extends", "disallow", "divisibleBy"})
"""Keywords of older drafts that would change the meaning of a schema."""
_ANNOTATION_TYPES = {"title": str, "description": str, "examples": list}


class _DefinitionUse(NamedTuple):
    """A definition in use: its place, the properties hidden by outer schemas, whether its branches are dropped."""

    place: Place
    hidden: frozenset[str]
    is_bare: bool


class _Around(NamedTuple):
    """The context of a schema from surrounding schemas of the same value."""

    direction: Direction
    hidden: frozenset[str] = frozenset()
    child: Place | None = None
    """The definition that extends other schemas here, by `allOf`."""


class SchemaReader:
    """Reads the schemas of a document and of referenced documents.

    Args:
        documents: The document with its referenced files.
        version: `json` is plain JSON Schema, from which nothing is dropped; unreadable parts are errors. Of the others
            unreadable parts are left out; `take_corners` returns them.
        types: Further type names with their JSON Schema types; None for any type.
    """

    def __init__(self, documents: Documents, *, version: Version, types: dict[str, str | None] | None = None) -> None:
        self._documents = documents
        self._composition = Composition(documents)
        self._version = version
        self._types: dict[str, str | None] = {**{name: name for name in TYPES}, **(types or {})}
        self._names: dict[_DefinitionUse, str] = {}
        self._uses: dict[str, _DefinitionUse] = {}
        self._definitions: dict[tuple[str, Direction], tuple[Any, list[str]]] = {}
        """Definitions with the names of their references."""
        self._finite: set[tuple[str, Direction]] = set()
        self._read: dict[tuple[Place, Direction], tuple[JsonObject, dict[str, ToolkitError]]] = {}
        self._has_corners = False
        self._corners: dict[str, ToolkitError] = {}
        self.simplify = Simplifier().simplify

    def read(self, schema: Any, place: Place, *, direction: Direction) -> JsonObject:
        """Return a self-contained schema.

        Raises:
            ToolkitError: A part of plain JSON Schema cannot be read; the message names the place.
        """
        at = self._composition.follow(schema["$ref"], place)[1] if _is_reference(schema) else place
        if (at, direction) not in self._read:
            self._read[at, direction] = self._read_whole(schema, place, direction)
        read, corners = self._read[at, direction]
        self._corners |= corners
        return read

    def _read_whole(
        self, schema: Any, place: Place, direction: Direction
    ) -> tuple[JsonObject, dict[str, ToolkitError]]:
        read = as_object(self._read_schema(schema, place, _Around(direction)))
        defs: JsonObject = {}
        waiting = deque(defs_of(read))
        while waiting:
            name = waiting.popleft()
            if name not in defs:
                defs[name], referred = self._definition(name, direction)
                waiting.extend(referred)
        self._check_ends(defs, direction)
        read = {**read, "$defs": defs} if defs else read
        corners = _find_corners(read) if self._has_corners else {}
        return self.simplify(_open_corners(read) if corners else read), corners

    def note(self, error: ToolkitError) -> None:
        """Report an unreadable part of an operation, for `take_corners`."""
        self._corners[str(error)] = error

    def take_corners(self) -> dict[str, ToolkitError]:
        """Return and forget the unreadable parts found since the last call, by message."""
        corners, self._corners = self._corners, {}
        return corners

    def _definition(self, name: str, direction: Direction) -> tuple[Any, list[str]]:
        if (name, direction) not in self._definitions:
            place, hidden, is_bare = self._uses[name]
            schema: Any = self._documents.at(place)
            if is_bare:
                schema = {key: one for key, one in schema.items() if key not in _BRANCHES}
            child = None if _is_reference(schema, beside=_BESIDE_3_0) else place
            body = self._read_schema(schema, place, _Around(direction, hidden, child))
            self._definitions[name, direction] = (body, defs_of(body))
        return self._definitions[name, direction]

    def _check_ends(self, defs: JsonObject, direction: Direction) -> None:
        """Relax each schema whose validation would not terminate; in plain JSON Schema it is an error."""
        fresh = {name: one for name, one in defs.items() if (name, direction) not in self._finite}
        while cycle := _find_cycle(fresh):
            why = "this schema refers to itself without a property or item between"
            fresh[cycle] = defs[cycle] = self._open({}, error_at(self._uses[cycle].place, why))
            self._definitions[cycle, direction] = (defs[cycle], [])
        self._finite.update((name, direction) for name in fresh)

    def _open(self, read: JsonObject, error: ToolkitError) -> JsonObject:
        """Mark a schema as incomplete, with the error. Raises it in plain JSON Schema."""
        if self._version == "json":
            raise error
        self._has_corners = True
        read[CORNER] = {**read.get(CORNER, {}), str(error): error}
        return read

    def _read_schema(self, schema: Any, place: Place, around: _Around) -> Any:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            return self._open({}, error_at(place, f"a schema must be an object, not {json_type(schema)}"))
        if self._version == "json":
            return self._read_keywords(schema, place, around)
        if self._version == "3.0" and "$ref" in schema:
            schema = {key: value for key, value in schema.items() if key in _BESIDE_3_0}
        own = self._composition.hidden(schema, place, around.direction)
        around = around._replace(hidden=around.hidden | own) if own else around
        read = self._read_keywords(schema, place, around)
        if around.hidden:
            _drop_hidden(read, around.hidden)
        if "discriminator" in schema:
            self._apply_discriminator(schema, read, place, around)
        return make_nullable(read) if schema.get("nullable") is True else read

    def _read_keywords(self, schema: JsonObject, place: Place, around: _Around) -> JsonObject:
        read: JsonObject = {}
        for key, value in _upgrade(schema, self._version).items():
            try:
                read["$ref" if key in _REFERENCES else key] = self._read_keyword(key, value, place, around)
            except ToolkitError as error:
                self._open(read, error)
        if read.get("type") == ANY:
            del read["type"]
        _require_members(schema, read)
        return read

    def _read_keyword(self, key: str, value: Any, place: Place, around: _Around) -> Any:
        here = place / key
        if key in MAPS or key in LISTS or key in SINGLES:
            return self._read_inner(key, value, here, around)
        if key == "type":
            return self._read_type(value, here)
        if key in _NOT_READ or (key != "pattern" and not is_well_formed(key, value)):
            raise error_at(here, f"cannot be read: {str(value)[:60]}")
        if key in _REFERENCES:
            return self._refer(self._documents.resolve_schema(key, value, place), around)
        return int(value) if key in COUNTS else value

    def _read_inner(self, key: str, value: Any, place: Place, around: _Around) -> Any:
        inner = around if key == "allOf" else around._replace(child=None)
        if key not in _SAME_VALUE:
            inner = _Around(around.direction)
        if key in SINGLES:
            return self._read_schema(value, place, inner)
        if key in LISTS:
            return [self._read_schema(one, there, inner) for one, there in list_items(value, place)]
        if isinstance(expect_object(value, place).get("$ref"), str):
            raise error_at(place, f"a $ref cannot take the place of {key}")
        return {name: self._read_schema(one, place / name, inner) for name, one in value.items()}

    def _refer(self, target: Place, around: _Around) -> str:
        """Return the `$ref` to the definition at a place, and register the definition."""
        hidden = around.hidden
        if hidden:
            own = self._composition.hidden(self._documents.at(target), target, around.direction)
            hidden = (hidden - own) & self._composition.named(target) if hidden - own else frozenset()
        use = _DefinitionUse(target, hidden, self._composition.is_parent(target, around.child))
        if use not in self._names:
            stem = target.document.replace("\\", "/").rpartition("/")[2].partition(".")[0]
            wanted = re.sub(r"[^A-Za-z0-9_.-]", "_", target.tokens[-1] if target.tokens else stem) or "schema"
            self._names[use] = unique_name(f"{wanted}_base" if use.is_bare else wanted, self._uses)
            self._uses[self._names[use]] = use
        return PREFIX + self._names[use]

    def _read_type(self, value: Any, place: Place) -> Any:
        if isinstance(value, list):
            known = [self._read_type(one, place / index) for index, one in enumerate(value)]
            return ANY if ANY in known or not known else list(dict.fromkeys(known))
        name = value.lower() if isinstance(value, str) and self._version == "json" else value
        if not isinstance(name, str) or name not in self._types:
            raise error_at(place, f"{value!r} is not a type; use one of {', '.join(TYPES)}")
        return self._types[name] or ANY

    def _apply_discriminator(self, schema: JsonObject, read: JsonObject, place: Place, around: _Around) -> None:
        """Restrict each branch, or each child, to its names of the discriminator's property."""
        try:
            given = self._composition.discriminator(schema["discriminator"], place / "discriminator")
        except ToolkitError as error:
            self._open(read, error)
            return
        for wrong in given.errors:
            self._open(read, wrong)
        key = next((one for one in ("oneOf", "anyOf") if isinstance(read.get(one), list)), None)
        if key:
            listed = zip(schema[key], read[key], strict=True)
            targets = {
                index: self._documents.resolve(branch["$ref"], place / key / index)
                for index, (branch, one) in enumerate(listed)
                if isinstance(branch, dict) and isinstance(one, dict) and "$ref" in branch and "$ref" in one
            }
            for index, condition in self._composition.conditions(given, targets).items():
                read[key][index] = {**read[key][index], **condition}
        elif given.name not in around.hidden:
            targets = dict(enumerate(self._composition.children(place, given)))
            conditions = self._composition.conditions(given, targets, parent=place)
            if conditions:
                plain = _Around(around.direction)
                branches = [{"$ref": self._refer(targets[index], plain), **one} for index, one in conditions.items()]
                taken = [
                    value for one in conditions.values() for value in one["properties"][given.name].get("enum", ())
                ]
                others: JsonObject = {"properties": {given.name: {"not": {"enum": taken}}}}
                if given.default not in (None, place):
                    others = {"$ref": self._refer(given.default, plain), **others}
                    read["if"], read["else"] = {"required": [given.name]}, {"$ref": others["$ref"]}
                more = {given.name: {"anyOf": [*branches, others]}}
                read["dependentSchemas"] = {**read.get("dependentSchemas", {}), **more}


def _is_reference(schema: Any, *, beside: Collection[str] = ("$ref",)) -> bool:
    return isinstance(schema, dict) and isinstance(schema.get("$ref"), str) and schema.keys() <= {*beside}


def _find_cycle(defs: JsonObject) -> str | None:
    """Return a definition that refers to itself in place, so that validation would not terminate; None if none does."""
    try:
        TopologicalSorter({name: sorted(in_place_defs(one) & defs.keys()) for name, one in defs.items()}).prepare()
    except CycleError as error:
        return str(error.args[1][0])
    return None


def _require_members(schema: JsonObject, read: JsonObject) -> None:
    """Require the properties with `required: true`, as in older drafts."""
    members = schema["properties"] if isinstance(schema.get("properties"), dict) else {}
    needed = [name for name, one in members.items() if isinstance(one, dict) and one.get("required") is True]
    if needed or "required" in read:
        read["required"] = list(dict.fromkeys([*read.get("required", []), *needed]))


def _drop_hidden(read: JsonObject, hidden: frozenset[str]) -> None:
    if "properties" in read:
        read["properties"] = {name: one for name, one in read["properties"].items() if name not in hidden}
    if "required" in read:
        read["required"] = [name for name in read["required"] if name not in hidden]


def _upgrade(schema: JsonObject, version: Version) -> JsonObject:
    """Return a schema object in the keywords of 2020-12, without documentation."""
    new = {
        key: value
        for key, value in schema.items()
        if key not in _DROPPED and isinstance(value, _ANNOTATION_TYPES.get(key, object))
    }
    if isinstance(new.get("items"), list):
        new["prefixItems"] = new.pop("items")
        new |= {"items": schema["additionalItems"]} if "additionalItems" in schema else {}
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
    """Return the schema, extended to accept null."""
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


def _find_corners(schema: Any) -> dict[str, ToolkitError]:
    """Return the errors of the omitted parts in a schema and its definitions, by message."""
    return {text: error for part in walk(schema) for text, error in part.get(CORNER, {}).items()}


def _open_corners(schema: JsonObject) -> JsonObject:
    """Return a schema without corner marks, relaxed so that an omitted part makes it nowhere stricter.

    A weaker branch of `oneOf` makes the others fail, and a weaker `not` or `if` rejects more.
    """
    defs = schema.get("$defs", {})
    opened = {name for name, one in defs.items() if _find_corners(one)}
    while more := {name for name, one in defs.items() if name not in opened and opened.intersection(defs_of(one))}:
        opened |= more

    def change(one: Any) -> Any:
        if not isinstance(one, dict):
            return one
        new = rebuild({key: value for key, value in one.items() if key != CORNER}, change)
        for key in TURNING & new.keys():
            parts = one[key] if isinstance(one[key], list) else [one[key]]
            if any(opened.intersection(defs_of(part)) or _find_corners(part) for part in parts):
                _weaken(new, key)
        return new

    changed: JsonObject = change(schema)
    return changed


def _weaken(schema: JsonObject, key: str) -> None:
    """Relax a keyword of the schema, so that it accepts more values."""
    value = schema.pop(key)
    for beside in {"if": ("then", "else"), "contains": ("minContains", "maxContains")}.get(key, ()):
        schema.pop(beside, None)
    if key == "oneOf" and "anyOf" in schema:
        schema["allOf"] = [*schema.get("allOf", []), {"anyOf": value}]
    elif key == "oneOf":
        schema["anyOf"] = value
