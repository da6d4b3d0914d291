"""Servers on one Postgres that are killed at random: answered calls exist exactly once; and the cost of a call.

python -m evals scale --only servers

Each call writes a note with a unique id to a random session through a random server. A client whose server died checks
whether its call was made, and repeats it if it was not. At the end each session's history is read from every server.
CPU is measured without kills, for the servers and for Postgres with all its processes.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from gecko_graph import Tool
from gecko_graph.state import JsonObject

from ..reality.postgres import start_postgres
from ..speed.server import Load, cpu_of, running, serve_command

_TRIES = 200
"""Tries of one call before the run fails."""


def note(id: str) -> JsonObject:
    """Write a note."""
    raise NotImplementedError


_CONTRACT = {
    "let": {"number": "{{ len(state.notes) + 1 }}"},
    "effects": [{"op": "add", "path": ["notes", "{{ args.id }}"], "value": "{{ number }}"}],
    "returns": {"id": "{{ args.id }}", "at": "{{ number }}"},
}
TOOLS = [Tool(note, effect="write", contract=_CONTRACT)]


class Size(NamedTuple):
    """The size of a run: sessions, calls, parallel clients, servers, kills."""

    sessions: int = 500
    calls: int = 20_000
    clients: int = 16
    servers: int = 4
    kills: int = 40


class Fleet:
    """Servers, each of which is restarted on its port after a kill."""

    def __init__(self, command: list[str], count: int) -> None:
        self._command, self._stack = command, ExitStack()
        self._all = [self._stack.enter_context(running(*command)) for _ in range(count)]
        self.addresses = [address for _, address in self._all]

    def kill(self, at: int) -> None:
        self._all[at][0].send_signal(signal.SIGKILL)
        self._all[at][0].wait()

    def begin(self, at: int) -> None:
        port = self.addresses[at].rpartition(":")[2]
        self._all[at] = self._stack.enter_context(running(*self._command, "--port", port))

    def cpu(self) -> float:
        return sum(cpu_of(process.pid) for process, _ in self._all)

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def measure(size: Size = Size(), *, seed: int = 0) -> JsonObject:  # noqa: B008 - a constant
    """Return what kills cost, and the cost of a call, both with a private Postgres. Raises RuntimeError without one.

    `cpu_ms` of a call: one server on `sqlite`, several on `postgres` with clients that stay at a server, and `dealt`
    to a random one each time.
    """
    found = {**size._asdict(), **run_with_kills(size, seed=seed)}
    many = size.servers
    cpu = {"sqlite": cost_of(size, 1), "postgres": cost_of(size, many), "dealt": cost_of(size, many, is_dealt=True)}
    return {**found, "cpu_ms": cpu}


def run_with_kills(size: Size, *, seed: int = 0) -> JsonObject:
    """Kill servers while clients write; return how much is lost, doubled or torn in the end."""
    with schema("kills") as address, tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state.json"
        state.write_text('{"notes": {}}', encoding="utf-8")
        spec = ["-m", "gecko_graph", "serve", "evals.services.many_servers:TOOLS", "--state", str(state)]
        with Fleet([*spec, "--port", "0", "--save", address], size.servers) as fleet:
            return asyncio.run(_Run(fleet, size, seed).all())


class _Run:
    def __init__(self, fleet: Fleet, size: Size, seed: int) -> None:
        self._fleet, self._size, self._rng = fleet, size, random.Random(seed)
        self._answered: dict[str, tuple[str, int]] = {}
        self._refused, self._found, self._killed = Counter[str](), 0, 0
        self._todo = iter(range(size.calls))
        limits = httpx.Limits(max_connections=4 * size.clients)
        self._client = httpx.AsyncClient(timeout=60, limits=limits)

    async def all(self) -> JsonObject:
        began = time.perf_counter()
        async with self._client:
            names = [f"s{number}" for number in range(self._size.sessions)]
            await asyncio.gather(*(self._open(names[at :: self._size.clients]) for at in range(self._size.clients)))
            killing = asyncio.ensure_future(self._kill())
            await asyncio.gather(*(self._write(names) for _ in range(self._size.clients)))
            await killing
            seconds = time.perf_counter() - began
            held = [await self._read(name, at) for name in names for at in (0, -1)]
        pairs = [*zip(held[::2], held[1::2], strict=True)]
        ids = Counter(step["call"]["args"]["id"] for log, _ in held[::2] for step in log)
        return {
            "answered": len(self._answered),
            "lost": sum(name not in ids for name in self._answered),
            "doubled": sum(count > 1 for count in ids.values()),
            "torn": sum(not self._is_whole(*one) or one != other for one, other in pairs),
            "killed": self._killed,
            "found": self._found,
            "refused": dict(self._refused),
            "seconds": seconds,
        }

    def _is_whole(self, log: list[Any], state: JsonObject) -> bool:
        """Return whether a session's calls are numbered consecutively, as they were answered, and give its state."""
        made = {step["call"]["args"]["id"]: step["outcome"]["result"]["at"] for step in log}
        told = all(self._answered.get(name, ("", at))[1] == at for name, at in made.items())
        return told and state == {"notes": made} and [*made.values()] == [*range(1, len(log) + 1)]

    async def _open(self, names: list[str]) -> None:
        for name in names:
            url = f"{self._rng.choice(self._fleet.addresses)}/_gecko/sessions"
            (await self._client.post(url, json={"id": name})).raise_for_status()

    async def _write(self, names: list[str]) -> None:
        for number in self._todo:
            name, id_ = self._rng.choice(names), f"n{number}"
            for _ in range(_TRIES):
                if (at := await self._try(name, id_)) is not None:
                    self._answered[id_] = (name, at)
                    break
            else:
                raise RuntimeError(f"call {id_} of session {name} was not answered")

    async def _try(self, name: str, id_: str) -> int | None:
        url = f"{self._rng.choice(self._fleet.addresses)}/s/{name}/note"
        try:
            answer = await self._client.post(url, json={"id": id_})
        except httpx.TransportError:
            self._refused["no answer"] += 1
            await asyncio.sleep(0.05)
            at: int | None = (await self._read(name))[1]["notes"].get(id_)
            self._found += at is not None
            return at
        if answer.status_code == 200:
            return int(answer.json()["at"])
        self._refused[str(answer.status_code)] += 1
        await asyncio.sleep(0.05)
        return None

    async def _read(self, name: str, at: int | None = None) -> tuple[list[Any], JsonObject]:
        """Return a session's history and state, from one server or from any that answers."""
        for _ in range(_TRIES):
            given = self._fleet.addresses
            url = f"{self._rng.choice(given) if at is None else given[at]}/_gecko/sessions/{name}"
            try:
                log, state = await self._client.get(f"{url}/history"), await self._client.get(f"{url}/state")
                if log.status_code == state.status_code == 200:
                    return log.json()["history"], state.json()
            except httpx.TransportError:
                await asyncio.sleep(0.05)
        raise RuntimeError(f"no server returns session {name}")

    async def _kill(self) -> None:
        """Kill a server at regular numbers of answered calls, and restart it."""
        apart = self._size.calls // (self._size.kills + 1) if self._size.kills else 0
        while self._killed < self._size.kills:
            while len(self._answered) < (self._killed + 1) * apart:
                await asyncio.sleep(0.01)
            at = self._rng.randrange(self._size.servers)
            self._fleet.kill(at)
            self._killed += 1
            await asyncio.to_thread(self._fleet.begin, at)


def cost_of(size: Size, servers: int, *, is_dealt: bool = False) -> float:
    """Return the CPU milliseconds of a call of the shop: one server on SQLite, or several with their Postgres."""
    with tempfile.TemporaryDirectory() as folder, schema("cost") as address:
        save = address if servers > 1 else f"{folder}/runs.sqlite"
        with Fleet(serve_command("--save", save), servers) as fleet:
            load = Load(size.sessions, size.calls)
            put = load.put_to(fleet.addresses, lambda: fleet.cpu() + _postgres_cpu(address), is_dealt=is_dealt)
            return asyncio.run(put)


@contextmanager
def schema(name: str) -> Iterator[str]:
    """Yield the address of a new schema in a private Postgres. Raises RuntimeError if none can be started."""
    import psycopg

    address = start_postgres()
    if address is None:
        raise RuntimeError("no Postgres can be started on this machine")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}")
        yield f"{address}?options=-csearch_path%3D{name}"
        connection.execute(f"DROP SCHEMA {name} CASCADE")


def _postgres_cpu(address: str) -> float:
    """Return the CPU seconds of a Postgres, with all processes that it has started."""
    import psycopg

    with psycopg.connect(address) as connection:
        (folder,) = connection.execute("SHOW data_directory").fetchone() or ("",)
    first = int((Path(folder) / "postmaster.pid").read_text(encoding="utf-8").split()[0])
    listed = subprocess.run(["ps", "--no-headers", "-o", "pid", "--ppid", str(first)], capture_output=True, text=True)
    return cpu_of(first, ended=True) + sum(cpu_of(int(pid)) for pid in listed.stdout.split() if _lives(pid))


def _lives(pid: str) -> bool:
    return os.path.exists(f"/proc/{pid}/stat")
