"""Texts that match a pattern, written along Python's own parse of it; `rstr` picks differently in every process."""

from __future__ import annotations

from re import _parser, error, escape  # type: ignore[attr-defined]
from typing import Any

import regex

from ..pattern import Pattern
from .dice import Dice

TRIES = 8
MAX_LENGTH = 10_000

_LIKED = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OTHERS = "-_.@/:+#, éßøñçλжя中あ١"


def spell(pattern: Pattern, dice: Dice, *, least: int = 0, most: int | None = None) -> str | None:
    """Return a text of `least` to `most` characters that the pattern accepts; None where no try finds one."""
    try:  # Python's parser knows no Unicode properties: some of their characters take their place
        tree = _parser.parse(regex.sub(r"\\[pP](?:\{[\w=]+\}|\w)", _list_liked, pattern.translated))
    except (error, RecursionError):
        return None
    for extra in range(TRIES if least < 200 else 2):
        text = _write(tree, dice, extra)
        if len(text) < least:
            text = _write(tree, dice, least - len(text))
        if len(text) < least:
            filling = dice.letters(least - len(text), _LIKED[:26])
            text = text + filling if pattern.matches(text + filling) else filling + text
        if least <= len(text) <= (MAX_LENGTH if most is None else most) and pattern.matches(text):
            return text
    return None


def _list_liked(found: Any) -> str:
    return "".join(escape(char) for char in _LIKED + _OTHERS if regex.match(found[0], char)) or r"\x00"


def _write(nodes: Any, dice: Dice, extra: int) -> str:
    out = ""
    for kind, value in nodes:
        if kind in (_parser.MAX_REPEAT, _parser.MIN_REPEAT):
            least, most, part = value
            most = min(most, least + 2 + extra)
            count = dice.between(min(least + min(extra, 1), most), most)
            for _ in range(count):
                out += _write(part, dice, extra // count) if len(out) <= MAX_LENGTH else ""
        elif kind in (_parser.SUBPATTERN, _parser.BRANCH):
            out += _write(dice.pick(value[1]) if kind is _parser.BRANCH else value[-1], dice, extra)
        elif kind is _parser.LITERAL:
            out += chr(value)
        elif kind in (_parser.IN, _parser.NOT_LITERAL):
            out += _pick_char(value if kind is _parser.IN else [(_parser.NEGATE, None), (kind, value)], dice)
    return out


def _pick_char(members: Any, dice: Dice) -> str:
    negated = members[0][0] is _parser.NEGATE
    spans = [span if kind is _parser.RANGE else (span, span) for kind, span in members[negated:]]
    low, high = (33, 126) if negated else dice.pick(spans)
    for chars in (_LIKED, _OTHERS, map(chr, range(low, min(high, low + 500) + 1))):
        if fitting := [char for char in chars if any(low <= ord(char) <= high for low, high in spans) != negated]:
            return dice.pick(fitting)
    return "?"
