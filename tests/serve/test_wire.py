"""What clients of a served document meet: its own error schema, booleans as they write them, a used port."""

import socket

import pytest

from gecko_graph import Toolkit
from gecko_graph.cli import main
from tests.serve.conftest import client_of, world_of
from tests.tools.small_documents import body, document

ERROR = {"type": "object", "required": ["message"], "properties": {"message": {"type": "string"}}}
CLOSED = {**ERROR, "additionalProperties": False}
FLAG = {"name": "all", "in": "query", "schema": {"type": "boolean"}}
LIMIT = {"name": "limit", "in": "query", "schema": {"type": "integer"}}


def answer(schema):
    return {"description": "", "content": {"application/json": {"schema": schema}}}


def client(responses):
    listing = {"operationId": "list", "parameters": [FLAG, LIMIT], "responses": {"200": answer({}), **responses}}
    making = {"operationId": "make", "responses": {"201": answer({}), **responses}, **body(CLOSED)}
    paths = {"/things": {"get": listing, "post": making}}
    return client_of(world_of(Toolkit.from_openapi(document(paths))))


@pytest.mark.parametrize(
    ("responses", "status"),
    [
        ({"400": answer(ERROR), "500": answer(ERROR)}, 400),
        ({"422": answer(CLOSED), "400": answer({"type": "string"})}, 422),
        ({"4XX": answer(CLOSED)}, 422),
        ({"default": answer(ERROR)}, 422),
        ({"500": answer(CLOSED)}, 422),
    ],
)
async def test_a_refusal_has_the_documents_error_schema(responses, status):
    web = client(responses)
    sent = [
        await web.get("/things", params={"limit": "many"}),
        await web.get("/things", params={"nosuch": 1}),
        await web.post("/things", content=b"{", headers={"content-type": "application/json"}),
        await web.post("/things", json={"message": 3}),
    ]
    for one in sent:
        assert one.status_code == status
        assert one.headers["content-type"] == "application/json"
        assert isinstance(one.json()["message"], str)
    assert "limit" in sent[0].json()["message"]
    assert "nosuch" in sent[1].json()["message"]


async def test_booleans_as_clients_write_them_no_error_schema_and_bytes_that_are_no_text():
    for word in ("0", "1", "true", "True", "false", "False"):
        assert (await client({}).get("/things", params={"all": word})).status_code == 200
    refused = await client({"404": {"description": ""}}).get("/things", params={"limit": "many"})
    assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")
    assert refused.json()["complaints"]
    web, json = client({"400": answer(ERROR)}), {"content-type": "application/json"}
    sent = await web.post("/things", content=b'{"message": "caf\xe9"}', headers=json)
    assert (sent.status_code, sent.json()["message"]) == (400, "it contains bytes that are not UTF-8")


@pytest.mark.parametrize("allowed", [{}, {"enum": [409, 500]}])
async def test_a_body_that_holds_the_status_holds_the_one_that_is_sent_if_it_may(allowed):
    inner = {**ERROR, "properties": {**ERROR["properties"], "status_code": {"type": "integer", **allowed}}}
    inner["required"] = ["message", "status_code"]
    wrapped = {"type": "object", "required": ["error"], "properties": {"error": inner}}
    refused = await client({"422": answer(wrapped)}).get("/things", params={"limit": "many"})
    told = refused.json()["error"]
    assert (refused.status_code, "limit" in told["message"]) == (422, True)
    assert told["status_code"] == 422 or told["status_code"] in allowed["enum"]


async def test_a_missing_credential_is_refused_in_the_documents_schema():
    paths = {"/x": {"get": {"operationId": "x", "security": [{"key": []}], "responses": {"401": answer(CLOSED)}}}}
    schemes = {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}
    toolkit = Toolkit.from_openapi(document(paths, components={"securitySchemes": schemes}))
    refused = await client_of(world_of(toolkit)).get("/x")
    assert (refused.status_code, [*refused.json()]) == (401, ["message"])
    assert refused.headers["www-authenticate"]


def test_a_used_port_is_one_line(tmp_path, capsys):
    (tmp_path / "api.json").write_text('{"openapi": "3.0.3", "info": {"title": "t", "version": "1"}, "paths": '
                                       '{"/x": {"get": {"operationId": "x", "responses": {}}}}}')  # fmt: skip
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", str(tmp_path / "api.json"), "--port", str(port)]) != 0
    said = capsys.readouterr().err.strip().splitlines()
    assert [line for line in said if not line.startswith("note:")] == said[-1:]
    assert f"--port {port}" in said[-1]
