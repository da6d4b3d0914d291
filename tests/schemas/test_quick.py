"""The quick test of a value: a yes is the whole check's, and what neither it nor its engine can read never raises."""

import math
import sys

import pytest

from evals.engines.pairs import make_pair
from gecko_graph.schemas import rules
from gecko_graph.schemas.quick import compile_quick
from gecko_graph.schemas.rules import accepts, check, explain, rules_of


def quick(schema):
    return rules.quick_test(rules_of(schema))


def fits(schema, value):
    return next(explain(rules_of(schema), value), None) is None


def test_without_the_extra_the_reference_answers(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    schema = {"type": "string", "maxLength": 3}
    assert compile_quick(schema, {}.get) is None
    assert fits(schema, "abc")
    assert not fits(schema, "abcd")


ENUM = {"enum": [2**53, "a"]}
NESTED = {"enum": [{"a": [1, True, None]}]}
TREE = {"$ref": "#/$defs/t", "$defs": {"t": {"type": "object", "additionalProperties": {"$ref": "#/$defs/t"}}}}
ANY = {"anyOf": [{"items": {"$ref": "#"}, "type": "array"}, {"type": ["string", "null"]}]}
TWICE = {"anyOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}, "b": False}}]}


@pytest.mark.parametrize(("schema", "value", "is_valid"), [
    ({"type": "integer"}, 2.0, True), ({"type": "integer", "format": "int32"}, 2**31, False),
    ({"format": "int64"}, 2**63 - 1, True), ({"format": "int64"}, 2.0**63, False),
    ({"multipleOf": 0.01}, 19.99, True), ({"multipleOf": 0.01}, 19.999, False), ({"multipleOf": 7}, 1e23, False),
    ({"not": {"multipleOf": 0.1}}, 0.3, False), ({"pattern": "^a$"}, "a\n", False),
    ({"pattern": r"^\d$"}, "٣", False), ({"pattern": r"^\p{L}+$"}, "é", True), ({"pattern": "(?<=a)b"}, "ab", True),
    ({"not": {"pattern": "^.$"}}, "\u2028", True), ({"format": "date"}, "2023-02-29", False),
    ({"format": "date-time"}, "2024-05-01T10:00:60Z", True), ({"format": "regex"}, "(", True),
    ({"maxLength": 1}, "😀", True), (NESTED, {"a": [1.0, True, None]}, True),
    (NESTED, {"a": [True, True, None]}, False), (TREE, {"a": {"b": {}}}, True), (TREE, {"a": {"b": 1}}, False),
    (ANY, [["a", [None]]], True), (ANY, [[1]], False),
    ({"items": {"type": "string"}, "uniqueItems": True}, ["a", "b"], True),
    ({"items": {"type": "string"}, "uniqueItems": True}, ["a", "a"], False),
    ({"properties": {"$ref": {"type": "string"}}}, {"$ref": 1}, False),
])  # fmt: skip
def test_it_reads_a_schema_as_the_whole_check_does(schema, value, is_valid):
    assert quick(schema)(value) is fits(schema, value) is is_valid


@pytest.mark.parametrize(("schema", "value", "is_valid"), [
    (ENUM, 2**53 + 1, False), ({"uniqueItems": True}, [*range(30), -0.0], False),
    ({"uniqueItems": True}, [2**63, 2.0**63], False),
    ({"patternProperties": {"^a$": {"type": "string"}}}, {"a": 1}, False),
    ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"b": 1}, False),
    ({"$ref": "#/$defs/none"}, 1, True), ({"$ref": "https://example.com/schema"}, 1, True),
    ({"$dynamicRef": "#a", "$dynamicAnchor": "a"}, 1, True), ({"$ref": "#"}, 1, True),
    (TWICE, {"a": {"a": 1}}, True), ({"const": "\ud800"}, "\ud800", True), ({"maximum": 10**30}, 1, True),
    ({"enum": [math.nan]}, None, False),
])  # fmt: skip
def test_what_they_may_differ_in_is_left_to_the_whole_check(schema, value, is_valid):
    assert quick(schema) is None
    assert [accepts(rules_of(schema), value) for _ in range(5)] == [is_valid] * 5


def nested(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, "\ud800", {"\ud800": 1}, (1, 2), {1: 2}, {1}, 2**64, nested(300)]
)
@pytest.mark.parametrize("schema", [{}, {"type": ["null", "array"]}, {"not": {"type": "object"}}, {"type": "number"}])
def test_a_value_that_the_engine_cannot_read_is_read_by_the_whole_check(schema, value):
    whole = rules_of(schema)
    expected = [error.validator for error in explain(whole, value)]
    assert [[error.validator for error in check(whole, value)] for _ in range(5)] == [expected] * 5


def test_the_limits_of_the_whole_check_hold():
    options = [{"type": "object", "required": [str(name)]} for name in range(40)]
    many = {"items": {"anyOf": [{"$ref": f"#/$defs/{at}"} for at in range(40)]}}
    many["$defs"] = {str(at): option for at, option in enumerate(options)}
    assert quick(many)([{"39": 1}] * 5)
    assert not quick(many)([{"39": 1}] * 2_000)
    assert [error.validator for error in check(rules_of(many), [{"39": 1}] * 2_000)] == [rules.UNFINISHED]


def test_a_pattern_that_takes_too_long_is_no_match_and_a_schema_that_is_used_again_has_a_quick_test(monkeypatch):
    schema, text = {"not": {"pattern": "^(a|b|c|aa|bb|cc)+$"}}, "a" * 60 + "!"
    monkeypatch.setattr("gecko_graph.schemas.formats.MAX_SECONDS", 0.01)
    assert not quick(schema)(text)
    assert not accepts(rules_of(schema), text)
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert all(accepts(rules_of(schema), {"a": 1}) for _ in range(rules.USES))
    monkeypatch.setattr(rules, "explain", lambda *_: pytest.fail("the quick test has not told"))
    assert accepts(rules_of(schema), {"a": 1})


def test_of_random_pairs_verdicts_are_those_of_the_whole_check():
    decided = 0
    for seed in range(100):
        schema, value = make_pair(seed)
        if test := quick(schema):
            decided += 1
            assert test(value) is (next(explain(rules_of(schema), value), None) is None), (schema, value)
    assert decided > 30
