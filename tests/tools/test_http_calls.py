"""Calls over loopback: answers, doubts, redirects, and the key that makes a write once."""

import gzip
import json
import socket
import threading
import time
from contextlib import suppress

import httpx
import pytest
from langchain_core.messages import ToolMessage

from gecko_graph.errors import InDoubt, ToolkitError
from gecko_graph.tools import Tool, Toolkit
from gecko_graph.tools.openapi import client as client_module
from gecko_graph.tools.real import as_answer
from tests.tools.http_server import as_json, serving
from tests.tools.small_documents import body, document


@pytest.fixture
def here():
    with serving() as here:
        yield here


OK = {"200": {"description": "", "content": {"application/json": {"schema": {"type": "object"}}}}}
KEY = {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}}
ITEM = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
PATHS = {
    "/orders/{id}": {"get": {"operationId": "show", "responses": OK}},
    "/orders": {"post": {"operationId": "order", "parameters": [KEY], **body(ITEM), "responses": OK}},
}


def shop(here, **more):
    return Toolkit.from_openapi(document(PATHS), server=f"{here.url}/api", **more)


@pytest.fixture
def quick():
    with httpx.Client(timeout=0.3, trust_env=False) as client:
        yield client


def error_of(value):
    assert isinstance(value, ToolMessage)
    answer = as_answer(value)
    assert answer.status == "error"
    return answer.result


def test_a_call_is_one_request_and_its_json_the_result(here):
    here.answer = lambda asked: as_json({"ok": [1, None]}, 201)
    toolkit = shop(here)
    assert toolkit["order"].real(item="mug", idempotency_key="k-1") == {"ok": [1, None]}
    (asked,) = here.asked
    assert (asked.method, asked.target, json.loads(asked.body)) == ("POST", "/api/orders", {"item": "mug"})
    assert asked.header("Idempotency-Key") == "k-1"
    assert "Idempotency-Key" not in toolkit["order"].parameters["properties"]
    key = toolkit["order"].idempotency, toolkit["order"].key_argument
    assert key == ("header:Idempotency-Key", "idempotency_key")


@pytest.mark.parametrize(("headers", "content", "result"), [
    ({}, b"[1]", [1]),
    ({"content-type": "text/plain; charset=latin-1"}, "grün".encode("latin-1"), "grün"),
    ({"content-type": "image/png"}, b"\x89PNG", {"type": "image", "base64": "iVBORw==", "mime_type": "image/png"}),
    ({"content-type": "application/pdf"}, b"%PDF",
     {"type": "file", "base64": "JVBERg==", "mime_type": "application/pdf"}),
    ({"content-type": "application/zip"}, b"PK\x03", {"content_type": "application/zip", "bytes": 3}),
    ({"content-type": "application/json"}, b"<html>", {"content_type": "application/json", "bytes": 6}),
    ({"content-type": "application/json"}, b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
    ({"content-type": "application/json", "content-encoding": "gzip"}, gzip.compress(b"[2]", mtime=0), [2]),
    ({"content-type": "application/json"}, b"", None),
])  # fmt: skip
def test_results_by_content_type(here, headers, content, result):
    here.answer = lambda asked: (200, headers, content)
    assert shop(here)["show"].real(id=1) == result


@pytest.mark.parametrize("tool", ["show", "order"])
def test_a_refusal_is_an_error_with_its_body(here, tool):
    here.answer = lambda asked: as_json({"message": "sold out"}, 429, **{"Retry-After": "3"})
    args = {"id": 1} if tool == "show" else {"item": "mug"}
    error = shop(here)[tool].real(**args)
    assert error_of(error) == {"message": "sold out"}
    said = {"http_status": 429, "body": {"message": "sold out"}, "retry_after": 3}
    assert error.additional_kwargs["http"] == said


def bomb(asked):
    return 200, {"content-encoding": "gzip", "content-type": "text/plain"}, gzip.compress(b"0" * 60_000_000, 1)


UNKNOWN = {
    "500 after or before": lambda asked: as_json({"error": "no"}, 500),
    "lost": lambda asked: None,
    "cut": lambda asked: (200, {"content-length": "100"}, b"{"),
    "too large": lambda asked: as_json("x" * 6_000_000),
    "bomb": bomb,
    "broken coding": lambda asked: (200, {"content-encoding": "gzip"}, b"not gzip"),
    "moved": lambda asked: (302, {"location": "/elsewhere"}, b""),
    "around": lambda asked: (307, {"location": "/api/orders"}, b""),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_a_write_without_a_usable_answer_is_in_doubt_and_a_read_has_failed(here, what):
    here.answer = UNKNOWN[what]
    toolkit = shop(here)
    with pytest.raises(InDoubt, match=r"POST /orders may have taken effect") as caught:
        toolkit["order"].real(item="mug")
    assert caught.value.__context__ is None
    if what != "moved":
        assert error_of(toolkit["show"].real(id=1))


def drip(listening):
    connection, _ = listening.accept()
    with connection:
        connection.recv(10_000)
        with suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
            for _ in range(1000):
                connection.sendall(b"x")
                time.sleep(0.02)


def at(listening, **more):
    return Toolkit.from_openapi(document(PATHS), server=f"http://127.0.0.1:{listening.getsockname()[1]}", **more)


def test_a_server_that_does_not_answer_or_drips_or_is_not_there(quick):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        toolkit = at(listening, client=quick)
        with pytest.raises(InDoubt, match="no answer in time"):
            toolkit["order"].real(item="mug")
        assert "no answer in time" in error_of(toolkit["show"].real(id=1))["error"]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=[listening], daemon=True)
        thread.start()
        assert "not complete in time" in error_of(at(listening, client=quick)["show"].real(id=1))["error"]
        thread.join(10)
    with socket.create_server(("127.0.0.1", 0)) as gone:
        toolkit = at(gone)
    error = {"error": "POST /orders: cannot reach the server (ConnectError)"}
    assert error_of(toolkit["order"].real(item="mug")) == error


def redirecting(here, status, location):
    moved = status, {"location": location}, b""
    there = {"/api/orders/1": moved, "/api/orders": moved}
    here.answer = lambda asked: there.get(asked.target) or as_json({"method": asked.method, "got": asked.body.decode()})


@pytest.mark.parametrize("status", [301, 303, 308])
def test_a_read_follows_within_the_origin(here, status):
    redirecting(here, status, "/new?a=1")
    assert shop(here)["show"].real(id=1) == {"method": "GET", "got": ""}


@pytest.mark.parametrize(("status", "method", "got"), [(303, "GET", ""), (307, "POST", "mug")])
def test_a_write_follows_where_its_meaning_is_kept(here, status, method, got):
    redirecting(here, status, f"{here.url}/new")
    answer = shop(here)["order"].real(item="mug", idempotency_key="k")
    assert answer["method"] == method
    assert got in answer["got"]
    assert here.asked[-1].header("idempotency-key") == "k"


def test_a_write_that_was_accepted_and_whose_result_is_missing_is_in_doubt(here):
    here.answer = lambda asked: (303, {"location": "/new"}, b"") if asked.method == "POST" else as_json(None, 404)
    with pytest.raises(InDoubt, match="404"):
        shop(here)["order"].real(item="mug")


@pytest.mark.parametrize(
    "where", ["http://user:pw@{here}/new", "https://{here}/new", "{other}/new", "http://[/", "file:///etc"]
)
def test_no_redirect_leads_elsewhere(here, where):
    with serving() as other:
        location = where.format(here=here.url.removeprefix("http://"), other=other.url)
        redirecting(here, 307, location)
        assert error_of(shop(here)["show"].real(id=1))["http_status"] == 307
        assert error_of(shop(here)["order"].real(item="mug"))["http_status"] == 307
        assert other.asked == []


def test_no_proxy_and_no_cookie_of_an_earlier_answer(here, monkeypatch):
    with serving() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        client_module.default_client.cache_clear()
        here.answer = lambda asked: as_json({}, **{"Set-Cookie": "session=stolen; Path=/"})
        toolkit = shop(here)
        for _ in range(2):
            assert toolkit["show"].real(id=1) == {}
        assert proxy.asked == []
    client_module.default_client.cache_clear()
    assert [asked.header("cookie") for asked in here.asked] == [None, None]


PAY = {
    "operationId": "pay",
    "parameters": [
        {"name": "Request-Id", "in": "header"},
        {"name": "X-Idempotency-Key", "in": "header", "required": True},
    ],
    **body({"type": "object", "properties": {"key": {}, "sum": {}}, "required": ["key"]}),
    "responses": {},
}


@pytest.mark.parametrize(("said", "sent"), [
    (None, lambda asked: asked.header("x-idempotency-key")),
    ("header:Request-Id", lambda asked: asked.header("request-id")),
    ("key", lambda asked: json.loads(asked.body)["key"]),
])  # fmt: skip
def test_an_idempotency_key_is_no_argument_and_travels(here, said, sent):
    toolkit = Toolkit.from_openapi(document({"/pay": {"post": PAY}}), server=here.url)
    toolkit = toolkit.declare(Tool("pay", idempotency=said))
    tool = toolkit["pay"]
    hidden = {None: "X-Idempotency-Key", "header:Request-Id": "Request-Id", "key": "key"}[said]
    assert hidden not in tool.parameters["properties"]
    assert hidden not in tool.parameters.get("required", [])
    tool.real(sum=3, **{tool.key_argument: "k-1"})
    assert sent(here.asked[0]) == "k-1"
    (back,) = Toolkit.from_openapi(toolkit.to_openapi())
    assert (back.idempotency, back.parameters) == (tool.idempotency, tool.parameters)


def test_what_is_stated_later_of_a_tool_holds_for_its_real_function(here):
    read = Toolkit.from_openapi(document({"/pay": {"get": {"operationId": "pay", "responses": {}}}}), server=here.url)
    here.answer = lambda asked: as_json({}, 500)
    assert as_answer(read["pay"].real()).status == "error"
    with pytest.raises(InDoubt):
        read.declare(Tool("pay", effect="write"))["pay"].real()
    here.answer = lambda asked: as_json({})
    plain = Toolkit.from_openapi(document({"/pay": {"post": PAY}}), server=here.url)
    tool = plain.declare(Tool("pay", idempotency="header:Request-Id"))["pay"]
    tool.real(sum=3, **{tool.key_argument: "k-1"})
    assert here.asked[-1].header("request-id") == "k-1"
    assert json.loads(here.asked[-1].body) == {"sum": 3}
    for name, key, unknown in (("pay", "kee", "'kee'"), ("pya", "key", "'pya'")):
        with pytest.raises(ToolkitError, match=unknown):
            plain.declare(Tool(name, idempotency=key))


def test_whose_word_an_effect_is():
    said = [("get", {}), ("post", {}), ("post", {"x-effect": "read"}), ("get", {"x-effect": "unknown"}),
            ("post", {"x-contract": {}})]  # fmt: skip
    paths = {f"/{at}": {method: {"operationId": f"t{at}", **more}} for at, (method, more) in enumerate(said)}
    toolkit = Toolkit.from_openapi(document(paths))
    assert [tool.name for tool in toolkit if tool.stated] == ["t0", "t2", "t4"]
