"""Swagger 2.0 is read as OpenAPI 3.0: addresses, parameters, bodies, results, credentials."""

from __future__ import annotations

import pytest
import yaml

from gecko_graph import Toolkit
from gecko_graph.errors import ToolkitError

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


def test_where_it_lives_and_who_may_call(pets):
    binding = pets["get"].binding
    assert binding.server == {"url": "https://pets.example/v2"}
    assert binding.security == (
        {"login": {"type": "http", "scheme": "basic"}},
        {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    )


def test_parameters_with_their_formats(pets):
    tool = pets["get"]
    assert tool.parameters["properties"]["id"] == {"type": "integer", "minimum": 1}
    assert tool.parameters["required"] == ["id"]
    assert tool.binding.styles == {"tags": {"style": "pipeDelimited"}, "by": {"explode": False}}
    assert tool.result["properties"]["born"]["type"] == ["string", "null"]
    assert tool.result["required"] == ["id"]


def test_bodies_and_forms(pets):
    assert pets["put"].binding.places == {
        name: ("path" if name == "id_path" else "body", name.removesuffix("_path").removesuffix("_body"))
        for name in ("id_path", "id_body", "kind", "born")
    }
    assert pets["put"].result == {"type": "null"}
    form, parts = pets["name"], pets["photo"]
    assert form.binding.body == {"media": "application/x-www-form-urlencoded"}
    assert form.parameters["required"] == ["id", "names"]
    assert form.result == {"type": "string"}
    assert parts.binding.body == {"media": "multipart/form-data"}
    assert parts.parameters["properties"]["photo"] == {"type": "string", "format": "binary", "description": "Its photo"}


def test_what_cannot_be_sent_is_a_problem_of_its_operation(pets):
    assert "remove" not in pets.names
    (problem,) = [each for each in pets.broken if each.tool == "remove"]
    assert "#/paths/~1pets~1{id}/delete: 'why': the collectionFormat 'tsv' in query cannot be sent" in problem.message


def test_it_is_written_as_what_it_was_read_as(pets):
    again = Toolkit.from_openapi(pets.to_openapi())
    assert [(tool.name, tool.parameters, tool.binding) for tool in again] == [
        (tool.name, tool.parameters, tool.binding) for tool in pets
    ]


def test_a_real_document(shared_data):
    toolkit = Toolkit.from_openapi(shared_data / "openapi" / "oai_v2.0_yaml_uber.yaml")
    assert len(toolkit) == 5
    assert not toolkit.broken
    assert toolkit["get_products"].binding.server == {"url": "https://api.uber.com/v1"}
    assert toolkit["get_products"].result["items"]["properties"]["product_id"]["type"] == "string"


def test_what_came_before_is_refused():
    with pytest.raises(ToolkitError, match=r"#/swagger: this is Swagger 1\.2: 2\.0, 3\.0 and 3\.1 are read"):
        Toolkit.from_openapi({"swagger": "1.2", "paths": {}})
