"""The example's file system is BFCL's: recorded calls of its ground truth and of real models, replayed by contract."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openapi_spec_validator import validate

from evals.bfcl.contracted import FILES
from gecko_graph import Toolkit, World
from gecko_graph.schemas.complaints import find_faults
from gecko_graph.values.documents import read_document

NAMES = [
    "cat", "cd", "cp", "diff", "du", "echo", "find", "grep", "ls", "mkdir", "mv", "pwd", "rm", "rmdir", "sort", "tail",
    "touch", "wc",
]  # fmt: skip


@pytest.fixture(scope="module")
def tools() -> Toolkit:
    return Toolkit.from_openapi(FILES)


def test_the_document_is_valid_and_leaves_nothing_unsaid(tools):
    validate(read_document(FILES))
    assert sorted(tools.names) == NAMES
    assert tools.problems == []
    assert tools.state_keys == {"tree", "cwd"}


def test_names_and_parameters_are_bfcl_s_and_descriptions_are_not(tools, shared_data):
    theirs = json.loads((shared_data / "bfcl_multiturn_func_docs.json").read_text())
    types = {"string": "string", "boolean": "boolean", "integer": "integer"}
    for tool in tools:
        parameters = theirs[tool.name]["parameters"]
        properties = tool.parameters["properties"]
        assert {name: types[rule["type"]] for name, rule in parameters["properties"].items()} == {
            name: rule["type"] for name, rule in properties.items()
        }
        assert set(parameters["required"]) == set(tool.parameters.get("required", []))
        assert set(theirs[tool.name]["response"]["properties"]) == set(_results(tool.result))
        assert tool.description not in theirs[tool.name]["description"]


def _results(schema) -> dict:
    return {
        name: one for part in [schema, *schema.get("oneOf", [])] for name, one in part.get("properties", {}).items()
    }


# What the recordings do not show: any names, any order of calls. A contract always has an answer, and the state stays a
# file system.

STATE = {"tree": {"a": {"type": "directory", "contents": {
    "d": {"type": "directory", "contents": {"f": {"type": "file", "content": "x\ny"}}},
    "f": {"type": "file", "content": "y\nz"},
    "content": {"type": "directory", "contents": {"contents": {"type": "file", "content": "é\n"}}},
}}}, "cwd": ["a"]}  # fmt: skip

PROPERTIES = {tool.name: tool.parameters["properties"] for tool in Toolkit.from_openapi(FILES)}

names = st.sampled_from(
    ["d", "f", "g", "content", "contents", "type", ".", "..", "/", "d/f", "a", "", "./d", "/d/", "x*", ".h"]
)


@st.composite
def calls(draw):
    tool = draw(st.sampled_from(NAMES))
    values = {"string": names, "boolean": st.booleans(), "integer": st.integers(-3, 12)}
    return tool, {name: draw(values[rule["type"]]) for name, rule in PROPERTIES[tool].items()}


def is_file_system(node) -> bool:
    if node["type"] == "file":
        return isinstance(node["content"], str) and set(node) == {"type", "content"}
    return set(node) == {"type", "contents"} and all(map(is_file_system, node["contents"].values()))


@settings(max_examples=60, deadline=None)
@given(st.lists(calls(), min_size=1, max_size=8))
def test_any_calls_leave_a_file_system(tools, made):
    world = World(tools, state=STATE)
    for name, args in made:
        before = world.state
        outcome = world.call({"name": name, "args": args})["outcome"]
        assert outcome["rung"] == "contract", outcome["result"]
        assert outcome["status"] == "error" or find_faults(tools[name].result, outcome["result"]) == []
        if tools[name].reads or outcome["status"] == "error":
            assert world.state == before
        (root,) = world.state["tree"].values()
        assert is_file_system(root)
        assert world.state["cwd"][0] == "a"
