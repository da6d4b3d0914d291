"""Parse the keys by which clients write members of a list or an object: `a[0]`, `a[]`, `a[b][c]`, `a.b`, `a[][b]`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(r"\[([^\[\]]*)\]|\.([^.\[\]]+)")
MAX_DEPTH = 64


class TwoWays(ValueError):
    """Contradictory keys (a text and members under one name), or too many levels."""


@dataclass(slots=True)
class SpelledNode:
    """The content under one key: texts, members by name, or unnumbered items."""

    texts: list[str] = field(default_factory=list)
    members: dict[str, SpelledNode] = field(default_factory=dict)
    items: list[SpelledNode] = field(default_factory=list)

    @classmethod
    def of(cls, stem: str, named: Iterable[tuple[str, Sequence[str]]]) -> SpelledNode:
        """Return the content of all keys that begin with a stem. Raises TwoWays."""
        root = cls()
        for key, texts in named:
            tokens = tokens_of(key, stem)
            for text in texts if tokens is not None else ():
                root._add(tokens or [], text)
        return root

    def _add(self, tokens: list[str], text: str) -> None:
        path = [self]
        for at, token in enumerate(tokens, 1):
            node = path[-1]
            # as Rails reads it: a repeated member begins the next item
            if not token and (not node.items or at == len(tokens) or node.items[-1]._has(tokens[at:])):
                node.items.append(SpelledNode())
            path.append(node.members.setdefault(token, SpelledNode()) if token else node.items[-1])
        path[-1].texts.append(text)
        if len(tokens) > MAX_DEPTH or any(sum(map(bool, (one.texts, one.members, one.items))) > 1 for one in path):
            raise TwoWays

    def _has(self, tokens: Sequence[str]) -> bool:
        node: SpelledNode | None = self
        for token in tokens:
            node = node.members.get(token) if node else None
        return node is not None


def tokens_of(key: str, stem: str) -> list[str] | None:
    rest = key[len(stem) :]
    found = [*_TOKEN.finditer(rest)]
    if not key.startswith(stem) or "".join(each[0] for each in found) != rest:
        return None
    return [each[1] if each[2] is None else each[2] for each in found]
