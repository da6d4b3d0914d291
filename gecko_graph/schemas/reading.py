"""What a schema says of a value and of its members: through references and all that is composed in place.

Schemas that hold of the same value are `$ref`, `$dynamicRef` and `allOf`; those that may hold are `anyOf`, `oneOf`,
`if`, `then`, `else` and `dependentSchemas`, which is also how a discriminator's children are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from ..state import JsonObject
from .rules import member_rules
from .subschemas import follow

At = TypeVar("At")
Follow = Callable[[str, At], tuple[Any, At]]
"""A function from a reference, and where it is, to its target, and where that is. None is a target that is unknown."""

REFERENCES = ("$ref", "$dynamicRef")
_CONDITIONS = ("if", "then", "else")
COMPOSED = frozenset({*REFERENCES, *_CONDITIONS, "allOf", "anyOf", "oneOf", "dependentSchemas"})
"""Keywords whose schemas apply to the very value that the schema applies to."""


def follow_inside(reference: str, root: Any) -> tuple[Any, Any]:
    """Resolve a reference in a schema that holds all that it refers to."""
    return follow(root, reference), root


def applying(
    schemas: Sequence[Any], at: At, follow: Follow[At], *, perhaps: Callable[[Any], bool] | bool = True
) -> Iterator[tuple[JsonObject, At]]:
    """Yield schema objects, and those that apply to the same value, each once, with where it is.

    Args:
        schemas: Schemas that apply to the value.
        at: Where they are, for `follow`.
        follow: What resolves a reference.
        perhaps: Whether those count that need not hold: all, none, or the alternatives of which this is true.
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
        """Return the schema object and those that apply, or may apply, to the same value; only the `sure` ones."""
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
        """Return the rules of a member by its name, or of an item by its index; of any item for None."""
        found = [rule for part in self.parts() for rule in member_schemas(part, key) if isinstance(rule, dict)]
        return Said(found[0] if len(found) == 1 else {"allOf": found} if found else True, self.root)


def leads_nowhere(part: JsonObject, root: Any) -> bool:
    """Return whether a schema object refers to what is not there, so that not all that applies is known."""
    return any(follow(root, part[key]) is None for key in REFERENCES if isinstance(part.get(key), str))


def member_schemas(part: JsonObject, key: str | int | None) -> Iterator[Any]:
    """Yield the schemas that one schema object itself has for a member, or for an item; none for any value."""
    if isinstance(key, str):
        yield from (rule for _, rule in member_rules([key], part))
    else:
        first = part.get("prefixItems", ())
        yield first[key] if key is not None and key < len(first) else part.get("items", True)
