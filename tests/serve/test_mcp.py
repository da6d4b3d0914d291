"""MCP over HTTP in both eras, with the official client (on stdio: test_shadow_mcp.py)."""

import socket
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("mcp")

import asyncio

import uvicorn
from mcp import Client

from gecko_graph import Tool, Toolkit
from gecko_graph.serve.app import Server
from gecko_graph.serve.guard import Guard
from gecko_graph.serve.mcp import McpFace
from gecko_graph.serve.operations import HttpOperations
from gecko_graph.serve.sessions import Sessions
from gecko_graph.testing import failing, recorded

from .conftest import shop, world_of


@asynccontextmanager
async def serving(*, own=False, model=None, tools=None):
    case = shop()
    sessions = Sessions(world_of(tools or case.tools, case.state))
    face = McpFace(sessions, own=own, model=model)

    @asynccontextmanager
    async def lifespan(_):
        async with face.manager.run():
            yield

    app = Guard(Server(sessions, HttpOperations(case.tools), case).build(face.routes(), lifespan))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
        running = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", sessions
        server.should_exit = True
        await running


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_tools_are_listed_and_called(mode):
    async with serving() as (address, sessions):
        async with Client(f"{address}/mcp", mode=mode) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert listed["findProducts"].annotations.read_only_hint is True
            assert listed["cancelOrder"].annotations.read_only_hint is False
            done = await client.call_tool("cancelOrder", {"order_id": "order-2"})
            assert done.structured_content["order_id"] == "order-2"
            assert (done.meta["gecko/made-up"], done.meta["gecko/notes"]) == (False, [])
            again = await client.call_tool("cancelOrder", {"order_id": "order-2"})
            assert again.is_error
            assert (await client.call_tool("cancelOrder", {"order_id": 2})).is_error
        (name,) = [one["id"] for one in await sessions.list()]
        assert name == "default"  # of either protocol: some clients connect anew for each call


async def test_a_result_outside_a_closed_part_reaches_the_client():
    part = {"type": "object", "properties": {"name": {}}, "additionalProperties": False}
    result = {"type": "object", "allOf": [part, {"required": ["id"]}]}
    given = {"name": "find", "parameters": {"type": "object", "properties": {}}}
    tool = Tool(given, effect="read", result=result, contract={"returns": {"id": 1}})
    async with serving(tools=Toolkit.from_tools([tool])) as (address, _), Client(f"{address}/mcp") as client:
        assert (await client.list_tools()).tools[0].output_schema
        assert (await client.call_tool("find", {})).structured_content == {"id": 1}


async def test_a_path_names_the_session():
    async with serving() as (address, sessions):
        await sessions.create("a")
        async with Client(f"{address}/s/a/mcp") as client:
            await client.call_tool("cancelOrder", {"order_id": "order-2"})
        assert {one["id"]: one["steps"] for one in await sessions.list()} == {"a": 1}


async def test_our_own_tools_try_undo_and_reset():
    async with serving(own=True) as (address, sessions), Client(f"{address}/mcp") as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"gecko_preview", "gecko_state", "gecko_undo", "gecko_reset"} <= names
        assert "gecko_rehearse" not in names  # without a model
        cancel = {"name": "cancelOrder", "args": {"order_id": "order-2"}}
        tried = await client.call_tool("gecko_preview", {"calls": [cancel]})
        assert tried.structured_content["changed"] is True
        state = (await client.call_tool("gecko_state", {})).structured_content
        assert state["orders"]["order-2"]["status"] == "placed"
        for number in (1, 2):
            await client.call_tool("cancelOrder", {"order_id": f"order-{number}"})
        assert (await client.call_tool("gecko_undo", {})).structured_content == {"steps": 1}
        assert (await sessions.get("default")).world.state["orders"]["order-2"]["status"] == "placed"
        assert (await client.call_tool("gecko_reset", {})).structured_content == {"steps": 0}


CANCEL = {"call": "cancelOrder", "args": {"order_id": "order-2"}}
REPLIES = {
    "planner": [[CANCEL, {"say": "Cancelled."}]],
    "checklist": [{"items": ["order-2 is cancelled"]}],
    "judge": [{"items": [{"id": "item-1", "status": "success"}]}],
}


async def test_a_task_is_rehearsed_on_a_copy():
    async with serving(own=True, model=recorded(**REPLIES)) as (address, sessions), Client(f"{address}/mcp") as client:
        before = (await sessions.get("default")).world.state
        told = []

        async def note(progress, total, message):
            told.append(message)

        done = await client.call_tool("gecko_rehearse", {"task": "Cancel order-2."}, progress_callback=note)
        assert done.structured_content["verdict"]["status"] == "accepted"
        assert "judge" in told
        assert [call["name"] for call in done.structured_content["plan"]] == ["cancelOrder"]
        assert (await sessions.get("default")).world.state == before
        assert (await client.call_tool("gecko_rehearse", {"task": " "})).is_error


async def test_a_rehearsal_that_fails_or_takes_too_long_is_told(monkeypatch):
    async with serving(own=True, model=failing(ValueError("down"))) as (address, _), Client(f"{address}/mcp") as client:
        done = await client.call_tool("gecko_rehearse", {"task": "Cancel order-2."})
        assert done.is_error or done.structured_content["verdict"]["status"] != "accepted"
    monkeypatch.setattr("gecko_graph.serve.mcp.REHEARSE_S", 0.0)
    async with serving(own=True, model=recorded(**REPLIES)) as (address, _), Client(f"{address}/mcp") as client:
        assert "timed out" in (await client.call_tool("gecko_rehearse", {"task": "x"})).content[0].text
