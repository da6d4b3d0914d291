"""The gate's curve as a picture: wrong writes that are prevented, by right writes that a person is asked about.

The SVG loads nothing, its texts are text elements, and its colours follow the reader's dark or light scheme.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape

WIDTH, SIDE, GAP, TOP, LEFT = 980, 180, 50, 112, 52
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f } .head { font-weight: 600 } .small { font-size: 11px }
.axis { stroke: #8c959f; fill: none } .grid { stroke: #8c959f; stroke-opacity: .3; fill: none }
.alone { stroke: #bc4c00; fill: none } .evidence { stroke: #0969da; fill: none }
circle.alone { fill: #bc4c00 } circle.evidence { fill: #0969da } .asked { stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 }
.alone { stroke: #f0883e } .evidence { stroke: #58a6ff }
circle.alone { fill: #f0883e } circle.evidence { fill: #58a6ff } }
"""
KINDS = {"alone": "the call alone", "evidence": "contracts first"}
LINES = {"": "refused", "asked": "refused, or a person is asked"}

Share = Callable[[str, float, tuple[float, float], str, str], float]
"""The share of `wrong` or `right` writes with an outcome, at an error rate and a band, `alone` or with `evidence`."""


def draw(share: Share, errors: Sequence[float], bands: Sequence[tuple[float, float]]) -> str:
    """Return the curves as SVG, with a panel per error rate and a point per band."""
    height = TOP + SIDE + 56
    heads = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="title">',
        '<title id="title">Wrong writes kept from being made, by right writes asked about</title>',
        f"<style>{STYLE}</style>",
    )
    panels = (
        line
        for number, errs in enumerate(errors)
        for line in _panel(LEFT + number * (SIDE + GAP), share, errs, bands, is_first=not number)
    )
    return "\n".join([*heads, *_legend(bands), *panels, "</svg>\n"])


def _legend(bands: Sequence[tuple[float, float]]) -> Iterator[str]:
    yield _text(LEFT, 18, "Wrong writes that are not made, by right writes that a person is asked about", "head")
    for row, (kind, name) in enumerate(KINDS.items()):
        for column, (style, how) in enumerate(LINES.items()):
            x, y = LEFT + column * 240, 38 + row * 18
            yield f'<path class="{kind} {style}" d="M{x} {y - 4}h28"/>'
            yield _text(x + 36, y, f"{name}: {how}")
    told = ", ".join(f"{low:g} to {high:g}" for low, high in bands)
    yield _text(LEFT, 74, f"A point is a band, from left to right: {told}.", "small")


def _panel(
    left: float, share: Share, errs: float, bands: Sequence[tuple[float, float]], *, is_first: bool
) -> Iterator[str]:
    bottom = TOP + SIDE
    yield _text(left, TOP - 8, f"the model errs at {errs:.0%}", "head")
    for part in (0, 0.25, 0.5, 0.75, 1):
        x, y = left + part * SIDE, bottom - part * SIDE
        yield f'<path class="{"grid" if part else "axis"}" d="M{left} {y:g}h{SIDE}M{x:g} {bottom}V{TOP}"/>'
        yield _text(x, bottom + 16, f"{part:.0%}", "small", anchor="middle")
        if is_first:
            yield _text(left - 6, y + 4, f"{part:.0%}", "small", anchor="end")
    yield _text(left + SIDE / 2, bottom + 36, "right writes asked about", anchor="middle")
    for kind in KINDS:
        for style in LINES:
            points = [
                (left + SIDE * share("right", errs, band, kind, "asked"), bottom - SIDE * sum(
                    share("wrong", errs, band, kind, word) for word in ("stopped", style) if word
                ))
                for band in bands
            ]  # fmt: skip
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            yield f'<polyline class="{kind} {style}" stroke-width="1.6" points="{line}"/>'
            yield from (f'<circle class="{kind}" stroke="none" cx="{x:.1f}" cy="{y:.1f}" r="2.4"/>' for x, y in points)


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{style}" text-anchor="{anchor}">{escape(text)}</text>'
