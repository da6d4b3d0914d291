"""Dates, times, durations, random numbers and shaped identifiers."""

import re
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gecko_graph.contracts.language.expression import Expression, Scope
from gecko_graph.errors import ContractError, EvaluationFailed


def value(source, *, seed=0, call_id="c1", **names):
    scope = Scope(names, seed=seed, call_id=call_id)
    return Expression.compile(source, names=tuple(names), where="here").evaluate(scope)


@pytest.mark.parametrize(("text", "wanted"), [
    ("2024-05-15", "2024-05-15T00:00:00"), ("2024-05-15T15:00:00", "2024-05-15T15:00:00"),
    (" 2024-05-15 15:00 ", "2024-05-15T15:00:00"),
    ("2024-05-15T15:00:00.25Z", "2024-05-15T15:00:00.250000Z"),
    ("2024-05-15T22:30:00+1", "2024-05-16T22:30:00"), ("15MAY24", "2024-05-15T00:00:00"),
    ("15MAY2024 1530", "2024-05-15T15:30:00"), ("5 May 2024, 3:05 PM", "2024-05-05T15:05:00"),
    ("May 15, 2024", "2024-05-15T00:00:00"),
    ("Wed, 15 May 2024 08:00:00 GMT", "2024-05-15T08:00:00Z"),
    ("Wednesday, September 3rd, 2025", "2025-09-03T00:00:00"),
])  # fmt: skip
def test_the_forms_of_a_time(text, wanted):
    assert value("time(x)", x=text) == wanted
    assert value("date(x)", x=text) == wanted[:10]


@pytest.mark.parametrize(
    "text",
    ["", "05/15/2024", "2024-13-01", "2024-02-30", "2024-05-15T", "2024-05-15 25:00", "2024-05-15 15:00:00 EST",
     "12:00", "20240515", "2024-05-155", "15 Foo 2024", "now", "9" * 300, "2024-05-15 1", "0000-01-01",
     "9999-12-31 10:00+1"],
)  # fmt: skip
def test_what_is_ambiguous_or_no_time_is_not_guessed(text):
    with pytest.raises(EvaluationFailed, match="cannot read"):
        value("time(x)", x=text)


@pytest.mark.parametrize(("source", "wanted"), [
    ("time('2024-12-31', '02:30:00+1')", "2025-01-01T02:30:00"),
    ("time('2024-05-15T23:00:00', '7:15 pm')", "2024-05-15T19:15:00"),
    ("between('2024-05-13T18:05:00', '2024-05-14T18:05:00', 'hours')", 24),
    ("between('2024-05-13T18:05:00', now, 'hours') <= 24", False),
    ("between('2024-05-16', '2024-05-14', 'days')", -2),
    ("between('2024-05-14', '2024-05-14 00:01', 'minutes') + between('2024-05-14', '2024-05-14 00:01')", 61),
    ("between('2024-01-31', '2024-02-29', 'months')", 0), ("between('2022-11-15', '2024-02-14', 'months')", 14),
    ("between('2024-05-15T12:00Z', '2024-05-15T15:00+02:00', 'hours')", 1),
    ("shift('2024-05-15', days=1)", "2024-05-16"), ("shift('2024-01-31', months=1)", "2024-02-29"),
    ("shift(now, weeks=1, minutes=-30)", "2024-05-22T14:30:00"),
    ("shift('2024-05-15T12:00Z', seconds=1)", "2024-05-15T12:00:01Z"),
    ("weekday(now)", "Wednesday"),
    ("sorted([date(d) for d in ['15MAY24', '2024-05-01']])", ["2024-05-01", "2024-05-15"]),
])  # fmt: skip
def test_reckoning_with_times(source, wanted):
    assert value(source, now="2024-05-15 15:00:00") == wanted


@pytest.mark.parametrize(("source", "why"), [
    ("between(5, now)", "between needs a text, not a number"),
    ("between(now, now, 'day')", "expected one of years, months, weeks, days, hours, minutes, seconds as unit"),
    ("between('2024-05-15T12:00Z', now)", "has an offset from UTC and the other has none"),
    ("shift(now, months=1.5)", "years and months must be whole numbers"),
    ("shift(now, days=-999999)", "outside the years 1 to 9999"),
    ("random_int(2, 1)", "1 is below 2"),
    ("new_id('', f'A{now}{now}{now}')", "at most 40 characters"),
])  # fmt: skip
def test_what_has_no_value(source, why):
    with pytest.raises(EvaluationFailed, match=why):
        value(source, now="2024-05-15 15:00:00")


@pytest.mark.parametrize("source", ["shift(now, day=1)", "between(now)", "date(now, now)", "time()", "random_int(1)"])
def test_wrong_arguments_are_refused_at_load(source):
    with pytest.raises(ContractError):
        value(source, now="")


TIMES = st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2100, 1, 1)).map(
    lambda x: x.replace(microsecond=0)
)


@settings(max_examples=60, deadline=None)
@given(TIMES, st.integers(-(10**9), 10**9))
def test_shift_and_between_agree_with_the_calendar(moment, seconds):
    text = moment.isoformat()
    later = (moment + timedelta(seconds=seconds)).isoformat()
    assert value("shift(x, seconds=n)", x=text, n=seconds) == later
    assert value("between(x, y)", x=text, y=later) == seconds
    assert value("weekday(x)", x=text) == moment.strftime("%A")
    assert value("date(x)", x=moment.strftime("%d%b%Y").upper()) == text[:10]


def test_numbers_come_from_seed_and_call():
    source = "[random_int(1, 6), random_int(1, 6), random_float(0, 1), random_float(1, 2, 2), new_id('b-', 'AAA999')]"
    first = value(source)
    assert first == value(source)
    assert value(source, seed=1) != first != value(source, call_id="c2")
    assert first[3] == round(first[3], 2)
    assert re.fullmatch(r"b-[A-Z]{3}\d{3}", first[4])


def test_numbers_stay_in_their_range_and_reach_all_of_it():
    drawn = value("[random_int(-1, 2) for n in range(300)]")
    assert set(drawn) == {-1, 0, 1, 2}
    floats = value("[random_float(5, 6) for n in range(300)]")
    assert all(5 <= each <= 6 for each in floats)
    assert len(set(floats)) == 300
    assert value("random_int(4, 4)") == value("random_float(4, 4)") == 4


@pytest.mark.parametrize(
    ("shape", "form"),
    [("XXXXXX", "[A-Z0-9]{6}"), ("aa-9", "[a-z]{2}-[0-9]"), ("x" * 40, "[0-9a-f]{40}"), ("", ""), ("Ö9", "Ö[0-9]")],
)
def test_shapes_of_identifiers(shape, form):
    assert re.fullmatch(form, value("new_id('', shape)", shape=shape))
