"""Lists, objects and files as other clients write them are read as they were meant, or refused; nothing is dropped."""

import json

import httpx
import pytest
import requests

from gecko_graph import Toolkit, World
from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.tools.openapi.request import FORMS, CannotSend, build_request
from gecko_graph.tools.openapi.request_reader import CannotRead, read_request
from tests.tools.small_documents import body, read_one

BASE = "http://here.test/v1"
TEXTS = {"type": "array", "items": {"type": "string"}}
NUMBERS = {"type": "array", "items": {"type": "integer"}}
WHO = {"type": "object", "properties": {"name": {"type": "string"}, "tags": TEXTS, "at": {"type": "object"}}}
DEEP, APART = {"style": "deepObject"}, {"explode": False}
KINDS = {
    "s": ({"type": "string"}, {}), "n": ({"type": "integer"}, {}), "b": ({"type": "boolean"}, {}),
    "null": ({"type": ["string", "null"]}, {}),
    "texts": (TEXTS, {}), "numbers": (NUMBERS, {}), "ids[]": (NUMBERS, {}), "any": ({}, {}),
    "comma": (TEXTS, APART), "space": (TEXTS, {"style": "spaceDelimited", **APART}),
    "pipe": (TEXTS, {"style": "pipeDelimited", **APART}),
    "word": ({"type": "array", "items": {"enum": ["a", "b"]}}, {}),
    "deep": (WHO, DEEP), "deeps": (TEXTS, DEEP), "rows": ({"type": "array", "items": WHO}, DEEP),
    "size": ({"type": "object", "properties": {"w": {"type": "integer"}, "h": {"type": "integer"}}}, APART),
    "apart": (
        {"type": "object", "properties": {"R": {"type": "integer"}, "G": TEXTS}, "additionalProperties": False}, {}
    ),
    "page[size]": ({"type": "integer"}, {}), "page[number]": ({"type": "integer"}, {}),
}  # fmt: skip
QUERY = read_one(
    {"parameters": [{"name": name, "in": "query", "schema": one, **style} for name, (one, style) in KINDS.items()]},
    version="3.1.0",
)
JSON = {"name": "where", "in": "query", "content": {"application/json": {"schema": WHO}}}


def ask(tool, query):
    return read_request(tool, BASE, httpx.Request("GET", f"{BASE}/x?{query}"))


def is_refused(read, tool):
    try:
        return bool(find_complaints(tool, read()))
    except CannotRead:
        return True


ANA = {"name": "Ana", "tags": ["a", "b"]}
READ = [
    ("texts=a&texts=b", {"texts": ["a", "b"]}),
    ("texts[]=a&texts[]=b", {"texts": ["a", "b"]}),  # PHP, Rails, jQuery, axios
    ("texts[1]=b&texts[0]=a", {"texts": ["a", "b"]}), ("ids[0]=1&ids[1]=2", {"ids[]": [1, 2]}),
    ("numbers=1%2C%202", {"numbers": [1, 2]}), ("comma[]=a&comma[]=b", {"comma": ["a", "b"]}),
    ("space=a+b", {"space": ["a", "b"]}), ("pipe=a%7Cb", {"pipe": ["a", "b"]}),
    ("deeps=a&deeps=b", {"deeps": ["a", "b"]}),
    ("deep[name]=Ana&deep[tags][0]=a&deep[tags][1]=b", {"deep": {"name": "Ana", "tags": ["a", "b"]}}),
    ("rows[0].name=Ana", {"rows": [{"name": "Ana"}]}), ("size[w]=1&size[h]=2", {"size": {"w": 1, "h": 2}}),
    ("texts=a,b", {"texts": ["a,b"]}),  # what the style says: one item
    ("texts=a%2Cb&texts=c", {"texts": ["a,b", "c"]}),
    ("texts=a+b&texts=c%20d&texts=e%2Bf", {"texts": ["a b", "c d", "e+f"]}),
    ("numbers=1,2", {"numbers": [1, 2]}),  # no number has a comma
    ("numbers=[1,2]", {"numbers": [1, 2]}),
    ("numbers[0]=1&numbers[1]=2&numbers[2]=3", {"numbers": [1, 2, 3]}),
    ("ids[]=1&ids[]=2", {"ids[]": [1, 2]}),
    ("word=a,b", {"word": ["a", "b"]}),
    ("comma=a,b", {"comma": ["a", "b"]}),
    ("comma=a&comma=b,c", {"comma": ["a", "b", "c"]}),
    ("comma=a%2Cb,c", {"comma": ["a,b", "c"]}),
    ("space=a%20b", {"space": ["a", "b"]}),
    ("pipe=a|b", {"pipe": ["a", "b"]}),
    ("pipe=a&pipe=b", {"pipe": ["a", "b"]}),
    ("deep[name]=Ana&deep[tags][]=a&deep[tags][]=b", {"deep": ANA}),
    ("deep[name]=Ana&deep[tags]=a&deep[tags]=b", {"deep": ANA}),
    ("deep.name=Ana&deep.tags[0]=a&deep.tags[1]=b", {"deep": ANA}),  # .NET, Spring
    (f"deep={json.dumps(ANA)}", {"deep": ANA}),
    ("deep[at][x][y]=1", {"deep": {"at": {"x": {"y": "1"}}}}),
    ("deeps[0]=a&deeps[1]=b", {"deeps": ["a", "b"]}),
    ("rows[0][name]=Ana&rows[1][name]=Bo", {"rows": [{"name": "Ana"}, {"name": "Bo"}]}),
    ("rows[][name]=Ana&rows[][name]=Bo", {"rows": [{"name": "Ana"}, {"name": "Bo"}]}),
    ("rows[][name]=Ana&rows[][tags][]=a&rows[][tags][]=b", {"rows": [ANA]}),
    ("size=w,1,h,2", {"size": {"w": 1, "h": 2}}),
    ("R=1&G=a&G=b", {"apart": {"R": 1, "G": ["a", "b"]}}),
    ("apart[R]=1&apart[G][]=a", {"apart": {"R": 1, "G": ["a"]}}),
    ("page[size]=10&page[number]=2", {"page[size]": 10, "page[number]": 2}),
    *((f"b={word}", {"b": True}) for word in ("true", "True", "TRUE", "1", "on", "yes")),
    *((f"b={word}", {"b": False}) for word in ("false", "False", "0", "off", "no")),
    ("s=1", {"s": "1"}), ("s=True", {"s": "True"}), ("s=", {"s": ""}), ("s=a%26b%3Dc", {"s": "a&b=c"}),
    ("s=caf%C3%A9", {"s": "café"}), ("null=null", {"null": "null"}), ("texts%5B%5D=", {"texts": [""]}),
]  # fmt: skip


@pytest.mark.parametrize(("query", "args"), READ)
def test_a_query_is_read_as_it_was_meant(query, args):
    assert ask(QUERY, query) == args
    assert find_complaints(QUERY, args) == []


REFUSED = [
    "nosuch=1", "nosuch[]=1", "s=a&s=b", "n=1&n=2", "b=1&b=0", "n=one", "b=2", "s[x]=1", "n[]=1",
    "texts=a&texts[]=b", "texts[0]=a&texts[2]=c", "texts[0]=a&texts[0][x]=b", "texts[x]=a", "numbers=1,x",
    "deep=Ana", "deep[name]=a&deep[name]=b", "deep[name]=a&deep[name][x]=b", "deep[name", "deep[tags][x]=a",
    "size=w,1,h", "size=w,1,w,2", "size=w,1&size=h,2", "R=1&R=2", "R=1&T=2", "page[other]=1",
    "s=caf%E9", "%ff=1", "deep" + "[name]" * 100 + "=1",
]  # fmt: skip


@pytest.mark.parametrize("query", REFUSED)
def test_a_query_that_no_call_has_is_refused(query):
    assert is_refused(lambda: ask(QUERY, query), QUERY)


def test_what_clients_make_of_python_values():
    for params, args in (
        ({"texts": ["a", "b,c"], "n": 3, "b": True}, {"texts": ["a", "b,c"], "n": 3, "b": True}),
        ({"b": 0, "texts[]": ["a", "b"]}, {"b": False, "texts": ["a", "b"]}),
        ({"numbers": "1,2", "deep[name]": "Ana & Bo"}, {"numbers": [1, 2], "deep": {"name": "Ana & Bo"}}),
    ):
        by_httpx = httpx.Request("GET", f"{BASE}/x", params=params)
        made = requests.Request("GET", f"{BASE}/x", params=params).prepare()
        assert read_request(QUERY, BASE, by_httpx) == read_request(QUERY, BASE, httpx.Request("GET", made.url)) == args


def test_a_parameter_of_json():
    tool = read_one({"parameters": [JSON]})
    assert ask(tool, f"where={json.dumps(ANA)}") == {"where": ANA}
    assert ask(tool, "where=%7B%22name%22%3A%22Ana%22%7D") == {"where": {"name": "Ana"}}
    for query in ("where=Ana", "where={}&where={}", 'where={"name":"a","name":"b"}', "where={"):
        assert is_refused(lambda query=query: ask(tool, query), tool)


def at(schema, **style):
    return read_one({"parameters": [{"name": "p", "in": "path", "schema": schema, **style}]}, path="/firms/{p}")


@pytest.mark.parametrize("text", [*"&;=,@'()!$*+:~ %äé/?#|\\\"<>[]{}^`", "A & B", "50%", "a%2Fb"])
def test_any_character_may_stand_in_a_path(text):
    tool = at({"type": "string"})
    assert read_request(tool, BASE, build_request(tool, BASE, {"p": text}, extra={})) == {"p": text}
    if text not in ("/", "?", "#", "%", "50%", "a%2Fb"):
        assert read_request(tool, BASE, httpx.Request("GET", f"{BASE}/firms/{text}")) == {"p": text}


def test_the_fixed_part_of_a_path_may_be_percent_encoded():
    tool = read_one({"parameters": [{"name": "p", "in": "path", "schema": {}}]}, path="/a:b/{p}/c d/(x)")
    for path in ("/a:b/7/c%20d/(x)", "/a%3Ab/7/c%20d/%28x%29", "/a%3ab/7/c%20d/(x)"):
        assert read_request(tool, BASE, httpx.Request("GET", f"{BASE}{path}")) == {"p": "7"}
    with pytest.raises(CannotRead):
        read_request(tool, BASE, httpx.Request("GET", f"{BASE}/a.b/7/c%20d/(x)"))


@pytest.mark.parametrize(("schema", "style", "path", "value"), [
    (NUMBERS, {}, "1,2", [1, 2]),
    (NUMBERS, {"style": "label", "explode": True}, ".1.2", [1, 2]),
    (NUMBERS, {"style": "matrix"}, ";p=1,2", [1, 2]),
    (NUMBERS, {"style": "matrix", "explode": True}, ";p=1;p=2", [1, 2]),
    (KINDS["size"][0], {"explode": True}, "w=1,h=2", {"w": 1, "h": 2}),
    (NUMBERS, {"style": "label"}, "1,2", None), (NUMBERS, {"style": "matrix"}, "1,2", None),
    (KINDS["size"][0], {}, "w,1,h", None), ({"type": "string"}, {}, "caf%E9", None),
])  # fmt: skip
def test_styles_of_paths(schema, style, path, value):
    tool = at(schema, **style)
    read = lambda: read_request(tool, BASE, httpx.Request("GET", f"{BASE}/firms/{path}"))  # noqa: E731
    assert is_refused(read, tool) if value is None else read() == {"p": value}


HEADERS = read_one(
    {
        "parameters": [
            {"name": "X-Tags", "in": "header", "schema": TEXTS},
            {"name": "X-One", "in": "header", "schema": {"type": "string"}},
            {"name": "X-Size", "in": "header", "schema": KINDS["size"][0]},
            {"name": "crumbs", "in": "cookie", "schema": TEXTS, **APART},
        ]
    }
)


@pytest.mark.parametrize(("headers", "args"), [
    ([("x-tags", "a, b"), ("X-TAGS", "c")], {"X-Tags": ["a", "b", "c"]}),
    ([("x-tags", "a,b")], {"X-Tags": ["a", "b"]}), ([("x-one", "a, b")], {"X-One": "a, b"}),
    ([("x-size", "w, 1, h, 2")], {"X-Size": {"w": 1, "h": 2}}),
    ([("cookie", "crumbs=a,b; other=1")], {"crumbs": ["a", "b"]}),
    ([("cookie", "crumbs=a%2Cb,c")], {"crumbs": ["a,b", "c"]}),
    ([("x-one", "a"), ("x-one", "b")], None), ([("x-size", "w, 1, h")], None), ([("cookie", "crumbs=caf%E9")], None),
])  # fmt: skip
def test_headers_and_cookies(headers, args):
    read = lambda: read_request(HEADERS, BASE, httpx.Request("GET", f"{BASE}/x", headers=headers))  # noqa: E731
    assert is_refused(read, HEADERS) if args is None else read() == args


FIELDS = {
    "a": {"type": "string"}, "n": {"type": "integer"}, "many": TEXTS, "who": WHO,
    "rows": {"type": "array", "items": WHO}, "yes": {"type": "boolean"}, "file": {"type": "string", "format": "binary"},
    "files": {"type": "array", "items": {"type": "string", "format": "binary"}},
}  # fmt: skip
OBJECT = {"type": "object", "properties": FIELDS, "additionalProperties": False}
FORM, PARTS = (read_one(body(OBJECT, media=media), method="post") for media in FORMS)


def post(tool, content, media):
    request = httpx.Request("POST", f"{BASE}/x", content=content, headers={"content-type": media})
    return read_request(tool, BASE, request)


@pytest.mark.parametrize(("content", "args"), [
    (b"many[]=a&many[]=b", {"many": ["a", "b"]}), (b"many[1]=b&many[0]=a", {"many": ["a", "b"]}),
    (b"who[name]=Ana&who[tags][]=a&who[tags][]=b", {"who": ANA}),
    (b"who.name=Ana&who.tags=a&who.tags=b", {"who": ANA}),
    (b"who=%7B%22name%22%3A%22Ana%22%7D", {"who": {"name": "Ana"}}),
    (b"name=Ana&tags=a&tags=b&n=3", {"who": ANA, "n": 3}),
    (b"rows[][name]=Ana&rows[][name]=Bo", {"rows": [{"name": "Ana"}, {"name": "Bo"}]}),
    (b"yes=on&a=x+y%2B", {"yes": True, "a": "x y+"}), (b"a=x&a=y", None), (b"a=caf\xe9", None), (b"a=caf%E9", None),
    (b"z=1", None), (b"who=Ana", None),
])  # fmt: skip
def test_a_form_is_read_as_it_was_meant(content, args):
    read = lambda: post(FORM, content, FORMS[0])  # noqa: E731
    assert is_refused(read, FORM) if args is None else read() == args


def test_a_multipart_form_of_other_clients():
    files = [
        ("many", (None, "a")), ("many", (None, "b")), ("n", (None, "7")),
        ("who", (None, json.dumps(ANA), "application/json")),
        ("rows[0][name]", (None, "Ana")), ("rows[1][name]", (None, "Bo")),
        ("file", ("é.bin", b"\xff\x00", "image/png")),
        ("files", ("1.txt", b"7", "text/plain")), ("files", ("2.txt", b"true", "text/plain")),
    ]  # fmt: skip
    args = {
        "many": ["a", "b"], "n": 7, "who": ANA, "rows": [{"name": "Ana"}, {"name": "Bo"}],
        "file": "data:image/png;base64,/wA=", "files": ["7", "true"],
    }  # fmt: skip
    by_httpx = httpx.Request("POST", f"{BASE}/x", files=files)
    made = requests.Request("POST", f"{BASE}/x", files=files).prepare()
    by_requests = httpx.Request("POST", f"{BASE}/x", content=made.body, headers=dict(made.headers))
    assert read_request(PARTS, BASE, by_httpx) == read_request(PARTS, BASE, by_requests) == args
    for odd in ([("a", (None, b"caf\xe9"))], [("a", (None, "x")), ("a", (None, "y"))], [("z", (None, "1"))]):
        read = lambda odd=odd: read_request(PARTS, BASE, httpx.Request("POST", f"{BASE}/x", files=odd))  # noqa: E731
        assert is_refused(read, PARTS)


def test_bodies_of_json():
    tool = read_one(body(OBJECT), method="post")
    assert post(tool, '{"a": "é"}'.encode("utf-8-sig"), "application/json") == {"a": "é"}
    assert post(tool, '{"a": "é"}'.encode("latin-1"), "application/json; charset=ISO-8859-1") == {"a": "é"}
    for content in (b'{"a": "caf\xe9"}', b'{"a": "x", "a": "y"}', b'{"who": {"name": 1, "name": 2}}', b"[1]", b"{"):
        with pytest.raises(CannotRead):
            post(tool, content, "application/json")
    with pytest.raises(CannotRead):
        post(tool, b"{}", "application/json; charset=nosuch")


@pytest.mark.parametrize("media", ["application/x-ndjson", "application/jsonl", "text/plain"])
def test_rows_of_json_are_sent_and_read_back(media):
    for schema, args in (
        ({"type": "array", "items": WHO}, {"body": [ANA, {"name": "Bo"}]}),
        (OBJECT, {"a": "é", "n": 1}),
    ):
        tool = read_one(body(schema, media=media), method="post")
        assert read_request(tool, BASE, build_request(tool, BASE, args, extra={})) == args


@pytest.mark.parametrize("media", ["application/xml", "text/xml", "application/atom+xml", "application/octet-stream"])
def test_a_body_that_can_never_be_sent_is_told_when_it_is_loaded(media):
    tool = read_one(body(OBJECT, media=media), method="post")
    toolkit = Toolkit([tool])
    assert [each.message for each in toolkit.problems if each.kind == "broken"]
    assert World(toolkit, state={}).call({"name": tool.name, "args": {"a": "x"}})["outcome"]["status"] == "error"
    with pytest.raises(CannotSend):
        build_request(tool, BASE, {"a": "x"}, extra={})
    whole = Toolkit([read_one(body({"type": "string"}, media=media), method="post")])
    assert not [each for each in whole.problems if each.kind == "broken"]
