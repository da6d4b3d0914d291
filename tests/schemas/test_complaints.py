"""Argument and result rules: what they refuse, what they say of it, and what they must never do."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gecko_graph.schemas.complaints import find_complaints, find_faults, malformed, unknown_tool
from gecko_graph.tools.spec import ToolSpec
from gecko_graph.values.paths import json_path, value_at
from tests.any_schema import JSON, PARAMETERS, SCHEMAS, fitting, spoiled
from tests.every_place import every_place


def tool(**properties):
    required = [name for name, rule in properties.items() if isinstance(rule, dict) and rule.pop("must", False)]
    return ToolSpec(name="t", parameters={"type": "object", "properties": properties, "required": required})


def told(spec, args):
    return [(each["path"], each["expected"], each["got"]) for each in find_complaints(spec, args)]


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        ({"type": "integer"}, 10.0, "an integer"),
        ({"type": "integer"}, True, "an integer"),
        ({"type": "number"}, True, "a number"),
        ({"type": "number"}, "1.5", "a number"),
        ({"type": ["string", "null"]}, 3, "a string or null"),
        ({"type": "string", "enum": ["a", "b"]}, "A", "one of the 2 values that the schema lists"),
        ({"enum": ["a"]}, "b", "the one value that the schema lists"),
        ({"const": {"k": 1}}, {"k": 2}, "the one value that the schema fixes"),
        ({"minimum": 3}, 2, "a number of at least 3"),
        ({"exclusiveMaximum": 3}, 3, "a number less than 3"),
        ({"multipleOf": 0.1}, 0.35, "a number that is a multiple of 0.1"),
        ({"minLength": 1}, "", "a string of at least 1 character"),
        ({"maxLength": 2}, "abc", "a string of at most 2 characters"),
        ({"pattern": "^[a-z]+$"}, "A1", "a string that matches the pattern ^[a-z]+$"),
        ({"pattern": "^(red|blue)$"}, "Red", "a string of the form that the schema prescribes"),
        ({"format": "date"}, "2023-02-29", "a date in the form YYYY-MM-DD"),
        ({"format": "int32"}, 1 << 31, "a whole number of 32 bits"),
        ({"minItems": 2}, [1], "an array of at least 2 items"),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1.0}], "an array whose items all differ"),
        ({"maxProperties": 1}, {"a": 1, "b": 2}, "an object of at most 1 member"),
        ({"contains": {"const": 1}}, [2], "an array with an item of the kind that the schema asks for"),
        ({"prefixItems": [{}], "items": False}, [1, 2], "an array without further items"),
        ({"not": {"type": "string"}}, "a", "a value other than those that the schema excludes"),
        ({"oneOf": [{}, {"minimum": 3}]}, 4, "a value that fits exactly one of the alternatives, not several"),
        ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "a", "an integer or a boolean"),
        (False, 1, "nothing here"),
        ({"maxLength": 0}, "a", "a string of the size that the schema prescribes"),
        ({"maxItems": 0}, [1], "an array of the size that the schema prescribes"),
        ({"maxProperties": 0}, {"a": 1}, "an object of the size that the schema prescribes"),
    ],
)
def test_a_rule_says_what_it_expects(rule, value, expected):
    assert told(tool(x=rule), {"x": value}) == [("$.x", expected, json.dumps(value))]


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ({"type": "number"}, 10),
        ({"type": "integer"}, 10),
        ({"multipleOf": 0.1}, 0.3),
        ({"multipleOf": 0.01}, 19.99),
        ({"multipleOf": 0.1}, 1e308),
        ({"multipleOf": 1e-300}, 1e300),
        ({"enum": [1]}, 1.0),
        ({"format": "unheard-of"}, "whatever"),
        ({"format": "date"}, 7),
        ({"uniqueItems": True}, [1, True, "1"]),
        ({"default": 7, "enum": [1, 2]}, 1),
    ],
)
def test_what_a_rule_lets_pass(rule, value):
    assert find_complaints(tool(x=rule), {"x": value}) == []


def test_defaults_are_not_filled_in():
    assert find_complaints(tool(x={"type": "string", "enum": ["a"], "default": "outside"}), {}) == []


def test_missing_arguments_are_told_with_their_kind():
    assert told(tool(x={"type": "string", "must": True}), {}) == [("$.x", "a string; it is required", "nothing")]


def test_nested_places():
    rule = {
        "type": "array",
        "items": {"type": "object", "properties": {"odd name": {"type": "integer"}}, "required": ["q"]},
    }
    assert told(tool(items=rule), {"items": [{"q": 1}, {"odd name": "x"}]}) == [
        ('$.items[1]["odd name"]', "an integer", '"x"'),
        ("$.items[1].q", "a value; it is required", "nothing"),
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
        assert found == [("$.pay.digits", "a string", "4")]


class TestUnknownArguments:
    def test_a_top_level_without_a_word_on_it_is_closed(self):
        assert told(tool(x={}), {"x": 1, "y": 2}) == [("$.y", "no argument of this name", "2")]

    def test_a_tool_without_parameters_takes_none(self):
        assert [path for path, *_ in told(ToolSpec(name="t"), {"a": 1})] == ["$.a"]
        assert [path for path, *_ in told(ToolSpec(name="t", parameters={"type": "object"}), {"a": 1})] == ["$.a"]

    @pytest.mark.parametrize(
        "parameters",
        [
            {},
            {"type": "object", "additionalProperties": True},
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"type": "object", "properties": {"x": {}}, "patternProperties": {"^y": {}}},
            {"allOf": [{"properties": {"x": {}}}, {"properties": {"y": {}}}]},
            {"properties": {"x": {}}, "$ref": "#/$defs/more", "$defs": {"more": {"properties": {"y": {}}}}},
            {"properties": {"x": {}}, "anyOf": [{"$ref": "elsewhere.json"}]},
        ],
    )
    def test_what_opens_it(self, parameters):
        assert find_complaints(ToolSpec(name="t", parameters=parameters), {"y": 1}) == []

    def test_allof_does_not_open_it(self):
        parameters = {"allOf": [{"properties": {"x": {}}}, {"properties": {"y": {}}}]}
        assert [path for path, *_ in told(ToolSpec(name="t", parameters=parameters), {"z": 1})] == ["$.z"]

    def test_closed_in_its_own_words(self):
        parameters = {"type": "object", "properties": {"x": {}}, "additionalProperties": False}
        assert told(ToolSpec(name="t", parameters=parameters), {"y": [1]}) == [("$.y", "nothing of this name", "[1]")]

    def test_nested_objects_are_open_as_json_schema_has_them(self):
        assert find_complaints(tool(x={"type": "object", "properties": {"a": {}}}), {"x": {"b": 1}}) == []

    def test_no_name_is_suggested(self):
        assert "user_name" not in str(find_complaints(tool(user_name={}), {"username": 1}))


def test_an_unknown_tool_and_malformed_arguments():
    call = {"id": "1", "name": "mkdri", "args": {}}
    assert unknown_tool(call)["got"] == '"mkdri"'
    assert malformed({**call, "malformed": '{"a": '})["got"] == json.dumps('{"a": ')
    assert find_complaints(tool(), ["not", "an", "object"])[0]["path"] == "$"


def test_what_was_got_is_cut():
    (complaint,) = find_complaints(tool(x={"type": "integer"}), {"x": {"k": ["v" * 500] * 1000}})
    assert len(complaint["got"]) == 80
    assert complaint["got"].endswith("…")


REF = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/node"}},
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["value"],
        }
    },
}


def test_circular_references():
    args = {"tree": {"value": 1, "children": [{"value": 2, "children": [{"value": "3"}, {}]}]}}
    assert [path for path, *_ in told(ToolSpec(name="t", parameters=REF), args)] == [
        "$.tree.children[0].children[0].value",
        "$.tree.children[0].children[1].value",
    ]


def nested(depth, value=1):
    for _ in range(depth):
        value = {"value": 1, "children": [value]}
    return value


class TestBadArguments:
    def test_deep(self):
        spec = ToolSpec(name="t", parameters=REF)
        assert find_complaints(spec, {"tree": nested(25, {"value": 1})}) == []
        (complaint,) = find_complaints(spec, {"tree": nested(5_000)})
        assert complaint["expected"] == "at most 64 levels of nesting"

    def test_every_allowed_depth_is_really_checked(self):
        (complaint,) = find_complaints(ToolSpec(name="t", parameters=REF), {"tree": nested(30, {"value": "wrong"})})
        assert complaint["path"].endswith(".children[0].value")

    def test_circular(self):
        args: dict = {"x": []}
        args["x"].append(args)
        assert find_complaints(tool(x={}), args)[0]["expected"] == "at most 64 levels of nesting"

    @pytest.mark.parametrize(
        "value", [float("nan"), float("inf"), 1 << 70, pytest.param(10**6000, id="huge"), {1: 2}, (1,), {1}, object()]
    )
    def test_what_no_json_document_holds(self, value):
        assert len(find_complaints(tool(x={}), {"x": [value]})) == 1

    def test_big(self):
        args = {"x": [{"value": index} for index in range(30_000)]}
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
    assert any(complaint["path"].startswith(json_path((name,))) for complaint in found)


@given(SCHEMAS, JSON)
def test_the_rules_agree_with_the_reference(schema, value):
    plain = json.loads(json.dumps(schema).replace('"format"', '"title"').replace('"multipleOf": 0.1', '"minimum": 0'))
    assert (find_faults(plain, value) == []) == Draft202012Validator(plain).is_valid(value)


@given(st.data())
def test_no_complaint_holds_a_right_value(data):
    secrets = data.draw(st.lists(st.from_regex("secret-[a-z]{6}", fullmatch=True), min_size=1, max_size=4, unique=True))
    rule = data.draw(
        st.sampled_from(
            [
                {"enum": secrets},
                {"const": secrets[0]},
                {"pattern": f"^({'|'.join(secrets)})$"},
                {"anyOf": [{"const": secret} for secret in secrets]},
                {"oneOf": [{"enum": secrets}, {"type": "null"}]},
                {"type": "array", "items": {"enum": secrets}, "minItems": 1, "contains": {"const": secrets[0]}},
                {"not": {"type": "string"}, "default": secrets[0]},
                {"type": "integer", "examples": secrets},
            ]
        )
    )
    found = find_complaints(tool(x=rule), {"x": "Other"})
    assert found
    assert not any(secret in json.dumps(found) for secret in secrets)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ({"minimum": 5, "maximum": 5}, 4),
        ({"minimum": 5, "maximum": 5.0}, 6),
        ({"type": "integer", "minimum": 5, "maximum": 5}, 6),
        ({"type": "integer", "exclusiveMinimum": 4, "maximum": 5}, 3),
        ({"type": "integer", "exclusiveMinimum": 4, "minimum": 4, "exclusiveMaximum": 6}, 4),
        ({"type": "integer", "minimum": 4.5, "maximum": 5.5}, 6),
        ({"type": "integer", "multipleOf": 2.5, "minimum": 1, "maximum": 9}, 6),
        ({"multipleOf": 5, "minimum": 1, "maximum": 9}, 4),
        ({"multipleOf": 2.5, "exclusiveMinimum": 2.5, "exclusiveMaximum": 7.5}, 2.5),
    ],
)
def test_bounds_that_leave_one_number_are_not_told(rule, value):
    found = told(tool(x=rule), {"x": value})
    assert {expected for _, expected, _ in found} == {"the one number that the schema leaves"}


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        ({"type": "number", "exclusiveMinimum": 4, "maximum": 5}, 4, "a number greater than 4"),
        ({"type": "integer", "minimum": 5, "maximum": 6}, 4, "a number of at least 5"),
        ({"type": "integer", "exclusiveMinimum": 5, "maximum": 5}, 6, "a number of at most 5"),
        ({"multipleOf": 5, "minimum": 5, "maximum": 10}, 7, "a number that is a multiple of 5"),
        ({"minLength": 3, "maxLength": 3}, "ab", "a string of at least 3 characters"),
    ],
)
def test_bounds_that_leave_more_are_told(rule, value, expected):
    assert told(tool(x=rule), {"x": value})[0][1] == expected


@given(JSON)
def test_a_json_path_leads_back(value):
    for path, there in every_place(value):
        assert value_at(value, json_path(path)) is there


def test_a_call_takes_few_steps(count_steps):
    rules = {f"p{index}": {"type": "string", "maxLength": 40} for index in range(8)}
    spec = tool(
        **rules, when={"type": "string", "format": "date-time"}, items={"type": "array", "items": {"$ref": "#/x"}}
    )
    args = {name: "some text" for name in rules} | {"when": "2024-05-01T10:00:00Z", "items": [1, 2, 3]}
    find_complaints(spec, args)
    assert count_steps(lambda: find_complaints(spec, args)) < 2_000


def test_faults_are_one_line_each():
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}, "required": ["b"]}
    assert find_faults(schema, {"a": ["x"]}) == [
        'at $.a[0]: expected an integer, got "x"',
        "at $.b: expected a value; it is required, got nothing",
    ]
    assert find_faults(schema, {"b": 1, "further": 2}) == []
