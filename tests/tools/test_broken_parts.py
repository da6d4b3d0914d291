"""Documents with one broken part: the rest is kept, and a problem names the part."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gecko_graph.errors import GeckoError, ToolkitError
from gecko_graph.tools import Toolkit
from tests.tools.small_documents import answering, body, document

NOWHERE = {"$ref": "#/components/schemas/Nowhere"}
FINE = {"operationId": "fine", **answering({"type": "string"})}


def broken(toolkit):
    return {one.tool: one.message for one in toolkit.problems if one.kind == "broken"}


def read(path):
    raw = yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)
    return json.loads(json.dumps(raw, default=str))


def test_a_real_document_with_misspelt_types_keeps_its_tools(shared_data):
    toolkit = Toolkit.from_openapi(shared_data / "openapi" / "microcks_test_boba-openapi.json")
    assert len(toolkit) == 17
    assert broken(toolkit).keys() == {"get_realms_slug_by_realm_slug", "get_users_me_notifications"}
    assert (
        "RealmSettings/properties/root/type: 'obect' is not a type" in broken(toolkit)["get_realms_slug_by_realm_slug"]
    )
    assert toolkit["get_users_me_notifications"].result is None


@pytest.mark.parametrize(
    ("operation", "kept", "message"),
    [
        (answering(NOWHERE), True, "any JSON passes as its result, which is broken: the document#/paths/~1x/post/resp"),
        (body(NOWHERE), False, "left out: the document#/paths/~1x/post/requestBody"),
        ({"parameters": [NOWHERE]}, False, "left out: the document#/paths/~1x/post/parameters/0"),
        (NOWHERE, False, "left out: the document#/paths/~1x/post: $ref"),
        (7, False, "left out: the document#/paths/~1x/post: must be an object, not a number"),
    ],
)
def test_a_broken_operation_does_not_lose_the_rest(operation, kept, message):
    toolkit = Toolkit.from_openapi(document({"/x": {"get": FINE, "post": operation}, "/y": NOWHERE}))
    assert toolkit.names == (("fine", "post_x") if kept else ("fine",))
    assert broken(toolkit)["post_x"].startswith(message)
    assert broken(toolkit)["/y"].startswith("left out: the document#/paths/~1y: $ref")


def test_a_broken_security_scheme_and_a_broken_mapping_are_problems():
    union = {"oneOf": [{"$ref": "#/components/schemas/A"}], "discriminator": {"propertyName": "k"}}
    union["discriminator"]["mapping"] = {"a": "#/components/schemas/A", "b": "#/components/schemas/Gone"}
    components = {"schemas": {"A": {"type": "object"}}, "securitySchemes": {"key": NOWHERE}}
    toolkit = Toolkit.from_openapi(document({"/x": {"get": answering(union)}}, components=components))
    assert toolkit["get_x"].result["oneOf"][0]["properties"]["k"] == {"enum": ["a"]}
    assert broken(toolkit)["get_x"].endswith("has no such place; this name is not used")
    assert "securitySchemes/key: $ref" in broken(toolkit)["key"]


def test_a_document_of_which_nothing_can_be_read_is_refused():
    with pytest.raises(ToolkitError, match=r"get/parameters/0: \$ref"):
        Toolkit.from_openapi(document({"/x": {"get": {"parameters": [NOWHERE]}, "post": body(NOWHERE)}}))


def test_a_broken_contract_is_refused_and_not_left_out():
    with pytest.raises(GeckoError, match="x-contract"):
        Toolkit.from_openapi(document({"/x": {"get": FINE, "post": {"x-contract": {"requires": 3}}}}))


def references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value, "$ref"
        mapping = value["discriminator"].get("mapping", {}) if isinstance(value.get("discriminator"), dict) else {}
        yield from ((mapping, key) for key in mapping)
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from references(one)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_one_broken_reference_leaves_all_other_tools_as_they_are(shared_data, data):
    name = data.draw(st.sampled_from(["microcks_v1.15.yaml", "schemathesis_petstore_v3.yaml"]))
    raw = read(shared_data / "openapi" / name)
    whole = Toolkit.from_openapi(raw)
    holder, key = data.draw(st.sampled_from(list(references(raw))))
    holder[key] = "#/nowhere"
    toolkit = Toolkit.from_openapi(raw)
    changed = {tool.name for tool in whole if toolkit.get(tool.name) != tool}
    assert {*toolkit.names} <= {*whole.names}
    assert changed <= broken(toolkit).keys()
    for tool in toolkit:
        assert "#/nowhere" not in json.dumps([tool.parameters, tool.result])
