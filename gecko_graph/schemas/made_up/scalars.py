"""Texts and numbers that fit a flat schema; addresses are those reserved for examples."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from ...state import Json, JsonObject
from ..formats import FORMATS, INTEGER_BITS
from ..pattern import compile_pattern
from .dice import Dice
from .naming import is_identifier, noun, words
from .spelling import MAX_LENGTH, spell

_FAR = 1 << 53
_SPECIMENS = {
    "date": "2025-0#-1#",
    "date-time": "2025-0#-1#T1#:3#:00Z",
    "time": "1#:3#:00Z",
    "duration": "PT##M",
    "email": "user-????@example.com",
    "uri": "https://example.com/????????",
    "uri-reference": "/????????",
    "hostname": "host-????.example.com",
    "ipv4": "192.0.2.1##",
    "ipv6": "2001:db8::1???",
    "uuid": "????????-????-4???-a???-????????????",
    "byte": "????????",
}
"""Texts by format: `#` stands for a digit from 1 to 9, `?` for a hexadecimal one."""


def list_examples(flat: JsonObject) -> list[Json]:
    """Return a schema's examples and default."""
    found = shown if isinstance(shown := flat.get("examples"), list) else []
    # an empty default ("" for every text, in Kubernetes' documents) says that a member may be left out
    return [*found, *(flat[key] for key in ("example", "default") if flat.get(key) not in (None, "", {}, []))]


def make_texts(flat: JsonObject, dice: Dice, *, name: str, owner: str) -> Iterator[Json]:
    """Yield texts for a field called `name` of an object called `owner`; some may miss the schema."""
    least, most, form = flat.get("minLength", 0), flat.get("maxLength"), str(flat.get("format"))
    if least > MAX_LENGTH:
        return
    names_one, shown = is_identifier(name), list_examples(flat)
    if shown:
        example = dice.pick(shown)
        yield _vary(example, dice) if names_one or form == "uuid" else example
    if (pattern := compile_pattern(flat.get("pattern", ""))) and "pattern" in flat:
        yield spell(pattern, dice, least=least, most=most)
    if form in _SPECIMENS:
        yield re.sub(
            r"[#?]",
            lambda mark: dice.letters(1, "123456789" if mark[0] == "#" else "0123456789abcdef"),
            _SPECIMENS[form],
        )
    if form not in FORMATS:
        about = noun(name) or noun(owner)
        known = f"{about}_{dice.letters(8)}".removeprefix("_") if names_one else ""
        yield _sized(known or f"example {' '.join(words(name)) or 'value'} {dice.between(1, 99)}", dice, least, most)
    yield from shown


def _sized(value: str, dice: Dice, least: int, most: int | None) -> str:
    value += dice.letters(max(0, least - len(value)))
    return value if most is None else value[max(0, len(value) - most) :].strip() or dice.letters(most)


def _vary(example: Json, dice: Dice) -> Json:
    """Return an identifier like the example, with other digits; where it has none, other letters."""
    if not isinstance(example, str):
        return example
    old, new = ("[0-9]", "0123456789") if re.search("[0-9]", example) else ("[a-z]", "abcdefghijklmnopqrstuvwxyz")
    value = re.sub(old, lambda _: dice.pick(new), example)
    return value if new[0] == "0" else re.sub("[A-Z]", lambda _: dice.pick(new).upper(), value)


def make_numbers(flat: JsonObject, dice: Dice, *, name: str, whole: bool) -> Iterator[int | float]:
    """Yield numbers within the bounds and on the step of a flat schema, the likeliest first; a few may miss it."""
    low, high = _bounds(flat, whole=whole)
    start, stop = _likely(flat, name)
    if stop < low or start > high:  # beside the nearer bound
        start, stop = (low, low + 100) if stop < low else (high - 100, high)
    start, stop = max(start, low), min(stop, high)
    step = Fraction(str(flat.get("multipleOf", 1)))
    steps = [Fraction(step.numerator) if whole else step]
    if not whole and "multipleOf" not in flat:
        steps = [Fraction(1, 100), Fraction(1, 10_000), (stop - start) / 7 or abs(start) or Fraction(1)]
    for step, (least, most) in product(steps, ((start, stop), (low, high))):
        first, last = math.ceil(least / step), math.floor(most / step)
        for _ in range(3 if first <= last else 0):
            value = dice.between(first, last) * step
            yield int(value) if whole else float(value)


def _bounds(flat: JsonObject, *, whole: bool) -> tuple[Fraction, Fraction]:
    edge = Fraction(min(_FAR, 1 << (INTEGER_BITS.get(str(flat.get("format")), 54) - 1)) - 1)
    lows, highs = (
        [Fraction(str(flat[key])) for key in keys if key in flat]
        for keys in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
    )
    low = max(lows) if lows else min(-edge, highs[0] - _FAR) if highs and highs[0] < -edge else -edge
    high = min(highs) if highs else max(edge, low + _FAR) if low > edge else edge
    low += whole and low == flat.get("exclusiveMinimum")
    return low, high - (whole and high == flat.get("exclusiveMaximum"))


def _likely(flat: JsonObject, name: str) -> tuple[Fraction, Fraction]:
    if is_identifier(name):
        return Fraction(100_000), Fraction(999_999)
    shown = next((value for value in list_examples(flat) if type(value) in (int, float)), 0)
    return (Fraction(str(shown)), Fraction(str(shown))) if shown else (Fraction(1), Fraction(100))
