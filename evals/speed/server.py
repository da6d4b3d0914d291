"""Cost of a request to a server: sessions in memory and saved, compared with a bare Starlette echo, in its own CPU."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from gecko_graph.state import JsonObject

from ..harness.figures import Record, Table, median_of
from ..harness.suite import Expectation

ROOT = Path(__file__).resolve().parents[2]
SHOP = ROOT / "examples" / "shop"
CASE = SHOP / "cancel-the-mug.gecko.yaml"
SESSIONS, REQUESTS, AT_ONCE = 500, 4000, 16
_WARM = 50
"""Requests before CPU is measured."""
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


@contextmanager
def running(*command: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in processes of its own, and its address; killed with -9, all at once."""
    given: Any = {"env": {**os.environ, "PYTHONPATH": str(ROOT)}, "start_new_session": True}
    process = subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE, text=True, **given)
    if process.stderr is None:
        raise RuntimeError("no standard error")
    try:
        line = next(line for line in process.stderr if " tools at " in line)
        yield process, line.split(" tools at ")[1].split()[0]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stderr.close()


def serve_command(*more: str) -> list[str]:
    return ["-m", "gecko_graph", "serve", "--scenario", str(CASE), "--port", "0", *more]


def measure(*, sessions: int = SESSIONS, requests: int = REQUESTS) -> JsonObject:
    """Send requests over sessions to the server, with and without saving, and to an echo.

    Returns:
        By server: `cpu_ms` of the process per request, `rate` per second, `lost` updates.
    """
    load = Load(sessions, requests)
    with tempfile.TemporaryDirectory() as folder:
        return {
            "echo": load.measure(["-c", ECHO], is_ours=False),
            "plain": load.measure(serve_command()),
            "saved": load.measure(serve_command("--save", f"{folder}/runs.sqlite")),
        }


class Load(NamedTuple):
    """Writes over several sessions, sent concurrently."""

    sessions: int
    requests: int

    def measure(self, command: list[str], *, is_ours: bool = True) -> JsonObject:
        with running(*command) as (process, address):
            return asyncio.run(self.put(process, address, is_ours=is_ours))

    async def put(self, process: subprocess.Popen[Any], address: str, *, is_ours: bool) -> JsonObject:
        """Send the writes to a server and return its cost; CPU is the process's own."""
        async with httpx.AsyncClient(base_url=address, timeout=60) as client:
            for number in range(self.sessions if is_ours else 0):
                await client.post("/_gecko/sessions", json={"id": f"s{number}"})
            cpu, began = cpu_of(process.pid), time.perf_counter()

            async def send(part: int) -> None:
                for at in range(part, self.requests, AT_ONCE):
                    url = f"/s/s{at % self.sessions}/cart/TEA-100"
                    (await client.put(url, json={"quantity": at % 5 + 1})).raise_for_status()

            await asyncio.gather(*(send(part) for part in range(AT_ONCE)))
            took, used = time.perf_counter() - began, cpu_of(process.pid) - cpu
            lost = 0
            if is_ours:
                held = (await client.get("/_gecko/sessions")).json()["sessions"]
                lost = self.requests - sum(each["steps"] for each in held)
        return {"cpu_ms": used / self.requests * 1000, "rate": self.requests / took, "lost": lost}

    async def put_to(self, addresses: Sequence[str], cpu: Callable[[], float], *, is_dealt: bool = False) -> float:
        """Send the writes to several servers; return the milliseconds per write on the clock `cpu`.

        Each client has its own sessions, and stays at one server; or, if `is_dealt`, each write goes to a random one.
        """
        clients, rng, count = [httpx.AsyncClient(timeout=60) for _ in range(AT_ONCE)], random.Random(0), len(addresses)
        for number in range(self.sessions):
            (await clients[0].post(f"{addresses[0]}/_gecko/sessions", json={"id": f"s{number}"})).raise_for_status()

        async def send(part: int, of: int) -> None:
            names = [f"s{number}" for number in range(part, self.sessions, AT_ONCE)]
            for at in range(of // AT_ONCE):
                address = addresses[(rng.randrange(count) if is_dealt else part) % count]
                url = f"{address}/s/{names[at % len(names)]}/cart/TEA-100"
                (await clients[part].put(url, json={"quantity": at % 5 + 1})).raise_for_status()

        await asyncio.gather(*(send(part, _WARM * AT_ONCE) for part in range(AT_ONCE)))
        before = cpu()
        await asyncio.gather(*(send(part, self.requests) for part in range(AT_ONCE)))
        used = cpu() - before
        for client in clients:  # a client of their own each: the pool of a common one looks through all connections
            await client.aclose()
        return used / (self.requests // AT_ONCE * AT_ONCE) * 1000


def cpu_of(pid: int, *, ended: bool = False) -> float:
    """Return a process's CPU seconds, with those of its ended children if `ended`."""
    parts = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, parts[11 : 15 if ended else 13])) / os.sysconf("SC_CLK_TCK")


def table(records: Sequence[Record]) -> Table:
    found = Table("A request of a server under load", ["server", "ms CPU a request", "requests a second", "lost"])
    for record in records:
        for name, got in record.values.items():
            cells = (median_of([got[key]], tools="simulated") for key in ("cpu_ms", "rate"))
            found.add(name, *cells, got["lost"])
    return found


def met(records: Sequence[Record]) -> Iterator[Expectation]:
    for record in records:
        for name, got in record.values.items():
            yield Expectation(f"no update is lost ({name})", got["lost"] == 0)
