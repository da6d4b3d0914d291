"""Python's own functions and methods in the contract language, metered and strictly typed, and a few more."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ...state import Json
from .operators import NUMBERS, key_of, number
from .sandbox import Fault, Missing, Scope, a_list, a_number, a_small_int, a_text, an_object, join, kind, measure, text

Function = Callable[..., Any]

UNSET = Missing("the default")
TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "str": (str,), "int": (int, bool), "float": (float,), "bool": (bool,), "list": (list,), "dict": (dict,),
}  # fmt: skip
"""The types for `isinstance`; a boolean is an integer, as in Python."""

_REPLACEMENT: Final = 8
"""Bytes counted per replacement besides its text, since many small ones take time that the deadline cannot
interrupt."""

_MAX_CHARS = 100
_LINE_ENDS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_INTEGER = re.compile(r"\s*[-+]?[0-9]{1,40}\s*")
_DECIMAL = re.compile(r"\s*[-+]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][-+]?[0-9]{1,5})?\s*")


def _len(_: Scope, value: Any) -> int:
    if isinstance(value, list | dict | str):
        return len(value)
    raise Fault(f"len needs a list, a text or an object, not {kind(value)}")


def _list(scope: Scope, value: Any) -> list[Json]:
    if not isinstance(value, list | str | dict):
        raise Fault(f"list needs a list, a text or an object, not {kind(value)}")
    scope.take_items(len(value))
    return list(value)


def _zip(scope: Scope, *lists: Any) -> list[Json]:
    checked = [a_list(items, "zip") for items in lists]
    count = min((len(items) for items in checked), default=0)
    scope.take_items(count)
    scope.take(count * (64 + 8 * len(checked)))
    return [list(row) for row in zip(*checked, strict=False)]


def _range(scope: Scope, *bounds: Any) -> list[int]:
    if not 1 <= len(bounds) <= 3:
        raise Fault("range needs one to three numbers")
    numbers = range(*(a_small_int(bound, "range", 2**61) for bound in bounds))  # `len` raises beyond a machine word
    scope.take_items(len(numbers))
    return list(numbers)


# order: `key` is the list of a lambda's results for the items -------------------------------------------------------


def _order_keys(scope: Scope, keys: list[Any]) -> list[Any]:
    kinds = {"a number" if type(key) in NUMBERS else kind(key) for key in keys}
    if len(kinds) > 1 or not kinds <= {"a number", "a text", "true or false"}:
        raise Fault(f"only numbers or only texts have an order, not {' and '.join(sorted(kinds))}")
    if kinds == {"a text"}:
        scope.take_text(*keys)
    return keys


def _sorted(scope: Scope, values: Any, *, key: Any = None, reverse: Any = False) -> list[Json]:
    items = a_list(values, "sorted")
    scope.take_items(len(items))
    keys = _order_keys(scope, items if key is None else key)
    return [items[place] for place in sorted(range(len(items)), key=keys.__getitem__, reverse=bool(reverse))]


def _extreme(choose: Callable[..., int], name: str) -> Function:
    def apply(scope: Scope, value: Any, *more: Any, key: Any = None, default: Any = UNSET) -> Any:
        values = [value, *more] if more else a_list(value, name)
        if not values:
            return Missing(f"the {name} of nothing") if default is UNSET else default
        keys = _order_keys(scope, values if key is None else key)
        return values[choose(range(len(keys)), key=keys.__getitem__)]

    return apply


KEYED: Final = frozenset(("sorted", "min", "max"))


def _unique(scope: Scope, value: Any) -> list[Json]:
    values = a_list(value, "unique")
    scope.take_items(2 * len(values))
    found: dict[Any, Json] = {}
    for item in values:
        scope.tick()
        if isinstance(item, list | dict):
            raise Fault(f"unique needs texts or numbers, not {kind(item)}")
        if isinstance(item, str):
            scope.take_text(item)
        found.setdefault(item, item)
    return list(found.values())


# numbers -------------------------------------------------------------------------------------------------------------


def _sum(_: Scope, value: Any) -> int | float:
    total: int | float = 0
    for amount in a_list(value, "sum"):
        total += a_number(amount, "sum")
    return number(total)


def _round(_: Scope, value: Any, ndigits: Any = None) -> int | float:
    places = None if ndigits is None else a_small_int(ndigits, "round", 20)
    return number(round(a_number(value, "round"), places))


def _reader(name: str, convert: Callable[[Any], Any], form: re.Pattern[str]) -> Function:
    def apply(_: Scope, value: Any, *, default: Any = UNSET) -> Any:
        if type(value) in (int, float, bool) or (isinstance(value, str) and form.fullmatch(value)):
            return number(convert(value))
        if default is UNSET:
            shown = repr(value[:40]) if isinstance(value, str) else kind(value)
            raise Fault(f"{name} cannot read {shown}; give a default: {name}(x, default=0)")
        return default

    return apply


def _json(scope: Scope, value: Any) -> str:
    measure(scope, value)
    return json.dumps(value, ensure_ascii=False)


BUILTINS: dict[str, Function] = {
    "len": _len, "list": _list, "zip": _zip, "range": _range, "sorted": _sorted, "min": _extreme(min, "min"),
    "max": _extreme(max, "max"), "sum": _sum, "abs": lambda _, x: abs(a_number(x, "abs")), "round": _round,
    "int": _reader("int", int, _INTEGER), "float": _reader("float", float, _DECIMAL), "str": text,
    "bool": lambda _, x: bool(x), "isinstance": lambda _, x, types: type(x) in types,
    "any": lambda _, values: any(a_list(values, "any")), "all": lambda _, values: all(a_list(values, "all")),
    "defined": lambda _, x: type(x) is not Missing,
    "default": lambda _, x, value: value if type(x) is Missing else x,
    "fixed": lambda _, x, places=2: f"{a_number(x, 'fixed'):.{max(a_small_int(places, 'fixed', 20), 0)}f}",
    "json": _json, "unique": _unique,
    "byte_count": lambda _, x: len(a_text(x, "byte_count").encode(errors="surrogatepass")),
}  # fmt: skip


# methods of texts and objects ----------------------------------------------------------------------------------------


def _split(scope: Scope, text: Any, sep: Any = None) -> list[str]:
    source = a_text(text, "split")
    if sep == "":
        raise Fault("split needs a separator that is not empty")
    pieces = source.split(None if sep is None else a_text(sep, "split"), scope.most_items)
    scope.take_items(len(pieces))
    scope.take_text(source)
    return pieces


def _splitlines(scope: Scope, text: Any) -> list[str]:
    source = a_text(text, "splitlines")
    if len(source) > scope.most_items:
        scope.take_items(sum(source.count(end) for end in _LINE_ENDS))
    scope.take_text(source)
    found = source.splitlines()
    scope.take_items(len(found))
    return found


def _join(scope: Scope, glue: Any, values: Any) -> str:
    parts = [a_text(item, "an item of join") for item in a_list(values, "join")]
    scope.take_items(len(parts))
    return join(scope, parts, a_text(glue, "join"))


def _replace(scope: Scope, value: Any, old: Any, new: Any) -> str:
    source, before, after = (a_text(argument, "replace") for argument in (value, old, new))
    times = source.count(before)
    width = 1 if source.isascii() and after.isascii() else 4
    scope.take(width * (len(source) + times * len(after)) + _REPLACEMENT * times)
    return source.replace(before, after)


def _trimming(name: str) -> Function:
    trim = getattr(str, name)

    def method(scope: Scope, text: Any, chars: Any = None) -> str:
        source = a_text(text, name)
        if chars is not None and len(a_text(chars, name)) > _MAX_CHARS:
            raise Fault(f"{name} takes at most {_MAX_CHARS} characters")
        scope.take_text(source)
        return trim(source, chars)  # type: ignore[no-any-return]

    return method


def _casing(name: str) -> Function:
    change = getattr(str, name)

    def method(scope: Scope, text: Any) -> str:
        scope.take_text(a_text(text, name), growth=3)
        return change(text)  # type: ignore[no-any-return]

    return method


def _members(name: str, size: int, read: Callable[[dict[str, Json]], list[Json]]) -> Function:
    def method(scope: Scope, value: Any) -> list[Json]:
        source = an_object(value, name)
        scope.take_items(len(source))
        scope.take(size * len(source))
        return read(source)

    return method


METHODS: dict[str, Function] = {
    **{name: _trimming(name) for name in ("strip", "lstrip", "rstrip")},
    **{name: _casing(name) for name in ("lower", "upper")},
    "split": _split, "splitlines": _splitlines, "join": _join, "replace": _replace,
    "startswith": lambda _, text, prefix: a_text(text, "startswith").startswith(a_text(prefix, "startswith")),
    "endswith": lambda _, text, suffix: a_text(text, "endswith").endswith(a_text(suffix, "endswith")),
    "isdigit": lambda _, text: a_text(text, "isdigit").isdigit(),
    "get": lambda _, value, key, default=None: an_object(value, "get").get(key_of(key), default),
    "keys": _members("keys", 0, list), "values": _members("values", 0, lambda source: list(source.values())),
    "items": _members("items", 100, lambda source: [[key, value] for key, value in source.items()]),
}  # fmt: skip
