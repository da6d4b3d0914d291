"""Schemas as OpenAPI and people write them, read as JSON Schema 2020-12; and simplified without a change of meaning."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gecko_graph.errors import ToolkitError
from gecko_graph.schemas.complaints import find_faults
from gecko_graph.tools.openapi.references import Documents
from gecko_graph.tools.openapi.schema_reader import SchemaReader
from gecko_graph.tools.openapi.simplify import SMALL, Simplifier


def read(schema, *, version="3.0", direction="response", **schemas):
    documents = Documents({"schema": schema, "components": {"schemas": schemas}})
    reader = SchemaReader(documents, version=version)
    return reader.read(schema, documents.root / "schema", direction=direction)


def ref(name):
    return {"$ref": f"#/components/schemas/{name}"}


BIG = {
    "type": "object",
    "properties": {f"p{index}": {"type": "string", "description": "x" * 40} for index in range(20)},
}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        ({"type": "string", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"type": "string", "nullable": True, "enum": [None]}, {"type": ["string", "null"], "enum": [None]}),
        ({"nullable": True}, {}),
        ({"nullable": True, "allOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": False}, {"type": "integer", "minimum": 1}),
        ({"maximum": 9, "exclusiveMaximum": True}, {"exclusiveMaximum": 9}),
        ({"exclusiveMaximum": True}, {}),
        ({"type": "string", "example": "a"}, {"type": "string", "examples": ["a"]}),
        ({"xml": {}, "externalDocs": {}, "x-own": 1, "$comment": "c", "title": None, "description": None}, {}),
        ({"items": [{"const": 1}], "additionalItems": False}, {"prefixItems": [{"const": 1}], "items": False}),
        (
            {"type": "object", "properties": {"a": {"type": "string", "required": True}, "b": {"required": False}}},
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]},
        ),
        ({"required": ["a", "a"]}, {"required": ["a"]}),
        ({"title": 307}, {"title": "307"}),
        ({"pattern": r"^\p{L}+$"}, {"pattern": r"^\p{L}+$"}),
        (True, {}),
        (False, {"not": {}}),
        ({"properties": {"nullable": {"nullable": True, "type": "string"}, "type": {"type": "integer"}}},
         {"properties": {"nullable": {"type": ["string", "null"]}, "type": {"type": "integer"}}}),
        ({"enum": [{"$ref": "#/x", "nullable": True}], "default": {"example": 1}},
         {"enum": [{"$ref": "#/x", "nullable": True}], "default": {"example": 1}}),
        ({"allOf": [{"type": "object", "properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]},
         {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}),
        ({"allOf": [{"type": "string"}], "description": "d"}, {"type": "string", "description": "d"}),
    ],
)  # fmt: skip
def test_what_is_written_and_what_is_meant(written, meant):
    assert read(written) == meant


def test_nullable_references():
    assert read({"nullable": True, **ref("A")}, A={"type": "string"}) == {
        "anyOf": [{"type": "string"}, {"type": "null"}]
    }
    assert read({"nullable": True, "allOf": [ref("A")]}, A={"type": "string", "nullable": True}) == {
        "anyOf": [{"type": ["string", "null"]}, {"type": "null"}]
    }


def test_what_stands_beside_a_reference():
    schema = {**ref("A"), "description": "mine", "minLength": 3}
    assert read(schema, version="3.0", A={"type": "string"}) == {"type": "string", "description": "mine"}
    assert read(schema, version="3.1", A={"type": "string"}) == {
        "allOf": [{"type": "string"}],
        "description": "mine",
        "minLength": 3,
    }


def test_circles_stay_and_everything_else_small_is_written_out():
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": ref("Node")}, "name": ref("Name")}}
    schema = read({"type": "array", "items": ref("Node")}, Node=node, Name={"type": "string"})
    assert schema["$defs"]["Node"]["properties"] == {
        "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        "name": {"type": "string"},
    }
    assert find_faults(schema, [{"kids": [{"name": "a", "kids": []}]}]) == []
    assert find_faults(schema, [{"kids": [{"name": 1}]}])


def test_what_is_large_and_used_twice_stays_shared():
    assert len(json.dumps(BIG)) > SMALL
    shared = read({"properties": {"a": ref("Big"), "b": ref("Big")}}, Big=BIG)
    assert shared["properties"] == {"a": {"$ref": "#/$defs/Big"}, "b": {"$ref": "#/$defs/Big"}}
    assert read({"properties": {"a": ref("Big")}}, Big=BIG) == {"properties": {"a": BIG}}


def test_very_long_chains_of_references():
    chain = {f"c{index}": {"type": "object", "properties": {"next": ref(f"c{index + 1}")}} for index in range(3000)}
    schema = read(ref("c0"), **chain, c3000={"type": "integer"})
    value = 1
    for _ in range(40):
        value = {"next": value}
    assert find_faults(schema, value) == ["at $" + ".next" * 40 + ": expected an object, got 1"]
    short = read(ref("c2900"), **chain, c3000={"type": "integer"})
    assert 1 < len(short["$defs"]) < 10, "written out, but not too deep"


def test_a_web_of_very_many_definitions_is_left_as_it_is():
    web = {
        f"w{index}": {
            "type": "object",
            "properties": {f"p{step}": ref(f"w{(index * 7 + step) % 400}") for step in range(3)},
        }
        for index in range(400)
    }
    schema = read(ref("w1"), **web)
    assert len(schema["$defs"]) == 400
    assert schema["$ref"] == "#/$defs/w1"
    assert find_faults(schema, {"p0": {"p1": 3}}) == ["at $.p0.p1: expected an object, got 3"]


# discriminators ------------------------------------------------------------------------------------------------------


CAT = {"type": "object", "properties": {"kind": {"type": "string"}, "claws": {"type": "integer"}}}
DOG = {"type": "object", "properties": {"kind": {"type": "string"}, "bark": {"type": "string"}}}


@pytest.mark.parametrize(
    ("mapping", "names"),
    [
        (None, ("Cat", "Dog")),
        ({"cat": "#/components/schemas/Cat"}, ("cat", "Dog")),
        ({"cat": "Cat", "dog": "Dog"}, ("cat", "dog")),
    ],
)
@pytest.mark.parametrize("key", ["oneOf", "anyOf"])
def test_a_discriminator_decides_the_branch(mapping, names, key):
    discriminator = {"propertyName": "kind", **({"mapping": mapping} if mapping else {})}
    schema = read({key: [ref("Cat"), ref("Dog")], "discriminator": discriminator}, Cat=CAT, Dog=DOG)
    cat, dog = names
    assert find_faults(schema, {"kind": cat, "claws": 4}) == []
    assert find_faults(schema, {"kind": dog, "bark": "loud"}) == []
    assert find_faults(schema, {"kind": cat, "claws": "4"})
    assert find_faults(schema, {"kind": "fish"})
    assert find_faults(schema, {"claws": 4})
    assert [one["properties"]["kind"]["enum"] for one in schema[key]] == [[cat], [dog]]


def test_children_that_extend_a_parent_that_lists_them():
    pet = {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"type": "string"}, "name": {"type": "string"}},
        "oneOf": [ref("Cat"), ref("Dog")],
        "discriminator": {"propertyName": "kind"},
    }
    cat = {"allOf": [ref("Pet"), {"type": "object", "properties": {"claws": {"type": "integer"}}}]}
    dog = {"allOf": [ref("Pet"), {"type": "object", "properties": {"bark": {"type": "string"}}}]}
    for start in ("Pet", "Cat"):
        schema = read(ref(start), Pet=pet, Cat=cat, Dog=dog)
        assert find_faults(schema, {"kind": "Cat", "name": "Tom", "claws": 4}) == []
        assert find_faults(schema, {"kind": "Cat", "name": 1, "claws": 4})
        assert find_faults(schema, {"kind": "Cat", "claws": "4"})
    assert find_faults(read(ref("Pet"), Pet=pet, Cat=cat, Dog=dog), {"kind": "Cow"})


def test_real_discriminators(shared_data):
    from gecko_graph.tools import Toolkit

    result = Toolkit.from_openapi(shared_data / "openapi" / "microcks_v1.15.yaml")["GetService"].result
    exchanges = json.dumps(result)
    assert '"enum": ["reqRespPair"]' in exchanges
    assert '"enum": ["unidirEvent"]' in exchanges


# broken schemas ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ([], "schema: a schema must be an object, not a list"),
        ({"type": "strnig"}, "schema/type: 'strnig' is not a type"),
        ({"properties": {"a/b": {"type": ["string", 3]}}}, "schema/properties/a~1b/type/1: 3 is not a type"),
        ({"properties": []}, "schema/properties: must be an object, not a list"),
        ({"allOf": {}}, "schema/allOf: must be a list, not an object"),
        ({"items": "x"}, "schema/items: a schema must be an object, not text"),
        ({"enum": "a"}, "schema/enum: must be a list, not text"),
        ({"minLength": "3"}, "schema/minLength: must be a whole number from 0, not text"),
        ({"minLength": -1}, "schema/minLength: must be a whole number"),
        ({"minimum": True}, "schema/minimum: must be a number, not true or false"),
        ({"minimum": 10**400}, "schema/minimum: must be a number, not one out of range"),
        ({"multipleOf": 0}, "schema/multipleOf: must be a number above 0"),
        ({"required": "a"}, "schema/required: must be a list of property names, not text"),
        ({"pattern": 3}, "schema/pattern: must be text, not a number"),
        ({"$ref": 3}, "schema/$ref: must be text, not a number"),
        ({"oneOf": [], "discriminator": {}}, "schema/discriminator: must have a propertyName"),
        ({"allOf": [{"$ref": "#/schema"}]}, "schema: this schema refers to itself without a property or item"),
    ],
)
def test_broken_schemas_name_the_place(schema, message):
    with pytest.raises(ToolkitError) as failure:
        read(schema)
    assert str(failure.value).startswith(f"the document#/{message}")


def test_older_exclusive_bounds_are_refused_in_plain_json_schema():
    with pytest.raises(ToolkitError, match="exclusiveMinimum: must be a number"):
        read({"minimum": 1, "exclusiveMinimum": True}, version="json")


# simplifying changes no meaning --------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "bb"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
NAMES = ["A", "B", "C"]
LEAVES = st.sampled_from(
    [
        {}, {"type": "string"}, {"type": "integer", "minimum": 0}, {"enum": ["a", 1, None]}, {"const": 2}, True, False,
        {"type": ["null", "string"], "description": "d"}, {"type": "object", "required": ["a"]}, BIG,
    ]
)  # fmt: skip
REFERENCES = st.sampled_from([{"$ref": f"#/$defs/{name}"} for name in NAMES])


def _objects(inner):
    return st.fixed_dictionaries(
        {"properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3)},
        optional={
            "type": st.just("object"),
            "required": st.lists(st.sampled_from("abc"), unique=True, max_size=2),
            "title": st.just("t"),
            "additionalProperties": st.booleans(),
        },
    )


def _around(inner):
    applied = st.sampled_from(["allOf", "anyOf", "oneOf"])
    return (
        _objects(inner)
        | st.builds(lambda key, parts: {key: parts}, applied, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda part, around: {"allOf": [part], **around}, inner, _objects(inner))
        | st.builds(lambda part: {"type": "array", "items": part}, inner)
    )


BESIDE = st.builds(lambda one, beside: {**one, **beside}, REFERENCES, _objects(LEAVES))
ANYTHING = st.recursive(LEAVES | REFERENCES | BESIDE, _around, max_leaves=5)
ENDING = st.recursive(LEAVES | st.just({"$ref": "#/$defs/A"}), _around, max_leaves=4)
SCHEMAS = st.builds(
    lambda body, a, b, c: {**body, "$defs": {"A": a, "B": b, "C": {"type": "array", "items": c}}},
    ANYTHING.filter(lambda one: isinstance(one, dict)),
    LEAVES | _objects(ANYTHING),
    ENDING,
    ANYTHING,
)
"""Circles lead through a property or an item, as they must in a schema that a value can be checked against."""


@settings(max_examples=60, deadline=None)
@given(SCHEMAS, st.lists(VALUES, min_size=1, max_size=8))
def test_simplifying_changes_no_meaning(schema, values):
    simpler = Simplifier().simplify(schema)
    Draft202012Validator.check_schema(simpler)
    for value in values:
        assert Draft202012Validator(schema).is_valid(value) == Draft202012Validator(simpler).is_valid(value)


@settings(max_examples=60, deadline=None)
@given(SCHEMAS)
def test_simplifying_twice_changes_nothing_more(schema):
    simpler = Simplifier().simplify(schema)
    assert Simplifier().simplify(simpler) == simpler
    assert "$defs" not in simpler or simpler["$defs"]
