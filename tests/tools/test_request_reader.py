"""`read_request` is the inverse of `build_request`, for every style that keeps the values."""

from contextlib import suppress

import httpx
import pytest

from gecko_graph.schemas.complaints import find_complaints
from gecko_graph.schemas.made_up import Impossible, make_value
from gecko_graph.tools import Toolkit
from gecko_graph.tools.openapi.request import FORMS, CannotSend, build_request
from gecko_graph.tools.openapi.request_reader import CannotRead, Operations, read_request
from tests.tools.small_documents import body, document, read_one, real_toolkits

BASE = "http://here.test/base/v1"


def unsent(value):
    """What no style sends outside of a body: null, empty lists and objects."""
    return value is None or value in ([], {})


def kept(tool, args):
    places = {key: tool.binding.places.get(key, ("body", key)) for key in args}
    absent = {
        key for key, (place, wire) in places.items() if place == "path" and f"{{{wire}}}" not in tool.binding.path
    }
    return {key: one for key, one in args.items() if places[key][0] == "body" or not (key in absent or unsent(one))}


def test_every_operation_of_real_documents_is_read_back(shared_data):
    seen = 0
    for path, toolkit in real_toolkits(shared_data).items():
        operations = Operations(toolkit, BASE) if isinstance(toolkit, Toolkit) else None
        for tool in toolkit if operations else ():
            with suppress(Impossible, CannotSend):
                args = make_value(tool.parameters, seed=0, key=tool.name)
                request = build_request(tool, BASE, args, extra={})
                found, again = operations.read(request)
                assert (found.name, kept(tool, again)) == (tool.name, kept(tool, args)), (path, request.url)
                assert "{" not in request.url.raw_path.decode()
                seen += 1
    assert seen > 250


FORM = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(("media", "schema", "value"), [
    ("text/plain", {"type": "string"}, "hé"),
    ("application/octet-stream", {"type": "string"}, "data:application/octet-stream;base64,/wA="),
    ("application/secevent+jwt", {"type": "string"}, "eyJhbGciOiJub25lIn0.e30."),  # a text in a format of its own
    ("application/pdf", {"type": "string", "format": "binary"}, "data:application/pdf;base64,JVBERg=="),
    ("application/json", {"type": "array"}, [1, {"a": None}]),
])  # fmt: skip
def test_whole_bodies_are_read_back(media, schema, value):
    tool = read_one(body(schema, media=media), method="post")
    args = {"body": value}
    assert read_request(tool, BASE, build_request(tool, BASE, args, extra={})) == args


def test_an_operation_is_found_by_method_path_and_server():
    paths = {
        "/orders/{id}": {"get": {"operationId": "show"}, "delete": {"operationId": "drop"}},
        "/orders/mine": {"get": {"operationId": "mine"}},
        "/act?do=go&n={n}": {"post": {"operationId": "go"}},
    }
    toolkit = Toolkit.from_openapi(document(paths, servers=[{"url": "https://shop.test/v1"}]))
    known = Operations(toolkit)

    def named(method, url):
        tool, args = known.read(httpx.Request(method, url))
        return tool.name, args

    assert named("GET", "https://shop.test/v1/orders/mine") == ("mine", {})
    assert named("DELETE", "https://shop.test/v1/orders/a%2Fb") == ("drop", {"id": "a/b"})
    assert named("POST", "https://shop.test/v1/act?n=3&do=go") == ("go", {"n": "3"})
    for method, url, cause in (
        ("GET", "https://other.test/v1/orders/mine", "another server"),
        ("GET", "https://shop.test/v1/items", "no operation has its path"),
        ("PATCH", "https://shop.test/v1/orders/mine", "no operation has its method"),
        ("GET", "https://shop.test/v1/orders/mine?page=2", "a parameter that mine does not have"),
    ):
        with pytest.raises(CannotRead, match=cause):
            known.read(httpx.Request(method, url))
    assert Operations(toolkit, "http://localhost:8080").read(httpx.Request("GET", "http://localhost:8080/orders/7"))


def post(tool, content, media="application/json", **more):
    request = httpx.Request("POST", f"{BASE}/x", content=content, headers={"content-type": media})
    return read_request(tool, BASE, request, **more)


def test_members_without_a_name_are_told_apart_where_a_body_is_open():
    open_, closed = ({**FORM, **more} for more in ({}, {"additionalProperties": False}))
    unnamed = []
    assert post(read_one(body(open_), method="post"), b'{"a": "x", "z": 1}', unnamed=unnamed) == {"a": "x"}
    assert unnamed == ["z"]
    tool = read_one(body(closed), method="post")
    assert post(tool, b'{"a": "x", "z": 1}', unnamed=[]) == {"a": "x", "z": 1}  # for the validator to refuse
    form = b"a=x&z=1"
    assert post(read_one(body(open_, media=FORMS[0]), method="post"), form, FORMS[0], unnamed=unnamed) == {"a": "x"}


def test_a_member_without_a_name_never_becomes_another_argument():
    one = {"name": "id", "in": "query", "schema": {"type": "string"}}
    tool = read_one({"parameters": [one], **body(FORM)}, method="post")
    unnamed = []
    assert post(tool, b'{"a": "x", "id": "evil"}', unnamed=unnamed) == {"a": "x"}
    assert unnamed == ["id"]
    with pytest.raises(CannotRead):
        post(tool, b'{"a": "x", "id": "evil"}')


def test_numbers_are_read_as_the_schema_has_them():
    tool = read_one(
        body({"type": "object", "properties": {"n": {"type": "integer"}, "x": {"type": "number"}}}), method="post"
    )
    assert post(tool, b'{"n": 8.0, "x": 8.0}') == {"n": 8, "x": 8.0}
    huge = post(tool, b'{"n": 123456789012345678901234567890}')["n"]
    assert (huge, type(huge)) == (1.2345678901234568e29, float)
    assert find_complaints(tool, {"n": huge}) == []
    assert find_complaints(tool, {"n": 8.5})


def test_a_body_that_is_not_demanded_and_not_sent_has_the_defaults_of_what_it_requires():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "default": "*"}, "b": {"type": "integer", "default": 7}, "c": {}},
        "required": ["a", "c"],
    }
    given = body(schema)["requestBody"]
    demanded, free = ({**given, "required": each} for each in (True, False))
    assert post(read_one({"requestBody": free}, method="post"), b"") == {"a": "*"}
    assert post(read_one({"requestBody": free}, method="post"), b"{}") == {}
    assert post(read_one({"requestBody": demanded}, method="post"), b"") == {}, "for the validator to refuse"


@pytest.mark.parametrize(
    ("content", "media"),
    [(b"<a/>", "application/xml"), (b"x", "multipart/form-data"), (b"", "multipart/form-data")],
)
def test_media_types_that_are_not_read_are_told(content, media):
    with pytest.raises(CannotRead) as caught:
        post(read_one(body(FORM), method="post"), content, media)
    assert caught.value.is_media
