"""The words of tools and queries: identifiers are split, plurals and the smallest words do not count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ..schemas.subschemas import walk
from ..tools.spec import ToolSpec

NAME_WEIGHT, DESCRIPTION_WEIGHT = 3, 2
"""How often the words of name and description count beside those of arguments, tags and path."""

MOST_PARTS = 40
"""Parts of one tool's schema that are read; what lies deep in large bodies tells tools less apart."""

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_WORD = re.compile(rf"[{_CJK}]|\d+|[A-Z]{{2,}}(?=s(?![a-z]))|[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z{_CJK}]+")

_SMALL = """a an and are as at be but by for if in into is it no not of on or such that the their then there these they
this to was will with"""
_STOP = frozenset(_SMALL.split())


def split_words(text: str) -> list[str]:
    """Return a text's words in small letters: `getUserIDs_v2` is `get`, `user`, `id`, `2`."""
    words = (word.lower() for word in _WORD.findall(text))
    return [_singular(word) for word in words if word not in _STOP and (len(word) > 1 or not "a" <= word <= "z")]


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word[:-1]


def texts_of(tool: ToolSpec) -> tuple[str, str, str]:
    """Return a tool's name, its description, and what else it is found by: arguments, tags, path."""
    path = [tool.binding.path] if tool.binding is not None else []
    return tool.name, tool.description, "\n".join([*tool.tags, *path, *_argument_texts(tool.parameters)])


def document_of(name: str, description: str, others: str) -> list[str]:
    """Return the words that a tool is indexed by, from `texts_of`."""
    return NAME_WEIGHT * split_words(name) + DESCRIPTION_WEIGHT * split_words(description) + split_words(others)


def _argument_texts(schema: Any) -> Iterator[str]:
    """Yield the arguments' names, descriptions and choices, those inside of objects and lists too."""
    for one in islice(walk(schema), MOST_PARTS):
        properties, choices = one.get("properties"), one.get("enum")
        found = [*(properties if isinstance(properties, dict) else ()), one.get("description")]
        yield from (text for text in [*found, *(choices if isinstance(choices, list) else ())] if isinstance(text, str))
