"""The contract language's functions of times, identifiers, places and money; docs/contracts.md lists them.

Dates and times are texts. A date without a time is its midnight. Time zones are never guessed: only `Z`, `UTC`, `GMT`
and offsets are read, and a time with an offset cannot be compared with one without.
"""

from __future__ import annotations

import hashlib
import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any, Final

from ...state import Json
from .builtin import BUILTINS, UNSET
from .operators import equal, member, number, splice
from .sandbox import MAX_DEPTH, Fault, Missing, Scope, a_list, a_number, a_small_int, a_text, require
from .things import THINGS

_SECONDS: Final = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
_UNITS: Final = ("years", "months", *_SECONDS)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LONGEST = 60
_WEEKDAY = r"(?:[A-Za-z]{3,9},?\s)?"
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DATES: Final = (
    (re.compile(r"(\d{4})[-/](\d\d?)[-/](\d\d?)(?!\d)"), "ymd"),
    (re.compile(rf"{_WEEKDAY}(\d\d?)[\s-]?{_MONTH},?[\s-]?(\d{{4}}|\d\d)(?!\d)", re.I), "dmy"),  # 15MAY24
    (re.compile(rf"{_WEEKDAY}{_MONTH}\s(\d\d?)(?:st|nd|rd|th)?,?\s(\d{{4}})(?!\d)", re.I), "mdy"),
)
_CLOCK: Final = re.compile(r"(\d\d?):?(\d\d)(?::(\d\d)(\.\d{1,6})?)?(?:\s?([AP])M)?(?:\+(\d)(?![\d:]))?", re.I)
_ZONE: Final = re.compile(r"Z|UTC|GMT|([+-])(\d\d):?(\d\d)")


def _read(text: Any, what: str) -> tuple[datetime, bool]:
    """Return the time in a text, and whether the text has more than a date. Raises Fault."""
    source = a_text(text, what).strip()
    if len(source) <= _LONGEST:
        try:
            for pattern, order in _DATES:
                if found := pattern.match(source):
                    day = dict(zip(order, found.groups(), strict=True))
                    month = day["m"] if day["m"].isdigit() else _MONTHS.index(day["m"].lower()) + 1
                    year = int(day["y"]) + (2000 if len(day["y"]) == 2 else 0)
                    midnight = datetime(year, int(month), int(day["d"]))
                    rest = source[found.end() :]
                    return (_add_clock(midnight, rest.lstrip("T ,"), source), True) if rest else (midnight, False)
        except (ValueError, OverflowError):
            pass
    raise _unreadable(what, source)


def _add_clock(midnight: datetime, clock: str, source: str) -> datetime:
    """Return the time of that day; a clock may end with a number of days to add, and with a zone."""
    found = _CLOCK.match(clock)
    zone = clock[found.end() :].strip() if found else clock
    offset = _ZONE.fullmatch(zone) if zone else None
    if found is None or (zone and offset is None):
        raise _unreadable("a time", source)
    hours, minutes, seconds, fraction, half, later = found.groups()
    hour = int(hours) % 12 + (12 if half in "pP" else 0) if half else int(hours)
    micro = round(float(fraction or 0) * 1_000_000)
    moment = midnight.replace(hour=hour, minute=int(minutes), second=int(seconds or 0), microsecond=micro)
    moment += timedelta(days=int(later or 0))
    if offset is None:
        return moment
    sign, ahead, more = offset.groups()
    span = timedelta(hours=int(ahead or 0), minutes=int(more or 0))
    return moment.replace(tzinfo=timezone(-span if sign == "-" else span) if span else UTC)


def _unreadable(what: str, source: str) -> Fault:
    return Fault(
        f"{what} cannot read {source[:_LONGEST]!r}: expected a date like 2024-05-15 or 15MAY24, perhaps with a time "
        "like 15:00:00 and an offset like +02:00; names of time zones are not read"
    )


def _written(moment: datetime, with_time: bool = True) -> str:
    return moment.isoformat().replace("+00:00", "Z") if with_time else moment.date().isoformat()


def _time(_: Scope, x: Any, clock: Any = None) -> str:
    moment, _has_time = _read(x, "time")
    if clock is None:
        return _written(moment)
    day = datetime.combine(moment.date(), datetime.min.time())
    try:
        return _written(_add_clock(day, a_text(clock, "time").strip()[:_LONGEST], clock))
    except (ValueError, OverflowError):
        raise _unreadable("time", clock) from None


def _between(_: Scope, a: Any, b: Any, unit: Any = "seconds") -> int | float:
    first, last = _read(a, "between")[0], _read(b, "between")[0]
    if (first.tzinfo is None) != (last.tzinfo is None):
        raise Fault(f"between: one of {a!r} and {b!r} has an offset from UTC and the other has none")
    if unit not in _UNITS:
        raise Fault(f"between: expected one of {', '.join(_UNITS)} as unit, got {require(unit)!r:.40}")
    if unit in _SECONDS:
        length = (last - first).total_seconds() / _SECONDS[unit]
        return number(int(length) if length.is_integer() else length)
    months = _months(first, last.astimezone(first.tzinfo) if first.tzinfo else last)
    return int(months / 12) if unit == "years" else months


def _months(first: datetime, last: datetime) -> int:
    if last < first:
        return -_months(last, first)
    begun = (last.year - first.year) * 12 + last.month - first.month
    return begun - ((last.day, last.time()) < (first.day, first.time()))


def _shift(  # noqa: PLR0913 - one for each unit
    _: Scope,
    x: Any,
    *,
    years: Any = 0,
    months: Any = 0,
    weeks: Any = 0,
    days: Any = 0,
    hours: Any = 0,
    minutes: Any = 0,
    seconds: Any = 0,
) -> str:
    moment, has_time = _read(x, "shift")
    units = zip(_UNITS, (years, months, weeks, days, hours, minutes, seconds), strict=True)
    amounts = {unit: a_number(amount, f"shift's {unit}") for unit, amount in units}
    later = 12 * amounts.pop("years") + amounts.pop("months")
    if type(later) is not int:
        raise Fault("shift: years and months must be whole numbers")
    try:
        year, month = divmod(moment.year * 12 + moment.month - 1 + later, 12)
        moment = moment.replace(year=year, month=month + 1, day=min(moment.day, monthrange(year, month + 1)[1]))
        moment += timedelta(seconds=sum(amount * _SECONDS[unit] for unit, amount in amounts.items()))
    except (ValueError, OverflowError):
        raise Fault("shift: the time is outside the years 1 to 9999") from None
    return _written(moment, has_time or any(amounts[unit] for unit in ("hours", "minutes", "seconds")))


Function = Callable[..., Any]

_CENT = Decimal("0.01")
_IDENTIFIER = "0123456789abcdefghjkmnpqrstvwxyz"
_LONGEST_SHAPE = 40
_SHAPES = {
    "A": ascii_uppercase, "a": ascii_lowercase, "9": digits, "X": ascii_uppercase + digits, "x": digits + "abcdef",
}  # fmt: skip


def _at(scope: Scope, document: Any, path: Any, default: Any = UNSET) -> Any:
    """Return the value at a path, else the default, else Missing. Raises Fault for an invalid path."""
    value = document
    for token in splice(scope, path):
        if type(value) is dict:
            value = value.get(token if type(token) is str else str(token), UNSET)
        else:
            is_index = isinstance(value, list) and isinstance(token, str) and token.isdecimal()
            value = member(value, int(token) if is_index else token, "")
        if type(value) is Missing:
            if default is not UNSET:
                return default
            return document if document is value else Missing(f"{token!r:.80} in the path")
    return value


def _walk(scope: Scope, document: Any) -> list[Json]:
    """Return every value below a document, parents first, as `{path, key, value}`. Raises Fault."""
    found: list[Json] = []
    open_ends: list[tuple[list[str | int], Any]] = [([], require(document))]
    while open_ends:
        path, value = open_ends.pop()
        if path:
            scope.take(256 + 8 * len(path))
            found.append({"path": path, "key": path[-1], "value": value})
        if len(path) > MAX_DEPTH or len(found) > scope.most_items:
            raise Fault(f"walk: more than {scope.most_items:,} values, or more than {MAX_DEPTH} levels")
        scope.tick()
        open_ends.extend(_below(scope, path, value))
    return found


def _below(scope: Scope, path: list[str | int], value: Any) -> Iterator[tuple[list[str | int], Any]]:
    if not isinstance(value, dict | list):
        return
    scope.take_items(len(value))
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in reversed(keys):
        yield [*path, key], value[key]


def _index_of(scope: Scope, values: Any, value: Any) -> Any:
    missing = Missing("the index of an absent item")
    if isinstance(values, str):
        position = values.find(a_text(value, "index of a text"))
        return missing if position < 0 else position
    for position, item in enumerate(a_list(values, "index")):
        scope.tick()
        if equal(scope, item, value):
            return position
    return missing


def _new_id(scope: Scope, prefix: Any = "", shape: Any = None) -> str:
    begin = a_text(prefix, "new_id")
    scope.take_text(begin)
    digest = _draw(scope, begin)
    if shape is None:
        digest >>= 176
        return begin + "".join(_IDENTIFIER[digest >> 5 * place & 31] for place in range(12))
    if len(a_text(shape, "new_id's shape")) > _LONGEST_SHAPE:
        raise Fault(f"new_id: a shape has at most {_LONGEST_SHAPE} characters")
    for sign in shape:
        digest, place = divmod(digest, len(_SHAPES.get(sign, sign)))
        begin += _SHAPES.get(sign, sign)[place]
    return begin


def _draw(scope: Scope, what: str) -> int:
    """Return 256 pseudorandom bits from the seed, the call and the number of earlier draws."""
    identity = scope.call_id if isinstance(scope.call_id, str) else scope.call_id()
    source = f"{scope.seed}\x1f{identity}\x1f{what}\x1f{scope.count_identifier()}"
    return int.from_bytes(hashlib.sha256(source.encode()).digest(), "big")


def _random_int(scope: Scope, low: Any, high: Any) -> int:
    first, last = (a_small_int(bound, "random_int", 2**62) for bound in (low, high))
    if last < first:
        raise Fault(f"random_int: {last} is below {first}")
    return first + _draw(scope, "random_int") % (last - first + 1)


def _random_float(scope: Scope, low: Any, high: Any, places: Any = None) -> int | float:
    first, last = (a_number(bound, "random_float") for bound in (low, high))
    if last < first:
        raise Fault(f"random_float: {last} is below {first}")
    drawn = first + (last - first) * ((_draw(scope, "random_float") >> 203) / 2**53)
    return number(float(drawn) if places is None else round(drawn, a_small_int(places, "random_float", 20)))


def money(_: Scope, value: Any) -> int | float:
    """Return a number rounded to cents, half a cent upwards, by its printed digits. Raises Fault."""
    amount = a_number(value, "money")
    try:
        return number(float(Decimal(str(amount)).quantize(_CENT, rounding=ROUND_HALF_UP)))
    except InvalidOperation:
        raise Fault("money needs a number of at most 26 digits") from None


def _trusted(scope: Scope, path: Any) -> bool:
    if scope.trusts is None:
        raise Fault("trusted(path) is known only in a contract")
    return scope.trusts(splice(scope, path))


FUNCTIONS: dict[str, Function] = {
    **BUILTINS,
    "at": _at, "walk": _walk, "index": _index_of, "new_id": _new_id, "money": money,
    "random_int": _random_int, "random_float": _random_float, "trusted": _trusted,
    "date": lambda _, x: _written(_read(x, "date")[0], False), "time": _time, "between": _between, "shift": _shift,
    "weekday": lambda _, x: _DAYS[_read(x, "weekday")[0].weekday()], **THINGS,
}  # fmt: skip
TAKEN = frozenset(("at", "walk", "zip", "index", "range", "new_id", "money"))
"""Functions whose names no let may have; other functions' names may be needed for a tool's own values."""
