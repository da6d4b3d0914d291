"""Documents in several files, with references wherever their authors put them; files of other formats."""

import pytest

from gecko_graph import Toolkit
from gecko_graph.errors import ToolkitError
from gecko_graph.tools.function_dicts import tool_descriptions

FILES = {
    "api.yaml": """
openapi: 3.1.0
info: {title: pets, version: '1'}
paths: {$ref: paths/index.yaml}
components: {$ref: components.yaml}
""",
    "paths/index.yaml": """
/pets:
  post:
    operationId: make
    security: [{key: []}]
    requestBody: {content: {$ref: '../components.yaml#/mediaTypes/pet'}}
    responses: {$ref: '../components.yaml#/answers'}
  get:
    operationId: all
    responses: {'200': {description: x, content: {$ref: '../components.yaml#/mediaTypes/nowhere'}}}
/pets/{id}: {$ref: pet.yaml}
""",
    "paths/pet.yaml": """
parameters: [{name: id, in: path, required: true, schema: {type: string}}]
get:
  operationId: one
  responses:
    '200': {description: x, content: {application/json: {schema: {$ref: '../api.yaml#/components/schemas/Pet'}}}}
""",
    "components.yaml": """
schemas: {$ref: schemas.yaml}
securitySchemes: {key: {type: apiKey, in: header, name: X-Key}}
mediaTypes: {pet: {application/json: {schema: {$ref: 'schemas.yaml#/Pet'}}}}
answers: {'200': {description: x, content: {application/json: {schema: {$ref: 'schemas.yaml#/Pet'}}}}}
""",
    "schemas.yaml": "Pet: {type: object, properties: {name: {type: string}}, required: [name]}",
}
PET = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.fixture
def write(tmp_path):
    def write_all(files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text, "utf-8")
        return tmp_path / "api.yaml"

    return write_all


def test_references_stand_for_whole_maps_and_pointers_lead_through_them(write):
    toolkit = Toolkit.from_openapi(write(FILES))
    assert toolkit["make"].parameters["required"] == ["name"]
    assert toolkit["make"].result == toolkit["one"].result == PET
    assert toolkit["make"].binding.security
    assert any("leads nowhere" in each.message and each.tool == "all" for each in toolkit.problems)


@pytest.mark.parametrize(("given", "named"), [
    ({"info": {"_postman_id": "1", "schema": "https://schema.getpostman.com/x"}, "item": []}, "Postman"),
    ({"data": {"__schema": {"types": []}}}, "GraphQL"), ({"asyncapi": "2.6.0", "channels": {}}, "AsyncAPI"),
    ({"arazzo": "1.0.0", "workflows": []}, "Arazzo"),
    ({"kind": "discovery#restDescription", "resources": {}}, "discovery"),
    ({"mcpServers": {"a": {"command": "b"}}}, "from_mcp"), ({"log": {"entries": [{}]}}, "gecko-graph learn"),
])  # fmt: skip
def test_a_file_of_another_format_is_named_with_what_to_do(given, named):
    for read in (Toolkit.from_openapi, lambda document: tool_descriptions(document, where="api.json")):
        with pytest.raises(ToolkitError, match=named):
            read(given)
