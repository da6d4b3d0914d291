"""The services on this machine: the shop beside the project, over HTTP; the phone of the examples, by its contracts."""

from __future__ import annotations

from functools import cache
from typing import Any

import httpx

from gecko_graph import GeckoContext, Toolkit, ToolSpec, World
from gecko_graph.state import CallStatus, Json, JsonObject
from gecko_graph.tools.openapi.client import read_answer
from gecko_graph.tools.openapi.request import build_request
from gecko_graph.values.difference import make_patch
from gecko_graph.values.documents import read_document
from gecko_graph.values.notes import notes_of
from gecko_graph.values.observation import Observation

from ..costing.shop import SHOP, load
from ..harness.options import ROOT
from .threads import Driver, Service, follow

CALLS = 40
SHELVES = {"Customers": ("customers", "customerId"), "Products": ("products", "sku"), "Orders": ("orders", "orderId")}
"""What lists of the shop hold, and where it stands in the state, under which member."""

ALIKE = {"first": "due", "last": "due", "time": "due", "to": "phone", "from": "phone"}
PHONE = ROOT / "examples" / "phone" / "cases"
CONTEXT = GeckoContext(ladder=("contract", "example"), semantic_validation=False)


def shop(seed: int, threads: int) -> Service:
    """Return the shop: each thread has a fresh one, and sees of it what it has read."""
    toolkit = Toolkit.from_openapi(SHOP / "shop.openapi.yaml").with_contracts({"contracts": shows()})

    def rows(thread: str) -> list[Observation]:
        service = load("shop_service").Shop()
        try:
            with httpx.Client(trust_env=False, timeout=60) as client:
                driver = Driver(toolkit, f"{seed}:{thread}", {"query": [""]})
                return follow(driver, CALLS, lambda name, args: _made(client, service.url, toolkit[name], args))
        finally:
            service.server.shutdown()
            service.server.server_close()
            service.db.close()

    return Service(toolkit, rows, *split(threads))


def shows() -> JsonObject:
    """Return what the shop's reads show of its state."""
    contracts: JsonObject = {}
    for name, (shelf, key) in SHELVES.items():
        one = f"get{name.rstrip('s')}"
        many = "listOrders" if name == "Orders" else f"search{name}"
        value: JsonObject = {"op": "add", "path": [shelf, f"{{{{ one.{key} }}}}"], "value": "{{ one }}"}
        contracts[many] = {"observes": [{"for_each": f"result.{shelf}", "as": "one", "do": [value]}]}
        contracts[one] = {
            "observes": [{"op": "add", "path": [shelf, f"{{{{ result.{key} }}}}"], "value": "{{ result }}"}]
        }
    return contracts


def _made(client: httpx.Client, server: str, tool: ToolSpec, args: JsonObject) -> tuple[CallStatus, Json]:
    answer = client.send(build_request(tool, server, args, extra={}))
    return read_answer(answer.status_code, answer.headers, answer.content)


def split(threads: int) -> tuple[list[str], list[str]]:
    """Return the names of threads to learn from, and of a quarter as many that are held out."""
    return [f"learn {n}" for n in range(threads)], [f"held {n}" for n in range(threads // 4)]


@cache
def phone_toolkit(*, bare: bool) -> Toolkit:
    """Return the phone's tools with their contracts, or as documented."""
    document = read_document(PHONE / "phone.openapi.yaml")
    return Toolkit.from_openapi(_without_contracts(document) if bare else document)


def _without_contracts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_contracts(one) for key, one in value.items() if not str(key).startswith("x-contract")}
    return [_without_contracts(one) for one in value] if isinstance(value, list) else value


def phone(seed: int, threads: int) -> Service:
    """Return the phone: its contracts answer in the states of its cases, a fifth of them held out; all is visible."""
    files = sorted(PHONE.glob("*.gecko.yaml"))
    starts: list[JsonObject] = [read_document(file)["state"] for file in files]

    def rows(thread: str) -> list[Observation]:
        word, _, number = thread.partition(" ")
        some = [one for at, one in enumerate(starts) if (at % 5 == 0) == (word == "held")]
        world = World(phone_toolkit(bare=False), state=some[int(number) % len(some)], context=CONTEXT)
        driver, made = Driver(phone_toolkit(bare=True), f"{seed}:{thread}", alike=ALIKE), list[Observation]()
        driver.meet(world.state)
        for _ in range(CALLS):
            name, args = driver.draw()
            before = world.state
            step = world.call({"name": name, "args": args})
            outcome: Any = step.get("outcome") or {"rung": "refused by the document"}
            if outcome["rung"] in CONTEXT.ladder and not notes_of(outcome, "unclear"):
                driver.meet(outcome["result"])
                change = make_patch(before, world.state)
                made.append(
                    Observation(name, args, outcome["status"], outcome["result"], before, change, source=thread)
                )
        return made

    return Service(phone_toolkit(bare=True), rows, *split(threads))
