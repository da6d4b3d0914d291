"""Toolkits as OpenAPI documents that read back as the same tools: real ones, small ones, and any at all."""

import copy
import functools
import json
import operator
import shutil
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gecko_graph import World
from gecko_graph.contracts.contract import Contract
from gecko_graph.errors import ToolkitError
from gecko_graph.tools import ToolExample, Toolkit, ToolSpec
from gecko_graph.tools.openapi.documents import METHODS
from gecko_graph.tools.openapi.request import CannotSend, build_request
from gecko_graph.tools.spec import HttpBinding
from gecko_graph.values.documents import read_document
from tests.any_schema import JSON, SCHEMAS
from tests.tools.round_trip import check, own_words
from tests.tools.small_documents import real_toolkits


def test_real_documents_are_written_back_as_they_were(shared_data):
    tools = 0
    for path, toolkit in real_toolkits(shared_data).items():
        if isinstance(toolkit, str):
            continue
        document, source = check(toolkit, validate=False), json.loads(json.dumps(read_document(path)))
        tools += len(toolkit)
        assert own_words(document) == {}, path.name
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
        assert document["x-gecko"]["documents"].keys() >= {"weather-forecast-schema.yaml"}
        assert list(document["paths"]) == ["/forecast/{region}"]
        assert check(Toolkit.from_openapi(document), validate=False) == document


def test_what_was_changed_since_is_written(shared_data):
    whole = Toolkit.from_openapi(shared_data / "openapi" / "schemathesis_petstore_v3.yaml")
    old = whole["getInventory"]
    new = replace(old, description="What is in stock.", result={"type": "integer"}, effect=None, tags=("stock",))
    document = check(whole.replace(new))
    operation = document["paths"]["/store/inventory"]["get"]
    assert [operation[key] for key in ("description", "x-effect", "tags")] == [new.description, "unknown", ["stock"]]
    assert operation["responses"]["200"]["content"]["application/json"]["schema"] == {"type": "integer"}
    assert "summary" not in operation
    assert own_words(document) == {}
    closed = {"type": "object", "properties": {}, "additionalProperties": False, "minProperties": 0}
    assert own_words(check(whole.replace(replace(old, parameters=closed)))) == {"parameters": 1}


def test_bfcl_and_tau_tools_survive(shared_data, read_jsonl):
    multiturn = json.loads((shared_data / "bfcl_multiturn_func_docs.json").read_text("utf-8"))
    tau = json.loads((shared_data / "tau_tools.json").read_text("utf-8"))
    rows = read_jsonl("bfcl_tasks.jsonl.gz")
    single = {one["name"]: one for row in rows for one in row["functions"]}
    assert len(single) > 1000
    for tools in (multiturn, tau["airline"], tau["retail"], list(single.values())[::24]):
        words = own_words(check(Toolkit.from_tools(tools)))
        assert words["binding"] == len(tools)
        assert words.get("parameters", 0) <= len(tools) / 4


PET = {"type": "object", "properties": {"name": {"type": "string", "description": "Its name."}}, "required": ["name"]}


def test_a_tool_of_no_document_is_written_beside_it():
    properties = {"id_path": {"type": "integer", "description": "Which."}, "id_body": {"type": "string"}}
    places = {"id_path": ("path", "id"), "id_body": ("body", "id")}
    schema = {"type": "object", "properties": properties, "required": ["id_path"], "additionalProperties": False}
    binding = HttpBinding("put", "/pets/{id}", places)
    tool = ToolSpec(name="put.pet", description="Put.", parameters=schema, effect="read", result=PET, binding=binding)
    document = check(Toolkit([tool], title="Pets"))
    assert document["info"] == {"title": "Pets", "version": "1"}
    operation = document["paths"]["/tools/put.pet"]["post"]
    own = {"method": "put", "path": "/pets/{id}", "places": {key: list(one) for key, one in places.items()}}
    assert operation == {
        "operationId": "put_pet",
        "description": "Put.",
        "x-effect": "read",
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {
            "200": {"description": "What the tool answers.", "content": {"application/json": {"schema": PET}}}
        },
        "x-gecko": {"name": "put.pet", "binding": own},
    }


def test_definitions_become_components_and_come_back():
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}
    other = {"type": "object", "properties": {"kids": {"additionalProperties": {"$ref": "#/$defs/Node"}}}}
    a, b, c = (
        ToolSpec(name=name, parameters={"type": "object", "properties": {"n": {"$ref": "#/$defs/Node"}},
                                        "additionalProperties": False, "$defs": {"Node": one}}, result={})
        for name, one in (("a", node), ("b", node), ("c", other))
    )  # fmt: skip
    document = check(Toolkit([a, b]))
    assert document["components"]["schemas"].keys() == {"Node"}
    assert own_words(document) == {"binding": 2}
    apart = check(Toolkit([a, b, c]))
    assert apart["components"]["schemas"].keys() == {"Node", "Node_2"}
    assert own_words(apart) == {"binding": 3, "parameters": 1}


def inside_own_keys(value, path=()):
    """The paths of a document below its `x-` keys, these included."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        if any(str(each).startswith("x-") for each in (*path, key)):
            yield (*path, key)
        yield from inside_own_keys(inner, (*path, key))


JUNK = [None, 5, {"a": 5}, {"a": {"style": "evil"}}, [["a"]]]


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
    assert refused > 75
    assert used > 75


DEFS = {
    "A": {"properties": {"kids": {"items": {"$ref": "#/$defs/A"}}, "x-own": {"type": "number"}}},
    "B b": {"allOf": [{"$ref": "#/$defs/A"}, {"not": {"const": {"$ref": 1}}}], "description": " d "},
}
ODD = {
    "type": "object",
    "properties": {
        "$ref": {"$ref": "#/$defs/B b", "description": "d"}, "nullable": {"nullable": True, "example": [1]},
        "required": {"type": ["string", "null"], "default": 0.5, "readOnly": True}, "a b": True, "": {"$ref": "#"},
        "ü": {"pattern": r"\p{L}", "enum": [None, "[1]", {"a": 1e30}]}, "id": {"exclusiveMaximum": 3, "title": ""},
    },
    "required": ["id", "x-y"], "minProperties": 1, "description": "d", "$defs": DEFS,
}  # fmt: skip
KEY = {"k": {"type": "http", "scheme": "basic"}}
COOKIE = {"a": ("header", "x-y"), "id": ("cookie", "")}
BINDINGS = [
    HttpBinding("trace", "/x/{id}/{a}", COOKIE, {"a": {"content": "text/plain"}}),
    HttpBinding(
        "PATCH", "/{", {"body": ("body", "$ref")}, {}, {"encoding": {"a": {"explode": False}}}, None, (KEY, {})
    ),
    HttpBinding("get", "/tools/a", {}, {}, {"required": True}, {"url": "/v1"}, ({},)),
]
LETS = {"here": "{{ state.a }}"}
EXAMPLES = (ToolExample({"$ref": [0.5], "": None}, {"a": 1}), ToolExample({}, "[1]"))


@pytest.mark.parametrize(("effect", "lets"), [(None, {}), ("read", LETS), ("write", {})])
def test_odd_tools_survive(effect, lets):
    contracts = [
        None,
        Contract.load({"returns": {"a": "{{ args }}"}}, where="t"),
        Contract.load({"requires": [{"check": "here == 1", "error": "no"}]}, lets=LETS, where="t"),
    ]
    names = ["A/{x}", "ü", "b" * 70, "a.b", "a_b", "a b"]
    specs = [
        ToolSpec(
            name=name,
            description=["", " d\n", "Two.\n\nParts."][at % 3],
            parameters={**ODD, "additionalProperties": at % 2 == 0},
            result=[None, {"$ref": "#/$defs/A", "$defs": DEFS}, {"const": "a", "$defs": DEFS}, {"enum": [[]]}][at % 4],
            effect=effect,
            contract=contracts[at % 3],
            examples=EXAMPLES[: at % 3],
            binding=[*BINDINGS, None][at % 4],
        )
        for at, name in enumerate(names)
    ]
    check(Toolkit(specs, lets=lets, title=effect or ""), validate=False)


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(SCHEMAS, max_size=3), st.none() | SCHEMAS, st.sampled_from([None, "read", "write"]), JSON)
def test_any_tools_are_written_as_a_validator_wants_them(parts, result, effect, default):
    properties = {name: {**one, "default": default} for name, one in zip("abc", parts, strict=False)}
    parameters = {"type": "object", "properties": properties, "required": [*properties][:1]}
    check(Toolkit([ToolSpec(name="a", parameters=parameters, result=result, effect=effect, examples=EXAMPLES)]))


def test_some_tools_are_written_with_what_they_need(shared_data):
    whole = Toolkit.from_openapi(shared_data / "openapi" / "schemathesis_petstore_v3.yaml")
    document = check(whole.select(names="getPetById"))
    assert [[*item] for item in document["paths"].values()] == [["get"]]
    assert document["components"]["schemas"].keys() == {"Pet", "Category", "Tag"}
    assert document["components"]["securitySchemes"].keys() == {"api_key", "petstore_auth"}
