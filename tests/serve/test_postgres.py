"""`--save postgresql://...`: several servers answer the same sessions; nothing answered is lost or doubled."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import httpx
import pytest

psycopg = pytest.importorskip("psycopg")
pytest.importorskip("langgraph.checkpoint.postgres")

from evals.reality.postgres import start_postgres
from evals.services.many_servers import TOOLS, Size, run_with_kills
from gecko_graph import Toolkit
from gecko_graph.cli import main
from gecko_graph.errors import GeckoError
from gecko_graph.serve import postgres
from gecko_graph.serve.postgres import Postgres
from gecko_graph.serve.sessions import HttpRefusal
from gecko_graph.serve.store import Row
from tests import forked

from .conftest import EXAMPLES, client_of, shop, world_of

CANCEL = "/orders/order-2/cancellation"
OWN = "/_gecko/sessions"


@pytest.fixture(scope="module")
def server():
    """Where a Postgres of the tests' own listens, on loopback."""
    return start_postgres() or pytest.skip("no Postgres on this machine")


@pytest.fixture
def address(server, request):
    """A schema of it, for one test."""
    name = f"t{abs(hash(request.node.name))}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        yield f"{server}?options=-csearch_path%3D{name}"
        connection.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def servers(address):
    """Two servers, as in two processes, and their clients."""
    case = shop()
    stores = [Postgres(address, identity="x", wait_s=1) for _ in range(2)]
    yield [client_of(world_of(case.tools, case.state), case=case, store=store) for store in stores]
    for store in stores:
        store.close()


def notes(address, **limits):
    return client_of(
        world_of(Toolkit.from_tools(TOOLS), {"notes": {}}), store=Postgres(address, identity="n"), **limits
    )


async def state(client, name):
    answer = await client.get(f"{OWN}/{name}/state")
    return answer.json() if answer.status_code == 200 else answer.status_code


async def test_either_server_answers_a_session_whatever_the_other_made_of_it(servers):
    one, two = servers
    assert (await one.post(OWN, json={"id": "a"})).status_code == 201
    assert (await two.post(OWN, json={"id": "a"})).status_code == 409
    assert (await two.post(f"/s/a{CANCEL}")).status_code == 200
    assert (await one.post(f"/s/a{CANCEL}")).status_code == 409, "it sees what the other did"
    assert (await two.post(f"{OWN}/a/fork", json={"id": "b"})).json() == {"id": "b", "steps": 2}
    assert (await one.get(f"{OWN}/b/history")).json()["history"] == (await two.get(f"{OWN}/a/history")).json()[
        "history"
    ]
    assert (await one.post(f"{OWN}/a/reset", json={"step": 1})).json()["steps"] == 1
    assert len((await two.get(f"{OWN}/a/history")).json()["history"]) == 1
    assert (await two.post(f"{OWN}/a/reset", json={"step": 9})).status_code == 422
    assert (await two.put(f"{OWN}/a/state", json={**shop().state, "cart": {}})).status_code == 200
    assert await state(one, "a") == await state(two, "a") == {**shop().state, "cart": {}}
    listed = {each["id"]: each["steps"] for each in (await one.get(OWN)).json()["sessions"]}
    assert listed == {"a": 0, "b": 2}
    assert (await one.post(CANCEL)).status_code == 200, "`default` is made by whoever asks first"
    assert (await two.post(CANCEL)).status_code == 409


async def test_a_session_that_was_reset_leaves_no_rows_and_one_that_was_closed_is_another_one(servers, address):
    one, two = servers
    for client in (one, two, one):
        await client.post(CANCEL)
        assert (await client.post(f"{OWN}/default/reset", json={})).json()["steps"] == 0
        assert await state(two, "default") == shop().state
    with psycopg.connect(address) as connection:
        assert connection.execute("SELECT kind FROM gecko_graph_rows ORDER BY n").fetchall() == [("new",), ("reset",)]
    for name in "ab":
        await one.post(OWN, json={"id": name})
        await two.post(f"/s/{name}{CANCEL}")
        assert (await one.delete(f"{OWN}/{name}")).status_code == 204
    assert await state(two, "a") == 404
    assert (await two.post(f"/s/b{CANCEL}")).status_code == 404
    assert (await one.post(OWN, json={"id": "a"})).status_code == 201
    assert await state(two, "a") == shop().state
    assert (await two.post(f"/s/a{CANCEL}")).status_code == 200


async def test_calls_of_one_session_at_two_servers_wait_for_each_other(address):
    clients = [notes(address) for _ in range(2)]
    await asyncio.gather(*(clients[at % 2].post("/note", json={"id": f"n{at}"}) for at in range(40)))
    told = [(await client.get(f"{OWN}/default/history")).json()["history"] for client in clients]
    assert told[0] == told[1]
    assert [step["outcome"]["result"]["at"] for step in told[0]] == [*range(1, 41)]
    for client in clients:
        client.sessions.store.close()


async def test_a_session_that_another_server_answers_is_refused_in_time_and_free_when_that_one_dies(address):
    def wait(state, id):
        time.sleep(1.5)
        return {"id": id, "at": 0}

    (tool,) = Toolkit.from_tools(TOOLS)
    slow = world_of(Toolkit.from_tools(TOOLS).replace(replace(tool, contract=None, simulate=wait)), {"notes": {}})
    stores = [Postgres(address, identity="n", wait_s=0.3) for _ in range(2)]
    busy, other = client_of(slow, store=stores[0]), client_of(slow, store=stores[1])
    held = asyncio.ensure_future(busy.post("/note", json={"id": "x"}))
    await asyncio.sleep(0.5)
    refused = await other.get(f"{OWN}/default/state")
    assert (refused.status_code, "another server" in refused.text) == (503, True)
    stores[0].close()  # as when its process ends
    assert await state(other, "default") == {"notes": {}}
    assert (await held).status_code == 503, "its claim is gone: what it made is not kept"
    assert (await busy.get(f"{OWN}/default/history")).json()["history"] == []
    for store in stores:
        store.close()


async def test_a_database_that_is_away_is_a_503_and_comes_back(servers, server):
    one, two = servers
    await one.post(CANCEL)
    before = await state(two, "default")
    store, real = one.sessions.store, one.sessions.store._address
    with psycopg.connect(server, autocommit=True) as connection:
        ours = "application_name = 'gecko-graph serve'"
        connection.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}")
        store._address = "postgresql://127.0.0.1:9/none"
        for _ in range(3):
            answer = await one.post("/orders/order-1/cancellation")
            assert answer.status_code == 503
            assert "the database of --save" in answer.text
    store._address = real
    await asyncio.sleep(0.6)
    assert await state(one, "default") == before
    assert (await one.post("/orders/order-1/cancellation")).status_code == 200
    assert (await two.get(f"{OWN}/default/state")).status_code == 503
    assert len((await two.get(f"{OWN}/default/history")).json()["history"]) == 2


async def test_idle_sessions_are_gone_for_all_and_there_are_only_so_many(address):
    clients = [
        client_of(world_of(shop().tools, shop().state), store=Postgres(address, identity="x", idle_s=0.3), most=2)
        for _ in range(2)
    ]
    one, two = clients
    for name in "ab":
        await one.post(OWN, json={"id": name})
    assert (await two.post(OWN, json={})).status_code == 503
    await asyncio.sleep(0.4)
    assert (await one.get(OWN)).json()["sessions"] == []
    assert await state(one, "a") == await state(two, "b") == 404
    for client in clients:
        client.sessions.store.close()


def test_a_database_of_other_tools_none_and_one_that_is_away_are_refused(address):
    Postgres(address, identity="x").close()
    with pytest.raises(GeckoError, match=r"other tools.*search_path"):
        Postgres(address, identity="y")
    with pytest.raises(GeckoError, match="cannot be used") as told:
        Postgres("postgresql://me:secret@127.0.0.1:9/none", identity="x")
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("trip", "is_done", "told"),
    [("claim", False, 503), ("claim", True, 503), ("keep", False, 503), ("keep", True, 200)],
)
async def test_a_connection_that_ends_at_any_moment_of_a_call(address, monkeypatch, trip, is_done, told):
    """A call that was answered is in the history; one that was refused is not, and another server goes on."""
    one, two = notes(address), notes(address)
    assert (await one.post("/note", json={"id": "first"})).status_code == 200
    store = one.sessions.store
    ask, trips = store._ask, iter(["claim", "keep"])

    async def end(*reads, **more):
        is_now = next(trips, None) == trip
        if is_now and not is_done:
            store.close()
        answer = await ask(*reads, **more)
        if is_now and is_done:
            store.close()
        return answer

    monkeypatch.setattr(store, "_ask", end)
    answer = await one.post("/note", json={"id": "second"})
    assert answer.status_code == told, answer.text
    monkeypatch.undo()
    made = ["first", "second"] if told == 200 else ["first"]
    for client in (two, one):
        history = (await client.get(f"{OWN}/default/history")).json()["history"]
        assert [step["call"]["args"]["id"] for step in history] == made
    assert (await two.post("/note", json={"id": "third"})).json()["at"] == len(made) + 1
    for client in (one, two):
        client.sessions.store.close()


async def test_a_caller_that_is_cancelled_ends_the_claims_and_holds_up_nobody(address):
    store = Postgres(address, identity="x")
    await store.count()  # opens the connection, which may take long on a loaded machine
    began = time.monotonic()
    slow = [asyncio.ensure_future(store._ask(("SELECT pg_sleep(%s)", 9))) for _ in range(2)]
    await asyncio.sleep(0.2)
    waiting = asyncio.ensure_future(store.claim("a", 0))
    await asyncio.sleep(0.1)
    slow[0].cancel()
    with pytest.raises(HttpRefusal, match="does not answer"):
        await slow[1]
    with pytest.raises(HttpRefusal, match="does not answer"):
        await waiting
    assert (await store.claim("a", 0)).seen == 0
    assert time.monotonic() - began < 5
    store.close()


async def test_what_several_calls_want_at_once_is_sent_together_and_what_may_be_slow_alone(address, monkeypatch):
    """A list that takes too long must not refuse a call that is stored."""
    store, trips, send = Postgres(address, identity="x"), [], postgres._send
    monkeypatch.setattr(postgres, "_send", lambda *given: trips.append(given[1]) or send(*given))
    names = [f"s{number}" for number in range(20)]
    await store._have()
    await asyncio.gather(*(store.claim(name, 0) for name in names))
    seen = await asyncio.gather(*(store.keep(name, 0, [Row(name, "new", {"at": name})], 0) for name in names))
    assert len(trips) <= 4
    found = await asyncio.gather(*(store.claim(name, 0) for name in names))
    assert [(each.seen, [*each.rows]) for each in found] == [
        (number, [Row(name, "new", {"at": name})]) for name, number in zip(names, seen, strict=True)
    ]
    trips.clear()
    row = Row("s0", "call", {})
    asked = store.list(), store.keep("s0", seen[0], [row], 1), store.count(), store.claim("b", 0), store.sweep()
    await asyncio.gather(*asked)
    assert sorted(map(len, trips)) == [1, 1, 3, 6]
    assert len(await store.list()) == 20
    store.close()


async def test_what_is_large_or_has_quotes_comes_back_as_it_was(address):
    """More than a socket takes at once, and texts that statements must quote."""
    one, two = notes(address), notes(address)
    odd = {"'; DROP TABLE gecko_graph_rows; --": "100% of \\ %s $1 \u20ac \x00", "large": "\u00e9" * 4_000_000}
    await one.sessions.replace("default", {"notes": odd})
    assert await state(two, "default") == await state(one, "default") == {"notes": odd}
    for client in (one, two):
        client.sessions.store.close()


@pytest.mark.parametrize(("sessions", "calls"), [(1, 3000), (300, 10)])
async def test_rows_are_read_by_the_index_and_planned_once(address, sessions, calls):
    """Whatever a database knows of the rows: to plan anew takes twice the time of reading."""
    store = Postgres(address, identity="x")
    connection = await store._have()
    await connection.execute(
        "INSERT INTO gecko_graph_rows (session, n, kind, steps, data) SELECT 's' || s, n, 'call', n, '{}'"
        f" FROM generate_series(1, {sessions}) s, generate_series(1, {calls}) n"
    )
    await connection.execute("ANALYZE gecko_graph_rows")
    for _ in range(8):
        plan = await (await connection.execute("EXPLAIN EXECUTE gecko_read(3, 's1')")).fetchall()
        told = "\n".join(line for (line,) in plan)
        assert ("Index Scan" in told, "$2" in told, "Sort" in told) == (True, True, False), told
    store.close()


async def test_a_name_that_no_database_holds_is_no_session(servers):
    one, _ = servers
    assert (await one.post(CANCEL)).status_code == 200
    connection = one.sessions.store._connection
    for name in ("a%00b", "a%20b", "%ed%a0%80"):
        assert (await one.post(f"/s/{name}{CANCEL}")).status_code == 404
        assert (await one.get(f"{OWN}/{name}/state")).status_code == 404
        assert (await one.delete(f"{OWN}/{name}")).status_code == 404
    assert one.sessions.store._connection is connection, "the calls of others are not refused by it"
    assert not connection.closed


@pytest.mark.slow
def test_kill_9_during_calls_loses_nothing_and_doubles_nothing(server, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", forked.Popen)  # each server is begun four times
    found = run_with_kills(Size(sessions=12, calls=160, clients=8, servers=2, kills=3))
    assert (found["answered"], found["killed"]) == (160, 3)
    assert (found["lost"], found["doubled"], found["torn"]) == (0, 0, 0)


@pytest.mark.slow
def test_workers_share_a_port_and_one_that_is_killed_is_begun_again(address, tmp_path):
    case = EXAMPLES / "shop" / "cancel-the-mug.gecko.yaml"
    command = [sys.executable, "-m", "gecko_graph", "serve", "--scenario", str(case), "--port", "0", "--save", address]
    process = forked.Popen([*command, "--workers", "2"], stderr=subprocess.PIPE, text=True)
    line = next(line for line in process.stderr if " tools at " in line)
    where = line.split(" tools at ")[1].split()[0]

    def workers():
        """Those which live; both are waited for. Without `-ww`, COLUMNS would cut what they are told by."""
        for _ in range(600):
            asked = ["ps", "-ww", "-o", "pid,args", "--ppid", str(process.pid)]
            listed = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
            found = {int(each.split()[0]) for each in listed if "spawn_main" in each}
            if len(found) == 2:
                return found
            time.sleep(0.1)
        raise AssertionError(f"not two workers: {listed}")

    def ask(method, path):
        for _ in range(50):  # a new connection each, to whichever worker takes it
            try:
                return httpx.request(method, where + path, timeout=60)
            except httpx.TransportError:
                time.sleep(0.1)
        raise AssertionError("nobody answers")

    try:
        told, first = [ask("POST", CANCEL).status_code], workers()
        os.kill(killed := min(first), signal.SIGKILL)
        told.append(ask("POST", CANCEL).status_code)
        assert told == [200, 409]
        assert len(ask("GET", f"{OWN}/default/history").json()["history"]) == len(told)
        assert killed not in workers()
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        process.stderr.close()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--workers", "2"], "--save postgresql://"),
        (["--workers", "2", "--save", "x.sqlite"], "--save postgresql://"),
        (["--workers", "2", "--save", "postgresql://127.0.0.1:9/x", "--mcp"], "in one process"),
        (["--save", "postgresql://127.0.0.1:9/x"], "the database cannot be used"),
    ],
)
def test_several_processes_need_a_database(capsys, more, why):
    assert main(["serve", "--scenario", str(EXAMPLES / "shop" / "cancel-the-mug.gecko.yaml"), *more]) == 2
    assert why in capsys.readouterr().err
