"""HAR entries as browsers, proxies and test tools write them, each with what is to be read of it.

Playwright's (1.65 with Chromium) and mitmproxy's (11.0.2) were recorded; the others are as their sources write them.
"""

import base64
import gzip
from typing import Any

from gecko_graph import Toolkit
from gecko_graph.state import JsonObject

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
SENT: JsonObject = {"mimeType": JSON, "text": '{"sku":"é"}'}
LENGTH, NONE = {"name": "Content-Length", "value": "12"}, {"name": "content-length", "value": "0"}
TOLD: JsonObject = {"size": 11, "mimeType": JSON, "text": '{"ok":true}'}
NOT_SENT, NOT_TOLD = "the request's body was not recorded", "the answer's content was not recorded"


def entry(
    method: str = "GET",
    request: JsonObject | None = None,
    content: Any = TOLD,
    at: str = "2026-01-01T00:00:00.000Z",
    query: str = "",
    **response: Any,
) -> JsonObject:
    """Return an entry of one call of the shop, with what is given beside the least that every writer has."""
    asked = {"method": method, "url": f"{HOST}/orders{query}", "headers": [], **(request or {})}
    told = {"status": 200, "headers": [], "content": content, **response}
    return {"startedDateTime": at, "request": asked, "response": told}


REQUESTS: dict[str, tuple[str, JsonObject, Any]] = {
    "Chromium": ("POST", {"bodySize": 12, "postData": SENT}, {"sku": "é"}),
    "Chromium, an empty POST": ("POST", {"bodySize": 0, "headers": [NONE]}, {}),
    "Chromium, a file that was uploaded": ("POST", {"bodySize": 0, "headers": [LENGTH]}, NOT_SENT),
    "Firefox, which counts characters": ("POST", {"bodySize": 11, "postData": {**SENT, "params": []}}, {"sku": "é"}),
    "Firefox, bodies discarded": ("POST",
                                  {"bodySize": 0, "headers": [LENGTH],
                                   "postData": {"mimeType": JSON, "params": [], "comment": "not included"}}, NOT_SENT),
    "mitmproxy": ("POST", {"bodySize": 12, "headers": [LENGTH], "postData": {**SENT, "params": []}}, {"sku": "é"}),
    "mitmproxy, an empty POST": ("POST", {"bodySize": 0, "postData": {"mimeType": "", "text": "", "params": []}}, {}),
    "mitmproxy, a DELETE": ("DELETE", {"bodySize": 12, "headers": [LENGTH]}, NOT_SENT),
    "mitmproxy, a DELETE without a body": ("DELETE", {"bodySize": 0}, {}),
    "mitmproxy, streamed": ("POST",
                            {"bodySize": 0, "headers": [{"name": "Transfer-Encoding", "value": "chunked"}],
                             "postData": {"mimeType": JSON, "text": None}}, NOT_SENT),
    "Playwright, minimal": ("POST", {"bodySize": -1, "headers": [LENGTH], "postData": SENT}, {"sku": "é"}),
    "Playwright, minimal, an empty POST": ("POST", {"bodySize": -1, "headers": [NONE]}, {}),
    "Playwright, minimal, no body in the document": ("PATCH", {"bodySize": -1}, {}),
    "Playwright, omitted": ("POST", {"bodySize": 12, "postData": {"mimeType": JSON, "text": "", "params": []}},
                            NOT_SENT),
    "Playwright, minimal and omitted": ("POST",
                                        {"bodySize": -1, "postData": {"mimeType": JSON, "text": "", "params": []}},
                                        NOT_SENT),
    "Playwright, attached": ("POST",
                             {"bodySize": 12,
                              "postData": {"mimeType": JSON, "text": "", "params": [], "_file": "00.json"}},
                             "the request's body is in another file"),
    "Playwright, a form's fields alone": (
        "PUT",
        {"bodySize": 9, "postData": {"mimeType": FORM, "text": "", "params": [{"name": "sku", "value": "a b"}]}},
        {"sku": "a b"},
    ),
    "Charles, base64": (
        "POST",
        {"bodySize": 12,
         "postData": {"mimeType": JSON, "encoding": "base64",
                      "text": base64.b64encode(SENT["text"].encode()).decode()}},
        {"sku": "é"},
    ),
    "cut off": ("POST", {"bodySize": 4096, "postData": SENT}, "the request's body was cut off"),
    "cut off within its JSON": ("POST", {"bodySize": -1, "postData": {**SENT, "text": '{"sku":'}},
                                "its JSON is broken"),
    "size unknown": ("POST", {"bodySize": -1}, "it is not known whether the request had a body"),
}  # fmt: skip
"""A writer, what it has recorded of a request, and the arguments, or why it teaches nothing."""


def compressed(text: str) -> int:
    """Return how many bytes a text has once it is compressed."""
    return len(gzip.compress(text.encode()))


CODED = [{"name": "content-encoding", "value": "gzip"}, {"name": "content-length", "value": str(compressed("{}"))}]
LATIN = [{"name": "content-type", "value": f"{JSON}; charset=iso-8859-1"}]
ANSWERS: dict[str, tuple[JsonObject, JsonObject, Any]] = {
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
"""A writer, what it has recorded of an answer, and the result, or why it teaches nothing."""
