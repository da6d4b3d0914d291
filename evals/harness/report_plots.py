"""Plots as inline SVG: bars and lines with whiskers. Colours come from the page, so that they suit light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from math import ceil, floor, isfinite, log10

from .cells import format_cell, format_interval, format_number, format_tick, significant
from .figures import Bars, Lines, Measured, Published
from .statistics import exponent

WIDTH = 760
COLOURS = 8

_BAR, _GAP, _CHAR = 15, 12, 6.4
_LABEL_CHARS = 34
_LEFT, _BOTTOM, _TOP, _RIGHT = 62, 44, 10, 18
_HEIGHT = 320


def bars(figure: Bars) -> str:
    """Draw horizontal bars, grouped by category, each with its whisker and its value."""
    values = [cell for cells in figure.series.values() for cell in cells if cell is not None and isfinite(cell.value)]
    label = min(_LABEL_CHARS, max(map(len, figure.categories), default=0)) * _CHAR + 12
    scale = _Scale(0, _top(values), label, WIDTH - 150)
    group = len(figure.series) * _BAR + _GAP
    height = len(figure.categories) * group + 24
    form = values[0].form if values else "number"
    parts = [_grid_x(scale, height - 22, [(tick, format_tick(tick, form)) for tick in scale.ticks()])]
    for row, category in enumerate(figure.categories):
        top = row * group + _GAP / 2
        middle = top + len(figure.series) * _BAR / 2
        shown = category if len(category) <= _LABEL_CHARS else f"{category[: _LABEL_CHARS - 1]}…"
        parts.append(_text(label - 8, middle + 4, shown, "end", whole=category))
        for number, (name, cells) in enumerate(figure.series.items()):
            parts.append(_bar(cells[row], scale, top + number * _BAR, number, f"{name}, {category}"))
    published = [any(isinstance(cell, Published) for cell in cells) for cells in figure.series.values()]
    return _svg(height, parts) + _legend(list(figure.series), published)


def _bar(cell: Measured | Published | None, scale: _Scale, y: float, number: int, name: str) -> str:
    if cell is None or not isfinite(cell.value):
        return ""
    x, end = scale(min(0.0, cell.value)), scale(max(0.0, cell.value))
    kind = "published" if isinstance(cell, Published) else "bar"
    drawn = (
        f'<rect class="{kind} c{number % COLOURS}" x="{x:.1f}" y="{y:.1f}" width="{max(end - x, 1):.1f}" height="11"/>'
    )
    far = end
    if isinstance(cell, Measured) and isfinite(cell.low) and isfinite(cell.high):
        low, far = scale(cell.low), max(end, scale(cell.high))
        drawn += f'<path class="whisker" d="M{low:.1f} {y + 5.5:.1f}H{scale(cell.high):.1f}"/>'
    value = format_number(cell.value, cell.form)
    return f"<g>{_title(f'{name}: {format_cell(cell)}')}{drawn}{_text(far + 5, y + 9.5, value, 'start')}</g>"


def lines(figure: Lines) -> str:
    """Draw points joined by lines; on logarithmic axes the legend names each series' exponent."""
    points = [(x, cell) for each in figure.series.values() for x, cell in each if _drawable(x, cell, log=figure.log)]
    if not points:
        return '<p class="none">nothing to draw</p>'
    ends = [end for _, cell in points for end in _ends(cell, log=figure.log)]
    across = _Scale.around([x for x, _ in points], _LEFT, WIDTH - _RIGHT, log=figure.log)
    up = _Scale.around(ends, _HEIGHT - _BOTTOM, _TOP, log=figure.log)
    form = points[0][1].form
    parts = [
        _grid_x(across, _HEIGHT - _BOTTOM, [(tick, format_tick(tick, "number")) for tick in across.ticks()], top=_TOP),
        _grid_y(up, [(tick, format_tick(tick, form)) for tick in up.ticks()]),
        _text((_LEFT + WIDTH - _RIGHT) / 2, _HEIGHT - 6, figure.x, "middle"),
    ]
    for number, (name, each) in enumerate(figure.series.items()):
        kept = [(x, cell) for x, cell in each if _drawable(x, cell, log=figure.log)]
        parts.append(_line(name, kept, across, up, number, log=figure.log))
    named = [f"{name}{_growth(each)}" if figure.log else name for name, each in figure.series.items()]
    published = [any(isinstance(cell, Published) for _, cell in each) for each in figure.series.values()]
    return f'<p class="axis">{escape(figure.y)}</p>' + _svg(_HEIGHT, parts) + _legend(named, published)


def _line(
    name: str,
    points: Sequence[tuple[float, Measured | Published]],
    across: _Scale,
    up: _Scale,
    number: int,
    *,
    log: bool,
) -> str:
    colour = f"c{number % COLOURS}"
    path = " ".join(f"{across(x):.1f},{up(cell.value):.1f}" for x, cell in points)
    kind = "line published" if any(isinstance(cell, Published) for _, cell in points) else "line"
    drawn = [f'<polyline class="{kind} {colour}" points="{path}"/>']
    for x, cell in points:
        low, high = (up(end) for end in _ends(cell, log=log))
        drawn.append(
            f"<g>{_title(f'{name}, {significant(x)}: {format_cell(cell)}')}"
            f'<path class="whisker" d="M{across(x):.1f} {low:.1f}V{high:.1f}"/>'
            f'<circle class="{colour}" cx="{across(x):.1f}" cy="{up(cell.value):.1f}" r="3.5"/></g>'
        )
    return "".join(drawn)


def _growth(points: Sequence[tuple[float, Measured | Published]]) -> str:
    slope = exponent([(x, cell.value) for x, cell in points])
    if not isfinite(slope.value):
        return ""
    interval = Measured(slope.value, slope.low, slope.high, len(points), "none")
    text = f"{slope.value:.2f} {format_interval(interval)}".strip()
    return f": grows with x to the power of {text}, {len(points)} points"


def _drawable(x: float, cell: Measured | Published, *, log: bool) -> bool:
    return isfinite(x) and isfinite(cell.value) and not (log and (x <= 0 or cell.value <= 0))


def _ends(cell: Measured | Published, *, log: bool) -> tuple[float, float]:
    if isinstance(cell, Published) or not (isfinite(cell.low) and isfinite(cell.high)):
        return cell.value, cell.value
    return (max(cell.low, cell.value / 10) if log else cell.low), cell.high


def _top(values: Iterable[Measured | Published]) -> float:
    tops = [each.value for each in values] + [each.high for each in values if isinstance(each, Measured)]
    top = max((top for top in tops if isfinite(top)), default=1.0)
    return 1.0 if any(each.form == "percent" for each in values) and top <= 1 else top or 1.0


class _Scale:
    """From values to pixels."""

    def __init__(self, low: float, high: float, start: float, end: float, *, log: bool = False) -> None:
        self._low, self._high, self._log = low, high, log
        self._start, self._end = start, end

    @classmethod
    def around(cls, values: Sequence[float], start: float, end: float, *, log: bool) -> _Scale:
        """Return a scale that holds the values with a little room; a linear one begins at 0 where they are near it."""
        low, high = min(values), max(values)
        if log:
            return cls(log10(low) - 0.05, log10(high) + 0.05, start, end, log=True)
        low = 0.0 if 0 <= low < high * 0.6 else low
        room = (high - low or abs(high) or 1.0) * 0.05
        return cls(low - (room if low else 0), high + room, start, end)

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        at = log10(value) if self._log else value
        span = self._high - self._low or 1.0
        return self._start + (at - self._low) / span * (self._end - self._start)

    def ticks(self) -> list[float]:
        """Return round values within the scale."""
        if self._log:
            steps = (1, 2, 5) if self._high - self._low < 2.2 else (1,)
            apart = ceil((self._high - self._low) / 10)
            tens = range(floor(self._low), ceil(self._high) + 1, apart)
            made = [step * 10.0**ten for ten in tens for step in steps]
            return [tick for tick in made if tick and self._low <= log10(tick) <= self._high]
        rough = (self._high - self._low) / 5 or 1.0
        ten = 10.0 ** floor(log10(rough))
        step = next(each * ten for each in (1, 2, 5, 10) if each * ten >= rough * 0.999)
        return [number * step for number in range(ceil(self._low / step), floor(self._high / step + 1e-6) + 1)]


def _grid_x(scale: _Scale, bottom: float, ticks: Iterable[tuple[float, str]], *, top: float = 0) -> str:
    return "".join(
        f'<path class="grid" d="M{scale(at):.1f} {top}V{bottom:.1f}"/>{_text(scale(at), bottom + 15, label, "middle")}'
        for at, label in ticks
    )


def _grid_y(scale: _Scale, ticks: Iterable[tuple[float, str]]) -> str:
    return "".join(
        f'<path class="grid" d="M{_LEFT} {scale(at):.1f}H{WIDTH - _RIGHT}"/>'
        f"{_text(_LEFT - 6, scale(at) + 4, label, 'end')}"
        for at, label in ticks
    )


def _text(x: float, y: float, text: str, anchor: str, *, whole: str = "") -> str:
    title = _title(whole) if whole and whole != text else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}{title}</text>'


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _svg(height: float, parts: Iterable[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" role="img">{"".join(parts)}</svg>'


def _legend(names: Sequence[str], published: Sequence[bool]) -> str:
    if len(names) == 1 and ": " not in names[0]:
        return ""
    return f'<p class="legend">{"".join(_entries(names, published))}</p>'


def _entries(names: Sequence[str], published: Sequence[bool]) -> Iterator[str]:
    for number, (name, is_published) in enumerate(zip(names, published, strict=True)):
        kind = "published " if is_published else ""
        yield f'<span><i class="{kind}c{number % COLOURS}"></i>{escape(name)}</span>'
