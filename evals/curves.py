"""Draw the curves of RESULTS.md from the reports' tables: `python -m evals.curves`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path
from xml.sax.saxutils import escape

REPORTS = Path(__file__).with_name("reports")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, LINE = 640, 300, 56, 200, 44, 44, 15
COLOURS = ("#2f6fde", "#d9622b", "#3a9a5b", "#8a5bc7")
STYLE = """text { font: 12px sans-serif; fill: #333 } .title { font-size: 14px; font-weight: 600 }
.grid { stroke: #ddd } @media (prefers-color-scheme: dark) { text { fill: #ddd } .grid { stroke: #444 } }"""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Curve:
    """One picture.

    Args:
        title: Its title.
        x: The name of the horizontal axis.
        ticks: Marked values on both axes: `(value, label)`.
        series: Points by the name at the end of their line.
        is_log: Whether both axes are logarithmic.
    """

    title: str
    x: str
    ticks: tuple[Sequence[tuple[float, str]], Sequence[tuple[float, str]]]
    series: dict[str, Points]
    is_log: bool = False

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return a point's position in the picture."""
        share = []
        for value, ticks in ((x, self.ticks[0]), (y, self.ticks[1])):
            low, high, at = ticks[0][0], ticks[-1][0], value
            if self.is_log:
                low, high, at = log10(low), log10(high), log10(at)
            share.append((at - low) / (high - low))
        return LEFT + share[0] * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - share[1] * (HEIGHT - TOP - BOTTOM)

    def parts(self) -> list[str]:
        """Return the picture as lines of SVG."""
        (across, up), first = self.ticks, (self.ticks[0][0][0], self.ticks[1][0][0])
        end = self.place(across[-1][0], up[-1][0])[0]
        parts = [f'<text class="title" x="{LEFT}" y="20">{escape(self.title)}</text>']
        for value, label in up:
            y = self.place(first[0], value)[1]
            parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{end:.1f}"/>')
            parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(label)}</text>')
        for value, label in across:
            x = self.place(value, first[1])[0]
            parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{escape(label)}</text>')
        parts.append(f'<text x="{LEFT}" y="{HEIGHT - 8}">{escape(self.x)}</text>')
        names: list[tuple[float, str, str]] = []
        for colour, (name, points) in zip(COLOURS, self.series.items(), strict=False):
            placed = [self.place(*point) for point in points]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in placed]
            names.append((placed[-1][1], name, colour))
        free = float(HEIGHT)
        for y, name, colour in sorted(names, reverse=True):
            free = min(y + 4, free - LINE)
            parts.append(f'<text x="{end + 10:.1f}" y="{free:.1f}" style="fill:{colour}">{escape(name)}</text>')
        return parts


def svg(panels: Sequence[Curve]) -> str:
    """Return pictures in rows of two as one SVG."""
    width, height = WIDTH * min(2, len(panels)), HEIGHT * -(-len(panels) // 2)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">', f"<style>{STYLE}</style>"]
    for number, panel in enumerate(panels):
        place = f"translate({number % 2 * WIDTH} {number // 2 * HEIGHT})"
        lines += [f'<g transform="{place}">', *panel.parts(), "</g>"]
    return "\n".join([*lines, "</svg>\n"])


def rows(report: str, pattern: str) -> list[list[str]]:
    """Return the cells of a report's table rows that match a pattern.

    Raises:
        LookupError: No row matches.
    """
    lines = (REPORTS / f"{report}.md").read_text(encoding="utf-8").splitlines()
    found = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines if re.match(pattern, line)]
    if not found:
        raise LookupError(f"{report}.md has no row {pattern}")
    return found


def number(cell: str) -> float:
    found = re.search(r"\d[\d,]*\.?\d*", cell)
    return float(found[0].replace(",", "")) if found else 0.0


def gate(errs: str) -> Curve:
    """Return wrong writes that are not made by right writes that a person is asked about, at an error rate."""
    series: dict[str, Points] = {}
    for kind, name in (("the call alone", "alone"), ("with evidence", "contracts first")):
        bands = [list(map(number, row[3:])) for row in rows("policy", rf"\| {errs} \| .* \| {kind} \|")]
        series[f"{name}: refused"] = [(asked, stopped) for stopped, _, _, _, asked, _ in bands]
        series[f"{name}: refused or asked"] = [(asked, stopped + more) for stopped, more, _, _, asked, _ in bands]
    ticks = percents(100, 25), percents(100, 25)
    return Curve(f"Wrong writes not made; the model errs at {errs} (policy)", "right writes asked about", ticks, series)


def curves() -> dict[str, list[Curve]]:
    """Return the pictures by file name, each with its panels."""
    retries = [(number(row[0]), number(row[1])) for row in rows("bfcl", r"\| \d retr")]
    sizes = [list(map(number, row)) for row in rows("speed", r"\| 1(0|00|,000) \|(.* s \|){2}(.* MB \|){2}$")[:3]]
    tasks, turns = r"\| BFCL, all \| held out \| ", r"\| BFCL, people's turns, all \| held out \| "
    tools = {
        "ours, held-out tasks": rows("retrieval", tasks + "ToolIndex, weights chosen")[0],
        "plain BM25": rows("retrieval", tasks + "bm25s")[0],
        "plain BM25, people's words": rows("retrieval", turns + "bm25s")[0],
        "ours, people's words": rows("retrieval", turns + "ToolIndex, weights chosen")[0],
    }
    decades = [(0.01, "0.01"), (0.1, "0.1"), (1.0, "1"), (10.0, "10"), (100.0, "100")]
    retry = Curve(
        "Officially valid tasks, each first attempt spoilt (bfcl)",
        "retries",
        ([(n, str(n)) for n in range(4)], percents(100, 25)),
        {"with state and feedback": retries},
    )
    cost = Curve(
        "Cost of one attempt (speed)",
        "tool calls",
        ([*decades[3:], (1000.0, "1,000")], decades),
        {"s of processor time": [(n, s) for n, s, *_ in sizes], "MB checkpointed": [(n[0], n[4]) for n in sizes]},
        is_log=True,
    )
    retrieval = Curve(
        "Right tools among the first k (retrieval)",
        "k",
        ([(1, "1"), (5, "5"), (10, "10")], percents(100, 25)),
        {name: [(k, number(row[at])) for k, at in ((1, 3), (5, 4), (10, 5))] for name, row in tools.items()},
    )
    gates = [gate(errs) for errs in ("5%", "10%", "20%", "30%")]
    return {"retries": [retry], "cost": [cost], "retrieval": [retrieval], "gate": gates}


def percents(last: int, step: int) -> list[tuple[float, str]]:
    """Return the ticks from 0 % to `last`."""
    return [(value, f"{value} %") for value in range(0, last + 1, step)]


if __name__ == "__main__":
    for name, panels in curves().items():
        (REPORTS / f"{name}.svg").write_text(svg(panels), encoding="utf-8")
