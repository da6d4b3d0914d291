"""The filters and tests of the contract language: Jinja2's names and meanings, but counted and strict."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from ...state import Json
from .functions import UNSET, lower, money, startswith
from .operators import COMPARISONS, NUMBERS, contains, member, number
from .sandbox import (
    Fault,
    Missing,
    Scope,
    a_list,
    a_number,
    a_small_int,
    a_text,
    an_object,
    given,
    join,
    json_text,
    kind,
    text,
)

Filter = Callable[..., Any]

_REPLACEMENT: Final = 8
"""Bytes counted per replacement besides its text: many small ones take time that the deadline cannot interrupt."""

_LINE_ENDS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_INTEGER = re.compile(r"\s*[-+]?[0-9]{1,40}\s*")
_DECIMAL = re.compile(r"\s*[-+]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][-+]?[0-9]{1,5})?\s*")


def _attributes_of(scope: Scope, values: list[Json], attribute: Any) -> list[Any]:
    """Return the items, or that attribute of each, dots for nested ones: `map(attribute='owner.name')`."""
    if attribute is None:
        return values
    keys = [attribute] if type(attribute) is int else a_text(attribute, "attribute").split(".")
    found = []
    for value in values:
        scope.tick()
        for key in keys:
            name = int(key) if isinstance(key, str) and key.isdecimal() else key
            value = member(value, name, f"the item's {attribute}")
        found.append(given(value))
    scope.take_items(len(found))
    return found


def _length(_: Scope, value: Any) -> int:
    if isinstance(value, list | dict | str):
        return len(value)
    raise Fault(f"length needs a list, a text or an object, not {kind(value)}")


def _end(name: str, index: int) -> Filter:
    def apply(_: Scope, value: Any) -> Any:
        return member(value if isinstance(value, str) else a_list(value, name), index, f"the {name} of nothing")

    return apply


def _list(scope: Scope, value: Any) -> list[Json]:
    if isinstance(value, list):
        return value
    if not isinstance(value, str | dict):
        raise Fault(f"list needs a list, a text or an object, not {kind(value)}")
    scope.take_items(len(value))
    return list(value)


# order ---------------------------------------------------------------------------------------------------------------


def _order_keys(scope: Scope, values: list[Json], attribute: Any, case_sensitive: Any) -> list[Any]:
    keys = _attributes_of(scope, values, attribute)
    kinds = {"a number" if type(key) in NUMBERS else kind(key) for key in keys}
    if len(kinds) > 1 or not kinds <= {"a number", "a text", "true or false"}:
        raise Fault(f"only numbers or only texts have an order, not {' and '.join(sorted(kinds))}")
    if kinds == {"a text"}:
        scope.take_text(*keys, growth=3)
        return keys if case_sensitive else [key.lower() for key in keys]
    return keys


def _sort(scope: Scope, value: Any, reverse: Any = False, case_sensitive: Any = False, attribute: Any = None) -> Json:
    values = a_list(value, "sort")
    scope.take_items(len(values))
    keys = _order_keys(scope, values, attribute, case_sensitive)
    return [values[place] for place in sorted(range(len(values)), key=keys.__getitem__, reverse=bool(reverse))]


def _unique(scope: Scope, value: Any, case_sensitive: Any = False) -> list[Json]:
    values = a_list(value, "unique")
    scope.take_items(2 * len(values))
    found: dict[Any, Json] = {}
    for item in values:
        scope.tick()
        if isinstance(item, list | dict):
            raise Fault(f"unique needs texts or numbers, not {kind(item)}")
        if isinstance(item, str):
            scope.take_text(item)
        found.setdefault(item.lower() if isinstance(item, str) and not case_sensitive else item, item)
    return list(found.values())


def _extreme(choose: Callable[..., int], name: str) -> Filter:
    def apply(scope: Scope, value: Any, case_sensitive: Any = False) -> Any:
        values = a_list(value, name)
        if not values:
            return Missing(f"the {name} of nothing")
        keys = _order_keys(scope, values, None, case_sensitive)
        return values[choose(range(len(keys)), key=keys.__getitem__)]

    return apply


# numbers -------------------------------------------------------------------------------------------------------------


def _sum(scope: Scope, value: Any, attribute: Any = None) -> int | float:
    total: int | float = 0
    for amount in _attributes_of(scope, a_list(value, "sum"), attribute):
        total += a_number(amount, "sum")
    return number(total)


def _reader(name: str, convert: Callable[[Any], Any], form: re.Pattern[str]) -> Filter:
    def apply(_: Scope, value: Any, default: Any = UNSET) -> Any:
        if type(value) in (int, float, bool) or (isinstance(value, str) and form.fullmatch(value)):
            return number(convert(value))
        if default is UNSET:
            shown = repr(value[:40]) if isinstance(value, str) else kind(value)
            raise Fault(f"{name} cannot read {shown}; give a default: {name}(0)")
        return default

    return apply


# texts ---------------------------------------------------------------------------------------------------------------


def _join(scope: Scope, value: Any, d: Any = "") -> str:
    parts = []
    for item in a_list(value, "join"):
        scope.tick()
        parts.append(text(scope, item))
    scope.take_items(len(parts))
    return join(scope, parts, a_text(d, "join"))


def _replace(scope: Scope, value: Any, old: Any, new: Any) -> str:
    source, before, after = (a_text(argument, "replace") for argument in (value, old, new))
    times = source.count(before)
    width = 1 if source.isascii() and after.isascii() else 4
    scope.take(width * (len(source) + times * len(after)) + _REPLACEMENT * times)
    return source.replace(before, after)


def _lines(scope: Scope, value: Any) -> list[str]:
    source = a_text(value, "lines")
    if len(source) > scope.limits.items:
        scope.take_items(sum(source.count(end) for end in _LINE_ENDS))
    scope.take_text(source)
    found = source.splitlines()
    scope.take_items(len(found))
    return found


# lists and objects ---------------------------------------------------------------------------------------------------


def _interleave(scope: Scope, value: Any, between: Any) -> list[Json]:
    values = a_list(value, "interleave")
    scope.take_items(2 * len(values))
    return [part for item in values for part in (between, item)][1:]


def _members(name: str, size: int, read: Callable[[dict[str, Json]], list[Json]]) -> Filter:
    def apply(scope: Scope, value: Any) -> list[Json]:
        source = an_object(value, name)
        scope.take_items(len(source))
        if size:
            scope.take(size * len(source))
        return read(source)

    return apply


FILTERS: dict[str, Filter] = {
    "default": lambda _, value, default_value="", boolean=False: (
        default_value if type(value) is Missing or (boolean and not value) else value
    ),
    "length": _length, "first": _end("first", 0), "last": _end("last", -1), "list": _list, "sort": _sort,
    "unique": _unique, "min": _extreme(min, "min"), "max": _extreme(max, "max"), "sum": _sum,
    "abs": lambda _, value: abs(a_number(value, "abs")),
    "round": lambda _, value, precision=0: number(round(a_number(value, "round"), a_small_int(precision, "round", 20))),
    "int": _reader("int", int, _INTEGER), "float": _reader("float", float, _DECIMAL),
    "fixed": lambda _, value, places=2: f"{a_number(value, 'fixed'):.{max(a_small_int(places, 'fixed', 20), 0)}f}",
    "money": money, "join": _join, "string": text, "tojson": json_text, "replace": _replace, "lower": lower,
    "lines": _lines, "bytes": lambda _, value: len(a_text(value, "bytes").encode(errors="surrogatepass")),
    "interleave": _interleave, "keys": _members("keys", 0, list),
    "values": _members("values", 0, lambda source: list(source.values())),
    "items": _members("items", 200, lambda source: [{"key": key, "value": value} for key, value in source.items()]),
}  # fmt: skip


# tests, after `is`: Jinja2's, and two for texts -----------------------------------------------------------------------


def _of(*types: type) -> Filter:
    return lambda _, value: type(value) in types


def _odd(_: Scope, value: Any) -> bool:
    if type(value) is int:
        return value % 2 == 1
    raise Fault(f"odd needs a whole number, not {kind(value)}")


TESTS: dict[str, Filter] = {
    "defined": lambda _, value: type(value) is not Missing,
    "undefined": lambda _, value: type(value) is Missing,
    "none": _of(type(None)),
    "integer": _of(int),
    "number": _of(int, float, bool),
    "string": _of(str),
    "mapping": _of(dict),
    "sequence": _of(list, str, dict),
    "odd": _odd,
    "containing": lambda scope, value, part: contains(scope, part, value),
    "startingwith": startswith,
    **{name: COMPARISONS[name] for name in ("eq", "ne", "lt", "gt", "in")},
    "le": COMPARISONS["lteq"],
    "ge": COMPARISONS["gteq"],
}
