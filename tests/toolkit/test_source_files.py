"""Documents as files really come: any key order, with a byte order mark, through a pipe, Swagger 2.0."""

from __future__ import annotations

import json
import os
import subprocess
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.errors import ToolkitError
from gecko_graph.scenario import read_toolkit
from tests.cli.command import COMMAND, ENVIRONMENT
from tests.toolkit.small_documents import document

TWILIO = ["twilio_accounts_v1.json", "twilio_lookups_v2.json", "twilio_verify_v2.json"]
LARGE = {"schemas": {f"S{number}": {"type": "string", "description": "d" * 100} for number in range(1_000)}}
"""More than 64 kB before the key `openapi`."""


@pytest.mark.parametrize("name", TWILIO)
def test_the_order_of_the_keys_is_free(shared_data, tmp_path, name):
    source = json.loads((shared_data / "openapi" / name).read_text("utf-8"))
    last = {**{key: one for key, one in source.items() if key != "openapi"}, "openapi": source["openapi"]}
    (tmp_path / name).write_text(json.dumps(last))
    assert read_toolkit(tmp_path / name).names == read_toolkit(shared_data / "openapi" / name).names


@given(st.permutations([*document({"/x": {"get": {"operationId": "a"}}}, components=LARGE).items()]))
def test_any_order_of_the_keys_reads_the_same(tmp_path_factory, items):
    file = tmp_path_factory.mktemp("order") / "api.json"
    file.write_text(json.dumps(dict(items)))
    assert read_toolkit(file).names == ("a",)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("api.json", json.dumps(document({"/x": {"get": {"operationId": "a"}}}))),
        ("api.yaml", "openapi: 3.0.0\ninfo: {title: T}\npaths: {/x: {get: {operationId: a}}}\n"),
        ("tools.jsonl", '{"name": "a"}\n'),
    ],
)
def test_a_byte_order_mark_changes_nothing(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8-sig")
    assert read_toolkit(tmp_path / name).names == ("a",)


def test_a_document_comes_through_a_pipe(tmp_path, shared_data):
    source = shared_data / "openapi" / "twilio_lookups_v2.json"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(source.read_bytes()), daemon=True)
    writer.start()
    read: list[tuple[str, ...]] = []
    reader = threading.Thread(target=lambda: read.append(read_toolkit(pipe).names), daemon=True)
    reader.start()
    reader.join(60)
    assert read == [read_toolkit(source).names]


ADDRESS = "https://api.example/openapi.json"


def test_a_document_comes_from_an_address_where_that_is_allowed(shared_data, monkeypatch):
    name = "twilio_lookups_v2.json"
    source = json.loads((shared_data / "openapi" / name).read_text("utf-8"))
    monkeypatch.setattr("gecko_graph.toolkit.openapi.remote.fetch_document", {ADDRESS: source}.__getitem__)
    assert read_toolkit(ADDRESS, allow_remote=True).names == read_toolkit(shared_data / "openapi" / name).names
    with pytest.raises(ToolkitError, match=r"allow_remote=True \(--allow-remote\)"):
        read_toolkit(ADDRESS)
    with pytest.raises(ToolkitError, match="cannot read"):
        read_toolkit("http://api.example/openapi.json", allow_remote=True)


def test_a_document_comes_from_the_standard_input(shared_data):
    source = shared_data / "openapi" / "twilio_lookups_v2.json"
    options = {"capture_output": True, "timeout": 120, "env": ENVIRONMENT, "check": True}
    done = subprocess.run([*COMMAND, "tools", "-"], input=b"\xef\xbb\xbf" + source.read_bytes(), **options)
    assert done.stdout.splitlines()[0] == b"Twilio - Lookups: 10 tools"


@pytest.mark.parametrize("place", [0, -1])
def test_swagger_2_says_so_and_what_to_do(shared_data, tmp_path, place):
    import yaml

    source = yaml.safe_load((shared_data / "openapi" / "oai_v2.0_yaml_uber.yaml").read_text("utf-8"))
    rest = [(key, one) for key, one in source.items() if key != "swagger"] + [("definitions", LARGE["schemas"])]
    rest.insert(place % (len(rest) + 1), ("swagger", source["swagger"]))
    (tmp_path / "uber.json").write_text(json.dumps(dict(rest)))
    with pytest.raises(ToolkitError, match=r"#/swagger: this is OpenAPI 2\.0 \(Swagger\); convert it to 3\.0 first"):
        read_toolkit(tmp_path / "uber.json")
