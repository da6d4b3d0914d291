"""A seeded random source whose place can be given as one number, so that it fits into a task state."""

from __future__ import annotations

import random
from typing import Any


class CountedRandom(random.Random):
    """Draws as `random.Random` does and counts the 32-bit words that it has drawn.

    Args:
        start: State of the source that it takes the place of, at its beginning.
        drawn: Words drawn since.
    """

    def __init__(self, start: Any, drawn: int = 0) -> None:
        super().__init__(0)
        self.setstate(start)
        if drawn:
            super().getrandbits(32 * drawn)
        self.drawn = drawn

    def random(self) -> float:
        """Draw as the base class does; two words."""
        self.drawn += 2
        return super().random()

    def getrandbits(self, k: int, /) -> int:
        """Draw as the base class does; a word for each 32 bits begun."""
        self.drawn += -(-k // 32)
        return super().getrandbits(k)


def words_drawn(source: random.Random, start: Any) -> int:
    """Return how many words a source has drawn since it stood at `start`, where it had just been seeded.

    Raises:
        ValueError: It was seeded otherwise, or has drawn more words than can be counted.
    """
    if isinstance(source, CountedRandom):
        return source.drawn
    state = source.getstate()
    # its last number is the place in a block of 624 words; a fresh source stands at the end of a block
    drawn = 0 if state == start else int(state[1][-1])
    if CountedRandom(start, drawn).getstate() != state:
        raise ValueError("the random source is none that began here, or has drawn more than 624 words")
    return drawn
