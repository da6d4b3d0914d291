"""Argument and result rules: what they refuse, what they say of it, and what they must never do."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gecko_graph.schemas.complaints import find_complaints, find_faults, find_undecided, malformed, unknown_tool
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.values.places import short_pointer
from tests.any_schema import JSON, PARAMETERS, SCHEMAS, fitting, spoiled


def tool(**properties):
    required = [name for name, rule in properties.items() if isinstance(rule, dict) and rule.pop("must", False)]
    return ToolSpec(name="t", parameters={"type": "object", "properties": properties, "required": required})


def told(spec, args):
    return [(each["path"], each["expected"], each["got"]) for each in find_complaints(spec, args)]


@pytest.mark.parametrize(("rule", "value", "expected"), [
    ({"type": "integer"}, 10.5, "an integer"), ({"type": "number"}, True, "a number"),
    ({"type": ["string", "null"]}, 3, "a string or null"),
    ({"type": "string", "enum": ["a", "b"]}, "A", "one of the 2 values that the schema lists"),
    ({"const": {"k": 1}}, {"k": 2}, "the one value that the schema fixes"),
    ({"minimum": 3}, 2, "a number of at least 3"),
    ({"multipleOf": 0.1}, 0.35, "a number that is a multiple of 0.1"),
    ({"minLength": 1}, "", "a string of at least 1 character"),
    ({"pattern": "^[a-z]+$"}, "A1", "a string that matches the pattern ^[a-z]+$"),
    ({"pattern": "^(red|blue)$"}, "Red", "a string of the form that the schema prescribes"),
    ({"format": "date"}, "2023-02-29", "a date in the form YYYY-MM-DD"),
    ({"format": "int32"}, 1 << 31, "a whole number of 32 bits"),
    ({"uniqueItems": True}, [{"a": 1}, {"a": 1.0}], "an array whose items all differ"),
    ({"contains": {"const": 1}}, [2], "an array with an item of the kind that the schema asks for"),
    ({"not": {"type": "string"}}, "a", "a value other than those that the schema excludes"),
    ({"oneOf": [{}, {"minimum": 3}]}, 4, "a value that fits exactly one of the alternatives, not several"),
    ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "a", "an integer or a boolean"),
    (False, 1, "nothing here"),
    ({"maxLength": 0}, "a", "a string of the size that the schema prescribes"),
])  # fmt: skip
def test_a_rule_says_what_it_expects(rule, value, expected):
    assert told(tool(x=rule), {"x": value}) == [("/x", expected, json.dumps(value))]


@pytest.mark.parametrize(("rule", "value"), [
    ({"type": "number"}, 10), ({"type": "integer"}, 10.0), ({"type": "integer", "format": "int64"}, -2.0),
    ({"multipleOf": 0.1}, 1e308), ({"multipleOf": 1e-300}, 1e300), ({"format": "unheard-of"}, "whatever"),
    ({"uniqueItems": True}, [1, True, "1"]), ({"default": 7, "enum": [1, 2]}, 1),
])  # fmt: skip
def test_what_a_rule_lets_pass(rule, value):
    assert find_complaints(tool(x=rule), {"x": value}) == []


def test_nested_places():
    rule = {
        "type": "array",
        "items": {"type": "object", "properties": {"odd name": {"type": "integer"}}, "required": ["q"]},
    }
    assert told(tool(items=rule), {"items": [{"q": 1}, {"odd name": "x"}]}) == [
        ("/items/1/odd name", "an integer", '"x"'),
        ("/items/1/q", "a value; it is required", "nothing"),
    ]


def test_the_alternative_that_fits_best_is_told():
    card = {
        "type": "object",
        "properties": {"kind": {"const": "card"}, "digits": {"type": "string"}},
        "required": ["digits"],
    }
    cash = {"type": "object", "properties": {"kind": {"const": "cash"}, "notes": {"type": "integer"}}}
    for way in ("anyOf", "oneOf"):
        found = told(tool(pay={way: [cash, card, {"type": "null"}]}), {"pay": {"kind": "card", "digits": 4}})
        assert found == [("/pay/digits", "a string", "4")]


BOTH = {"allOf": [{"properties": {"x": {}}}, {"properties": {"y": {}}}]}


def test_a_top_level_without_a_word_on_it_is_closed():
    assert told(tool(x={}), {"x": 1, "y": 2}) == [("/y", "no argument of this name", "2")]
    for parameters in (None, {"type": "object"}, BOTH):
        spec = ToolSpec(name="t") if parameters is None else ToolSpec(name="t", parameters=parameters)
        assert [path for path, *_ in told(spec, {"z": 1})] == ["/z"]


@pytest.mark.parametrize("parameters", [
    {},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "object", "properties": {"x": {}}, "patternProperties": {"^y": {}}},
    BOTH,
    {"properties": {"x": {}}, "$ref": "#/$defs/more", "$defs": {"more": {"properties": {"y": {}}}}},
    {"properties": {"x": {}}, "anyOf": [{"$ref": "elsewhere.json"}]},
])  # fmt: skip
def test_what_opens_it(parameters):
    assert find_complaints(ToolSpec(name="t", parameters=parameters), {"y": 1}) == []


def test_an_unknown_tool_and_malformed_arguments_and_defaults_are_not_filled_in():
    assert find_complaints(tool(x={"type": "string", "enum": ["a"], "default": "outside"}), {}) == []
    call = {"id": "1", "name": "mkdri", "args": {}}
    assert unknown_tool(call)["got"] == '"mkdri"'
    assert malformed({**call, "malformed": '{"a": '})["got"] == json.dumps('{"a": ')
    assert find_complaints(tool(), ["not", "an", "object"])[0]["path"] == ""


CHILDREN = {"type": "array", "items": {"$ref": "#/$defs/node"}}
NODE = {"type": "object", "properties": {"value": {"type": "integer"}, "children": CHILDREN}, "required": ["value"]}
REF = {"type": "object", "properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {"node": NODE}}


def nested(depth, value=1):
    for _ in range(depth):
        value = {"value": 1, "children": [value]}
    return value


def test_deep_and_circular_arguments():
    spec = ToolSpec(name="t", parameters=REF)
    assert find_complaints(spec, {"tree": nested(25, {"value": 1})}) == []
    (complaint,) = find_complaints(spec, {"tree": nested(5_000)})
    assert complaint["expected"] == "at most 64 levels of nesting"
    (complaint,) = find_complaints(spec, {"tree": nested(30, {"value": "wrong"})})
    assert complaint["path"].endswith("/children/0/value"), "every allowed depth is really checked"
    args: dict = {"x": []}
    args["x"].append(args)
    assert find_complaints(tool(x={}), args)[0]["expected"] == "at most 64 levels of nesting"


def test_what_no_json_document_holds_and_much_of_what_one_does():
    for value in (float("nan"), float("inf"), 1 << 70, 10**6000, {1: 2}, (1,), {1}, object()):
        assert len(find_complaints(tool(x={}), {"x": [value]})) == 1, type(value)
    args = {"x": [{"value": index} for index in range(10_000)]}
    assert find_complaints(tool(x={"type": "array", "items": {"type": "object"}}), args) == []
    assert len(find_complaints(tool(x={"items": {"type": "string"}}), args)) == 20
    assert find_complaints(tool(x={"uniqueItems": True}), args) == []


@given(st.data())
def test_arguments_that_fit_pass_and_spoiled_ones_do_not(data):
    parameters = data.draw(PARAMETERS)
    args = data.draw(fitting(parameters))
    spec = ToolSpec(name="t", parameters=parameters)
    assert find_complaints(spec, args) == []
    wrong, name = data.draw(spoiled(parameters, args))
    found = find_complaints(spec, wrong)
    assert found
    assert any(complaint["path"].startswith(short_pointer((name,))) for complaint in found)


@given(SCHEMAS, JSON)
def test_the_rules_agree_with_the_reference(schema, value):
    plain = json.loads(json.dumps(schema).replace('"format"', '"title"').replace('"multipleOf": 0.1', '"minimum": 0'))
    assert (find_faults(plain, value) == []) == Draft202012Validator(plain).is_valid(value)


@given(st.data())
def test_no_complaint_holds_a_right_value(data):
    secrets = data.draw(st.lists(st.from_regex("secret-[a-z]{6}", fullmatch=True), min_size=1, max_size=4, unique=True))
    rules = [
        {"enum": secrets}, {"const": secrets[0]}, {"pattern": f"^({'|'.join(secrets)})$"},
        {"anyOf": [{"const": secret} for secret in secrets]}, {"oneOf": [{"enum": secrets}, {"type": "null"}]},
        {"type": "array", "items": {"enum": secrets}, "minItems": 1, "contains": {"const": secrets[0]}},
        {"not": {"type": "string"}, "default": secrets[0]}, {"type": "integer", "examples": secrets},
    ]  # fmt: skip
    rule = data.draw(st.sampled_from(rules))
    found = find_complaints(tool(x=rule), {"x": "Other"})
    assert found
    assert not any(secret in json.dumps(found) for secret in secrets)


@pytest.mark.parametrize(("rule", "value"), [
    ({"minimum": 5, "maximum": 5}, 4),
    ({"type": "integer", "exclusiveMinimum": 4, "maximum": 5}, 3),
    ({"type": "integer", "exclusiveMinimum": 4, "minimum": 4, "exclusiveMaximum": 6}, 4),
    ({"multipleOf": 5, "minimum": 1, "maximum": 9}, 4),
    ({"multipleOf": 2.5, "exclusiveMinimum": 2.5, "exclusiveMaximum": 7.5}, 2.5),
])  # fmt: skip
def test_bounds_that_may_leave_one_number_are_not_told(rule, value):
    found = told(tool(x=rule), {"x": value})
    assert {expected for _, expected, _ in found} == {"a number within the narrow bounds of the schema"}


@pytest.mark.parametrize(("rule", "value"), [
    ({"type": "boolean"}, True), ({"enum": ["a", "b"]}, "a"), ({"type": "string", "format": "date"}, "2024-01-01"),
    ({"allOf": [{"minimum": 0}, {"maximum": 3}]}, 2),
    ({"anyOf": [{"type": "integer"}, {"enum": ["all"]}]}, "all"),
    ({"type": "array", "items": {"enum": ["a"]}}, ["a", "a"]),
    ({"type": "string", "default": "metric"}, "metric"), ({"$ref": "#/$defs/mode"}, "fast"),
    ({"type": "string", "description": "The class of the travel. Options are: economy, business, first."}, "First"),
    ({"type": "string", "description": "Possible values (asc|desc)"}, "desc"),
])  # fmt: skip
def test_what_a_rule_decides(rule, value):
    parameters = {"type": "object", "properties": {"x": rule}, "$defs": {"mode": {"enum": ["fast"]}}}
    assert find_undecided(parameters, {"x": value}) == []


@pytest.mark.parametrize(("rule", "value"), [
    ({"type": "string"}, "Seattle"), ({"type": "integer", "minimum": 0}, 3),
    ({"anyOf": [{"type": "integer"}, {"enum": ["all"]}]}, 7),
    ({"type": "string", "description": "Options are: economy, business, first."}, "window"),
    ({"type": "string", "description": "The 'name' of a person."}, "name"),
])  # fmt: skip
def test_what_none_decides(rule, value):
    assert find_undecided({"type": "object", "properties": {"x": rule}}, {"x": value}) == ["/x"]


def test_places_inside():
    item = {"type": "object", "properties": {"name": {"type": "string"}, "ok": {"type": "boolean"}}}
    parameters = {"properties": {"people": {"type": "array", "items": item}, "odd name": {}}}
    args = {"people": [{"name": "Ann", "ok": True, "more": "x"}, {"ok": False}], "odd name": 1}
    assert find_undecided(parameters, args) == ["/people/0/name", "/people/0/more", "/odd name"]
