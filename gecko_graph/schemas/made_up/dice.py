"""Random choices that are the same in every process: hashes of seed, tool, arguments and position."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TypeVar

Thing = TypeVar("Thing")


class Dice:
    """A deterministic stream of numbers, seeded with a text.

    Args:
        key: Equal keys give equal numbers. Python's `hash` and `random` are not used: one changes between processes,
            the other between versions.
    """

    __slots__ = ("_key", "_thrown")

    def __init__(self, key: str) -> None:
        self._key = key
        self._thrown = 0

    def below(self, count: int) -> int:
        """Return a whole number from 0 to `count` - 1."""
        return self._throw() % max(count, 1)

    def between(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def pick(self, things: Sequence[Thing]) -> Thing:
        """Return one of the things."""
        return things[self.below(len(things))]

    def letters(self, count: int, alphabet: str = "0123456789abcdef") -> str:
        """Return `count` characters of an alphabet."""
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
