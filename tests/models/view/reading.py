"""Reads a view back, so that tests can say what it shows, what it leaves out, and whether that is true of the state."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

TEXT = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")
CUT = re.compile(r" … ([\d,]+) of ([\d,]+) characters left out … ")
KEYS = re.compile(r"… ([\d,]+)( more)? keys?(?: \(of ([\d,]+)\))?")
ITEMS = re.compile(r"… items? (\d+)(?: to (\d+))? \(of (\d+)\)")
FOLDED_LIST = re.compile(r"… ([\d,]+) items?(, the first with )?")
INDEX = re.compile(r"(\d+): ")


@dataclass(frozen=True)
class Cut:
    """A text of which the middle is left out."""

    head: str
    tail: str
    left: int
    length: int


@dataclass
class Shown:
    """A container: the entries that are shown, how many there are, and the names of some of the others."""

    kind: type
    entries: dict = field(default_factory=dict)
    count: int = 0
    names: list = field(default_factory=list)
    gaps: list = field(default_factory=list)


class Reader:
    """The grammar of a view."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def read(self):
        value = self.value()
        assert self.at == len(self.text), self.rest()
        return value

    def rest(self) -> str:
        return f"at {self.at}: {self.text[self.at : self.at + 80]!r}"

    def take(self, pattern):
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def skip(self, sign: str) -> bool:
        while self.at < len(self.text) and self.text[self.at] in " \n":
            self.at += 1
        if not self.text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True

    def value(self):
        self.skip("")
        if self.skip("{"):
            return self.entries(Shown(dict), "}", self.member)
        if self.skip("["):
            return self.entries(Shown(list), "]", self.item)
        if self.text.startswith('"', self.at):
            return self.string()
        found = self.take(SCALAR)
        assert found, self.rest()
        return json.loads(found[0])

    def string(self):
        found = self.take(TEXT)
        assert found, self.rest()
        text = json.loads(found[0])
        cut = self.take(CUT)
        return Cut(text, self.string(), number(cut[1]), number(cut[2])) if cut else text

    def entries(self, shown: Shown, end: str, one) -> Shown:
        while not self.skip(end):
            one(shown)
            assert self.skip(",") or self.text.startswith(end, self.at), self.rest()
        if shown.kind is dict or not shown.count:
            shown.count = max(shown.count, len(shown.entries))
        return shown

    def member(self, shown: Shown) -> None:
        self.skip("")
        mark = self.take(KEYS)
        if mark:
            assert bool(mark[2]) == bool(shown.entries) == bool(mark[3]), mark[0]
            shown.count = number(mark[3]) if mark[3] else number(mark[1])
            assert shown.count == number(mark[1]) + len(shown.entries)
            shown.names = self.names() if self.skip(":") else []
            return
        key = self.string()
        assert key not in shown.entries
        assert self.skip(":"), self.rest()
        shown.entries[key] = self.value()

    def item(self, shown: Shown) -> None:
        self.skip("")
        gap, folded = self.take(ITEMS), None
        if gap:
            shown.gaps.append(range(int(gap[1]), int(gap[2] or gap[1]) + 1))
            shown.count = int(gap[3])
            return
        folded = self.take(FOLDED_LIST)
        if folded:
            shown.count = number(folded[1])
            shown.gaps.append(range(shown.count))
            shown.names = self.names() if folded[2] else []
            return
        index = self.take(INDEX)
        place = int(index[1]) if index else len(shown.entries)
        assert place not in shown.entries
        shown.entries[place] = self.value()

    def names(self) -> list:
        names = []
        while not self.skip("…"):
            names.append(self.string() if not self.skip('""') else "")
            if not self.skip(","):
                return names
        return names


def read(text: str) -> object:
    """What a view shows."""
    return Reader(text).read()


def number(text: str) -> int:
    return int(text.replace(",", ""))


def is_true(shown, state) -> bool:
    """True where all that is shown, counted or named is so in the state, and nothing is missing without a mark."""
    if isinstance(shown, Cut):
        whole = isinstance(state, str) and shown.length == len(state) == len(shown.head) + shown.left + len(shown.tail)
        return whole and state.startswith(shown.head) and state.endswith(shown.tail)
    if not isinstance(shown, Shown):
        return type(shown) is type(state) and shown == state
    if shown.kind is not type(state) or shown.count != len(state):
        return False
    if shown.kind is dict:
        names = {name for name in shown.names if isinstance(name, str)}
        return names <= state.keys() - shown.entries.keys() and all(
            key in state and is_true(value, state[key]) for key, value in shown.entries.items()
        )
    places = sorted([*shown.entries, *(index for gap in shown.gaps for index in gap)])
    return places == list(range(len(state))) and all(is_true(value, state[i]) for i, value in shown.entries.items())


def is_whole(shown) -> bool:
    """True where nothing is left out."""
    if isinstance(shown, Shown):
        return shown.count == len(shown.entries) and all(map(is_whole, shown.entries.values()))
    return not isinstance(shown, Cut)


def part(shown, path):
    """What is shown at a path of keys and indices (as text or numbers); None where nothing is."""
    for token in path:
        if not isinstance(shown, Shown):
            return None
        shown = shown.entries.get(token if shown.kind is dict else int(token))
    return shown
