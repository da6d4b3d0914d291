"""Shapes of an API's things by its schemas: their fields, lists of them, and larger objects around them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any

from ..schemas.reading import Said
from ..state import JsonObject

WRAPPERS = ("data", "result", "results", "response", "items", "content", "_embedded", "payload", "value", "values")
"""Names of members that hold a response's main object."""

IDENTIFYING = frozenset({"string", "integer", "number"})
_MOST_BESIDE = 14
_DEEPEST = 3


def plain(name: str) -> str:
    """Return a name without case and separators: `petId`, `pet_id` and `PetID` are one."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def singular(word: str) -> str:
    """Return the singular of an English plural; any other word as it is."""
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
        """Return that of a whole schema, of anything for None."""
        return cls({} if schema is None else schema, schema)

    @cached_property
    def fields(self) -> Mapping[str, SchemaShape]:
        """The named members."""
        return {name: SchemaShape(self.said.member(name).schema, self.said.root) for name in self.said.names()}

    @cached_property
    def required(self) -> frozenset[str]:
        """The members that every value has."""
        return frozenset(self.said.required())

    @cached_property
    def parts(self) -> list[JsonObject]:
        return self.said.parts()

    @cached_property
    def types(self) -> frozenset[str]:
        """The types that it may have, null apart; those of its fields or items if it names none."""
        named = [part.get("type") for part in self.parts]
        found = {each for one in named for each in (one if isinstance(one, list) else [one]) if isinstance(each, str)}
        for keyword, kind in (("properties", "object"), ("items", "array")):
            if not found - {"null"} and any(keyword in part for part in self.parts):
                found.add(kind)
        return frozenset(found - {"null"})

    @cached_property
    def is_nullable(self) -> bool:
        """Whether null is among its values."""
        named = (part.get("type") for part in self.parts)
        return any(one == "null" or (isinstance(one, list) and "null" in one) for one in named)

    def first(self, keyword: str) -> Any:
        """Return the first part's value of a keyword; None if none has it."""
        return next((part[keyword] for part in self.parts if keyword in part), None)

    @property
    def item(self) -> SchemaShape:
        return SchemaShape(self.said.member(None).schema, self.said.root)

    @cached_property
    def listed(self) -> tuple[tuple[str, ...], SchemaShape] | None:
        """Where it holds its one list of things, and what they are; None where it is not about a list."""
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
        """What the members of an object are that holds things by their ids; None if it is no such object."""
        more = self.first("additionalProperties")
        held = SchemaShape(more, self.said.root) if isinstance(more, dict) and not self.fields else None
        return held if held is not None and len(held.fields) > 1 else None

    @property
    def whole(self) -> JsonObject:
        """The schema with the definitions that it refers to."""
        return {**self.said.schema, "$defs": (self.said.root or {}).get("$defs", {})}

    @property
    def is_open(self) -> bool:
        """Whether it is an object that may have any other members, as its schema says."""
        return self.types == {"object"} and self.first("additionalProperties") in (True, {})

    def with_text(self, name: str) -> SchemaShape:
        """Return the same with a text among its named members."""
        more = {"properties": {name: {"type": "string"}}}
        return SchemaShape({"type": "object", "allOf": [self.said.schema, more]}, self.said.root)

    def holds(self, names: Collection[str]) -> tuple[str, ...] | None:
        """Return where it holds an object with these fields: (), or the way to a member; None where nowhere."""
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
        """Return whether some values may be both, by their types."""
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
    """Return which field each sent name means: `FriendlyName` means `friendly_name`, `new_name` means `name`."""
    by = {plain(name): name for name in fields}
    found = {name: name if name in fields else by.get(plain(name)) for name in sent}
    news = {name: by.get(plain(name[3:])) for name in sent if name.lower().startswith("new")}
    return {name: field for name in sent if (field := found[name] or news.get(name))}


def _is_alike(names: set[str], fields: Collection[str]) -> bool:
    """Return whether two objects share half of the fields of the smaller one, and more than one if it has three."""
    common, fewest = len(names & set(fields)), min(len(names), len(fields))
    return common * 2 >= fewest > 0 and common > 0 and (common > 1 or fewest < 3)
