"""verbatim: whether a value stands in what tools returned and people wrote."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from gecko_graph.schemas.verbatim import occurs_verbatim
from tests.any_schema import JSON


@pytest.mark.parametrize(
    ("value", "document"),
    [
        ("Ann", "ask ann."),
        ("ann's  desk", "At Ann\u2019s desk"),
        ("a.txt", {"files": ["b.txt", "a.txt"]}),
        ("docs", {"docs": {"x": 1}}),
        (12, "pay 12, please"),
        (1240.5, "it costs 1,240.50 euros"),
        (1240.5, {"amount": 1240.5}),
        (3, {"n": 3.0}),
        (-5, "at -5 degrees"),
        ("42", {"id": 42}),
        (["a", {"k": 7}], ["a", 7]),
        ("#tag", "with #tag"),
    ],
)
def test_it_stands(value, document):
    assert occurs_verbatim(value, [None, document])


@pytest.mark.parametrize(
    ("value", "document"),
    [
        ("an", "ann"),
        ("F-77", "F-7731"),
        (12, "120 or 1.12 or a12 or 12th"),
        (5, "-5"),
        ("", "text"),
        ("..", "a..b"),
        (True, "true"),
        (None, "null"),
        (1, {"done": True}),
        (["a", "b"], "a"),
        ([], "a"),
        ("x", []),
    ],
)
def test_it_does_not(value, document):
    assert not occurs_verbatim(value, [document])


@given(document=JSON)
def test_every_text_with_letters_and_every_number_of_a_document_stands_in_it(document):
    stack = [document]
    while stack:
        value = stack.pop()
        if isinstance(value, dict | list):
            stack += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str):
            assert occurs_verbatim(value, [document]) == any(map(str.isalnum, " ".join(value.casefold().split())))
        else:
            assert occurs_verbatim(value, [document]) == (value is not None and not isinstance(value, bool))


def test_a_text_in_a_huge_document_is_looked_for_in_bounded_time():
    assert not occurs_verbatim("needle", ["hay " * 1_000_000 + "needle", json.loads("[" * 900 + "]" * 900)])
