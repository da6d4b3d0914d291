"""Undecided arguments: those whose meaning no rule decides, so that a model is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.schemas.undecided import find_undecided
from gecko_graph.values.paths import value_at
from tests.any_schema import PARAMETERS, fitting


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ({"type": "boolean"}, True),
        ({"type": ["string", "null"]}, None),
        ({"enum": ["a", "b"]}, "a"),
        ({"const": 3}, 3),
        ({"type": "string", "format": "date"}, "2024-01-01"),
        ({"type": "integer", "minimum": 0, "maximum": 9}, 3),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 9}, 3.5),
        ({"allOf": [{"minimum": 0}, {"maximum": 3}]}, 2),
        ({"anyOf": [{"type": "integer"}, {"enum": ["all"]}]}, "all"),
        ({"type": "array", "items": {"enum": ["a"]}}, ["a", "a"]),
        ({"type": "string", "default": "metric"}, "metric"),
        ({"$ref": "#/$defs/mode"}, "fast"),
        ({"type": "array"}, []),
        ({"type": "string", "description": "The class of the travel. Options are: economy, business, first."}, "First"),
        ({"type": "string", "description": "Unit: either 'celsius' or `fahrenheit`"}, "celsius"),
        ({"type": "string", "description": "Possible values (asc|desc)"}, "desc"),
    ],
)
def test_what_a_rule_decides(rule, value):
    parameters = {"type": "object", "properties": {"x": rule}, "$defs": {"mode": {"enum": ["fast"]}}}
    assert find_undecided(parameters, {"x": value}) == []


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ({"type": "string"}, "Seattle"),
        ({"type": "string", "format": "unheard-of"}, "a"),
        ({"type": "integer", "minimum": 0}, 3),
        ({"type": "number"}, 3.5),
        ({"anyOf": [{"type": "integer"}, {"enum": ["all"]}]}, 7),
        ({}, "a"),
        ({"type": "string", "description": "Options are: economy, business, first."}, "window"),
        ({"type": "string", "description": "The 'name' of a person."}, "name"),
    ],
)
def test_what_none_decides(rule, value):
    assert find_undecided({"type": "object", "properties": {"x": rule}}, {"x": value}) == ["$.x"]


def test_places_inside():
    item = {"type": "object", "properties": {"name": {"type": "string"}, "ok": {"type": "boolean"}}}
    parameters = {"properties": {"people": {"type": "array", "items": item}, "odd name": {}}}
    args = {"people": [{"name": "Ann", "ok": True, "more": "x"}, {"ok": False}], "odd name": 1}
    assert find_undecided(parameters, args) == ["$.people[0].name", "$.people[0].more", '$["odd name"]']


def test_many_places_are_named_by_the_whole():
    assert find_undecided({"properties": {"x": {"items": {"type": "string"}}}}, {"x": ["a"] * 100}) == ["$.x"]


@given(st.data())
def test_every_place_is_there(data):
    parameters = data.draw(PARAMETERS)
    args = data.draw(fitting(parameters))
    for place in find_undecided(parameters, args):
        assert value_at(args, place) is not None
