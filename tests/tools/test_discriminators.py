"""Discriminators beside branches that list values of the property themselves: the branch counts."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.schemas.complaints import find_faults
from gecko_graph.schemas.made_up.maker import make_value
from gecko_graph.tools import Toolkit
from tests.tools.small_documents import answering, document

USER = {
    "type": "object",
    "required": ["role"],
    "properties": {"role": {"type": "string", "enum": ["user"]}, "content": {"type": "string"}},
}
TOOL = {
    "allOf": [
        {"$ref": "#/components/schemas/Base"},
        {"type": "object", "properties": {"role": {"$ref": "#/components/schemas/ToolRole"}}},
    ]
}
SCHEMAS = {
    "UserMessage": USER,
    "ToolMessage": TOOL,
    "Base": {"type": "object", "properties": {"call": {"type": "string"}}},
    "ToolRole": {"const": "tool"},
    "Either": {"oneOf": [{"$ref": "#/components/schemas/UserMessage"}, {"$ref": "#/components/schemas/ToolMessage"}]},
    "Free": {"type": "object", "properties": {"role": {"type": "string"}}},
}


def union(*names, mapping=None, schemas=SCHEMAS):
    discriminator = {"propertyName": "role"} | ({"mapping": mapping} if mapping else {})
    branches = [{"$ref": f"#/components/schemas/{name}"} for name in names]
    operation = answering({"oneOf": branches, "discriminator": discriminator}) | {"operationId": "say"}
    return Toolkit.from_openapi(document({"/x": {"get": operation}}, components={"schemas": schemas}))


def broken(toolkit):
    return [(one.tool, one.message) for one in toolkit.problems if one.kind == "broken"]


@pytest.mark.parametrize("names", [("UserMessage", "ToolMessage"), ("Either", "Free")])
def test_a_branch_that_names_itself_needs_no_mapping(names):
    toolkit = union(*names)
    result = toolkit["say"].result
    assert find_faults(result, {"role": "user", "content": "hi"}) == []
    assert find_faults(result, {"role": "tool", "call": "c"}) == []
    assert find_faults(result, {"role": "UserMessage", "content": "hi"})
    assert broken(toolkit) == []


def test_a_mapping_chooses_among_the_values_of_the_branch():
    schemas = {**SCHEMAS, "UserMessage": {**USER, "properties": {"role": {"enum": ["user", "guest"]}}}}
    result = union("UserMessage", mapping={"guest": "UserMessage"}, schemas=schemas)["say"].result
    assert find_faults(result, {"role": "guest"}) == []
    assert find_faults(result, {"role": "user"})


def test_a_mapping_that_contradicts_its_branch_is_a_problem():
    toolkit = union("UserMessage", "Free", mapping={"person": "#/components/schemas/UserMessage"})
    assert find_faults(toolkit["say"].result, {"role": "user", "content": "hi"}) == []
    assert find_faults(toolkit["say"].result, {"role": "person"})
    ((tool, message),) = broken(toolkit)
    assert tool == "say"
    assert "schema/discriminator: maps 'person' to a schema that allows other values for 'role'" in message
    assert [one.kind for one in toolkit.replace(toolkit["say"]).problems].count("broken") == 1


def test_branches_that_lead_back_to_themselves_end():
    schemas = {**SCHEMAS, "Either": {"oneOf": [{"$ref": "#/components/schemas/Loop"}]}, "Loop": {"type": "object"}}
    schemas["Loop"] = {"allOf": [{"$ref": "#/components/schemas/Either"}, {"properties": {"a": True}}]}
    assert "say" in union("Loop", "Free", schemas={**schemas, "Either": {**schemas["Either"], "type": "object"}})


WORDS = st.sampled_from(["One", "one", "uno"])


@given(own=st.none() | st.lists(WORDS, min_size=1, unique=True), mapped=st.lists(WORDS, unique=True), value=WORDS)
def test_what_a_branch_takes(own, mapped, value):
    """The names of the discriminator, as far as the branch allows them; or its own values."""
    role = {"type": "string"} | ({} if own is None else {"enum": own})
    one = {"type": "object", "required": ["role"], "properties": {"role": role}}
    toolkit = union("One", mapping=dict.fromkeys(mapped, "One"), schemas={"One": one})
    names = mapped or ["One"]
    takes = names if own is None else [name for name in names if name in own] or own
    assert (find_faults(toolkit["say"].result, {"role": value}) == []) == (value in takes)
    assert bool(broken(toolkit)) == (own is not None and bool(mapped) and not {*own} & {*mapped})


def test_a_real_document_without_its_mapping(shared_data):
    """Microcks' exchanges list their `type` themselves, so results that fit with the mapping fit without it."""
    source = yaml.safe_load((shared_data / "openapi" / "microcks_v1.15.yaml").read_text("utf-8"))
    mapped = Toolkit.from_openapi(source)["GetService"].result
    del source["components"]["schemas"]["Exchange"]["discriminator"]["mapping"]
    unmapped = Toolkit.from_openapi(source)["GetService"].result
    values = [make_value(mapped, seed=seed, key="") for seed in range(20)]
    assert any('"type": "reqRespPair"' in json.dumps(value) for value in values)
    assert [fault for value in values for fault in find_faults(unmapped, value)] == []
