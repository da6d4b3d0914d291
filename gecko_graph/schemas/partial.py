"""Validation of a value that is known only in part: the errors that stay, whatever the rest will be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from jsonschema import ValidationError

from ..state import Json, JsonObject
from .findings import Finding, findings, group_by_branch
from .rules import UNFINISHED, check, rules_of

Tokens: TypeAlias = tuple[str | int, ...]

_CONDITIONAL = frozenset({"then", "else"})
_SIZES = frozenset({"minItems", "maxItems", "minProperties", "maxProperties"})


@dataclass(frozen=True, slots=True)
class Partial:
    """A value that is known in part.

    Args:
        value: The value; null where nothing is known, an empty text, list or object where only the kind is.
        unknown: Where nothing is known.
        open: Where only the kind is known.
    """

    value: Json
    unknown: frozenset[Tokens] = frozenset()
    open: frozenset[Tokens] = frozenset()

    def decides(self, error: ValidationError) -> bool:
        """Return whether the error stays, whatever the unknown parts will be; False in doubt."""
        undetermined = self.unknown | self.open
        path = tuple(error.absolute_path)
        if not undetermined:
            return True
        if not _CONDITIONAL.isdisjoint(error.absolute_schema_path):
            return False  # the condition may depend on an unknown part
        match error.validator:
            case "type":
                return path not in self.unknown
            case "required" | "dependentRequired":
                return path[:-1] not in undetermined
            case "additionalProperties":
                return True
            case size if size in _SIZES:
                return path not in undetermined
        return not any(place[: len(path)] == path for place in undetermined)


def sure_findings(schema: JsonObject, partial: Partial) -> list[Finding]:
    """Validate a partly known value and return the errors that its unknown parts cannot remove.

    The schema, JSON Schema 2020-12, is compiled once and cached: never change it in place.
    """
    errors = (error for error in check(rules_of(schema), partial.value) if error.validator != UNFINISHED)
    return [finding for error in errors for finding in _certain(error, partial)]


def _certain(error: ValidationError, partial: Partial) -> Iterator[Finding]:
    """Yield the certain findings of an error; of alternatives, those of the one with the fewest, if none can fit."""
    if error.validator in ("anyOf", "oneOf") and error.context:
        certain = [
            [finding for inner in branch for finding in _certain(inner, partial)] for branch in group_by_branch(error)
        ]
        yield from min(certain, key=len) if all(certain) else ()
    elif partial.decides(error):
        yield from findings(error)
