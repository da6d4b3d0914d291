"""Documents as they come, and references between them: where they may lead, and what is refused."""

from __future__ import annotations

import io
import json
import os
import sys
from functools import partial
from types import SimpleNamespace

import httpx
import pytest

from gecko_graph.errors import ToolkitError
from gecko_graph.scenario import read_toolkit
from gecko_graph.tools import Toolkit
from gecko_graph.tools.openapi import documents as web
from tests.tools.http_server import as_json, serving
from tests.tools.small_documents import answering, document


def referring(schema, **more):
    return document({"/x": {"get": {"operationId": "x", **answering(schema)}}}, version="3.1.0", **more)


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def result(source, **more):
    return Toolkit.from_openapi(source, **more)["x"].result


def test_files_beside_and_below_and_back(tmp_path):
    write(tmp_path / "schemas" / "pet.json", {"properties": {"tag": {"$ref": "common/tag.yaml#/Tag"}}})
    write(
        tmp_path / "schemas" / "common" / "tag.yaml",
        {"Tag": {"items": {"$ref": "../../api.json#/components/schemas/Id"}}},
    )
    source = referring({"$ref": "./schemas/pet.json"}, components={"schemas": {"Id": {"type": "integer"}}})
    assert result(write(tmp_path / "api.json", source)) == {"properties": {"tag": {"items": {"type": "integer"}}}}


@pytest.mark.parametrize(("reference", "why"), [
    ("../secret.json", "out of the document's folder"), ("link.json", "out of the document's folder"),
    (".env", "must name a .yaml, .yml or .json file"), ("file:///etc/passwd", "cannot read"),
    ("https://host/secret.json", "allow_remote=True"), ("nul\x00.json", "out of the document's folder"),
    ("missing.json", "no such file"),
])  # fmt: skip
def test_references_that_lead_astray(tmp_path, reference, why):
    write(tmp_path / "secret.json", {"type": "string", "description": "the secret"})
    folder = tmp_path / "api"
    folder.mkdir()
    (folder / ".env").write_text("KEY: secret")
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    (folder / "inside").symlink_to(tmp_path)
    write(folder / "other.json", [])
    source = write(folder / "api.json", referring({"$ref": reference}))
    with pytest.raises(ToolkitError) as failure:
        Toolkit.from_openapi(source)
    assert why in str(failure.value)
    assert str(failure.value).startswith(f"{source}#/paths/~1x/get/responses/200/content/application~1json/schema:")
    assert "the secret" not in str(failure.value)


def test_references_in_a_circle_of_nothing_but_references():
    schemas = {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}
    toolkit = Toolkit.from_openapi(referring({"$ref": "#/components/schemas/A"}, components={"schemas": schemas}))
    assert [tool.result for tool in toolkit] == [{}]
    assert "leads back to itself" in toolkit.broken[0].message


@pytest.fixture
def pages(monkeypatch):
    """What the web would answer, by address (a text is where it redirects to); what was asked for is in the list."""
    known: dict[str, bytes | str] = {}
    asked: list[str] = []

    def answer(request):
        asked.append(str(request.url))
        if asked[-1] not in known:
            raise httpx.ConnectError("no such host")
        found = known[asked[-1]]
        return (
            httpx.Response(302, headers={"location": found})
            if isinstance(found, str)
            else httpx.Response(200, content=found)
        )

    client = partial(httpx.Client, transport=httpx.MockTransport(answer))
    monkeypatch.setattr(web.httpx, "Client", client)
    return known, asked


def test_the_web_is_read_where_allowed(pages):
    known, asked = pages
    known["https://a.example/api/pet.json"] = b'{"properties": {"tag": {"$ref": "tag.yaml"}}}'
    known["https://a.example/api/tag.yaml"] = b"type: string"
    source = referring({"$ref": "https://a.example/api/pet.json"})
    assert result(source, allow_remote=True) == {"properties": {"tag": {"type": "string"}}}
    assert asked == ["https://a.example/api/pet.json", "https://a.example/api/tag.yaml"]


def test_an_exported_document_of_the_web_needs_it_no_more(pages):
    known, asked = pages
    known["https://a.example/v1/api.json"] = json.dumps(referring({"$ref": "../pet.json"})).encode()
    known["https://a.example/pet.json"] = b'{"type": "string"}'
    toolkit = Toolkit.from_openapi("https://a.example/v1/api.json", allow_remote=True)
    asked.clear()
    again = Toolkit.from_openapi(toolkit.to_openapi())
    assert (again["x"].result, again.to_openapi(), asked) == ({"type": "string"}, toolkit.to_openapi(), [])
    moved = {**toolkit.to_openapi(), "x-gecko": {"address": "http://localhost:9/api.json", "documents": {}}}
    with pytest.raises(ToolkitError, match="cannot read"):
        Toolkit.from_openapi(moved)


@pytest.mark.parametrize("reference", ["http://a.example/x.json", "file:///etc/hosts", "ftp://a.example/x.json"])
def test_a_document_on_the_web_leads_nowhere_else(pages, reference):
    known, asked = pages
    known["https://a.example/pet.json"] = json.dumps({"$ref": reference}).encode()
    with pytest.raises(ToolkitError, match="cannot read"):
        Toolkit.from_openapi(referring({"$ref": "https://a.example/pet.json"}), allow_remote=True)
    assert asked == ["https://a.example/pet.json"]


def test_what_the_web_may_answer_is_limited(pages, monkeypatch):
    known, _ = pages
    known["https://a.example/big.json"] = b" " * 2000
    known["https://a.example/raw.json"] = b"\xff\xfe"
    monkeypatch.setattr(web, "MAX_BYTES", 1000)
    for name, why in (("big", "larger than"), ("raw", "not UTF-8"), ("none", "cannot be fetched")):
        with pytest.raises(ToolkitError, match=why):
            Toolkit.from_openapi(referring({"$ref": f"https://a.example/{name}.json"}), allow_remote=True)


def test_redirects_stay_on_https(pages):
    known, asked = pages
    known["https://a.example/x.json"] = "https://b.example/x.json"
    known["https://b.example/x.json"] = json.dumps(referring({"type": "string"})).encode()
    assert result("https://a.example/x.json", allow_remote=True) == {"type": "string"}
    known["https://b.example/x.json"] = "http://a.example/x.json"
    with pytest.raises(ToolkitError, match=r"redirects to 'http://a\.example/x\.json'"):
        Toolkit.from_openapi("https://a.example/x.json", allow_remote=True)
    assert asked[-1] == "https://b.example/x.json"


def test_the_key_openapi_may_stand_behind_much_else(tmp_path):
    large = {"schemas": {f"S{number}": {"type": "string", "description": "d" * 100} for number in range(1_000)}}
    whole = document({"/x": {"get": {"operationId": "a"}}}, components=large)
    file = tmp_path / "api.json"
    file.write_text(json.dumps(dict(reversed(whole.items()))))
    assert read_toolkit(file).names == ("a",)


@pytest.mark.parametrize("name", ["pipe.yaml", "pipe.jsonl", "/dev/zero"])
def test_what_is_no_regular_file_is_refused_unread(tmp_path, name):
    file = tmp_path / name
    if not file.exists():
        os.mkfifo(file)
    with pytest.raises(ToolkitError, match="is a pipe or a device; name a file"):
        read_toolkit(file)


@pytest.mark.parametrize("number", ["0x" + "f" * 5_000, "0o" + "7" * 9_000, "9" * 5_000])
def test_a_number_that_json_cannot_be_written_with_is_refused_where_it_stands(tmp_path, number):
    (tmp_path / "api.yaml").write_text(f"openapi: 3.1.0\ndefault: {number}\n")
    with pytest.raises(ToolkitError, match=r"api\.yaml:2:10: not a JSON number"):
        read_toolkit(tmp_path / "api.yaml")


def test_a_document_comes_from_the_standard_input(shared_data, monkeypatch):
    source = shared_data / "openapi" / "twilio_lookups_v2.json"
    given = io.BytesIO(b"\xef\xbb\xbf" + source.read_bytes())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=given))
    assert len(read_toolkit("-")) == 10


@pytest.fixture
def local():
    """A server on this machine: `answers` by path, a document or the address that a redirect leads to."""
    with serving() as here:
        here.answers = {}
        here.url = here.url.replace("127.0.0.1", "localhost")

        def answer(asked):
            found = here.answers[asked.target]
            return (302, {"location": found}, b"") if isinstance(found, str) else as_json(found)

        here.answer = answer
        yield here


def test_what_this_machine_serves_is_read_as_a_server_in_development_has_it(local):
    local.answers["/openapi.json"] = document({"/x": {"get": answering({"$ref": "b"})}})
    local.answers["/b"] = {"type": "string"}
    (tool,) = read_toolkit(f"{local.url}/openapi.json")
    assert tool.result == {"type": "string"}
    assert tool.binding.server == {"url": f"{local.url}/"}


@pytest.mark.parametrize(
    "to", ["http://127.0.0.2/x", "http://localhost:1/x", "https://localhost/x", "http://a.example/x"]
)
def test_from_this_machine_no_redirect_or_reference_leads_elsewhere(local, to):
    local.answers |= {"/moved": to, "/refers": document({"/x": {"$ref": to}})}
    for path in local.answers:
        with pytest.raises(ToolkitError, match=r"is not read|cannot read|is on the web"):
            read_toolkit(f"{local.url}{path}")


def test_a_document_of_elsewhere_reads_nothing_of_this_machine(local, tmp_path):
    local.answers["/x"] = {"get": {"operationId": "a"}}
    (tmp_path / "api.json").write_text(json.dumps(document({"/x": {"$ref": f"{local.url}/x"}})))
    with pytest.raises(ToolkitError, match="cannot read"):
        read_toolkit(tmp_path / "api.json", allow_remote=True)
    assert local.asked == []
