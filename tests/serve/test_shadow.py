"""`--upstream`: a real service in a process of its own that counts, the server killed before, in and after a write."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import yaml
from click.testing import CliRunner

from gecko_graph.cli.arguments import cli
from gecko_graph.errors import GeckoError
from tests import forked

ROOT = Path(__file__).resolve().parents[2]
SERVICE = """
import json, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOG = sys.argv[1]

class Service(BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        given = json.loads(body) if body else {}
        with open(LOG, "a") as log:
            log.write(json.dumps([self.command, self.path, given, dict(self.headers)]) + "\\n")
        time.sleep(given.get("sleep", 0))
        if given.get("drop"):
            self.connection.close()
            return
        status = given.get("answer", 200)
        quantity = given.get("quantity")
        items = {"items": [{"sku": "TEA", "stock": 3}]}
        made = items if self.command == "GET" else {"id": "o-1", "quantity": quantity}
        content = json.dumps(made if status < 400 else {"error": f"only 3 are left, not {quantity}"}).encode()
        self.send_response(302 if self.path.endswith("/away") else status)
        if self.path.endswith("/away"):
            self.send_header("location", "http://elsewhere.invalid/")
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
    do_GET = do_POST = answer
    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
NUMBER = {"type": "integer"}
BY = ["sku", "quantity"]
FIELDS = {"sku": {"type": "string"}, "sleep": {"type": "number"}, "drop": {"type": "boolean"}}
ORDER = {
    "type": "object",
    "properties": FIELDS | {"quantity": NUMBER, "answer": NUMBER},
    "required": ["sku", "quantity"],
}
JSON = {"application/json": {"schema": {"type": "object"}}}
OK = {"200": {"description": "done", "content": JSON}}
DOCUMENT = {
    "openapi": "3.0.3",
    "info": {"title": "Orders", "version": "1"},
    "servers": [{"url": "http://api.invalid/v1"}],
    "paths": {"/items": {"get": {"operationId": "findItems", "responses": OK}},
              "/orders": {"post": {"operationId": "placeOrder",
                                   "requestBody": {"required": True,
                                                   "content": {"application/json": {"schema": ORDER}}},
                                   "responses": OK}}},
}  # fmt: skip
CONTRACTS = {
    "contracts": {"findItems": {"observes": [{"op": "add", "path": ["items"],
                                              "value": "{{ {one.sku: one for one in result['items']} }}"}]}},
}  # fmt: skip


class Place:
    """A service that counts, and servers before it."""

    def __init__(self, folder):
        self.folder, self.log, self.processes = folder, folder / "log.jsonl", []
        self.log.touch()
        (folder / "api.json").write_text(json.dumps(DOCUMENT))
        (folder / "reads.contracts.yaml").write_text(yaml.safe_dump(CONTRACTS))
        (folder / "service.py").write_text(SERVICE)
        service = self.run([sys.executable, "service.py", str(self.log)], stdout=subprocess.PIPE)
        self.url = f"http://127.0.0.1:{service.stdout.readline().strip()}/v1"

    def run(self, command, **more):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "LANGGRAPH_STRICT_MSGPACK": "true"}
        process = forked.Popen(command, text=True, cwd=self.folder, env=environment, **more)
        self.processes.append(process)
        return process

    def command(self, *more, writes=True):
        command = [sys.executable, "-m", "gecko_graph", "serve", "api.json", "--upstream", self.url]
        return [*command, *["--allow-writes", "--ledger", "ledger.sqlite"] * writes, *more]

    def start_piped(self, *more):
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return self.run(self.command(*more), **pipes)

    def start(self, *more, writes=True):
        process = self.run(self.command("--port", "0", *more, writes=writes), stderr=subprocess.PIPE)
        for line in process.stderr:
            if " tools at " in line:
                return process, httpx.Client(base_url=line.split(" tools at ")[1].split()[0], timeout=30)
        raise AssertionError("it did not start")

    @property
    def sent(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def kill(self, process):
        process.send_signal(signal.SIGKILL)
        process.wait(20)

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait(20)
            for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
                stream.close()


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    made.close()


def order(**more):
    return {"sku": "TEA", "quantity": 1, **more}


def test_killed_in_a_write_it_is_not_sent_again(place):
    headers = {"idempotency-key": "k-1"}
    process, client = place.start()
    with ThreadPoolExecutor() as pool, client:
        waiting = pool.submit(client.post, "/orders", json=order(sleep=2), headers=headers)
        while not place.sent:
            time.sleep(0.02)
        place.kill(process)
        with pytest.raises(httpx.HTTPError):
            waiting.result()
    _, client = place.start()
    with client:
        for _ in range(3):
            again = client.post("/orders", json=order(sleep=2), headers=headers)
            assert (again.status_code, again.headers["content-type"]) == (409, "application/problem+json")
            assert again.headers["x-gecko-in-doubt"] == "true"
        assert len(place.sent) == 1
        assert client.post("/orders", json=order(sleep=0), headers={"idempotency-key": "k-2"}).status_code == 200
    assert len(place.sent) == 2


def test_killed_at_any_moment_no_write_is_sent_twice(place):
    for number in range(5):  # before, in and after: the delay goes through all of a write's time
        process, client = place.start()
        body, own = order(quantity=number, sleep=0.05), {"idempotency-key": f"k-{number}"}
        with ThreadPoolExecutor() as pool, client:
            waiting = pool.submit(client.post, "/orders", json=body, headers=own)
            time.sleep(number * 0.04)
            place.kill(process)
            try:
                is_told = waiting.result().status_code == 200
            except httpx.HTTPError:
                is_told = False
        process, client = place.start()
        with client:
            again = client.post("/orders", json=body, headers=own)
            assert again.headers.get("x-gecko-replayed") == "true" or not is_told
            is_told = again.status_code == 200
        place.kill(process)
        assert sum(one[2]["quantity"] == number for one in place.sent) in ((1,) if is_told else (0, 1))


def test_fifty_clients_at_once_make_one_write(place):
    _, client = place.start()
    with ThreadPoolExecutor(50) as pool, client:
        given = {"json": order(sleep=1.5), "headers": {"idempotency-key": "k-1"}}
        statuses = [
            each.result().status_code for each in [pool.submit(client.post, "/orders", **given) for _ in range(50)]
        ]
        assert len(place.sent) == 1
        assert statuses.count(409) == 49
        again = client.post("/orders", **given)
        assert (again.status_code, again.headers["x-gecko-replayed"]) == (200, "true")
    assert len(place.sent) == 1


def test_without_a_key_a_write_passes_on_each_time_and_says_what_is_in_doubt(place):
    process, client = place.start()
    with ThreadPoolExecutor(2) as pool, client:
        both = [pool.submit(client.post, "/orders", json=order(sleep=0.3)) for _ in range(2)]
        assert [each.result().status_code for each in both] == [200, 200]
        assert len(place.sent) == 2
        for _ in range(2):
            dropped = client.post("/orders", json=order(drop=True))
            assert (dropped.status_code, dropped.headers["x-gecko-in-doubt"]) == (502, "true")
            assert "may have taken effect" in dropped.json()["detail"]
        assert client.post("/orders", json=order(answer=500)).headers["x-gecko-in-doubt"] == "true"
        assert "x-gecko-in-doubt" not in client.post("/orders", json=order(answer=422)).headers
        assert len(place.sent) == 6
        waiting = pool.submit(client.post, "/orders", json=order(sleep=2))
        while len(place.sent) < 7:
            time.sleep(0.02)
        place.kill(process)
        with pytest.raises(httpx.HTTPError):
            waiting.result()
    _, client = place.start()
    with client:
        assert client.post("/orders", json=order(sleep=0)).status_code == 200
    assert len(place.sent) == 8


@pytest.mark.parametrize("more", [(), ("--no-simulation",)])
def test_what_is_recorded_is_learned_from(place, more):
    process, client = place.start("--record", "rows.jsonl", "--contracts", "reads.contracts.yaml", *more)
    with client:
        for quantity in range(4, 20):
            client.get("/items")
            client.post("/orders", json=order(quantity=quantity, answer=409 if quantity % 2 else 200))
        history = client.get("/_gecko/sessions/default/history").json()["history"]
    process.send_signal(signal.SIGTERM)
    process.wait(20)
    assert f"32 calls forwarded to {place.url}" in process.stderr.read()
    assert len(history) == 32
    folder = place.folder
    given = ["learn", str(folder / "api.json"), str(folder / "rows.jsonl")]
    given += ["--contracts", str(folder / "reads.contracts.yaml"), "-o", str(folder / "learned.contracts.yaml")]
    done = CliRunner().invoke(cli, given, standalone_mode=False)
    assert done.exception is None, done.output
    evidence = yaml.safe_load((folder / "learned.contracts.yaml").read_text())["contracts"]["placeOrder"]["evidence"]
    assert evidence["rows"] == 16
    assert sum(evidence["refusals"].values()) == 8


def test_drift_stands_in_history_and_outlasts_the_process(place):
    returns = {"contracts": {"placeOrder": {"returns": {"id": "o-1", "quantity": 2}}}}
    (place.folder / "own.contracts.yaml").write_text(yaml.safe_dump(returns))
    more = ("--contracts", "own.contracts.yaml", "--save", "runs.sqlite")
    process, client = place.start(*more)
    with client:
        assert client.post("/orders", json=order(quantity=2)).headers["x-gecko-drift"] == "0"
        assert client.post("/orders", json=order(quantity=3)).headers["x-gecko-drift"] == "1"
        before = client.get("/_gecko/sessions/default/history").json()
    (drift,) = before["history"][1]["drift"]
    assert (drift["predicted"], drift["real"]) == (2, 3)
    place.kill(process)
    process, client = place.start(*more)
    with client:
        assert client.get("/_gecko/sessions/default/history").json() == before


MCP_SERVER = """
from typing_extensions import TypedDict
from mcp.server.mcpserver import MCPServer

server = MCPServer("shop")

class Note(TypedDict):
    id: int
    text: str

@server.tool()
def list_orders() -> dict[str, str]:
    return {"really": "listed"}

@server.tool()
def find_orders() -> dict[str, str]:
    open("called", "a").write("find")
    return {"really": "found"}

@server.tool()
def list_notes(limit: int = 1) -> list[Note]:
    return [{"id": 1, "text": "a"}]

@server.tool()
def get_note(id: int) -> Note:
    raise AssertionError("it is never called")

@server.tool()
def create_note(text: str) -> Note:
    raise AssertionError("it is never called")

@server.tool()
def cancel(id: str) -> dict[str, str]:
    open("called", "a").write("cancel")
    return {"really": "cancelled"}

server.run("stdio")
"""


def test_a_proxy_of_an_mcp_server_makes_only_the_reads_that_were_opened(tmp_path):
    (tmp_path / "server.py").write_text(MCP_SERVER)
    command = [sys.executable, "-m", "gecko_graph", "serve", "--port", "0", "--open", "list_orders"]
    command += ["--open", "list_notes", "--proxy", f"{sys.executable} server.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LANGGRAPH_STRICT_MSGPACK": "true"}
    process = forked.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment)
    try:
        line = next(line for line in process.stderr if " tools at " in line)
        with httpx.Client(base_url=line.split(" tools at ")[1].split()[0], timeout=30) as client:
            listed = client.post("/list_orders", json={})
            assert (listed.json(), listed.headers["x-gecko-simulated"]) == ({"really": "listed"}, "false")
            for name, given in (("find_orders", {}), ("cancel", {"id": "o-1"})):
                assert client.post(f"/{name}", json=given).headers["x-gecko-simulated"] == "true"
            made = client.post("/create_note", json={"text": "b"})
            assert (made.json()["text"], made.headers["x-gecko-rung"]) == ("b", "derived")
            listed = client.post("/list_notes", json={})  # one page of the real notes, which lacks the simulated one
            assert (listed.headers["x-gecko-rung"], listed.headers["x-gecko-notes"]) == ("real", "stale")
    finally:
        process.terminate()
        process.wait(20)
        process.stderr.close()
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize(
    "more",
    [
        ["--allow-writes", "--upstream", "http://127.0.0.1:9"],
        ["--ledger", "x.sqlite", "--upstream", "http://127.0.0.1:9"],
        ["--no-simulation", "--upstream", "http://127.0.0.1:9", "--host", "0.0.0.0", "--token", "t"],
        ["--record", "rows.jsonl"],
        ["--upstream", "ftp://127.0.0.1"],
        ["--upstream", "http://me:secret@127.0.0.1"],
    ],
)
def test_what_does_not_go_together_is_refused_at_start(tmp_path, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    Path("api.json").write_text(json.dumps(DOCUMENT))
    done = CliRunner().invoke(cli, ["serve", "api.json", *more], standalone_mode=False)
    assert isinstance(done.exception, GeckoError) or done.return_value == 2
    assert "secret" not in str(done.exception) + done.output
