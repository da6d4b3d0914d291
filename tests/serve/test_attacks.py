"""What a server on loopback must refuse, and what goes on all the while."""

import pytest

from gecko_graph import Toolkit
from gecko_graph.scenario import read_toolkit

from .conftest import EXAMPLES, client_of, shop, world_of

DEEP = b"[" * 10_000 + b"]" * 10_000


async def test_what_a_foreign_page_or_a_rebound_name_asks_is_refused(client):
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "["):
        assert (await client.get("/products", headers={"host": host})).status_code == 403
    for origin in ("https://evil.example", "null", "http://localhost:1", "http://localhost@evil.example"):
        answer = await client.post("/_gecko/sessions", json={}, headers={"origin": origin})
        assert answer.status_code == 403
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert (await client.get("/session-id", headers={"sec-fetch-site": "cross-site"})).status_code == 403
    assert await client.sessions.list() == []
    assert (await client.get("/products", headers={"origin": "http://localhost"})).status_code == 200


async def test_no_token_and_a_wrong_one():
    case = shop()
    client = client_of(world_of(case.tools, case.state), token="s3same", hosts=())
    for headers in ({}, {"x-gecko-token": "s3sam"}, {"x-gecko-token": b"\xe9"}, {"authorization": "Bearer s3same"}):
        assert (await client.get("/products", headers=headers)).status_code == 401
    assert (await client.get("/products", headers={"x-gecko-token": "s3same"})).status_code == 200
    bearer = {"authorization": "Bearer s3same"}
    assert (await client.get("/_gecko/sessions", headers=bearer)).status_code == 200
    assert (await client.get("/_gecko/sessions/../../products", headers=bearer)).status_code in (401, 404)


@pytest.mark.parametrize("chunked", [True, False])
async def test_a_huge_body(client, chunked):
    async def chunks():
        for _ in range(11):
            yield b"x" * 100_000

    for path in ("/_gecko/sessions", "/orders/order-2/cancellation"):
        content = chunks() if chunked else b"x" * 1_100_000
        assert (await client.post(path, content=content)).status_code == 413


@pytest.mark.parametrize("path", ["/_gecko/sessions", "/orders/order-2/cancellation", "/set-session-state"])
async def test_ten_thousand_levels(client, path):
    answer = await client.post(path, content=DEEP, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    "path",
    ["/_gecko/../../etc/passwd", "/_gecko/%2e%2e/%2e%2e/etc/passwd", "/s/..%2f..%2fetc/passwd", "/_gecko/page.html"],
)
async def test_traversal(client, path):
    assert (await client.get(path)).status_code in (404, 422)


@pytest.mark.parametrize("name", ["../x", "a/b", "", "x" * 81, "a\nb", ".hidden", {"x": 1}])
async def test_names_of_sessions_that_are_paths(client, name):
    assert (await client.post("/_gecko/sessions", json={"id": name})).status_code == 422


async def test_a_read_that_was_not_opened_is_not_made():
    made = []

    def look(at: str) -> str:
        """Look."""
        made.append(at)
        return "real"

    client = client_of(world_of(Toolkit.from_tools([look])))
    answer = await client.post("/look", json={"at": "x"})
    assert answer.headers["x-gecko-simulated"] == "true"
    assert made == []


async def test_an_error_shows_no_stack_and_no_secret(client, monkeypatch, capsys):
    async def fail(*_):
        raise RuntimeError("sk-secret-key /home/someone")

    monkeypatch.setattr(client.sessions, "call", fail)
    answer = await client.get("/products")
    assert answer.status_code == 500
    assert not [word for word in ("secret", "Traceback") if word in answer.text + capsys.readouterr().err]
    monkeypatch.undo()
    assert (await client.get("/products")).status_code == 200


async def test_an_error_names_no_file_of_the_server():
    toolkit = read_toolkit(str(EXAMPLES / "shop" / "shop.openapi.yaml"))
    async with client_of(world_of(toolkit)) as client:
        answer = await client.get("/products")  # a contract that needs a state, which this world has not
    assert answer.status_code == 400
    assert "#/paths/" in answer.text
    assert "openapi.yaml" not in answer.text
