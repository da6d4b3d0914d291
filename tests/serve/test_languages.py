"""The example of docs/serve.md as other programs send it: curl, and Node's own fetch."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from .test_save import start, stop

NODE = """
const at = process.argv[2];
const send = async (method, path, body) => {
  const answer = await fetch(at + path, {method, body: body && JSON.stringify(body)});
  return [answer.status, await answer.json()];
};
const said = [
  await send("POST", "/_gecko/sessions", {id: "a"}),
  await send("POST", "/s/a/orders/order-2/cancellation"),
  await send("GET", "/_gecko/sessions/a/state"),
  await send("POST", "/_gecko/sessions/a/reset", {step: 0}),
  await send("GET", "/_gecko/sessions/a/history"),
];
console.log(JSON.stringify(said));
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    process, client = start(tmp_path_factory.mktemp("served"))
    yield str(client.base_url).rstrip("/")
    client.close()
    stop(process)


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def check(made: list, state: dict) -> None:
    assert made[0] == 201
    assert state["orders"]["order-2"]["status"] == "cancelled"


@pytest.mark.skipif(not shutil.which("node"), reason="needs Node")
def test_node(address, tmp_path):
    script = tmp_path / "client.mjs"
    script.write_text(NODE, encoding="utf-8")
    made, cancelled, state, reset, history = json.loads(run("node", str(script), address))
    assert [cancelled[0], state[0], reset[0], history[0]] == [200, 200, 200, 200]
    check(made, state[1])
    assert history[1] == [] or not history[1].get("calls")


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
def test_curl(address):
    made = run("curl", "-s", "-w", "%{http_code}", f"{address}/_gecko/sessions", "-d", '{"id": "b"}')
    run("curl", "-s", f"{address}/s/b/orders/order-2/cancellation", "-X", "POST")
    check([int(made[-3:])], json.loads(run("curl", "-s", f"{address}/_gecko/sessions/b/state")))
