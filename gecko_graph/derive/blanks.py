"""Blanks: the simplest values that a result can have if nothing is known, so that it matches its schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from ..schemas.complaints import find_faults
from ..schemas.made_up import Impossible, make_value
from ..state import Json, JsonObject
from .shapes import SchemaShape, plain

TOTAL = re.compile(r"(total|count|total_?(count|items|results|elements|records)|record_?count)", re.IGNORECASE)
"""Names of members that count the items of a list."""

_TIME = re.compile(
    r"(created|updated|modified|inserted|changed)(_?(at|on|time|date))?|(create|update)_?(time|date)|.*timestamp", re.I
)
YES = frozenset(("deleted", "removed", "success", "ok"))
_NEUTRAL: Mapping[str, Json] = {"string": "", "integer": 0, "number": 0, "boolean": False}
_BOUND = frozenset(("minLength", "pattern", "minimum", "exclusiveMinimum", "format", "multipleOf"))
CLOCK = "{{ clock_or('2000-01-01T00:00:00Z') }}"
_DEEPEST = 4


def blank_of(shape: SchemaShape, name: str = "", depth: int = 0) -> Json:
    """Return a blank: the schema's default, null, an empty list, the state's clock for a time, else any valid value."""
    if (chosen := _chosen(shape)) is not None:
        return chosen
    if shape.is_nullable or (shape.types == {"array"} and not shape.first("minItems")):
        return None if shape.is_nullable else []
    if "string" in shape.types and (shape.first("format") == "date-time" or _TIME.fullmatch(name)):
        return CLOCK
    if shape.types == {"object"}:
        return blanks_of(shape, depth + 1) if depth < _DEEPEST else {}
    if "boolean" in shape.types:
        return plain(name) in YES
    if shape.types and not any(_BOUND & part.keys() for part in shape.parts):
        return _NEUTRAL.get(min(shape.types))
    return _fitting(shape, name)


def _chosen(shape: SchemaShape) -> Json:
    for keyword in ("default", "const"):
        if (value := shape.first(keyword)) is not None:
            return value
    choices = shape.first("enum") or [None]
    return None if None in choices else choices[0]


def _fitting(shape: SchemaShape, name: str) -> Json:
    try:
        return make_value(shape.whole, seed=0, key=name, subject=name)
    except (Impossible, TypeError):
        return None


def new_key(shapes: Sequence[SchemaShape], prefix: str, shelf: str) -> str:
    """Return an expression of a new key below the place `shelf`, in a form that all schemas of keys allow.

    The schemas are those of the item's own member, and of the arguments that name an item: often only one of them
    gives a pattern or a format. If no form fits all, the key is the prefix with letters and digits.
    """
    plain_form = f"new_id({prefix!r})"
    if next((shape.types for shape in shapes if shape.types), frozenset()) & {"integer", "number"}:
        return f"new_number({shelf})"
    forms = [form for shape in shapes if (form := _form_of(shape, prefix))]
    forms += [(plain_form, [prefix + "0" * _OFTEN]), (_FIGURES, ["1" * 9])]
    fitting = (key for key, samples in forms if all(_fits(*each) for each in product(shapes, samples)))
    return next(fitting, plain_form)


def _fits(shape: SchemaShape, key: str) -> bool:
    """Return whether a key, which is a text, can be a value of a schema; of numbers its figures are sent."""
    is_number = bool(shape.types) and shape.types <= {"integer", "number"}
    return not find_faults(shape.whole, int(key) if is_number and key.isdecimal() else key)


_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}"
_PIECE = re.compile(r"(\[[^\]]+\]|\\d|[\w-])(?:\{(\d+)(,\d*)?\}|([+*]))?")
_CLASSES = (("0-9a-f", "x"), ("a-f0-9", "x"), ("A-Z", "A"), ("a-z", "a"), ("0-9", "9"), ("\\d", "9"))
_SAMPLES = str.maketrans("x", "0"), str.maketrans("Aax9", "Zzf0")
_FIGURES = "new_id('1', '99999999')"
_LONGEST_KEY, _OFTEN = 40, 12


def _form_of(shape: SchemaShape, prefix: str) -> tuple[str, list[str]] | None:
    """Return the expression that draws a key as a schema wants it, and samples; None if it wants no known form."""
    if shape.first("format") == "email":
        return f"new_id({prefix!r}) + '@example.com'", [f"{prefix}0@example.com"]
    pattern = _UUID if shape.first("format") == "uuid" else shape.first("pattern")
    pieces = _PIECE.findall(re.sub(r"\(\?\w+\)", "", pattern)) if isinstance(pattern, str) else []
    begin = form = ""
    for what, least, more, repeated in pieces:
        sign = next((sign for part, sign in _CLASSES if part in what), "")
        times = max(int(least or 1), _OFTEN) if more or repeated else int(least or 1)  # often enough that keys differ
        if sign or form:
            if not sign and what.strip("[]")[0] in "AaXx9":
                return None  # in a shape it is any such letter
            form += (sign or what.strip("[]")[0]) * times
        else:
            begin += what.strip("[]")[0] * times
    if not 0 < len(form) <= _LONGEST_KEY:
        return None
    return f"new_id({begin!r}, {form!r})", [begin + form.translate(each) for each in _SAMPLES]


def blanks_of(shape: SchemaShape, depth: int = 0) -> JsonObject:
    """Return blanks for an object's required and nullable members."""
    wanted = {name: each for name, each in shape.fields.items() if name in shape.required or each.is_nullable}
    return {name: blank_of(each, name, depth) for name, each in wanted.items() if not each.first("writeOnly")}


Beside: TypeAlias = Callable[[str, SchemaShape], str | None]
"""From the name and shape of a member beside a list to its template; None if it is unknown."""


def around(shape: SchemaShape, where: tuple[str, ...], inner: Json, beside: Beside | None = None) -> Json:
    """Return a value inside the envelope of a result, whose other members, or theirs, have the values of `beside`."""
    if not where:
        return inner
    known: JsonObject = {where[0]: around(shape.fields[where[0]], where[1:], inner, beside)}
    for name, each in shape.fields.items() if beside else ():
        value = _told(name, each, beside, 1) if beside and name != where[0] else None
        known |= {} if value is None else {name: value}
    return _enclose(shape, known)


def _told(name: str, shape: SchemaShape, beside: Beside, depth: int) -> Json:
    """Return the value of a member, or of its own members, by `beside`; members of `links` are addresses."""
    suffix = "_link" if name in ("links", "_links") else ""
    members = [(f"{inner}{suffix}", each) for inner, each in shape.fields.items() if depth < _DEEPEST]
    told = {inner.removesuffix(suffix): _told(inner, each, beside, depth + 1) for inner, each in members}
    below = {inner: one for inner, one in told.items() if one is not None}
    return _enclose(shape, below) if below else beside(name, shape)


def _enclose(shape: SchemaShape, known: JsonObject) -> Json:
    blanks = {name: each for name, each in blanks_of(shape).items() if name not in known}
    return with_blanks({as_key(name): each for name, each in known.items()}, blanks)


def with_blanks(known: Json, blank: Json) -> JsonObject:
    """Return a `known` and `blank` form of a template, or `blank` alone; strings of the document are quoted."""
    return {"known": known, "blank": _data(blank)} if isinstance(blank, dict) else {"blank": _data(blank)}


def _data(value: Json) -> Json:
    """Return a template of a literal value: strings and keys that would be expressions or forms are quoted."""
    if isinstance(value, dict):
        return {as_key(key): _data(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_data(each) for each in value]
    return f"{{{{ {value!r} }}}}" if isinstance(value, str) and "{{" in value and value != CLOCK else value


def as_key(name: str) -> str:
    """Return a template's key for a literal name."""
    return f"{{{{ {name!r} }}}}" if "{{" in name or name in ("for_each", "cases", "blank", "known") else name
