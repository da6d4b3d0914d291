"""Tools from OpenAPI documents: arguments, names, results, effects, examples, and the real documents."""

from __future__ import annotations

import contextlib
import json
import shutil

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gecko_graph.errors import ContractError, ToolkitError
from gecko_graph.toolkit import ToolExample, Toolkit
from gecko_graph.toolkit.schema import faults

METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}


def document(paths, *, version="3.0.3", **more):
    return {"openapi": version, "info": {"title": "T", "version": "1"}, "paths": paths, **more}


def read_one(operation, *, method="get", path="/x", **more):
    (tool,) = Toolkit.from_openapi(document({path: {method: {"responses": {}, **operation}}}, **more))
    return tool


def body(schema, *, media="application/json", **more):
    return {"requestBody": {"required": True, "content": {media: {"schema": schema}}, **more}}


def answering(schema, *, code="200", **media):
    return {"responses": {code: {"description": "", "content": {"application/json": {"schema": schema, **media}}}}}


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
    "microcks_test_boba-openapi.json": "#/components/schemas/RealmSettings/properties/root/type: 'obect'",
    "microcks_test_weather-forecast-openapi-relative-recursive-ref.yaml": RENAMED,
    "microcks_test_weather-forecast-openapi-relative-ref.yaml": RENAMED,
}
"""What is wrong in the real documents: a misspelt type, and files that the collection renamed."""


def test_every_real_document_loads_whole_or_names_the_place(real_documents):
    loaded, schemas = 0, []
    for path, raw in real_documents:
        if path.name in BROKEN or "openapi" not in raw:
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


def test_swagger_two_is_named_and_told_how_to_convert(shared_data):
    with pytest.raises(ToolkitError, match=r"#/swagger: this is OpenAPI 2\.0 .*convert it to 3\.0"):
        Toolkit.from_openapi(shared_data / "openapi" / "oai_v2.0_yaml_uber.yaml")


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
    assert faults(parameters, pet) == []
    inner = next(name for name, one in parameters["properties"].items() if "$ref" in json.dumps(one))
    assert faults(parameters, {**pet, inner: 7})


def test_credentials_of_a_real_document_are_no_arguments(shared_data):
    toolkit = Toolkit.from_openapi(shared_data / "openapi" / "prism_petstore.oas3.yaml")
    assert set(toolkit["deletePet"].parameters["properties"]) == {"petId"}


# arguments -----------------------------------------------------------------------------------------------------------


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
    assert faults(tool.parameters, {}) == []
    assert faults(tool.parameters, {"c": 1})
    assert faults(tool.parameters, {"a": 1})
    assert faults(tool.parameters, {"a": 1, "b": 1}) == []


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
    with pytest.raises(ContractError, match=r"the document#/paths/~1x/get/x-contract.*requires\[0\]"):
        read_one(operation)


# broken documents ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ([], "must be an object, not a list"),
        ({}, "no key 'openapi'"),
        ({"asyncapi": "2.0.0"}, "AsyncAPI"),
        ({"openapi": "3.2.0", "paths": {}}, "#/openapi: version '3.2.0'"),
        ({"openapi": "3.0.0"}, "#/paths: is missing"),
        ({"openapi": "3.1.0"}, "#/paths: is missing"),
        (document([]), "#/paths: must be an object, not a list"),
        (document({"/x": []}), "#/paths/~1x: must be an object"),
        (document({"/x": {"get": 1}}), "#/paths/~1x/get: must be an object, not a number"),
        (document({"/x": {}, "x": {}}), "/x is given twice"),
        (document({"/x": {"get": {"parameters": {}}}}), "get/parameters: must be a list"),
        (document({"/x": {"get": {"parameters": [{"in": "query"}]}}}), "parameters/0: a parameter must have a name"),
        (
            document({"/x": {"get": {"parameters": [{"name": "a", "in": "body"}]}}}),
            "parameters/0/in: must be one of path",
        ),
        (document({"/x": {"get": {"x-effect": "reads"}}}), "x-effect: must be read, write or unknown, not 'reads'"),
        (document({"/x": {"get": {"responses": {"200": 3}}}}), "responses/200: must be an object"),
        (document({"/x": {"get": {"$ref": "#/nowhere"}}}), "#/paths/~1x/get: $ref '#/nowhere' leads nowhere"),
        (document({}, **{"x-contract-let": []}), "#/x-contract-let: must be an object"),
        (document({}, **{"x-contract-let": [1]}), "#/x-contract-let: must be an object"),
        (document({}, **{"x-contract-invariants": [1]}), "#/x-contract-invariants/0: must be an object"),
        (document({"/x": {"get": {1.5: 2}}}), "the key 1.5 must be text"),
        (document({"/x": {"get": {"description": float("nan")}}}), "description: 'nan' (float) has no JSON value"),
    ],
)
def test_broken_documents_name_the_place(broken, message):
    with pytest.raises(ToolkitError) as failure:
        Toolkit.from_openapi(broken if isinstance(broken, dict) else {"openapi": "3.0.0", "paths": broken})
    assert message in str(failure.value)


def test_a_dict_that_holds_itself_is_refused():
    endless = document({})
    endless["paths"]["/x"] = endless
    with pytest.raises(ToolkitError, match="holds itself"):
        Toolkit.from_openapi(endless)


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


def places_of(value, place=()):
    yield place
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from places_of(one, (*place, key))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_document_loads_or_names_the_place(shared_data, data):
    names = [
        "boba-openapi.json",
        "pastry-with-details-openapi.yaml",
        "season-nullable-all-of.yaml",
        "petstore-openapi.json",
    ]
    path = shared_data / "openapi" / f"microcks_test_{data.draw(st.sampled_from(names))}"
    raw = json.loads(json.dumps(yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)))
    *around, last = data.draw(st.sampled_from([place for place in places_of(raw) if place]))
    holder = raw
    for key in around:
        holder = holder[key]
    holder[last] = data.draw(PIECES)
    if (toolkit := load_or_name_the_place(raw)) is not None:
        assert Toolkit.from_openapi(toolkit.to_openapi()).names == toolkit.names


def load_or_name_the_place(raw):
    with contextlib.suppress(ToolkitError):
        return Toolkit.from_openapi(raw)
    with pytest.raises(ToolkitError, match=r"^the document"):
        Toolkit.from_openapi(raw)
    return None


def test_the_document_is_not_changed():
    raw = document(
        {"/x": {"post": body({"type": "object", "properties": {"a": {"nullable": True, "type": "string"}}})}}
    )
    before = json.dumps(raw)
    Toolkit.from_openapi(raw)
    assert json.dumps(raw) == before
