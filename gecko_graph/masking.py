"""Masking of secrets: keys, passwords and tokens in error texts, endpoint settings, logs and reports.

Stored data is never masked. Each pattern of `masking.toml` keeps its first group and replaces the rest of its match.
Each runs in linear time: a match begins at a fixed word or at the start of a run of characters, and each repetition is
possessive or bounded.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path

MASK = "…"
SHORT = 500
"""Longest text whose masked form is cached: the same error message recurs at each step."""

_MARK = "\ufdd0"
"""A noncharacter that is inserted after each secret's name, so that one scan finds all names."""
_TABLES = tomllib.loads(Path(__file__).with_name("masking.toml").read_text(encoding="utf-8"))
_PARTS = {"MARK": _MARK, **{name: "".join(lines) for name, lines in _TABLES["parts"].items()}}


def _compile(table: str) -> list[re.Pattern[str]]:
    """Return a table's patterns, with the named parts inserted."""
    sources = (re.sub(r"\{([A-Z]+)\}", lambda found: _PARTS[found[1]], "".join(lines)) for lines in _TABLES[table])
    return [re.compile(source, re.DOTALL) for source in sources]


_PATTERNS, _OF_NAMES = _compile("patterns"), _compile("of_names")
_NAME = re.compile(rf"(?i:{_PARTS['NAMES']})")


def mask(text: str) -> str:
    """Return the text with `…` in place of likely secrets. Identifiers, hashes, numbers and dates are kept."""
    return _mask_once(text) if len(text) <= SHORT else _mask(text)


def _mask(text: str) -> str:
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\1{MASK}", text)
    marked = _NAME.sub(rf"\g<0>{_MARK}", text)
    if len(marked) == len(text):
        return text
    for pattern in _OF_NAMES:
        marked = pattern.sub(rf"\1{MASK}", marked)
    return marked.replace(_MARK, "")


_mask_once = lru_cache(maxsize=2_048)(_mask)
