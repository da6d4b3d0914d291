"""What a schema has against a value that is known in part only: what is surely wrong, whatever the rest will be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from jsonschema import ValidationError

from ..state import Json, JsonObject
from .findings import Finding, branches, findings
from .rules import UNFINISHED, check, rules_of

Tokens: TypeAlias = tuple[str | int, ...]

_CONDITIONAL = frozenset({"then", "else"})
_SIZES = frozenset({"minItems", "maxItems", "minProperties", "maxProperties"})


@dataclass(frozen=True, slots=True)
class Partial:
    """A value that is known in part.

    Args:
        value: The value; null stands where nothing is known, an empty text, list or object where only its kind is.
        unknown: Where nothing is known.
        open: Where only the kind is known.
    """

    value: Json
    unknown: frozenset[Tokens] = frozenset()
    open: frozenset[Tokens] = frozenset()

    def decides(self, error: ValidationError) -> bool:
        """True if the error stays, whatever the unknown parts will be. In doubt it may go."""
        hazy = self.unknown | self.open
        path = tuple(error.absolute_path)
        if not hazy:
            return True
        if not _CONDITIONAL.isdisjoint(error.absolute_schema_path):
            return False  # the condition may hang on an unknown part
        match error.validator:
            case "type":
                return path not in self.unknown
            case "required" | "dependentRequired":
                return path[:-1] not in hazy
            case "additionalProperties":
                return True
            case size if size in _SIZES:
                return path not in hazy
        return not any(place[: len(path)] == path for place in hazy)


def sure_findings(schema: JsonObject, partial: Partial) -> list[Finding]:
    """What is wrong with a value, however its unknown parts turn out; empty if it may fit.

    Args:
        schema: JSON Schema 2020-12; compiled once and cached, so never change it in place.
        partial: What is known of the value.
    """
    errors = (error for error in check(rules_of(schema), partial.value) if error.validator != UNFINISHED)
    return [finding for error in errors for finding in _sure(error, partial)]


def _sure(error: ValidationError, partial: Partial) -> Iterator[Finding]:
    """The sure findings of an error; of alternatives, those of the one with the fewest, if none can fit."""
    if error.validator in ("anyOf", "oneOf") and error.context:
        sure = [[finding for inner in branch for finding in _sure(inner, partial)] for branch in branches(error)]
        yield from min(sure, key=len) if all(sure) else ()
    elif partial.decides(error):
        yield from findings(error)
