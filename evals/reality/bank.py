"""A bank with its own log, in which each line is a real event; its tools are of three kinds."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx

from gecko_graph import Tool, Toolkit
from gecko_graph.state import JsonObject

from .draws import THIRD_TOOL, Draw
from .fates import Counted, append
from .killing import Killed

HOLD_S = 0.03
"""Seconds that the bank needs for a request."""
TIMEOUT_S = 0.5
"""Time limit of a call in seconds."""
NOWHERE = httpx.Request("POST", "http://bank.invalid")
FAULTS: dict[str, int | type[httpx.TransportError]] = {
    "too busy": 429,
    "failed before": 504,
    "failed after": 504,
    "not opened": httpx.ConnectError,
    "lost before": httpx.RemoteProtocolError,
    "lost after": httpx.RemoteProtocolError,
    "late after": httpx.ReadTimeout,
}
"""Faults of a request, before or after the operation, with the status or error that the caller gets."""
TEXT = {"type": "string"}
PARAMETERS = {"pay": {"to": TEXT, "amount": {"type": "integer"}}, "cancel": {"payment_id": TEXT}}


def parameters_of(draw: Draw) -> dict[str, JsonObject]:
    third = THIRD_TOOL.get(draw.extra)
    return {**PARAMETERS, third: PARAMETERS["pay"]} if third else PARAMETERS


def wanted_of(draw: Draw) -> Counter[tuple[Any, ...]]:
    """Return the events that must have happened by the end of the first turn."""
    return Counter(draw.wanted)


class Bank:
    """The bank, as one process reaches it; a run's processes share the folder of its log and count of requests."""

    def __init__(self, folder: Path, fate: Counted) -> None:
        self._log, self._requests, self._draw, self._fate = folder / "log", folder / "requests", fate.draw, fate

    def log(self) -> list[JsonObject]:
        """Return the events in order: `name`, `to`, `amount`, `key`, `result`."""
        return [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []

    def done(self) -> Counter[tuple[Any, ...]]:
        """Return how often each event happened, in the form of a plan."""
        return Counter((each["name"], each["to"], each["amount"]) for each in self.log())

    def request(self, name: str, args: JsonObject, key: str = "") -> Any:
        """Send the bank a request. Raises HTTPError if it refuses or fails, or if its answer is lost."""
        number = self._fate.number("service")
        self._fate.pass_by("service", number, "before")
        if self._fate.is_due("service", number, "in") and not self._draw.is_async:
            self._send_on(name, args, key)
        self._fate.pass_by("service", number, "in")
        count = append(self._requests, "")
        dice = random.Random(f"{self._draw.seed} {count}")
        fault = dice.choice([*FAULTS]) if dice.random() < self._draw.faults else ""
        fault = "too busy" if count <= self._draw.busy else fault
        self._fate.tell(f"  request {number}: {name} {json.dumps(args)} {key[:8]} {fault}")
        result = self._make(name, args, key) if not fault or fault.endswith("after") else {}
        self._fate.pass_by("service", number, "after")
        time.sleep(1.4 * TIMEOUT_S if fault.startswith("late") else HOLD_S)
        if self._fate.over.is_set():
            raise Killed  # its process has ended and this thread with it: the call is no longer in progress
        if fault:
            raise error_of(FAULTS[fault], fault, retry_after=self._draw.retry_after)
        return result

    def _send_on(self, name: str, args: JsonObject, key: str) -> None:
        """Leave a request with the bank that is executed a little later, even though this process ends."""

        def late() -> None:
            time.sleep(HOLD_S)
            self._make(name, args, key)

        if self._fate.memory is not None:
            Thread(target=late, daemon=True).start()
        elif os.fork() == 0:
            try:
                late()
            finally:
                os._exit(0)

    def _make(self, name: str, args: JsonObject, key: str) -> Any:
        """Execute a request; if keys are honoured, once per key."""
        with self._log.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            log = self.log()
            known = [each["result"] for each in log if key and self._draw.keyed and each["key"] == key]
            if known:
                return known[0]
            if name != "cancel":
                line = {**args, "result": {"payment_id": f"P-{os.urandom(4).hex()}", **args}}
            else:
                paid = [each["to"] for each in log if each["result"]["payment_id"] == args["payment_id"]]
                if not paid:
                    raise error_of(404, "there is no such payment")
                line = {"to": paid[0], "amount": 0, "result": {**args, "status": "cancelled"}}
            file.write(json.dumps({"name": name, "key": key, **line}) + "\n")
        return line["result"]


def error_of(kind: int | type[httpx.TransportError], text: str, *, retry_after: bool = False) -> httpx.HTTPError:
    if not isinstance(kind, int):
        return kind(text, request=NOWHERE)
    headers = {"retry-after": "0"} if kind == 429 and retry_after else {}
    response = httpx.Response(kind, headers=headers, json={"message": text})
    return httpx.HTTPStatusError(text, request=NOWHERE, response=response)


def simulate_pay(state: JsonObject, to: str, amount: int, **key: str) -> JsonObject:
    payments = state.setdefault("payments", {})
    number = f"S-{9001 + len(payments)}"
    payments[number] = {"to": to, "amount": amount, "status": "open"}
    return {"payment_id": number, "to": to, "amount": amount}


def simulate_cancel(state: JsonObject, payment_id: str, **key: str) -> JsonObject:
    state.setdefault("payments", {}).get(payment_id, {})["status"] = "cancelled"
    return {"payment_id": payment_id, "status": "cancelled"}


def contract_of(draw: Draw, sign: str = "-") -> JsonObject:
    """Return the contract that guards the balance, or refunds it, and the part of the result that it knows."""
    known = {"to": "{{ args.to }}", "amount": "{{ args.amount }}"}
    number: Any = "{{ new_id('S-') }}" if draw.returns == "all" else {"cases": [{"pass": "only the bank knows"}]}
    booked = {"op": "add", "path": ["payments", "{{ f'payment {len(state.payments)}' }}"], "value": known}
    spent = {"op": "replace", "path": ["balance"], "value": f"{{{{ state.balance {sign} args.amount }}}}"}
    enough = {"check": "args.amount <= state.balance", "error": "only {{ state.balance }} left"}
    return {
        "requires": [enough] if sign == "-" else [],
        "effects": [spent] if draw.extra == "undone" else [spent, booked],
        **({} if draw.returns == "nothing" else {"returns": {"payment_id": number, **known}}),
    }


@asynccontextmanager
async def toolkit_of(draw: Draw, bank: Bank) -> AsyncIterator[Toolkit]:
    kinds: dict[str, Callable[[Draw, Bank], Any]] = {"python": python_tools, "http": http_tools, "mcp": mcp_tools}
    keyed = "key" if draw.keyed and draw.tools != "http" else None
    more: dict[str, Any] = {"pay": {"simulate": simulate_pay}, "cancel": {"simulate": simulate_cancel}}
    if draw.is_funded:  # in the middleware only the contract simulates a payment
        more["pay"] = {"contract": contract_of(draw), "simulate": None if draw.is_middleware else simulate_pay}
        more["refund"] = {"contract": contract_of(draw, "+")}
    declared = [Tool(name, effect="write", idempotency=keyed, **more.get(name, {})) for name in parameters_of(draw)]
    with Toolkit.from_tools(kinds[draw.tools](draw, bank)).declare(*declared) as toolkit:
        yield toolkit


def python_tools(draw: Draw, bank: Bank) -> list[Any]:
    """Return plain functions; for an async caller, coroutine functions in half of the runs."""

    def pay(to: str, amount: int, key: str = "") -> JsonObject:
        """Pay."""
        return bank.request("pay", {"to": to, "amount": amount}, key)  # type: ignore[no-any-return]

    def cancel(payment_id: str, key: str = "") -> JsonObject:
        """Cancel a payment."""
        return bank.request("cancel", {"payment_id": payment_id}, key)  # type: ignore[no-any-return]

    def third(to: str, amount: int, key: str = "") -> JsonObject:
        """Make a gift, or a refund."""
        return bank.request(third.__name__, {"to": to, "amount": amount}, key)  # type: ignore[no-any-return]

    async def apay(to: str, amount: int, key: str = "") -> JsonObject:
        return await asyncio.to_thread(pay, to, amount, key)

    async def acancel(payment_id: str, key: str = "") -> JsonObject:
        return await asyncio.to_thread(cancel, payment_id, key)

    apay.__name__, acancel.__name__, third.__name__ = "pay", "cancel", THIRD_TOOL.get(draw.extra, "")
    made = [apay, acancel] if draw.is_async and draw.seed % 2 else [pay, cancel]
    return [*made, third] if third.__name__ else made


def document_of(draw: Draw) -> JsonObject:
    key = {"name": "Idempotency-Key", "in": "header", "schema": TEXT}
    answers = {"200": {"description": "Done.", "content": {"application/json": {"schema": {"type": "object"}}}}}
    paths = {}
    for name, arguments in parameters_of(draw).items():
        schema = {"type": "object", "required": [*arguments], "properties": arguments, "additionalProperties": False}
        body = {"required": True, "content": {"application/json": {"schema": schema}}}
        parameters = [key] if draw.keyed else []
        operation = {"operationId": name, "requestBody": body, "responses": answers, "parameters": parameters}
        paths[f"/{name}"] = {"post": operation}
    return {"openapi": "3.1.0", "info": {"title": "Bank", "version": "1"}, "paths": paths}


def http_tools(draw: Draw, bank: Bank) -> Toolkit:
    """Return the operations of an OpenAPI document, with a client without a network."""

    def answer(request: httpx.Request) -> httpx.Response:
        key = request.headers.get("idempotency-key", "")
        try:
            return httpx.Response(200, json=bank.request(request.url.path.strip("/"), json.loads(request.read()), key))
        except httpx.HTTPStatusError as error:
            return error.response

    client = httpx.Client(transport=httpx.MockTransport(answer), trust_env=False)
    return Toolkit.from_openapi(document_of(draw), server=str(NOWHERE.url), client=client)


def mcp_tools(draw: Draw, bank: Bank) -> Toolkit:
    """Return the tools of an MCP server in this process, which reports all failures as error results."""
    from mcp import types
    from mcp.server import Server

    async def list_tools(context: Any, params: Any) -> Any:
        keys = {"key": TEXT} if draw.keyed else {}
        schemas = {
            name: {"type": "object", "properties": {**arguments, **keys}, "required": [*arguments]}
            for name, arguments in parameters_of(draw).items()
        }
        tools = [types.Tool.model_validate({"name": name, "inputSchema": each}) for name, each in schemas.items()]
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: Any) -> Any:
        args = dict(params.arguments or {})
        key = args.pop("key", "")
        result: Any = {"isError": True}
        try:
            text = json.dumps(await asyncio.to_thread(bank.request, params.name, args, key))
            result = {"structuredContent": json.loads(text)}
        except httpx.HTTPError as error:
            text = str(error)
        return types.CallToolResult.model_validate({**result, "content": [{"type": "text", "text": text}]})

    return Toolkit.from_mcp(Server("bank", on_list_tools=list_tools, on_call_tool=call_tool))
