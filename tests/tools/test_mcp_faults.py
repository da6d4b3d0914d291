"""MCP servers that die, answer late, wrongly or far too much; both protocol eras, on the wire."""

import asyncio
import json
import sys
import threading

import pytest

pytest.importorskip("mcp.server.mcpserver", reason="the extra `mcp` (2.x) is not installed")

from gecko_graph import GeckoError, Tool, Toolkit
from gecko_graph.errors import InDoubt, ToolkitError
from tests.tools import http_server
from tests.tools.mcp_server import LOOK, NOTHING, ORDER, Shop, result
from tests.tools.real_calls import make
from tests.tools.test_mcp import call, value

MODERN = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
HANDSHAKE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "s", "version": "1"},
}
COMPLETE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
FINE = {"content": [{"type": "text", "text": "fine"}], "resultType": "complete"}


class Wire:
    """A server that is written by hand: `answer` is what it sends for a call; None drops the connection.

    `pages` are its tools, by cursor.
    """

    def __init__(self, here, *, is_modern=True):
        self.is_modern, self.sessions, self.calls = is_modern, 0, 0
        self.answer = lambda request: http_server.as_json(reply(request, FINE))
        self.pages = {None: {"tools": [ORDER, LOOK]}}
        here.answer = self.respond

    def respond(self, asked):
        request = json.loads(asked.body or b"{}")
        method = request.get("method")
        if "id" not in request:
            return (202, {}, b"") if asked.method == "POST" else (405, {}, b"")
        if method == "server/discover":
            return http_server.as_json(reply(request, {**MODERN, **COMPLETE}) if self.is_modern else refuse(request))
        if method == "initialize":
            self.sessions += 1
            return http_server.as_json(reply(request, HANDSHAKE), **{"mcp-session-id": f"session-{self.sessions}"})
        if method == "tools/list":
            page = self.pages[(request.get("params") or {}).get("cursor")]
            return http_server.as_json(reply(request, {**page, **COMPLETE}))
        if not self.is_modern and asked.header("mcp-session-id") != f"session-{self.sessions}":
            return 404, {}, b""
        self.calls += 1
        return self.answer(request)


def reply(request, content):
    return {"jsonrpc": "2.0", "id": request["id"], "result": content}


def refuse(request, code=-32601, message="Method not found"):
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}}


@pytest.fixture(params=[True, False], ids=["modern", "handshake"])
def wire(request):
    with http_server.serving() as here:
        wire = Wire(here, is_modern=request.param)
        wire.url = f"{here.url}/mcp"
        yield wire


@pytest.fixture
def shop(wire):
    with Toolkit.from_mcp(wire.url, auth="sesame-1234") as toolkit:
        yield toolkit


LOST = {
    "connection lost": lambda request: None,
    "500": lambda request: (500, {}, b"sesame-1234"),
    "a page": lambda request: (200, {"content-type": "text/html"}, b"<html>"),
    "half a reply": lambda request: (200, {"content-type": "application/json"}, b'{"jsonrpc": "2.0", "id'),
    "cut off": lambda request: (200, {"content-type": "application/json", "content-length": "99"}, b"{"),
    "no result": lambda request: http_server.as_json(reply(request, {"thing": 3})),
    "an error of its own": lambda request: http_server.as_json(refuse(request, -32603, "sesame-1234 broke")),
    "202": lambda request: (202, {}, b""),
    "redirected away": lambda request: (302, {"location": "http://example.com/?token=sesame-1234"}, b""),
    "too large": lambda request: (200, {"content-type": "application/json"}, b'"' + b"x" * 5_100_000 + b'"'),
    "stream without an answer": lambda request: (200, {"content-type": "text/event-stream"}, b": nothing\n\n"),
    **{str(status): (lambda request, status=status: (status, {}, b"")) for status in (408, 409, 425)},
    "an error of its own, 409": lambda request: http_server.as_json(refuse(request, -32603, "busy"), 409),
}


@pytest.mark.parametrize("fault", LOST)
def test_a_call_without_a_usable_answer_is_in_doubt_and_not_repeated(wire, shop, fault):
    wire.answer = LOST[fault]
    done = call(shop, "order", item="pen")
    assert done.in_doubt, done
    assert "order may have taken effect" in done.failure
    assert "sesame" not in done.failure
    assert wire.calls == 1
    wire.answer = lambda request: http_server.as_json(reply(request, FINE))
    assert value(shop, "order", item="pen") == "fine"  # the connection is as good as before


REFUSED = {
    "401": lambda request: (401, {}, b"who is sesame-1234"),
    "429": lambda request: (429, {}, b""),
    "invalid arguments": lambda request: http_server.as_json(refuse(request, -32602, "no sesame-1234")),
    "isError": lambda request: http_server.as_json(reply(request, {**FINE, "isError": True})),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_only_what_a_tool_itself_answers_leaves_open_what_a_write_has_done(wire, shop, fault):
    wire.answer = REFUSED[fault]
    declared = shop.declare(Tool("order", refuses=True))
    read = shop.declare(Tool("order", effect="read"))
    found = [make(each["order"], {"item": "pen"}) for each in (shop, declared, read)]
    assert [answer.status for answer, _ in found] == ["error"] * 3
    assert [in_doubt for _, in_doubt in found] == [fault == "isError", False, False]
    answer, _ = found[0]
    assert "sesame" not in json.dumps(answer.result)
    assert (answer.retry_after is not None) is (fault == "429")
    assert wire.calls == 3


def test_an_answer_that_comes_too_late(wire, shop):
    over = threading.Event()

    def late(request):
        over.wait(20)
        return http_server.as_json(reply(request, {**FINE, "content": [{"type": "text", "text": "late"}]}))

    wire.answer = late
    shop["order"].real.connection.timeout_s = 0.5
    done = call(shop, "order", item="pen")
    assert done.in_doubt
    assert "no answer within 0.5 s" in done.failure
    wire.answer = lambda request: http_server.as_json(reply(request, FINE))
    over.set()
    shop["order"].real.connection.timeout_s = 30
    assert value(shop, "order", item="pen") == "fine"  # and not the late one's


def test_a_server_that_is_gone_is_no_doubt():
    with http_server.serving() as here:
        Wire(here)
        toolkit = Toolkit.from_mcp(here.url)
    done = call(toolkit, "order", item="pen")
    toolkit.close()
    assert "not sent: ConnectError" in done.failure
    assert not done.in_doubt


@pytest.mark.parametrize(("tools", "match"), [
    ({"tools": [{"description": "no name"}]}, "none of its tools can be read: tool 0: "),
    ({"tools": [{**ORDER, "inputSchema": True}, {"name": "b"}]}, "tools can be read: order: inputSchema"),
    ({"tools": 3}, "cannot be listed: ValidationError"),
    ({"tools": [ORDER], "nextCursor": "again"}, "form a cycle"),
])  # fmt: skip
def test_a_list_of_tools_that_is_none(tools, match):
    with http_server.serving() as here:
        Wire(here).pages = {None: tools, "again": tools}
        with pytest.raises(GeckoError, match=match):
            Toolkit.from_mcp(here.url)


BAD = {
    "another type": {"inputSchema": {"type": "string"}},
    "no schema": {},
    "a name that is none": {"name": 7, "inputSchema": NOTHING},
    "a result schema that is none": {"inputSchema": NOTHING, "outputSchema": []},
    "annotations that are none": {"inputSchema": NOTHING, "annotations": "safe"},
}


@pytest.mark.parametrize("fault", BAD)
def test_one_bad_tool_is_left_out_and_named_and_the_others_load(wire, fault):
    bad = {"name": "odd", **BAD[fault]}
    wire.pages = {None: {"tools": [ORDER, bad], "nextCursor": "2"}, "2": {"tools": [LOOK]}}
    with Toolkit.from_mcp(wire.url, prefix="shop") as toolkit:
        assert toolkit.names == ("shop_order", "shop_look")
        named = [each.tool for each in toolkit.problems if each.kind == "broken"]
        assert named == [f"shop_{bad['name']}"]
        assert value(toolkit, "shop_look") == "fine"


CONTENTS = [
    (result({"a": 1}, "one"), {"a": 1}), (result(None, "plain"), "plain"), (result(None, '{"a": 1}'), {"a": 1}),
    (result(None), []),
    (result(None, "one", {"type": "resource_link", "uri": "file:///a", "name": "a"}),
     ["one", {"type": "resource_link", "uri": "file:///a", "name": "a"}]),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "read"), CONTENTS, ids=range(len(CONTENTS)))
def test_what_a_result_is_read_as(sent, read):
    with Toolkit.from_mcp(Shop(look=sent).server) as toolkit:
        assert value(toolkit, "look") == read


def test_a_huge_result_is_not_kept():
    with Toolkit.from_mcp(Shop(look=result(None, "x" * 4_000_000), order=result(None, "x" * 6_000_000)).server) as shop:
        assert len(value(shop, "look")) == 4_000_000
        huge = call(shop, "order", item="pen")
    assert huge.in_doubt
    assert len(huge.failure) < 200


def test_a_call_under_way_while_the_toolkit_is_closed_is_in_doubt():
    started = threading.Event()

    async def forever(item):
        started.set()
        await asyncio.sleep(60)

    async def main():
        toolkit = await Toolkit.afrom_mcp(Shop(order=forever).server)
        task = asyncio.create_task(toolkit["order"].real(item="pen"))
        await asyncio.to_thread(started.wait, 20)
        await asyncio.to_thread(toolkit.close)
        with pytest.raises(InDoubt, match="order may have taken effect"):
            await task

    asyncio.run(main())


def test_without_the_extra_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gecko_graph.tools.mcp", None)
    with pytest.raises(ToolkitError, match=r"pip install '.\[mcp\]'"):
        Toolkit.from_mcp(["python"])


def test_a_tool_that_has_begun_and_asks_for_input_is_in_doubt():
    params = {"mode": "form", "message": "sure?", "requestedSchema": NOTHING}
    request = {"method": "elicitation/create", "params": params}
    wanted = {"resultType": "input_required", "inputRequests": {"a": request}, "requestState": "s"}
    with http_server.serving() as here:
        wire = Wire(here)
        wire.answer = lambda call: http_server.as_json(reply(call, wanted))
        with Toolkit.from_mcp(here.url) as toolkit:
            done = call(toolkit, "order", item="pen")
    assert done.in_doubt
    assert "asks for input" in done.failure


def test_an_unknown_session_is_opened_again_and_the_call_sent_once():
    with http_server.serving() as here:
        wire = Wire(here, is_modern=False)
        with Toolkit.from_mcp(here.url) as toolkit:
            assert value(toolkit, "order", item="pen") == "fine"
            wire.sessions += 1  # the server has restarted
            assert value(toolkit, "order", item="ink") == "fine"
            assert (wire.sessions, wire.calls) == (3, 2)
