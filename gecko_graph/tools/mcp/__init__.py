"""Read the tools of MCP servers and call them, over the official client (extra `mcp`)."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread, current_thread
from typing import Any
from urllib.parse import urlsplit

import httpx2
from langchain_core.messages import ToolMessage
from mcp import Client, ClientSession, StdioServerParameters
from mcp.server import Server
from mcp.server.mcpserver import MCPServer

from ...errors import NotMade, ToolkitError
from ...state import JsonObject
from ..function_dicts import spec_of_dict
from ..openapi.credentials import Credential, read_credential
from ..problems import Problem
from ..spec import ToolSpec
from .connection import CLOSING_S, McpConnection

_EXPECTED = (
    "expected an http(s) address, a command as a list ['python', 'server.py'], {'command': ..., 'args': [...]}, "
    "{'url': ...}, several of them by name, or a server object"
)
McpTools = tuple[list[ToolSpec], list[Problem]]
"""The tools, and problems of those that could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Options:
    headers: Mapping[str, Credential] | None = None
    auth: Any = None
    env: Mapping[str, Credential] | None = None
    prefix: str = ""
    trust_hints: bool = False
    timeout_s: float = 30.0


class Background:
    """An event loop for a toolkit's connections, in a daemon thread; ends by `close`, garbage collection or at exit."""

    def __init__(self, connections: Iterable[McpConnection], loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._close: Callable[[], object] = lambda: None
        self._loop = loop or self._start(list(connections))

    def _start(self, connections: list[McpConnection]) -> asyncio.AbstractEventLoop:
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        thread = Thread(target=asyncio.run, args=(_serve(started, connections),), daemon=True, name="gecko-mcp")
        thread.start()
        loop, stop = started.result()
        self._close = weakref.finalize(self, _end, loop, stop, thread)
        return loop

    def submit(self, work: Any) -> Future[Any]:
        """Run a coroutine on the loop. Raises NotMade if it is closed."""
        if self._loop.is_closed() or not self._loop.is_running():
            work.close()
            raise NotMade("the connection to the MCP server is closed: nothing was sent")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Close the connections; a second call does nothing. A session that the user opened stays open."""
        self._close()


async def _serve(started: Future[Any], connections: list[McpConnection]) -> None:
    stop = asyncio.Event()
    started.set_result((asyncio.get_running_loop(), stop))
    await stop.wait()
    await asyncio.gather(*(connection.close() for connection in connections))


def _end(loop: asyncio.AbstractEventLoop, stop: asyncio.Event, thread: Thread) -> None:
    with suppress(RuntimeError):  # the loop is closed already
        loop.call_soon_threadsafe(stop.set)
    if thread is not current_thread():
        thread.join(CLOSING_S + 2)


@dataclass(frozen=True, slots=True)
class McpFunction:
    """A tool's real function: a coroutine function of its arguments, usable from any thread and event loop."""

    name: str
    connection: McpConnection
    background: Background

    async def __call__(self, /, **args: Any) -> ToolMessage:
        """Call the tool. Raises InDoubt, NotMade."""
        deadline = time.monotonic() + self.connection.timeout_s
        call = self.connection.call(self.name, args, deadline=deadline)
        return await asyncio.wrap_future(self.background.submit(call))


def read_servers(server: Any, given: JsonObject) -> McpTools:
    """Return the tools of one or several servers. Raises ToolkitError, GeckoError."""
    options = _Options(**given)
    connections = _connections(server, options)
    background = Background(connections.values())
    try:
        listed = [background.submit(connection.list_tools()) for connection in connections.values()]
        found = [future.result() for future in listed]
    except BaseException:
        background.close()
        raise
    functions = [McpFunction("", connection, background) for connection in connections.values()]
    return _read_tools(zip(connections, functions, found, strict=True), trust_hints=options.trust_hints)


async def aread_servers(server: Any, given: JsonObject) -> McpTools:
    """Read as `read_servers` does; calls over an open session run on the current event loop."""
    if not isinstance(server, Client | ClientSession):
        return await asyncio.to_thread(read_servers, server, given)
    options = _Options(**given)
    try:
        target = server.session if isinstance(server, Client) else server
    except RuntimeError:
        raise ToolkitError("the client is not open: `async with client:`, or pass its server's address") from None
    connection = McpConnection("(open session)", target, timeout_s=options.timeout_s)
    function = McpFunction("", connection, Background([], asyncio.get_running_loop()))
    listed = await connection.list_tools()
    return _read_tools([(options.prefix, function, listed)], trust_hints=options.trust_hints)


def _read_tools(listed: Iterable[tuple[str, McpFunction, list[JsonObject]]], *, trust_hints: bool) -> McpTools:
    specs, problems = dict[str, ToolSpec](), list[Problem]()
    for prefix, function, tools in listed:
        where = f"MCP server {function.connection.label}"
        for tool in tools:
            name = f"{prefix}_{tool['name']}" if prefix else tool["name"]
            try:
                spec = spec_of_dict({"description": tool.get("title"), **tool}, where=where)
                if name in specs:
                    raise ToolkitError(f"{where}: there are two tools {name!r}; the first one is kept")
            except ToolkitError as error:
                problems.append(Problem(name, "broken", str(error)))
                continue
            stated = trust_hints and spec.effect is not None
            specs[name] = replace(spec, name=name, stated=stated, real=replace(function, name=tool["name"]))
        for name, why in function.connection.left_out.items():
            problems.append(Problem(f"{prefix}_{name}" if prefix else name, "broken", f"{where}: left out: {why}"))
    return list(specs.values()), problems


def _connections(server: Any, options: _Options) -> dict[str, McpConnection]:
    """Return unopened connections by the prefix of their tools. Raises ToolkitError."""
    if not isinstance(server, Mapping) or server.keys() & {"url", "command"}:
        return {options.prefix: _connection(server, options, "")}
    several = server.get("mcpServers", server)
    if options.headers or options.auth or options.env or not several:
        raise ToolkitError(f"from_mcp: of several servers each has its own headers, auth and env; {_EXPECTED}")
    return {f"{options.prefix}_{name}".strip("_"): _connection(one, options, name) for name, one in several.items()}


def _connection(server: Any, options: _Options, name: str) -> McpConnection:
    config = dict(server) if isinstance(server, Mapping) else {}
    target = config.get("url") or ([config["command"], *config.get("args", ())] if "command" in config else server)
    auth = config.get("auth", options.auth)
    sources = {**config.get("headers", {}), **(options.headers or {})}
    if isinstance(target, str) and urlsplit(target).scheme in ("http", "https"):
        if isinstance(auth, str) or (callable(auth) and not isinstance(auth, httpx2.Auth)):
            token, auth = auth, None
            sources["Authorization"] = lambda: f"Bearer {read_credential(token, 'auth').removeprefix('Bearer ')}"
        parts = urlsplit(target)
        if "@" in parts.netloc or not parts.hostname:
            raise ToolkitError("from_mcp: expected an address without credentials; pass auth= or headers=")
        label = name or f"{parts.scheme}://{parts.netloc}{parts.path}"  # the query may hold a key
        return McpConnection(label, target, sources, auth, options.timeout_s)
    if sources or auth:
        raise ToolkitError(f"from_mcp: headers and auth are for http(s) addresses, env is for commands; {_EXPECTED}")
    sources = {**config.get("env", {}), **(options.env or {})}
    if isinstance(target, list | tuple) and target and all(isinstance(one, str) for one in target):
        target = StdioServerParameters(command=target[0], args=list(target[1:]), cwd=config.get("cwd"))
    if isinstance(target, Client | ClientSession):
        raise ToolkitError("from_mcp: an open session belongs to its event loop: await Toolkit.afrom_mcp(session)")
    if not isinstance(target, StdioServerParameters | Server | MCPServer):
        raise ToolkitError(f"from_mcp: {_EXPECTED}; got {type(target).__name__}")
    label = name or (Path(target.command).name if isinstance(target, StdioServerParameters) else str(target.name))
    return McpConnection(label, target, sources, timeout_s=options.timeout_s)
