"""Formatters of measured values, for the terminal, Markdown and HTML."""

from __future__ import annotations

from math import isfinite, isnan

from .figures import Cell, Form, Measured, Published

_UNITS = {"percent": " %", "number": "", "seconds": " s", "dollars": " $", "bytes": " B"}


def format_cell(cell: Cell) -> str:
    """Format a cell in one line: the value, its interval, and its n."""
    if cell is None:
        return ""
    if isinstance(cell, Measured):
        return format_measured(cell)
    if isinstance(cell, Published):
        return f"{format_number(cell.value, cell.form)} ({cell.source})"
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)


def format_measured(cell: Measured) -> str:
    """Format value, interval and n: `97.5 % [95.4, 98.7] 390/400`, `3.20 s [2.90, 3.50] n=40`, `3.20 s n=1`."""
    if cell.n == 0:
        return "none n=0"
    return " ".join(filter(None, [format_number(cell.value, cell.form), format_interval(cell), format_count(cell)]))


def format_count(cell: Measured) -> str:
    """Format the number of cases: hits of n for a rate."""
    return f"{cell.hits:,}/{cell.n:,}" if cell.hits is not None else f"n={cell.n:,}"


def format_interval(cell: Measured) -> str:
    """Format the interval in brackets; empty for a single value, which has none."""
    if not (isfinite(cell.low) and isfinite(cell.high)):
        return ""
    low, high = (format_number(end, cell.form, unit=False) for end in (cell.low, cell.high))
    return f"[{low}, {high}]"


def format_number(value: float, form: Form, *, unit: bool = True) -> str:
    """Format a number in its form; NaN is `none`."""
    if isnan(value):
        return "none"
    text = f"{100 * value:.1f}" if form == "percent" else significant(value)
    return text + (_UNITS[form] if unit else "")


def format_tick(value: float, form: Form) -> str:
    """Format a round value of an axis."""
    number = 100 * value if form == "percent" else value
    return (f"{number:,.0f}" if 1e4 <= abs(number) < 1e9 else f"{number:g}") + _UNITS[form]


def significant(value: float) -> str:
    """Format two or three significant digits, without an exponent where a reader does not need one."""
    size = abs(value)
    if value == 0 or not isfinite(value):
        return "0" if value == 0 else str(value)
    if size >= 1000:
        return f"{value:,.0f}" if size < 1e9 else f"{value:.3g}"
    if size < 0.1:  # by decimals, 0.0015 would be written as 0.002
        return f"{value:.2g}"
    digits = 2 if size >= 1 else 3
    return f"{value:.{max(0, digits - (size >= 10) - (size >= 100))}f}"
