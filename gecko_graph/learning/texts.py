"""Texts with holes: what messages of one kind have in common, and which terms fill the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..state import Json
from ..values.places import as_text
from .terms import MISSING, Term

HOLE = "…"
_PARTS = re.compile(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|-?\d+(?:\.\d+)?|[\w@.-]+|\s+|.", re.DOTALL)
_LOOSE = re.compile(r"^(?:'.*'|\".*\"|\[.*\]|-?\d+(?:\.\d+)?)$", re.DOTALL)
MOST_HOLES = 6


def kind_of(error: Json, args: dict[str, Any]) -> str:
    """Return a text that errors of one kind share: without quoted parts, numbers and the call's own arguments."""
    text = as_text(error)
    for value in sorted(
        (str(each) for each in args.values() if isinstance(each, str | int | float)), key=len, reverse=True
    ):
        if len(value) > 2 or not value.isalnum():
            text = text.replace(value, HOLE) if value else text
    inner = re.sub(r"'[^']*'|\[[^\]]*\]|\d+(?:\.\d+)?", HOLE, text)
    return re.sub(rf"{HOLE}(?:[\s,]*{HOLE})+", HOLE, inner)[:300]


def fit_text(texts: Sequence[str], terms: Sequence[Term]) -> str | None:
    """Return a template that gives each of these texts, its holes filled by terms; None where there is none."""
    holes = _candidates(texts, terms)
    if not holes:
        return None
    first = max(range(len(texts)), key=lambda row: sum(len(shown[row]) > 1 for _, shown in holes))
    for start in range(min(3, len(holes))):
        template = _fill(first, texts, holes[start:])
        if template is not None:
            return template
    return None


def _candidates(texts: Sequence[str], terms: Sequence[Term]) -> list[tuple[Term, list[str]]]:
    """Return the terms whose values stand in the texts, the longest values first."""
    found = []
    for term in terms:
        shown = [_show(value) for value in term.values]
        if (
            all(each is not None and each in text for each, text in zip(shown, texts, strict=True))
            and len(set(shown)) > 1
        ):
            found.append((term, [str(each) for each in shown]))
    found.sort(key=lambda pair: (-sum(map(len, pair[1])), pair[0].cost))
    return found[:MOST_HOLES]


def _show(value: Any) -> str | None:
    if value is MISSING or isinstance(value, bool | dict | list) or value is None:
        return None
    return as_text(value)


def _fill(first: int, texts: Sequence[str], holes: Sequence[tuple[Term, list[str]]]) -> str | None:
    pieces: list[tuple[str, int]] = [(texts[first], -1)]
    for number, (_, shown) in enumerate(holes):
        split: list[tuple[str, int]] = []
        for piece, hole in pieces:
            if hole >= 0 or not shown[first] or shown[first] not in piece:
                split.append((piece, hole))
                continue
            head, *tail = piece.split(shown[first])
            split.append((head, -1))
            for rest in tail:
                split += [("", number), (rest, -1)]
        pieces = split
    for row, text in enumerate(texts):
        if "".join(holes[hole][1][row] if hole >= 0 else piece for piece, hole in pieces) != text:
            return None
    return "".join("{{ " + holes[hole][0].text + " }}" if hole >= 0 else piece for piece, hole in pieces)


def loosen(texts: Sequence[str]) -> str:
    """Return what texts of one kind have in common, `…` in the place of what differs: enough to know it again."""
    parts = [_PARTS.findall(text) for text in texts]
    if len({len(each) for each in parts}) != 1:
        return _common_ends(texts)
    same = [column[0] if len(set(column)) == 1 else HOLE for column in zip(*parts, strict=True)]
    return re.sub(rf"{HOLE}+", HOLE, "".join(same))


def _common_ends(texts: Sequence[str]) -> str:
    head, tail = min(texts), min(each[::-1] for each in texts)
    while not all(each.startswith(head) for each in texts):
        head = head[:-1]
    while not all(each.endswith(tail[::-1]) for each in texts):
        tail = tail[:-1]
    shortest = min(map(len, texts)) - len(head)
    return head + HOLE + tail[: max(0, shortest)][::-1]
