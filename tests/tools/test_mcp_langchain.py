"""Tools that LangChain's MCP packages have loaded: both layouts of the annotations, results, and lost answers.

The tools are built as `langchain.mcp` (nested) and `langchain-mcp-adapters` (flat) build them; both could not be
installed beside each other.
"""

from contextlib import asynccontextmanager

import pytest

from gecko_graph.models.answer import aperform
from gecko_graph.models.ask import FunctionCall

pytest.importorskip("mcp.server.mcpserver", reason="the extra `mcp` (2.x) is not installed")

import httpx2
from langchain_core.tools import StructuredTool, ToolException
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from gecko_graph import Toolkit
from gecko_graph.tools.real import as_answer
from tests.tools import http_server
from tests.tools.mcp_server import ORDER
from tests.tools.test_mcp_faults import FINE, LOST, Wire, refuse, reply

LAYOUTS = {
    "nested": lambda hint: {"mcp": {"tool": {"annotations": {"read_only_hint": hint}}, "server": {"name": "shop"}}},
    "flat": lambda hint: {"title": None, "readOnlyHint": hint, "destructiveHint": None, "idempotentHint": None},
}
STRUCTURED = {**FINE, "structuredContent": {"id": 1, "item": "pen"}}


@asynccontextmanager
async def connected(url):
    """A client as those packages use it; it keeps no connections, because the test's server closes each."""
    limits = httpx2.Limits(max_keepalive_connections=0)
    async with (
        httpx2.AsyncClient(limits=limits) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


def loaded(client, layout, hint):
    async def order(**args):
        result = await client.session.call_tool("order", args)
        content = [block.model_dump(include={"type", "text"}) for block in result.content]
        if result.is_error:
            raise ToolException(content[0]["text"])
        return content, {"structured_content": result.structured_content}

    return StructuredTool(
        name="order",
        description="Order an item.",
        args_schema=ORDER["inputSchema"],
        coroutine=order,
        response_format="content_and_artifact",
        metadata=LAYOUTS[layout](hint),
        handle_tool_error=True,
    )


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_what_is_claimed_and_what_comes_back(layout):
    with http_server.serving() as here:
        wire = Wire(here)
        async with connected(here.url) as client:
            reads, toolkit = (Toolkit.from_tools([loaded(client, layout, hint)]) for hint in (True, False))
            assert [(each["order"].effect, each["order"].trusted) for each in (reads, toolkit)] == [
                ("read", False),
                ("write", False),
            ]
            work = FunctionCall(function=toolkit["order"].real, kwargs={"item": "pen"}, then=as_answer)
            wire.answer = lambda request: http_server.as_json(reply(request, STRUCTURED))
            assert (await aperform(work)).value.result == {"id": 1, "item": "pen"}
            wire.answer = lambda request: http_server.as_json(reply(request, {**FINE, "isError": True}))
            refused = await aperform(work)
            assert (refused.value.status, refused.value.result, refused.in_doubt) == ("error", "fine", False)
            wire.answer = lambda request: http_server.as_json(refuse(request, -32602, "no pen"))
            refused = await aperform(work)
            assert "no pen" in refused.failure
            assert not refused.in_doubt


BROKEN = {"breaks its schema": lambda request: http_server.as_json(reply(request, {**FINE, "structuredContent": {}}))}


ENDING = {"connection lost", "cut off", "too large"}
"""What ends the whole connection of such a client, or is no fault to it."""


@pytest.mark.parametrize("fault", sorted({**LOST, **BROKEN}.keys() - ENDING))
async def test_a_lost_answer_is_in_doubt(fault):
    with http_server.serving() as here:
        wire = Wire(here)
        async with connected(here.url) as client:
            tool = Toolkit.from_tools([loaded(client, "nested", False)])["order"]
            wire.answer = {**LOST, **BROKEN}[fault]
            done = await aperform(FunctionCall(function=tool.real, kwargs={"item": "pen"}, then=as_answer))
    assert done.in_doubt, done
