"""A toolkit as an OpenAPI 3.1 document that a validator accepts, and that reads back as the same tools."""

from __future__ import annotations

import copy
import functools
import json
import operator
from contextlib import suppress
from dataclasses import replace

import pytest

from gecko_graph import World
from gecko_graph.contracts.contract import Contract
from gecko_graph.errors import ToolkitError
from gecko_graph.tools import ToolExample, Toolkit, ToolSpec
from gecko_graph.tools.openapi.request import CannotSend, build_request
from gecko_graph.tools.spec import HttpBinding
from tests.tools.round_trip import check, own_words

# real tools ----------------------------------------------------------------------------------------------------------


def test_real_documents_survive(shared_data):
    tools = 0
    for path in sorted((shared_data / "openapi").iterdir()):
        try:
            toolkit = Toolkit.from_openapi(path)
        except ToolkitError:
            continue
        words = own_words(check(toolkit))
        tools += len(toolkit)
        assert sum(words.values()) <= len(toolkit) / 4 or len(toolkit) == 1, (path.name, words)
    assert tools > 250


def test_bfcl_and_tau_tools_survive(shared_data, read_jsonl):
    multiturn = json.loads((shared_data / "bfcl_multiturn_func_docs.json").read_text("utf-8"))
    tau = json.loads((shared_data / "tau_tools.json").read_text("utf-8"))
    rows = read_jsonl("bfcl_tasks.jsonl.gz")
    single = {one["name"]: one for row in rows for one in row["functions"]}
    assert len(single) > 1000
    for tools in (multiturn, tau["airline"], tau["retail"], list(single.values())):
        words = own_words(check(Toolkit.from_tools(tools)))
        assert words["x-gecko-binding"] == len(tools)
        assert words.get("x-gecko-parameters", 0) <= len(tools) / 4


def test_examples_of_our_own_survive(request):
    folder = request.config.rootpath / "examples"
    documents = sorted(folder.glob("*/*.openapi.yaml"))
    assert documents
    for path in documents:
        assert own_words(check(Toolkit.from_openapi(path))) == {}


# what plain OpenAPI says ---------------------------------------------------------------------------------------------

PET = {"type": "object", "properties": {"name": {"type": "string", "description": "Its name."}}, "required": ["name"]}


def test_a_bound_tool_is_written_where_it_lives():
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
        "/pets/{id}": {
            "put": {
                "operationId": "putPet",
                "description": "Put a pet.",
                "parameters": [
                    {
                        "name": "id",
                        "in": "path",
                        "required": True,
                        "description": "Which.",
                        "schema": {"type": "integer"},
                    }
                ],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
                        }
                    },
                },
                "responses": {
                    "200": {"description": "What the tool answers.", "content": {"application/json": {"schema": PET}}}
                },
            }
        }
    }


def test_a_tool_without_a_place_gets_one():
    document = check(Toolkit.from_tools([{"name": "math.hypot", "parameters": PET}], effects={"math.hypot": "read"}))
    operation = document["paths"]["/tools/math.hypot"]["post"]
    assert operation["operationId"] == "math_hypot"
    assert operation["x-gecko-name"] == "math.hypot"
    assert operation["x-effect"] == "read"
    assert operation["x-gecko-binding"] is None
    assert operation["requestBody"]["content"]["application/json"]["schema"] == {**PET, "additionalProperties": False}


def test_definitions_become_components_and_come_back():
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}
    other = {
        "type": "object",
        "properties": {"kids": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Node"}}},
    }
    tools = [
        ToolSpec(name=name, parameters={"type": "object", "properties": {"n": {"$ref": "#/$defs/Node"}},
                                        "additionalProperties": False, "$defs": {"Node": one}}, result={})
        for name, one in (("a", node), ("b", node), ("c", other))
    ]  # fmt: skip
    document = check(Toolkit(tools))
    assert set(document["components"]["schemas"]) == {"Node", "Node_2"}
    assert document["components"]["schemas"]["Node_2"]["x-gecko-name"] == "Node"
    assert own_words(document) == {"x-gecko-binding": 3}


def test_long_chains_of_definitions_survive():
    defs = {f"c{index}": {"properties": {"next": {"$ref": f"#/$defs/c{index + 1}"}}} for index in range(1500)}
    result = {"$ref": "#/$defs/c0", "$defs": {**defs, "c1500": {"type": "integer"}}}
    document = check(Toolkit([ToolSpec(name="t", result=result)]), validate=False)
    assert len(document["components"]["schemas"]) == 1501
    assert own_words(document) == {"x-gecko-binding": 1}


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
    written = document["paths"]["/tools/t"]["post"]["requestBody"]["content"]["application/json"]["schema"][
        "properties"
    ]
    assert written["a"]["x-gecko-default"] == "y"
    assert written["b"]["x-gecko-default"] == "today"
    assert written["c"]["x-gecko-pattern"] == r"^\p{Lu}"
    assert written["d"]["default"] == 3


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
    assert check(mixed)["paths"]["/tools/b"]["post"]["x-gecko-contract-let"] == {"other": "{{ 1 }}"}
    check(Toolkit([replace(toolkit["a"], contract=other)]))


def test_contracts_name_arguments_that_plain_openapi_cannot_say():
    parameters = {"properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["b"]}}
    contract = {"requires": [{"check": "args.a == args.b", "error": "no"}]}
    document = check(Toolkit.from_tools([{"name": "t", "parameters": parameters}], contracts={"t": contract}))
    assert own_words(document) == {"x-gecko-parameters": 1, "x-gecko-binding": 1}


def test_tools_that_share_a_place_or_come_in_another_order():
    here = HttpBinding("get", "/x")
    tools = [
        ToolSpec(name="a", binding=here, effect="read"),
        ToolSpec(name="b", binding=HttpBinding("get", "/tools/c"), effect="read"),
        ToolSpec(name="c"),
        ToolSpec(name="d", binding=here),
        ToolSpec(name="e", binding=HttpBinding("post", "/x"), effect="write"),
    ]
    document = check(Toolkit(tools))
    assert set(document["paths"]) == {"/x", "/tools/c", "/tools/c_", "/tools/d"}
    assert document["x-gecko-order"] == list("abcde")


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
    document["paths"]["/tools/t"]["post"]["x-gecko-parameters"]["properties"]["a"]["enum"].append(2)
    assert toolkit["t"].parameters["properties"]["a"]["enum"] == [1]


def test_a_tool_whose_schema_is_none_is_named():
    with pytest.raises(ToolkitError, match=r"tools~1t.*type: 'x' is not a type"):
        Toolkit([ToolSpec(name="t", parameters={"type": "x"})]).to_openapi()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("x-gecko-parameters", [], "at [$]: expected an object"),
        ("x-gecko-result", 3, "at [$]: expected"),
        ("x-gecko-examples", [{"args": {}}], r"at \$\[0\].result: expected"),
        ("x-gecko-binding", {"method": "get"}, "at [$].path: expected a string; it is required"),
        ("x-gecko-binding", {"method": "get", "path": "/", "places": {"a": "query"}}, "at [$].places.a: expected"),
        ("x-gecko-stated", "yes", "at [$]: expected a boolean"),
    ],
)
def test_own_keys_are_checked_when_read(key, value, message):
    document = Toolkit([ToolSpec(name="t")]).to_openapi()
    document["paths"]["/tools/t"]["post"][key] = value
    with pytest.raises(ToolkitError, match=f"#/paths/~1tools~1t/post/{key}.*{message}"):
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
