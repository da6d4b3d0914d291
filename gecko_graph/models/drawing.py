"""The text of a view: JSON with marks for omitted parts.

All texts and keys of the state are in JSON quotes, and a mark begins with "…" outside of quotes, so that no state can
imitate a mark. Each mark states how much it omits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from json.encoder import encode_basestring
from typing import Any

from ..state import Json
from .focus import Container

_ONE_LINE = 100
_NAMES = 80
_NAME = 60
_GAP = 40
"""Most characters of a gap's mark in a list, without the indent."""

_CLOSING = 70
"""Most characters of the mark for a container's omitted part, without names."""

_ODD = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that break lines or cannot be encoded as UTF-8."""


class Drawing:
    """The shown parts of a state, within a number of characters.

    Attributes:
        room: Characters left; `floor` of them are reserved.
        refused: How often a part did not fit.
    """

    def __init__(self, root: Container, room: int) -> None:
        self.room, self.floor, self.refused = room, 0, 0
        self._root = root
        self._entries: dict[int, dict[Any, str]] = {}
        self._wholes: dict[int, str] = {}
        self._names: dict[int, int] = {}

    def limit(self, characters: int) -> None:
        """Let the next step use at most so many of the remaining characters."""
        self.floor = max(0, self.room - max(0, characters))

    def is_open(self, node: Container) -> bool:
        return node.index in self._entries or self._is_whole(node)

    def _is_whole(self, node: Container) -> bool:
        return bool(self._wholes) and any(above.index in self._wholes for above in node.way())

    def open(self, node: Container, *, names: int = _NAMES) -> bool:
        """Show the container, with the names of its omitted entries; False if it does not fit."""
        if self._is_whole(node):
            return True
        names, before = _names_size(node, names), self._names.get(node.index, 0)
        closed = [above for above in node.way() if above.index not in self._entries]
        cost = sum(4 * above.depth + _CLOSING + _entry_size(above) for above in closed)
        if not self._pay(cost + max(0, names - before)):
            return not closed
        for above in closed:
            self._entries[above.index] = {}
            self._enter(above)
        self._names[node.index] = max(names, before)
        return True

    def show(self, node: Container, key: Any, *, limit: int) -> None:
        """Show one entry if it fits: a container folded, a text with about `limit` characters."""
        if key in self._entries.get(node.index, ()) or not self.open(node, names=0) or self._is_whole(node):
            return
        text = folded(node.kids[key].value) if key in node.kids else scalar(node.value[key], limit)
        gap = _GAP + 2 * node.depth if isinstance(key, int) and key - 1 not in self._entries[node.index] else 0
        if self._pay(_line_size(node, key) + gap + len(text)):
            self._entries[node.index][key] = text

    def show_whole(self, node: Container) -> bool:
        if self._is_whole(node):
            return True
        text = whole(node.value, node.depth)
        if len(text) > self.room - self.floor or (node.parent and not self.open(node.parent, names=0)):
            self.refused += 1
            return False
        if not self._pay(len(text) + _entry_size(node)):
            return False
        self._wholes[node.index] = text
        self._enter(node)
        return True

    def lengthened(self, nodes: Iterable[Container], budget: int) -> str:
        text = self.text()
        kept = {index: dict(entries) for index, entries in self._entries.items()}
        self.room, self.floor = budget - len(text), 0
        for node in nodes:
            self._lengthen(node)
        longer = self.text()
        if len(longer) > budget:
            self._entries, longer = kept, text
        return longer

    def _lengthen(self, node: Container) -> None:
        entries = self._entries.get(node.index, {})
        for key, shown in entries.items():
            value = None if key in node.kids else node.value[key]
            if isinstance(value, str) and len(shown) < len(value):
                space = max(0, len(shown) + self.room - _CLOSING)
                more = scalar(value, space * len(value) // len(quoted(value)))  # line breaks take two characters
                if len(shown) < len(more) and self._pay(len(more) - len(shown)):
                    entries[key] = more

    def shows(self, path: Sequence[str]) -> bool:
        node = self._root
        for token in path:
            key = int(token) if isinstance(node.value, list) else token
            if self._is_whole(node) or key not in node.kids:
                return self._is_whole(node) or self._shows_scalar(node, key)
            if key not in self._entries.get(node.index, ()):
                return False
            node = node.kids[key]
        return self._shows_all(node)

    def _shows_all(self, node: Container) -> bool:
        return self._is_whole(node) or all(
            self._shows_all(node.kids[key]) if key in node.kids else self._shows_scalar(node, key) for key in node.keys
        )

    def _shows_scalar(self, node: Container, key: Any) -> bool:
        return self._entries.get(node.index, {}).get(key) == whole(node.value[key])

    def _pay(self, cost: int) -> bool:
        is_paid = cost <= self.room - self.floor
        self.room -= cost if is_paid else 0
        self.refused += not is_paid
        return is_paid

    def _enter(self, node: Container) -> None:
        if node.parent:
            self._entries[node.parent.index].setdefault(node.key, "")

    def text(self) -> str:
        return self._draw(self._root)

    def _draw(self, node: Container) -> str:
        if node.index in self._wholes or node.index not in self._entries:
            return self._wholes.get(node.index) or folded(node.value)
        shown = self._entries[node.index]
        parts = {key: self._draw(node.kids[key]) if key in node.kids else text for key, text in shown.items()}
        if isinstance(node.value, list):
            return _join_parts(_items(parts, len(node.value)), node.value, node.depth)
        members = [f"{quoted(key)}: {parts[key]}" for key in node.keys if key in parts]
        left = [key for key in node.keys if key not in parts]
        names = _list_names(left, self._names.get(node.index, 0))
        more = f"{len(left):,} more {'key' if len(left) == 1 else 'keys'} (of {len(node.value):,})"
        rest = f"… {more if members else _count(len(left), 'key')}{names}"
        return _join_parts([*members, *([rest] if left else [])], node.value, node.depth)


def _items(parts: dict[int, str], count: int) -> list[str]:
    lines, shown = list[str](), sorted(parts)
    for before, index in zip([-1, *shown], [*shown, count], strict=True):
        if index - before > 1:
            span = f"item {before + 1}" if index - before == 2 else f"items {before + 1} to {index - 1}"
            lines.append(f"… {span} (of {count})")
        if index < count:
            lines.append(f"{index}: {parts[index]}" if len(shown) < count else parts[index])
    return lines


def _names_size(node: Container, limit: int) -> int:
    if not isinstance(node.value, dict):
        return 0
    return min(limit, sum(min(len(key), _NAME) + 4 for key in islice(node.value, limit // 4 + 1)))


def _line_size(node: Container, key: Any) -> int:
    """Return the characters of a line without its value: indent, key or index, comma."""
    return 2 * node.depth + 6 + len(quoted(key) if isinstance(key, str) else str(key))


def _entry_size(node: Container) -> int:
    return _line_size(node.parent, node.key) + 2 * node.depth + _GAP if node.parent else 0


def escape(text: str) -> str:
    """Escape, as JSON does, characters that break lines or cannot be encoded."""
    return _ODD.sub(lambda odd: f"\\u{ord(odd[0]):04x}", text) if not text.isascii() or "\x7f" in text else text


def quoted(text: str) -> str:
    """Return the text as JSON on one line."""
    return escape(encode_basestring(text))


def scalar(value: Json, limit: int) -> str:
    """Return a scalar or an empty container; of a longer text the start and the end, about `limit` characters."""
    if not isinstance(value, str):
        return json.dumps(value)
    if len(value) <= limit:
        return quoted(value)
    head, tail = limit * 2 // 3, limit // 3
    left = f"… {len(value) - head - tail:,} of {len(value):,} characters left out …"
    return f"{quoted(value[:head])} {left} {quoted(value[len(value) - tail :])}"


def whole(value: Json, indent: int = 0) -> str:
    """Return the whole value, with short parts on one line."""
    if not value or not isinstance(value, (dict, list)):
        return scalar(value, len(value) if isinstance(value, str) else 0)
    if isinstance(value, dict):
        return _join_parts([f"{quoted(key)}: {whole(each, indent + 1)}" for key, each in value.items()], value, indent)
    return _join_parts([whole(each, indent + 1) for each in value], value, indent)


def folded(value: Json) -> str:
    """Summarize a non-empty container: its size, its first names or the names in its first item."""
    if isinstance(value, dict):
        return f"{{… {_count(len(value), 'key')}{_list_names(value, _NAMES)}}}"
    first = _list_names(value[0], _NAMES) if isinstance(value[0], dict) else ""
    return f"[… {_count(len(value), 'item')}{first.replace(':', ', the first with', 1)}]"


def _join_parts(parts: list[str], value: Json, indent: int) -> str:
    left, right = ("{", "}") if isinstance(value, dict) else ("[", "]")
    if sum(map(len, parts)) + 2 * len(parts) <= _ONE_LINE and not any("\n" in part for part in parts):
        return left + ", ".join(parts) + right
    space = "  " * (indent + 1)
    lines = parts if isinstance(value, dict) else _pack_items(parts)
    return f"{left}\n{space}" + f",\n{space}".join(lines) + f"\n{space[2:]}{right}"


def _pack_items(parts: list[str]) -> list[str]:
    lines: list[str] = []
    is_packing = False
    for part in parts:
        is_short = len(part) <= _ONE_LINE // 3 and part[-1] not in "]}"
        if lines and is_short and is_packing and len(lines[-1]) + len(part) < _ONE_LINE:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
        is_packing = is_short
    return lines


def _list_names(names: Iterable[str], limit: int) -> str:
    shown: list[str] = []
    for name in islice(names, limit // 3):
        text = scalar(name, _NAME)
        limit -= len(text) + 2
        if limit < 5:
            return f": {', '.join(shown)}, …" if shown else ""
        shown.append(text)
    return f": {', '.join(shown)}" if shown else ""


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
