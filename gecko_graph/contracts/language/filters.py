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


def attribute_of(value: Any, attribute: Any) -> Any:
    """Return `attribute` of an item, dots for nested ones: `map(attribute='owner.name')`; undefined if absent."""
    if type(attribute) is int:
        return member(value, attribute, f"the item's {attribute}")
    for name in a_text(attribute, "attribute").split("."):
        value = member(value, int(name) if name.isdecimal() else name, f"the item's {attribute}")
    return value


def attributes_of(scope: Scope, values: list[Json], attribute: Any) -> list[Any]:
    """Return the items, or that attribute of each. Raises Fault for undefined ones."""
    if attribute is None:
        return values
    found = []
    for value in values:
        scope.tick()
        found.append(given(attribute_of(value, attribute)))
    scope.take_items(len(found))
    return found


def _default(_: Scope, value: Any, default_value: Any = "", boolean: Any = False) -> Any:
    return default_value if type(value) is Missing or (boolean and not value) else value


def _length(_: Scope, value: Any) -> int:
    if isinstance(value, list | dict | str):
        return len(value)
    raise Fault(f"length needs a list, a text or an object, not {kind(value)}")


def _first(_: Scope, value: Any) -> Any:
    return member(value if isinstance(value, str) else a_list(value, "first"), 0, "the first of nothing")


def _last(_: Scope, value: Any) -> Any:
    return member(value if isinstance(value, str) else a_list(value, "last"), -1, "the last of nothing")


def _list(scope: Scope, value: Any) -> list[Json]:
    if isinstance(value, list):
        return value
    if not isinstance(value, str | dict):
        raise Fault(f"list needs a list, a text or an object, not {kind(value)}")
    scope.take_items(len(value))
    return list(value)


# order ---------------------------------------------------------------------------------------------------------------


def _order_keys(scope: Scope, values: list[Json], attribute: Any, case_sensitive: Any) -> list[Any]:
    keys = attributes_of(scope, values, attribute)
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
    for amount in attributes_of(scope, a_list(value, "sum"), attribute):
        total += a_number(amount, "sum")
    return number(total)


def _abs(_: Scope, value: Any) -> int | float:
    return abs(a_number(value, "abs"))


def _round(_: Scope, value: Any, precision: Any = 0) -> int | float:
    return number(round(a_number(value, "round"), a_small_int(precision, "round", 20)))


def _int(_: Scope, value: Any, default: Any = UNSET) -> Any:
    if type(value) in (int, float, bool):
        return number(int(value))
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return number(int(value))
    if default is UNSET:
        raise Fault(f"int cannot read {_shown(value)}; give a default: int(0)")
    return default


def _float(_: Scope, value: Any, default: Any = UNSET) -> Any:
    if type(value) in NUMBERS or (isinstance(value, str) and _DECIMAL.fullmatch(value)):
        return number(float(value))
    if default is UNSET:
        raise Fault(f"float cannot read {_shown(value)}; give a default: float(0.0)")
    return default


def _shown(value: Any) -> str:
    return repr(value[:40]) if isinstance(value, str) else kind(value)


def _fixed(_: Scope, value: Any, places: Any = 2) -> str:
    return f"{a_number(value, 'fixed'):.{max(a_small_int(places, 'fixed', 20), 0)}f}"


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


def _bytes(_: Scope, value: Any) -> int:
    source = a_text(value, "bytes")
    if source.isascii():
        return len(source)
    return len(source.encode(errors="surrogatepass"))


# lists and objects ---------------------------------------------------------------------------------------------------


def _interleave(scope: Scope, value: Any, between: Any) -> list[Json]:
    values = a_list(value, "interleave")
    scope.take_items(2 * len(values))
    return [part for item in values for part in (between, item)][1:]


def _keys(scope: Scope, value: Any) -> list[str]:
    scope.take_items(len(an_object(value, "keys")))
    return list(value)


def _values(scope: Scope, value: Any) -> list[Json]:
    scope.take_items(len(an_object(value, "values")))
    return list(value.values())


def _items(scope: Scope, value: Any) -> list[Json]:
    scope.take_items(len(an_object(value, "items")))
    scope.take(200 * len(value))
    return [{"key": key, "value": member} for key, member in value.items()]


FILTERS: dict[str, Filter] = {
    "default": _default, "length": _length, "first": _first, "last": _last, "list": _list, "sort": _sort,
    "unique": _unique, "min": _extreme(min, "min"), "max": _extreme(max, "max"), "sum": _sum, "abs": _abs,
    "round": _round, "int": _int, "float": _float, "fixed": _fixed, "money": money, "join": _join, "string": text,
    "tojson": json_text, "replace": _replace, "lower": lower, "lines": _lines, "bytes": _bytes,
    "keys": _keys, "values": _values, "items": _items, "interleave": _interleave,
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
