"""Describe tools in prompts, read their argument schemas, and complete missing parts by a model.

The model is asked for result schema and effect (paper, sections 3.5 and A.7).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from math import log
from typing import NamedTuple, TypeAlias

import pydantic
from jsonschema import Draft202012Validator, FormatChecker, SchemaError

from ..errors import ToolkitError
from ..models import roles
from ..models.ask import Ask, QuestionId, Reply
from ..models.focus import split_term
from ..models.formatting import cut, one_line
from ..models.view import view
from ..schemas.made_up import Impossible, make_value
from ..schemas.reading import Said
from ..schemas.subschemas import ANNOTATIONS, walk
from ..state import Json, JsonObject
from ..values.finding import canonical, forms_of
from ..values.identity import cache_by_identity
from ..values.places import Place
from .spec import ToolSpec
from .toolkit import Toolkit

TOOLS_CHARS = 2_400
"""Characters of the prompt's section on tools."""

ROOM_FOR_OTHERS = 900
"""Characters for tools that were neither called nor fit; if they need more, only their names are listed."""

CALLED_CHARS = 240
PARAMETER_CHARS = 60
FITTING_CHARS = 120
MOST_FITTING = 6

_MOST_PIECES = 6
_READ = 1_000
"""Characters of a description that are searched for words."""
_PIECE = re.compile(r"(?<=[.:!?])\s+")


def pick_tools(tools: Iterable[ToolSpec], names: Collection[str] | None) -> list[ToolSpec]:
    """Return the tools with these names, in the toolkit's order; all of them if `names` is None."""
    chosen = None if names is None else {*names}
    return [tool for tool in tools if chosen is None or tool.name in chosen]


def find_fitting(tools: Iterable[ToolSpec], focus: Collection[str]) -> set[str]:
    """Return the names of the few tools that fit the focus words best, by their names and descriptions.

    A word weighs by its inverse document frequency. Tools with less than half of the best weight are left out.
    """
    words = {tool.name: {*split_term(tool.name), *split_term(tool.description[:_READ])} for tool in tools}
    count = Counter(word for each in words.values() for word in each)
    weights = {word: log((1 + len(words)) / count[word]) for word in {*focus} & count.keys()}
    fits = {name: sum(weights.get(word, 0.0) for word in each) for name, each in words.items()}
    best = sorted(fits, key=lambda name: -fits[name])[:MOST_FITTING]
    return {name for name in best if fits[name] > 0 and 2 * fits[name] >= fits[best[0]]}


def format_tools(tools: Iterable[ToolSpec], *, called: Collection[str] = (), focus: Sequence[str] = ()) -> str:
    """Return one line per tool: called ones first, with parameters, then those that fit the focus words.

    Sentences at the beginning of several descriptions are left out, since they distinguish no tool. `focus` are
    lower-case words, see `view.focus_words`.
    """
    listed = list(tools)
    brief = strip_boilerplate([tool.about for tool in listed])
    briefly = {tool.name: text for tool, text in zip(listed, brief, strict=True)}
    first = [tool for tool in listed if tool.name in called]
    others = [tool.name for tool in listed if tool.name not in called]
    fitting = find_fitting(listed, focus)
    lines = [f"{tool.name}{format_parameters(tool)}: {cut(briefly[tool.name], budget=CALLED_CHARS)}" for tool in first]
    short = {name: f"{name}: {cut(briefly[name], budget=FITTING_CHARS)}".rstrip(": ") for name in others}
    all_fit = sum(map(len, short.values())) <= ROOM_FOR_OTHERS
    lines += [short[name] for name in others if name in fitting or all_fit]
    left = [] if all_fit else [name for name in others if name not in fitting]
    return cut("\n".join(lines + ([f"other tools: {', '.join(left)}"] if left else [])), budget=TOOLS_CHARS)


def format_parameters(tool: ToolSpec) -> str:
    """Return the parameters of a tool with descriptions: `(path: where to look, depth)`."""
    described = []
    for name, schema in tool.parameters.get("properties", {}).items():
        about = schema.get("description", "") if isinstance(schema, dict) else ""
        described.append(f"{name}: {cut(one_line(about), budget=PARAMETER_CHARS)}" if about else name)
    return f"({', '.join(described)})"


def member_names(schema: JsonObject | None) -> list[str]:
    """Return the property names of a schema's object, or of the objects in its list, also behind references."""
    said = Said(schema, schema)
    for _ in range(8):  # lists that lead to an object
        if names := said.names():
            return names
        said = said.member(None)
    return []


def strip_boilerplate(descriptions: Sequence[str]) -> list[str]:
    """Return each description as one line, without leading sentences that three or more descriptions share."""
    pieces = [_PIECE.split(one_line(text), maxsplit=_MOST_PIECES) for text in descriptions]
    begun = Counter(tuple(each[:n]) for each in pieces for n in range(1, len(each)))
    shared = [max((n for n in range(1, len(each)) if begun[tuple(each[:n])] > 2), default=0) for each in pieces]
    return [" ".join(each[n:]) for each, n in zip(pieces, shared, strict=True)]


PROSE_WORDS = 4
"""A text with this many words is prose."""

_DEFAULT = re.compile(r"(?i)default[^.;]{0,40}")
_PROSE = re.compile(
    r"(?i)text|messag|body|content|note|comment|subject|title|descri|query|question|reason|summar|feedback|caption|word"
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_SMALL = {
    *("an", "and", "at", "be", "by", "for", "from", "if", "in", "is", "it", "its", "no", "not", "of", "off", "on"),
    *("or", "the", "this", "that", "to", "true", "false", "was", "with", "will", "boolean"),
}


class ParameterField(NamedTuple):
    """An argument: name, type and description, default, and whether it is required and has no default."""

    name: str
    about: str
    default: Json
    must: bool

    def is_prose(self, text: str) -> bool:
        """Return whether a text is free prose, which the planner writes itself."""
        return len(_WORD.findall(text)) >= PROSE_WORDS or bool(_PROSE.search(self.name))

    @property
    def words(self) -> list[str]:
        """Name and description as content words."""
        return content_words(f"{self.name} {self.about}".replace("_", " "))


class Offered:
    """The argument schema of one tool."""

    def __init__(self, parameters: JsonObject) -> None:
        self._parameters = parameters
        self.field = lru_cache(maxsize=1_000)(self._read_field)
        """Returns the field at a place; cached, since the same places are asked for often."""

    def _read_field(self, place: Place) -> ParameterField:
        said, must = Said(self._parameters, self._parameters), False
        for token in place:
            must, said = token in said.required(), said.member(token)
        name = next((each for each in reversed(place) if isinstance(each, str)), "")
        parts = said.parts()
        about = " ".join(str(part[key]) for part in parts for key in ("type", "description") if key in part)
        default = next((part for part in parts if "default" in part), {})
        return ParameterField(name, about, default.get("default"), must and not default)

    def holds(self, value: Json) -> bool:
        """Return whether a schema names a value: in an enum, a const, a default, or a default in a description."""
        return (value.casefold() if isinstance(value, str) else canonical(value)) in self._values

    @cached_property
    def _values(self) -> frozenset[str]:
        values = set[str]()
        for schema in walk(self._parameters):
            enum, text, names = schema.get("enum"), schema.get("description"), schema.get("properties", ())
            listed = enum if isinstance(enum, list) else ()
            for value in (*listed, *(schema[key] for key in ("const", "default") if key in schema), *names):
                values.add(value.casefold() if isinstance(value, str) else canonical(str(value)))
            defaults: Iterable[str] = (
                _DEFAULT.findall(text) if isinstance(text, str) and "default" in text.lower() else ()
            )
            values.update(form for default in defaults for form in forms_of(default))
        return frozenset(values)


@cache_by_identity(4_096)
def offered_by(parameters: JsonObject) -> Offered:
    """Return the argument schema as `Offered`, cached; the schema must not be mutated."""
    return Offered(parameters)


def content_words(text: str) -> list[str]:
    return [word for word in map(str.casefold, _WORD.findall(text)) if word not in _SMALL]


Conversion: TypeAlias = Generator[list[Ask], Sequence[Reply], tuple[Toolkit, list[str]]]
"""Yields all questions at once, receives their replies, returns the completed toolkit and the failures."""

TOOL_CHARS = 16_000


class CheckedToolSchema(roles.ToolSchema):
    """The converter's reply if the result schema is missing; it must be JSON Schema with at least one constraint."""

    @pydantic.field_validator("result")
    @classmethod
    def _is_schema(cls, result: JsonObject) -> JsonObject:
        from .function_dicts import as_schema  # here, because it imports yaml

        try:
            schema = as_schema(result, where="result")
            Draft202012Validator.check_schema(schema, format_checker=FormatChecker(formats=()))
        except (ToolkitError, SchemaError) as error:
            raise ValueError(str(error).partition("\n")[0]) from None
        if not schema.keys() - ANNOTATIONS:
            raise ValueError("the schema must constrain the result: its type, properties or values")
        try:
            make_value(schema, seed=0, key="")
        except Impossible as reason:
            raise ValueError(f"no value fits the schema: {reason}") from None
        return schema


class ToolEffect(roles.ToolSchema):
    """The converter's reply if the result schema is known."""

    result: JsonObject = pydantic.Field(default_factory=dict)


def convert(toolkit: Toolkit) -> Conversion:
    """Ask a model for the missing result schemas and effects of tools.

    Known parts are kept; a missing description is filled in too. A tool whose question fails stays as it is.

    Returns:
        The toolkit, and one line per tool that could not be completed.
    """
    open_tools = [tool for tool in toolkit if tool.result is None or tool.effect is None]
    if not open_tools:
        return toolkit, []
    replies = yield [
        Ask(
            "converter",
            {"tool": describe_tool(tool)},
            CheckedToolSchema if tool.result is None else ToolEffect,
            QuestionId(question=number),
        )
        for number, tool in enumerate(open_tools)
    ]
    completed: list[ToolSpec] = []
    failures: list[str] = []
    for tool, reply in zip(open_tools, replies, strict=True):
        if isinstance(given := reply.value, roles.ToolSchema):
            effect = tool.effect or (given.effect if given.effect != "unknown" else None)
            result = given.result if tool.result is None else tool.result
            description = tool.description.strip() or given.description.strip()
            completed.append(replace(tool, result=result, description=description, effect=effect))
        else:
            missing = "result schema" if tool.result is None else "effect"
            failures.append(f"{tool.name}: no {missing}: {reply.failure or 'the model gave no answer'}")
    return toolkit.replace(*completed), failures


def describe_tool(tool: ToolSpec) -> str:
    """Return a tool as JSON for a prompt; schemas over the budget as an outline."""
    known: JsonObject = {"name": tool.name, "description": tool.about, "parameters": tool.parameters}
    known |= {} if tool.result is None else {"result": tool.result}
    if tool.effect is not None:
        known["effect"] = tool.effect
    if tool.binding is not None:
        known["endpoint"] = f"{tool.binding.method.upper()} {tool.binding.path}"
    text = json.dumps(known, ensure_ascii=False)
    return text if len(text) <= TOOL_CHARS else view(known, budget=TOOL_CHARS)
