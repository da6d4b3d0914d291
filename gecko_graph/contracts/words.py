"""Describe conditions in words, for people, instead of a rule's expression."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

LONGEST = 300

_SIGNS: Mapping[type, tuple[str, str]] = {
    ast.In: ("is among", "is not among"), ast.Eq: ("is", "is not"),
    ast.Lt: ("is less than", "is at least"), ast.LtE: ("is at most", "is more than"),
}  # fmt: skip
"""The words of a comparison, and of its opposite."""

_OPPOSITE: Mapping[type, type] = {ast.NotIn: ast.In, ast.NotEq: ast.Eq, ast.GtE: ast.Lt, ast.Gt: ast.LtE}
_PARTS = {(11, 13): "hour", (14, 16): "minute"}
_SUMS: Mapping[type, str] = {ast.Add: "plus", ast.Sub: "minus", ast.Mult: "times"}


class _NoWords(Exception):
    """An expression that has no plain words."""


def describe_check(check: str) -> str:
    """Return a condition in words: `the quantity is at most 5`; "" if it has no plain words."""
    try:
        words = _holds(ast.parse(check.strip(), mode="eval").body, is_denied=False)
        return words if len(words) <= LONGEST else ""
    except (_NoWords, SyntaxError, ValueError, RecursionError):
        return ""


def _holds(node: ast.expr, *, is_denied: bool) -> str:
    no = "not " if is_denied else ""
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _holds(inner, is_denied=not is_denied)
        case ast.BoolOp(op=op, values=values):
            said = [_holds(each, is_denied=is_denied) for each in values if not _is_guard(each)]
            word = " and " if isinstance(op, ast.Or if is_denied else ast.And) else ", or "
            return word.join(dict.fromkeys(said)) or _holds(values[0], is_denied=is_denied)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compared(left, op, right, is_denied=is_denied)
        case ast.Call(func=ast.Name(id="all"), args=[ast.GeneratorExp(elt=elt, generators=[one])]) if not is_denied:
            return f"for each of {_name(one.iter)}, {_holds(elt, is_denied=False)}"
        case ast.Call(func=ast.Name(id="defined"), args=[one]):
            return f"{_name(one)} is {no}known"
        case ast.Attribute():
            return f"{_name(node)} is {no}true"
    raise _NoWords


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr, *, is_denied: bool) -> str:
    if isinstance(op, ast.Is | ast.IsNot):
        return f"{_name(left)} is {'missing' if isinstance(op, ast.Is) != is_denied else 'given'}"
    if isinstance(op, ast.NotEq | ast.Gt) and isinstance(right, ast.Constant) and right.value == 0 and _many(left):
        return f"there are {'no ' if is_denied else ''}{_many(left)}"
    kind = _OPPOSITE.get(type(op), type(op))
    if kind not in _SIGNS:
        raise _NoWords
    return f"{_name(left)} {_SIGNS[kind][is_denied != (kind is not type(op))]} {_name(right)}"


def _is_guard(node: ast.expr) -> bool:
    """Return whether a condition only guards others by the existence of a value."""
    match node:
        case ast.Compare(ops=[ast.IsNot()]) | ast.Call(func=ast.Name(id="defined")):
            return True
    return False


def _name(node: ast.expr) -> str:
    """Return a value's name in words: `the species of the pet` for `at(state.pets, [args.pet_id]).species`."""
    match node:
        case ast.Constant(value=value) if value is not None:
            return str(value).lower() if isinstance(value, bool) else str(value)
        case ast.List(elts=[_, *_] as elts):
            return f"one of {', '.join(map(_name, elts))}"
        case ast.Name(id="one"):
            return "it"
        case ast.Attribute(value=holder, attr=key):
            return f"the {_plain(key)}{'' if isinstance(holder, ast.Name) else f' of {_name(holder)}'}"
        case ast.Subscript(value=holder, slice=ast.Attribute() as key):
            return _entry(holder, key)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SUMS:
            return f"{_name(left)} {_SUMS[type(op)]} {_name(right)}"
    return _called(node)


def _called(node: ast.expr) -> str:
    match node:
        case ast.Call(func=ast.Name(id="at"), args=[holder, ast.List(elts=[key])]):
            return _entry(holder, key)
        case ast.Call(func=ast.Name(id="int"), args=[ast.Subscript(value=time, slice=ast.Slice(lower=a, upper=b))]):
            return f"the {_part(a, b)} of {_name(time)}"
        case ast.Call(func=ast.Name(id="weekday" | "date" | "time" as word), args=[time]):
            return f"the {word} of {_name(time)}"
        case ast.Call(func=ast.Name(id="len"), args=[one]):
            return f"the number of {_many(node) or 'parts of ' + _name(one)}"
        case ast.Call(func=ast.Name(id="sum"), args=[ast.GeneratorExp(elt=ast.Attribute(attr=key)) as loop]):
            return f"the sum of the {_plain(key)} of {_things(loop)}"
        case ast.Call(func=ast.Attribute(value=holder, attr="values"), args=[]):
            return _name(holder)
    raise _NoWords


def _entry(holder: ast.expr, key: ast.expr) -> str:
    named = _name(key)
    thing = re.sub(r" (?:id|key|number|code)$", "", named)
    return thing if thing != named else f"the entry of {named} in {_name(holder)}"


def _many(node: ast.expr) -> str:
    """Return the things that a condition counts by common values, or ""."""
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[ast.ListComp() as loop]):
            return _things(loop)
    return ""


def _things(loop: ast.ListComp | ast.GeneratorExp) -> str:
    (one,) = loop.generators
    asked = [part for test in one.ifs for part in (test.values if isinstance(test, ast.BoolOp) else [test])]
    said = [_holds(each, is_denied=False).removeprefix("the ") for each in asked]
    return _name(one.iter).removeprefix("the ") + (f" whose {' and whose '.join(said)}" if said else "")


def _part(low: Any, high: Any) -> str:
    place = getattr(low, "value", None), getattr(high, "value", None)
    if place not in _PARTS:
        raise _NoWords
    return _PARTS[place]


def _plain(key: str) -> str:
    """Return a key as words: `pet id` for `pet_id` and `petId`."""
    return " ".join(re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", key)).lower() or key
