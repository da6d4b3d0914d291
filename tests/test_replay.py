"""The example's file system is BFCL's: recorded calls of its ground truth and of real models, replayed by contract."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openapi_spec_validator import validate

from evals.suites.contracts import FILES, TOOLKIT, Recorded, recorded_calls, replay
from gecko_graph import Toolkit
from gecko_graph.schemas.complaints import find_complaints, find_faults
from gecko_graph.values.documents import read_document

NAMES = [
    "cat", "cd", "cp", "diff", "du", "echo", "find", "grep", "ls", "mkdir", "mv", "pwd", "rm", "rmdir", "sort", "tail",
    "touch", "wc",
]  # fmt: skip


@pytest.fixture(scope="module")
def tools() -> Toolkit:
    return Toolkit.from_openapi(TOOLKIT)


def test_the_document_is_valid_and_leaves_nothing_unsaid(tools):
    validate(read_document(TOOLKIT))
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


def test_results_keep_to_their_schemas(tools, shared_data):
    for name in FILES:
        for one in list(recorded_calls(shared_data / name))[:400]:
            tool = tools[one.call["name"]]
            if one.raised or find_complaints(tool, one.call["args"]):
                continue
            got = replay(tool, one)
            assert got.status == "error" or find_faults(tool.result, got.result) == []


# What the recordings do not show: any names, any order of calls. A contract always has an answer, and the state stays a
# file system.

STATE = {"tree": {"a": {"type": "directory", "contents": {
    "d": {"type": "directory", "contents": {"f": {"type": "file", "content": "x\ny"}}},
    "f": {"type": "file", "content": "y\nz"},
    "content": {"type": "directory", "contents": {"contents": {"type": "file", "content": "é\n"}}},
}}}, "cwd": ["a"]}  # fmt: skip

PROPERTIES = {tool.name: tool.parameters["properties"] for tool in Toolkit.from_openapi(TOOLKIT)}

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
    state = STATE
    for number, (name, args) in enumerate(made):
        call = {"id": str(number), "name": name, "args": args}
        got = replay(tools[name], Recorded("any", call, state, None, None, None))
        assert got.status != "none", got.result
        assert got.status == "error" or find_faults(tools[name].result, got.result) == []
        if tools[name].reads or got.status == "error":
            assert got.after == state
        state = got.after
        (root,) = state["tree"].values()
        assert is_file_system(root)
        assert state["cwd"][0] == "a"
