"""References between documents: where they may lead, and what refuses to be led astray."""

from __future__ import annotations

import json
import re
from functools import partial

import httpx
import pytest

from gecko_graph.errors import ToolkitError
from gecko_graph.tools import Toolkit
from gecko_graph.tools.openapi import remote as web


def document(schema, **more):
    answer = {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}
    paths = {"/x": {"get": {"operationId": "x", "responses": answer}}}
    return {"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": paths, **more}


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
    source = document({"$ref": "./schemas/pet.json"}, components={"schemas": {"Id": {"type": "integer"}}})
    assert result(write(tmp_path / "api.json", source)) == {"properties": {"tag": {"items": {"type": "integer"}}}}


def test_percent_and_tilde_in_references(tmp_path):
    write(tmp_path / "two words.json", {"a/b": {"c~d": {"type": "string"}}})
    source = write(tmp_path / "api.json", document({"$ref": "two%20words.json#/a~1b/c~0d"}))
    assert result(source) == {"type": "string"}


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("../secret.json", "out of the document's folder"),
        ("%2e%2e/secret.json", "out of the document's folder"),
        ("sub/../../secret.json", "out of the document's folder"),
        ("link.json", "out of the document's folder"),
        ("inside/secret.json", "out of the document's folder"),
        (".env", "must name a .yaml, .yml or .json file"),
        ("file:///etc/passwd", "cannot read"),
        ("//host/secret.json", "cannot read"),
        ("http://host/secret.json", "cannot read"),
        ("https://host/secret.json", "allow_remote=True"),
        ("nul\x00.json", "out of the document's folder"),
        ("missing.json", "no such file"),
        ("#/nowhere", "leads nowhere"),
        ("#anchor", "names an $anchor"),
        ("other.json#/0/x", "leads nowhere"),
    ],
)
def test_references_that_lead_astray(tmp_path, reference, why):
    write(tmp_path / "secret.json", {"type": "string", "description": "the secret"})
    folder = tmp_path / "api"
    folder.mkdir()
    (folder / ".env").write_text("KEY: secret")
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    (folder / "inside").symlink_to(tmp_path)
    write(folder / "other.json", [])
    source = write(folder / "api.json", document({"$ref": reference}))
    with pytest.raises(ToolkitError) as failure:
        Toolkit.from_openapi(source)
    assert why in str(failure.value)
    assert str(failure.value).startswith(f"{source}#/paths/~1x/get/responses/200/content/application~1json/schema:")
    assert "the secret" not in str(failure.value)


def test_absolute_paths_are_refused_even_inside(tmp_path):
    write(tmp_path / "pet.json", {})
    source = write(tmp_path / "api.json", document({"$ref": str(tmp_path / "pet.json")}))
    with pytest.raises(ToolkitError, match="out of the document's folder"):
        Toolkit.from_openapi(source)


def test_a_dict_has_no_folder():
    with pytest.raises(ToolkitError, match="given as a dict has no folder"):
        Toolkit.from_openapi(document({"$ref": "pet.json"}))


def test_a_broken_file_is_named_with_who_refers_to_it(tmp_path):
    (tmp_path / "pet.yaml").write_text("type: [\n")
    source = write(tmp_path / "api.json", document({"$ref": "pet.yaml"}))
    with pytest.raises(ToolkitError, match=r"schema: \$ref 'pet.yaml': .*pet\.yaml:\d+:\d+"):
        Toolkit.from_openapi(source)


def test_references_in_a_circle_of_nothing_but_references():
    schemas = {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}
    with pytest.raises(ToolkitError, match="leads back to itself"):
        Toolkit.from_openapi(document({"$ref": "#/components/schemas/A"}, components={"schemas": schemas}))


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"$dynamicRef": "#node"}, "schema/$dynamicRef: is not read: write $ref"),
        ({"items": {"$recursiveRef": "#"}}, "schema/items/$recursiveRef: is not read: write $ref"),
        ({"$ref": "#node", "$defs": {"n": {"$anchor": "node"}}}, "names an $anchor, which is not read"),
        ({"$ref": "https://example.com/tree"}, "is on the web"),
        ({"dependencies": {"a": ["b"]}}, "schema/dependencies: is not read: write dependentRequired"),
    ],
)
def test_what_is_not_read_is_an_error(schema, why):
    with pytest.raises(ToolkitError, match=re.escape(why)):
        Toolkit.from_openapi(document(schema))


def test_an_id_changes_nothing_and_that_is_said():
    tree = {"$id": "https://example.com/tree", "properties": {"kid": {"$ref": "#/components/schemas/Id"}}}
    schemas = {"Tree": tree, "Id": {"$id": "https://example.com/id", "type": "integer"}}
    toolkit = Toolkit.from_openapi(document({"$ref": "#/components/schemas/Tree"}, components={"schemas": schemas}))
    assert toolkit["x"].result == {"properties": {"kid": {"type": "integer"}}}
    (problem,) = toolkit.broken
    assert "#/components/schemas/Tree/$id: is not heeded" in problem.message
    inner = {"type": "object", "properties": {"a": {"$id": "a", "$ref": "#/$defs/b"}}, "$defs": {"b": {}}}
    with pytest.raises(ToolkitError, match=r"properties/a/\$id: is not heeded"):
        Toolkit.from_tools([{"name": "t", "parameters": inner}])
    Toolkit.from_tools([{"name": "t", "parameters": {**inner["properties"], **inner, "$id": "t", "properties": {}}}])


def test_whole_operations_and_property_maps_may_be_references(tmp_path):
    answer = {"200": {"description": "", "content": {"application/json": {"schema": {"$ref": "pet.json"}}}}}
    write(tmp_path / "get.json", {"operationId": "x", "responses": answer})
    write(tmp_path / "pet.json", {"properties": {"$ref": "fields.json", "own": {"type": "integer"}}})
    write(tmp_path / "fields.json", {"name": {"type": "string"}})
    source = {"openapi": "3.0.0", "info": {}, "paths": {"/x": {"get": {"$ref": "get.json"}}}}
    assert result(write(tmp_path / "api.json", source))["properties"] == {
        "name": {"type": "string"},
        "own": {"type": "integer"},
    }


def test_path_items_by_reference():
    source = document({})
    source["paths"] = {"/y": {"$ref": "#/components/pathItems/Y"}}
    source["components"] = {"pathItems": {"Y": {"get": {"operationId": "y"}}}}
    assert Toolkit.from_openapi(source)["y"].binding.path == "/y"


# the web, played by a table ------------------------------------------------------------------------------------------


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
    source = document({"$ref": "https://a.example/api/pet.json"})
    assert result(source, allow_remote=True) == {"properties": {"tag": {"type": "string"}}}
    assert asked == ["https://a.example/api/pet.json", "https://a.example/api/tag.yaml"]


def test_a_whole_document_from_the_web(pages):
    known, _ = pages
    known["https://a.example/api.json"] = json.dumps(document({"type": "string"})).encode()
    assert result("https://a.example/api.json", allow_remote=True) == {"type": "string"}
    with pytest.raises(ToolkitError, match="allow_remote=True"):
        Toolkit.from_openapi("https://a.example/api.json")


@pytest.mark.parametrize("reference", ["http://a.example/x.json", "file:///etc/hosts", "ftp://a.example/x.json"])
def test_a_document_on_the_web_leads_nowhere_else(pages, reference):
    known, asked = pages
    known["https://a.example/pet.json"] = json.dumps({"$ref": reference}).encode()
    with pytest.raises(ToolkitError, match="cannot read"):
        Toolkit.from_openapi(document({"$ref": "https://a.example/pet.json"}), allow_remote=True)
    assert asked == ["https://a.example/pet.json"]


def test_what_the_web_may_answer_is_limited(pages, monkeypatch):
    known, _ = pages
    known["https://a.example/big.json"] = b" " * 2000
    known["https://a.example/raw.json"] = b"\xff\xfe"
    monkeypatch.setattr(web, "MAX_BYTES", 1000)
    for name, why in (("big", "larger than"), ("raw", "not UTF-8"), ("none", "cannot be fetched")):
        with pytest.raises(ToolkitError, match=why):
            Toolkit.from_openapi(document({"$ref": f"https://a.example/{name}.json"}), allow_remote=True)


def test_redirects_stay_on_https(pages):
    known, asked = pages
    known["https://a.example/x.json"] = "https://b.example/x.json"
    known["https://b.example/x.json"] = json.dumps(document({"type": "string"})).encode()
    assert result("https://a.example/x.json", allow_remote=True) == {"type": "string"}
    known["https://b.example/x.json"] = "http://a.example/x.json"
    with pytest.raises(ToolkitError, match=r"redirects to 'http://a\.example/x\.json'"):
        Toolkit.from_openapi("https://a.example/x.json", allow_remote=True)
    assert asked[-1] == "https://b.example/x.json"
