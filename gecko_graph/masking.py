"""Masking of secrets: keys, passwords and tokens in error texts, endpoint settings, logs and reports.

Stored data is never masked. Each pattern, of `masking.toml`, keeps its first group and replaces the rest of its
match. Each one is linear: it begins at a fixed word, or where a run of its own characters begins, so that no character
is read from many starts, and each repetition is possessive or bounded.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path

MASK = "…"
SHORT = 500
"""Characters of a text that is remembered: a condition that cannot be evaluated fails alike at each step."""

_MARK = "\ufdd0"
"""A character of no text, which stands behind each name while names and values are looked for: one scan for all."""
_TABLES = tomllib.loads(Path(__file__).with_name("masking.toml").read_text(encoding="utf-8"))
_PARTS = {"MARK": _MARK, **{name: "".join(lines) for name, lines in _TABLES["parts"].items()}}


def _compile(table: str) -> list[re.Pattern[str]]:
    """Return the patterns of a table, with the parts that they name."""
    sources = (re.sub(r"\{([A-Z]+)\}", lambda found: _PARTS[found[1]], "".join(lines)) for lines in _TABLES[table])
    return [re.compile(source, re.DOTALL) for source in sources]


_PATTERNS, _OF_NAMES = _compile("patterns"), _compile("of_names")
_NAME = re.compile(rf"(?i:{_PARTS['NAMES']})")


def mask(text: str) -> str:
    """Return the text with `…` in place of likely secrets. Identifiers, hashes, numbers and dates stay."""
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
