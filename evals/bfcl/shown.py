"""Reads a view of a task state back: what it shows, and which names it gives of what it does not show.

A place counts as shown only where it can be read from the view's text alone: marks of things left out show nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_TEXT = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")
_CUT = re.compile(r" … [\d,]+ of [\d,]+ characters left out … ")
_MARK = re.compile(
    r"… (?:[\d,]+(?: more)? keys?(?: \(of [\d,]+\))?|items? \d+(?: to \d+)? \(of \d+\)|[\d,]+ items?)(:)?"
)
_FIRST = re.compile(r", the first with ")
_INDEX = re.compile(r"(\d+): ")


@dataclass(slots=True)
class Shown:
    """A container: the entries that are shown, by key or index, and the keys that are only named."""

    entries: dict[str | int, Any] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)


class _Cut:
    """A text of which the middle is left out."""


CUT = _Cut()


def read(text: str) -> Any:
    """Return what a view shows: scalars, `CUT` for a text that is not whole, `Shown` for containers.

    Raises:
        ValueError: The text is not a view.
    """
    reader = _Reader(text)
    value = reader.value()
    if reader.at != len(text):
        raise reader.wrong()
    return value


def holds(shown: Any, path: Sequence[str | int], *, value: Any) -> bool:
    """Return True if the view shows the value at a path, a scalar whole, a container opened."""
    for token in path:
        if not isinstance(shown, Shown) or token not in shown.entries:
            return False
        shown = shown.entries[token]
    if isinstance(value, dict | list):
        return isinstance(shown, Shown)
    return type(shown) is type(value) and bool(shown == value)


def names(shown: Any, path: Sequence[str | int]) -> bool:
    """Return True if the view shows or names something at a path."""
    *above, last = path
    for token in above:
        if not isinstance(shown, Shown) or token not in shown.entries:
            return False
        shown = shown.entries[token]
    return isinstance(shown, Shown) and (last in shown.entries or last in shown.named)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def wrong(self) -> ValueError:
        return ValueError(f"no view at character {self.at}: {self.text[self.at : self.at + 60]!r}")

    def value(self) -> Any:
        self.skip("")
        if self.skip("{"):
            return self._container("}", self._member)
        if self.skip("["):
            return self._container("]", self._item)
        if self.text.startswith('"', self.at):
            return self._string()
        found = self._take(_SCALAR)
        if not found:
            raise self.wrong()
        return json.loads(found[0])

    def skip(self, sign: str) -> bool:
        """Pass over blanks, and over the sign if it is next."""
        while self.text[self.at : self.at + 1] in (" ", "\n"):
            self.at += 1
        if not self.text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def _string(self) -> Any:
        found = self._take(_TEXT)
        if not found:
            raise self.wrong()
        if not self._take(_CUT):
            return json.loads(found[0])
        self._string()
        return CUT

    def _container(self, end: str, one: Any) -> Shown:
        shown = Shown()
        while not self.skip(end):
            self.skip("")
            found = self._take(_MARK)
            if found:
                self._names(shown, listed=bool(found[1]))
            else:
                one(shown)
            if not self.skip(",") and not self.text.startswith(end, self.at):
                raise self.wrong()
        return shown

    def _names(self, shown: Shown, *, listed: bool) -> None:
        """Add the keys that a mark names; those of a folded list's first item are not keys of the list."""
        first = self._take(_FIRST)
        while (listed or first) and not self.skip("…"):
            name = self._string()
            if isinstance(name, str) and not first:
                shown.named.add(name)
            if not self.skip(","):
                return
            self.skip("")

    def _member(self, shown: Shown) -> None:
        key = self._string()
        if not self.skip(":"):
            raise self.wrong()
        shown.entries[key] = self.value()

    def _item(self, shown: Shown) -> None:
        index = self._take(_INDEX)
        place = int(index[1]) if index else len(shown.entries)
        shown.entries[place] = self.value()
