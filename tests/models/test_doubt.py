"""Which errors say that nothing was done; whatever else a write raises leaves it open."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import ssl
import types
import urllib.error

import httpx
import pytest
from langchain_core.tools import StructuredTool, tool
from pydantic import BaseModel, TypeAdapter

from gecko_graph import Refused, Toolkit
from gecko_graph.errors import GeckoError, InDoubt, NotMade, TaskError
from gecko_graph.models.answer import aperform, perform
from gecko_graph.models.ask import FunctionCall
from gecko_graph.models.failure import is_in_doubt, is_lost

ASKED = httpx.Request("POST", "http://x")
LEFT_OPEN = {
    "InDoubt": InDoubt("sent"), "another mistake of a user": TaskError("in a tool"), "GeckoError": GeckoError("so"),
    "httpx.ReadTimeout": httpx.ReadTimeout("t"), "httpx.RemoteProtocolError": httpx.RemoteProtocolError("t"),
    "httpx.DecodingError": httpx.DecodingError("x"), "httpx.TooManyRedirects": httpx.TooManyRedirects("x"),
    "json.JSONDecodeError": json.JSONDecodeError("x", "", 0), "KeyError": KeyError("id"), "TypeError": TypeError("x"),
    "ConnectionResetError": ConnectionResetError(), "OSError": OSError(5, "x"), "ssl.SSLError": ssl.SSLError("EOF"),
    "urllib URLError(timeout)": urllib.error.URLError(TimeoutError()), "URLError(text)": urllib.error.URLError("x"),
    "URLError(ssl)": urllib.error.URLError(ssl.SSLError("EOF")), "CancelledError": asyncio.CancelledError(),
    "sqlite3": sqlite3.OperationalError("disk I/O error"), "SystemExit": SystemExit(1),
    "a group": ExceptionGroup("g", [Refused("no"), ValueError("x")]),
}  # fmt: skip
NOTHING_DONE = {
    "Refused": Refused("no"), "NotMade": NotMade("no credential"), "ConnectionRefusedError": ConnectionRefusedError(),
    "gaierror": socket.gaierror("x"), "URLError(refused)": urllib.error.URLError(ConnectionRefusedError()),
    "httpx.ConnectError": httpx.ConnectError("t"), "httpx.ConnectTimeout": httpx.ConnectTimeout("t"),
    "httpx.PoolTimeout": httpx.PoolTimeout("t"), "httpx.UnsupportedProtocol": httpx.UnsupportedProtocol("t"),
    "httpx.InvalidURL": httpx.InvalidURL("x"), "a group": ExceptionGroup("g", [Refused("no"), NotMade("no")]),
}  # fmt: skip


def test_whatever_is_raised_leaves_it_open_but_a_refusal_and_a_connection_that_never_opened():
    assert [name for name, error in LEFT_OPEN.items() if not is_in_doubt(error)] == []
    assert [name for name, error in NOTHING_DONE.items() if is_in_doubt(error)] == []


@pytest.mark.parametrize(("module", "kind", "in_doubt"), [
    ("requests", "HTTPError", True), ("requests", "ConnectionError", True), ("requests", "ConnectTimeout", False),
    ("urllib3.exceptions", "ProtocolError", True), ("aiohttp", "ClientPayloadError", True),
    ("psycopg", "OperationalError", True),
])  # fmt: skip
def test_the_clients_that_may_be_installed(module, kind, in_doubt):
    assert is_in_doubt(getattr(pytest.importorskip(module), kind)("x")) is in_doubt


def of_httpx(status):
    return httpx.HTTPStatusError("s", request=ASKED, response=httpx.Response(status, request=ASKED))


def of_urllib(status):
    return urllib.error.HTTPError("http://x", status, "s", None, None)


def of_requests(status):
    requests = pytest.importorskip("requests")
    answer = requests.Response()
    answer.status_code = status
    return requests.HTTPError("s", response=answer)


def of_openai(status):
    openai = pytest.importorskip("openai")
    return openai.APIStatusError("s", response=httpx.Response(status, request=ASKED), body=None)


@pytest.mark.parametrize("made", [of_httpx, of_urllib, of_requests, of_openai])
def test_a_status_that_a_client_raises(made):
    refused, left_open = (400, 401, 404, 422, 429), (408, 409, 425, 302, 500, 502, 504)
    assert [status for status in (*refused, *left_open) if is_in_doubt(made(status))] == [*left_open]


def test_a_look_alike_is_taken_for_nothing():
    for name in ("HTTPStatusError", "HTTPError", "ClientResponseError", "APIStatusError"):
        answer = types.SimpleNamespace(status_code=404)
        fields = {"response": answer, "code": 404, "status": 404, "status_code": 404, "__module__": "httpx"}
        assert is_in_doubt(type(name, (Exception,), fields)("of my own"))
    assert is_in_doubt(type("ConnectError", (Exception,), {"__module__": "httpx"})())


async def apay(amount: int) -> str:
    """Pay."""
    return "paid" + amount


class Desk:
    def pay(self, amount: int) -> str:
        """Pay."""
        return "paid" + amount

    async def __call__(self, amount: int) -> str:
        return "paid" + amount


@pytest.mark.parametrize("function", [apay, Desk().pay], ids=["coroutine", "method"])
async def test_arguments_that_a_function_does_not_take_are_no_doubt_and_an_error_inside_is_one(function):
    for do in (perform, aperform):
        for kwargs in ({"sum": 1}, {}, {"amount": 1}):
            done = do(FunctionCall(function=function, kwargs=kwargs))
            done = await done if asyncio.iscoroutine(done) else done
            assert done.failure.startswith("TypeError")
            assert done.in_doubt is ("amount" in kwargs)
    assert perform(FunctionCall(function=Desk(), kwargs={})).in_doubt, "what cannot be told is open"
    assert perform(FunctionCall(function=int, kwargs={"x": 1})).in_doubt, "C has no frames"


class Inner(BaseModel):
    amount: int


@tool
def send(amount: int) -> str:
    """Send."""
    if amount == 1:
        TypeAdapter(Inner).validate_python({"amount": "many"})
    if amount == 2:
        return inner.invoke({"amount": "many"})
    return "sent"


@tool
async def asend(amount: int) -> str:
    """Send."""
    return await inner.ainvoke({"amount": "many"}) if amount == 2 else Inner(amount="many")


@tool
def inner(amount: int) -> str:
    """Send on."""
    return "sent"


def failed(real, **kwargs):
    done = perform(FunctionCall(function=real, kwargs=kwargs))
    assert done.failure.startswith("ValidationError")
    return done.in_doubt


def test_arguments_that_a_langchain_tool_does_not_take_are_no_doubt_and_a_fault_inside_is_one():
    for tools in ([send], [asend]):
        (spec,) = Toolkit.from_tools(tools)
        assert not failed(spec.real, amount="much")
        assert failed(spec.real, amount=1)
        assert failed(spec.real, amount=2), "another tool's arguments, when this one had begun"
    chained = StructuredTool.from_function(lambda amount: send.invoke({"amount": 2}), name="chain", description="d")
    assert failed(Toolkit.from_tools([chained])["chain"].real, amount=1)


def test_a_read_is_made_again_where_no_answer_came_and_not_where_it_failed():
    lost = [httpx.ReadTimeout("t"), httpx.ConnectError("t"), TimeoutError(), ConnectionResetError(), InDoubt("x")]
    assert all(map(is_lost, [*lost, ExceptionGroup("g", lost)]))
    assert not any(map(is_lost, [KeyError("id"), Refused("no"), of_httpx(500), ExceptionGroup("g", [KeyError()])]))
