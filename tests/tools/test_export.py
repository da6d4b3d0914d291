"""A toolkit as an OpenAPI document that reads back as the same tools; what is new in it, a validator accepts."""

from __future__ import annotations

import copy
import functools
import json
import operator
import re
import shutil
from contextlib import suppress
from dataclasses import replace

import pytest

from gecko_graph import World
from gecko_graph.contracts.contract import Contract
from gecko_graph.errors import ToolkitError
from gecko_graph.tools import ToolExample, Toolkit, ToolSpec
from gecko_graph.tools.openapi.keywords import METHODS
from gecko_graph.tools.openapi.request import CannotSend, build_request
from gecko_graph.tools.spec import HttpBinding
from gecko_graph.values.documents import read_document
from tests.tools.round_trip import check, own_words

# real tools ----------------------------------------------------------------------------------------------------------


BROKEN = {"microcks_test_boba-openapi.json": {"binding": 2}}


def test_real_documents_are_written_back_as_they_were(shared_data):
    tools = 0
    for path in sorted((shared_data / "openapi").iterdir()):
        try:
            toolkit = Toolkit.from_openapi(path)
        except ToolkitError:
            continue
        document, source = check(toolkit, validate=False), json.loads(json.dumps(read_document(path)))
        tools += len(toolkit)
        assert own_words(document) == BROKEN.get(path.name, {}), path.name
        if not toolkit.broken and "swagger" not in source and len(toolkit):
            source["paths"] = {key: item for key, item in source["paths"].items() if item.keys() & {*METHODS}}
            for item in (one for each in (document, source) for one in each["paths"].values()):
                for operation in (one for method, one in item.items() if method in METHODS):
                    operation.pop("operationId", None)
            assert document == source, path.name
    assert tools > 250


def test_a_document_that_refers_to_others_is_written_as_one(shared_data, tmp_path):
    for path in (shared_data / "openapi").glob("microcks_test_weather-*"):
        shutil.copy(path, tmp_path / path.name.removeprefix("microcks_test_"))
    for name in ("", "-recursive"):
        toolkit = Toolkit.from_openapi(tmp_path / f"weather-forecast-openapi-relative{name}-ref.yaml")
        document = check(toolkit, validate=False)
        assert own_words(document) == {}
        assert document["x-gecko"]["documents"].keys() >= {"weather-forecast-schema"}
        assert list(document["paths"]) == ["/forecast/{region}"]
        assert check(Toolkit.from_openapi(document), validate=False) == document


def test_a_document_from_the_web_says_where_it_lives(monkeypatch):
    raw = {"openapi": "3.1.0", "info": {}, "servers": [{"url": "v1"}], "paths": {"/x": {"get": {"operationId": "x"}}}}
    monkeypatch.setattr("gecko_graph.tools.openapi.remote.fetch_document", lambda url: raw)
    document = check(Toolkit.from_openapi("https://a.test/docs/api.json", allow_remote=True), validate=False)
    assert document["servers"] == [{"url": "https://a.test/docs/v1"}]
    assert own_words(document) == {}


def test_some_tools_are_written_with_what_they_need(shared_data):
    whole = Toolkit.from_openapi(shared_data / "openapi" / "schemathesis_petstore_v3.yaml")
    document = check(whole.select(names="getPetById"))
    assert [[*item] for item in document["paths"].values()] == [["get"]]
    assert document["components"]["schemas"].keys() == {"Pet", "Category", "Tag"}
    assert document["components"]["securitySchemes"].keys() == {"api_key", "petstore_auth"}


def test_what_was_changed_since_is_written(shared_data):
    whole = Toolkit.from_openapi(shared_data / "openapi" / "schemathesis_petstore_v3.yaml")
    old = whole["getInventory"]
    new = replace(old, description="What is in stock.", result={"type": "integer"}, effect=None, tags=("stock",))
    document = check(whole.replace(new))
    operation = document["paths"]["/store/inventory"]["get"]
    assert (operation["description"], operation["x-effect"], operation["tags"]) == (
        new.description,
        "unknown",
        ["stock"],
    )
    assert operation["responses"]["200"]["content"]["application/json"]["schema"] == {"type": "integer"}
    assert "summary" not in operation
    assert own_words(document) == {}
    closed = {"type": "object", "properties": {}, "additionalProperties": False, "minProperties": 0}
    assert own_words(check(whole.replace(replace(old, parameters=closed)))) == {"parameters": 1}


def test_tools_of_several_sources_are_written_together(shared_data):
    pets = Toolkit.from_openapi(shared_data / "openapi" / "schemathesis_petstore_v3.yaml").select(tags="store")
    calendar = Toolkit.from_openapi(shared_data / "openapi" / "google_calendar_adk_test.yaml")
    document = check(pets + Toolkit.from_tools([{"name": "greet", "parameters": PET}]) + calendar, validate=False)
    assert own_words(document)["binding"] == len(calendar) + 1
    assert "/store/inventory" in document["paths"]
    twin = replace(pets["getInventory"], name="twin")
    assert own_words(check(Toolkit([*pets, twin]))) == {"binding": 1}


def test_bfcl_and_tau_tools_survive(shared_data, read_jsonl):
    multiturn = json.loads((shared_data / "bfcl_multiturn_func_docs.json").read_text("utf-8"))
    tau = json.loads((shared_data / "tau_tools.json").read_text("utf-8"))
    rows = read_jsonl("bfcl_tasks.jsonl.gz")
    single = {one["name"]: one for row in rows for one in row["functions"]}
    assert len(single) > 1000
    for tools in (multiturn, tau["airline"], tau["retail"], list(single.values())):
        words = own_words(check(Toolkit.from_tools(tools)))
        assert words["binding"] == len(tools)
        assert words.get("parameters", 0) <= len(tools) / 4


def test_examples_of_our_own_survive(request):
    folder = request.config.rootpath / "examples"
    documents = sorted(folder.glob("*/*.openapi.yaml"))
    assert documents
    for path in documents:
        assert own_words(check(Toolkit.from_openapi(path))) == {}


# what plain OpenAPI says ---------------------------------------------------------------------------------------------

PET = {"type": "object", "properties": {"name": {"type": "string", "description": "Its name."}}, "required": ["name"]}


def test_a_tool_of_no_document_is_written_beside_it():
    tool = ToolSpec(
        name="putPet",
        description="Put a pet.",
        effect="write",
        parameters={
            "type": "object",
            "properties": {"id_path": {"type": "integer", "description": "Which."}, "id_body": {"type": "string"}},
            "required": ["id_path", "id_body"],
            "additionalProperties": False,
        },
        result=PET,
        binding=HttpBinding("put", "/pets/{id}", {"id_path": ("path", "id"), "id_body": ("body", "id")}),
    )
    document = check(Toolkit([tool], title="Pets"))
    assert document["info"] == {"title": "Pets", "version": "1"}
    assert document["paths"] == {
        "/tools/putPet": {
            "post": {
                "operationId": "putPet",
                "description": "Put a pet.",
                "requestBody": {"required": True, "content": {"application/json": {"schema": tool.parameters}}},
                "responses": {
                    "200": {"description": "What the tool answers.", "content": {"application/json": {"schema": PET}}}
                },
                "x-gecko": {
                    "binding": {
                        "method": "put",
                        "path": "/pets/{id}",
                        "places": {"id_path": ["path", "id"], "id_body": ["body", "id"]},
                    }
                },
            }
        }
    }


def test_a_tool_without_a_place_gets_one():
    document = check(Toolkit.from_tools([{"name": "math.hypot", "parameters": PET}], effects={"math.hypot": "read"}))
    operation = document["paths"]["/tools/math.hypot"]["post"]
    assert operation["operationId"] == "math_hypot"
    assert operation["x-gecko"] == {"name": "math.hypot", "binding": None}
    assert operation["x-effect"] == "read"
    assert operation["requestBody"]["content"]["application/json"]["schema"] == {**PET, "additionalProperties": False}


def test_definitions_become_components_and_come_back():
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}
    other = {
        "type": "object",
        "properties": {"kids": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Node"}}},
    }
    a, b, c = (
        ToolSpec(name=name, parameters={"type": "object", "properties": {"n": {"$ref": "#/$defs/Node"}},
                                        "additionalProperties": False, "$defs": {"Node": one}}, result={})
        for name, one in (("a", node), ("b", node), ("c", other))
    )  # fmt: skip
    document = check(Toolkit([a, b]))
    assert document["components"]["schemas"].keys() == {"Node"}
    assert own_words(document) == {"binding": 2}
    apart = check(Toolkit([a, b, c]))
    assert "components" not in apart
    assert own_words(apart) == {"binding": 3}


def test_long_chains_of_definitions_survive():
    defs = {f"c{index}": {"properties": {"next": {"$ref": f"#/$defs/c{index + 1}"}}} for index in range(1500)}
    result = {"$ref": "#/$defs/c0", "$defs": {**defs, "c1500": {"type": "integer"}}}
    document = check(Toolkit([ToolSpec(name="t", result=result)]), validate=False)
    assert len(document["components"]["schemas"]) == 1501
    assert own_words(document) == {"binding": 1}


def test_what_validators_refuse_is_set_aside():
    parameters = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "enum": ["x"], "default": "y"},
            "b": {"type": "string", "format": "date", "default": "today"},
            "c": {"type": "string", "pattern": r"^\p{Lu}"},
            "d": {"type": "integer", "default": 3},
        },
        "additionalProperties": False,
    }
    document = check(Toolkit([ToolSpec(name="t", parameters=parameters)]))
    operation = document["paths"]["/tools/t"]["post"]
    assert operation["requestBody"]["content"]["application/json"]["schema"]["properties"] == {
        "a": {"type": "string", "enum": ["x"]},
        "b": {"type": "string", "format": "date"},
        "c": {"type": "string"},
        "d": {"type": "integer", "default": 3},
    }
    assert operation["x-gecko"]["parameters"] == parameters


def test_contracts_lets_and_invariants_survive():
    lets = {"here": "{{ state.tree }}"}
    toolkit = Toolkit.from_tools(
        [{"name": "a"}, {"name": "b"}],
        contracts={
            "a": {"returns": "{{ here }}"},
            "b": {"requires": [{"check": "here is mapping", "error": {"code": 3}}]},
        },
        lets=lets,
        invariants=[{"check": "here is mapping", "error": "gone"}],
    )
    document = check(toolkit)
    assert document["x-contract-let"] == lets
    assert Toolkit.from_openapi(document).state_keys == {"tree"}
    other = Contract.load({"returns": "{{ other }}"}, lets={"other": "{{ 1 }}"}, where="t")
    mixed = toolkit.replace(replace(toolkit["b"], contract=other))
    assert check(mixed)["paths"]["/tools/b"]["post"]["x-gecko"]["lets"] == {"other": "{{ 1 }}"}
    check(Toolkit([replace(toolkit["a"], contract=other)]))


def test_contracts_name_arguments_that_plain_openapi_cannot_say():
    parameters = {"properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["b"]}}
    contract = {"requires": [{"check": "args.a == args.b", "error": "no"}]}
    document = check(Toolkit.from_tools([{"name": "t", "parameters": parameters}], contracts={"t": contract}))
    assert own_words(document) == {"parameters": 1, "binding": 1}


def test_tools_that_share_a_place_or_come_in_another_order():
    paths = {
        "/x": {"get": {"operationId": "a"}, "post": {"operationId": "b"}},
        "/tools/c": {"get": {"operationId": "d"}},
    }
    a, b, d = Toolkit.from_openapi({"openapi": "3.1.0", "info": {}, "paths": paths})
    document = check(Toolkit([a, d, ToolSpec(name="c"), b]), validate=False)
    assert {path: [*item] for path, item in document["paths"].items()} == {
        "/x": ["get", "post"],
        "/tools/c": ["get"],
        "/tools/c_": ["post"],
    }
    assert document["x-gecko"] == {"order": list("adcb")}
    assert "x-gecko" not in check(Toolkit([d, a, b]), validate=False)


@pytest.mark.parametrize("path", ["no-slash", "/a{b", "/a}b", "/{a:b}", "/{}", "/{a!r}", "/{a}/{b}"])
@pytest.mark.parametrize("method", ["get", "GET", "query"])
def test_odd_places_survive(method, path):
    tool = ToolSpec(
        name="t",
        effect="read",
        parameters={
            "type": "object",
            "properties": {"a": {}, "z": {}},
            "required": ["a"],
            "additionalProperties": False,
        },
        binding=HttpBinding(method, path, {"a": ("path", "a"), "z": ("path", "nowhere")}),
    )
    check(Toolkit([tool]))


def test_functions_are_not_written():
    tool = ToolSpec(name="t", real=len, simulate=len, opened=False, effect="read")
    (back,) = Toolkit.from_openapi(Toolkit([tool]).to_openapi())
    assert (back.real, back.simulate) == (None, None)


def test_the_toolkit_is_not_changed_by_its_document():
    toolkit = Toolkit([ToolSpec(name="t", parameters={"type": "object", "properties": {"a": {"enum": [1]}}})])
    document = toolkit.to_openapi()
    document["paths"]["/tools/t"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]["a"][
        "enum"
    ].append(2)
    assert toolkit["t"].parameters["properties"]["a"]["enum"] == [1]


def test_a_tool_whose_schema_is_none_is_named():
    with pytest.raises(ToolkitError, match=r"tools~1t.*type: 'x' is not a type"):
        Toolkit([ToolSpec(name="t", parameters={"type": "x"})]).to_openapi()


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ([], ": Input should be"),
        ({"parameters": []}, "/parameters: Input should be"),
        ({"parameters": {"type": "array"}}, "/parameters/type: Input should be 'object'"),
        ({"result": 3}, "/result: Input should be a valid dictionary"),
        ({"examples": [{"args": {}}]}, "/examples/0/result: Field required"),
        ({"binding": {"method": "get"}}, "/binding/path: Field required"),
        ({"binding": {"method": "get", "path": "/", "places": {"a": "query"}}}, "/binding/places/a: "),
        ({"stated": True}, "/stated: Extra inputs are not permitted"),
    ],
)
def test_own_keys_are_checked_when_read(own, message):
    document = Toolkit([ToolSpec(name="t")]).to_openapi()
    document["paths"]["/tools/t"]["post"]["x-gecko"] = own
    with pytest.raises(ToolkitError, match=re.escape(f"#/paths/~1tools~1t/post/x-gecko{message}")):
        Toolkit.from_openapi(document)


def inside_own_keys(value, path=()):
    """The paths of a document below its `x-` keys, these included."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        if any(str(each).startswith("x-") for each in (*path, key)):
            yield (*path, key)
        yield from inside_own_keys(inner, (*path, key))


JUNK = [None, 5, "x", [], {}, [5], {"a": 5}, True, {"a": {"style": "evil"}}, [["a"]], {"b": [1, 2]}]


def test_whatever_stands_below_own_keys_is_refused_in_words_or_can_be_used():
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "id": {}, "h": {}, "body": {}}}
    binding = HttpBinding(
        "get",
        "/x/{id}",
        {"a": ("query", "a"), "id": ("path", "id"), "h": ("header", "h"), "body": ("body", "")},
        {"a": {"style": "deepObject"}, "h": {"explode": True}},
        {"media": "text/plain", "required": True, "encoding": {"a": {"explode": False}}},
        {"url": "https://a.test"},
        ({"k": {"type": "http", "scheme": "basic"}},),
    )
    example = ToolExample({"id": 1, "a": "x"}, {"ok": 1})
    tools = [
        ToolSpec(name="b", parameters=schema, effect="read", examples=(example,), binding=binding),
        ToolSpec(name="c", parameters={**schema, "required": []}, result={"type": "object"}),
    ]
    whole, refused, used = Toolkit(tools, title="T").to_openapi(), 0, 0
    for *above, last in inside_own_keys(whole):
        for junk in JUNK:
            document = copy.deepcopy(whole)
            functools.reduce(operator.getitem, above, document)[last] = junk
            try:
                toolkit = Toolkit.from_openapi(document)
                assert toolkit.to_openapi()
            except ToolkitError:
                refused += 1
                continue
            assert isinstance(toolkit.problems, tuple | list)
            World(toolkit).call({"name": "b", "args": {"id": 1, "a": "x"}})
            for tool in toolkit:
                with suppress(CannotSend):
                    build_request(tool, "https://a.test", {"id": 1, "a": "x", "h": [1], "body": "t"}, extra={})
            used += 1
    assert refused > 100
    assert used > 100
