"""`--upstream`: whose a write is, which method a request names, and what a key is; a service in this process."""

import asyncio
import json
import socket
from contextlib import contextmanager

import httpx
import pytest
from langgraph.checkpoint.memory import InMemorySaver

from gecko_graph import Tool, Toolkit
from gecko_graph.real.ledger import MemoryLedger
from gecko_graph.serve.app import Server
from gecko_graph.serve.operations import HttpOperations
from gecko_graph.serve.sessions import Sessions
from gecko_graph.serve.shadow import Upstream

from .conftest import world_of
from .test_shadow import OK, Place

BODY = {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
DOCUMENT = {
    "openapi": "3.0.3",
    "info": {"title": "Orders", "version": "1"},
    "servers": [{"url": "http://api.invalid/v1"}],
    "paths": {
        "/items": {"get": {"operationId": "findItems", "responses": OK}},
        "/logout/{id}": {"get": {"operationId": "logout", "parameters": [
            {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}], "responses": OK}},
        "/search": {"post": {"operationId": "search", "requestBody": BODY, "responses": OK}},
        "/orders": {
            "post": {"operationId": "placeOrder", "requestBody": BODY, "responses": OK},
            "delete": {"operationId": "clearOrders", "responses": OK},
        },
    },
    "components": {"securitySchemes": {
        "Odd": {"type": "apiKey", "in": "header", "name": "X-Odd-Word"},
        "Query": {"type": "apiKey", "in": "query", "name": "odd"},
    }},
    "security": [{"Odd": []}, {"Query": []}],
}  # fmt: skip
KEY = {"idempotency-key": "k-1"}


class Shop:
    """A client of a server in this process, and what the service behind it was sent."""

    def __init__(self, *, writes=True):
        tools = Toolkit.from_openapi(DOCUMENT).declare(Tool("search", effect="read"), Tool("logout", effect="write"))
        self.sent, self.saver = [], InMemorySaver()
        sessions = self.sessions = Sessions(world_of(tools))
        service = httpx.AsyncClient(transport=httpx.MockTransport(self.answer))
        ledger = MemoryLedger(self.saver) if writes else None
        upstream = Upstream("http://service.invalid/v1", ledger=ledger, client=service)
        app = Server(sessions, HttpOperations(tools, upstream=upstream)).build()
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")
        self.service, self.wait, self.says = service, None, 200

    async def answer(self, request):
        self.sent.append((request.method, str(request.url), request.headers))
        if self.wait is not None:
            await self.wait.wait()
        if isinstance(self.says, Exception):
            raise self.says
        headers = {"set-cookie": "sid=of-this-user", "location": "http://elsewhere.invalid/"}
        return httpx.Response(self.says, json={"number": len(self.sent)}, headers=headers)

    async def ask(self, method="POST", path="/orders", **given):
        if method in ("POST", "PUT", "PATCH") and not given.keys() & {"content", "json", "data", "files"}:
            given["json"] = {"sku": "TEA"}
        self.client.cookies.clear()
        return await self.client.request(method, f"http://localhost{path}", **given)

    async def is_same(self, first, second):
        """Return whether the second write is answered as the first."""
        await self.ask(**first)
        count, again = len(self.sent), await self.ask(**second)
        is_replayed = again.headers.get("x-gecko-replayed") == "true"
        assert (again.status_code, is_replayed) == (200, len(self.sent) == count)
        assert not is_replayed or "set-cookie" not in again.headers
        return is_replayed


@pytest.fixture
async def shop():
    made = Shop()
    await made.sessions.create("other")
    yield made
    await made.client.aclose()
    await made.service.aclose()


@pytest.fixture
async def closed():
    made = Shop(writes=False)
    yield made
    await made.client.aclose()
    await made.service.aclose()


@pytest.mark.parametrize(
    "name",
    [
        "authorization", "cookie", "x-odd-word", "x-api-key", "apikey", "api-key", "x-auth-token", "x-access-token",
        "private-token", "x-amz-security-token", "x-goog-iap-jwt-assertion", "stripe-account", "x-tenant-id",
        "x-forwarded-user", "x-forwarded-email", "remote-user", "x-forwarded-client-cert", "client-cert",
        "x-ssl-client-s-dn", "x-forwarded-tls-client-cert-info", "x-arr-clientcert", "x-amzn-oidc-identity",
        "x-ms-client-principal-id", "openai-organization", "x-user-id", "X_Auth_Token", "signature", "sudo",
        "x-on-behalf-of", "dpop",
    ],
)  # fmt: skip
async def test_another_credential_is_another_write(shop, name):
    alice, bob = ({"headers": {name: f"{who}=1", **KEY}} for who in ("alice", "bob"))
    assert not await shop.is_same(alice, bob)
    assert not await shop.is_same(bob, {"headers": KEY})
    for one in (alice, bob, {"headers": KEY}):
        assert await shop.is_same(one, one)
    assert len(shop.sent) == 3


@pytest.mark.parametrize("name", ["odd", "api_key", "access_token", "key", "sig", "apikey"])
async def test_another_key_in_the_query_is_another_write(shop, name):
    alice, bob = ({"path": f"/orders?{name}={who}&a=1", "headers": KEY} for who in ("alice", "bob"))
    assert not await shop.is_same(alice, bob)
    assert await shop.is_same(alice, alice)
    assert (await shop.ask(path=f"/orders?{name}=alice&a=2", headers=KEY)).status_code == 422


async def test_repeated_headers_and_what_changes_without_meaning(shop):
    def sent(*pairs):
        return {"headers": [*KEY.items(), *pairs]}

    alice, bob = ("authorization", "Bearer alice"), ("authorization", "Bearer bob")
    assert not await shop.is_same(sent(alice), sent(alice, bob))
    assert not await shop.is_same(sent(alice), sent(("authorization", "Bearer ALICE")))
    same = [("Authorization", "bearer  alice "), alice]
    for one in same:
        assert await shop.is_same(sent(alice), sent(one, ("traceparent", "00-1"), ("user-agent", "x"), ("date", "y")))


async def test_a_key_is_of_one_method_address_and_session(shop):
    first = {"headers": KEY}
    for other in (
        {"headers": {"idempotency-key": "K-1"}},
        {"headers": KEY | {"x-session-id": "other"}},
        {"path": "/s/other/orders", "headers": KEY | {"authorization": "x"}},
        {"method": "DELETE", "headers": KEY},
        {"path": "/elsewhere", "headers": KEY},
        {"headers": {"idempotency-key": "k" * 5000}},
        {"headers": [("idempotency-key", "é".encode())]},
    ):
        assert not await shop.is_same(first, other)
        assert await shop.is_same(other, other)
    assert await shop.is_same({"headers": {"Idempotency-KEY": " k-1 "}}, first)


async def test_a_key_for_another_body_and_a_key_that_is_none(shop):
    await shop.ask(headers=KEY)
    assert (await shop.ask(headers=KEY, json={"sku": "MUG"})).status_code == 422
    assert (await shop.ask(headers=KEY, path="/orders?more=1")).status_code == 422
    for wrong in ([("idempotency-key", "")], [("idempotency-key", " ")], [("idempotency-key", "a")] * 2):
        assert (await shop.ask(headers=wrong)).status_code == 400
    assert len(shop.sent) == 1
    for _ in range(2):
        assert "x-gecko-replayed" not in (await shop.ask()).headers
    assert len(shop.sent) == 3
    assert (await shop.ask("GET", "/items", headers={"idempotency-key": ""})).status_code == 200


@pytest.mark.parametrize(
    ("says", "told", "again"),
    [
        (422, 422, 422),  # what is refused may be sent again
        (httpx.ConnectError("down"), 502, 502),  # so may what was never sent
        (500, 500, 409),  # what is open not
        (httpx.ReadError("dropped"), 502, 409),
    ],
)
async def test_what_is_refused_or_unsent_may_be_sent_again_and_what_is_open_not(shop, says, told, again):
    shop.says = says
    first, second = [await shop.ask(headers=KEY) for _ in range(2)]
    assert (first.status_code, second.status_code, len(shop.sent)) == (told, again, 1 + (again != 409))
    assert told != 502 or first.headers["content-type"] == "application/problem+json"
    shop.says = 200
    assert (await shop.ask(headers=KEY)).status_code == (409 if again == 409 else 200)


async def test_headers_are_kept_apart_and_no_redirect_is_followed(closed):
    kept = {"authorization": "Bearer sk-secret-1"}
    apart = {"x-gecko-token": "t", "x-session-id": "default", "te": "trailers", "x-own": "1"}
    assert (await closed.ask("GET", "/v1/items", headers={**kept, **apart, "connection": "x-own"})).status_code == 200
    (_, url, seen) = closed.sent.pop()
    assert url == "http://service.invalid/v1/items"
    assert (seen["authorization"], seen.keys() & apart.keys()) == (kept["authorization"], set())
    closed.says = 302
    away = await closed.ask("GET", "/away")  # no operation: passed on, not followed
    assert (away.status_code, away.headers["location"], len(closed.sent)) == (302, "http://elsewhere.invalid/", 1)


async def test_two_at_once_are_one_write_and_two_users_two(shop):
    shop.wait = asyncio.Event()
    alice, bob = ({**KEY, "authorization": f"Bearer {who}"} for who in ("alice", "bob"))
    begun = [asyncio.create_task(shop.ask(headers=each)) for each in (alice, alice, bob)]
    async with asyncio.timeout(20):
        while len(shop.sent) < 2 or not any(each.done() for each in begun):
            await asyncio.sleep(0.01)
    shop.wait.set()
    assert sorted(each.status_code for each in await asyncio.gather(*begun)) == [200, 200, 409]
    assert len(shop.sent) == 2


async def test_the_ledger_holds_no_credential_and_its_digests_are_its_own(shop):
    headers = {**KEY, "authorization": "Bearer sk-secret-1", "cookie": "sid=sk-secret-2"}
    await shop.ask(path="/orders?api_key=sk-secret-3", headers=headers)
    held = str([shop.saver.serde.loads_typed(value) for value in shop.saver.blobs.values()])
    assert "number" not in held
    assert "secret" not in held
    other = Shop()
    await other.ask(path="/orders?api_key=sk-secret-3", headers=headers)
    names = [{key[2] for key in each.saver.blobs} - {"scopes", "salt"} for each in (shop, other)]
    assert names[0].isdisjoint(names[1])
    await other.client.aclose()
    await other.service.aclose()


DISGUISES = [
    {"headers": {"x-http-method-override": "DELETE"}},
    {"headers": {"X-HTTP-Method": "delete"}},
    {"headers": {"x-method-override": " Delete "}},
    {"headers": {"X_HTTP_Method_Override": "PATCH"}},
    {"headers": [("x-http-method-override", "GET"), ("x-http-method-override", "PUT")]},
    {"headers": {"x-http-method-override": "GET, DELETE"}},
    {"headers": {"x-http-method-override": "PURGE"}},
    {"query": "_method=DELETE"},
    {"query": "a=1&_METHOD=put"},
    {"query": "a=1;_method=DELETE"},
    {"query": "%5Fmethod=%44ELETE"},
    {"query": "_HttpMethod=PATCH"},
    {"query": "x-http-method-override=DELETE"},
    {"data": {"_method": "delete"}},
    {"files": {"_method": (None, "DELETE"), "more": ("a.txt", b"x")}},
    {"json": {"_method": "DELETE"}},
]


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/items"), ("POST", "/search"), ("GET", "/unknown"), ("HEAD", "/items")]
)
async def test_a_write_in_disguise_is_refused_without_allow_writes(closed, method, path, disguise):
    given = {key: value for key, value in disguise.items() if key != "query"}
    refused = await closed.ask(method, f"{path}?{disguise.get('query', '')}", **given)
    assert refused.status_code == 403
    assert closed.sent == []


@pytest.mark.parametrize(
    ("method", "path", "given"),
    [
        ("GET", "/items", {}),
        ("HEAD", "/items", {}),
        ("OPTIONS", "/orders", {"headers": {"access-control-request-method": "DELETE"}}),
        ("GET", "/items", {"headers": {"x-http-method-override": "GET"}}),
        ("GET", "/items?_method=&method=card", {}),
        ("POST", "/search", {"headers": {"x-http-method-override": "get"}}),
        ("POST", "/search", {"json": {"method": "DELETE"}}),
        ("POST", "/search", {"content": b"not json", "headers": {"content-type": "application/json"}}),
    ],
)
async def test_a_read_stays_one(closed, method, path, given):
    assert (await closed.ask(method, path, **given)).status_code == 200
    assert closed.sent[0][0] == method


@pytest.mark.parametrize(
    ("method", "path", "given"),
    [
        ("TRACE", "/items", {}),
        ("GET", "/logout/7", {}),
        ("HEAD", "/logout/7", {}),
        ("GET", "/logout/7/", {}),
        ("GET", "//logout//7", {}),
        ("GET", "/%6cogout/7", {}),
        ("GET", "/LOGOUT/7", {}),
        ("GET", "/logout;a=b/7", {}),
        ("GET", "/logout/7.json", {}),
        ("POST", "/orders", {"headers": {"x-http-method-override": "GET"}}),
        ("POST", "//search", {}),
        ("DELETE", "/orders", {"headers": {"x-http-method-override": "GET"}}),
    ],
)
async def test_what_may_write_is_refused_without_allow_writes(closed, method, path, given):
    assert (await closed.ask(method, path, **given)).status_code == 403
    assert closed.sent == []


@pytest.mark.parametrize("path", ["/a/%2e%2e/b", "/a/%252e%252e/b", "/a/..;x/b", "/a/%2e%2e%2fb", "/a%5c..%5cb"])
async def test_an_address_that_leads_elsewhere_is_refused(shop, path):
    assert (await shop.ask("GET", path)).status_code == 400
    assert shop.sent == []


async def test_a_write_in_disguise_is_that_write(shop):
    headers = KEY | {"x-http-method-override": "DELETE", "x-rewrite-url": "/elsewhere"}
    made = await shop.ask(headers=headers, content=b"")
    assert (made.status_code, shop.sent[0][0]) == (200, "POST"), "it passes on as it came"
    assert "x-rewrite-url" not in shop.sent[0][2]
    assert (await shop.ask("DELETE", headers=KEY)).headers["x-gecko-replayed"] == "true"
    assert "x-gecko-replayed" not in (await shop.ask(headers=KEY)).headers
    history = (await shop.client.get("/_gecko/sessions/default/history")).json()["history"]
    assert [step["call"]["name"] for step in history] == ["clearOrders", "placeOrder"]
    several = await shop.ask(path="/orders?_method=PUT", headers=headers)
    assert several.status_code == 400


# as it is on the wire ---------------------------------------------------------------------------------


@contextmanager
def raw(client):
    """A function that sends bytes and returns the status and the lower-case headers of the answer."""

    def send(text):
        with socket.create_connection((client.base_url.host, client.base_url.port), 20) as connection:
            connection.sendall(text.replace("\n", "\r\n").encode())
            content = b"".join(iter(lambda: connection.recv(65536), b"")).decode().lower()
        return content.split(" ")[1], content.partition("\r\n\r\n")[0]

    with client:
        yield send


def test_chunks_absolute_targets_and_unknown_methods(tmp_path):
    place = Place(tmp_path)
    try:
        _, client = place.start()
        order = json.dumps({"sku": "TEA", "quantity": 1})
        head = "Host: 127.0.0.1\nConnection: close\nContent-Type: application/json\nIdempotency-Key: k-1\n"
        whole = f"{head}Content-Length: {len(order)}\n\n{order}"
        chunks = f"{head}Transfer-Encoding: chunked\n\n5\n{order[:5]}\n{len(order) - 5:x}\n{order[5:]}\n0\n\n"
        with raw(client) as send:
            assert send(f"POST /orders HTTP/1.1\n{chunks}")[0] == "200"
            assert "x-gecko-replayed" in send(f"POST /orders HTTP/1.1\n{whole}")[1]
            absolute = send(f"POST http://127.0.0.1/orders HTTP/1.1\n{whole}")
            assert absolute[0] == "404" or "x-gecko-replayed" in absolute[1]
            for method in ("post", "PURGE", "LOCK", "PoSt"):
                assert send(f"{method} /orders HTTP/1.1\n{whole}")[0] in ("400", "405")
            assert send(f"POST /orders HTTP/1.1\n{whole.replace('Idempotency', 'iDEMPOTENCY')}")[0] == "200"
        assert len(place.sent) == 1
    finally:
        place.close()
