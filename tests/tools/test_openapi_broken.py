"""OpenAPI documents that are broken: each loads, or ends in a message that names the place."""

from __future__ import annotations

import contextlib
import json

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gecko_graph.errors import ToolkitError
from gecko_graph.tools import Toolkit
from tests.every_place import every_place
from tests.tools.small_documents import document


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ([], "must be an object, not a list"),
        ({}, "no key 'openapi'"),
        ({"asyncapi": "2.0.0"}, "AsyncAPI"),
        ({"openapi": "3.2.0", "paths": {}}, "#/openapi: unsupported version '3.2.0'"),
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
    *around, last = data.draw(st.sampled_from([place for place, _ in every_place(raw) if place]))
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
    schema = {"type": "object", "properties": {"a": {"nullable": True, "type": "string"}}, "required": ["a"]}
    content = {"application/json": {"schema": schema}}
    raw = document(
        {"/x": {"post": {"requestBody": {"content": content}, "parameters": [{"name": "b", "in": "query"}]}}}
    )
    before = json.dumps(raw)
    Toolkit.from_openapi(raw)
    assert json.dumps(raw) == before


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("openapi: 3.0.0\npaths: {}\n", "path, got its text"),
        (None, "got null"),
        ([{}], "got a list"),
        (b"x", "got bytes"),
        ("", "folder"),
    ],
)
def test_what_is_neither_path_nor_dict(source, message):
    with pytest.raises(ToolkitError, match=message):
        Toolkit.from_openapi(source)


MISSPELT = {
    "x-stat": {"type": "object"},
    "paths": {
        "/a": {
            "pst": {},
            "x-contract": {},
            "get": {"operationID": "a", "x-contrct": {}, "x-efect": "write", "x-mine": 1},
        }
    },
}


def test_a_misspelt_key_is_a_problem_and_not_lost_in_silence():
    found = {
        problem.message.partition("#")[2]: problem.tool for problem in Toolkit.from_openapi(document(**MISSPELT)).broken
    }
    assert found == {
        "/x-stat: unknown key (did you mean x-state?)": "the document",
        "/paths/~1a/pst: unknown key (did you mean post?)": "/a",
        "/paths/~1a/x-contract: is not read here: path has no such key": "/a",
        "/paths/~1a/get/operationID: unknown key (did you mean operationId?)": "get_a",
        "/paths/~1a/get/x-contrct: unknown key (did you mean x-contract?)": "get_a",
        "/paths/~1a/get/x-efect: unknown key (did you mean x-effect?)": "get_a",
    }


def test_the_keys_of_real_documents_are_known(shared_data):
    for file in sorted((shared_data / "openapi").iterdir()):
        with contextlib.suppress(ToolkitError):
            messages = [problem.message for problem in Toolkit.from_openapi(file).broken]
            assert [message for message in messages if "unknown key" in message or "not read here" in message] == []
