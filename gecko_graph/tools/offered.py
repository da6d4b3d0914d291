"""What a tool's schema says of its arguments' values: which it names itself, and which are free text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from ..schemas.subschemas import walk
from ..state import Json, JsonObject
from ..values.leaves import Place
from ..values.spellings import canonical, forms_of

PROSE_WORDS = 4
"""A text of so many words is prose."""

_DEFAULT = re.compile(r"(?i)default[^.;]{0,40}")
_PROSE = re.compile(
    r"(?i)text|messag|body|content|note|comment|subject|title|descri|query|question|reason|summar|feedback|caption|word"
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_SMALL = {
    *("an", "and", "at", "be", "by", "for", "from", "if", "in", "is", "it", "its", "no", "not", "of", "off", "on"),
    *("or", "the", "this", "that", "to", "true", "false", "was", "with", "will", "boolean"),
}


class Field(NamedTuple):
    """The name of an argument, its type with its description, its default, and whether it must be given without one."""

    name: str
    about: str
    default: Json
    must: bool

    def is_prose(self, text: str) -> bool:
        """Return whether a text is free: its words are the planner's own."""
        return len(_WORD.findall(text)) >= PROSE_WORDS or bool(_PROSE.search(self.name))

    @property
    def words(self) -> list[str]:
        """The words of name and description that say something."""
        return content_words(f"{self.name} {self.about}".replace("_", " "))


class Offered:
    """The arguments' schema of one tool."""

    def __init__(self, parameters: JsonObject) -> None:
        self._parameters = parameters

    def field(self, place: Place) -> Field:
        """Return what is said of an argument, as far as properties and items lead to it."""
        rule, must = self._parameters, False
        for token in place:
            must = token in (rule.get("required") or ())
            inner = rule.get("items") if isinstance(token, int) else (rule.get("properties") or {}).get(token)
            rule = inner if isinstance(inner, dict) else {}
        name = next((each for each in reversed(place) if isinstance(each, str)), "")
        return Field(
            name,
            f"{rule.get('type', '')} {rule.get('description', '')}",
            rule.get("default"),
            must and "default" not in rule,
        )

    def holds(self, value: Json) -> bool:
        """Return whether a value is named: in an enum, a const, a default, also one that is described."""
        return (value.casefold() if isinstance(value, str) else canonical(value)) in self._values

    @cached_property
    def _values(self) -> frozenset[str]:
        values = set[str]()
        for schema in walk(self._parameters):
            enum, text, names = schema.get("enum"), schema.get("description"), schema.get("properties", ())
            for value in (
                *(enum if isinstance(enum, list) else ()),
                schema.get("const"),
                schema.get("default"),
                *names,
            ):
                values.add(value.casefold() if isinstance(value, str) else canonical(str(value)))
            defaults: Iterable[str] = _DEFAULT.findall(text) if isinstance(text, str) else ()
            values.update(form for default in defaults for form in forms_of(default))
        return frozenset(values)


def content_words(text: str) -> list[str]:
    """Return the words of a text without those that stand everywhere."""
    return [word for word in map(str.casefold, _WORD.findall(text)) if word not in _SMALL]
