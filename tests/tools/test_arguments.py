"""Parameters and bodies of OpenAPI operations as one argument object."""

from __future__ import annotations

import pytest

from gecko_graph.schemas.complaints import find_faults
from gecko_graph.tools import Toolkit
from tests.tools.small_documents import answering, body, document, read_one


def test_all_places_become_one_object():
    tool = read_one(
        {
            "parameters": [
                {"name": "limit", "in": "query", "schema": {"type": "integer"}, "description": "How many."},
                {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                {"name": "session", "in": "cookie", "schema": {"type": "string"}},
                {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
            ],
            **body({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}),
        },
        method="post",
        path="/pets/{petId}",
    )
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "limit": {"type": "integer", "description": "How many."},
            "X-Trace": {"type": "string"},
            "session": {"type": "string"},
            "petId": {"type": "string"},
            "name": {"type": "string"},
        },
        "required": ["petId", "name"],
        "additionalProperties": False,
    }
    assert tool.binding.places == {
        "limit": ("query", "limit"),
        "X-Trace": ("header", "X-Trace"),
        "session": ("cookie", "session"),
        "petId": ("path", "petId"),
        "name": ("body", "name"),
    }
    assert (tool.binding.method, tool.binding.path) == ("post", "/pets/{petId}")


def test_names_that_clash_get_their_place():
    tool = read_one(
        {
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
                {"name": "id", "in": "query", "schema": {"type": "string"}},
                {"name": "id_body", "in": "query", "schema": {"type": "boolean"}},
            ],
            **body({"type": "object", "properties": {"id": {"type": "number"}}}),
        },
        method="put",
        path="/x/{id}",
    )
    assert {name: one["type"] for name, one in tool.parameters["properties"].items()} == {
        "id_path": "integer",
        "id_query": "string",
        "id_body": "boolean",
        "id_body_2": "number",
    }
    assert tool.binding.places["id_body_2"] == ("body", "id")


def test_parameters_of_the_operation_win_over_those_of_the_path():
    paths = {
        "/x": {
            "parameters": [
                {"name": "a", "in": "query", "schema": {"type": "string"}},
                {"name": "b", "in": "query", "required": True, "schema": {"type": "string"}},
            ],
            "get": {"parameters": [{"name": "a", "in": "query", "schema": {"type": "integer"}}], "responses": {}},
        }
    }
    (tool,) = Toolkit.from_openapi(document(paths))
    assert tool.parameters["properties"] == {"a": {"type": "integer"}, "b": {"type": "string"}}
    assert tool.parameters["required"] == ["b"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "integer"}},
        {"type": "string"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {"b": {}}}]},
        {"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    ],
)
def test_a_body_that_is_no_plain_object_is_one_argument(schema):
    tool = read_one(body(schema, description="What to send."), method="post")
    assert tool.parameters["properties"] == {"body": {**schema, "description": "What to send."}}
    assert tool.parameters["required"] == ["body"]
    assert tool.binding.places == {"body": ("body", "")}


@pytest.mark.parametrize("media", ["application/x-www-form-urlencoded", "multipart/form-data", "application/hal+json"])
def test_forms_are_object_bodies(media):
    tool = read_one(body({"type": "object", "properties": {"To": {"type": "string"}}}, media=media), method="post")
    assert tool.parameters["properties"] == {"To": {"type": "string"}}


def test_json_is_preferred_to_other_media_types():
    content = {
        "text/xml": {"schema": {"type": "string"}},
        "application/json; charset=utf-8": {"schema": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    }
    tool = read_one({"requestBody": {"content": content}}, method="post")
    assert tool.parameters["properties"] == {"a": {"type": "integer"}}


def test_a_body_that_may_be_left_out_asks_for_all_or_nothing():
    schema = {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "required": ["a", "b"]}
    tool = read_one(body(schema, required=False), method="post")
    assert find_faults(tool.parameters, {}) == []
    assert find_faults(tool.parameters, {"c": 1})
    assert find_faults(tool.parameters, {"a": 1})
    assert find_faults(tool.parameters, {"a": 1, "b": 1}) == []


def test_a_body_without_a_word_on_itself_asks_for_what_it_requires():
    schema = {"type": "object", "properties": {"a": {}}, "required": ["a", "unlisted"]}
    tool = read_one({"requestBody": {"content": {"application/json": {"schema": schema}}}}, method="post")
    assert tool.parameters["required"] == ["a", "unlisted"]


def test_open_bodies_stay_open():
    schema = {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "integer"}}
    tool = read_one(body(schema), method="post")
    assert tool.parameters["additionalProperties"] == {"type": "integer"}


def test_object_parameters_and_content_parameters_stay_objects():
    point = {"type": "object", "properties": {"lat": {"type": "number"}}}
    tool = read_one(
        {
            "parameters": [
                {"name": "filter", "in": "query", "style": "deepObject", "schema": point},
                {"name": "where", "in": "query", "content": {"application/json": {"schema": point}}},
            ]
        }
    )
    assert tool.parameters["properties"] == {"filter": point, "where": point}


def test_api_keys_of_security_schemes_are_no_arguments():
    schemes = {"key": {"type": "apiKey", "in": "query", "name": "token"}}
    tool = read_one(
        {"parameters": [{"name": "Token", "in": "query"}, {"name": "q", "in": "query"}]},
        components={"securitySchemes": schemes},
    )
    assert set(tool.parameters["properties"]) == {"q"}


def test_read_only_is_no_argument_and_write_only_no_result():
    schema = {
        "type": "object",
        "required": ["id", "name", "secret"],
        "properties": {
            "id": {"type": "integer", "readOnly": True},
            "name": {"type": "string"},
            "secret": {"$ref": "#/components/schemas/Secret"},
        },
    }
    components = {"schemas": {"User": schema, "Secret": {"type": "string", "writeOnly": True}}}
    user = {"$ref": "#/components/schemas/User"}
    tool = read_one({**body(user), **answering(user)}, method="post", components=components)
    assert set(tool.parameters["properties"]) == {"name", "secret"}
    assert tool.parameters["required"] == ["name", "secret"]
    assert set(tool.result["properties"]) == {"id", "name"}
    assert tool.result["required"] == ["id", "name"]


@pytest.mark.parametrize(
    ("where", "name"), [("cookie", "session"), ("cookie", "theme"), ("header", "X-API-Key"), ("query", "access_token")]
)
def test_values_that_a_document_shows_of_credentials_go_nowhere(where, name):
    given = {"name": name, "in": where, "example": "s3cret-1", "description": "Who asks."}
    given["schema"] = {"type": "string", "default": "s3cret-2", "example": "s3cret-3", "minLength": 2}
    other = {"name": name, "in": where, "examples": {"one": {"value": "s3cret-4"}}, "schema": {"type": "string"}}
    for parameter in (given, other):
        tool = read_one({"parameters": [parameter]})
        assert tool.binding.places == {name: (where, name)}
        assert "s3cret" not in repr(tool)
    assert read_one({"parameters": [given]}).parameters["properties"] == {
        name: {"type": "string", "minLength": 2, "description": "Who asks."}
    }


def test_examples_of_other_parameters_stay():
    parameter = {"name": "page_token", "in": "query", "example": "p2", "schema": {"type": "string"}}
    assert read_one({"parameters": [parameter]}).parameters["properties"]["page_token"]["examples"] == ["p2"]
