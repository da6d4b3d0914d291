"""Bad schemas and limits: no rule where malformed, soon over where hostile, and nothing passes that was not checked."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph import Toolkit, World
from gecko_graph.schemas import quick, work
from gecko_graph.schemas.complaints import find_complaints, find_faults, find_undecided
from gecko_graph.schemas.formats import compile_pattern
from gecko_graph.schemas.rules import accepts, rules_of
from gecko_graph.tools.spec import ToolSpec
from tests.any_schema import JSON, JUNK


def taking(rule):
    return ToolSpec(name="t", parameters={"type": "object", "properties": {"x": rule}})


@pytest.mark.parametrize("rule", [
    {"type": "dict"}, {"type": ["string", 7]}, {"minimum": "5"}, {"exclusiveMinimum": True}, {"required": True},
    {"required": "abc"}, {"enum": "abc"}, {"enum": []}, {"properties": ["a"]}, {"items": [{"type": "string"}]},
    {"pattern": "([a-z"}, {"pattern": r"(a)\1"}, {"multipleOf": 0}, {"minimum": 10**400},
    {"maxLength": -(10**400)}, {"minLength": "x"}, {"allOf": {}}, {"anyOf": []}, {"$ref": "#/nowhere"},
    {"$ref": "https://example.com/schema.json"}, {"$ref": 7}, {"$ref": "#/$defs/%"}, {"$id": 7, "$schema": 7},
    {"not": 7}, {"not": {"type": "dict"}}, {"oneOf": [{"type": "dict"}, {}]}, {"dependentRequired": {"a": "b"}},
    {"minContains": "x", "contains": {}}, "no schema", None,
])  # fmt: skip
@pytest.mark.parametrize("value", [5, "abc", {"a": 1}, ["abc"], None])
def test_what_is_malformed_is_no_rule(rule, value):
    assert find_complaints(taking(rule), {"x": value}) == []
    assert find_faults(rule, value) == []


@given(JUNK, st.one_of(JSON, JUNK))
def test_no_schema_breaks_a_run(schema, value):
    for each in find_faults(schema, value):
        assert each.startswith(("/", "expected "))
    spec = ToolSpec(name="t", parameters=schema)
    args = {"a": value, "b": 1}
    if not find_complaints(spec, args):
        find_undecided(schema, args)


def test_another_dialect_is_read_as_2020_12():
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"n": {"type": "integer"}, "again": {"$ref": "#"}},
    }
    assert find_faults(schema, {"again": {"n": 10.5}}) == ["/again/n: expected an integer, got 10.5"]


@pytest.mark.parametrize("schema", [
    {"$ref": "#"}, {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
    {"items": {"oneOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]}},
    {"pattern": "(a+)+$"}, {"propertyNames": {"pattern": "(x+x+)+y"}}, {"pattern": "(" * 5_000 + ")" * 5_000},
    {"pattern": "((a{1,500}){1,500}){1,500}"},
])  # fmt: skip
def test_nothing_hangs(schema, count_steps):
    deep: list = []
    for _ in range(30):
        deep = [deep, deep] if len(str(deep)) < 500 else [deep]
    for value in ("a" * 3_000 + "!", deep, {"x" * 3_000: 1}):
        assert count_steps(functools.partial(find_faults, schema, value)) < 3_000_000
    itself: dict = {"type": "object"}
    itself["properties"] = {"again": itself}
    assert find_faults(itself, {"again": 1}) == []


STOPPED = "a value that can be checked to the end; this check stopped at its limit"


@pytest.fixture
def few_checks(monkeypatch):
    """The limit of a check is a thirtieth of what it is: nine levels of two alternatives each are beyond it."""
    for module in (work, quick):
        monkeypatch.setattr(module, "MAX_CHECKS", work.MAX_CHECKS // 30)


def nested(levels, leaf):
    return leaf if levels == 0 else {"anyOf": [nested(levels - 1, leaf), nested(levels - 1, leaf)]}


@pytest.mark.parametrize("leaf", [{"type": "integer"}, {"pattern": "^a+$"}])
def test_alternatives_nested_too_deep_are_refused_in_words(few_checks, leaf):
    (complaint,) = find_complaints(taking(nested(10, leaf)), {"x": "wrong"})
    assert (complaint["path"], complaint["expected"], complaint["source"]) == ("", STOPPED, "rule")
    assert find_faults(nested(10, leaf), "wrong") == [f'expected {STOPPED}, got "wrong"']
    assert find_faults(nested(3, leaf), 1 if "pattern" not in leaf else "aa") == []


@pytest.mark.parametrize("leaf", [{"not": {"type": "integer"}}, {"$ref": "#/$defs/leaf"}])
def test_what_was_not_checked_is_never_turned_into_a_pass(few_checks, leaf):
    schema = {"not": nested(11, leaf), "$defs": {"leaf": {"type": "integer"}}}
    assert find_faults(schema, "wrong") != []
    assert not accepts(rules_of(schema), "wrong")


def test_a_long_array_is_checked_to_its_end_and_work_grows_no_faster_than_the_value(count_steps):
    items = {"type": "array", "items": {"type": "integer"}}
    long = list(range(20_000))
    assert find_faults(items, [*long, 1]) == []
    assert find_faults(items, [*long, "wrong"]) == ['/20000: expected an integer, got "wrong"']
    (complaint,) = find_complaints(taking(items), {"x": [*long, "wrong"]})
    assert complaint["path"] == "/x/20000"
    schema = {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/text"}]}}
    schema["$defs"] = {"text": {"type": "string", "pattern": "^(a|b)+$"}}
    few, many = (count_steps(functools.partial(find_faults, schema, ["ab"] * size)) for size in (300, 600))
    assert many < 2.1 * few


def test_too_long_a_match_is_not_a_match(monkeypatch):
    schema, text = {"pattern": "^(a|b|c|aa|bb|cc)+$"}, "a" * 60 + "!"
    assert find_faults(schema, text[:-1]) == []
    monkeypatch.setattr("gecko_graph.schemas.formats.MAX_SECONDS", 0.01)
    assert compile_pattern(schema["pattern"]).matches(text) is None
    assert find_faults(schema, text) == [f'expected {STOPPED}, got "{text}"']
    assert find_faults({"not": schema}, text) == [f'expected {STOPPED}, got "{text}"']
    assert find_faults({"patternProperties": {schema["pattern"]: {}}}, {text: 1}) != []
    tool = ToolSpec(name="t", parameters={"type": "object", "patternProperties": {schema["pattern"]: {}}})
    assert find_complaints(tool, {text: 1}) != []


def test_a_call_that_cannot_be_checked_never_runs(few_checks):
    rule = {"type": "object", "properties": {"tray": nested(10, {"type": "integer"})}, "required": ["tray"]}
    tools = Toolkit.from_tools([{"name": "clear", "description": "Clear a tray.", "parameters": rule}])
    step = World(tools, state={}).call({"name": "clear", "args": {"tray": "letters"}})
    assert "outcome" not in step
    assert [each["expected"] for each in step["complaints"]] == [STOPPED]
