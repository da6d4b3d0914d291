"""A bank with a log of its own: each line is something that really happened. Its tools fail, and end processes, by plan."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import random
import time
from collections import Counter
from pathlib import Path
from threading import Thread
from typing import Any

import httpx

from gecko_graph import Toolkit
from gecko_graph.state import JsonObject

from .draws import FAULTS, PLANS, Draw
from .fates import Counted, append

HOLD_S = 0.03
"""Seconds that the bank takes for a request."""
TIMEOUT_S = 0.5
"""Seconds that a call may take."""


class NoSuchPayment(Exception):
    """A cancellation of what is not there."""


class Fault(Exception):
    """What went wrong with a request: one of `FAULTS`."""


class Bank:
    """The books of one run, for all of its processes.

    Args:
        folder: Where its log and the count of its requests lie.
        draw: The run.
    """

    def __init__(self, folder: Path, draw: Draw) -> None:
        self._path, self._requests, self._draw = folder / "log", folder / "requests", draw

    def log(self) -> list[JsonObject]:
        """Return what happened, in order: `name`, `to`, `amount`, `key`, `result`."""
        return [json.loads(line) for line in self._path.read_text().splitlines()] if self._path.exists() else []

    def done(self) -> Counter[tuple[Any, ...]]:
        """Return how often each thing happened, in the form of a plan."""
        return Counter((each["name"], each["to"], each["amount"]) for each in self.log())

    def fault(self) -> str:
        """Return what goes wrong with the next request; empty for nothing."""
        dice = random.Random(f"{self._draw.seed} {append(self._requests, '')}")
        return dice.choice(FAULTS) if dice.random() < self._draw.faults else ""

    def make(self, name: str, args: JsonObject, key: str) -> JsonObject:
        """Do what is asked, once a key where keys are honoured. Raises NoSuchPayment."""
        with self._path.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            log = self.log()
            if key and self._draw.keyed:
                for each in log:
                    if each["key"] == key:
                        result: JsonObject = each["result"]
                        return result
            line = {"name": name, "key": key, **self._effect(name, args, log)}
            file.write(json.dumps(line) + "\n")
            file.flush()
            result = line["result"]
            return result

    def _effect(self, name: str, args: JsonObject, log: list[JsonObject]) -> JsonObject:
        if name == "pay":
            return {**args, "result": {"payment_id": f"P-{os.urandom(4).hex()}", **args}}
        number = args["payment_id"]
        to = [each["to"] for each in log if each["result"]["payment_id"] == number]
        if not to:
            raise NoSuchPayment(f"there is no payment {number}")
        return {"to": to[0], "amount": 0, "result": {"payment_id": number, "status": "cancelled"}}


class Client:
    """What reaches the bank from one process."""

    def __init__(self, draw: Draw, bank: Bank, fate: Counted) -> None:
        self._draw, self._bank, self._fate = draw, bank, fate

    def request(self, name: str, args: JsonObject, key: str) -> JsonObject:
        """Have the bank do it.

        Raises:
            Fault: It failed, or its answer was lost.
            NoSuchPayment: The bank refused.
        """
        result, fault = self._begin(name, args, key)
        time.sleep(1.4 * TIMEOUT_S if fault.startswith("late") else HOLD_S)
        return self._end(result, fault)

    async def arequest(self, name: str, args: JsonObject, key: str) -> JsonObject:
        """Have the bank do it, as `request` does; the bank goes on where the caller stops."""
        result, fault = self._begin(name, args, key)
        await asyncio.sleep(1.4 * TIMEOUT_S if fault.startswith("late") else HOLD_S)
        return self._end(result, fault)

    def _begin(self, name: str, args: JsonObject, key: str) -> tuple[JsonObject, str]:
        number = self._fate.number("service")
        self._fate.pass_by("service", number, "before")
        if self._fate.is_due("service", number, "in"):
            self._send_on(name, args, key)
            self._fate.end(f"in write {number} of the service")
        fault = self._bank.fault()
        self._fate.tell(f"  request {number}: {name} {json.dumps(args)} {key[:8]} {fault}")
        if fault.endswith("before") or fault in ("too busy", "not opened"):
            raise Fault(fault)
        result = self._bank.make(name, args, key)
        self._fate.pass_by("service", number, "after")
        return result, fault

    def _send_on(self, name: str, args: JsonObject, key: str) -> None:
        """Leave a request with the bank that is done a little later, though this process ends."""

        def late() -> None:
            time.sleep(HOLD_S)
            self._bank.make(name, args, key)

        if self._draw.is_async:
            return  # the process goes on, and so does the request
        if self._fate.memory is not None:
            Thread(target=late, daemon=True).start()
        elif os.fork() == 0:
            try:
                late()
            finally:
                os._exit(0)

    def _end(self, result: JsonObject, fault: str) -> JsonObject:
        self._fate.check()
        if fault:
            raise Fault(fault)
        return result


def as_error(fault: str, request: httpx.Request) -> Exception:
    """Return a fault as an HTTP client or a Python tool has it."""
    kinds = {"lost": httpx.RemoteProtocolError, "late": httpx.ReadTimeout, "not": httpx.ConnectError}
    if kind := kinds.get(fault.split()[0]):
        return kind(fault, request=request)
    response = answer_of(fault, request)
    return httpx.HTTPStatusError(f"{response.status_code}", request=request, response=response)


def answer_of(fault: str, request: httpx.Request) -> httpx.Response:
    """Return a fault that the server itself reports."""
    status, headers = (429, {"retry-after": "0"}) if fault == "too busy" else (504, {})
    return httpx.Response(status, headers=headers, json={"message": fault}, request=request)


class Wire(httpx.BaseTransport):
    """HTTP to the bank without a network."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request, or fail as a connection does."""
        name, args = request.url.path.strip("/"), json.loads(request.read())
        try:
            result = self._client.request(name, args, request.headers.get("idempotency-key", ""))
        except NoSuchPayment as refused:
            return httpx.Response(404, json={"message": str(refused)})
        except Fault as fault:
            if str(fault).split()[0] in ("too", "failed"):
                return answer_of(str(fault), request)
            raise as_error(str(fault), request) from None
        return httpx.Response(200, json=result)


def wanted_of(draw: Draw) -> Counter[tuple[Any, ...]]:
    """Return what must have happened at the end."""
    return Counter(PLANS[draw.plan])


# ---- tools


NUMBER = {"type": "integer"}
TEXT = {"type": "string"}
PARAMETERS = {"pay": {"to": TEXT, "amount": NUMBER}, "cancel": {"payment_id": TEXT}}


def simulate_pay(state: JsonObject, to: str, amount: int, **key: str) -> JsonObject:
    """Pay, as far as a rehearsal goes."""
    payments = state.setdefault("payments", {})
    number = f"S-{9001 + len(payments)}"
    payments[number] = {"to": to, "amount": amount, "status": "open"}
    return {"payment_id": number, "to": to, "amount": amount}


def simulate_cancel(state: JsonObject, payment_id: str, **key: str) -> JsonObject:
    """Cancel a payment, as far as a rehearsal goes."""
    payment = state.setdefault("payments", {}).get(payment_id)
    if payment is None:
        raise ValueError(f"there is no payment {payment_id}")
    payment["status"] = "cancelled"
    return {"payment_id": payment_id, "status": "cancelled"}


def toolkit_of(draw: Draw, client: Client) -> Toolkit:
    """Return the bank's tools, as one process has them."""
    kinds = {"python": python_tools, "http": http_tools, "mcp": mcp_tools}
    tools: Any = kinds[draw.tools](draw, client)
    return Toolkit.from_tools(
        tools,
        effects={"pay": "write", "cancel": "write"},
        simulate={"pay": simulate_pay, "cancel": simulate_cancel},
        idempotency={"pay": "key", "cancel": "key"} if draw.keyed and draw.tools != "http" else None,
    )


def python_tools(draw: Draw, client: Client) -> list[Any]:
    """Return plain functions; where the caller awaits, coroutine functions in half of the runs."""
    nowhere = httpx.Request("POST", "http://bank.invalid")

    def pay(to: str, amount: int, key: str = "") -> JsonObject:
        """Pay."""
        return request("pay", {"to": to, "amount": amount}, key)

    def cancel(payment_id: str, key: str = "") -> JsonObject:
        """Cancel a payment."""
        return request("cancel", {"payment_id": payment_id}, key)

    def request(*given: Any) -> JsonObject:
        try:
            return client.request(*given)
        except Fault as fault:
            raise as_error(str(fault), nowhere) from None

    async def arequest(*given: Any) -> JsonObject:
        try:
            return await client.arequest(*given)
        except Fault as fault:
            raise as_error(str(fault), nowhere) from None

    async def apay(to: str, amount: int, key: str = "") -> JsonObject:
        return await arequest("pay", {"to": to, "amount": amount}, key)

    async def acancel(payment_id: str, key: str = "") -> JsonObject:
        return await arequest("cancel", {"payment_id": payment_id}, key)

    if not draw.is_async or draw.seed % 2:
        return [pay, cancel]
    for function, other in ((apay, pay), (acancel, cancel)):
        function.__name__, function.__doc__ = other.__name__, other.__doc__
    return [apay, acancel]


def http_tools(draw: Draw, client: Client) -> Toolkit:
    """Return the operations of an OpenAPI document."""
    key = {"name": "Idempotency-Key", "in": "header", "schema": TEXT}
    answers = {"200": {"description": "Done.", "content": {"application/json": {"schema": {"type": "object"}}}}}
    paths = {}
    for name, arguments in PARAMETERS.items():
        schema = {"type": "object", "required": [*arguments], "properties": arguments, "additionalProperties": False}
        body = {"required": True, "content": {"application/json": {"schema": schema}}}
        own = {"parameters": [key]} if draw.keyed else {}
        paths[f"/{name}"] = {"post": {"operationId": name, "requestBody": body, "responses": answers, **own}}
    document = {"openapi": "3.1.0", "info": {"title": "Bank", "version": "1"}, "paths": paths}
    wire = httpx.Client(transport=Wire(client), trust_env=False)
    return Toolkit.from_openapi(document, server="http://bank.invalid", client=wire)


def mcp_tools(draw: Draw, client: Client) -> Toolkit:
    """Return the tools of a server in this process, which makes an error result of whatever goes wrong."""
    from mcp import types
    from mcp.server import Server

    keys = {"key": TEXT} if draw.keyed else {}
    listed = [
        {"name": name, "inputSchema": {"type": "object", "properties": {**arguments, **keys}, "required": [*arguments]}}
        for name, arguments in PARAMETERS.items()
    ]

    async def list_tools(context: Any, params: Any) -> Any:
        return types.ListToolsResult(tools=[types.Tool.model_validate(each) for each in listed])

    async def call_tool(context: Any, params: Any) -> Any:
        args = dict(params.arguments or {})
        key = args.pop("key", "")
        try:
            result = await client.arequest(params.name, args, key)
        except (Fault, NoSuchPayment) as error:
            text = [{"type": "text", "text": str(error)}]
            return types.CallToolResult.model_validate({"content": text, "isError": True})
        text = [{"type": "text", "text": json.dumps(result)}]
        return types.CallToolResult.model_validate({"content": text, "structuredContent": result})

    return Toolkit.from_mcp(Server("bank", on_list_tools=list_tools, on_call_tool=call_tool))
