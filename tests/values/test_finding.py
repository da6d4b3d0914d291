"""finding: whether a value stands in what tools returned and people wrote, as strictly as is asked."""

import json

import pytest
from hypothesis import given

from gecko_graph.values.finding import Leaves, durations_of
from gecko_graph.values.places import scalars
from tests.any_schema import JSON


@pytest.mark.parametrize(("value", "document"), [
    ("Ann", "ask ann."), (12, "pay 12, please"), (1240.5, "it costs 1,240.50 euros"), (-5, "at -5 degrees"),
    (["a", {"k": 7}], ["a", 7]), ("#tag", "with #tag"),
])  # fmt: skip
def test_it_stands(value, document):
    assert Leaves([None, document]).holds(value, "verbatim")


@pytest.mark.parametrize(("value", "document"), [
    ("an", "ann"), ("F-77", "F-7731"), (12, "120 or 1.12 or a12 or 12th"), (5, "-5"), ("", "text"), (True, "true"),
    (1, {"done": True}),
])  # fmt: skip
def test_it_does_not(value, document):
    assert not Leaves([document]).holds(value, "verbatim")


@given(document=JSON)
def test_every_text_with_letters_and_every_number_of_a_document_stands_in_it(document):
    stack = [document]
    while stack:
        value = stack.pop()
        if isinstance(value, dict | list):
            stack += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str):
            assert Leaves([document]).holds(value, "verbatim") == any(
                map(str.isalnum, " ".join(value.casefold().split()))
            )
        else:
            assert Leaves([document]).holds(value, "verbatim") == (value is not None and not isinstance(value, bool))


def test_a_text_in_a_huge_document_is_looked_for_in_bounded_time():
    documents = ["hay " * 1_000_000 + "needle", json.loads("[" * 900 + "]" * 900)]
    assert not Leaves(documents).holds("needle", "verbatim")


@pytest.mark.parametrize(("value", "document", "strictness"), [
    ("15:00", "at 3 pm", "normal"), ("f77", "F-77", "normal"), (2, "two of them", "normal"),
    ("2026-05-12", "on 12/05/2026", "loose"), (2.49, "about 2.5", "loose"),
    ("+32 470 55 01 00", "0032470550100", "loose"), (1250, "12.50", ""), (-50, "50", "loose"),
])  # fmt: skip
def test_strictness_says_what_counts_as_the_same(value, document, strictness):
    ways = ["verbatim", "normal", "loose"]
    held = [each for each in ways if Leaves([document]).holds(value, each)]
    assert held == (ways[ways.index(strictness) :] if strictness else [])


def test_scalars_stand_in_order_with_their_places_and_only_where_asked_with_the_names_of_members():
    value = {"a": [1, {"b": None}], "c": {}}
    assert list(scalars(value)) == [(("a", 0), 1), (("a", 1, "b"), None)]
    assert [each for _, each in scalars(value, keys=True)] == ["a", "c", 1, "b", None]


@pytest.mark.parametrize(
    ("text", "minutes"), [("an hour", {60}), ("half an hour", {30}), ("an hour and a half, 45 minutes", {90, 45})]
)
def test_durations_are_read_from_words(text, minutes):
    assert durations_of(text) == minutes
