"""Tools from OpenAPI documents: arguments, names, results, effects, examples, and the real documents."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml
from jsonschema import Draft202012Validator

from gecko_graph.errors import ContractError, ToolkitError
from gecko_graph.schemas.complaints import find_faults
from gecko_graph.tools import ToolExample, Toolkit
from tests.tools.small_documents import answering, document, read_one

METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}


# the real documents --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real_documents(shared_data):
    """Path and content of each, read by another reader than ours."""
    paths = sorted((shared_data / "openapi").iterdir())
    return [(path, yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)) for path in paths]


def count_operations(raw):
    return sum(method in METHODS for item in raw.get("paths", {}).values() for method in item)


RENAMED = "schema: $ref './weather-forecast-schema.yaml'"
BROKEN = {
    "microcks_test_weather-forecast-openapi-relative-recursive-ref.yaml": RENAMED,
    "microcks_test_weather-forecast-openapi-relative-ref.yaml": RENAMED,
}
"""What is wrong in the real documents: files that the collection renamed."""


def test_every_real_document_loads_whole_or_names_the_place(real_documents):
    loaded, schemas = 0, []
    for path, raw in real_documents:
        if path.name in BROKEN or not {"openapi", "swagger"} & raw.keys():
            with pytest.raises(ToolkitError) as failure:
                Toolkit.from_openapi(path)
            assert str(failure.value).startswith(str(path))
            if path.name in BROKEN:
                assert BROKEN[path.name] in str(failure.value)
            continue
        toolkit = Toolkit.from_openapi(path)
        assert len(toolkit) == count_operations(raw), path.name
        loaded += len(toolkit)
        schemas += [schema for tool in toolkit for schema in (tool.parameters, tool.result or {})]
    assert loaded > 250
    # each property once: the same ones come again and again
    parts = {json.dumps(part, sort_keys=True) for one in schemas for part in one.pop("properties", {}).values()}
    for part in {*parts, *(json.dumps(one, sort_keys=True) for one in schemas)}:
        Draft202012Validator.check_schema(json.loads(part))


def test_fragments_say_that_they_are_no_whole_document(real_documents):
    fragments = [path for path, raw in real_documents if not {"openapi", "swagger"} & raw.keys()]
    assert len(fragments) == 4
    for path in fragments:
        with pytest.raises(ToolkitError, match="no key 'openapi'"):
            Toolkit.from_openapi(path)


def test_relative_files_and_examples_in_files_of_their_own(shared_data, tmp_path):
    for path in (shared_data / "openapi").glob("microcks_test_weather-*"):
        shutil.copy(path, tmp_path / path.name.removeprefix("microcks_test_"))
    (tool,) = Toolkit.from_openapi(tmp_path / "weather-forecast-openapi-relative-recursive-ref.yaml")
    assert tool.result["properties"]["temp"]["type"] == "number"
    assert tool.parameters["required"] == ["region", "apiKey"]
    plain = Toolkit.from_openapi(tmp_path / "weather-forecast-openapi-relative-ref.yaml")["GetForecast"]
    assert plain.result == tool.result


def test_circular_schemas_of_a_real_document_can_be_checked(shared_data):
    toolkit = Toolkit.from_openapi(shared_data / "openapi" / "prism_petstore.no-auth.circular.oas3.yaml")
    parameters = toolkit["addPet"].parameters
    assert "$defs" in parameters
    pet = {"name": "Rex", "photoUrls": []}
    assert find_faults(parameters, pet) == []
    inner = next(name for name, one in parameters["properties"].items() if "$ref" in json.dumps(one))
    assert find_faults(parameters, {**pet, inner: 7})


def test_credentials_of_a_real_document_are_no_arguments(shared_data):
    toolkit = Toolkit.from_openapi(shared_data / "openapi" / "prism_petstore.oas3.yaml")
    assert set(toolkit["deletePet"].parameters["properties"]) == {"petId"}


# names, descriptions, effects ----------------------------------------------------------------------------------------


def test_operations_without_a_name_get_a_stable_one():
    paths = {
        "/": {"get": {}},
        "/pets/{petId}": {"get": {}, "delete": {}},
        "/pets/{petId}/toys/{toy-id}.json": {"post": {}},
        "/" + "very/" * 30: {"get": {}},
    }
    names = Toolkit.from_openapi(document(paths)).names
    assert names[:4] == (
        "get_root",
        "get_pets_by_petId",
        "delete_pets_by_petId",
        "post_pets_by_petId_toys_by_toy-id_json",
    )
    assert len(names[4]) <= 64
    assert names == Toolkit.from_openapi(document(paths)).names


def test_names_that_providers_refuse_or_that_are_given_twice():
    ids = ["calendar.events.list", "calendar_events_list", "same", "same", "ü", "x" * 80, "x" * 81]
    paths = {f"/{index}": {"get": {"operationId": name}} for index, name in enumerate(ids)}
    names = Toolkit.from_openapi(document(paths)).names
    assert names[:5] == ("calendar_events_list_2", "calendar_events_list", "same", "same_2", "tool")
    assert names[5] != names[6]
    assert all(len(name) <= 64 for name in names)


def test_summary_and_description():
    assert read_one({"summary": "List pets", "description": "All of them."}).description == "List pets\n\nAll of them."
    assert read_one({"summary": "List pets.", "description": "List pets by page."}).description == "List pets by page."
    paths = {"/x": {"description": "Pets.", "get": {}}}
    assert next(iter(Toolkit.from_openapi(document(paths)))).description == "Pets."


@pytest.mark.parametrize(
    ("method", "said", "effect"),
    [
        ("get", None, "read"), ("head", None, "read"), ("options", None, "read"), ("post", None, "write"),
        ("put", None, "write"), ("patch", None, "write"), ("delete", None, "write"), ("trace", None, None),
        ("post", "read", "read"), ("get", "write", "write"), ("get", "unknown", None),
    ],
)  # fmt: skip
def test_effects(method, said, effect):
    assert read_one({"x-effect": said} if said else {}, method=method).effect == effect


def test_webhooks_and_callbacks_are_no_tools():
    callback = {"onEvent": {"{$request.body#/url}": {"post": {"responses": {}}}}}
    hooks = {"new": {"post": {"operationId": "hook"}}}
    paths = {"/x": {"post": {"operationId": "subscribe", "callbacks": callback}}}
    assert Toolkit.from_openapi(document(paths, version="3.1.0", webhooks=hooks)).names == ("subscribe",)


def test_path_items_by_reference():
    components = {
        "pathItems": {
            "X": {"summary": "Xs.", "get": {"operationId": "x"}, "parameters": [{"name": "a", "in": "query"}]}
        }
    }
    there = {"$ref": "#/components/pathItems/X"}
    tool = Toolkit.from_openapi(document({"/y": {**there, "description": "Ys."}}, components=components))["x"]
    assert (tool.binding.path, tool.description) == ("/y", "Xs.\n\nYs.")
    assert set(tool.parameters["properties"]) == {"a"}
    for beside, message in (({"get": {}}, "get: stands both here"), ({"post": {}}, "operations beside its \\$ref")):
        with pytest.raises(ToolkitError, match=rf"#/paths/~1y/.*{message}"):
            Toolkit.from_openapi(document({"/y": {**there, **beside}}, components=components))


# results -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("responses", "result"),
    [
        ({"201": "integer", "200": "string"}, {"type": "string"}),
        ({"200": None, "202": "integer"}, {"type": "integer"}),
        ({"2XX": "integer", "404": "string"}, {"type": "integer"}),
        ({"default": "integer"}, {"type": "integer"}),
        ({"200": None, "default": "integer"}, None),
        ({"404": "integer"}, None),
        ({"204": None}, {"type": "null"}),
        ({}, None),
    ],
)
def test_the_lowest_success_is_the_result(responses, result):
    written = {
        code: {"description": "", **({"content": {"application/json": {"schema": {"type": kind}}}} if kind else {})}
        for code, kind in responses.items()
    }
    assert read_one({"responses": written}).result == result


def test_statuses_may_be_numbers_in_a_dict():
    assert read_one({"responses": {200: {"content": {"application/json": {"schema": {"type": "string"}}}}}}).result


# examples ------------------------------------------------------------------------------------------------------------


def test_examples_are_paired_by_name():
    region = {"name": "region", "in": "query", "required": True, "schema": {"type": "string"}}
    tool = read_one(
        {
            "parameters": [
                {**region, "examples": {"n": {"value": 7}, "s": {"value": "south"}, "none": {"value": "x"}}}
            ],
            **answering({"type": "object"}, examples={"s": {"value": '{"t": 1}'}, "n": {"value": {"t": 2}}, "z": {}}),
        }
    )
    assert tool.examples == (
        ToolExample({"region": "south"}, {"t": 1}),
        ToolExample({"region": "7"}, {"t": 2}),
    )


def test_a_lone_example_belongs_to_a_call_without_arguments_or_to_lone_ones():
    optional = {"name": "page", "in": "query", "schema": {"type": "integer"}}
    tool = read_one({"parameters": [optional], **answering({"type": "array"}, example=[1])})
    assert tool.examples == (ToolExample({}, [1]),)
    tool = read_one({"parameters": [{**optional, "required": True, "example": 2}], **answering({}, example=[1])})
    assert tool.examples == (ToolExample({"page": 2}, [1]),)


def test_examples_whose_arguments_cannot_be_told_are_left_out():
    needed = {"name": "id", "in": "query", "required": True, "schema": {"type": "integer"}}
    assert read_one({"parameters": [needed], **answering({}, examples={"a": {"value": 1}})}).examples == ()
    assert read_one(answering({}, example=1), method="post").examples == ()


def test_body_examples_are_taken_apart():
    content = {
        "schema": {"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}},
        "examples": {"e": {"value": {"q": "a"}}},
    }
    operation = {
        "x-effect": "read",
        "requestBody": {"content": {"application/json": content}},
        **answering({"type": "string"}, examples={"e": {"value": "[]"}}),
    }
    assert read_one(operation, method="post").examples == (ToolExample({"q": "a"}, "[]"),)


def test_examples_of_real_documents_fit_their_schemas(shared_data):
    names = ["apipastries-openapi.yaml", "pastry-with-details-openapi.yaml", "cars-openapi-complete.yaml"]
    for name in names:
        toolkit = Toolkit.from_openapi(shared_data / "openapi" / f"microcks_test_{name}")
        assert sum(len(tool.examples) for tool in toolkit) >= 2
        assert [one for one in toolkit.problems if one.kind == "example"] == []


# contracts -----------------------------------------------------------------------------------------------------------


def test_contracts_and_shared_lets():
    lets = {"here": "{{ state.tree }}"}
    contract = {"requires": [{"check": "args.q in here", "error": "no such file"}], "returns": "{{ args.q }}"}
    operation = {"parameters": [{"name": "q", "in": "query"}], "x-contract": contract}
    toolkit = Toolkit.from_openapi(
        document(
            {"/x": {"get": {**operation, "operationId": "x"}}},
            **{"x-contract-let": lets, "x-contract-invariants": [{"check": "state.tree is mapping", "error": "gone"}]},
        )
    )
    assert toolkit["x"].contract.data == contract
    assert toolkit.lets == lets
    assert toolkit.state_keys == {"tree"}
    assert [one.data["error"] for one in toolkit.invariants] == ["gone"]


def test_a_broken_contract_names_document_tool_and_place():
    operation = {"x-contract": {"requires": [{"check": "args.q ==", "error": "x"}]}}
    for name, shown in (("look", "look"), (None, "get_x")):
        with pytest.raises(ContractError) as failure:
            read_one({**operation, "operationId": name})
        place = f"the document#/paths/~1x/get/x-contract (tool {shown}): requires[0].check: "
        assert str(failure.value).startswith(place)
