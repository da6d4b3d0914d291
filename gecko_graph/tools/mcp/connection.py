"""The connection to one MCP server: both protocol eras, over stdio, streamable HTTP, in process, or an open session.

- It is opened at its first use and kept. A call that was certainly not sent (the server ended between two
  calls, or no longer knows the session) is sent once more, over a new connection.
- A call that was sent and has no usable answer (time-out, connection lost, 5xx, an invalid or too large answer)
  raises `InDoubt`, regardless of the server's hints on the tool, and is not sent again from here.
- A refusal by the server (4xx, an error of the request itself) is an error result. So is `isError`, which does not
  tell whether a write took effect.
- Headers and environment variables are read from their sources at each use, and masked in answers.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import anyio
import httpx2
from langchain_core.messages import ToolMessage
from mcp import Client, ClientSession, MCPError, StdioServerParameters
from mcp import types as protocol
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types.methods import validate_server_result
from pydantic import TypeAdapter, ValidationError

from ...errors import GeckoError, InDoubt, NotMade
from ...models.failure import MCP_REFUSALS, REFUSED, refuses
from ...state import JsonObject
from ..openapi.client import MAX_BYTES
from ..openapi.credentials import Credential, Secrets, read_credential

CLOSING_S = 10.0
_RESULT: Any = TypeAdapter(dict[str, Any])  # the client would drop an answer that violates the tool's schema
_SECRET = re.compile(r"auth|key|token|secret|cookie|passw|credential", re.IGNORECASE)
_UNSENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


@dataclass(slots=True)
class _Exchange:
    """The state of a call in progress, or of a connection that is being opened."""

    secrets: dict[str, str]
    is_sent: bool = False
    status: int | None = None
    failure: str = ""


_EXCHANGE: ContextVar[_Exchange] = ContextVar("gecko_mcp_exchange")


class _HttpTransport(httpx2.AsyncHTTPTransport):
    """Adds the credentials to each request; a failed request does not end the shared connection."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        exchange = _EXCHANGE.get()
        request.headers.update({**exchange.secrets, "accept-encoding": "identity"})
        try:
            response = await super().handle_async_request(request)
            exchange.status = response.status_code
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                return response
            content = await _read_content(response)
        except httpx2.TransportError as error:
            exchange.is_sent = exchange.is_sent and not isinstance(error, _UNSENT)
            exchange.failure = str(error) if type(error) is httpx2.TransportError else type(error).__name__
            return httpx2.Response(503)
        return httpx2.Response(response.status_code, headers=response.headers, content=content)


async def _read_content(response: httpx2.Response) -> bytes:
    content = b""
    try:
        async for chunk in response.aiter_raw():
            content += chunk
            if len(content) > MAX_BYTES:
                raise httpx2.TransportError("the answer is too large")
    finally:
        await response.aclose()
    return content


class _WatchedStream:
    """The stream to a server; records in the exchange that a message was sent."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.aclose = stream.aclose

    async def send(self, message: Any) -> None:
        exchange = _EXCHANGE.get()
        exchange.is_sent = True
        try:
            await self._stream.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            exchange.is_sent = False
            raise

    async def __aenter__(self) -> _WatchedStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _ReadStream:
    """The stream from a server; `read` sees each message before the client, which would reject a whole list."""

    def __init__(self, stream: Any, read: Callable[[Any], None]) -> None:
        self._stream, self._read = stream, read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> _ReadStream:
        return self

    async def __anext__(self) -> Any:
        item = await self._stream.__anext__()
        self._read(item)
        return item

    async def __aenter__(self) -> _ReadStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)


@asynccontextmanager
async def _watched(
    transport: AbstractAsyncContextManager[Any], read: Callable[[Any], None]
) -> AsyncGenerator[Any, None]:
    async with transport as (reading, writing):
        yield _ReadStream(reading, read), _WatchedStream(writing)


@dataclass(eq=False, repr=False)
class McpConnection:
    """The connection to one server, opened on demand, and again after a loss."""

    label: str
    target: Any
    """Address, command, a server in this process, or an open session."""
    sources: Mapping[str, Credential] = field(default_factory=dict)
    """HTTP header, or environment variable of the command, to the source of its value."""
    auth: Any = None
    """An `httpx2.Auth` that signs HTTP requests."""
    timeout_s: float = 30.0
    left_out: dict[str, str] = field(default_factory=dict)
    """Name and violation of tools that break the protocol; the client would reject the whole list because of them."""
    _held: asyncio.Task[None] | None = None
    _ready: asyncio.Future[ClientSession] | None = None
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _is_closed: bool = False

    async def list_tools(self) -> list[JsonObject]:
        """Return the descriptions of all tools, from all pages. Raises GeckoError."""
        exchange = await self._start_exchange()
        try:
            async with asyncio.timeout(self.timeout_s):
                found = await _list_pages(await self._session())
            if self.left_out and not found:
                name, why = next(iter(self.left_out.items()))
                raise GeckoError(f"MCP server {self.label}: none of its tools can be read: {name}: {why}")
            return found
        except GeckoError:
            raise
        except Exception as error:  # noqa: BLE001 - any error of a client; its text may contain credentials
            why = self._reason(error, exchange)
        raise GeckoError(f"MCP server {self.label}: its tools cannot be listed: {why}")

    async def call(self, name: str, args: JsonObject, *, deadline: float) -> ToolMessage:
        """Call a tool and return its answer; its `status` is `error` if the server refuses.

        Nothing is sent after `deadline` (`time.monotonic`), and the call is abandoned then.

        Raises:
            InDoubt: The call was sent, but no usable answer arrived.
            NotMade: It was not sent: there is no connection, or a credential is missing.
        """
        request = protocol.CallToolRequest(params=protocol.CallToolRequestParams(name=name, arguments=args))
        for is_last in (False, True):
            exchange, session = await self._start_exchange(), None
            try:
                if time.monotonic() >= deadline:
                    raise TimeoutError
                async with asyncio.timeout(deadline - time.monotonic()):
                    session = await self._session()
                    exchange.is_sent = not isinstance(self.target, str | StdioServerParameters)  # those record it
                    result = await session.send_request(request, _RESULT)
                return self._read_result(name, result, exchange)
            except GeckoError:
                raise
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and not self._is_closed:
                    raise  # no caller waits any more
                failed = error
            if is_last or session is None or not self._can_repeat(failed, exchange, session):
                break
        return self._read_failure(name, failed, exchange)

    async def close(self) -> None:
        """Close the connection; calls in progress end in doubt."""
        self._is_closed = True
        self._stop.set()
        if self._held is not None:
            await asyncio.wait([self._held], timeout=CLOSING_S)

    async def _session(self) -> ClientSession:
        if isinstance(self.target, ClientSession):
            return self.target
        if self._is_closed:
            raise NotMade(f"the connection to the MCP server {self.label} is closed: nothing was sent")
        if self._ready is None or self._held is None or self._held.done() or self._stop.is_set():
            self._ready, self._stop = asyncio.get_running_loop().create_future(), asyncio.Event()
            self._ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())
            self._held = asyncio.create_task(self._hold(self._ready, self._stop, self._held))
        return await asyncio.shield(self._ready)

    async def _hold(
        self, ready: asyncio.Future[ClientSession], stop: asyncio.Event, before: asyncio.Task[None] | None
    ) -> None:
        """Open the connection and keep it open: one task must both enter and leave the client."""
        _EXCHANGE.set(exchange := replace(_EXCHANGE.get()))
        try:
            async with asyncio.timeout(self.timeout_s) as limit, self._open(exchange) as session:
                limit.reschedule(None)
                ready.set_result(session)
                await stop.wait()
        except BaseException as error:  # noqa: BLE001 - this is how a lost connection ends; the next call opens another
            if not ready.done():
                why = self._reason(error, exchange)
                ready.set_exception(NotMade(f"MCP server {self.label}: no connection, so nothing was sent: {why}"))
        if before is not None:
            await asyncio.wait([before], timeout=CLOSING_S)

    @asynccontextmanager
    async def _open(self, exchange: _Exchange) -> AsyncGenerator[ClientSession, None]:
        target: Any = self.target
        async with AsyncExitStack() as stack:
            if isinstance(target, str):
                # no keep-alive: a connection that the server has closed meanwhile would leave a write in doubt
                transport = _HttpTransport(limits=httpx2.Limits(max_keepalive_connections=0))
                timeout = httpx2.Timeout(self.timeout_s, read=300.0)
                http = httpx2.AsyncClient(transport=transport, auth=self.auth, timeout=timeout, trust_env=False)
                await stack.enter_async_context(http)
                target = _watched(
                    streamable_http_client(target, http_client=http, max_sse_event_size=MAX_BYTES), self._sift
                )
            elif isinstance(target, StdioServerParameters):
                target = target.model_copy(update={"env": {**(target.env or {}), **exchange.secrets}})
                errors: Any = sys.__stderr__ or subprocess.DEVNULL  # a notebook's sys.stderr is no file
                target = _watched(stdio_client(target, errlog=errors), self._sift)
            client = await stack.enter_async_context(Client(target, cache=None))
            yield client.session

    def _sift(self, item: Any) -> None:
        """Remove the tools that break the protocol from a list of tools."""
        result = getattr(getattr(item, "message", None), "result", None)
        session = self._ready.result() if self._ready is not None and self._ready.done() else None
        if session is None or not isinstance(result, dict) or not isinstance(result.get("tools"), list):
            return
        version, tools, result["tools"] = (
            session.protocol_version or protocol.LATEST_PROTOCOL_VERSION,
            result["tools"],
            [],
        )
        if _find_break(result, version):  # the list itself is invalid, not a tool in it
            result["tools"] = tools
            return
        for number, tool in enumerate(tools):
            if why := _find_break({**result, "tools": [tool]}, version):
                name = tool.get("name") if isinstance(tool, dict) else None
                self.left_out[str(name or f"tool {number}")[:100]] = why
            else:
                result["tools"].append(tool)

    async def _start_exchange(self) -> _Exchange:
        exchange = _Exchange(await asyncio.to_thread(self._read_sources))
        _EXCHANGE.set(exchange)
        return exchange

    def _read_sources(self) -> dict[str, str]:
        values = {name: read_credential(one, f"MCP server {self.label}, {name}") for name, one in self.sources.items()}
        for name, source in self.sources.items():
            if not values[name] and (callable(source) or source.startswith("env:")):
                wanted = "its function returned nothing" if callable(source) else f"set {source.removeprefix('env:')}"
                raise NotMade(f"MCP server {self.label}: no value for {name}: {wanted}")
        return values

    def _mask(self, value: Any, exchange: _Exchange) -> Any:
        hidden = [one for _, one in parse_qsl(urlsplit(self.target).query)] if isinstance(self.target, str) else []
        for name, one in exchange.secrets.items():
            source = self.sources[name]
            if callable(source) or source.startswith("env:") or _SECRET.search(name):
                hidden.append(one)
        return Secrets(({"in": "header"}, one) for one in hidden).remove(value)

    def _can_repeat(self, error: BaseException, exchange: _Exchange, session: ClientSession) -> bool:
        """Return whether the call was certainly not made, and a new connection may reach the server."""
        code = error.code if isinstance(error, MCPError) else None
        is_unknown = exchange.status == 404 and code == protocol.INVALID_REQUEST
        if not is_unknown and (code != protocol.CONNECTION_CLOSED or exchange.is_sent or exchange.failure):
            return False
        if self._ready is not None and self._ready.done() and self._ready.result() is session:
            self._stop.set()  # otherwise another call has already reconnected
        return True

    def _reason(self, error: BaseException, exchange: _Exchange) -> str:
        """Return the reason of a failure without credentials, which texts of unknown errors may contain."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        status = f"HTTP {exchange.status}" if (exchange.status or 0) >= 400 else ""
        said = str(error) if isinstance(error, MCPError | GeckoError) else ""
        text = exchange.failure or ": ".join(filter(None, (status, said)))
        text = text or (f"no answer within {self.timeout_s:g} s" if isinstance(error, TimeoutError) else "")
        return str(self._mask(text, exchange))[:500] or type(error).__name__

    def _read_failure(self, name: str, error: BaseException, exchange: _Exchange) -> ToolMessage:
        where, why = f"MCP server {self.label}, {name}", self._reason(error, exchange)
        if not exchange.is_sent:
            raise NotMade(f"{where}: it was not sent: {why}")
        code = error.code if isinstance(error, MCPError) else None
        is_refused = code in MCP_REFUSALS or (code == protocol.INVALID_REQUEST and exchange.status is None)
        if code is not None and (is_refused or refuses(exchange.status)):
            said = json.dumps({"error": why, "code": code}, ensure_ascii=False)
            content: list[Any] = [{"type": "text", "text": said}]
            more = {"http": {"http_status": exchange.status}, **REFUSED}
            return ToolMessage(content, name=name, status="error", tool_call_id="", additional_kwargs=more)
        raise InDoubt(f"{where} may have taken effect: {why}")

    def _read_result(self, name: str, result: JsonObject, exchange: _Exchange) -> ToolMessage:
        fault = None
        if result.get("inputRequests"):
            fault = "it asks for input, which is not supported here"
        elif result.get("resultType", "complete") != "complete" or "content" not in result:
            fault = "the answer is not a tool result"
        elif len(json.dumps(result)) > MAX_BYTES:
            fault = f"the answer is larger than {MAX_BYTES // 1_000_000} MB"
        if fault:
            raise InDoubt(f"MCP server {self.label}, {name} may have taken effect: {fault}")
        read = self._mask(result, exchange)
        structured = read.get("structuredContent")
        message = ToolMessage(read["content"], name=name, tool_call_id="")
        message.status = "error" if read.get("isError") else "success"
        message.artifact = None if structured is None else {"structured_content": structured}
        return message


def _find_break(result: JsonObject, version: str) -> str:
    """Return how a list of tools breaks the protocol; "" if it is valid."""
    try:
        validate_server_result("tools/list", version, result)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(str(one) for one in first['loc'][2:])}: {first['msg']}"[:300].removeprefix(": ")
    except (KeyError, ValueError):  # a version that the client does not know
        return ""
    return ""


async def _list_pages(session: ClientSession) -> list[JsonObject]:
    found: list[JsonObject] = []
    cursors: list[str | None] = [None]
    while True:
        page = await session.list_tools(params=protocol.PaginatedRequestParams(cursor=cursors[-1]))
        found += [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in page.tools]
        if page.next_cursor is None:
            return found
        if page.next_cursor in cursors:
            raise GeckoError("its pages form a cycle")
        cursors.append(page.next_cursor)
