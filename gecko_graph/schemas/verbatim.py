"""Whether a value occurs verbatim in a tool's result or in a text.

Verbatim means as whole words and numbers: letter case, white space and the form of quotes are ignored, 1,240.50 is
1240.5. Whether a value follows from others is left to a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice

from ..leaves import scalars_of
from ..state import Json

MAX_VALUES = 5_000
"""Values read of one document."""

MAX_TEXT = 50_000
"""Characters read of one text."""

SHORT_TEXT = 200
"""Characters of a text whose folded form is cached."""

_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]{0,20}(?:\.\d{1,20})?(?!\w)")


def occurs_verbatim(value: Json, documents: Iterable[Json]) -> bool:
    """Return whether every scalar in a value occurs verbatim in one of the documents: in a text, a number or a key.

    Booleans, null and texts without a letter or digit never occur: finding them would prove nothing.
    """
    scalars = list(islice(scalars_of(value), MAX_VALUES))
    leaves = [leaf for document in documents for leaf in leaves_of(document)] if scalars else []
    return bool(scalars) and all(_occurs(scalar, leaves) for scalar in scalars)


def leaves_of(document: Json) -> list[Json]:
    """Return the values and keys of a document, as a document of their own."""
    if isinstance(document, dict | list):
        return [leaf for leaf in islice(scalars_of(document, keys=True), MAX_VALUES) if leaf is not None]
    return [] if document is None else [document]


def _occurs(value: Json, leaves: Iterable[Json]) -> bool:
    if value is None or isinstance(value, bool):
        return False
    if not isinstance(value, str):
        return any(_is_number(value, leaf) for leaf in leaves)
    part = _fold(value)
    return any(map(str.isalnum, part)) and any(_contains_words(_fold(str(leaf)), part) for leaf in leaves)


def _fold(text: str) -> str:
    return _fold_short(text) if len(text) <= SHORT_TEXT else _fold_short.__wrapped__(text[:MAX_TEXT])


@lru_cache(maxsize=4096)
def _fold_short(text: str) -> str:
    """Fold a short text; cached, because successive calls are compared with the same results."""
    return " ".join(text.translate(_QUOTES).casefold().split())


def _is_number(value: float, leaf: Json) -> bool:
    if isinstance(leaf, str):
        return any(float(number.replace(",", "")) == value for number in _NUMBER.findall(leaf[:MAX_TEXT]))
    return leaf is not None and not isinstance(leaf, bool) and bool(leaf == value)


def _contains_words(whole: str, part: str) -> bool:
    start = whole.find(part)
    while start >= 0:
        before, after = whole[:start][-1:], whole[start + len(part) :][:1]
        if not (before.isalnum() and part[0].isalnum()) and not (after.isalnum() and part[-1].isalnum()):
            return True
        start = whole.find(part, start + 1)
    return False
