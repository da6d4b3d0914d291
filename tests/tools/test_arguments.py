"""Parameters and bodies of OpenAPI operations as one argument object; Swagger 2.0 read as OpenAPI 3.0."""

import pytest
import yaml

from gecko_graph.errors import ToolkitError
from gecko_graph.tools import Toolkit
from gecko_graph.tools.check import read_call
from tests.tools.small_documents import answering, body, read_one


def test_all_places_become_one_object():
    parameters = [
        {"name": "limit", "in": "query", "schema": {"type": "integer"}, "description": "How many."},
        {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
        {"name": "session", "in": "cookie", "schema": {"type": "string"}},
        {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
    ]
    whole = body({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}})
    tool = read_one({"parameters": parameters, **whole}, method="post", path="/pets/{petId}")
    text = {"type": "string"}
    assert tool.parameters["properties"] == {
        "limit": {"type": "integer", "description": "How many."},
        **{"X-Trace": text, "session": text, "petId": text, "name": text},
    }
    assert (tool.parameters["required"], tool.parameters["additionalProperties"]) == (["petId", "name"], False)
    places = {"limit": "query", "X-Trace": "header", "session": "cookie", "petId": "path", "name": "body"}
    assert tool.binding.places == {name: (place, name) for name, place in places.items()}
    assert (tool.binding.method, tool.binding.path) == ("post", "/pets/{petId}")


def test_names_that_clash_get_their_place():
    parameters = [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
        {"name": "id", "in": "query", "schema": {"type": "string"}},
        {"name": "id_body", "in": "query", "schema": {"type": "boolean"}},
    ]
    whole = body({"type": "object", "properties": {"id": {"type": "number"}}})
    tool = read_one({"parameters": parameters, **whole}, method="put", path="/x/{id}")
    kinds = {"id_path": "integer", "id_query": "string", "id_body": "boolean", "id_body_2": "number"}
    assert {name: one["type"] for name, one in tool.parameters["properties"].items()} == kinds
    assert tool.binding.places["id_body_2"] == ("body", "id")


@pytest.mark.parametrize("schema", [
    {"type": "array", "items": {"type": "integer"}},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {"b": {}}}]},
    {"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
])  # fmt: skip
def test_a_body_that_is_no_plain_object_is_one_argument(schema):
    tool = read_one(body(schema, description="What to send."), method="post")
    assert tool.parameters["properties"] == {"body": {**schema, "description": "What to send."}}
    assert tool.parameters["required"] == ["body"]
    assert tool.binding.places == {"body": ("body", "")}


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


@pytest.mark.parametrize(("where", "name"), [("cookie", "theme"), ("header", "X-API-Key"), ("query", "access_token")])
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


PETS = """
swagger: "2.0"
info: {title: Pets}
host: pets.example
basePath: /v2/
schemes: [http, https]
consumes: [application/json]
securityDefinitions:
  login: {type: basic}
  key: {type: apiKey, in: header, name: X-Key}
parameters:
  tags: {name: tags, in: query, type: array, items: {type: string}, collectionFormat: pipes}
  draft: {name: draft, in: body, required: true, schema: {$ref: "#/definitions/Pet"}}
responses:
  pet: {description: A pet, schema: {$ref: "#/definitions/Pet"}, examples: {application/json: {id: 1, kind: cat}}}
definitions:
  Pet:
    type: object
    required: [id]
    properties: {id: {type: integer}, kind: {type: string}, born: {type: string, x-nullable: true}}
    discriminator: kind
paths:
  /pets/{id}:
    parameters: [{name: id, in: path, required: true, type: integer, minimum: 1}]
    get:
      operationId: get
      security: [{login: []}, {key: []}]
      parameters: [{$ref: "#/parameters/tags"}, {name: by, in: query, type: array, items: {type: string}}]
      responses: {200: {$ref: "#/responses/pet"}}
    put: {operationId: put, parameters: [{$ref: "#/parameters/draft"}], responses: {204: {description: Done}}}
    post:
      operationId: name
      consumes: [application/x-www-form-urlencoded]
      parameters:
        - {name: names, in: formData, type: array, items: {type: string}, collectionFormat: multi, required: true}
      responses: {200: {description: Done, schema: {type: string}}}
    patch:
      operationId: photo
      parameters: [{name: photo, in: formData, type: file, description: Its photo}]
      responses: {200: {description: Done}}
    delete:
      operationId: remove
      parameters: [{name: why, in: query, type: array, items: {type: string}, collectionFormat: tsv}]
      responses: {204: {description: Done}}
"""


@pytest.fixture
def pets():
    return Toolkit.from_openapi(yaml.safe_load(PETS))


@pytest.mark.parametrize(("schemes", "used"), [(["http"], "http"), (["http", "https"], "https"), ([], "https")])
def test_of_several_schemes_https_is_used(schemes, used):
    tools = Toolkit.from_openapi({**yaml.safe_load(PETS), "schemes": schemes})
    assert tools["get"].binding.server == {"url": f"{used}://pets.example/v2"}


def test_parameters_with_their_formats_and_who_may_call(pets):
    tool = pets["get"]
    login, key = {"type": "http", "scheme": "basic"}, {"type": "apiKey", "in": "header", "name": "X-Key"}
    assert tool.binding.security == ({"login": login}, {"key": key})
    assert tool.parameters["properties"]["id"] == {"type": "integer", "minimum": 1}
    assert tool.parameters["required"] == ["id"]
    assert tool.binding.styles == {"tags": {"style": "pipeDelimited"}, "by": {"explode": False}}
    assert tool.result["properties"]["born"]["type"] == ["string", "null"]
    assert tool.result["required"] == ["id"]


def test_bodies_and_forms(pets):
    body = {"id_body": ("body", "id"), "kind": ("body", "kind"), "born": ("body", "born")}
    assert pets["put"].binding.places == {"id_path": ("path", "id"), **body}
    assert pets["put"].result == {"type": "null"}
    form, parts = pets["name"], pets["photo"]
    assert form.binding.body == {"media": "application/x-www-form-urlencoded", "required": False}
    assert form.parameters["required"] == ["id", "names"]
    assert form.result == {"type": "string"}
    assert parts.binding.body == {"media": "multipart/form-data"}
    assert parts.parameters["properties"]["photo"] == {"type": "string", "format": "binary", "description": "Its photo"}


def test_what_cannot_be_sent_is_a_problem_and_the_rest_is_written_as_what_it_was_read_as(pets):
    assert "remove" not in pets.names
    (problem,) = [each for each in pets.broken if each.tool == "remove"]
    assert "#/paths/~1pets~1{id}/delete: 'why': the collectionFormat 'tsv' in query cannot be sent" in problem.message
    again = Toolkit.from_openapi(pets.to_openapi())
    assert [(tool.name, tool.parameters, tool.binding) for tool in again] == [
        (tool.name, tool.parameters, tool.binding) for tool in pets
    ]


def test_what_came_before_is_refused():
    with pytest.raises(ToolkitError, match=r"#/swagger: this is Swagger 1\.2: supported are 2\.0 and 3\.0 to 3\.2"):
        Toolkit.from_openapi({"swagger": "1.2", "paths": {}})


def test_a_call_without_an_id_of_its_own_is_given_the_next_that_is_free():
    call, complaint = read_call({"name": "pay", "args": {}}, taken={"call_3"}, number=3)
    assert (call["id"], complaint) == ("call_4", None)
