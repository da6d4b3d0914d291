"""A check that stops at its limit never passes what it did not check, and says so."""

from __future__ import annotations

import functools

import pytest

from gecko_graph import GeckoContext, Toolkit, create_gecko
from gecko_graph.schemas import rules
from gecko_graph.schemas.complaints import find_complaints, find_faults
from gecko_graph.schemas.pattern import compile_pattern
from gecko_graph.schemas.rules import accepts, rules_of
from gecko_graph.schemas.undecided import find_undecided
from gecko_graph.testing import recorded
from gecko_graph.tools.spec import ToolSpec
from tests import desk

STOPPED = "a value that can be checked to the end; this check stopped at its limit"


def nested(levels, leaf):
    return leaf if levels == 0 else {"anyOf": [nested(levels - 1, leaf), nested(levels - 1, leaf)]}


def taking(rule):
    return ToolSpec(name="t", parameters={"type": "object", "properties": {"x": rule}})


@pytest.mark.parametrize("leaf", [{"type": "integer"}, {"const": 1}, {"pattern": "^a+$"}, {"enum": [1, 2]}])
def test_alternatives_nested_too_deep_are_refused_in_words(leaf):
    (complaint,) = find_complaints(taking(nested(15, leaf)), {"x": "wrong"})
    assert (complaint["path"], complaint["expected"], complaint["source"]) == ("$", STOPPED, "rule")
    assert find_faults(nested(15, leaf), "wrong") == [f'at $: expected {STOPPED}, got "wrong"']
    assert find_faults(nested(8, leaf), 1 if "pattern" not in leaf else "aa") == []


@pytest.mark.parametrize("leaf", [{"type": "integer"}, {"not": {"type": "integer"}}, {"$ref": "#/$defs/leaf"}])
def test_what_was_not_checked_is_never_turned_into_a_pass(leaf):
    schema = {"not": nested(16, leaf), "$defs": {"leaf": {"type": "integer"}}}
    assert find_faults(schema, "wrong") != []
    assert not accepts(rules_of(schema), "wrong")


def test_a_long_array_is_checked_to_its_end():
    items = {"type": "array", "items": {"type": "integer"}}
    long = list(range(60_000))
    assert find_faults(items, [*long, 1]) == []
    assert find_faults(items, [*long, "wrong"]) == ['at $[60000]: expected an integer, got "wrong"']
    (complaint,) = find_complaints(taking(items), {"x": [*long, "wrong"]})
    assert complaint["path"] == "$.x[60000]"


def test_work_grows_no_faster_than_the_value(count_steps):
    schema = {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/text"}]}}
    schema["$defs"] = {"text": {"type": "string", "pattern": "^(a|b)+$"}}
    few, many = (count_steps(functools.partial(find_faults, schema, ["ab"] * size)) for size in (300, 600))
    assert many < 2.1 * few


def test_too_long_a_match_is_not_a_match(monkeypatch):
    schema, text = {"pattern": "^(a|b|c|aa|bb|cc)+$"}, "a" * 60 + "!"
    assert find_faults(schema, text[:-1]) == []
    monkeypatch.setattr("gecko_graph.schemas.pattern.MAX_SECONDS", 0.01)
    assert compile_pattern(schema["pattern"]).matches(text) is None
    assert find_faults(schema, text) == [f'at $: expected {STOPPED}, got "{text}"']
    assert find_faults({"not": schema}, text) == [f'at $: expected {STOPPED}, got "{text}"']
    assert find_faults({"patternProperties": {schema["pattern"]: {}}}, {text: 1}) != []
    tool = ToolSpec(name="t", parameters={"type": "object", "patternProperties": {schema["pattern"]: {}}})
    assert find_complaints(tool, {text: 1}) != []


def test_many_slow_matches_are_too_long_together(monkeypatch):
    schema = {"items": {"pattern": "^a+$"}}
    assert find_faults(schema, ["aa"] * 9) == []
    monkeypatch.setattr(rules, "SECONDS_PER_CHECK", 1e-13)
    assert [STOPPED in fault for fault in find_faults(schema, ["aa"] * 9)] == [True]


def test_a_value_nested_too_deep_for_its_schema_is_refused():
    schema = {"allOf": [{"allOf": [{"allOf": [{"items": {"$ref": "#"}}]}]}]}
    value: list = []
    for _ in range(60):
        value = [value]
    assert find_faults(schema, value) in ([], [f"at $: expected {STOPPED}, got {str(value).replace(' ', '')[:79]}"])


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    ],
)
def test_a_reference_that_leads_back_to_itself_says_nothing(schema):
    assert find_faults(schema, 5) == []
    assert find_faults({**schema, "type": "string"}, 5) != []


def test_undecided_arguments_of_what_cannot_be_checked_stay_undecided(monkeypatch):
    schema = {"type": "object", "properties": {"x": {"anyOf": [{"enum": ["a", "b"]}, {"type": "integer"}]}}}
    assert find_undecided(schema, {"x": "a"}) == []
    monkeypatch.setattr(rules, "MAX_CHECKS", -100)
    assert find_undecided(schema, {"x": "a"}) == ["$.x"]


def test_a_call_that_cannot_be_checked_never_runs():
    rule = {"type": "object", "properties": {"tray": nested(15, {"type": "integer"})}, "required": ["tray"]}
    tools = Toolkit.from_tools([{"name": "clear", "description": "Clear a tray.", "parameters": rule}])
    planner = recorded(planner=[[{"call": "clear", "args": {"tray": "letters"}}, {"say": "Done."}]])
    gecko = create_gecko(tools, models={"planner": planner}, context=GeckoContext(max_retries=0))
    (step,) = gecko.invoke(desk.inputs())["rehearsal"]["attempts"][0]["steps"]
    assert "outcome" not in step
    assert [each["expected"] for each in step["complaints"]] == [STOPPED]
