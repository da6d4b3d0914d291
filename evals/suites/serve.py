"""The server: what kill -9 leaves of random walks, forks, CPU a request, and requests that Schemathesis makes up.

CPU stands beside that of a bare Starlette echo and of Prism. Prism and Schemathesis are programs of environments of
their own; what is not on the PATH is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from gecko_graph.scenario import Scenario
from gecko_graph.serve.app import Server
from gecko_graph.serve.journal import Journal
from gecko_graph.serve.operations import Operations
from gecko_graph.serve.sessions import Sessions
from gecko_graph.state import Json, JsonObject
from gecko_graph.world.world import World

from ..harness.figures import Case, Record, Table, rate
from ..harness.suite import Expectation, Suite, Summary
from ..services.schemathesis import find_schemathesis, run_schemathesis

ROOT = Path(__file__).resolve().parents[2]
CASE = ROOT / "examples" / "shop" / "cancel-the-mug.gecko.yaml"
WALKS, TOGETHER, LENGTH = 500, 50, 20
FORKS, CALLS = 1000, 100
SESSIONS, REQUESTS, AT_ONCE = 500, 4000, 16
SHARED = ROOT.parent / "shared" / "data" / "openapi"
EXAMPLES = {
    "files": ("files/files.openapi.yaml", "files/file-the-report.yaml"),
    "phone": ("phone/cases/phone.openapi.yaml", "phone/cases/bucks-for-euros.gecko.yaml"),
    "shop": ("shop/shop.openapi.yaml", "shop/cancel-the-mug.gecko.yaml"),
}
"""Documents with contracts, each with the scenario whose state they need."""
DOCUMENTS = ("prism_petstore.oas3.yaml", "google_calendar_adk_test.yaml", "oai_v3.0_petstore-expanded.yaml")
TRIES = 10
"""Requests that Schemathesis draws for an operation, beside those of its rules."""
ECHO = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
async def echo(request):
    return JSONResponse(await request.json())
app = Starlette(routes=[Route("/{rest:path}", echo, methods=["PUT"])])
config = uvicorn.Config(app, port=0, log_level="warning")
server = uvicorn.Server(config)
import asyncio
async def main():
    running = asyncio.ensure_future(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    sys.stderr.write(f"1 tools at http://127.0.0.1:{port} \\n")
    sys.stderr.flush()
    await running
asyncio.run(main())
"""
Move = tuple[str, str, Json]


@contextmanager
def _running(*command: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and its address; killed with -9."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE, text=True, env=environment)
    if process.stderr is None:
        raise RuntimeError("no standard error")
    try:
        line = next(line for line in process.stderr if " tools at " in line)
        yield process, line.split(" tools at ")[1].split()[0]
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stderr.close()


def _serve(*more: str) -> list[str]:
    return ["-m", "gecko_graph", "serve", "--scenario", str(CASE), "--port", "0", *more]


def _moves(rng: random.Random, count: int) -> list[Move]:
    """Return random requests, bad ones among them."""
    moves: list[Move] = []
    for _ in range(count):
        sku = rng.choice(["MUG-BLUE", "MUG-GREEN", "COFFEE-500", "TEA-100", "NOTHING"])
        order = f"order-{rng.randint(1, 5)}"
        moves.append(
            rng.choice(
                [
                    ("GET", "/products", None),
                    ("PUT", f"/cart/{sku}", {"quantity": rng.choice([0, 1, 2, 3, "x"])}),
                    ("POST", "/orders", None),
                    ("POST", f"/orders/{order}/cancellation", None),
                    ("GET", "/account", None),
                ]
            )
        )
    return moves


def _make(client: Any, name: str, move: Move) -> Any:
    method, path, body = move
    return client.request(method, f"/s/{name}{path}", **({} if body is None else {"json": body}))


def _base() -> tuple[Scenario, World]:
    from gecko_graph.cli.serve import RULES

    case = Scenario.load(CASE)
    limits = case.limits.model_copy(update={"semantic_validation": False, "ladder": RULES})
    return case, World(case.tools, state=case.state, context=limits)


class Serve(Suite):
    """Sessions of the server: saved and resumed, forked, and under load."""

    name = "serve"
    tools = "simulated"
    examples = ("", "--only walks:0")
    asks = False

    def cases(self) -> Iterator[Case]:
        """Yield groups of walks that one kill ends, the forks, and the load."""
        for number in range(WALKS // TOGETHER):
            yield Case(f"walks:{number}", number, group="walks")
        yield Case("forks", group="forks")
        yield Case("load", group="load")
        for name in (*EXAMPLES, *DOCUMENTS) if find_schemathesis() else ():
            yield Case(f"schemathesis:{name}", name, group="schemathesis")

    async def run_case(self, case: Case) -> JsonObject:
        """Run a group."""
        if case.group == "walks":
            return await asyncio.to_thread(self._walk, case.data)
        if case.group == "schemathesis":
            return await asyncio.to_thread(_try_document, case.data)
        return await self._fork() if case.group == "forks" else await asyncio.to_thread(self._load)

    def _walk(self, seed: int) -> JsonObject:
        """Kill a server after a random acknowledged call; every walk goes on as one that was never killed."""
        rng = random.Random(seed)
        walks = {f"w{number}": _moves(rng, LENGTH) for number in range(TOGETHER)}
        stops = {name: rng.randrange(LENGTH - 1) for name in walks}
        todo = [name for name, stop in stops.items() for _ in range(stop)]
        rng.shuffle(todo)
        with tempfile.TemporaryDirectory() as folder:
            save = ["--save", f"{folder}/runs.sqlite"]
            with _running(*_serve(*save)) as (_, address), httpx.Client(base_url=address, timeout=60) as client:
                for name in walks:
                    client.post("/_gecko/sessions", json={"id": name})
                made = dict.fromkeys(walks, 0)
                for name in todo:
                    _make(client, name, walks[name][made[name]])
                    made[name] += 1
            with _running(*_serve(*save)) as (_, address), httpx.Client(base_url=address, timeout=60) as client:
                after = {name: _rest(client, name, walks[name][stops[name] :]) for name in walks}
        whole = asyncio.run(_walk_whole(walks, stops))
        return {"walks": TOGETHER, "same": sum(after[name] == whole[name] for name in walks)}

    async def _fork(self) -> JsonObject:
        """Fork a session of many calls, over ASGI and saved; then look whether one sees another's calls."""
        case, base = _base()
        with tempfile.TemporaryDirectory() as folder:
            sessions = Sessions(base, journal=Journal(f"{folder}/runs.sqlite", identity="x"))
            rng = random.Random(0)
            app = Server(sessions, Operations(base.toolkit), case).build()
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
                sessions.create("a")
                for move in _moves(rng, CALLS):
                    await _make(client, "a", move)
                before = sessions.get("a").world.state
                began = time.perf_counter()
                for number in range(FORKS):
                    await sessions.fork("a", f"f{number}")
                direct = time.perf_counter() - began
                began = time.perf_counter()
                for _ in range(FORKS):
                    await client.post("/_gecko/sessions/a/fork")
                routed = time.perf_counter() - began
                await client.put("/s/f0/cart/TEA-100", json={"quantity": 3})
                seen = sum(sessions.get(f"f{number}").world.state != before for number in range(1, FORKS))
        return {"direct_s": direct, "routed_s": routed, "seen": seen + (sessions.get("a").world.state != before)}

    def _load(self) -> JsonObject:
        """Send the same requests to the server, saving and not, and to an echo; CPU is the server's own."""
        with tempfile.TemporaryDirectory() as folder:
            echo = asyncio.run(_measure(["-c", ECHO], is_ours=False))
            plain = asyncio.run(_measure(_serve()))
            saved = asyncio.run(_measure(_serve("--save", f"{folder}/runs.sqlite")))
        beside = {"prism": asyncio.run(_measure_prism())} if shutil.which("prism") else {}
        return {"echo": echo, "plain": plain, "saved": saved, **beside}

    def summarise(self, records: Sequence[Record]) -> Summary:
        """Return equality after kills, forks a second, CPU a request."""
        walks = [each for each in records if each.group == "walks"]
        same = Table(
            "After kill -9: every later answer and the state as without it", columns=["what", "groups of fifty walks"]
        )
        lines, expected = list[str](), list[Expectation]()
        if walks:
            whole = rate(walks, lambda each: each.values["same"] == each.values["walks"])
            same.add("all walks of the group", whole)
            expected.append(Expectation("no walk differs after a kill", whole.value == 1))
        for each in records:
            if each.group == "forks" and each.values:
                took = each.values["direct_s"]
                lines.append(f"{FORKS} forks of {CALLS} calls: {took:.2f} s; by route {each.values['routed_s']:.2f} s")
                expected.append(Expectation("1,000 forks of a session of 100 calls in a second", took < 1))
                expected.append(Expectation("no call of a fork is seen by another", each.values["seen"] == 0))
            if each.group == "load" and each.values:
                for name, got in each.values.items():
                    lines.append(f"{name}: {got['cpu_ms']:.3f} ms CPU a request, {got['rate']:.0f} a second")
                    expected.append(Expectation(f"no update is lost ({name})", got["lost"] == 0))
        tried = [each for each in records if each.group == "schemathesis" and each.values]
        tables = [*([same] if walks else []), *([_tell_tries(tried, expected)] if tried else [])]
        return Summary(tables, notes=lines, expectations=expected)


async def _walk_whole(walks: dict[str, list[Move]], stops: dict[str, int]) -> dict[str, list[Any]]:
    """Return what `_rest` does for walks that no kill ended, by a server in this process."""
    case, base = _base()
    sessions, found = Sessions(base), dict[str, list[Any]]()
    app = Server(sessions, Operations(base.toolkit), case).build()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        for name, moves in walks.items():
            sessions.create(name)
            answers = [await _make(client, name, move) for move in moves]
            told = [(each.status_code, each.text) for each in answers[stops[name] :]]
            found[name] = [*told, sessions.get(name).world.state]
    return found


def _try_document(name: str) -> JsonObject:
    """Have Schemathesis try a document's operations."""
    document, case = EXAMPLES.get(name, ("", ""))
    path = ROOT / "examples" / document if document else SHARED / name
    given = ["--scenario", str(ROOT / "examples" / case)] if case else [str(path)]
    with _running("-m", "gecko_graph", "serve", "--port", "0", *given) as (_, address):
        return run_schemathesis(str(find_schemathesis()), path, address, examples=TRIES)


def _tell_tries(records: Sequence[Record], expected: list[Expectation]) -> Table:
    """Return a line a document; the wrong methods, which any router refuses, do not count as invalid requests."""
    columns = [
        "document",
        "valid",
        "of them 422 or 415",
        "invalid",
        "of them refused",
        "2xx by the schema rung",
        "faults",
    ]
    table = Table("Requests that Schemathesis makes up", columns=columns)
    for each in records:
        got = each.values
        invalid = {status: count for status, count in got["invalid"].items() if status != "405"}
        refused = sum(count for status, count in invalid.items() if status[0] == "4")
        unmet, faults = sum(got["valid_refused"].values()), sum(got["faults"].values())
        fine, tried = got["by_schema"]
        table.add(
            each.id, sum(got["valid"].values()), unmet, sum(invalid.values()), refused, f"{fine} of {tried}", faults
        )
        expected.append(Expectation(f"{each.id}: no valid request is a 422", not unmet))
        expected.append(
            Expectation(f"{each.id}: 95 % of invalid ones are refused", refused >= 0.95 * sum(invalid.values()))
        )
        expected.append(Expectation(f"{each.id}: no 500, and each answer within its schema", not faults))
        expected.append(Expectation(f"{each.id}: 95 % 2xx by the schema rung", fine >= 0.95 * tried))
    return table


def _rest(client: httpx.Client, name: str, moves: Sequence[Move]) -> list[Any]:
    """Return the answers to what is left of a walk, and its end state."""
    answers = [_make(client, name, move) for move in moves]
    return [(each.status_code, each.text) for each in answers] + [client.get(f"/_gecko/sessions/{name}/state").json()]


async def _measure_prism() -> JsonObject:
    """Measure Prism on the document that the server answers; it knows no sessions."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    document = str(ROOT / "examples" / EXAMPLES["shop"][0])
    command = [str(shutil.which("prism")), "mock", "-p", str(port), document]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            await asyncio.sleep(0.1)
        return await _load_one(process, f"http://127.0.0.1:{port}", is_ours=False, path="")
    finally:
        process.kill()
        process.wait()


async def _measure(command: list[str], *, is_ours: bool = True) -> JsonObject:
    with _running(*command) as (process, address):
        return await _load_one(process, address, is_ours=is_ours)


async def _load_one(process: subprocess.Popen[Any], address: str, *, is_ours: bool, path: str = "/s/{}") -> JsonObject:
    """Send the requests to a server, by sessions where its path names them; CPU is the process's own."""
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        for number in range(SESSIONS if is_ours else 0):
            await client.post("/_gecko/sessions", json={"id": f"s{number}"})
        cpu, began = _cpu_of(process.pid), time.perf_counter()

        async def send(part: int) -> None:
            for at in range(part, REQUESTS, AT_ONCE):
                url = f"{path.format(f's{at % SESSIONS}')}/cart/TEA-100"
                (await client.put(url, json={"quantity": at % 5 + 1})).raise_for_status()

        await asyncio.gather(*(send(part) for part in range(AT_ONCE)))
        took, used = time.perf_counter() - began, _cpu_of(process.pid) - cpu
        lost = 0
        if is_ours:
            held = (await client.get("/_gecko/sessions")).json()["sessions"]
            lost = REQUESTS - sum(each["steps"] for each in held)
    return {"cpu_ms": used / REQUESTS * 1000, "rate": REQUESTS / took, "lost": lost}


def _cpu_of(pid: int) -> float:
    """Return the seconds that a process has computed."""
    parts = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


SUITE = Serve
