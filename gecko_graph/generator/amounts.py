"""Numbers within bounds, on a step, and plausible for their field."""

from __future__ import annotations

import math
from fractions import Fraction

from ..schemas.formats import INTEGER_BITS
from ..state import Json, JsonObject
from .moments import examples_of
from .naming import is_identifier
from .plausible import Field, range_of

_FAR = 1 << 53


def number_in(schema: JsonObject, field: Field, *, whole: bool) -> int | float | None:
    """A number that fits the schema's bounds and step; None where there is none.

    Args:
        schema: A flat schema.
        field: What the number is for.
        whole: True for an integer.
    """
    low, high = _bounds(schema, whole=whole)
    likely = _within(_likely(schema, field), low, high)
    for step in _steps(schema, likely, whole=whole):
        for start, stop in (likely, (low, high)):
            first, last = math.ceil(start / step), math.floor(stop / step)
            for _ in range(3 if first <= last else 0):
                made = _written(field.dice.between(first, last) * step, whole=whole)
                if _is_inside(made, schema):
                    return made
    return None


def _bounds(schema: JsonObject, *, whole: bool) -> tuple[Fraction, Fraction]:
    bits = INTEGER_BITS.get(str(schema.get("format")), 54)
    edge = Fraction(min(_FAR, 1 << (bits - 1)) - 1)
    low = max((Fraction(str(schema[key])) for key in ("minimum", "exclusiveMinimum") if key in schema), default=None)
    high = min((Fraction(str(schema[key])) for key in ("maximum", "exclusiveMaximum") if key in schema), default=None)
    if low is None:
        low = -edge if high is None or high >= -edge else high - _FAR
    if high is None:
        high = edge if low <= edge else low + _FAR
    if whole:
        low += low == schema.get("exclusiveMinimum")
        high -= high == schema.get("exclusiveMaximum")
    return low, high


def _likely(schema: JsonObject, field: Field) -> tuple[Fraction, Fraction]:
    if is_identifier(field.name) and "code" not in field.name.lower():
        return Fraction(100_000), Fraction(999_999)
    shown = [value for value in examples_of(schema) if isinstance(value, int | float) and not isinstance(value, bool)]
    if shown and shown[0] > 1:
        return Fraction(str(shown[0])) / 2, Fraction(str(shown[0])) * 3 / 2
    low, high = range_of(field.name)
    return Fraction(low), Fraction(high)


def _within(likely: tuple[Fraction, Fraction], low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """The likely range as far as the bounds allow; beside the nearer bound where they do not meet."""
    start, stop = max(likely[0], low), min(likely[1], high)
    if start <= stop:
        return start, stop
    return (low, min(high, low + 100)) if likely[1] < low else (max(low, high - 100), high)


def _steps(schema: JsonObject, likely: tuple[Fraction, Fraction], *, whole: bool) -> list[Fraction]:
    if "multipleOf" in schema:
        step = Fraction(str(schema["multipleOf"]))
        return [Fraction(step.numerator)] if whole else [step]
    if whole:
        return [Fraction(1)]
    width = likely[1] - likely[0]
    fine = [Fraction(1, 100), Fraction(1, 10_000)]
    return [*fine, width / 7] if width else [*fine, likely[0]] if likely[0] > 0 else [*fine, Fraction(1)]


def _written(value: Fraction, *, whole: bool) -> int | float:
    return int(value) if whole else float(value)


def _is_inside(value: Json, schema: JsonObject) -> bool:
    return (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
        and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
        and ("exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"])
    )
