"""Documents as files really come: any key order, with a byte order mark, through a pipe, Swagger 2.0."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gecko_graph.errors import ToolkitError
from gecko_graph.scenario import read_toolkit
from tests.cli.command import COMMAND, ENVIRONMENT
from tests.tools.small_documents import document

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


ADDRESS = "https://api.example/openapi.json"


def test_a_document_comes_from_an_address_where_that_is_allowed(shared_data, monkeypatch):
    name = "twilio_lookups_v2.json"
    source = json.loads((shared_data / "openapi" / name).read_text("utf-8"))
    monkeypatch.setattr("gecko_graph.tools.openapi.remote.fetch_document", {ADDRESS: source}.__getitem__)
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


@pytest.fixture
def local_server():
    """A server on this machine: `answers` by path, a document or the address that a redirect leads to."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append(self.path)
            found = self.server.answers[self.path]
            self.send_response(302 if isinstance(found, str) else 200)
            self.send_header("location", found if isinstance(found, str) else "")
            self.end_headers()
            self.wfile.write(b"" if isinstance(found, str) else json.dumps(found).encode())

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.answers, server.asked = {}, []
        server.url = f"http://localhost:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_what_this_machine_serves_is_read_as_a_server_in_development_has_it(local_server):
    operation = {"operationId": "a", "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "b"}}}}}}
    local_server.answers["/openapi.json"] = document({"/x": {"get": operation}})
    local_server.answers["/b"] = {"type": "string"}
    (tool,) = read_toolkit(f"{local_server.url}/openapi.json")
    assert tool.result == {"type": "string"}
    assert tool.binding.server == {"url": f"{local_server.url}/"}


@pytest.mark.parametrize(
    "to", ["http://127.0.0.2/x", "http://localhost:1/x", "https://localhost/x", "http://a.example/x"]
)
def test_from_this_machine_no_redirect_or_reference_leads_elsewhere(local_server, to):
    local_server.answers |= {"/moved": to, "/refers": document({"/x": {"$ref": to}})}
    for path in local_server.answers:
        with pytest.raises(ToolkitError, match=r"is not read|cannot read|is on the web"):
            read_toolkit(f"{local_server.url}{path}")


def test_a_document_of_elsewhere_reads_nothing_of_this_machine(local_server, tmp_path):
    local_server.answers["/x"] = {"get": {"operationId": "a"}}
    (tmp_path / "api.json").write_text(json.dumps(document({"/x": {"$ref": f"{local_server.url}/x"}})))
    with pytest.raises(ToolkitError, match="cannot read"):
        read_toolkit(tmp_path / "api.json", allow_remote=True)
    assert local_server.asked == []
