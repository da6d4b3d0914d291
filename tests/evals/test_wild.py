"""Tools of an MCP server, as published."""

from __future__ import annotations

import gzip
import json

from gecko_graph import Toolkit, World
from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.schemas.made_up import make_value


def test_the_tools_of_an_mcp_server_are_loaded_take_lawful_arguments_and_answer(shared_data):
    given = json.loads(gzip.decompress((shared_data / "github_mcp_tools.json.gz").read_bytes()))["tools"]
    toolkit = Toolkit.from_tools(given)
    assert len(toolkit) == len(given) == 117
    world = World(toolkit, state={})
    for tool in toolkit:
        args = make_value(tool.parameters, seed=0, key=tool.name)
        assert not list(find_complaints(tool, args))
        assert world.call({"name": tool.name, "args": args})["outcome"]["status"] == "ok"
