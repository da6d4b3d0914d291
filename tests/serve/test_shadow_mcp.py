"""`/mcp` under `--upstream`: calls by MCP pass on as requests do, and no write is made twice, whenever it is killed."""

import asyncio
import json
import time

import pytest

pytest.importorskip("mcp")

from mcp import Client

from .test_shadow import DOCUMENT, order, place  # noqa: F401

MODES = ["auto", "legacy"]
KEY = {"gecko/idempotency-key": "k-1"}


def address(client):
    return str(client.base_url).rstrip("/") + "/mcp"


async def call(url, name, args, *, mode="auto", meta=None):
    async with asyncio.timeout(40):
        async with Client(url, mode=mode) as client:
            return await client.call_tool(name, args, meta=meta)


async def attempt(url, args, *, mode="auto", meta=None):
    """Place an order; its answer where one came, also if the server was killed before the client had left."""
    told = None
    try:
        async with asyncio.timeout(40), Client(url, mode=mode) as client:
            told = await client.call_tool("placeOrder", args, meta=meta)
    except Exception:  # noqa: BLE001 - the server is killed meanwhile
        return told
    return told


@pytest.mark.parametrize("mode", MODES)
async def test_killed_in_a_write_it_is_not_sent_again(place, mode):  # noqa: F811
    process, client = place.start()
    client.close()
    waiting = asyncio.create_task(attempt(address(client), order(sleep=2), mode=mode, meta=KEY))
    while not place.sent:
        await asyncio.sleep(0.02)
    place.kill(process)
    assert await waiting is None
    _, client = place.start()
    with client:
        for _ in range(2):  # the older era's session is another one now: the write is the same
            again = await call(address(client), "placeOrder", order(sleep=2), mode=mode, meta=KEY)
            assert again.is_error
            assert "not sent again" in again.content[0].text
        assert len(place.sent) == 1


async def test_a_client_that_leaves_is_given_the_answer_when_it_comes_again(place):  # noqa: F811
    _, client = place.start()
    with client:
        waiting = asyncio.create_task(attempt(address(client), order(sleep=0.8), meta=KEY))
        while not place.sent:
            await asyncio.sleep(0.02)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        async with asyncio.timeout(40):
            while (again := await call(address(client), "placeOrder", order(sleep=0.8), meta=KEY)).is_error:
                await asyncio.sleep(0.1)  # it is under way
        assert again.meta["gecko/replayed"] == "true"
    assert len(place.sent) == 1


async def test_without_a_key_a_write_passes_on_each_time_and_says_what_is_in_doubt(place):  # noqa: F811
    _, client = place.start()
    url = address(client)
    with client:
        for _ in range(2):
            assert "gecko/replayed" not in (await call(url, "placeOrder", order())).meta
        for given in ({"drop": True}, {"answer": 500}):
            told = await call(url, "placeOrder", order(**given))
            assert told.is_error
            assert "may have taken effect" in told.content[-1].text
        for wrong in ("", " ", 7, ["k"], "bad\nheader"):
            told = await call(url, "placeOrder", order(), meta={"gecko/idempotency-key": wrong})
            assert told.is_error
    assert len(place.sent) == 4


class Pipe:
    """A client on the standard input and output of a server of its own."""

    def __init__(self, place):  # noqa: F811
        self.process, self.number = place.start_piped("--mcp"), 0
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        self.ask("initialize", hello)
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        return next(one["result"] for one in map(json.loads, self.process.stdout) if one.get("id") == self.number)

    def order(self, meta=None, **more):
        """Place an order; return whether its answer was given before, None where it is no answer."""
        told = self.ask("tools/call", {"name": "placeOrder", "arguments": order(**more), "_meta": meta or {}})
        return None if told["isError"] else told["_meta"].get("gecko/replayed") == "true"

    def end(self):
        """Let the input end, as it does when a client dies."""
        self.process.stdin.close()


def test_on_stdio_a_write_with_a_key_is_made_once_whoever_dies(place):  # noqa: F811
    pipe = Pipe(place)
    assert pipe.ask("tools/call", {"name": "findItems", "arguments": {}})["_meta"]["gecko/rung"] == "real"
    assert [pipe.order(), pipe.order()] == [False, False], "without a key each is a write"
    assert [pipe.order(meta=KEY), pipe.order(meta=KEY)] == [False, True]
    pipe.process.kill()
    pipe.process.wait(20)
    pipe, other = Pipe(place), Pipe(place)
    assert pipe.order(meta=KEY) is True
    pipe.end()
    pipe.process.wait(30)
    assert (other.order(meta=KEY), len(place.sent)) == (True, 4)


def test_on_stdio_a_write_that_outlives_its_client_is_not_sent_again(place):  # noqa: F811
    pipe, other = Pipe(place), Pipe(place)
    call = {"name": "placeOrder", "arguments": order(sleep=0.8), "_meta": KEY}
    pipe.send({"id": 9, "method": "tools/call", "params": call})
    while not place.sent:
        time.sleep(0.02)
    pipe.end()
    until = time.monotonic() + 40
    while (told := other.order(meta=KEY, sleep=0.8)) is None and time.monotonic() < until:
        time.sleep(0.1)  # it is under way
    assert told is True
    assert len(place.sent) == 1


async def test_calls_are_compared_recorded_and_kept_in_the_session(place):  # noqa: F811
    _, client = place.start("--record", "rows.jsonl", "--contracts", "reads.contracts.yaml")
    with client:
        async with Client(address(client)) as listing:  # a client discards results that break an output schema
            assert {tool.output_schema for tool in (await listing.list_tools()).tools} == {None}
        found = await call(address(client), "findItems", {})
        assert found.structured_content == {"items": [{"sku": "TEA", "stock": 3}]}
        assert (found.meta["gecko/rung"], found.meta["gecko/drift"]) == ("real", "0")
        refused = await call(address(client), "placeOrder", order(answer=409))
        assert refused.is_error
        assert "only 3 are left" in refused.content[0].text
        wrong = await call(address(client), "placeOrder", {"sku": 7})
        assert wrong.is_error
        assert "expected a string" in wrong.content[0].text
        history = client.get("/_gecko/sessions/default/history").json()["history"]
    assert [step["outcome"]["rung"] for step in history] == ["real", "real"]
    assert len(place.sent) == 2
    assert len((place.folder / "rows.jsonl").read_text().splitlines()) == 2


async def test_writes_are_closed_unless_they_are_opened(place):  # noqa: F811
    _, client = place.start(writes=False)
    with client:
        assert "--allow-writes" in (await call(address(client), "placeOrder", order())).content[0].text
    assert place.sent == []


async def test_credentials_are_the_servers_own_and_stand_nowhere(place, monkeypatch):  # noqa: F811
    keyed = {
        **DOCUMENT,
        "components": {"securitySchemes": {"Key": {"type": "apiKey", "in": "header", "name": "x-key"}}},
    }
    (place.folder / "api.json").write_text(json.dumps({**keyed, "security": [{"Key": []}]}))
    monkeypatch.setenv("ORDERS_KEY", "sk-secret-1")
    _, client = place.start("--auth", "Key=env:ORDERS_KEY", "--record", "rows.jsonl")
    with client:
        assert not (await call(address(client), "placeOrder", order())).is_error
    assert {key.lower(): value for key, value in place.sent[0][3].items()}["x-key"] == "sk-secret-1"
    time.sleep(0.2)
    for file in place.folder.glob("*.[sj][qs]*l*"):
        assert "sk-secret" not in file.read_text("latin-1") or file == place.log
