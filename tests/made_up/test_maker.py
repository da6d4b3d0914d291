"""Made-up values fit their schema, whatever it asks for; what nothing fits is said to be impossible."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph import Toolkit
from gecko_graph.errors import ToolkitError
from gecko_graph.schemas.complaints import find_complaints, find_faults
from gecko_graph.schemas.made_up.maker import Impossible, make_value
from tests.any_schema import PATTERNS, SCHEMAS

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def obj(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


@pytest.mark.parametrize(
    "schema",
    [
        {"const": {"a": [1]}},
        {"enum": [None]},
        {"type": "number", "minimum": 0.001, "maximum": 0.0015},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1e-9},
        {"type": "number", "multipleOf": 0.05, "minimum": 0.12},
        {"type": "integer", "multipleOf": 2.5, "minimum": 6},
        {"type": "integer", "minimum": 1 << 60},
        {"type": "integer", "format": "int32", "minimum": (1 << 31) - 1},
        {"type": "number", "minimum": 1e300},
        {"type": "number", "maximum": -1e300},
        {"type": "string", "minLength": 300},
        {"type": "string", "maxLength": 1},
        {"type": "string", "maxLength": 0},
        {"type": "string", "pattern": "^(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9]{8,}$"},
        {"type": "string", "pattern": "^[a-z]+$", "minLength": 30, "maxLength": 30},
        {"type": "string", "format": "email", "maxLength": 40},
        {"type": "array", "uniqueItems": True, "minItems": 3, "items": {"enum": ["a", "b", "c"]}},
        {"type": "array", "prefixItems": [WHOLE, TEXT], "items": False, "minItems": 2},
        {"type": "array", "contains": {"const": 7}, "minContains": 2, "items": WHOLE},
        {"type": "array", "maxItems": 0},
        {"type": "object", "minProperties": 3},
        {"type": "object", "propertyNames": {"pattern": "^x_"}, "minProperties": 2},
        {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "minProperties": 2},
        {"type": "object", "patternProperties": {"^S_": WHOLE}, "additionalProperties": False, "minProperties": 1},
        {"type": "object", "additionalProperties": WHOLE},
        {"type": "object", "properties": {"a": {}}, "required": ["a"], "dependentRequired": {"a": ["b"]}},
        {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "maxProperties": 1},
        {"oneOf": [{"type": "number"}, WHOLE]},
        {"not": TEXT},
        {"anyOf": [False, {"type": "boolean"}]},
        {"allOf": [{"type": ["integer", "string"]}, {"type": ["number", "null"]}, {"minimum": 3}, {"maximum": 3}]},
        {"allOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]},
        {"if": {"properties": {"k": {"const": 1}}}, "then": {"required": ["z"]}, **obj(k={"enum": [1, 2]})},
        {"unevaluatedProperties": False, "allOf": [obj(a=WHOLE)], "type": "object"},
        {
            "$ref": "#/$defs/tree",
            "$defs": {
                "tree": {
                    **obj(v=WHOLE),
                    "properties": {
                        "v": WHOLE,
                        "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
                        "up": {"$ref": "#/$defs/tree"},
                    },
                }
            },
        },
        {"type": "object", "additionalProperties": {"$ref": "#"}},
        {
            "$ref": "#/$defs/pet",
            "$defs": {
                "pet": {"oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}]},
                "cat": obj(kind={"const": "cat"}),
                "dog": obj(kind={"const": "dog"}),
            },
        },
        {},
        True,
    ],
)
def test_every_kind_of_rule_is_met(schema):
    for key in ("a", "b", "c"):
        assert find_faults(schema, make_value(schema, seed=0, key=key, subject="get_thing")) == []


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "integer", "minimum": 5, "maximum": 3},
        {"type": "string", "enum": [1]},
        {"not": {}},
        {"type": "array", "uniqueItems": True, "minItems": 5, "items": {"enum": [1, 2]}},
        {"type": "array", "minItems": 10**9},
        {"type": "string", "minLength": 10**9},
        {"type": "object", "minProperties": 10**6},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"$ref": "#/$defs/a", "$defs": {"a": obj(a={"$ref": "#/$defs/a"}, b={"$ref": "#/$defs/a"})}},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 2},
        {"type": "string", "pattern": "^a$", "minLength": 4_000},
        {"allOf": [TEXT, WHOLE]},
    ],
)
def test_what_cannot_be_met_is_impossible_and_costs_little(schema, count_steps):
    def make():
        with pytest.raises(Impossible):
            make_value(schema, seed=0, key="k")

    assert count_steps(make) < 3_000_000


@given(SCHEMAS, st.text(max_size=4), st.integers(0, 3))
def test_any_schema_that_can_be_met_is_met(schema, key, seed):
    made = make_value(schema, seed=seed, key=key)
    assert find_faults(schema, made) == []
    assert json.loads(json.dumps(made)) == made
    assert made == make_value(schema, seed=seed, key=key)


STRANGE = [
    r"^\p{Lu}é[^a-zA-Z0-9]{3}$",
    r"^[\u4e00-\u9fff]{2}$",
    r"^(?!foo)[a-z]{4,8}$",
    r"^[\x00-\x1f]$",
    r"^(a|(?=b)[a-c])+$",
]


@given(st.sampled_from([*PATTERNS, *STRANGE]), st.text(max_size=4))
def test_texts_match_patterns(source, key):
    schema = {"type": "string", "pattern": source}
    assert find_faults(schema, make_value(schema, seed=0, key=key)) == []


@pytest.fixture(scope="module")
def real_tools(shared_data):
    found = []
    for path in sorted((shared_data / "openapi").iterdir()):
        try:
            found += [(path.name, tool) for tool in Toolkit.from_openapi(path)]
        except ToolkitError:
            continue
    return found


def test_every_real_result_schema_is_met(real_tools):
    with_result = [(document, tool) for document, tool in real_tools if tool.result is not None]
    assert len(with_result) > 150
    for document, tool in with_result:
        made = make_value(tool.result, seed=1, key=tool.name, subject=tool.name)
        assert find_faults(tool.result, made) == [], (document, tool.name)


def test_every_real_argument_schema_is_met(real_tools):
    for document, tool in real_tools:
        made = make_value(tool.parameters, seed=1, key=tool.name, subject=tool.name)
        assert find_faults(tool.parameters, made) == [], (document, tool.name)
        assert find_complaints(tool, made) == [], (document, tool.name)
