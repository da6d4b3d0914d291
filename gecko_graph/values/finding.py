"""Whether a value is found again in texts and values: one engine for validator, provenance, answers and claims.

How strictly is an argument. `verbatim`: as whole words and numbers; letter case, white space, the form of quotes and
`1,240.50` for 1240.5 aside. `normal`: in any normal form (`spellings`), so that `3 pm` is 15:00, `f77` is F-77 and
`two` is 2. `loose`: also rounded, without its sign, as one of two readings of a date, or with digits grouped otherwise.
Whether a value follows from others is `derived`'s.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Literal, TypeAlias

from ..state import Json
from .leaves import scalars_of
from .spellings import TEXT_CHARS, atoms_of, canonical, forms_of, whole_form

Strictness: TypeAlias = Literal["verbatim", "normal", "loose"]

MAX_VALUES = 5_000
"""Values read of one document."""

SHORT_TEXT = 200
"""Characters of a text whose folded form is cached."""

LEAST_DIGITS = 7
"""A number with so many digits is found however they are grouped, as in telephone numbers."""

_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]{0,20}(?:\.\d{1,20})?(?!\w)")
_NO_DIGIT = re.compile(r"\D")


class Found:
    """The leaves of documents, in which values are looked for."""

    def __init__(self, documents: Iterable[Json], *, keys: bool = True) -> None:
        """Read the values, with `keys` also the names of members."""
        found = (leaf for each in documents for leaf in islice(scalars_of(each, keys=keys), MAX_VALUES))
        self._leaves = [leaf for leaf in found if leaf is not None]
        self._forms: set[str] | None = None
        self._digits = ""

    def holds(self, value: Json, strictness: Strictness) -> bool:
        """Return whether every scalar in a value stands in one of the leaves.

        Verbatim, booleans, null and texts without a letter or digit never do: finding them would prove nothing.
        """
        scalars = list(islice(scalars_of(value), MAX_VALUES))
        if strictness == "verbatim":
            return bool(scalars) and all(_stands(scalar, self._leaves) for scalar in scalars)
        if self._forms is None:
            self._forms = {form for leaf in self._leaves for form in forms_of(leaf)}
            self._digits = " ".join(_NO_DIGIT.sub("", str(leaf)) for leaf in self._leaves)
        found = _is_spelt if strictness == "normal" else self._is_close
        return all(found(scalar, self._forms) for scalar in scalars)

    def _is_close(self, value: Json, forms: Container[str]) -> bool:
        if isinstance(value, float):
            written = {canonical(value), *(canonical(f"{value:.{places}f}") for places in range(abs(value) < 1, 4))}
            return any(f"{sign}{each.lstrip('-')}" in forms for each in written for sign in ("", "-", "±"))
        if not isinstance(value, str):
            return any(f"{sign}{canonical(value).lstrip('-')}" in forms for sign in ("", "-", "±"))
        figures = "" if any(map(str.isalpha, value)) else _NO_DIGIT.sub("", value)
        return (len(figures) >= LEAST_DIGITS and figures in self._digits) or _is_spelt(value, forms, "", "|", "#", "±")


def _is_spelt(value: Json, forms: Container[str], *signs: str) -> bool:
    if whole_form(str(value)) in forms:
        return True
    wholes: Sequence[Sequence[str]] = [atom.wholes for atom in atoms_of(value)]
    return all(any(f"{sign}{form}" in forms for form in each for sign in signs or ("",)) for each in wholes)


def _stands(value: Json, leaves: Iterable[Json]) -> bool:
    if value is None or isinstance(value, bool):
        return False
    if not isinstance(value, str):
        return any(_is_number(value, leaf) for leaf in leaves)
    part = fold(value)
    return any(map(str.isalnum, part)) and any(holds_words(fold(str(leaf)), part) for leaf in leaves)


def fold(text: str) -> str:
    """Return a text as it is compared verbatim."""
    return _fold_short(text) if len(text) <= SHORT_TEXT else _fold_short.__wrapped__(text[:TEXT_CHARS])


@lru_cache(maxsize=4096)
def _fold_short(text: str) -> str:
    """Fold a short text; cached, because successive calls are compared with the same results."""
    return " ".join(text.translate(_QUOTES).casefold().split())


def _is_number(value: float, leaf: Json) -> bool:
    if isinstance(leaf, str):
        return any(float(number.replace(",", "")) == value for number in _NUMBER.findall(leaf[:TEXT_CHARS]))
    return leaf is not None and not isinstance(leaf, bool) and bool(leaf == value)


def holds_words(whole: str, part: str) -> bool:
    """Return whether a folded text holds another one as whole words."""
    start = whole.find(part)
    while start >= 0:
        before, after = whole[:start][-1:], whole[start + len(part) :][:1]
        if not (before.isalnum() and part[0].isalnum()) and not (after.isalnum() and part[-1].isalnum()):
            return True
        start = whole.find(part, start + 1)
    return False
