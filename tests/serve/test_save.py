"""`--save`: what was acknowledged is there after kill -9; a damaged file and a second process are refused."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from gecko_graph.errors import GeckoError
from gecko_graph.serve.journal import Journal
from gecko_graph.serve.store import Row
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
    assert [each.name for each in tmp_path.iterdir()] == [file.name], "an orderly end leaves one file"


def write(file):
    journal = Journal(file, identity="x")
    for number in range(5):
        journal.append(Row("a", "new", {"number": number}))
    journal.close()


@pytest.mark.parametrize("change", ["flip", "cut", "edit", "drop", "text"])
def test_a_damaged_or_edited_file_opens_nothing(tmp_path, change):
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


def test_a_file_of_other_tools_or_of_the_version_before_is_refused_with_the_reason(tmp_path):
    write(tmp_path / "runs.sqlite")
    with pytest.raises(GeckoError, match="other tools"):
        Journal(tmp_path / "runs.sqlite", identity="y")
    base = sqlite3.connect(tmp_path / "before.sqlite", isolation_level=None)
    base.execute("CREATE TABLE head (format TEXT, identity TEXT)")
    base.execute("INSERT INTO head VALUES ('1', 'x')")
    base.close()
    with pytest.raises(GeckoError, match="another version"):
        Journal(tmp_path / "before.sqlite", identity="x")


async def test_a_call_is_written_before_it_is_acknowledged(tmp_path):
    case = shop()
    journal = Journal(tmp_path / "runs.sqlite", identity="x")
    client = client_of(world_of(case.tools, case.state), store=journal)

    def full(row):
        raise OSError("disk full")

    journal.append = full
    for _ in range(2):
        assert (await client.post("/orders/order-2/cancellation")).status_code == 503
    assert (await client.post("/_gecko/sessions", json={})).status_code == 503
    journal.close()
    assert list(Journal(tmp_path / "runs.sqlite", identity="x").read()) == []


# the end of the chain ---------------------------------------------------------------------------------


def copy(file, folder, *endings):
    """A copy of a file, and of those that stand beside it by their endings."""
    folder.mkdir()
    for each in (file, *(Path(f"{file}{ending}") for ending in endings)):
        if each.exists():
            shutil.copy(each, folder / each.name)
    return folder / file.name


def numbers(file):
    journal = Journal(file, identity="x")
    try:
        return [row.data["number"] for row in journal.read()]
    finally:
        journal.close()


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("lost", ["n = 5", "n > 3", "1", None])
def test_a_file_that_lost_its_end_opens_nothing(tmp_path, is_killed, lost):
    file = tmp_path / "runs.sqlite"
    write(file)
    if is_killed:
        journal = Journal(file, identity="x")
        assert len(list(journal.read())) == 5
        journal.append(Row("a", "new", {"number": 5}))
        file = copy(file, tmp_path / "killed", "-wal", "-head")
        journal.close()
    base = sqlite3.connect(file, isolation_level=None)
    base.execute(f"DELETE FROM rows WHERE {lost}" if lost else "DROP TABLE rows")
    base.close()
    for _ in range(2):  # that it was refused is no reason to open it
        with pytest.raises(GeckoError, match=r"missing|damaged"):
            numbers(file)


def test_a_copy_of_a_served_file_needs_what_stands_beside_it(tmp_path):
    file = tmp_path / "runs.sqlite"
    write(file)
    assert [each.name for each in tmp_path.iterdir()] == [file.name], "after an orderly end one file is all"
    assert numbers(copy(file, tmp_path / "ended")) == [*range(5)]
    journal = Journal(file, identity="x")
    list(journal.read())
    for number in range(5, 9):
        journal.append(Row("a", "new", {"number": number}))
    for at, endings in enumerate([(), ("-wal",), ("-head",)]):
        with pytest.raises(GeckoError, match="--save"):
            numbers(copy(file, tmp_path / str(at), *endings))
    whole = copy(file, tmp_path / "whole", "-wal", "-head")
    shorter = copy(file, tmp_path / "shorter", "-wal", "-head")
    journal.close()
    assert numbers(whole) == [*range(9)]
    wal = Path(f"{shorter}-wal")
    wal.write_bytes(wal.read_bytes()[:-5000])
    with pytest.raises(GeckoError, match="missing"):
        numbers(shorter)
    base = sqlite3.connect(shorter, isolation_level=None)  # as docs/serve.md says
    base.execute("UPDATE head SET end = (SELECT mark FROM rows ORDER BY n DESC)")
    base.close()
    Path(f"{shorter}-head").unlink()
    held = numbers(shorter)
    assert held == [*range(len(held))] != [*range(9)]


def test_a_killed_file_that_another_program_looked_at_still_opens(tmp_path):
    file = tmp_path / "runs.sqlite"
    journal = Journal(file, identity="x")
    journal.append(Row("a", "new", {"number": 0}))
    killed = copy(file, tmp_path / "killed", "-wal", "-head")
    journal.close()
    base = sqlite3.connect(killed)
    assert base.execute("SELECT count(*) FROM rows").fetchone() == (1,)
    base.close()  # which moves the rows out of -wal, and removes it
    assert not Path(f"{killed}-wal").exists()
    assert numbers(killed) == [0]


def test_killed_between_any_two_lines_the_file_opens_with_all_that_was_acknowledged(tmp_path):
    file, places, acknowledged = tmp_path / "runs.sqlite", [], []

    def trace(frame, event, _):
        if frame.f_code.co_filename != journal_file:
            return None
        if event == "line":
            folder = tmp_path / str(len(places))
            if file.exists():
                copy(file, folder, "-wal", "-head", "-journal")
                places.append((folder / file.name, len(acknowledged), frame.f_lineno))
        return trace

    journal_file, before = sys.modules[Journal.__module__].__file__, sys.gettrace()
    for _ in range(2):
        sys.settrace(trace)
        try:
            journal = Journal(file, identity="x")
            list(journal.read())
            for _ in range(2):
                journal.append(Row("a", "new", {"number": len(acknowledged)}))
                acknowledged.append(1)
            journal.close()
        finally:
            sys.settrace(before)
    assert len(places) > 50
    for place, count, line in places:
        assert numbers(place) in ([*range(count)], [*range(count + 1)]), line
        journal = Journal(place, identity="x")  # and it goes on
        held = len(list(journal.read()))
        journal.append(Row("a", "new", {"number": held}))
        journal.close()
        assert numbers(place) == [*range(held + 1)]
