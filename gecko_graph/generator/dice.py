"""Dice that fall alike in every process: what is made up comes from a hash of seed, tool, arguments and place."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TypeVar

Thing = TypeVar("Thing")


class Dice:
    """A stream of numbers that belongs to a text.

    Args:
        key: Equal keys throw equal numbers. Python's `hash` and `random` are not used: one changes between processes,
            the other between versions.
    """

    __slots__ = ("_key", "_thrown")

    def __init__(self, key: str) -> None:
        self._key = key
        self._thrown = 0

    def part(self, name: str) -> Dice:
        """Dice of their own for a part of what these belong to."""
        return Dice(f"{self._key}\0{name}")

    def below(self, count: int) -> int:
        """A whole number from 0 to `count` - 1."""
        return self._throw() % max(count, 1)

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def pick(self, things: Sequence[Thing]) -> Thing:
        """One of the things."""
        return things[self.below(len(things))]

    def word(self, text: str) -> str:
        """One of a text's words."""
        return self.pick(text.split())

    def chance(self, percent: int) -> bool:
        """True in so many of a hundred throws."""
        return self.below(100) < percent

    def letters(self, count: int, alphabet: str = "0123456789abcdef") -> str:
        """So many characters of an alphabet."""
        out = ""
        while len(out) < count:
            thrown = self._throw()
            for _ in range(min(count - len(out), 32)):
                thrown, index = divmod(thrown, len(alphabet))
                out += alphabet[index]
        return out

    def _throw(self) -> int:
        self._thrown += 1
        return int.from_bytes(sha256(f"{self._key}\0{self._thrown}".encode(errors="replace")).digest())
