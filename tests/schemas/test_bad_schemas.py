"""Bad schemas: what is malformed is no rule, what is hostile ends soon, and nothing breaks a run."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.schemas.complaints import find_complaints, find_faults
from gecko_graph.schemas.undecided import find_undecided
from gecko_graph.tools.spec import ToolSpec
from tests.any_schema import JSON, JUNK


def taking(rule):
    return ToolSpec(name="t", parameters={"type": "object", "properties": {"x": rule}})


@pytest.mark.parametrize(
    "rule",
    [
        {"type": "dict"},
        {"type": ["string", 7]},
        {"minimum": "5"},
        {"exclusiveMinimum": True},
        {"required": True},
        {"required": "abc"},
        {"enum": "abc"},
        {"enum": []},
        {"properties": ["a"]},
        {"items": [{"type": "string"}]},
        {"pattern": "([a-z"},
        {"pattern": r"(a)\1"},
        {"multipleOf": 0},
        {"minimum": 10**400},
        {"maxLength": -(10**400)},
        {"minLength": "x"},
        {"allOf": {}},
        {"anyOf": []},
        {"$ref": "#/nowhere"},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": 7},
        {"$ref": "#/$defs/%"},
        {"$id": 7, "$schema": 7},
        {"not": 7},
        {"not": {"type": "dict"}},
        {"oneOf": [{"type": "dict"}, {}]},
        {"dependentRequired": {"a": "b"}},
        {"minContains": "x", "contains": {}},
        "no schema",
        None,
    ],
)
@pytest.mark.parametrize("value", [5, "abc", {"a": 1}, ["abc"], None])
def test_what_is_malformed_is_no_rule(rule, value):
    assert find_complaints(taking(rule), {"x": value}) == []
    assert find_faults(rule, value) == []


@given(JUNK, st.one_of(JSON, JUNK))
def test_no_schema_breaks_a_run(schema, value):
    for each in find_faults(schema, value):
        assert each.startswith("at $")
    spec = ToolSpec(name="t", parameters=schema)
    args = {"a": value, "b": 1}
    if not find_complaints(spec, args):
        find_undecided(schema, args)


def test_the_rest_of_a_malformed_schema_still_rules():
    assert find_faults({"type": "string", "minLength": "three", "maxLength": 2}, "abc") != []


def test_another_dialect_is_read_as_2020_12():
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"n": {"type": "integer"}, "again": {"$ref": "#"}},
    }
    assert find_faults(schema, {"again": {"n": 10.0}}) == ["at $.again.n: expected an integer, got 10.0"]


def test_a_property_may_be_called_like_a_keyword():
    schema = {"properties": {"$schema": {"type": "string"}, "required": {"type": "integer"}, "enum": {"type": "null"}}}
    assert find_faults(schema, {"$schema": 1, "required": "a", "enum": 1}) == [
        'at $["$schema"]: expected a string, got 1',
        'at $.required: expected an integer, got "a"',
        "at $.enum: expected null, got 1",
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"items": {"oneOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]}},
        {"pattern": "(a+)+$"},
        {"pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"},
        {"patternProperties": {"(x+x+)+y": {}}, "unevaluatedProperties": False},
        {"propertyNames": {"pattern": "(x+x+)+y"}},
        {"pattern": "(" * 5_000 + ")" * 5_000},
        {"pattern": "((a{1,500}){1,500}){1,500}"},
    ],
)
def test_nothing_hangs(schema, count_steps):
    deep: list = []
    for _ in range(30):
        deep = [deep, deep] if len(str(deep)) < 500 else [deep]
    for value in ("a" * 3_000 + "!", deep, {"x" * 3_000: 1}):
        assert count_steps(functools.partial(find_faults, schema, value)) < 3_000_000


def test_a_schema_that_contains_itself():
    schema: dict = {"type": "object"}
    schema["properties"] = {"again": schema}
    assert find_faults(schema, {"again": 1}) == []
