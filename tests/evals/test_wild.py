"""The suite `wild`: what it counts of a document; tools of an MCP server and rows of a data set, as published."""

from __future__ import annotations

import gzip
import json

from evals.suites.wild import look_at
from gecko_graph import Toolkit, World
from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.schemas.made_up import make_value

DOCUMENT = {
    "openapi": "3.0.0",
    "info": {"title": "t", "version": "1"},
    "paths": {
        "/a": {
            "post": {
                "operationId": "add",
                "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
                "responses": {"200": {"description": "", "content": {"application/json": {"schema": {"enum": []}}}}},
            }
        },
        "/b": {"get": 7},
    },
}


def test_what_is_counted_of_a_document(tmp_path):
    path = tmp_path / "api.json"
    path.write_text(json.dumps(DOCUMENT))
    found = look_at(path)
    assert (found["operations"], found["loaded"], found["corners"]) == (1, 1, 1)
    assert found["read_back"] == found["requests"] == 2


def test_the_tools_of_an_mcp_server_are_loaded_take_lawful_arguments_and_answer(shared_data):
    given = json.loads(gzip.decompress((shared_data / "github_mcp_tools.json.gz").read_bytes()))["tools"]
    toolkit = Toolkit.from_tools(given)
    assert len(toolkit) == len(given) == 117
    world = World(toolkit, state={})
    for tool in toolkit:
        args = make_value(tool.parameters, seed=0, key=tool.name)
        assert not list(find_complaints(tool, args))
        assert world.call({"name": tool.name, "args": args})["outcome"]["status"] == "ok"
