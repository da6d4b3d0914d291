"""Blanks: the simplest values that a result can have if nothing is known, so that it matches its schema."""

from __future__ import annotations

import re
from collections.abc import Mapping

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
        whole = {**shape.said.schema, "$defs": (shape.said.root or {}).get("$defs", {})}
        return make_value(whole, seed=0, key=name, subject=name)
    except (Impossible, TypeError):
        return None


def new_key(shape: SchemaShape, prefix: str, shelf: str) -> str:
    """Return the expression of a new key in the collection `shelf`, in the form that the schema of keys gives."""
    pattern = shape.first("pattern")
    if shape.first("format") == "uuid":
        pattern = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}"
    pieces = _PIECE.findall(re.sub(r"\(\?\w+\)", "", pattern)) if isinstance(pattern, str) else []
    form = "".join(map(_form, pieces))
    if shape.types & {"integer", "number"}:
        return f"new_number({shelf})"
    begin = form[: len(form) - len(form.lstrip("ACDEFGHIJKLMNOPQRSTUVWYZ_"))]
    return f"new_id({begin!r}, {form[len(begin) :]!r})" if 0 < len(form) - len(begin) <= 40 else f"new_id({prefix!r})"


_PIECE = re.compile(r"(\[[^\]]+\]|[\w-])(?:\{(\d+)(?:,\d*)?\})?")


def _form(piece: tuple[str, str]) -> str:
    """Return the part of a `new_id` shape for a part of a pattern."""
    what, times = piece
    forms = (("a-f", "x"), ("A-F", "x"), ("A-Z", "A"), ("a-z", "a"), ("0-9", "9"))
    sign = next((form for part, form in forms if part in what), what.strip("[]")[0])
    return sign * int(times or 1)


def blanks_of(shape: SchemaShape, depth: int = 0, *, leave: str | None = None) -> JsonObject:
    """Return blanks for an object's required and nullable members, except for `leave`."""
    wanted = {name: each for name, each in shape.fields.items() if name in shape.required or each.is_nullable}
    return {
        name: blank_of(each, name, depth)
        for name, each in wanted.items()
        if name != leave and not each.first("writeOnly")
    }


def around(shape: SchemaShape, where: tuple[str, ...], inner: Json, total: str = "") -> Json:
    """Return a value inside the envelope of a result; members that count items have the value `total`."""
    if not where:
        return inner
    known: JsonObject = {where[0]: around(shape.fields[where[0]], where[1:], inner, total)}
    for name, each in shape.fields.items() if total else ():
        counts = [below for below in each.fields if TOTAL.fullmatch(below)]
        if name != where[0] and (counts or (TOTAL.fullmatch(name) and each.types <= {"integer", "number"})):
            known[name] = around(each, (counts[0],), total) if counts else total
    return with_blanks(
        {as_key(name): each for name, each in known.items()},
        {name: each for name, each in blanks_of(shape).items() if name not in known},
    )


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
