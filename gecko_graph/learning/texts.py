"""Texts with holes: what messages of one kind have in common, and which terms fill the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..values.observation import HOLE, kind_of
from ..values.places import as_text
from .terms import Term

__all__ = ["HOLE", "fit_text", "kind_of"]

MOST_HOLES = 6


def fit_text(seen: Mapping[int, str], terms: Sequence[Term]) -> tuple[str, list[Term]] | None:
    """Return a template that gives each of these texts, and the terms that fill its holes; None where there is none."""
    holes: list[tuple[Term, dict[int, str]]] = []
    for term in terms:
        if all(_show(term.values[row]) in text for row, text in seen.items()):
            shown = {row: _show(term.values[row]) for row in seen}
            holes += [(term, shown)] if len(set(shown.values())) > 1 else []
    holes = sorted(holes, key=lambda hole: (-sum(map(len, hole[1].values())), hole[0].cost))[:MOST_HOLES]
    if not holes:
        return None
    first = max(seen, key=lambda row: sum(len(shown[row]) > 1 for _, shown in holes))
    return _fill(first, seen, holes)


def _show(value: Any) -> str:
    return as_text(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else "\0"


def _fill(
    first: int, seen: Mapping[int, str], holes: Sequence[tuple[Term, dict[int, str]]]
) -> tuple[str, list[Term]] | None:
    pieces: list[str | int] = [seen[first]]
    for number, (_, shown) in enumerate(holes):
        split: list[str | int] = []
        for piece in pieces:
            parts = piece.split(shown[first]) if isinstance(piece, str) and shown[first] else [piece]
            split += [each for part in parts for each in (number, part)][1:]
        pieces = split
    for row, text in seen.items():
        if "".join(holes[piece][1][row] if isinstance(piece, int) else piece for piece in pieces) != text:
            return None
    used = [holes[piece][0] for piece in pieces if isinstance(piece, int)]
    said = "".join("{{ " + holes[piece][0].text + " }}" if isinstance(piece, int) else piece for piece in pieces)
    return (said, used) if used else None
