"""Tools from dicts: OpenAI's, MCP's, and BFCL's with its own dialect."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from gecko_graph.errors import ToolkitError
from gecko_graph.tools import Toolkit, ToolSpec
from gecko_graph.tools.function_dicts import tool_descriptions
from gecko_graph.tools.functions import spec_of


def spec(source) -> ToolSpec:
    return spec_of(source, where="tools[0]")


def test_bfcl_documents_are_read_as_the_benchmark_means_them(read_jsonl):
    functions = 0
    for row in read_jsonl("bfcl_tasks.jsonl.gz"):
        for function in row["functions"]:
            assert spec(function).parameters == row["json_schemas"][function["name"]]
            functions += 1
    assert functions == 4574


def test_bfcl_multiturn_documents_have_results(shared_data):
    documents = json.loads((shared_data / "bfcl_multiturn_func_docs.json").read_text("utf-8"))
    toolkit = Toolkit.from_tools(documents)
    assert set(toolkit.names) == {one["name"] for one in documents.values()}
    for one in toolkit:
        Draft202012Validator.check_schema(one.parameters)
        Draft202012Validator.check_schema(one.result)
        assert one.result["type"] == "object"


def test_tau_tools(shared_data):
    documents = json.loads((shared_data / "tau_tools.json").read_text("utf-8"))
    assert {name: len(Toolkit.from_tools(one)) for name, one in documents.items()} == {"airline": 14, "retail": 16}
    assert len(tool_descriptions(documents, where="tau")) == 30


def test_the_dialect_is_read_all_the_way_down():
    read = spec(
        {
            "name": "a.b",
            "parameters": {
                "type": "dict",
                "properties": {
                    "type": {"type": "tuple", "items": {"type": "float"}},
                    "any": {"type": "any", "description": "d"},
                    "map": {"type": "HashMap", "additionalProperties": {"type": "float"}},
                    "list": {"type": "array"},
                    "must": {"type": "Boolean", "required": True, "optional": False},
                    "pick": {"type": ["float", "none"], "enum": [1.5, None], "default": 3},
                },
                "required": ["list"],
            },
            "response": {"type": "dict", "properties": {"x": {"type": "any"}}},
        }
    )
    assert read.parameters == {
        "type": "object",
        "properties": {
            "type": {"type": "array", "items": {"type": "number"}},
            "any": {"description": "d"},
            "map": {"type": "object", "additionalProperties": {"type": "number"}},
            "list": {"type": "array"},
            "must": {"type": "boolean"},
            "pick": {"type": ["number", "null"], "enum": [1.5, None], "default": 3},
        },
        "required": ["list", "must"],
        "additionalProperties": False,
    }
    assert read.result == {"type": "object", "properties": {"x": {}}}
    assert read.name == "a.b"


@pytest.mark.parametrize("key", ["parameters", "input_schema", "inputSchema"])
def test_wrapped_bare_and_foreign_dicts(key):
    bare = {"name": "f", "description": " d ", key: {"type": "object", "properties": {"a": {"type": "string"}}}}
    assert spec(bare) == spec({"type": "function", "function": bare})
    assert spec(bare).description == "d"
    assert spec(bare).parameters["additionalProperties"] is False


def test_open_and_empty_parameters_are_left_as_said():
    assert spec({"name": "f"}).parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    opened = {"type": "object", "properties": {}, "additionalProperties": True}
    assert spec({"name": "f", "parameters": opened}).parameters == opened
    choice = {"anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {"b": {}}}]}
    assert spec({"name": "f", "parameters": choice}).parameters == choice


def test_mcp_dicts():
    read = spec(
        {"name": "f", "inputSchema": {}, "outputSchema": {"type": "string"}, "annotations": {"readOnlyHint": True}}
    )
    assert (read.result, read.effect) == ({"type": "string"}, "read")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({}, "a tool must have a name"),
        ({"name": "f", "parameters": []}, None),
        ({"name": "f", "parameters": [1]}, r"\(f\), parameters: must be an object"),
        ({"name": "f", "parameters": {"type": "string"}}, r"\(f\), parameters#/type: arguments must be an object"),
        (
            {"name": "f", "parameters": {"properties": {"a": {"type": "date"}}}},
            r"parameters#/properties/a/type: 'date' is no",
        ),
        (
            {"name": "f", "parameters": {"properties": {"a": {"$ref": "x.json"}}}},
            "parameters#/properties/a: .*has no folder",
        ),
        ({"name": "f", "parameters": {"properties": {"a": {"$ref": "#/no"}}}}, "leads nowhere"),
        ({"name": "f", "parameters": {1.5: {}}}, "the key 1.5 must be text"),
    ],
)
def test_broken_dicts_name_tool_and_place(broken, message):
    if message is None:
        assert spec(broken).parameters["properties"] == {}
        return
    with pytest.raises(ToolkitError, match=rf"tools\[0\].*{message}"):
        spec(broken)


def test_files_of_descriptions():
    one, two = {"name": "a"}, {"function": {"name": "b"}}
    assert tool_descriptions(one, where="f") == [one]
    assert tool_descriptions([one, two], where="f") == [one, two]
    assert tool_descriptions({"x": [one], "y": {"z": two}}, where="f") == [one, two]
    with pytest.raises(
        ToolkitError, match=r"f#/x/0: expected an OpenAPI document, or descriptions of tools: .*; got text"
    ):
        tool_descriptions({"x": ["a"]}, where="f")
