"""The server: data after kill -9 in random walks, forks, and requests made up by Schemathesis.

Schemathesis is a program in its own environment; its part is skipped if it is not on the PATH. The cost of a request is
measured by `speed`.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import httpx

from gecko_graph.scenario import Scenario
from gecko_graph.serve.app import Server
from gecko_graph.serve.journal import Journal
from gecko_graph.serve.operations import HttpOperations
from gecko_graph.serve.sessions import Sessions
from gecko_graph.state import Json, JsonObject
from gecko_graph.world.world import World

from ..harness.figures import Case, Record, Table, rate
from ..harness.suite import Expectation, Suite, Summary
from ..services.many_servers import schema
from ..services.schemathesis import find_schemathesis, run_schemathesis
from ..speed.server import CASE, ROOT, running, serve_command

WALKS, TOGETHER, LENGTH = 500, 50, 20
FORKS, CALLS = 1000, 100
SHARED = ROOT.parent / "shared" / "data" / "openapi"
EXAMPLES = {
    "files": ("files/files.openapi.yaml", "files/file-the-report.yaml"),
    "phone": ("phone/cases/phone.openapi.yaml", "phone/cases/bucks-for-euros.gecko.yaml"),
    "shop": ("shop/shop.openapi.yaml", "shop/cancel-the-mug.gecko.yaml"),
}
"""Documents with contracts, each with the scenario whose state they need."""
DOCUMENTS = ("prism_petstore.oas3.yaml", "google_calendar_adk_test.yaml", "oai_v3.0_petstore-expanded.yaml")
TRIES = 10
"""Requests that Schemathesis draws per operation, in addition to those of its rules."""
Move = tuple[str, str, Json]


def _moves(rng: random.Random, count: int) -> list[Move]:
    """Return random requests, including invalid ones."""
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
    from gecko_graph.cli.inputs import RULES

    case = Scenario.load(CASE)
    limits = case.limits.model_copy(update={"semantic_validation": False, "ladder": RULES})
    return case, World(case.tools, state=case.state, context=limits)


class Serve(Suite):
    """Sessions of the server: saved and resumed, and forked."""

    name = "serve"
    tools = "simulated"
    examples = ("", "--only walks:0", "--servers 4")
    asks = False

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        about = "so many processes serve each document, with sessions in a Postgres of its own (1, with a file)"
        parser.add_argument("--servers", metavar="N", type=int, default=1, help=about)

    def cases(self) -> Iterator[Case]:
        for number in range(WALKS // TOGETHER):
            yield Case(f"walks:{number}", number, group="walks")
        yield Case("forks", group="forks")
        for name in (*EXAMPLES, *DOCUMENTS) if find_schemathesis() else ():
            yield Case(f"schemathesis:{name}", name, group="schemathesis")

    async def run_case(self, case: Case) -> JsonObject:
        if case.group == "walks":
            return await asyncio.to_thread(self._walk, case.data)
        if case.group == "schemathesis":
            return await asyncio.to_thread(_try_document, case.data, self.options.own.servers)
        return await self._fork()

    def _walk(self, seed: int) -> JsonObject:
        """Kill a server after a random acknowledged call; every walk must continue as if there was no kill."""
        rng = random.Random(seed)
        walks = {f"w{number}": _moves(rng, LENGTH) for number in range(TOGETHER)}
        stops = {name: rng.randrange(LENGTH - 1) for name in walks}
        todo = [name for name, stop in stops.items() for _ in range(stop)]
        rng.shuffle(todo)
        with _saving(self.options.own.servers) as save:
            with running(*serve_command(*save)) as (_, address), httpx.Client(base_url=address, timeout=60) as client:
                for name in walks:
                    client.post("/_gecko/sessions", json={"id": name})
                made = dict.fromkeys(walks, 0)
                for name in todo:
                    _make(client, name, walks[name][made[name]])
                    made[name] += 1
            with running(*serve_command(*save)) as (_, address), httpx.Client(base_url=address, timeout=60) as client:
                after = {name: _rest(client, name, walks[name][stops[name] :]) for name in walks}
        whole = asyncio.run(_walk_whole(walks, stops))
        return {"walks": TOGETHER, "same": sum(after[name] == whole[name] for name in walks)}

    async def _fork(self) -> JsonObject:
        """Fork a session of many calls, over ASGI and saved; then check that no fork sees another's calls."""
        case, base = _base()
        with tempfile.TemporaryDirectory() as folder:
            sessions = Sessions(base, store=Journal(f"{folder}/runs.sqlite", identity="x"))
            rng = random.Random(0)
            app = Server(sessions, HttpOperations(base.toolkit), case).build()
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
                await sessions.create("a")
                for move in _moves(rng, CALLS):
                    await _make(client, "a", move)
                before = (await sessions.get("a")).world.state
                began = time.perf_counter()
                for number in range(FORKS):
                    await sessions.fork("a", f"f{number}")
                direct = time.perf_counter() - began
                began = time.perf_counter()
                for _ in range(FORKS):
                    await client.post("/_gecko/sessions/a/fork")
                routed = time.perf_counter() - began
                await client.put("/s/f0/cart/TEA-100", json={"quantity": 3})
                others = [await sessions.get(f"f{number}") for number in range(1, FORKS)]
                seen = sum(each.world.state != before for each in [*others, await sessions.get("a")])
        return {"direct_s": direct, "routed_s": routed, "seen": seen}

    def summarise(self, records: Sequence[Record]) -> Summary:
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
        tried = [each for each in records if each.group == "schemathesis" and each.values]
        tables = [*([same] if walks else []), *([_tell_tries(tried, expected)] if tried else [])]
        return Summary(tables, notes=lines, expectations=expected)


async def _walk_whole(walks: dict[str, list[Move]], stops: dict[str, int]) -> dict[str, list[Any]]:
    """Return the result of `_rest` for walks without a kill, with a server in this process."""
    case, base = _base()
    sessions, found = Sessions(base), dict[str, list[Any]]()
    app = Server(sessions, HttpOperations(base.toolkit), case).build()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        for name, moves in walks.items():
            await sessions.create(name)
            answers = [await _make(client, name, move) for move in moves]
            told = [(each.status_code, each.text) for each in answers[stops[name] :]]
            found[name] = [*told, (await sessions.get(name)).world.state]
    return found


@contextmanager
def _saving(servers: int) -> Iterator[list[str]]:
    """Options that keep sessions: in a file of one process, or in a database of several."""
    with tempfile.TemporaryDirectory() as folder, schema("serve") if servers > 1 else nullcontext() as address:
        more = ["--workers", str(servers)] if servers > 1 else []
        yield ["--save", address or f"{folder}/runs.sqlite", *more]


def _try_document(name: str, servers: int) -> JsonObject:
    document, case = EXAMPLES.get(name, ("", ""))
    path = ROOT / "examples" / document if document else SHARED / name
    given = ["--scenario", str(ROOT / "examples" / case)] if case else [str(path)]
    command = ["-m", "gecko_graph", "serve", "--port", "0", *given]
    with _saving(servers) as save, running(*command, *save) as (_, address):
        return run_schemathesis(str(find_schemathesis()), path, address, examples=TRIES)


def _tell_tries(records: Sequence[Record], expected: list[Expectation]) -> Table:
    """Return a line per document; wrong methods, which any router refuses, do not count as invalid requests."""
    columns = [
        "document",
        "valid",
        "of them 422 or 415",
        "invalid",
        "of them refused",
        "valid as sent",
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
        counts = sum(got["valid"].values()), unmet, sum(invalid.values()), refused, got["same_on_wire"]
        table.add(each.id, *counts, f"{fine} of {tried}", faults)
        expected.append(Expectation(f"{each.id}: no valid request is a 422", not unmet))
        expected.append(
            Expectation(f"{each.id}: 95 % of invalid ones are refused", refused >= 0.95 * sum(invalid.values()))
        )
        expected.append(Expectation(f"{each.id}: no 500, and each answer within its schema", not faults))
        expected.append(Expectation(f"{each.id}: 95 % 2xx by the schema rung", fine >= 0.95 * tried))
    return table


def _rest(client: httpx.Client, name: str, moves: Sequence[Move]) -> list[Any]:
    answers = [_make(client, name, move) for move in moves]
    return [(each.status_code, each.text) for each in answers] + [client.get(f"/_gecko/sessions/{name}/state").json()]


SUITE = Serve
