"""Dates and times of the contract language: texts in, texts and numbers out; see docs/contracts.md.

A date without a time is its midnight. No time zone is guessed: only `Z`, `UTC`, `GMT` and offsets are read, and a time
with an offset cannot be compared with one without.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, Final

from .operators import number
from .sandbox import Fault, Scope, a_number, a_text, given, kind

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
    """Return the time of that day; a clock may end with the days that it is later, and with a zone."""
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


def _format(moment: datetime, with_time: bool) -> str:
    return moment.isoformat().replace("+00:00", "Z") if with_time else moment.date().isoformat()


def _date(_: Scope, x: Any) -> str:
    return _format(_read(x, "date")[0], False)


def _time(_: Scope, x: Any, clock: Any = None) -> str:
    moment, _has_time = _read(x, "time")
    if clock is None:
        return _format(moment, True)
    day = datetime.combine(moment.date(), datetime.min.time())
    try:
        return _format(_add_clock(day, a_text(clock, "time").strip()[:_LONGEST], clock), True)
    except (ValueError, OverflowError):
        raise _unreadable("time", clock) from None


def _between(_: Scope, a: Any, b: Any, unit: Any = "seconds") -> int | float:
    first, last = _read(a, "between")[0], _read(b, "between")[0]
    if (first.tzinfo is None) != (last.tzinfo is None):
        raise Fault(f"between: one of {a!r} and {b!r} has an offset from UTC and the other has none")
    if _unit(unit, "between") in _SECONDS:
        return _whole((last - first).total_seconds() / _SECONDS[unit])
    months = _months(first, last.astimezone(first.tzinfo) if first.tzinfo else last)
    return int(months / 12) if unit == "years" else months


def _months(first: datetime, last: datetime) -> int:
    if last < first:
        return -_months(last, first)
    begun = (last.year - first.year) * 12 + last.month - first.month
    return begun - ((last.day, last.time()) < (first.day, first.time()))


def _whole(value: float) -> int | float:
    return number(int(value) if value.is_integer() else value)


def _unit(unit: Any, what: str) -> str:
    if isinstance(unit, str) and unit in _UNITS:
        return unit
    got = repr(unit) if isinstance(unit, str) else kind(given(unit))
    raise Fault(f"{what}: expected one of {', '.join(_UNITS)} as unit, got {got}")


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
    months = 12 * amounts.pop("years") + amounts.pop("months")
    if type(months) is not int:
        raise Fault("shift: years and months must be whole numbers")
    try:
        moment = _shift_months(moment, months)
        later = moment + timedelta(seconds=sum(amount * _SECONDS[unit] for unit, amount in amounts.items()))
    except (ValueError, OverflowError):
        raise Fault("shift: the time is outside the years 1 to 9999") from None
    return _format(later, has_time or any(amounts[unit] for unit in ("hours", "minutes", "seconds")))


def _shift_months(moment: datetime, months: int) -> datetime:
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    day = date(year, month + 1, 1)
    return moment.replace(year=year, month=month + 1, day=min(moment.day, monthrange(day.year, day.month)[1]))


def _weekday(_: Scope, x: Any) -> str:
    return _DAYS[_read(x, "weekday")[0].weekday()]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "date": _date, "time": _time, "between": _between, "shift": _shift, "weekday": _weekday,
}  # fmt: skip
