"""Cost of one call in a `World` that a contract answers, by size of the state: files, an airline's database."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gecko_graph import Tool, Toolkit, World
from gecko_graph.state import JsonObject

from ..harness.options import EvalError
from . import case

DATABASE = "tau_airline_db.json.gz"

_ID = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
_KNOWN = [{"check": "args.id in state.reservations", "error": "no reservation {{ args.id }}"}]
_PLACE = ["reservations", "{{ args.id }}"]
CONTRACTS: dict[str, JsonObject] = {
    "get_user": {
        "requires": [{"check": "args.id in state.users", "error": "no user {{ args.id }}"}],
        "returns": "{{ state.users[args.id] }}",
    },
    "get_reservation": {"requires": _KNOWN, "returns": "{{ state.reservations[args.id] }}"},
    "cancel_reservation": {
        "requires": _KNOWN,
        "effects": [{"op": "add", "path": [*_PLACE, "status"], "value": "cancelled"}],
        "returns": "{{ state.reservations[args.id] }}",
        "ensures": [{"check": "result.status == 'cancelled'", "error": "it was not cancelled"}],
    },
}


def airline_toolkit() -> Toolkit:
    """Return two reads and a write on the database, with contracts."""
    effects: Any = {"get_user": "read", "get_reservation": "read", "cancel_reservation": "write"}
    invariant = {"check": "state.users != {}", "error": "there are no users"}
    declared = [
        Tool({"name": name, "parameters": _ID}, effect=effects[name], contract=one) for name, one in CONTRACTS.items()
    ]
    return Toolkit.from_tools(declared, invariants=[invariant])


def on_files(kilobytes: int) -> tuple[World, Iterator[JsonObject]]:
    """Return a world of this many kB of files, and calls that do not change its size."""
    names = (f"file_{number}.txt" for number in range(1_000_000))
    calls = ({"name": tool, "args": args} for name in names for tool, args in _round_of(name))
    return World(case.files_toolkit(contracts=True), state=case.start_state(kilobytes, whole=True)), calls


def _round_of(name: str) -> Iterator[tuple[str, JsonObject]]:
    yield "touch", {"file_name": name}
    yield "ls", {}
    yield "rm", {"file_name": name}


def on_database(path: Path) -> tuple[World, Iterator[JsonObject]]:
    """Return a world of the airline's database, and calls on its users and reservations."""
    state = json.loads(gzip.decompress(path.read_bytes()))
    booked = ((user, each) for user, of in state["users"].items() for each in of["reservations"])
    pairs = [(user, each) for user, each in booked if each in state["reservations"]]
    keys = ((user, each, each) for user, each in pairs)
    calls = ({"name": tool, "args": {"id": key}} for some in keys for tool, key in zip(CONTRACTS, some, strict=True))
    return World(airline_toolkit(), state=state), calls


def measure(create: Callable[[], tuple[World, Iterator[JsonObject]]], *, count: int) -> JsonObject:
    """Measure the processor milliseconds of each call; all must be answered by contract."""
    world, calls = create()
    times: list[float] = []
    for _ in range(count):
        call = next(calls)
        started = time.process_time()
        step = world.call(call)
        times.append((time.process_time() - started) * 1e3)
        if step.get("outcome", {"rung": "none"})["rung"] != "contract":
            raise EvalError(f"expected an answer by contract, got {step}")
    return {"ms": times}
