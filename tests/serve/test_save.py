"""`--save`: what was acknowledged is there after kill -9; a damaged file and a second process are refused."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from gecko_graph.errors import GeckoError
from gecko_graph.serve.journal import Journal, Row
from tests import forked

from .conftest import EXAMPLES, client_of, shop, world_of

ROOT = Path(__file__).resolve().parents[2]


def start(tmp_path, *more):
    """A server in a process of its own; its client."""
    command = [sys.executable, "-m", "gecko_graph", "serve", "--port", "0", *more]
    command += ["--scenario", str(EXAMPLES / "shop" / "cancel-the-mug.gecko.yaml")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LANGGRAPH_STRICT_MSGPACK": "true"}
    process = forked.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment)
    lines = []
    for line in process.stderr:
        lines.append(line)
        if " tools at " in line:
            return process, httpx.Client(base_url=line.split(" tools at ")[1].split()[0], timeout=30)
    return process, lines


def stop(process, how=signal.SIGKILL):
    process.send_signal(how)
    process.wait(20)
    process.stderr.close()


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path):
    rng, file = random.Random(3), tmp_path / "runs.sqlite"
    process, client = start(tmp_path, "--save", str(file))
    try:
        other, said = start(tmp_path, "--save", str(file))
        assert "another process" in "".join(said)
        assert other.wait(20) == 2
        other.stderr.close()
        for name in "ab":
            client.post("/_gecko/sessions", json={"id": name})
        for _ in range(12):
            sku = rng.choice(["MUG-BLUE", "TEA-100", "NOTHING"])
            given = {"quantity": rng.choice([1, 2, "x"])}
            client.put(f"/s/{rng.choice('ab')}/cart/{sku}", json=given)
        client.post("/_gecko/sessions/a/fork", json={"id": "c"})
        client.post("/_gecko/sessions/a/reset", json={"step": 2})
        client.put("/_gecko/sessions/b/state", json={**shop().state, "cart": {}})
        client.post("/s/b/orders/order-2/cancellation")
        client.post("/_gecko/sessions", json={"id": "gone"})
        client.delete("/_gecko/sessions/gone")
        before = {name: client.get(f"/_gecko/sessions/{name}/snapshot").json() for name in "abc"}
    finally:
        stop(process)
        client.close()
    process, client = start(tmp_path, "--save", str(file))
    try:
        assert {one["id"] for one in client.get("/_gecko/sessions").json()["sessions"]} == {*"abc"}
        assert {name: client.get(f"/_gecko/sessions/{name}/snapshot").json() for name in "abc"} == before
        assert client.post("/s/b/orders/order-1/cancellation").status_code == 200
    finally:
        stop(process, signal.SIGTERM)
        client.close()


def write(file):
    journal = Journal(file, identity="x")
    for number in range(5):
        journal.append(Row("a", "new", {"number": number}))
    journal.close()


@pytest.mark.parametrize("change", ["flip", "cut", "edit", "drop", "text"])
def test_a_damaged_or_edited_file_opens_nothing(tmp_path, change):
    import sqlite3

    file = tmp_path / "runs.sqlite"
    write(file)
    if change in ("edit", "drop"):
        base = sqlite3.connect(file, isolation_level=None)
        base.execute("UPDATE rows SET data = '{}' WHERE n = 3" if change == "edit" else "DELETE FROM rows WHERE n = 2")
        base.close()
    else:
        content = bytearray(file.read_bytes())
        at = content.find(b'{"number":3}')
        content = {"flip": content[:at] + b'{"number":7}' + content[at + 12 :], "cut": content[:5000]}.get(
            change, b"x" * 99
        )
        file.write_bytes(content)
    with pytest.raises(GeckoError, match="damaged"):
        list(Journal(file, identity="x").read())


def test_a_file_of_other_tools_is_refused(tmp_path):
    write(tmp_path / "runs.sqlite")
    with pytest.raises(GeckoError, match="other tools"):
        Journal(tmp_path / "runs.sqlite", identity="y")


async def test_a_call_is_written_before_it_is_acknowledged(tmp_path):
    case = shop()
    journal = Journal(tmp_path / "runs.sqlite", identity="x")
    client = client_of(world_of(case.tools, case.state), journal=journal)

    def full(row):
        raise OSError("disk full")

    journal.append = full
    for _ in range(2):
        assert (await client.post("/orders/order-2/cancellation")).status_code == 503
    assert (await client.post("/_gecko/sessions", json={})).status_code == 503
    journal.close()
    assert list(Journal(tmp_path / "runs.sqlite", identity="x").read()) == []
