"""Schemas as OpenAPI and people write them, read as JSON Schema 2020-12; and simplified without a change of meaning."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gecko_graph.errors import ToolkitError
from gecko_graph.schemas.complaints import find_faults
from gecko_graph.tools import Toolkit
from gecko_graph.tools.openapi.documents import Documents
from gecko_graph.tools.openapi.schema_reader import SchemaReader
from gecko_graph.tools.openapi.simplify import Simplifier
from tests.tools.small_documents import answering, document


def reader_of(schema, *, version="3.0", **schemas):
    return SchemaReader(Documents({"schema": schema, "components": {"schemas": schemas}}), version=version)


def read(schema, *, version="3.0", direction="response", **schemas):
    reader = reader_of(schema, version=version, **schemas)
    return reader.read(schema, Documents({}).root / "schema", direction=direction)


def ref(name):
    return {"$ref": f"#/components/schemas/{name}"}


BIG = {
    "type": "object",
    "properties": {f"p{index}": {"type": "string", "description": "x" * 40} for index in range(20)},
}


@pytest.mark.parametrize(("written", "meant"), [
    ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    ({"type": "string", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
    ({"nullable": True, "allOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
    ({"type": "string", "example": "a"}, {"type": "string", "examples": ["a"]}),
    ({"xml": {}, "externalDocs": {}, "x-own": 1, "$comment": "c", "title": None, "description": None}, {}),
    ({"items": [{"const": 1}]}, {"prefixItems": [{"const": 1}]}),
    (
        {"type": "object", "properties": {"a": {"type": "string", "required": True}, "b": {"required": False}}},
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]},
    ),
    (True, {}), (False, {"not": {}}),
    ({"properties": {"nullable": {"nullable": True, "type": "string"}, "type": {"type": "integer"}}},
     {"properties": {"nullable": {"type": ["string", "null"]}, "type": {"type": "integer"}}}),
    ({"enum": [{"$ref": "#/x", "nullable": True}], "default": {"example": 1}},
     {"enum": [{"$ref": "#/x", "nullable": True}], "default": {"example": 1}}),
    ({"allOf": [{"type": "object", "properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]},
     {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}),
])  # fmt: skip
def test_what_is_written_and_what_is_meant(written, meant):
    assert read(written) == meant


def test_what_stands_beside_a_reference():
    schema = {**ref("A"), "description": "mine", "minLength": 3}
    assert read(schema, version="3.0", A={"type": "string"}) == {"type": "string", "description": "mine"}
    whole = {"allOf": [{"type": "string"}], "description": "mine", "minLength": 3}
    assert read(schema, version="3.1", A={"type": "string"}) == whole


def test_circles_stay_and_everything_else_small_is_written_out():
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": ref("Node")}, "name": ref("Name")}}
    schema = read({"type": "array", "items": ref("Node")}, Node=node, Name={"type": "string"})
    assert schema["$defs"]["Node"]["properties"] == {
        "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        "name": {"type": "string"},
    }
    assert find_faults(schema, [{"kids": [{"name": "a", "kids": []}]}]) == []
    assert find_faults(schema, [{"kids": [{"name": 1}]}])


def test_a_web_of_very_many_definitions_is_left_as_it_is():
    properties = [{f"p{step}": ref(f"w{(at * 7 + step) % 400}") for step in range(3)} for at in range(400)]
    web = {f"w{at}": {"type": "object", "properties": one} for at, one in enumerate(properties)}
    schema = read(ref("w1"), **web)
    assert len(schema["$defs"]) == 400
    assert schema["$ref"] == "#/$defs/w1"
    assert find_faults(schema, {"p0": {"p1": 3}}) == ["/p0/p1: expected an object, got 3"]


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


USER = {
    "type": "object",
    "required": ["role"],
    "properties": {"role": {"type": "string", "enum": ["user"]}, "content": {"type": "string"}},
}
ROLE = {"type": "object", "properties": {"role": {"$ref": "#/components/schemas/ToolRole"}}}
TOOL = {"allOf": [{"$ref": "#/components/schemas/Base"}, ROLE]}
MESSAGES = {
    "UserMessage": USER,
    "ToolMessage": TOOL,
    "Base": {"type": "object", "properties": {"call": {"type": "string"}}},
    "ToolRole": {"const": "tool"},
    "Either": {"oneOf": [{"$ref": "#/components/schemas/UserMessage"}, {"$ref": "#/components/schemas/ToolMessage"}]},
    "Free": {"type": "object", "properties": {"role": {"type": "string"}}},
}


def union(*names, mapping=None, schemas=MESSAGES):
    discriminator = {"propertyName": "role"} | ({"mapping": mapping} if mapping else {})
    branches = [{"$ref": f"#/components/schemas/{name}"} for name in names]
    operation = answering({"oneOf": branches, "discriminator": discriminator}) | {"operationId": "say"}
    return Toolkit.from_openapi(document({"/x": {"get": operation}}, components={"schemas": schemas}))


@pytest.mark.parametrize("names", [("UserMessage", "ToolMessage"), ("Either", "Free")])
def test_a_branch_that_names_itself_needs_no_mapping(names):
    toolkit = union(*names)
    result = toolkit["say"].result
    assert find_faults(result, {"role": "user", "content": "hi"}) == []
    assert find_faults(result, {"role": "tool", "call": "c"}) == []
    assert find_faults(result, {"role": "UserMessage", "content": "hi"})
    assert toolkit.broken == ()


@pytest.mark.parametrize(
    ("own", "mapped", "taken"),
    [(None, [], {"One"}), (None, ["one", "uno"], {"one", "uno"}), (["one"], [], {"one"}), (["One", "uno"], [], {"One"}),
     (["one", "uno"], ["uno", "One"], {"uno"}), (["one"], ["uno"], {"one"})],
)  # fmt: skip
def test_what_a_branch_takes(own, mapped, taken):
    """The names of the discriminator, as far as the branch allows them; or its own values."""
    role = {"type": "string"} | ({} if own is None else {"enum": own})
    one = {"type": "object", "required": ["role"], "properties": {"role": role}}
    toolkit = union("One", mapping=dict.fromkeys(mapped, "One"), schemas={"One": one})
    words = ("One", "one", "uno")
    assert {word for word in words if find_faults(toolkit["say"].result, {"role": word}) == []} == taken


@pytest.mark.parametrize(("schema", "message"), [
    ([], "schema: a schema must be an object, not a list"),
    ({"type": "strnig"}, "schema/type: 'strnig' is not a type"),
    ({"properties": {"a/b": {"type": ["string", 3]}}}, "schema/properties/a~1b/type/1: 3 is not a type"),
    ({"minLength": -1}, "schema/minLength: "), ({"$dynamicRef": "#node"}, "schema: $ref '#node' leads nowhere"),
    ({"items": {"dependencies": {"a": ["b"]}}}, "schema/items/dependencies: "),
    ({"allOf": [{"$ref": "#/schema"}]}, "schema: this schema refers to itself without a property or item"),
])  # fmt: skip
def test_what_cannot_be_read_is_an_error_in_plain_json_schema_and_open_in_a_document(schema, message):
    with pytest.raises(ToolkitError) as failure:
        read(schema, version="json")
    assert str(failure.value).startswith(f"the document#/{message}")
    reader = reader_of(schema)
    made = reader.read(schema, Documents({}).root / "schema", direction="response")
    assert [text for text in reader.take_corners() if text.startswith(f"the document#/{message}")]
    assert find_faults(made, {"a/b": {}}) == []
    assert reader.take_corners() == {}


VALUES = st.recursive(
    st.none() | st.integers(-3, 3) | st.sampled_from(["", "a", "bb"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
LEAVES = st.sampled_from(
    [
        {}, {"type": "string"}, {"type": "integer", "minimum": 0}, {"enum": ["a", 1, None]}, {"const": 2}, True, False,
        {"type": ["null", "string"], "description": "d"}, {"type": "object", "required": ["a"]}, BIG,
    ]
)  # fmt: skip
REFERENCES = st.sampled_from([{"$ref": f"#/$defs/{name}"} for name in "ABC"])


def _objects(inner):
    optional = {"type": st.just("object"), "required": st.just(["b"]), "title": st.just("t")}
    properties = {"properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3)}
    return st.fixed_dictionaries(properties, optional={**optional, "additionalProperties": st.booleans()})


def _around(inner):
    applied, parts = st.sampled_from(["allOf", "anyOf", "oneOf"]), st.lists(inner, min_size=1, max_size=3)
    several = st.builds(lambda key, some, around: {key: some, **around}, applied, parts, st.just({}) | _objects(inner))
    return _objects(inner) | several | st.builds(lambda part: {"type": "array", "items": part}, inner)


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


@settings(max_examples=40, deadline=None)
@given(SCHEMAS, st.lists(VALUES, min_size=1, max_size=8))
def test_simplifying_changes_no_meaning(schema, values):
    simpler = Simplifier().simplify(schema)
    Draft202012Validator.check_schema(simpler)
    for value in values:
        assert Draft202012Validator(schema).is_valid(value) == Draft202012Validator(simpler).is_valid(value)
