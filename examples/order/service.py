"""An order service on loopback: HTTP and SQLite, with stock, prices, a balance, and faults on request.

with OrderService(faults=plan_faults(seed=7, rate=0.3)) as service:
        toolkit = service.toolkit()

`python service.py PORT` runs it alone; its key is then the environment variable `ORDER_KEY`.

Its document is `order.openapi.yaml` beside it. `state()` is its data as the task state that the contracts describe.
`log()` and `GET /log` list the writes that were done. A write with a known `Idempotency-Key` is answered from the log.
"""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Self
from urllib.parse import parse_qsl, unquote

from gecko_graph import Toolkit
from gecko_graph.state import Json, JsonObject

_OPEN = ("500 before", "500 after", "timeout before", "timeout after", "lost before", "lost after")
FAULTS = (*_OPEN, "429", "slow", "wrong schema")
"""Faults of a request; `before` and `after` refer to the operation."""

_ITEMS = {
    "MUG": {"name": "Stoneware mug", "price": 14.5, "stock": 6},
    "TEA": {"name": "Mint tea, 100 g", "price": 6.2, "stock": 31},
    "POT": {"name": "Teapot", "price": 39.0, "stock": 2},
    "TIN": {"name": "Tea tin", "price": 8.9, "stock": 0},
}
START: JsonObject = {"balance": 120.0, "items": _ITEMS, "orders": {}}


def plan_faults(*, seed: int, rate: float, kinds: Iterable[str] = FAULTS) -> Iterator[str | None]:
    """Yield the fault of each request, or None; the same sequence for the same seed."""
    dice, kinds = random.Random(seed), list(kinds)
    while True:
        yield dice.choice(kinds) if dice.random() < rate else None


class _Refused(Exception):
    """Status and message of a refused request."""


def _find_items(state: JsonObject, text: str = "", max_price: str = "1e9") -> Json:
    items = [{"sku": sku, **item} for sku, item in state["items"].items()]
    return {"items": [one for one in items if text.lower() in one["name"].lower() and one["price"] <= float(max_price)]}


def _list_orders(state: JsonObject, status: str = "") -> Json:
    orders = [{"order_id": key, **one} for key, one in state["orders"].items()]
    return {"orders": [one for one in orders if status in ("", one["status"])]}


def _show_order(state: JsonObject, order_id: str) -> Json:
    if order_id not in state["orders"]:
        raise _Refused(404, f"there is no order {order_id}")
    return {"order_id": order_id, **state["orders"][order_id]}


def _pay(state: JsonObject, order_id: str, amount: float) -> Json:
    state["balance"] = round(state["balance"] + amount, 2)
    return {**_show_order(state, order_id), "balance": state["balance"]}


def _place_order(state: JsonObject, sku: str, quantity: int) -> Json:
    if sku not in state["items"]:
        raise _Refused(404, f"there is no item {sku}")
    item = state["items"][sku]
    if not 0 < quantity <= item["stock"]:
        raise _Refused(422, f"only {item['stock']} of {sku} are left")
    total, order_id = round(item["price"] * quantity, 2), f"A-{1001 + len(state['orders'])}"
    if total > state["balance"]:
        raise _Refused(422, f"the balance does not cover {total:.2f}")
    item["stock"] -= quantity
    order = {"sku": sku, "quantity": quantity, "total": total, "refunded": 0, "status": "placed"}
    state["orders"][order_id] = order
    return _pay(state, order_id, -total)


def _cancel_order(state: JsonObject, order_id: str) -> Json:
    order = _show_order(state, order_id)
    if order["status"] != "placed" or order["refunded"]:
        raise _Refused(422, f"the order {order_id} is {order['status']} or refunded in part")
    state["orders"][order_id]["status"] = "cancelled"
    state["items"][order["sku"]]["stock"] += order["quantity"]
    return _pay(state, order_id, order["total"])


def _refund_order(state: JsonObject, order_id: str, amount: float) -> Json:
    order = _show_order(state, order_id)
    left = round(order["total"] - order["refunded"], 2)
    if order["status"] != "placed" or not 0 < amount <= left:
        raise _Refused(422, f"at most {left:.2f} of a placed order can be refunded")
    state["orders"][order_id]["refunded"] = round(order["refunded"] + amount, 2)
    return _pay(state, order_id, amount)


_ORDER = "/orders/(?P<order_id>[^/]+)"
_ROUTES: dict[str, Callable[..., Json]] = {
    "GET /items": _find_items,
    "GET /account": lambda state: {"balance": state["balance"]},
    "GET /orders": _list_orders,
    f"GET {_ORDER}": _show_order,
    "POST /orders": _place_order,
    f"POST {_ORDER}/cancellation": _cancel_order,
    f"POST {_ORDER}/refunds": _refund_order,
}


class OrderService:
    """A running order service; its address is `url`.

    Args:
        faults: For each request in turn one of `FAULTS` or None; none after the last. `/log` has none.
        idempotent: Whether idempotency keys are honoured; only then do the tools of `toolkit` send them.
    """

    key, port = "demo-key", 0
    """The `X-API-Key` of all requests but `/log`; the port to listen on, 0 for any free port."""

    def __init__(self, faults: Iterable[str | None] = (), *, idempotent: bool = True) -> None:
        self._faults, self._idempotent = iter(faults), idempotent
        self._lock, self._closing = Lock(), Event()
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute("CREATE TABLE books (state TEXT)")
        self._database.execute("CREATE TABLE log (operation TEXT, args TEXT, key TEXT, result TEXT)")
        self.reset()
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), type("Handler", (_Handler,), {"service": self}))
        self._server.daemon_threads = False  # closing waits for the threads, which use the database
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._database.close()

    def toolkit(self, **options: Any) -> Toolkit:
        """Return the service's tools; `options` are those of `Toolkit.from_openapi`."""
        options = {"server": self.url, "auth": {"ApiKey": self.key}, **options}
        toolkit = Toolkit.from_openapi(Path(__file__).with_name("order.openapi.yaml"), **options)
        return toolkit if self._idempotent else toolkit.replace(*(replace(tool, idempotency=None) for tool in toolkit))

    def reset(self) -> None:
        """Reset the data and the log."""
        with self._lock, self._database:
            self._database.execute("DELETE FROM books")
            self._database.execute("DELETE FROM log")
            self._database.execute("INSERT INTO books VALUES (?)", (json.dumps(START),))

    def _select(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._database.execute(query, values).fetchall()

    def state(self) -> JsonObject:
        """Return the service's data as the task state that the contracts describe."""
        with self._lock:
            state: JsonObject = json.loads(self._select("SELECT state FROM books")[0][0])
        return state

    def log(self) -> list[JsonObject]:
        """Return the writes that were done, in order: `operation`, `args`, `key`, `result`."""
        with self._lock:
            rows = self._select("SELECT operation, key, args, result FROM log ORDER BY rowid")
        return [{"operation": o, "key": key, "args": json.loads(a), "result": json.loads(r)} for o, key, a, r in rows]

    def answer(self, request: str, body: Json, key: str | None) -> tuple[int, Json] | None:
        """Return status and body for a request such as `GET /log`; None if the connection is to be closed instead."""
        if request == "GET /log":
            return 200, self.log()
        with self._lock:
            fault = next(self._faults, None) or ""
        failed = (500, {"message": "internal error"})
        if fault == "429":
            return 429, {"message": "too many requests"}
        answer = failed if fault.endswith("before") else self._route(request, body, key if self._idempotent else None)
        if fault.startswith("timeout") or fault == "slow":
            self._closing.wait(0.2 if fault == "slow" else 60)
        if fault.startswith(("timeout", "lost")):
            return None
        if fault == "wrong schema" and answer[0] == 200:
            return 200, {"data": "ok"}
        return failed if fault.startswith("500") else answer

    def _route(self, request: str, body: Json, key: str | None) -> tuple[int, Json]:
        path, _, query = request.partition("?")
        for pattern, function in _ROUTES.items():
            if found := re.fullmatch(pattern, path):
                named = {name: unquote(value) for name, value in found.groupdict().items()}
                with self._lock, self._database:
                    return self._run(function, {**dict(parse_qsl(query)), **body, **named}, key)
        return 404, {"message": f"there is no {path}"}

    def _run(self, function: Callable[..., Json], args: JsonObject, key: str | None) -> tuple[int, Json]:
        """Return an operation's answer; a write and its log entry are one transaction."""
        call = (function.__name__.strip("_"), json.dumps(args, sort_keys=True))
        for *known, result in self._select("SELECT operation, args, result FROM log WHERE key = ?", key):
            return (200, json.loads(result)) if tuple(known) == call else (422, {"message": "this key has been used"})
        state = json.loads(self._select("SELECT state FROM books")[0][0])
        before = json.dumps(state)
        try:
            result = function(state, **args)
        except _Refused as refused:
            return refused.args[0], {"message": refused.args[1]}
        except (TypeError, ValueError):
            return 400, {"message": "a parameter is missing, unknown or wrong"}
        if json.dumps(state) != before:
            self._database.execute("UPDATE books SET state = ?", (json.dumps(state),))
            self._database.execute("INSERT INTO log VALUES (?, ?, ?, ?)", (*call, key, json.dumps(result)))
        return 200, result


class _Handler(BaseHTTPRequestHandler):
    service: OrderService

    def _handle(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = dict(json.loads(raw or b"{}"))
        except (TypeError, ValueError):
            body = {"body": "broken"}  # no operation has this parameter
        answer: tuple[int, Json] | None = (401, {"message": "the header X-API-Key is missing or wrong"})
        if self.path == "/log" or self.headers["x-api-key"] == self.service.key:
            answer = self.service.answer(f"{self.command} {self.path}", body, self.headers["idempotency-key"])
        if answer is None:
            return
        content = json.dumps(answer[1]).encode()
        self.send_response(answer[0])
        self.send_header("content-type", "application/json")
        if answer[0] == 429:
            self.send_header("retry-after", "0")
        self.end_headers()
        with suppress(ConnectionError):  # the caller has disconnected
            self.wfile.write(content)

    do_GET = do_POST = _handle

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing; `OrderService.log` lists the writes."""


if __name__ == "__main__":
    OrderService.key, OrderService.port = os.environ["ORDER_KEY"], int(sys.argv[1])
    with OrderService() as running, suppress(KeyboardInterrupt):
        sys.stderr.write(f"an order service: {running.url}; stop it with Ctrl-C\n")
        Event().wait()
