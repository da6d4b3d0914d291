"""A schema that guards must be checkable to its last word; what is not is refused at load, with document and place."""

from __future__ import annotations

import pytest

from gecko_graph.errors import ContractError
from gecko_graph.schemas.well_formed import check_schema

BROKEN = [
    ([], "shop.yaml#/x-state: expected a JSON Schema as an object, got list"),
    ({"type": "strng"}, 'shop.yaml#/x-state/type: expected one of the 7 values that the schema lists, got "strng"'),
    ({"properties": {"a": {"required": "x"}}}, "shop.yaml#/x-state/properties/a/required: expected an array"),
    ({"minimum": float("nan")}, "shop.yaml#/x-state/minimum: expected a finite number"),
    ({"items": {"$ref": "https://example.com/x"}}, "shop.yaml#/x-state/items/$ref: 'https://example.com/x' is outside"),
    ({"$ref": "other.yaml#/a"}, "is outside of the schema, and is never fetched: write it under $defs"),
    ({"$ref": "#/$defs/nothing"}, "shop.yaml#/x-state/$ref: '#/$defs/nothing' leads nowhere"),
    ({"$defs": {"a": {"$id": "https://example.com/x"}}}, "shop.yaml#/x-state/$defs/a/$id: only the whole schema"),
    ({"allOf": [{"pattern": r"(a)\1"}]}, "shop.yaml#/x-state/allOf/0/pattern: this pattern cannot be checked"),
    ({"patternProperties": {"(a)\\1": {}}}, "shop.yaml#/x-state/patternProperties: this pattern cannot be checked"),
    (
        {"patternProperties": {"a": {}}, "unevaluatedProperties": False},
        "patternProperties and unevaluatedProperties together cannot be checked",
    ),
]


@pytest.mark.parametrize(("schema", "message"), BROKEN)
def test_what_cannot_be_checked_is_refused_with_its_place(schema, message):
    with pytest.raises(ContractError) as caught:
        check_schema(schema, where="shop.yaml#/x-state")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"type": ["string", "null"]},
        {"const": 3},
        {"enum": [[], "a"]},
        {"anyOf": [{"type": "array"}, False]},
        {"allOf": [{}, {"type": "string"}]},
        {"$ref": "#/$defs/list", "$defs": {"list": {"type": "array"}}},
    ],
)
def test_a_task_state_that_can_be_no_object_is_refused(schema):
    with pytest.raises(ContractError, match=r"shop\.yaml#/x-state: it allows no object, and a task state is one"):
        check_schema(schema, where="shop.yaml#/x-state")


@pytest.mark.parametrize(
    "schema",
    [{}, {"type": ["object", "null"]}, {"anyOf": [{"type": "array"}, {"$ref": "#"}]}, {"enum": [{}, 1]}, {"not": {}}],
)
def test_a_task_state_that_may_be_an_object_is_not(schema):
    assert check_schema(schema, where="shop.yaml#/x-state") is schema


def test_a_schema_that_can_be_checked_is_returned_as_it_is():
    schema = {
        "$id": "https://example.com/shop",
        "$defs": {"a": {"type": "object"}},
        "properties": {"x": {"$ref": "#/$defs/a"}},
    }
    assert check_schema(schema, where="shop.yaml#/x-state") is schema
