"""The rules of a schema for a value and its members: through references and compositions.

`$ref`, `$dynamicRef` and `allOf` apply to the same value; `anyOf`, `oneOf`, `if`, `then`, `else` and `dependentSchemas`
may apply (this includes a discriminator's children).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from ..state import JsonObject
from .rules import member_rules
from .subschemas import follow

At = TypeVar("At")
Follow = Callable[[str, At], tuple[Any, At]]
"""Maps a reference and its location to the target and its location; the target is None if unknown."""

REFERENCES = ("$ref", "$dynamicRef")
_CONDITIONS = ("if", "then", "else")
COMPOSED = frozenset({*REFERENCES, *_CONDITIONS, "allOf", "anyOf", "oneOf", "dependentSchemas"})
"""Keywords whose schemas apply to the same value."""


def follow_inside(reference: str, root: Any) -> tuple[Any, Any]:
    """Resolve a reference within a self-contained schema."""
    return follow(root, reference), root


def applying(
    schemas: Sequence[Any], at: At, follow: Follow[At], *, perhaps: Callable[[Any], bool] | bool = True
) -> Iterator[tuple[JsonObject, At]]:
    """Yield schema objects and all schemas that apply to the same value, once each, with their locations.

    Args:
        schemas: Schemas that apply to the value.
        at: Their location, for `follow`.
        follow: Resolves a reference.
        perhaps: Whether to include schemas that only may apply: all, none, or the alternatives selected by a function.
    """
    waiting, seen = [(one, at) for one in reversed(schemas)], set[int]()
    while waiting:
        one, here = waiting.pop()
        if not isinstance(one, dict) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one, here
        if COMPOSED.isdisjoint(one):
            continue
        found = [follow(one[key], here) for key in REFERENCES if isinstance(one.get(key), str)]
        found += [(each, here) for each in _listed(one, "allOf")]
        if perhaps:
            choices = [each for key in ("anyOf", "oneOf") for each in _listed(one, key)]
            if perhaps is True:
                choices += [one[key] for key in _CONDITIONS if key in one]
                depending = one.get("dependentSchemas")
                choices += depending.values() if isinstance(depending, dict) else ()
            found += [(each, here) for each in choices if perhaps is True or perhaps(each)]
        waiting += reversed(found)


def _listed(schema: JsonObject, key: str) -> Sequence[Any]:
    return schema[key] if isinstance(schema.get(key), list) else ()


class Said(NamedTuple):
    """A schema with the root that its references point into."""

    schema: Any
    root: Any

    def parts(self, *, sure: bool = False) -> list[JsonObject]:
        """Return the schema object and those that apply, or unless `sure` may apply, to the same value."""
        if isinstance(self.schema, dict) and COMPOSED.isdisjoint(self.schema):
            return [self.schema]
        return [part for part, _ in applying([self.schema], self.root, follow_inside, perhaps=not sure)]

    def names(self) -> list[str]:
        found = (part["properties"] for part in self.parts() if isinstance(part.get("properties"), dict))
        return list(dict.fromkeys(name for properties in found for name in properties))

    def required(self) -> list[str]:
        """Return the members that every value must have."""
        listed = (part["required"] for part in self.parts(sure=True) if isinstance(part.get("required"), list))
        return list(dict.fromkeys(name for names in listed for name in names))

    def member(self, key: str | int | None) -> Said:
        """Return the rules of a member by name, or of an item by index (None: any item)."""
        found = [rule for part in self.parts() for rule in member_schemas(part, key) if isinstance(rule, dict)]
        return Said(found[0] if len(found) == 1 else {"allOf": found} if found else True, self.root)


def leads_nowhere(part: JsonObject, root: Any) -> bool:
    """Return whether a reference has no target, so that not all rules are known."""
    return any(follow(root, part[key]) is None for key in REFERENCES if isinstance(part.get(key), str))


def member_schemas(part: JsonObject, key: str | int | None) -> Iterator[Any]:
    """Yield one schema object's own schemas for a member or an item."""
    if isinstance(key, str):
        yield from (rule for _, rule in member_rules([key], part))
    else:
        first = part.get("prefixItems", ())
        yield first[key] if key is not None and key < len(first) else part.get("items", True)
