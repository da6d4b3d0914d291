"""Idempotency keys of HTTP tools, and whose word an effect is."""

from __future__ import annotations

import json

import pytest

from gecko_graph.errors import InDoubt, ToolkitError
from gecko_graph.tools import Toolkit
from gecko_graph.tools.real import as_answer
from tests.tools.http_server import as_json, serving
from tests.tools.small_documents import document


@pytest.fixture
def here():
    with serving() as here:
        yield here


PAY = {
    "operationId": "pay",
    "parameters": [
        {"name": "Request-Id", "in": "header"},
        {"name": "X-Idempotency-Key", "in": "header", "required": True},
    ],
    "requestBody": {
        "content": {
            "application/json": {
                "schema": {"type": "object", "properties": {"key": {}, "sum": {}}, "required": ["key"]}
            }
        }
    },
    "responses": {},
}


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        (None, lambda asked: asked.header("x-idempotency-key")),
        ({"pay": "header:Request-Id"}, lambda asked: asked.header("request-id")),
        ({"pay": "key"}, lambda asked: json.loads(asked.body)["key"]),
    ],
)
def test_an_idempotency_key_is_no_argument_and_travels(here, said, sent):
    toolkit = Toolkit.from_openapi(document({"/pay": {"post": PAY}}), server=here.url, idempotency=said)
    tool = toolkit["pay"]
    hidden = {None: "X-Idempotency-Key", "header:Request-Id": "Request-Id", "key": "key"}[said and said["pay"]]
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
        Toolkit.from_tools(read, effects={"pay": "write"})["pay"].real()
    here.answer = lambda asked: as_json({})
    plain = Toolkit.from_openapi(document({"/pay": {"post": PAY}}), server=here.url)
    tool = Toolkit.from_tools(plain, idempotency={"pay": "header:Request-Id"})["pay"]
    tool.real(sum=3, **{tool.key_argument: "k-1"})
    assert here.asked[-1].header("request-id") == "k-1"
    assert json.loads(here.asked[-1].body) == {"sum": 3}


def test_a_header_for_the_key_of_a_function_is_refused():
    def ask() -> str:
        """Ask."""
        return "yes"

    with pytest.raises(ToolkitError, match="called without headers"):
        Toolkit.from_tools([ask], idempotency={"ask": "header:Key"})


def test_an_unknown_key_argument_is_refused():
    with pytest.raises(ToolkitError, match="'kee'"):
        Toolkit.from_openapi(document({"/pay": {"post": PAY}}), idempotency={"pay": "kee"})
    with pytest.raises(ToolkitError, match="'pya'"):
        Toolkit.from_openapi(document({"/pay": {"post": PAY}}), idempotency={"pya": "key"})


def test_a_function_takes_a_key_too():
    def pay(amount: float, key: str = "") -> str:
        """Pay."""
        return f"{amount} {key}"

    tool = Toolkit.from_tools([pay], idempotency={"pay": "key"})["pay"]
    assert set(tool.parameters["properties"]) == {"amount"}
    assert tool.real(amount=1, **{tool.key_argument: "k"}) == "1 k"


def test_whose_word_an_effect_is():
    paths = {
        "/a": {"get": {"operationId": "a", "responses": {}}},
        "/b": {"post": {"operationId": "b", "responses": {}}},
        "/c": {"post": {"operationId": "c", "responses": {}, "x-effect": "read"}},
        "/d": {"get": {"operationId": "d", "responses": {}, "x-effect": "unknown"}},
        "/e": {"post": {"operationId": "e", "responses": {}, "x-contract": {}}},
    }
    toolkit = Toolkit.from_openapi(document(paths))
    assert [tool.name for tool in toolkit if tool.stated] == ["a", "c", "e"]
