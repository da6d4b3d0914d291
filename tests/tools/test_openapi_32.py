"""OpenAPI 3.2: what it adds to documents, and how its calls travel."""

import json

import httpx
import pytest

from gecko_graph import Toolkit
from gecko_graph.tools.openapi.request import build_request
from gecko_graph.tools.openapi.request_reader import read_request
from tests.tools.small_documents import document

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
FILTER = {"type": "object", "properties": {"name": TEXT, "ages": {"type": "array", "items": WHOLE}}}


def load(paths, *, version="3.2.0", **root):
    return Toolkit.from_openapi(document(paths, version=version, **root))


def answers(schema, *, media="application/json", key="schema", **more):
    return {"responses": {"200": {"description": "ok", "content": {media: {key: schema}}}}, **more}


def sent_and_read(toolkit, name, args):
    request = build_request(toolkit[name], "https://a.example", args, extra={})
    assert read_request(toolkit[name], "", request) == args
    return request


@pytest.mark.parametrize("version", ["3.1.7", "3.2.0", "3.10.0"])
def test_a_document_whose_number_alone_differs_is_read(version):
    assert load({"/a": {"get": answers(TEXT)}}, version=version)["get_a"].result == TEXT


def test_the_method_query_reads_and_others_are_not_known():
    body = {"requestBody": {"content": {"application/json": {"schema": FILTER}}}}
    query = {"operationId": "find", **answers({"type": "array", "items": TEXT}), **body}
    others = {"COPY": {"operationId": "copy", **answers(TEXT)}, "LINK": 7}
    toolkit = load({"/p": {"query": query, "additionalOperations": others}})
    assert toolkit.names == ("find", "copy")
    assert (toolkit["find"].effect, toolkit["copy"].effect) == ("read", None)
    assert sent_and_read(toolkit, "find", {"name": "a", "ages": [1]}).method == "QUERY"
    assert sent_and_read(toolkit, "copy", {}).method == "COPY"
    assert "additionalOperations/LINK: must be an object" in toolkit.broken[0].message
    back = Toolkit.from_openapi(toolkit.to_openapi())
    assert [(one.name, one.binding) for one in back] == [(one.name, one.binding) for one in toolkit]


@pytest.mark.parametrize(("media", "args", "query"), [
    ("application/x-www-form-urlencoded", {"f": {"name": "a b", "ages": [1, 2]}}, "name=a%20b&ages=1&ages=2"),
    ("application/json", {"f": {"name": "é", "ages": []}}, None),
    ("application/json", {"f": {}}, "%7B%7D"),
])  # fmt: skip
def test_a_whole_query_is_one_argument(media, args, query):
    whole = {"name": "f", "in": "querystring", "content": {media: {"schema": FILTER}}}
    toolkit = load({"/p": {"get": answers(TEXT, parameters=[whole])}})
    assert toolkit["get_p"].parameters["properties"]["f"]["properties"].keys() == FILTER["properties"].keys()
    request = sent_and_read(toolkit, "get_p", args)
    assert query is None or request.url.query.decode() == query


@pytest.mark.parametrize("media", ["application/jsonl", "application/x-ndjson", "application/json-seq"])
def test_a_sequence_is_a_list_of_its_items(media):
    body = {"requestBody": {"required": True, "content": {media: {"itemSchema": WHOLE}}}}
    toolkit = load({"/p": {"post": answers(WHOLE, media=media, key="itemSchema", **body)}})
    tool = toolkit["post_p"]
    assert tool.result == {"type": "array", "items": WHOLE}
    assert toolkit.check({"name": "post_p", "args": {"body": ["x"]}}, {})
    request = sent_and_read(toolkit, "post_p", {"body": [1, 2]})
    assert request.headers["content-type"] == media
    assert [json.loads(line.strip("\x1e")) for line in request.content.decode().strip().split("\n")] == [1, 2]
    transport = httpx.MockTransport(lambda sent: httpx.Response(200, content=sent.content, headers=sent.headers))
    server = {"server": "https://a.example", "client": httpx.Client(transport=transport)}
    real = Toolkit.from_openapi({**tool.source.document, "openapi": "3.2.0"}, **server)["post_p"].real
    assert real(body=[3, 4]) == [3, 4]


def test_a_document_that_says_its_own_address_refers_to_itself_by_it():
    own = "https://a.example/api/openapi.json"
    references = [f"{own}#/components/schemas/A", "openapi.json#/components/schemas/A", "#/components/schemas/A"]
    for reference in references:
        paths = {"/a": {"get": answers({"$ref": reference})}}
        assert load(paths, **{"$self": own}, components={"schemas": {"A": WHOLE}})["get_a"].result == WHOLE


def test_tags_have_parents_and_media_types_may_be_shared():
    tags = [{"name": "all"}, {"name": "flights", "parent": "all"}, {"name": "domestic", "parent": "flights"}]
    paths = {"/a": {"get": answers(TEXT, tags=["domestic"])}, "/b": {"get": answers(TEXT, tags=["all"])}}
    toolkit = load(paths, tags=tags)
    assert toolkit["get_a"].tags == ("domestic", "flights", "all")
    assert toolkit.select(tags="flights").names == ("get_a",)
    assert toolkit.broken == ()
    shared = {"mediaTypes": {"M": {"schema": WHOLE, "examples": {"one": {"dataValue": 3}}}}}
    answer = {"200": {"description": "ok", "content": {"application/json": {"$ref": "#/components/mediaTypes/M"}}}}
    tool = load({"/a": {"get": {"responses": answer}}}, components=shared)["get_a"]
    assert tool.result == WHOLE
    assert [one.result for one in tool.examples] == [3]
