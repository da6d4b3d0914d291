"""HAR files as browsers, proxies and test tools write them: what was recorded is read, what was not teaches nothing."""

from __future__ import annotations

import base64
import gzip
import json

import pytest

from gecko_graph import Toolkit
from gecko_graph.learning.har import read_har
from gecko_graph.values.observation import BadRows

HOST, JSON, FORM = "https://api.test", "application/json", "application/x-www-form-urlencoded"
FIELDS = {"type": "object", "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}}}
ANSWER = {"responses": {"200": {"description": "ok", "content": {JSON: {"schema": {"type": "object"}}}}}}
TOOLKIT = Toolkit.from_openapi(
    {
        "openapi": "3.0.3",
        "info": {"title": "t", "version": "1"},
        "servers": [{"url": HOST}],
        "paths": {
            "/orders": {
                "get": {"operationId": "listOrders", "parameters": [{"name": "n", "in": "query"}], **ANSWER},
                "head": {"operationId": "countOrders", **ANSWER},
                "post": {"operationId": "placeOrder", "requestBody": {"content": {JSON: {"schema": FIELDS}}}, **ANSWER},
                "delete": {"operationId": "dropAll", "requestBody": {"content": {JSON: {"schema": FIELDS}}}, **ANSWER},
                "put": {"operationId": "fillForm", "requestBody": {"content": {FORM: {"schema": FIELDS}}}, **ANSWER},
                "patch": {"operationId": "wakeUp", **ANSWER},
            }
        },
    }
)
SENT = {"mimeType": JSON, "text": '{"sku":"é"}'}
LENGTH, NONE = {"name": "Content-Length", "value": "12"}, {"name": "content-length", "value": "0"}
TOLD = {"size": 11, "mimeType": JSON, "text": '{"ok":true}'}
NOT_SENT, NOT_TOLD = "the request's body was not recorded", "the answer's content was not recorded"


def read(tmp_path, *entries):
    file = tmp_path / "a.har"
    file.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
    bad = BadRows()
    rows = list(read_har(file, bad, TOOLKIT))
    assert len(rows) + bad.counts.total() == len(entries)
    return rows, dict(bad.counts)


def entry(method="GET", request=None, content=TOLD, at="2026-01-01T00:00:00.000Z", query="", **response):
    asked = {"method": method, "url": f"{HOST}/orders{query}", "headers": [], **(request or {})}
    return {
        "startedDateTime": at,
        "request": asked,
        "response": {"status": 200, "headers": [], "content": content, **response},
    }


REQUESTS = {  # a writer, what it has recorded of a request, and the arguments, or why it teaches nothing
    "Chromium": ("POST", {"bodySize": 12, "postData": SENT}, {"sku": "é"}),
    "Chromium, an empty POST": ("POST", {"bodySize": 0, "headers": [NONE]}, {}),
    "Chromium, a file that was uploaded": ("POST", {"bodySize": 0, "headers": [LENGTH]}, NOT_SENT),
    "Firefox, which counts characters": ("POST", {"bodySize": 11, "postData": {**SENT, "params": []}}, {"sku": "é"}),
    "Firefox, bodies discarded": (
        "POST",
        {"bodySize": 0, "headers": [LENGTH], "postData": {"mimeType": JSON, "params": [], "comment": "not included"}},
        NOT_SENT,
    ),
    "mitmproxy": ("POST", {"bodySize": 12, "headers": [LENGTH], "postData": {**SENT, "params": []}}, {"sku": "é"}),
    "mitmproxy, an empty POST": ("POST", {"bodySize": 0, "postData": {"mimeType": "", "text": "", "params": []}}, {}),
    "mitmproxy, a DELETE": ("DELETE", {"bodySize": 12, "headers": [LENGTH]}, NOT_SENT),
    "mitmproxy, a DELETE without a body": ("DELETE", {"bodySize": 0}, {}),
    "mitmproxy, streamed": (
        "POST",
        {
            "bodySize": 0,
            "headers": [{"name": "Transfer-Encoding", "value": "chunked"}],
            "postData": {"mimeType": JSON, "text": None},
        },
        NOT_SENT,
    ),
    "Playwright, minimal": ("POST", {"bodySize": -1, "headers": [LENGTH], "postData": SENT}, {"sku": "é"}),
    "Playwright, minimal, an empty POST": ("POST", {"bodySize": -1, "headers": [NONE]}, {}),
    "Playwright, minimal, no body in the document": ("PATCH", {"bodySize": -1}, {}),
    "Playwright, omitted": (
        "POST",
        {"bodySize": 12, "postData": {"mimeType": JSON, "text": "", "params": []}},
        NOT_SENT,
    ),
    "Playwright, minimal and omitted": (
        "POST",
        {"bodySize": -1, "postData": {"mimeType": JSON, "text": "", "params": []}},
        NOT_SENT,
    ),
    "Playwright, attached": (
        "POST",
        {"bodySize": 12, "postData": {"mimeType": JSON, "text": "", "params": [], "_file": "00.json"}},
        "the request's body is in another file",
    ),
    "Playwright, a form's fields alone": (
        "PUT",
        {"bodySize": 9, "postData": {"mimeType": FORM, "text": "", "params": [{"name": "sku", "value": "a b"}]}},
        {"sku": "a b"},
    ),
    "Charles, base64": (
        "POST",
        {
            "bodySize": 12,
            "postData": {
                "mimeType": JSON,
                "encoding": "base64",
                "text": base64.b64encode(SENT["text"].encode()).decode(),
            },
        },
        {"sku": "é"},
    ),
    "cut off": ("POST", {"bodySize": 4096, "postData": SENT}, "the request's body was cut off"),
    "cut off within its JSON": (
        "POST",
        {"bodySize": -1, "postData": {**SENT, "text": '{"sku":'}},
        "its JSON is broken",
    ),
    "size unknown": ("POST", {"bodySize": -1}, "it is not known whether the request had a body"),
}


@pytest.mark.parametrize("writer", REQUESTS)
def test_a_request_is_read_as_its_writer_recorded_it(tmp_path, writer):
    method, request, expected = REQUESTS[writer]
    rows, counts = read(tmp_path, entry(method, request))
    assert ([row.args for row in rows] or [*counts]) == [expected]


def compressed(text):
    return len(gzip.compress(text.encode()))


CODED = [{"name": "content-encoding", "value": "gzip"}, {"name": "content-length", "value": str(compressed("{}"))}]
LATIN = [{"name": "content-type", "value": f"{JSON}; charset=iso-8859-1"}]
ANSWERS = {  # a writer, what it has recorded of an answer, and the result, or why it teaches nothing
    "Chromium": (TOLD, {"bodySize": -1}, {"ok": True}),
    "Chromium, evicted": ({"size": 11, "mimeType": JSON}, {"bodySize": 11}, NOT_TOLD),
    "Chromium, base64": ({"size": 2, "mimeType": JSON, "text": "e30=", "encoding": "base64"}, {}, {}),
    "Chromium, compressed": (
        {"size": 2, "mimeType": JSON, "text": "{}", "compression": -20},
        {"bodySize": 22, "headers": CODED},
        {},
    ),
    "Chromium, an empty answer": ({"size": 0, "mimeType": JSON, "text": ""}, {"bodySize": 0}, None),
    "Firefox, bodies left out": (
        {"size": -1, "mimeType": JSON, "comment": "Response bodies are not included."},
        {},
        NOT_TOLD,
    ),
    "Firefox, over its limit": (
        {"size": 2_000_000, "mimeType": "text/plain", "text": "so far"},
        {},
        "the answer's content was cut off",
    ),
    "mitmproxy, whose size is the compressed one": (
        {"size": compressed("{}"), "compression": -20, "mimeType": JSON, "text": "{}"},
        {"headers": CODED},
        {},
    ),
    "mitmproxy, streamed": (
        {"size": 0, "mimeType": JSON, "text": ""},
        {"bodySize": 0, "headers": [{"name": "content-length", "value": "9"}]},
        NOT_TOLD,
    ),
    "Playwright, minimal": ({"size": -1, "mimeType": JSON, "text": "{}"}, {"bodySize": -1}, {}),
    "Playwright, minimal, an empty answer": ({"size": -1, "mimeType": JSON, "text": ""}, {"bodySize": -1}, None),
    "Playwright, omitted, or never read by the page": ({"size": -1, "mimeType": JSON}, {"bodySize": -1}, NOT_TOLD),
    "Playwright, attached": (
        {"size": 2, "mimeType": JSON, "_file": "00.json"},
        {},
        "the answer's content is in another file",
    ),
    "Playwright, 204": ({"size": -1, "mimeType": "x-unknown"}, {"status": 204, "bodySize": 0}, None),
    "Charles, decoded": (
        {"size": 11, "compression": 0, "mimeType": f"{JSON}; charset=utf-8", "text": '{"a":"é"}'},
        {},
        {"a": "é"},
    ),
    "text of another encoding was decoded": (
        {"size": 9, "mimeType": JSON, "text": '{"a":"é"}'},
        {"headers": LATIN},
        {"a": "é"},
    ),
    "Fiddler, over its limit": ({"size": 9_000_000, "mimeType": JSON, "comment": "body was omitted"}, {}, NOT_TOLD),
    "cut off, without a size": (
        {"mimeType": JSON, "text": '{"orders":['},
        {},
        "the answer's JSON is broken or cut off",
    ),
    "a refusal that is cut off": (
        {"mimeType": JSON, "text": '{"error":'},
        {"status": 404},
        "the answer's JSON is broken or cut off",
    ),
    "the header alone": ({"mimeType": JSON}, {"headers": [{"name": "content-length", "value": "9"}]}, NOT_TOLD),
    "nothing": ({}, {}, NOT_TOLD),
}


@pytest.mark.parametrize("writer", ANSWERS)
def test_an_answer_is_read_as_its_writer_recorded_it(tmp_path, writer):
    content, response, expected = ANSWERS[writer]
    rows, counts = read(tmp_path, entry(content=content, **response))
    assert ([row.result for row in rows] or [*counts]) == [expected]


def test_an_answer_to_head_has_no_body_whatever_its_length(tmp_path):
    length = {"name": "content-length", "value": "900"}
    rows, _ = read(tmp_path, entry("HEAD", content={"size": 0, "mimeType": JSON}, headers=[length]))
    assert [row.result for row in rows] == [None]


@pytest.mark.parametrize(
    "begins",
    [
        ["2026-01-01T10:00:00Z", "2026-01-01T10:00:00.25Z", "2026-01-01T10:00:00.500Z"],
        ["2026-01-01T10:00:00.123456788Z", "2026-01-01T10:00:00.123456789Z", "2026-01-01T10:00:00.1234568Z"],
        ["2026-10-25T02:59:00.000+02:00", "2026-10-25T02:01:00.000+01:00"],
        ["2026-01-01T09:59:00.000+0100", "2026-01-01T09:30:00.000Z"],
        ["2026-01-01T23:30:00-05:00", "2026-01-02T04:31:00z", "2026-01-02T10:02:00.5+05:30"],
        ["2026-01-01T10:00:00.999999+00:00", "2026-01-01T10:00:01+00:00", "2026-01-01T10:00:01.000001+00:00"],
        ["2026-01-01T10:00:00,1Z", "2026-01-01 10:00:00.2Z"],
    ],
)
def test_calls_are_in_the_order_of_their_times(tmp_path, begins):
    entries = [entry(query=f"?n={number}", at=at) for number, at in enumerate(begins)]
    for given in (entries, entries[::-1]):
        rows, _ = read(tmp_path, *given)
        assert [str(row.args["n"]) for row in rows] == [str(number) for number in range(len(begins))]


@pytest.mark.parametrize("at", ["", "yesterday", 7, None, "9999-12-31T23:59:59-12:00"])
def test_a_begin_that_cannot_be_read_leaves_an_entry_in_its_place(tmp_path, at):
    begins = ["2026-01-01T10:00:01Z", at, "2026-01-01T10:00:00Z"]
    rows, _ = read(tmp_path, *(entry(query=f"?n={number}", at=each) for number, each in enumerate(begins)))
    assert [str(row.args["n"]) for row in rows] == ["2", "0", "1"]
