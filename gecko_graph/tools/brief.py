"""Short descriptions of tools for the judge's and checklist's prompts, within a budget."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from math import log
from typing import Any

from ..models.formatting import cut, one_line
from ..models.view.words import split_term
from ..schemas.subschemas import follow
from ..state import JsonObject
from .spec import ToolSpec

TOOLS_CHARS = 2_400
"""Characters of the whole section: a budget of its own."""

ROOM_FOR_OTHERS = 900
"""Characters for tools that were neither called nor fit; where they need more, only their names are listed."""

CALLED_CHARS = 240
PARAMETER_CHARS = 60
FITTING_CHARS = 120
MOST_FITTING = 6

_MOST_PIECES = 6
_READ = 1_000
"""Characters of a description in which words are looked for."""
_PIECE = re.compile(r"(?<=[.:!?])\s+")


def pick_tools(tools: Iterable[ToolSpec], names: Collection[str] | None) -> list[ToolSpec]:
    """Return the tools of these names in their order; all where the names are None."""
    chosen = None if names is None else {*names}
    return [tool for tool in tools if chosen is None or tool.name in chosen]


def find_fitting(tools: Iterable[ToolSpec], focus: Collection[str]) -> set[str]:
    """Return the names of the few tools that fit the focus best, by the words of their names and descriptions.

    A word counts by how few of the tools have it: what most of them speak of fits none. A tool that fits less than half
    as well as the best is left out.
    """
    words = {tool.name: {*split_term(tool.name), *split_term(tool.description[:_READ])} for tool in tools}
    count = Counter(word for each in words.values() for word in each)
    weights = {word: log((1 + len(words)) / count[word]) for word in {*focus} & count.keys()}
    fits = {name: sum(weights.get(word, 0.0) for word in each) for name, each in words.items()}
    best = sorted(fits, key=lambda name: -fits[name])[:MOST_FITTING]
    return {name for name in best if fits[name] > 0 and 2 * fits[name] >= fits[best[0]]}


def format_tools(tools: Iterable[ToolSpec], *, called: Collection[str] = (), focus: Sequence[str] = ()) -> str:
    """Return tools, one line each: those called first, with their parameters, then those that fit the focus.

    What the descriptions of several tools begin with is left out: it tells none from another. The focus is of words in
    small letters, see `view.focus_words`.
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
    """Return a tool's parameters with their descriptions: `(path: where to look, depth)`."""
    described = []
    for name, schema in tool.parameters.get("properties", {}).items():
        about = schema.get("description", "") if isinstance(schema, dict) else ""
        described.append(f"{name}: {cut(one_line(about), budget=PARAMETER_CHARS)}" if about else name)
    return f"({', '.join(described)})"


def member_names(schema: JsonObject | None) -> list[str]:
    """Return the names in an object, or in the items of a list, of which a schema speaks, also by reference."""
    part: Any = schema
    for _ in range(8):  # references and lists that lead to an object
        if not isinstance(part, dict) or "properties" in part:
            break
        part = follow(schema, str(part["$ref"])) if "$ref" in part else part.get("items")
    return [*part.get("properties", ())] if isinstance(part, dict) else []


def strip_boilerplate(descriptions: Sequence[str]) -> list[str]:
    """Return each description as one line, without the sentences at its beginning that three or more begin with."""
    pieces = [_PIECE.split(one_line(text), maxsplit=_MOST_PIECES) for text in descriptions]
    begun = Counter(tuple(each[:n]) for each in pieces for n in range(1, len(each)))
    shared = [max((n for n in range(1, len(each)) if begun[tuple(each[:n])] > 2), default=0) for each in pieces]
    return [" ".join(each[n:]) for each, n in zip(pieces, shared, strict=True)]
