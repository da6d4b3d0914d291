"""Functions on the things of the task state: existence, lookup, lists, and the values that a call sends.

A thing that no call has made and no read has shown, by `runtime_state.shown` (`world/shown.py`), raises NotRead.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial, reduce
from typing import Any

from ...errors import NotRead
from ...state import RUNTIME, Json, JsonObject
from ...values.places import pointer, scalars_of
from .builtin import UNSET
from .operators import splice
from .sandbox import Missing, Scope, a_list, a_text, an_object, require

OPEN = "open"
"""Key of the runtime state: places that a write of unknown effect may have changed, with the write."""

_ORDER = re.compile(r"([-+]?)([\w.]+?)(?:[:\s_]+(asc|desc)(?:ending)?)?", re.IGNORECASE)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:?\d\d)")
_COMPARE = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}
_BY_CREATION = re.compile(r"-?(creat|insert|new|old|latest|recent|asc|desc|id\b)[\w:\s-]*", re.IGNORECASE)
TESTS = {
    **dict.fromkeys(("eq", "equals", "is", "in", "any", "oneof"), ""),
    **dict.fromkeys(("ne", "not", "notin", "nin", "notany"), "not"),
    **dict.fromkeys(("like", "ilike", "contains"), "~"), "all": "all",
    **dict.fromkeys(("gte", "ge", "min", "from", "since"), ">="), **dict.fromkeys(("gt", "after", "over"), ">"),
    **dict.fromkeys(("lte", "le", "max", "to", "until"), "<="), **dict.fromkeys(("lt", "before", "under"), "<"),
}  # fmt: skip
"""The meaning of filters' operators, by their names in lower case without signs."""

_BEYOND = 900_000


def _has(scope: Scope, path: Any, unknown: Any = UNSET) -> Any:
    keys, _, depth, is_known = _find(scope, path)
    is_known = is_known and (scope.trusts is None or scope.trusts([*keys[:depth], "-"]))
    _doubt(scope, pointer(keys))
    is_there = depth == len(keys)
    known = is_there if is_there or is_known else unknown
    return known if known is not UNSET else scope.assumes or _refuse(keys)


def _thing(scope: Scope, path: Any, key: Any) -> Any:
    keys, value, depth, is_known = _find(scope, path)
    _doubt(scope, pointer(keys), is_all=True)
    is_there = depth == len(keys)
    if not (is_there or is_known or scope.assumes):
        _refuse(keys)
    return _keyed(value if is_there else {}, keys[-1], key)


def _things(scope: Scope, path: Any, key: Any, filters: Any, blank: Any) -> list[Json]:
    (keys, value, depth, is_known), wanted = _find(scope, path), _sent(filters)
    parts = _marks(scope).get(pointer(keys))
    is_shown = parts is None or any(part and part.items() <= wanted.items() for part in parts)
    held = an_object(value, "things") if depth == len(keys) else {}
    if not (is_known if depth < len(keys) else is_shown) and not scope.assumes:
        if not (held and scope.lists_parts):
            _refuse(keys)
        scope.doubts.append("there may be others")
    _doubt(scope, pointer(keys), is_all=True)
    scope.take_items(len(held))
    found = [_keyed(each, name, key) for name, each in held.items() if isinstance(each, dict)]
    for name, value in wanted.items():
        found = [each for each in found if _fits(scope, each, blank, name, value)]
    return found


def _new_number(scope: Scope, path: Any) -> int:
    keys, value, depth, is_known = _find(scope, path)
    held = value if depth == len(keys) and isinstance(value, dict) else {}
    numbers = [int(key) for key in held if key.isdecimal()]
    first = 0 if is_known and pointer(keys) not in _marks(scope) else _BEYOND  # an unknown thing may have it
    last: int = _marks(scope, "serial").get(pointer(keys), 0)
    return max([first, last, *numbers]) + 1


def _find(scope: Scope, path: Any) -> tuple[list[str], Any, int, bool]:
    """Return the keys of a path, and what `look` finds in the state."""
    scope.tick()
    keys = list(map(str, splice(scope, path)))
    return keys, *look(scope.values["state"], keys)


def look(state: JsonObject, keys: Sequence[str]) -> tuple[Any, int, bool]:
    """Return the deepest value on a path, how many of its keys exist, and whether the next is known to be missing."""
    value: Any = state
    for depth, key in enumerate(keys):
        if not isinstance(value, dict) or key not in value:
            parts = marks_of(state).get(pointer(keys[:depth]))
            return value, depth, depth > 0 and (parts is None or any(key in part.get("", ()) for part in parts))
        value = value[key]
    return value, len(keys), True


def marks_of(state: JsonObject, key: str = "shown") -> dict[str, Any]:
    """Return the runtime state's marks by place: known parts of collections, or `open` places."""
    runtime = state.get(RUNTIME)
    found = runtime.get(key) if isinstance(runtime, dict) else None
    return found if isinstance(found, dict) else {}


def _marks(scope: Scope, key: str = "shown") -> dict[str, Any]:
    return marks_of(scope.values["state"], key)


def _refuse(keys: Sequence[str]) -> Any:
    raise NotRead(f"nothing has shown {pointer(keys)}")


def _doubt(scope: Scope, at: str, *, is_all: bool = False) -> None:
    """Note that a write of unknown effect may have changed a thing, or the things below a place."""
    for place, by in _marks(scope, OPEN).items():
        if f"{at}/".startswith(f"{place}/") or (is_all and place.startswith(f"{at}/")):
            scope.doubts.append(f"{by} may have changed it")


def _doubted(scope: Scope, value: Any, why: Any) -> Any:
    """Return a value, and note doubts: the reasons `why`, or the names of sent values that are not applied."""
    reasons = why if isinstance(why, list) else [f"{name} is not applied" for name in an_object(why, "doubted")]
    scope.doubts += map(str, reasons)
    return value


def _keyed(value: Any, name: str, key: Any) -> Any:
    """Return a thing with its key as a member, if the state has only the key: `{'id': 0}`; an empty key is unknown."""
    named = an_object(key, "the key of a thing")
    if not name or not isinstance(value, dict) or named.keys() <= value.keys():
        return value
    return {each: int(name) if type(like) is int and name.isdecimal() else name for each, like in named.items()} | value


def _given(scope: Scope, names: Any) -> JsonObject:
    """Return the arguments in the call, including null, under other names."""
    args = scope.values["call"]["args"]
    return {field: args[name] for name, field in an_object(names, "sent").items() if name in args}


def _sent(filters: Any) -> JsonObject:
    return {name: each for name, each in an_object(filters, "things").items() if each not in (None, "", [])}


def _merge(scope: Scope, *parts: Any) -> JsonObject:
    """Return the objects merged, later ones first; a final list names members that are merged deeply."""
    *objects, last = parts
    deep = last if isinstance(last, list) else []
    found: JsonObject = {}
    for each in (an_object(one, "merge") for one in (objects if deep else parts)):
        scope.take_items(len(each))
        inner = {name: _merge_all(found.get(name), each[name]) for name in deep if name in each}
        found = {**found, **each, **inner}
    return found


def _merge_all(old: Json, new: Json) -> Json:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    return {**old, **{name: _merge_all(old.get(name), each) for name, each in new.items()}}


def _clock(scope: Scope, otherwise: Any) -> str:
    """Return the state's clock, or a text if it has none."""
    now = scope.values.get("now", otherwise)
    return a_text(otherwise if type(now) is Missing else now, "clock")


def _fits(scope: Scope, known: JsonObject, blank: JsonObject, name: str, wanted: Json) -> bool:
    """Return whether a thing has a value, or one of several.

    `~name` searches a text, "" all texts at any depth; `>=name` and the like compare.
    """
    if name[:1] in ("<", ">"):
        sign = name[: 1 + (name[1:2] == "=")]
        return _is_within(scope, known.get(name[len(sign) :]), sign, wanted)
    item = known if name in known else {**blank, **known}
    if not name or name[0] == "~":
        texts = [item.get(name[1:])] if name else scalars_of(item)
        return any(str(wanted).lower() in each.lower() for each in texts if isinstance(each, str))
    if isinstance(wanted, dict):
        return _meets(scope, item, name, wanted)
    there = item.get(name)
    if isinstance(wanted, str) and there != wanted and re.search(r"\w,\w", wanted):
        scope.doubts.append(f"{name} may be several values")
        wanted = wanted.split(",")
    if type(there) is str is type(wanted):
        return there == wanted
    held = {_plain(each) for each in (there if isinstance(there, list) else [there])}
    return any(_plain(each) in held for each in (wanted if isinstance(wanted, list) else [wanted]))


def _meets(scope: Scope, item: JsonObject, name: str, wanted: JsonObject) -> bool:
    """Return whether a value satisfies operators, `{"any_": [...]}`, or an object with such members."""
    scope.tick()
    tests = {each: word for word in wanted if (each := re.sub(r"[^a-z]", "", word.lower())) in TESTS}
    if len(tests) < len(wanted):
        there = item.get(name)
        pairs = wanted.items()
        return isinstance(there, dict) and all(_fits(scope, there, {}, key, each) for key, each in pairs)
    values = {TESTS[each]: wanted[word] for each, word in tests.items() if wanted[word] is not None}
    results: dict[str, Callable[[Json], bool]] = {
        "": lambda value: _fits(scope, item, {}, name, value),
        "not": lambda value: not _fits(scope, item, {}, name, value),
        "all": lambda value: all(_fits(scope, item, {}, name, each) for each in a_list(value, "all")),
        "~": lambda value: _fits(scope, item, {}, f"~{name}", str(value).strip("%")),
        **{sign: partial(_is_within, scope, item.get(name), sign) for sign in _COMPARE},
    }
    return all(results[kind](value) for kind, value in values.items())


def _is_within(scope: Scope, there: Json, sign: str, wanted: Json) -> bool:
    """Return whether a value is on one side of another; unknown values, and those of a limit's day, leave a doubt."""
    (kind, one), (other_kind, other) = _rank(there), _rank(wanted)
    if there is None or kind != other_kind:
        scope.doubts.append(f"a value to compare with {wanted} is not known")
        return False
    if kind and sign in (">", "<=") and one != other and one.startswith(str(wanted)):
        scope.doubts.append(f"{wanted} may mean its beginning or its end")  # a day
    return bool(_COMPARE[sign](one, other))


def _plain(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, dict) else str(value)


def _page(
    scope: Scope, items: Any, limit: Any, offset: Any = None, number: Any = None, after: Any = None, told: Any = True
) -> list[Json]:
    """Return `limit` items from an offset, of a page, or after a thing's [key, id].

    A doubt is noted if the order of the list is not `told`.
    """
    found, size = a_list(items, "page"), limit if type(limit) is int and limit > 0 else None
    first = offset if type(offset) is int and offset > 0 else 0
    if number == 0:
        scope.doubts.append("pages are counted from 1")
    if type(number) is int and number > 1 and size is not None:
        first = (number - 1) * size
    if limit == 0:
        scope.doubts.append("a limit of 0 may mean none, or any number")
    if isinstance(after, list) and after[1] not in (None, ""):
        keys = [str(each.get(after[0])) if isinstance(each, dict) else None for each in found]
        if (last := str(after[1])) not in keys:
            scope.doubts.append(f"no item {last} is known to begin after")
        first = keys.index(last) + 1 if last in keys else 0
    page = found[first : None if size is None else first + size]
    if page and len(page) < len(found) and not require(told):
        scope.doubts.append("it is one page, and nothing tells the order of the list")
    return page


def _ordered(scope: Scope, items: Any, by: Any, direction: Any = None) -> list[Json]:
    """Return things in a requested order: `-price`, `price:desc`, a name and a direction, or a list of these."""
    found = a_list(items, "ordered")
    if isinstance(by, str) and "," in by:  # `name,desc`, or several
        by = re.sub(r",\s*(asc|desc)\b", r" \1", by, flags=re.IGNORECASE).split(",")
    if isinstance(by, list):  # the first has priority
        return reduce(lambda things, one: _ordered(scope, things, one, direction), reversed(by), found)
    named = _ORDER.fullmatch(a_text(by, "ordered")) if by is not None else None
    sign, field, way = named.groups() if named else ("", "", None)
    way = way or require(direction) or (field if field.lower() == "desc" else "")
    is_down = sign == "-" or str(way).lower().startswith(("desc", "-1"))
    scope.take_items(len(found))
    word, members = field.lower(), (each for each in found if isinstance(each, dict) and field)
    names = {name for each in members for name in each if name.lower() == word}
    if not names:  # in the order of creation
        if by and len(found) > 1 and not _BY_CREATION.fullmatch(by):
            scope.doubts.append("its order is not understood")
        return found[::-1] if is_down else found
    name = field if field in names else min(names)
    have = [each for each in found if isinstance(each, dict) and each.get(name) is not None]
    return sorted(have, key=lambda each: _rank(each[name]), reverse=is_down) + [x for x in found if x not in have]


def _rank(value: Json) -> tuple[int, Any]:
    """Return an order of numbers, then of texts; a time with an offset is compared in UTC."""
    if isinstance(value, int | float):
        return 0, value
    if isinstance(value, str) and _TIME.fullmatch(value):
        with suppress(ValueError):
            return 1, datetime.fromisoformat(value).astimezone(UTC).isoformat()
    return 1, str(value)


THINGS: dict[str, Callable[..., Any]] = {
    "exists_at": _has, "thing_at": _thing, "things_at": _things, "new_number": _new_number,
    "sent_as": _given, "merged": _merge, "page_of": _page, "clock_or": _clock, "ordered_by": _ordered,
    "in_doubt": _doubted, "pointer_to": lambda scope, path: pointer(splice(scope, path)),
}  # fmt: skip
