"""Reading regular expressions of JSON Schema (the dialect of ECMA-262) into a tree.

Backreferences, lookbehind and inline flags other than `i` and `s` are not read. A few forms of Python's and Rust's
dialects are read as well: `(?P<name>...)`, the edges A and z.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from string import hexdigits
from typing import TypeAlias

_LAST = 0x10FFFF

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code points from and to, sorted, both ends included."""

Categories: TypeAlias = tuple[tuple[str, bool], ...]
"""Unicode categories, and whether a character shall be in them."""


class PatternError(Exception):
    """A pattern that cannot be read."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of a set: sorted code point ranges, and Unicode categories such as `L` or `Nd`."""

    ranges: Ranges
    categories: Categories = ()
    negated: bool = False
    fold: bool = False

    def __contains__(self, char: str) -> bool:
        """Return True if the character fits."""
        found = any(map(self._has, {char, *_one(char.lower()), *_one(char.upper())})) if self.fold else self._has(char)
        return found != self.negated

    def _has(self, char: str) -> bool:
        code = ord(char)
        index = bisect_right(self.ranges, (code, _LAST + 1)) - 1
        if index >= 0 and self.ranges[index][0] <= code <= self.ranges[index][1]:
            return True
        if not self.categories:
            return False
        category = unicodedata.category(char)
        return any(category.startswith(name) == wanted for name, wanted in self.categories)


@dataclass(frozen=True, slots=True)
class Edge:
    """A place between characters: `^`, `$`, `b` (word edge) or `B`."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts one after another."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several options."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part `least` to `most` times; `most` is None without an upper limit."""

    part: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Look:
    """Something that must, or must not, follow."""

    part: Node
    negated: bool


Node: TypeAlias = Chars | Edge | Sequence | Choice | Repeat | Look


def merged(ranges: list[tuple[int, int]]) -> Ranges:
    """Return ranges sorted and without overlaps."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(high, out[-1][1]))
        else:
            out.append((low, high))
    return tuple(out)


def inverted(ranges: Ranges) -> Ranges:
    """Return everything outside the ranges."""
    out, start = [], 0
    for low, high in ranges:
        if low > start:
            out.append((start, low - 1))
        start = high + 1
    return (*out, (start, _LAST)) if start <= _LAST else tuple(out)


def _one(text: str) -> set[str]:
    return {text} if len(text) == 1 else set()


WORD = ((48, 57), (65, 90), (95, 95), (97, 122))
_DIGIT = ((48, 57),)
_SPACE = ((9, 13), (32, 32), (160, 160), (5760, 5760), (8192, 8202), (8232, 8233), (8239, 8239), (8287, 8287),
          (12288, 12288), (65279, 65279))  # fmt: skip
_LINE_ENDS = ((10, 10), (13, 13), (8232, 8233))
_SETS = {"d": _DIGIT, "w": WORD, "s": _SPACE}
_CONTROLS = {"n": 10, "r": 13, "t": 9, "v": 11, "f": 12, "0": 0}
_EDGES = {"b": "b", "B": "B", "A": "^", "z": "$", "Z": "$"}
_QUANTIFIERS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_GROUPS = ("?:", "?=", "?!")
_CATEGORIES = {"Letter": "L", "Number": "N", "Punctuation": "P", "Symbol": "S", "Separator": "Z", "Mark": "M"}
_EMPTY = Sequence(())


def read_pattern(source: str) -> Node:
    """Read a pattern into its tree.

    Raises:
        PatternError: It is not well-formed, or uses something that is not read.
    """
    reader = _Reader(source)
    tree = reader.choice()
    if reader.at < len(source):
        raise PatternError("a bracket that was never opened")
    return tree


class _Reader:
    """A recursive descent over the pattern's text."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.fold = False
        self.dot_all = False
        if source.startswith(("(?i)", "(?s)", "(?is)", "(?si)")):
            flags = source[2 : source.index(")")]
            self.fold, self.dot_all = "i" in flags, "s" in flags
            self.at = len(flags) + 3

    def next_is(self, text: str) -> bool:
        """Step over `text` if it comes next."""
        found = self.source.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def take(self) -> str:
        """Return the next character."""
        if self.at >= len(self.source):
            raise PatternError("the pattern ends too early")
        self.at += 1
        return self.source[self.at - 1]

    def until(self, end: str) -> str:
        """Return everything up to `end`, which is stepped over."""
        stop = self.source.find(end, self.at)
        if stop < 0:
            raise PatternError(f"{end} is missing")
        text, self.at = self.source[self.at : stop], stop + len(end)
        return text

    def choice(self) -> Node:
        """Return options between `|`."""
        options = [self.sequence()]
        while self.next_is("|"):
            options.append(self.sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def sequence(self) -> Node:
        """Return parts up to `|`, `)` or the end."""
        parts: list[Node] = []
        while self.at < len(self.source) and self.source[self.at] not in "|)":
            parts.append(self.quantified(self.atom()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def quantified(self, part: Node) -> Node:
        """Return the part with the quantifier behind it, if there is one."""
        span = self.span()
        if span is None:
            return part
        least, most = span
        if most is not None and most < least:
            raise PatternError("a repetition that ends before it begins")
        if not self.next_is("?") and self.next_is("+"):
            raise PatternError("possessive quantifiers are not read")
        if self.at < len(self.source) and self.source[self.at] in "*+?":
            raise PatternError("a quantifier behind a quantifier")
        return _EMPTY if part == _EMPTY else Repeat(part, least, most)

    def span(self) -> tuple[int, int | None] | None:
        """Read a quantifier as its least and most repetitions; None if the next character is not one."""
        mark = self.source[self.at : self.at + 1]
        if mark in _QUANTIFIERS:
            self.at += 1
            return _QUANTIFIERS[mark]
        if mark != "{":
            return None
        least, comma, most = self.source[self.at + 1 :].partition("}")[0].partition(",")
        if not (least.isdecimal() and least.isascii() and (not most or most.isdecimal()) and len(least + most) < 12):
            return None
        self.until("}")
        return int(least), (int(most) if most else None) if comma else int(least)

    def atom(self) -> Node:
        """Return one character, set, edge or group."""
        char = self.take()
        if char == "(":
            return self.group()
        if char == "[":
            return self.set()
        if char == ".":
            return Chars(() if self.dot_all else _LINE_ENDS, negated=True)
        if char in "^$":
            return Edge(char)
        if char == "\\":
            return self.escape()
        if char in "*+?":
            raise PatternError("a quantifier with nothing before it")
        return self.chars(((ord(char), ord(char)),))

    def chars(self, ranges: Ranges, categories: Categories = (), *, negated: bool = False) -> Chars:
        """Return a set that knows whether letter case counts."""
        return Chars(ranges, categories, negated, self.fold)

    def group(self) -> Node:
        """Read a group, after its opening bracket."""
        kind = next((kind for kind in _GROUPS if self.next_is(kind)), "")
        if not kind and self.next_is("?"):
            self.next_is("P")
            if not self.next_is("<") or self.source[self.at : self.at + 1] in ("=", "!"):
                raise PatternError("a kind of group that is not read")
            self.until(">")
        inside = self.choice()
        if not self.next_is(")"):
            raise PatternError("a bracket that is never closed")
        return Look(inside, kind == "?!") if kind in ("?=", "?!") else inside

    def escape(self) -> Node:
        """Read an escape outside of a set, after its backslash."""
        char = self.take()
        if char in _EDGES:
            return Edge(_EDGES[char])
        if char in "123456789k":
            raise PatternError("backreferences are not read")
        return self.chars(*self.meaning(char))

    def meaning(self, char: str) -> tuple[Ranges, Categories]:
        """Return the characters of an escape."""
        if char.lower() in _SETS:
            ranges = _SETS[char.lower()]
            return (ranges if char.islower() else inverted(ranges)), ()
        if char in "pP":
            return (), (self.category(wanted=char == "p"),)
        if char in "xu":
            code = self.code(char)
        elif char == "c":
            code = ord(self.take()) % 32
        elif char.isalnum() and char not in _CONTROLS:
            raise PatternError(f"the escape {char} is not read")
        else:
            code = _CONTROLS.get(char, ord(char))
        return ((code, code),), ()

    def category(self, *, wanted: bool) -> tuple[str, bool]:
        """Return the Unicode category behind `p`: `{L}`, `{Letter}`, `{gc=L}`, or a bare `L`."""
        name = self.until("}") if self.next_is("{") else self.take()
        name = name.rpartition("=")[2]
        name = _CATEGORIES.get(name, name)
        if not 0 < len(name) <= 2 or name[0] not in "LMNPSZC":
            raise PatternError("a Unicode property that is not read")
        return name, wanted

    def code(self, kind: str) -> int:
        """Return the code point behind `x` or `u`."""
        digits = self.until("}") if self.next_is("{") else "".join(self.take() for _ in range(2 if kind == "x" else 4))
        if not digits or not set(digits) <= set(hexdigits) or len(digits) > 6:
            raise PatternError("a code that is not a hexadecimal number")
        if int(digits, 16) > _LAST:
            raise PatternError("a code beyond Unicode")
        return int(digits, 16)

    def set(self) -> Chars:
        """Read a set, after its opening square bracket."""
        negated = self.next_is("^")
        ranges: list[tuple[int, int]] = []
        categories: list[tuple[str, bool]] = []
        while not self.next_is("]"):
            low, more = self.member()
            categories += more
            if self._spans(low):
                self.at += 1
                high, _ = self.member()
                if len(high) != 1 or high[0][1] < low[0][0]:
                    raise PatternError("a range that ends before it begins")
                low = ((low[0][0], high[0][1]),)
            ranges += low
        return self.chars(merged(ranges), tuple(categories), negated=negated)

    def _spans(self, low: Ranges) -> bool:
        alone = len(low) == 1 and low[0][0] == low[0][1]
        return alone and self.source[self.at : self.at + 1] == "-" and self.source[self.at + 1 : self.at + 2] != "]"

    def member(self) -> tuple[Ranges, Categories]:
        """Return one member of a set."""
        char = self.take()
        if char != "\\":
            return ((ord(char), ord(char)),), ()
        char = self.take()
        return (((8, 8),), ()) if char == "b" else self.meaning(char)
