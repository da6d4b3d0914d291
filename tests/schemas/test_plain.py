"""The quick test of a value: it never takes what the whole check refuses, and does take what plain schemas allow."""

import random

import pytest

from gecko_graph.schemas import rules
from gecko_graph.schemas.plain import compile_plain
from gecko_graph.schemas.rules import accepts, rules_of

from .test_strict import random_schema, random_value

USER = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "in full"},
        "age": {"type": ["integer", "null"], "minimum": 0, "maximum": 150},
        "role": {"enum": ["admin", "guest", None]},
        "tags": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}},
        "note": {"type": "string", "pattern": "^a"},
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "takes"),
    [
        ({"name": "Ann"}, True),
        ({"name": "Ann", "age": 3, "role": "guest", "tags": ["x", 1.5]}, True),
        ({"name": "Ann", "age": None, "role": None, "tags": []}, True),
        ({"name": "Ann", "note": "all"}, False),  # a pattern is left to the whole check
        ({}, False),
        ([], False),
        ({"name": "Ann", "age": True}, False),
        ({"name": "Ann", "age": 151}, False),
        ({"name": "Ann", "age": 3.0}, True),
        ({"name": "Ann", "role": "boss"}, False),
        ({"name": "Ann", "tags": [True]}, False),
        ({"name": "Ann", "other": 1}, False),
    ],
)
def test_plain_keywords_are_told_at_once(value, takes):
    assert compile_plain(USER)(value) is takes


@pytest.mark.parametrize("seed", range(40))
def test_what_it_takes_has_no_errors(seed, monkeypatch):
    monkeypatch.setattr(rules, "_plain", lambda _: lambda _: False)  # the whole check, each time
    chance, taken = random.Random(seed), 0
    for _ in range(50):
        value = random_value(chance)
        whole = rules_of(random_schema(chance, random_value(chance) if chance.random() < 0.3 else value))
        if compile_plain(whole.schema)(value):
            taken += 1
            assert accepts(whole, value), (whole.schema, value)
    assert taken > 3
