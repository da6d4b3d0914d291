"""Shapes of an API's things by schema: their fields, lists of them, and the objects that wrap them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any

from ..schemas.reading import Said
from ..state import JsonObject

WRAPPERS = ("data", "result", "results", "response", "items", "content", "_embedded", "payload", "value", "values")
"""Names of members that contain a response's main object."""

IDENTIFYING = frozenset({"string", "integer", "number"})
_MOST_BESIDE = 14
_DEEPEST = 3


def plain(name: str) -> str:
    """Return a name in lower case without separators: `petId`, `pet_id` and `PetID` are the same."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def singular(word: str) -> str:
    """Return the singular of an English plural; any other word unchanged."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"), ("ss", "ss")):
        if word.lower().endswith(ending):
            return word[: -len(ending)] + instead
    return word[:-1] if word.lower().endswith("s") and not word.lower().endswith(("us", "is")) else word


class SchemaShape:
    """The shape of a value by its schema, read once."""

    def __init__(self, schema: Any, root: Any) -> None:
        self.said = Said(schema, root)

    @classmethod
    def of(cls, schema: JsonObject | None) -> SchemaShape:
        return cls({} if schema is None else schema, schema)

    @cached_property
    def fields(self) -> Mapping[str, SchemaShape]:
        return {name: SchemaShape(self.said.member(name).schema, self.said.root) for name in self.said.names()}

    @cached_property
    def required(self) -> frozenset[str]:
        return frozenset(self.said.required())

    @cached_property
    def parts(self) -> list[JsonObject]:
        return self.said.parts()

    @cached_property
    def types(self) -> frozenset[str]:
        """The types other than null; derived from `properties` or `items` if the schema names none."""
        named = [part.get("type") for part in self.parts]
        found = {each for one in named for each in (one if isinstance(one, list) else [one]) if isinstance(each, str)}
        for keyword, kind in (("properties", "object"), ("items", "array")):
            if not found - {"null"} and any(keyword in part for part in self.parts):
                found.add(kind)
        return frozenset(found - {"null"})

    @cached_property
    def is_nullable(self) -> bool:
        """Whether null is allowed."""
        named = (part.get("type") for part in self.parts)
        return any(one == "null" or (isinstance(one, list) and "null" in one) for one in named)

    def first(self, keyword: str) -> Any:
        return next((part[keyword] for part in self.parts if keyword in part), None)

    @property
    def item(self) -> SchemaShape:
        return SchemaShape(self.said.member(None).schema, self.said.root)

    @cached_property
    def listed(self) -> tuple[tuple[str, ...], SchemaShape] | None:
        """The path and item shape of the only list of things in it; None if it is no wrapper of a list."""
        return self._listed(0)

    def _listed(self, depth: int) -> tuple[tuple[str, ...], SchemaShape] | None:
        if "array" in self.types:
            return (), self.item
        if depth > _DEEPEST or len(self.fields) > _MOST_BESIDE:
            return None
        arrays = {name: each.item for name, each in self.fields.items() if each.types == {"array"}}
        lists = {name: item for name, item in arrays.items() if item.fields}
        named = [name for name in WRAPPERS if name in arrays]
        if len(lists) == 1 or len(arrays) == 1 == len(named) or (named and named[0] in lists):
            name = named[0] if named and named[0] in (lists or arrays) else next(iter(lists))
            return (name,), arrays[name]
        for name in WRAPPERS if not lists else ():
            if name in self.fields and (inner := self.fields[name]._listed(depth + 1)):
                return (name, *inner[0]), inner[1]
        return None

    @cached_property
    def mapped(self) -> SchemaShape | None:
        """The shape of the values of an object that maps ids to things; None for any other object."""
        more = self.first("additionalProperties")
        held = SchemaShape(more, self.said.root) if isinstance(more, dict) and not self.fields else None
        return held if held is not None and len(held.fields) > 1 else None

    @property
    def whole(self) -> JsonObject:
        """The schema with the definitions that it refers to."""
        return {**self.said.schema, "$defs": (self.said.root or {}).get("$defs", {})}

    @property
    def is_open(self) -> bool:
        """Whether it is an object that allows any further members."""
        return self.types == {"object"} and self.first("additionalProperties") in (True, {})

    def with_text(self, name: str) -> SchemaShape:
        more = {"properties": {name: {"type": "string"}}}
        return SchemaShape({"type": "object", "allOf": [self.said.schema, more]}, self.said.root)

    def holds(self, names: Collection[str]) -> tuple[str, ...] | None:
        """Return the path of an object with these fields inside it (() for itself); None if there is none."""
        return self._holds(set(names), 0)

    def _holds(self, names: set[str], depth: int) -> tuple[str, ...] | None:
        if self.fields and _is_alike(names, self.fields.keys()):
            return ()
        for name, each in self.fields.items() if depth < _DEEPEST - 1 else ():
            if each.fields and "array" not in each.types and (name in WRAPPERS or len(self.fields) <= _MOST_BESIDE):
                inner = each._holds(names, depth + 1)
                if inner is not None:
                    return (name, *inner)
        bare = (name for name, each in self.fields.items() if name in WRAPPERS and each.is_open and not each.fields)
        return next(((name,) for name in bare), None)

    def may_be(self, other: SchemaShape) -> bool:
        """Return whether some value may have both shapes, judged by types."""
        numbers = {"integer", "number"}
        mine, theirs = ({*one.types} | (numbers if numbers & one.types else set()) for one in (self, other))
        is_alike = not mine or not theirs or bool(mine & theirs)
        return is_alike and (mine != {"array"} or theirs != {"array"} or self.item.may_be(other.item))

    def at(self, path: Iterable[str]) -> SchemaShape:
        found = self
        for name in path:
            found = found.fields[name]
        return found


def matching(sent: Collection[str], fields: Collection[str]) -> dict[str, str]:
    """Return the field that each sent name means: `FriendlyName` is `friendly_name`, `new_name` is `name`."""
    by = {plain(name): name for name in fields}
    found = {name: name if name in fields else by.get(plain(name)) for name in sent}
    news = {name: by.get(plain(name[3:])) for name in sent if name.lower().startswith("new")}
    return {name: field for name in sent if (field := found[name] or news.get(name))}


def _is_alike(names: set[str], fields: Collection[str]) -> bool:
    """Return whether two objects share half of the smaller one's fields, and at least two if it has three or more."""
    common, fewest = len(names & set(fields)), min(len(names), len(fields))
    return common * 2 >= fewest > 0 and common > 0 and (common > 1 or fewest < 3)
