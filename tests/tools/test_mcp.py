"""Tools of an MCP server: what is read of them, how they are called, and how the connection is kept."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time

import pytest

from gecko_graph.models.answer import perform
from gecko_graph.models.ask import FunctionCall

pytest.importorskip("mcp.server.mcpserver", reason="the extra `mcp` (2.x) is not installed")

from mcp import Client, StdioServerParameters

from gecko_graph import GeckoError, Tool, Toolkit
from gecko_graph.errors import ToolkitError
from gecko_graph.models.answer import aperform
from gecko_graph.tools.real import as_answer
from tests.tools.mcp_server import COMMAND, LOOK, NOTHING, ORDER, Shop, result, serving


def call(toolkit, tool, **args):
    return perform(FunctionCall(function=toolkit[tool].real, kwargs=args, timeout_s=20, then=as_answer))


def value(toolkit, tool, **args):
    done = call(toolkit, tool, **args)
    assert done.failure is None, done.failure
    assert done.value.status == "ok", done.value
    return done.value.result


@pytest.fixture(scope="module")
def over_stdio():
    target = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env={"SHOP_COLOR": "blue"})
    with Toolkit.from_mcp(target, env={"SHOP_KEY": lambda: "sesame-1234"}) as toolkit:
        yield toolkit


def test_what_is_read_of_a_tool_and_hints_are_trusted_where_the_user_says_so():
    with Toolkit.from_mcp(Shop().server) as toolkit:
        order, look = toolkit
    assert (order.name, order.description, order.effect, order.stated) == ("order", "Order an item.", "write", False)
    assert order.parameters == {**ORDER["inputSchema"], "additionalProperties": False}
    assert order.result == ORDER["outputSchema"]
    assert (look.effect, look.stated, look.reads, look.trusted) == ("read", False, True, False)
    with Toolkit.from_mcp(Shop([LOOK, {"name": "plain", "inputSchema": NOTHING}]).server, trust_hints=True) as toolkit:
        assert [(tool.stated, tool.trusted) for tool in toolkit] == [(True, True), (False, False)]
    with Toolkit.from_mcp(Shop().server) as toolkit:
        stated = toolkit.declare(Tool("look", effect="read"))
        assert stated["look"].trusted
        assert toolkit.open("look")["look"].trusted
        assert value(stated, "look")["orders"] == []


def test_over_stdio(over_stdio):
    assert over_stdio.names == ("order", "look", "die")
    assert value(over_stdio, "order", item="pen") == {"id": 1, "item": "pen"}
    seen = value(over_stdio, "look")
    assert seen["orders"] == ["pen"]
    assert (seen["key"], seen["color"]) == ("…", "blue")  # the server echoes what its environment holds


def test_a_server_that_dies_leaves_a_doubt_and_is_started_again(over_stdio):
    before = value(over_stdio, "look")["pid"]
    died = call(over_stdio, "die")
    assert died.in_doubt
    assert "die may have taken effect" in died.failure
    assert value(over_stdio, "order", item="ink")["id"] == 1
    assert value(over_stdio, "look")["pid"] != before


def test_over_http_with_credentials_looked_up_at_each_call(monkeypatch):
    shop, tokens = Shop(), iter(["token-one-1", "token-two-2", "token-three-3", "token-four-4"])
    monkeypatch.setenv("SHOP_TENANT", "tenant-one")
    with serving(shop) as url:
        headers = {"X-Tenant": "env:SHOP_TENANT"}
        with Toolkit.from_mcp(url + "?key=secret-in-url", auth=lambda: next(tokens), headers=headers) as toolkit:
            assert value(toolkit, "order", item="pen") == {"id": 1, "item": "pen"}
            monkeypatch.setenv("SHOP_TENANT", "tenant-two")
            shop.answers["order"] = lambda item: result(None, f"{shop.headers[-1]['authorization']} secret-in-url")
            assert value(toolkit, "order", item="ink") == "… …"
            monkeypatch.delenv("SHOP_TENANT")
            unset = call(toolkit, "order", item="ink")
            assert "SHOP_TENANT" in unset.failure
            assert not unset.in_doubt
    sent = [(each["authorization"], each["x-tenant"]) for each in shop.headers]
    assert sent == [("Bearer token-two-2", "tenant-one"), ("Bearer token-three-3", "tenant-two")]
    assert "secret" not in repr(toolkit["order"].real)


def test_many_threads_and_loops_share_one_connection():
    async def slow(item):
        await asyncio.sleep(0.05)
        return {"id": 1, "item": item}

    async def together(toolkit):
        work = [
            FunctionCall(function=toolkit["order"].real, kwargs={"item": str(n)}, then=as_answer) for n in range(20)
        ]
        return [done.value.result["item"] for done in await asyncio.gather(*map(aperform, work))]

    with Toolkit.from_mcp(Shop(order=slow).server) as toolkit:
        found: list[list[str]] = []
        threads = [threading.Thread(target=lambda: found.append(asyncio.run(together(toolkit)))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [[str(n) for n in range(20)]] * 4


async def test_an_open_session_is_called_on_its_own_loop():
    shop = Shop()
    async with Client(shop.server) as client:
        with pytest.raises(ToolkitError, match="afrom_mcp"):
            Toolkit.from_mcp(client)
        toolkit = await Toolkit.afrom_mcp(client, prefix="shop")
        work = FunctionCall(function=toolkit["shop_order"].real, kwargs={"item": "pen"}, then=as_answer)
        assert (await aperform(work)).value.result == {"id": 1, "item": "pen"}
        assert (await asyncio.to_thread(perform, work)).value.result == {"id": 2, "item": "pen"}
        toolkit.close()
        assert (await client.list_tools()).tools  # whoever has opened it closes it
    with pytest.raises(ToolkitError, match="not open"):
        await Toolkit.afrom_mcp(Client(shop.server))
    other = await Toolkit.afrom_mcp(shop.server)
    other.close()


def test_an_open_session_whose_loop_is_busy_is_not_called_later():
    shop, made = Shop(), []

    async def main():
        async with Client(shop.server) as client:
            toolkit = await Toolkit.afrom_mcp(client)
            toolkit["order"].real.connection.timeout_s = 0.1
            thread = threading.Thread(target=lambda: made.append(call(toolkit, "order", item="pen")))
            thread.start()
            time.sleep(0.3)
            while thread.is_alive():
                await asyncio.sleep(0.01)

    asyncio.run(main())
    assert "nothing was sent" in made[0].failure or "not sent" in made[0].failure
    assert not made[0].in_doubt
    assert shop.orders == []


def test_a_closed_toolkit_calls_nothing_and_leaves_no_thread():
    def running():
        return sum(thread.name == "gecko-mcp" for thread in threading.enumerate())

    before, shop = running(), Shop()
    toolkit = Toolkit.from_mcp(shop.server)
    assert running() == before + 1
    derived = toolkit.open("look")
    derived.close()
    toolkit.close()
    assert running() == before
    closed = call(toolkit, "order", item="pen")
    assert "closed" in closed.failure
    assert not closed.in_doubt
    assert shop.orders == []
    forgotten = Toolkit.from_mcp(shop.server)
    del forgotten
    gc.collect()
    assert running() == before


def test_several_servers_keep_their_tools_apart():
    first, second = Shop(), Shop()
    with Toolkit.from_mcp({"mcpServers": {"a": first.server, "b": second.server}}, prefix="x") as toolkit:
        assert toolkit.names == ("x_a_order", "x_a_look", "x_b_order", "x_b_look")
        value(toolkit, "x_b_order", item="pen")
    assert (first.orders, second.orders) == ([], ["pen"])
    one, two = Toolkit.from_mcp(first.server), Toolkit.from_mcp(second.server, prefix="other")
    both = Toolkit([*one, *two])
    assert both.names == ("order", "look", "other_order", "other_look")
    both.close()
    with pytest.raises(ToolkitError, match="'order'"), Toolkit.from_mcp(second.server) as same:
        Toolkit([*one, *same])


def test_a_broken_tool_is_listed_among_the_problems_and_all_pages_are_read():
    broken = {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}}
    with Toolkit.from_mcp(Shop([ORDER, broken, ORDER]).server) as toolkit:
        assert toolkit.names == ("order",)
        problems = [(each.tool, each.kind) for each in toolkit.problems if each.kind == "broken"]
        assert problems == [("bad", "broken"), ("order", "broken")]
    count = 250
    last = f"order-{count - 1}"
    shop = Shop([{**ORDER, "name": f"order-{n}"} for n in range(count)], page=100, **{last: {"id": 1}})
    with Toolkit.from_mcp(shop.server) as toolkit:
        assert len(toolkit) == count
        assert value(toolkit, last, item="pen") == {"id": 1}


@pytest.mark.parametrize(("server", "more", "match"), [
    ("python server.py", {}, r"\['python', 'server.py'\]"),
    ("https://me:pw@example.com/mcp", {}, "without credentials"),
    (["python"], {"headers": {"a": "b"}}, "env is for commands"),
    ({"a": ["python"]}, {"auth": "x"}, "each has its own"),
])  # fmt: skip
def test_what_is_no_server(server, more, match):
    with pytest.raises(ToolkitError, match=match) as raised:
        Toolkit.from_mcp(server, **more)
    assert "pw" not in str(raised.value)


def test_what_cannot_be_reached():
    with pytest.raises(GeckoError, match=r"no-such-command.*FileNotFoundError"):
        Toolkit.from_mcp(["/nowhere/no-such-command"])
    with pytest.raises(GeckoError, match="ConnectError"):
        Toolkit.from_mcp("http://127.0.0.1:9/mcp")
    with pytest.raises(GeckoError, match=r"no answer within 0\.2 s"):
        Toolkit.from_mcp([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=0.2)
