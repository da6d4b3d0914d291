"""Texts that match a pattern, written along the pattern's tree."""

from __future__ import annotations

from collections.abc import Iterable

from ..schemas.pattern import Pattern
from ..schemas.pattern_syntax import Chars, Choice, Node, Repeat, Sequence
from .dice import Dice

TRIES = 8
MAX_LENGTH = 10_000

_LIKED = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OTHERS = "-_.@/:+#, éßøñçλжя中あ١"


def spell(pattern: Pattern, dice: Dice, *, least: int = 0, most: int | None = None) -> str | None:
    """Return a text of `least` to `most` characters that the pattern accepts; None where none was found.

    Look-aheads are skipped and the result is tested, so not every such pattern succeeds.
    """
    for extra in range(TRIES if least < 200 else 2):
        text = _write(pattern.tree, dice, extra)
        if len(text) < least:
            text = _write(pattern.tree, dice, least - len(text))
        text = _lengthen(text, dice, least, pattern)
        if least <= len(text) <= (MAX_LENGTH if most is None else most) and pattern.matches(text):
            return text
    return None


def _lengthen(text: str, dice: Dice, least: int, pattern: Pattern) -> str:
    missing = least - len(text)
    if missing <= 0:
        return text
    filling = dice.letters(missing, _LIKED[:26])
    return next((longer for longer in (text + filling, filling + text) if pattern.matches(longer)), text)


def _write(node: Node, dice: Dice, extra: int) -> str:
    if isinstance(node, Chars):
        return _pick_char(node, dice)
    if isinstance(node, Choice):
        return _write(dice.pick(node.options), dice, extra)
    if isinstance(node, Repeat):
        most = node.least + 2 + extra if node.most is None else min(node.most, node.least + 2 + extra)
        count = min(dice.between(min(node.least + min(extra, 1), most), most), MAX_LENGTH)
        return _write_all((node.part for _ in range(count)), dice, extra // max(count, 1))
    # an edge or a look-ahead matches without a character
    return _write_all(node.parts, dice, extra) if isinstance(node, Sequence) else ""


def _write_all(parts: Iterable[Node], dice: Dice, extra: int) -> str:
    out = ""
    for part in parts:
        out += _write(part, dice, extra)
        if len(out) > MAX_LENGTH:
            break
    return out


def _pick_char(chars: Chars, dice: Dice) -> str:
    liked = [char for char in _LIKED if char in chars] or [char for char in _OTHERS if char in chars]
    if liked:
        return dice.pick(liked)
    low, high = dice.pick(chars.ranges) if chars.ranges and not chars.negated else (33, 126)
    return next((char for code in range(low, min(high, low + 500) + 1) if (char := chr(code)) in chars), "?")
