"""How arguments are written on the wire: a server that decodes them finds what was sent; nothing leaves its place."""

import base64
import json
from email.parser import BytesParser
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.tools.openapi.request import CannotSend, build_request
from tests.tools.small_documents import body, read_one

BASE = "http://here.test/base/v1"
ANY = {}


def query(name="q", **more):
    return {"name": name, "in": "query", "schema": ANY, **more}


def send(operation, args, *, path="/x", method="get", **more):
    return build_request(read_one(operation, path=path, method=method, **more), BASE, args, extra={})


def target(request):
    return request.url.raw_path.decode()


HOSTILE = ["../x", "a/b", "?a=b", "#f", "%2F", "%2e%2e", "ä/ö", "a b", "a;b=1", "..;", "\\..\\", "//h", "é\u202e"]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1) | st.sampled_from(HOSTILE)


@given(TEXT, TEXT)
def test_a_path_value_never_leaves_its_segment(one, other):
    try:
        request = send({}, {"a": one, "b": other}, path="/x/{a}/y/z-{b}.json")
    except CannotSend:
        assert one in (".", "..")
        return
    empty, base, version, x, first, y, second = target(request).split("/")
    assert (empty, base, version, x, y) == ("", "base", "v1", "x", "y")
    assert (unquote(first), unquote(second)) == (one, f"z-{other}.json")
    assert request.url.host == "here.test"
    assert (request.url.query, request.url.fragment) == (b"", "")


@pytest.mark.parametrize("value", ["", ".", "..", None, [], {}, [""]])
def test_a_path_value_that_leads_elsewhere_is_refused(value):
    with pytest.raises(CannotSend, match="'id'"):
        send({"parameters": [{"name": "id", "in": "path", "schema": ANY}]}, {"id": value}, path="/pets/{id}")


@pytest.mark.parametrize(("style", "explode", "value", "written"), [
    ("simple", False, ["blue", "bl,ack"], "blue,bl%2Cack"), ("simple", False, {"R": 100, "G": 200}, "R,100,G,200"),
    ("simple", True, {"R": 100, "G": 200}, "R=100,G=200"), ("label", True, ["blue", "black"], ".blue.black"),
    ("matrix", True, ["blue", "black"], ";color=blue;color=black"), ("matrix", False, "blue", ";color=blue"),
    ("simple", False, "blue", "blue"),
    ("matrix", False, {"R": 100, "G": 200}, ";color=R,100,G,200"),
])  # fmt: skip
def test_path_styles_are_those_of_the_specification(style, explode, value, written):
    parameter = {"name": "color", "in": "path", "required": True, "style": style, "explode": explode, "schema": ANY}
    request = send({"parameters": [parameter]}, {"color": value}, path="/c/{color}")
    assert target(request) == f"/base/v1/c/{written}"


@given(st.dictionaries(st.sampled_from(["a", "b c", "d[]"]), TEXT | st.integers() | st.lists(TEXT, min_size=1)))
def test_a_query_is_decoded_to_what_was_sent(args):
    request = send({"parameters": [query(name) for name in ("a", "b c", "d[]")]}, args)
    sent = [(name, str(one)) for name, value in args.items() for one in (value if isinstance(value, list) else [value])]
    assert parse_qsl(request.url.query.decode(), keep_blank_values=True) == sent
    assert target(request).startswith("/base/v1/x")


@pytest.mark.parametrize(("rule", "value", "written"), [
    ({"explode": False}, ["a", "b,c"], "q=a,b%2Cc"),
    ({"style": "pipeDelimited", "explode": False}, ["a", "b"], "q=a%7Cb"),
    ({}, {"R": 1, "G": None, "B": True}, "R=1&B=true"), ({"explode": False}, {"R": 1, "G": 2}, "q=R,1,G,2"),
    ({"style": "deepObject", "explode": True}, {"a": {"b": [1, 2]}, "c": "x"}, "q[a][b][0]=1&q[a][b][1]=2&q[c]=x"),
    ({"content": {"application/json": {"schema": {}}}}, {"a": [1]}, 'q={"a": [1]}'),
    ({"allowReserved": True}, "a/b:c?&d#+", "q=a/b:c?%26d%23%2B"),
    ({}, None, ""), ({}, [], ""),
])  # fmt: skip
def test_query_styles_are_those_of_the_specification(rule, value, written):
    parameter = {key: one for key, one in query(**rule).items() if key != "schema" or "content" not in rule}
    request = send({"parameters": [parameter]}, {"q": value})
    sent = request.url.query.decode()
    assert (sent if "%" in written else unquote(sent)) == written


def test_cookies_and_headers():
    parameters = [
        {"name": "tone", "in": "cookie", "schema": ANY},
        {"name": "kind", "in": "cookie", "schema": ANY},
        {"name": "X-Ids", "in": "header", "schema": ANY},
        {"name": "X-Map", "in": "header", "explode": True, "schema": ANY},
    ]
    args = {"tone": "a; b", "kind": 2, "X-Ids": [1, "ü"], "X-Map": {"a": 1, "b": True}}
    request = send({"parameters": parameters}, args)
    assert request.headers["cookie"] == "tone=a%3B%20b; kind=2"
    sent = {name.lower(): value.decode() for name, value in request.headers.raw}
    assert (sent[b"x-ids"], sent[b"x-map"]) == ("1,ü", "a=1,b=true")


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "\x00", "a\x7f", ["x", "y\r"], " a", "a "])
def test_header_injection_is_refused(value):
    with pytest.raises(CannotSend, match="x-trace"):
        send({"parameters": [{"name": "X-Trace", "in": "header", "schema": ANY}]}, {"X-Trace": value})


APART = {"explode": False}


@pytest.mark.parametrize(("parameter", "value"), [
    ({"in": "path", "style": "label", "explode": True}, ["a.b"]), ({"in": "header"}, ["a,b"]), ({}, {"z": 1}),
    ({"in": "header"}, [""]), ({"in": "header"}, [" a"]), ({"style": "spaceDelimited", **APART}, ["a b"]),
    ({"style": "pipeDelimited", **APART}, ["a|b"]), ({"style": "deepObject"}, {"a[": 1}),
    ({"style": "deepObject"}, {"a": {"": 1}}),
])  # fmt: skip
def test_a_value_that_could_not_be_read_back_is_refused(parameter, value):
    one = {"name": "q", "in": "query", "schema": ANY, **parameter}
    path = "/x/{q}" if one["in"] == "path" else "/x"
    with pytest.raises(CannotSend):
        send({"parameters": [one, query("z")]}, {"q": value, "z": 1}, path=path)
    with pytest.raises(CannotSend, match="is missing"):
        send({"parameters": [query("z")]}, {"z": 1}, path="/x/{q}")
    with pytest.raises(CannotSend, match="base64"):
        send(body(ANY, media="application/octet-stream"), {"body": "data:;base64,A"}, method="post")


OBJECT = {"type": "object", "properties": {"a": {}, "b": {}}}


@given(st.dictionaries(st.sampled_from(["a", "b"]), TEXT | st.lists(TEXT, min_size=1), min_size=1))
def test_a_form_is_decoded_to_what_was_sent(args):
    request = send(body(OBJECT, media="application/x-www-form-urlencoded"), args, method="post")
    sent = [(name, one) for name, value in args.items() for one in (value if isinstance(value, list) else [value])]
    assert parse_qsl(request.content.decode(), keep_blank_values=True) == sent


def test_multipart_has_files_json_and_text():
    text = {"type": "string"}
    image = {**text, "contentMediaType": "image/png"}
    properties = {
        "file": {**text, "format": "binary"}, "more": {"type": "array", "items": image}, "about": {"type": "object"},
        "note": text, "coded": {**image, "contentEncoding": "base64"},
    }  # fmt: skip
    raw = bytes(range(256))
    args = {
        "file": "data:image/gif;base64," + base64.b64encode(raw).decode(),
        "more": ["one", "two"],
        "about": {"k": 1},
        "note": "a\r\nb",
        "coded": "AAAA",
    }
    whole = {"type": "object", "properties": properties}
    request = send(body(whole, media="multipart/form-data"), args, method="post")
    kind = request.headers["content-type"].encode()
    message = BytesParser().parsebytes(b"content-type: " + kind + b"\r\n\r\n" + request.read())
    parts = [
        (part.get_param("name", header="content-disposition"), part.get_filename(), part.get_content_type(), part)
        for part in message.get_payload()
    ]
    assert [part[:3] for part in parts] == [
        ("file", "file", "image/gif"),
        ("more", "more", "application/octet-stream"),
        ("more", "more", "application/octet-stream"),
        ("about", None, "application/json"),
        ("note", None, "text/plain"),
        ("coded", None, "text/plain"),
    ]
    assert raw in request.read()
    assert json.loads(parts[3][3].get_payload()) == {"k": 1}


@pytest.mark.parametrize(("media", "schema", "value", "content", "kind"), [
    ("text/plain", {"type": "string"}, "hé", "hé", "text/plain"),
    ("application/octet-stream", {"type": "string"}, "data:;base64,AAE=", "\x00\x01", "application/octet-stream"),
    ("application/json", {"type": "array"}, [1], "[1]", "application/json"),
    ("*/*", {"type": "array"}, [1], "[1]", "application/json"),
])  # fmt: skip
def test_whole_bodies(media, schema, value, content, kind):
    request = send(body(schema, media=media), {"body": value}, method="post")
    assert (request.content.decode(), request.headers["content-type"]) == (content, kind)
