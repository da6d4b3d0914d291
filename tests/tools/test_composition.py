"""Schemas that are composed: children by `allOf`, what one direction does not carry, and corners that are broken."""

import pytest

from gecko_graph import Toolkit, World
from gecko_graph.schemas.complaints import find_faults
from gecko_graph.schemas.made_up import make_value
from tests.tools.small_documents import answering, body, document

VEHICLE = {"$ref": "#/components/schemas/Vehicle"}
PARENT = {
    "type": "object",
    "required": ["kind", "name"],
    "properties": {"kind": {"type": "string"}, "name": {"type": "string"}},
}
GEARS = {"type": "object", "required": ["gears"], "properties": {"gears": {"type": "integer"}}}
AXLES = {"type": "object", "properties": {"axles": {"type": "object"}}}
MAPPED = {"Bike": "#/components/schemas/Bike", "Truck": "Truck"}


def load(schema, *, version="3.0.3", path="/vehicles", parameters=(), answer=VEHICLE, **schemas):
    operation = {"operationId": "add", "parameters": list(parameters), **body(schema), **answering(answer)}
    return Toolkit.from_openapi(document({path: {"post": operation}}, version=version, components={"schemas": schemas}))


def family(discriminator, **more):
    return {
        "Vehicle": {**PARENT, "discriminator": discriminator},
        "Bike": {"allOf": [VEHICLE, GEARS]},
        "Truck": {"allOf": [VEHICLE, AXLES]},
        **more,
    }


def is_refused(toolkit, args):
    return bool(toolkit.check({"name": "add", "args": args}, {}))


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@pytest.mark.parametrize("discriminator", [{"propertyName": "kind"}, {"propertyName": "kind", "mapping": MAPPED}])
@pytest.mark.parametrize(("value", "refused"), [
    ({"kind": "Bike", "name": "a", "gears": 3}, False),
    ({"kind": "Truck", "name": "b", "axles": {"front": 2}}, False),
    ({"kind": "Cart", "name": "c"}, False), ({"kind": "Bike", "name": "a"}, True), ({"kind": "Truck"}, True),
])  # fmt: skip
def test_children_are_taken_by_their_names(version, discriminator, value, refused):
    toolkit = load(VEHICLE, version=version, **family(discriminator))
    assert is_refused(toolkit, value) == refused
    assert bool(find_faults(toolkit["add"].result, value)) == refused
    member = load({"type": "object", "properties": {"vehicle": VEHICLE}}, version=version, **family(discriminator))
    assert is_refused(member, {"vehicle": value}) == refused
    listed = load({"type": "array", "items": VEHICLE}, version=version, **family(discriminator))
    assert is_refused(listed, {"body": [value]}) == refused


def test_a_childs_member_of_the_name_of_another_argument_is_no_argument_of_its_own():
    path = {"name": "gears", "in": "path", "required": True, "schema": {"type": "string"}}
    toolkit = load(VEHICLE, path="/v/{gears}", parameters=[path], **family({"propertyName": "kind"}))
    assert [*toolkit["add"].parameters["properties"]] == ["gears", "body"]
    assert not is_refused(toolkit, {"gears": "x", "body": {"kind": "Bike", "name": "a", "gears": 3}})


def test_grandchildren_children_in_an_alias_and_what_an_alias_of_the_parent_takes():
    more = {"Tandem": {"allOf": [{"$ref": "#/components/schemas/Bike"}, {"required": ["seats"]}]}, "Any": VEHICLE}
    toolkit = load({"type": "object", "properties": {"v": {"allOf": [{"$ref": "#/components/schemas/Any"}]}}},
                   **family({"propertyName": "kind"}, **more))  # fmt: skip
    assert is_refused(toolkit, {"v": {"kind": "Tandem", "name": "t", "gears": 1}})
    assert not is_refused(toolkit, {"v": {"kind": "Tandem", "name": "t", "gears": 1, "seats": 2}})
    assert is_refused(toolkit, {"v": {"kind": "Tandem", "name": "t", "seats": 2}})


def test_a_childs_own_values_count_before_its_name_and_those_that_only_the_parent_lists_belong_to_no_child():
    own = {"allOf": [VEHICLE, {"properties": {"kind": {"type": "string", "enum": ["bike"]}}, "required": ["gears"]}]}
    toolkit = load(VEHICLE, **family({"propertyName": "kind"}, Bike=own))
    assert is_refused(toolkit, {"kind": "bike", "name": "a"})
    assert not is_refused(toolkit, {"kind": "Bike", "name": "a"})
    listed = {**PARENT["properties"], "kind": {"type": "string", "enum": ["bike", "truck"]}}
    parent = {**PARENT, "properties": listed, "discriminator": {"propertyName": "kind"}}
    toolkit = load(VEHICLE, **family({}, Vehicle=parent))
    assert not is_refused(toolkit, {"kind": "bike", "name": "a"})


def test_a_default_mapping_holds_where_no_name_does():
    default = {"propertyName": "kind", "mapping": MAPPED, "defaultMapping": "Bike"}
    parent = {**PARENT, "required": ["name"], "discriminator": default}
    member = {"type": "object", "properties": {"v": VEHICLE}}
    toolkit = load(member, version="3.2.0", **family({}, Vehicle=parent))
    assert is_refused(toolkit, {"v": {"name": "a"}})
    assert is_refused(toolkit, {"v": {"name": "a", "kind": "Cart"}})
    assert not is_refused(toolkit, {"v": {"name": "a", "gears": 2}})
    assert not is_refused(toolkit, {"v": {"name": "a", "kind": "Truck"}})
    one_of = {"oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in ("Bike", "Truck")]}
    plain = {"Bike": GEARS, "Truck": {**AXLES, "required": ["axles"]}}
    either = load({"type": "object", "properties": {"v": {**one_of, "discriminator": default}}}, answer={}, **plain)
    assert not is_refused(either, {"v": {"gears": 2}})
    assert not is_refused(either, {"v": {"kind": "Truck", "axles": {}}})
    assert is_refused(either, {"v": {"axles": {}}})


def test_a_made_up_answer_is_one_of_a_child():
    toolkit = load(VEHICLE, **family({"propertyName": "kind"}))
    made = [make_value(toolkit["add"].result, seed=0, key=str(key)) for key in range(20)]
    assert {one["kind"] for one in made} == {"Bike", "Truck"}
    assert all("gears" in one for one in made if one["kind"] == "Bike")


CODE = {"Code": {"type": "string"}}
BASE = {"type": "object", "properties": {"code": {"type": "string", "readOnly": True}, "title": {"type": "string"}}}
REQUIRED = {"required": ["code", "title"]}
TO_BASE = {"$ref": "#/components/schemas/Base"}
ASKING = {"$ref": "#/components/schemas/Asking"}
FLAGGED = {"allOf": [{"$ref": "#/components/schemas/Code"}, {"readOnly": True}]}


@pytest.mark.parametrize("schema", [
    {**BASE, **REQUIRED}, {"allOf": [TO_BASE], **REQUIRED},
    {"allOf": [TO_BASE, {"type": "object", "required": ["code"], "properties": {"more": {"type": "string"}}}]},
    {"allOf": [TO_BASE, ASKING]},
    {"allOf": [{"allOf": [ASKING]}, {"anyOf": [TO_BASE, {"type": "null"}]}]},
    {"anyOf": [{"allOf": [TO_BASE, REQUIRED]}, {"type": "string"}]},
    {"type": "object", **REQUIRED, "properties": {"code": FLAGGED, "title": {"type": "string"}}},
])  # fmt: skip
@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_whatever_part_requires_a_read_only_member_no_request_needs_it(schema, version):
    schemas = {**CODE, "Base": BASE, "Asking": REQUIRED}
    member = load({"type": "object", "properties": {"inner": schema}}, version=version, answer=schema, **schemas)
    assert not is_refused(member, {"inner": {"title": "a lawful body"}})
    assert find_faults(member["add"].result, {"title": "no code"})
    assert not find_faults(member["add"].result, {"title": "t", "code": "c"})


def test_a_write_only_member_is_in_no_result_and_what_one_alternative_hides_is_required_by_the_other():
    secret = {"type": "object", "properties": {"password": {"type": "string", "writeOnly": True}}}
    schema = {"allOf": [secret, {"required": ["password"]}]}
    toolkit = load(schema, answer=schema)
    assert is_refused(toolkit, {})
    assert not find_faults(toolkit["add"].result, {})
    assert "password" not in make_value(toolkit["add"].result, seed=0, key="k")
    other = {"type": "object", "required": ["code", "size"], "properties": {"code": {}, "size": {"type": "integer"}}}
    schema = {"oneOf": [{"allOf": [TO_BASE, REQUIRED]}, other]}
    toolkit = load({"type": "object", "properties": {"inner": schema}}, Base=BASE, answer={})
    assert not is_refused(toolkit, {"inner": {"title": "t"}})
    assert not is_refused(toolkit, {"inner": {"code": 1, "size": 2}})
    assert is_refused(toolkit, {"inner": {"size": 2}})


NODE = {"type": "object", "properties": {"name": {"type": "string"}}}


def corner(schema, **schemas):
    deep = {"type": "object", "properties": {"a": {"type": "string"}, "deep": {"$ref": "#/components/schemas/Corner"}}}
    return load(deep, answer=deep, version="3.1.0", Corner=schema, Fields={"a": {"type": "string"}}, **schemas)


@pytest.mark.parametrize(("schema", "value"), [
    ({"type": "object", "properties": {"note": {"$ref": "#/components/schemas/Missing"}}}, {"note": 1}),
    ({"type": "string", "enum": []}, "x"),
    ({"type": "object", "properties": {"$ref": "#/components/schemas/Fields"}}, {"a": 1}),
    ({"type": "object", "required": {"a": True}}, {}), ({"type": "strnig"}, 1),
    ({"properties": {"a": "text"}}, {"a": 1}), ({"allOf": {}}, 1), ({"properties": [1]}, {"a": 1}),
    ({"type": "object", "dependencies": {"a": ["b"]}}, {"a": 1}), ({"type": "integer", "minimum": "5"}, 1),
    ({"not": {"type": "strnig"}}, 1),
    ({"allOf": [{"$ref": "#/components/schemas/Corner"}]}, 1),
    ({"oneOf": [{"$ref": "#/components/schemas/Missing"}, {"type": "string"}]}, "x"),
    ({"if": {"type": "strnig"}, "then": {"type": "null"}}, 1), ({"$recursiveRef": "#"}, 1),
])  # fmt: skip
def test_a_corner_that_cannot_be_read_is_open_and_listed(schema, value):
    toolkit = corner(schema)
    assert len(toolkit) == 1
    assert not is_refused(toolkit, {"deep": value})
    assert is_refused(toolkit, {"a": 7})
    assert any("open, as it cannot be read" in one.message and "Corner" in one.message for one in toolkit.broken)


@pytest.mark.parametrize("schema", [
    {**NODE, "$recursiveAnchor": True, "properties": {**NODE["properties"], "kid": {"$recursiveRef": "#"}}},
    {**NODE, "$dynamicAnchor": "node", "properties": {**NODE["properties"], "kid": {"$dynamicRef": "#node"}}},
    {**NODE, "$anchor": "here", "properties": {**NODE["properties"], "kid": {"$ref": "#here"}}},
    {**NODE, "$id": "https://a.example/node", "properties": {**NODE["properties"], "kid": {"$ref": "node"}}},
    {"$defs": {"k": {"$id": "kids", **NODE}}, "properties": {**NODE["properties"], "kid": {"$ref": "kids"}}},
    {
        "$id": "https://a.example/node", "$defs": {"k": NODE},
        "properties": {**NODE["properties"], "kid": {"$ref": "#/$defs/k"}},
    },
])  # fmt: skip
def test_addresses_inside_a_schema_are_followed(schema):
    toolkit = corner(schema)
    assert toolkit.broken == ()
    assert not is_refused(toolkit, {"deep": {"name": "a", "kid": {"name": "b"}}})
    assert is_refused(toolkit, {"deep": {"name": "a", "kid": {"name": 7}}})


def test_a_list_of_items_and_what_follows_it():
    toolkit = corner({"items": [{"type": "string"}], "additionalItems": {"type": "integer"}})
    assert not is_refused(toolkit, {"deep": ["a", 1]})
    assert is_refused(toolkit, {"deep": ["a", "b"]})


def test_a_simulated_result_has_the_ids_of_its_call_and_what_the_document_shows():
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}
    operation = {
        "operationId": "put",
        "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
        **body(schema),
        **answering(schema, example={"id": 9, "name": "Van"}),
    }
    world = World(Toolkit.from_openapi(document({"/d/{id}": {"put": operation}})), state={}, derive=False)
    made = world.call({"name": "put", "args": {"id_path": 4, "name": "Lorry"}})["outcome"]
    assert made["result"] == {"id": 4, "name": "Lorry"}
    assert world.call({"name": "put", "args": {"id_path": 5}})["outcome"]["result"] == {"id": 5, "name": "Van"}
