"""The text of a view: JSON with marks for omitted parts.

Every text and every key of the state is in JSON quotes; a mark begins with "…" outside of quotes. So nothing in a
state can pass for a mark, and each mark states how much it omits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from json.encoder import encode_basestring
from typing import Any

from ...state import Json
from .outline import Node

_ONE_LINE = 100
_NAMES = 80
_NAME = 60
_GAP = 40
"""Characters that the mark of a gap in a list may take, besides the indent."""

_CLOSING = 70
"""Characters that the mark for a container's omitted part may take, without the names in it."""

_ODD = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that break lines or cannot be sent as UTF-8."""


def quoted(text: str) -> str:
    """Return the text as JSON, always on one line."""
    return _escape(encode_basestring(text))


def compact(value: Json) -> str:
    """Return the whole value in as few characters as possible."""
    return _escape(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def cut(text: str, limit: int) -> str:
    """Return the text in quotes; about `limit` characters of a longer one, from its start and its end."""
    if len(text) <= limit:
        return quoted(text)
    head, tail = limit * 2 // 3, limit // 3
    left = f"… {len(text) - head - tail:,} of {len(text):,} characters left out …"
    return f"{quoted(text[:head])} {left} {quoted(text[len(text) - tail :])}"


def scalar(value: Json, limit: int) -> str:
    """Format a scalar or an empty container."""
    return cut(value, limit) if isinstance(value, str) else json.dumps(value)


def whole(value: Json, indent: int = 0) -> str:
    """Return the whole value, short parts on one line."""
    if not isinstance(value, (dict, list)):
        return scalar(value, len(value) if isinstance(value, str) else 0)
    if not value:
        return "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, dict):
        parts = [f"{quoted(key)}: {whole(value[key], indent + 1)}" for key in value]
    else:
        parts = [whole(item, indent + 1) for item in value]
    return _join_parts(parts, value, indent)


def folded(value: Json) -> str:
    """Summarize a non-empty container: its size, its first names or the shape of its items."""
    if isinstance(value, dict):
        return f"{{… {_count(len(value), 'key')}{_list_names(value, _NAMES)}}}"
    first = _list_names(value[0], _NAMES) if isinstance(value[0], dict) else ""
    return f"[… {_count(len(value), 'item')}{first.replace(':', ', the first with', 1)}]"


class Drawing:
    """The shown parts of a state, within a number of characters.

    Attributes:
        room: Characters that are left.
        floor: Characters of these that are reserved.
        refused: How often something did not fit.
    """

    def __init__(self, root: Node, room: int) -> None:
        self.room = room
        self.floor = 0
        self.refused = 0
        self._root = root
        self._entries: dict[int, dict[Any, str]] = {}
        self._whole: dict[int, str] = {}
        self._names: dict[int, int] = {}

    def is_open(self, node: Node) -> bool:
        """Return True where entries of the container are shown, if not all of it."""
        return node.index in self._entries or self.is_whole(node)

    def is_whole(self, node: Node) -> bool:
        """Return True where all of the container is shown."""
        return bool(self._whole) and any(above.index in self._whole for above in node.way())

    def open(self, node: Node, *, names: int = _NAMES) -> bool:
        """Show the container, with the names of its omitted parts; False if it does not fit."""
        if self.is_whole(node):
            return True
        names = _names_size(node, names)
        closed = [above for above in node.way() if above.index not in self._entries]
        if not self._pay(sum(map(self._opening, closed)) + max(0, names - self._names.get(node.index, 0))):
            return not closed
        for above in closed:
            self._entries[above.index] = {}
            self._enter(above)
        self._names[node.index] = max(names, self._names.get(node.index, 0))
        return True

    def show(self, node: Node, key: Any, *, limit: int) -> bool:
        """Show one entry: a container folded, about `limit` characters of a text; False if it does not fit."""
        if key in self._entries.get(node.index, ()):
            return True
        if not self.open(node, names=0):
            return False
        if self.is_whole(node):
            return True
        text = folded(node.kids[key].value) if key in node.kids else scalar(node.value[key], limit)
        gap = _GAP + 2 * node.depth if isinstance(key, int) and key - 1 not in self._entries[node.index] else 0
        if not self._pay(_line(node, key) + gap + len(text)):
            return False
        self._entries[node.index][key] = text
        return True

    def lengthen(self, node: Node) -> None:
        """Use the remaining room for those texts of the container that are shown cut."""
        for key, shown in list(self._entries.get(node.index, {}).items()):
            value = None if key in node.kids else node.value[key]
            if isinstance(value, str) and len(shown) < len(value):
                space = max(0, len(shown) + self.room - self.floor - _CLOSING)
                more = scalar(value, space * len(value) // len(quoted(value)))  # line breaks take two characters
                if len(shown) < len(more) and self._pay(len(more) - len(shown)):
                    self._entries[node.index][key] = more

    def show_whole(self, node: Node) -> bool:
        """Show all of the container; False if it does not fit."""
        if self.is_whole(node):
            return True
        text = whole(node.value, node.depth)
        if len(text) > self.room - self.floor or (node.parent and not self.open(node.parent, names=0)):
            self.refused += 1
            return False
        if not self._pay(len(text) + _entry(node)):
            return False
        self._whole[node.index] = text
        self._enter(node)
        return True

    def text(self) -> str:
        """Return the view."""
        return self._draw(self._root)

    def shows(self, path: Sequence[str]) -> bool:
        """Return True where all of the value at a path that exists is shown."""
        node = self._root
        for token in path:
            key = int(token) if isinstance(node.value, list) else token
            if self.is_whole(node) or key not in node.kids:
                return self.is_whole(node) or self._shows_scalar(node, key)
            if key not in self._entries.get(node.index, ()):
                return False
            node = node.kids[key]
        return self._shows_all(node)

    def _shows_all(self, node: Node) -> bool:
        return self.is_whole(node) or all(
            self._shows_all(node.kids[key]) if key in node.kids else self._shows_scalar(node, key) for key in node.keys
        )

    def _shows_scalar(self, node: Node, key: Any) -> bool:
        return self._entries.get(node.index, {}).get(key) == whole(node.value[key])

    def _pay(self, cost: int) -> bool:
        if cost > self.room - self.floor:
            self.refused += 1
            return False
        self.room -= cost
        return True

    def _opening(self, node: Node) -> int:
        return 4 * node.depth + _CLOSING + _entry(node)

    def _enter(self, node: Node) -> None:
        if node.parent:
            self._entries[node.parent.index].setdefault(node.key, "")

    def _draw(self, node: Node) -> str:
        if node.index in self._whole:
            return self._whole[node.index]
        if node.index not in self._entries:
            return folded(node.value)
        shown = self._entries[node.index]
        if isinstance(node.value, dict):
            parts = [f"{quoted(key)}: {self._part(node, key)}" for key in node.keys if key in shown]
            left = [key for key in node.keys if key not in shown]
            return _join_parts(
                parts + _rest(left, len(node.keys), self._names.get(node.index, 0)), node.value, node.depth
            )
        return _join_parts(self._items(node, sorted(shown)), node.value, node.depth)

    def _items(self, node: Node, shown: list[int]) -> list[str]:
        parts, count = [], len(node.keys)
        for before, index in zip([-1, *shown], [*shown, count], strict=True):
            if index - before > 1:
                parts.append(_gap(before + 1, index - 1, count))
            if index < count:
                parts.append(f"{index}: {self._part(node, index)}" if len(shown) < count else self._part(node, index))
        return parts

    def _part(self, node: Node, key: Any) -> str:
        return self._draw(node.kids[key]) if key in node.kids else self._entries[node.index][key]


def _names_size(node: Node, limit: int) -> int:
    if not limit or not isinstance(node.value, dict):
        return 0
    size = 0
    for key in node.value:
        size += min(len(key), _NAME) + 4
        if size >= limit:
            return limit
    return size


def _escape(text: str) -> str:
    return _ODD.sub(lambda odd: f"\\u{ord(odd[0]):04x}", text) if not text.isascii() or "\x7f" in text else text


def _line(node: Node, key: Any) -> int:
    """Return a line's characters besides its value: the indent, the key or index, a comma."""
    return 2 * node.depth + 6 + len(quoted(key) if isinstance(key, str) else str(key))


def _entry(node: Node) -> int:
    return _line(node.parent, node.key) + 2 * node.depth + _GAP if node.parent else 0


def _join_parts(parts: list[str], value: Json, indent: int) -> str:
    left, right = ("{", "}") if isinstance(value, dict) else ("[", "]")
    if sum(map(len, parts)) + 2 * len(parts) <= _ONE_LINE and not any("\n" in part for part in parts):
        return left + ", ".join(parts) + right
    space = "  " * (indent + 1)
    lines = parts if isinstance(value, dict) else _pack_items(parts)
    return f"{left}\n{space}" + f",\n{space}".join(lines) + f"\n{space[2:]}{right}"


def _pack_items(parts: list[str]) -> list[str]:
    lines: list[str] = []
    packing = False
    for part in parts:
        short = len(part) <= _ONE_LINE // 3 and part[-1] not in "]}"
        if lines and short and packing and len(lines[-1]) + len(part) < _ONE_LINE:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
        packing = short
    return lines


def _rest(left: list[str], count: int, names: int) -> list[str]:
    if not left:
        return []
    if len(left) == count:
        return [f"… {_count(count, 'key')}{_list_names(left, names)}"]
    return [f"… {len(left):,} more {'key' if len(left) == 1 else 'keys'} (of {count:,}){_list_names(left, names)}"]


def _gap(first: int, last: int, count: int) -> str:
    span = f"item {first}" if first == last else f"items {first} to {last}"
    return f"… {span} (of {count})"


def _list_names(names: Iterable[str], limit: int) -> str:
    shown: list[str] = []
    for name in islice(names, limit // 3):
        text = cut(name, _NAME)
        limit -= len(text) + 2
        if limit < 5:
            return f": {', '.join(shown)}, …" if shown else ""
        shown.append(text)
    return f": {', '.join(shown)}" if shown else ""


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
