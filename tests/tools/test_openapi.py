"""Tools from OpenAPI documents, real ones and broken ones: what is whole is kept, what is not is named."""

import json

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gecko_graph.errors import ContractError, ToolkitError
from gecko_graph.tools import ToolExample, Toolkit
from gecko_graph.values.documents import read_document
from tests.every_place import every_place
from tests.tools.small_documents import answering, body, document, read_one, real_toolkits

METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}


def count_operations(raw):
    return sum(method in METHODS for item in raw.get("paths", {}).values() for method in item)


RENAMED = "schema: $ref './weather-forecast-schema.yaml'"
BROKEN = {
    "microcks_test_weather-forecast-openapi-relative-recursive-ref.yaml": RENAMED,
    "microcks_test_weather-forecast-openapi-relative-ref.yaml": RENAMED,
}
"""What is wrong in the real documents: files that the collection renamed."""


def test_every_real_document_loads_whole_or_names_the_place(shared_data):
    loaded, parts = 0, set()
    for path, toolkit in real_toolkits(shared_data).items():
        raw = yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)  # another reader than ours
        if path.name in BROKEN or not {"openapi", "swagger"} & raw.keys():
            assert toolkit.startswith(str(path))
            assert BROKEN.get(path.name, "") in toolkit
            continue
        assert len(toolkit) == count_operations(raw), path.name
        loaded += len(toolkit)
        for schema in (schema for tool in toolkit for schema in (tool.parameters, tool.result or {})):
            members = schema.get("properties", {})  # each once: the same ones come again and again
            parts |= {json.dumps(one, sort_keys=True) for one in ({**schema, "properties": {}}, *members.values())}
    assert loaded > 250
    for part in parts:
        Draft202012Validator.check_schema(json.loads(part))


def test_operations_without_a_name_get_a_stable_one():
    paths = {
        "/": {"get": {}},
        "/pets/{petId}": {"get": {}, "delete": {}},
        "/pets/{petId}/toys/{toy-id}.json": {"post": {}},
        "/" + "very/" * 30: {"get": {}},
    }
    names = Toolkit.from_openapi(document(paths)).names
    assert names[:3] == ("get_root", "get_pets_by_petId", "delete_pets_by_petId")
    assert names[3] == "post_pets_by_petId_toys_by_toy-id_json"
    assert len(names[4]) <= 64
    assert names == Toolkit.from_openapi(document(paths)).names


def test_names_that_providers_refuse_or_that_are_given_twice():
    ids = ["calendar.events.list", "calendar_events_list", "same", "same", "ü", "x" * 80, "x" * 81]
    paths = {f"/{index}": {"get": {"operationId": name}} for index, name in enumerate(ids)}
    names = Toolkit.from_openapi(document(paths)).names
    assert names[:5] == ("calendar_events_list_2", "calendar_events_list", "same", "same_2", "tool")
    assert names[5] != names[6]
    assert all(len(name) <= 64 for name in names)


@pytest.mark.parametrize(("method", "said", "effect"), [
    ("get", None, "read"), ("head", None, "read"), ("options", None, "read"), ("post", None, "write"),
    ("put", None, "write"), ("patch", None, "write"), ("delete", None, "write"), ("trace", None, None),
    ("post", "read", "read"), ("get", "write", "write"), ("get", "unknown", None),
])  # fmt: skip
def test_effects(method, said, effect):
    assert read_one({"x-effect": said} if said else {}, method=method).effect == effect


@pytest.mark.parametrize(("responses", "result"), [
    ({"201": "integer", "200": "string"}, {"type": "string"}),
    ({"200": None, "202": "integer"}, {"type": "integer"}),
    ({"2XX": "integer", "404": "string"}, {"type": "integer"}),
    ({"default": "integer"}, {"type": "integer"}), ({"200": None, "default": "integer"}, None),
    ({"404": "integer"}, None), ({"204": None}, {"type": "null"}), ({}, None),
])  # fmt: skip
def test_the_lowest_success_is_the_result(responses, result):
    written = {
        code: {"description": "", **({"content": {"application/json": {"schema": {"type": kind}}}} if kind else {})}
        for code, kind in responses.items()
    }
    assert read_one({"responses": written}).result == result


def test_examples_are_paired_by_name():
    region = {"name": "region", "in": "query", "required": True, "schema": {"type": "string"}}
    given = {**region, "examples": {"n": {"value": 7}, "s": {"value": "south"}, "none": {"value": "x"}}}
    shown = {"s": {"value": '{"t": 1}'}, "n": {"value": {"t": 2}}, "z": {}}
    tool = read_one({"parameters": [given], **answering({"type": "object"}, examples=shown)})
    assert tool.examples == (ToolExample({"region": "south"}, {"t": 1}), ToolExample({"region": "7"}, {"t": 2}))


def test_a_broken_contract_names_document_tool_and_place():
    operation = {"x-contract": {"requires": [{"check": "args.q ==", "error": "x"}]}}
    for name, shown in (("look", "look"), (None, "get_x")):
        with pytest.raises(ContractError) as failure:
            read_one({**operation, "operationId": name})
        place = f"the document#/paths/~1x/get/x-contract (tool {shown}): requires[0].check: "
        assert str(failure.value).startswith(place)


@pytest.mark.parametrize(("broken", "message"), [
    ({}, "no key 'openapi'"),
    ({"openapi": "4.0.0", "paths": {}}, "#/openapi: unsupported version '4.0.0'"),
    ({"openapi": "3.0.0"}, "#/paths: is missing"),
    (document({"/x": {"get": 1}}), "#/paths/~1x/get: must be an object, not a number"),
    (document({"/x": {}, "x": {}}), "/x is given twice"),
    (document({}, **{"x-contract-invariants": [1]}), "#/x-contract-invariants/0: must be an object"),
    (document({"/x": {"get": {"description": float("nan")}}}), "not JSON"),
])  # fmt: skip
def test_broken_documents_name_the_place(broken, message):
    with pytest.raises(ToolkitError) as failure:
        Toolkit.from_openapi(broken if isinstance(broken, dict) else {"openapi": "3.0.0", "paths": broken})
    assert message in str(failure.value)


def test_a_missing_file_and_broken_yaml(tmp_path):
    with pytest.raises(ToolkitError, match="no such file"):
        Toolkit.from_openapi(tmp_path / "none.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_text("openapi: 3.0.0\npaths: {\n")
    with pytest.raises(ToolkitError, match=r"broken\.yaml:\d+:\d+"):
        Toolkit.from_openapi(str(broken))


PIECES = st.sampled_from(
    [
        None, True, 3, -1.5, "x", "", [], {}, [1], ["a"], [{}], [None], "#/components", {"a": None}, {"type": "object"},
        {"$ref": "#/nowhere"}, {"$ref": 3}, {"$ref": "#"}, {"$ref": "#/paths"}, {"oneOf": 3},
        {"allOf": [{"$ref": "#"}]},
    ]
)  # fmt: skip


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_document_loads_or_names_the_place(shared_data, data):
    names = [
        "boba-openapi.json",
        "pastry-with-details-openapi.yaml",
        "season-nullable-all-of.yaml",
        "petstore-openapi.json",
    ]
    path = shared_data / "openapi" / f"microcks_test_{data.draw(st.sampled_from(names))}"
    raw = read_document(path)
    *around, last = data.draw(st.sampled_from([place for place, _ in every_place(raw) if place]))
    holder = raw
    for key in around:
        holder = holder[key]
    holder[last] = data.draw(PIECES)
    try:
        toolkit, why = Toolkit.from_openapi(raw), "the document"
    except ToolkitError as error:
        toolkit, why = Toolkit([]), str(error)
    assert why.startswith("the document")
    assert Toolkit.from_openapi(toolkit.to_openapi()).names == toolkit.names


def test_a_misspelt_key_is_a_problem_and_not_lost_in_silence():
    wrong = {"operationID": "a", "x-contrct": {}, "x-efect": "write", "x-mine": 1}
    paths = {"/a": {"pst": {}, "x-contract": {}, "get": wrong}}
    toolkit = Toolkit.from_openapi(document(paths, **{"x-stat": {"type": "object"}}))
    found = {problem.message.partition("#")[2]: problem.tool for problem in toolkit.broken}
    assert found == {
        "/x-stat: unknown key (did you mean x-state?)": "the document",
        "/paths/~1a/pst: unknown key (did you mean post?)": "/a",
        "/paths/~1a/x-contract: is not read here: path has no such key": "/a",
        "/paths/~1a/get/operationID: unknown key (did you mean operationId?)": "get_a",
        "/paths/~1a/get/x-contrct: unknown key (did you mean x-contract?)": "get_a",
        "/paths/~1a/get/x-efect: unknown key (did you mean x-effect?)": "get_a",
    }


NOWHERE = {"$ref": "#/components/schemas/Nowhere"}
FINE = {"operationId": "fine", **answering({"type": "string"})}


def broken(toolkit):
    return {one.tool: one.message for one in toolkit.problems if one.kind == "broken"}


@pytest.mark.parametrize(("operation", "kept", "message"), [
    (answering(NOWHERE), True, "open, as it cannot be read: the document#/paths/~1x/post/resp"),
    (body(NOWHERE), True, "open, as it cannot be read: the document#/paths/~1x/post/requestBody"),
    ({"requestBody": NOWHERE}, True, "open, as it cannot be read: the document#/paths/~1x/post/requestBody"),
    (
        {"responses": {"200": NOWHERE}}, True,
        "its result schema is invalid, so any JSON is accepted: the document#/",
    ),
    ({"parameters": [NOWHERE]}, True, "open, as it cannot be read: the document#/paths/~1x/post/parameters/0"),
    (NOWHERE, False, "left out: the document#/paths/~1x/post: $ref"),
    (7, False, "left out: the document#/paths/~1x/post: must be an object, not a number"),
])  # fmt: skip
def test_a_broken_operation_does_not_lose_the_rest(operation, kept, message):
    toolkit = Toolkit.from_openapi(document({"/x": {"get": FINE, "post": operation}, "/y": NOWHERE}))
    assert toolkit.names == (("fine", "post_x") if kept else ("fine",))
    assert broken(toolkit)["post_x"].startswith(message)
    assert broken(toolkit)["/y"].startswith("left out: the document#/paths/~1y: $ref")


def test_a_parameter_of_a_path_that_does_not_have_it_is_told():
    given = {"name": "alive", "in": "path", "required": True, "schema": {"type": "boolean"}}
    toolkit = Toolkit.from_openapi(document({"/queen": {"get": {"parameters": [given]}}}))
    told = [each.message for each in toolkit.problems if each.kind == "parameter"]
    assert any("never sent" in message for message in told)
