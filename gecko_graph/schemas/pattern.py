"""Regular expressions of JSON Schema, matched in linear time.

JSON Schema means ECMA-262 expressions. Python's `re` reads another dialect, and can take years over a hostile pattern
without a way to stop it. A pattern becomes an automaton that is in several states at once: no backtracking, and a
count of steps that is the same on every machine. Backreferences and lookbehind are not read; such a pattern is ignored.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from .pattern_syntax import WORD, Chars, Choice, Edge, Look, Node, PatternError, Repeat, Sequence, read_pattern

MAX_STATES = 20_000
MAX_STEPS = 200_000
"""Steps that one match may take, and `STEPS_PER_CHAR` for each character of its text."""

STEPS_PER_CHAR = 20


class Pattern:
    """A compiled pattern. `matches` searches, as JSON Schema does."""

    __slots__ = ("_machine", "source", "tree")

    def __init__(self, source: str, tree: Node) -> None:
        self.source = source
        self.tree = tree
        self._machine = _Machine(tree)

    def matches(self, text: str, steps: Steps | None = None) -> bool | None:
        """Return True if the pattern occurs in `text`; None where finding out takes more than `steps`."""
        try:
            return self._machine.search(text, 0, steps or Steps(text), anywhere=True)
        except _TooLong:
            return None

    @property
    def spells_out(self) -> bool:
        """True if the pattern is a list of the allowed values in disguise, as in `^(red|blue)$`."""
        return _is_spelled_out(self.tree)


def _is_spelled_out(node: Node) -> bool:
    if isinstance(node, Chars):
        return not (node.negated or node.categories) and sum(high - low + 1 for low, high in node.ranges) <= 2
    if isinstance(node, Sequence | Choice):
        return all(_is_spelled_out(part) for part in (node.parts if isinstance(node, Sequence) else node.options))
    if isinstance(node, Repeat):
        return node.most is not None and _is_spelled_out(node.part)
    return isinstance(node, Edge)


class _TooLong(Exception):
    """A match that has used up `MAX_STEPS`."""


class Steps:
    """The steps that a match of one text may take, and how many it took."""

    __slots__ = ("left", "taken")

    def __init__(self, text: str) -> None:
        self.left = MAX_STEPS + STEPS_PER_CHAR * len(text)
        self.taken = 0

    def spend(self, count: int) -> None:
        """Count steps. Raises _TooLong when they are used up."""
        self.left -= count
        self.taken += count
        if self.left < 0:
            raise _TooLong


State: TypeAlias = tuple[Chars | Edge | Look | None, int, int]
"""What to match (None: nothing), and the one or two states after it (-1: none)."""


class _Machine:
    """A nondeterministic automaton, run on the set of states it can be in."""

    __slots__ = ("looks", "start", "states")

    def __init__(self, tree: Node) -> None:
        self.states: list[State] = [(None, -1, -1)]
        self.looks: dict[int, _Machine] = {}
        self.start = self._build(tree, 0)

    def _add(self, passing: Chars | Edge | Look | None, first: int, second: int = -1) -> int:
        if len(self.states) >= MAX_STATES:
            raise PatternError("too many repetitions")
        self.states.append((passing, first, second))
        return len(self.states) - 1

    def _build(self, node: Node, behind: int) -> int:
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                behind = self._build(part, behind)
            return behind
        if isinstance(node, Choice):
            start = self._build(node.options[-1], behind)
            for option in reversed(node.options[:-1]):
                start = self._add(None, self._build(option, behind), start)
            return start
        if isinstance(node, Repeat):
            return self._repeat(node, behind)
        state = self._add(node, behind)
        if isinstance(node, Look):
            self.looks[state] = _Machine(node.part)
        return state

    def _repeat(self, node: Repeat, behind: int) -> int:
        start = behind
        if node.most is None:
            start = self._add(None, -1, behind)
            self.states[start] = (None, self._build(node.part, start), behind)
        else:
            for _ in range(node.most - node.least):
                start = self._add(None, self._build(node.part, start), behind)
        for _ in range(node.least):
            start = self._build(node.part, start)
        return start

    def search(self, text: str, at: int, steps: Steps, *, anywhere: bool) -> bool:
        """Return True if a match begins at `at`, or anywhere behind it."""
        heads = [self.start]
        for index in range(at, len(text) + 1):
            states = self._follow_empty(heads, text, index, steps)
            if 0 in states:
                return True
            if index == len(text):
                return False
            char = text[index]
            heads = [self.states[state][1] for state in states if char in self.states[state][0]]  # type: ignore[operator]
            if anywhere:
                heads.append(self.start)
            elif not heads:
                return False
        return False

    def _follow_empty(self, heads: list[int], text: str, index: int, steps: Steps) -> list[int]:
        """Return the states that wait for a character, or the end (0), reached from `heads` without one."""
        seen: set[int] = set()
        waiting: list[int] = []
        stack = heads
        while stack:
            state = stack.pop()
            if state < 0 or state in seen:
                continue
            seen.add(state)
            passing, first, second = self.states[state]
            if state == 0 or isinstance(passing, Chars):
                waiting.append(state)
            elif passing is None:
                stack += (first, second)
            elif self._passes(state, passing, text, index, steps):
                stack.append(first)
        steps.spend(len(seen) + 1)
        return waiting

    def _passes(self, state: int, passing: Edge | Look, text: str, index: int, steps: Steps) -> bool:
        if isinstance(passing, Look):
            return self.looks[state].search(text, index, steps, anywhere=False) != passing.negated
        if passing.kind == "^":
            return index == 0
        if passing.kind == "$":
            return index == len(text)
        here = index < len(text) and _is_word(text[index])
        before = index > 0 and _is_word(text[index - 1])
        return (here != before) == (passing.kind == "b")


def _is_word(char: str) -> bool:
    return any(low <= ord(char) <= high for low, high in WORD)


@lru_cache(maxsize=1024)
def compile_pattern(source: str) -> Pattern | None:
    """Read a pattern; None where it cannot be read, and so is ignored."""
    try:
        return Pattern(source, read_pattern(source))
    except (PatternError, RecursionError):
        return None
