"""Docstrings as data: description, arguments and result, from Google's form and `:param name:`.

LangChain has a parser of its own; it refuses a docstring whose sections are not all set apart by empty lines.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_SECTION = re.compile(r"(Args|Arguments|Parameters|Returns|Return|Yields|Raises|Examples?|Notes?|Warnings?):\s*(.*)")
_ARGUMENT = re.compile(r"\*{0,2}(\w+)\s*+(?:\([^)]*\)\s*+)?:\s*(.*)")
_FIELD = re.compile(r":(param|parameter|arg|returns?|rtype|type|raises)\b([^:]*):\s*(.*)")
_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class Docstring:
    """A docstring taken apart."""

    description: str = ""
    arguments: dict[str, str] = field(default_factory=dict)
    returns: str = ""


def read_docstring(text: str | None) -> Docstring:
    """Take a docstring apart; what is in no known form is part of the description."""
    read = Docstring()
    sections = list(_sections(inspect.cleandoc(text or "")))
    for name, lines in sections:
        if name == "":
            read.description = "\n".join(lines).strip()
        elif name in ("Args", "Arguments", "Parameters"):
            read.arguments.update(_arguments(lines))
        elif name in ("Returns", "Return"):
            read.returns = _join(lines)
        elif name.startswith("param:"):
            read.arguments[name.removeprefix("param:")] = _join(lines)
    return read


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    name, lines = "", list[str]()
    for line in text.splitlines():
        section, reported = _SECTION.fullmatch(line), _FIELD.fullmatch(line)
        if section is None and reported is None:
            lines.append(line)
            continue
        yield name, lines
        if section is not None:
            name, lines = section[1], [section[2]]
        elif reported is not None:
            name, lines = _field(reported), [reported[3]]
    yield name, lines


def _field(reported: re.Match[str]) -> str:
    if reported[1] in ("param", "parameter", "arg"):
        return "param:" + "".join(_WORD.findall(reported[2])[-1:])
    return "Returns" if reported[1].startswith("return") else reported[1]


def _arguments(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield name and description of each; deeper indented lines continue the one before."""
    filled = [line for line in lines if line.strip()]
    edge = min((len(line) - len(line.lstrip()) for line in filled), default=0)
    name, parts = "", list[str]()
    for line in filled:
        begins = _ARGUMENT.fullmatch(line.strip()) if len(line) - len(line.lstrip()) == edge else None
        if begins is None:
            parts.append(line)
            continue
        if name:
            yield name, _join(parts)
        name, parts = begins[1], [begins[2]]
    if name:
        yield name, _join(parts)


def _join(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())
