"""`serve`: tools as a server of isolated sessions, over HTTP with the document's paths, and over MCP."""

from __future__ import annotations

import asyncio
import gc
import os
import shlex
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager, nullcontext
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from types import SimpleNamespace as Options
from typing import Any
from urllib.parse import urlsplit

from ..context import GeckoContext
from ..derive.contracts import add_derived
from ..errors import GeckoError, install
from ..real.ledger import find_ledger
from ..scenario import Scenario, read_toolkit
from ..state import JsonObject
from ..tools import Tool, Toolkit
from ..tools.openapi.credentials import Credentials
from ..values.digest import digest
from ..world.world import World
from .inputs import RULES, build_models, check_files, check_needs, choose, connect, is_real, read_auth, read_state, seed
from .saved import open_saver


def serve(options: Options) -> int:
    """Serve until interrupted; the address is printed to standard error."""
    check_needs(options)
    try:
        from ..serve.guard import LOOPBACK
    except ImportError as error:
        raise GeckoError(f"serve needs the extra: {install('serve')} ({error.name})") from None
    if options.host not in LOOPBACK and not options.token:
        raise GeckoError(f"--host {options.host} can be reached from other machines: it needs --token")
    if options.workers > 1 and not _find_database(options):
        raise GeckoError(
            f"--workers {options.workers}: several processes share sessions in a database only: --save postgresql://..."
        )
    if options.workers > 1 and (options.mcp or options.upstream):
        raise GeckoError("--workers: leave it out: --mcp and --upstream run in one process")
    service = _Service(options)
    if options.mcp:
        with service.opened, closing(service.store):
            asyncio.run(service.mcp.run_stdio())
        return 0
    sys.stderr.writelines(f"note: {note}\n" for note in service.notes)
    with _listen(options.host, options.port) as listening:
        ready = partial(_tell_address, options, listening.getsockname()[1], len(service.base.toolkit))
        if options.workers > 1:
            service.store.close()
            _supervise(options, listening, ready)
        else:
            _run(service.app, listening, ready)
    return 0


def _run(app: Any, listening: socket.socket, ready: Callable[[], object]) -> None:
    """Serve until a signal ends it, by uvloop if it is installed; `ready` is called once it answers."""
    import uvicorn

    class _Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                ready()

    gc.freeze()  # sessions live long: collecting them again and again took a tenth of a call's time
    gc.set_threshold(20_000, 50, 50)
    config = uvicorn.Config(app, log_level="warning", access_log=False, proxy_headers=False, lifespan="on")
    _Server(config).run(sockets=[listening])


def _supervise(options: Options, listening: socket.socket, ready: Callable[[], object]) -> None:
    """Have worker processes serve a socket until a signal ends this process; restart workers that end."""
    spawn, stopped, workers = get_context("spawn"), list[int](), list[Any]()
    started = spawn.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: stopped.append(number))
    while not stopped:
        workers = [worker for worker in workers if worker.is_alive()]
        for _ in range(options.workers - len(workers)):
            workers.append(spawn.Process(target=_work, args=(options, listening, started)))
            workers[-1].start()
        wait([worker.sentinel for worker in workers], timeout=0.2)
        if started.is_set():
            started.clear()
            ready()
            ready = int
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()


def _work(options: Options, listening: socket.socket, started: Any) -> None:
    """Serve as one of several workers, until the parent process ends."""

    def end_with_parent() -> None:
        parent_process().join()  # type: ignore[union-attr]
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        _run(_Service(options).app, listening, started.set)
    except GeckoError as error:
        sys.exit(f"gecko-graph serve: {error}")


class _Service:
    """The objects of one serving process."""

    def __init__(self, options: Options) -> None:
        from ..serve.app import Server
        from ..serve.guard import LOOPBACK, Guard
        from ..serve.operations import HttpOperations
        from ..serve.sessions import Sessions

        scenario = Scenario.load(options.scenario) if options.scenario else None
        self.base = _build_world(options, scenario)
        inputs = [("SPEC", options.spec), ("--state", options.state), ("--scenario", options.scenario)]
        inputs += [("--seed-from", file) for file in options.seed_from]
        save = None if _find_database(options) else options.save
        check_files(inputs, {"--save": save, "--record": options.record, "--ledger": options.ledger})
        self.upstream, self.opened = build_upstream(self.base.toolkit, options)
        self.store = _open_store(self.base, options)
        sessions = Sessions(
            self.base, store=self.store, most=options.sessions, idle_s=options.idle, call_s=options.call_s
        )
        self.mcp = _build_mcp(options, sessions, self.upstream)
        operations = HttpOperations(self.base.toolkit, prefix=options.prefix, upstream=self.upstream)
        notes = getattr(options, "notes", ())
        app = Server(sessions, operations, scenario, notes).build(self.mcp.routes() if self.mcp else (), self._live)
        hosts = LOOPBACK if options.host in LOOPBACK else ()
        self.app = Guard(app, hosts=hosts, origins=options.origin, token=options.token)
        self.notes = [*notes, *operations.notes]
        if self.upstream:
            writes = "writes too, those with an Idempotency-Key once" if options.allow_writes else "writes are refused"
            self.notes.append(f"calls are forwarded to {options.upstream} for real; {writes}")

    @asynccontextmanager
    async def _live(self, _: Any) -> AsyncIterator[None]:
        with self.opened, closing(self.store):
            async with self.mcp.manager.run() if self.mcp else nullcontext():
                yield
            if self.upstream:
                await self.upstream.close()


def _build_mcp(options: Options, sessions: Any, upstream: Any) -> Any:
    """Return the MCP server, None without its package. Raises GeckoError if `--mcp` needs it."""
    try:
        from ..serve.mcp import McpFace
    except ImportError:
        if options.mcp:
            raise GeckoError(f"--mcp needs the extra: {install('mcp')}") from None
        return None
    model = build_models(options) if options.model else None
    return McpFace(sessions, own=options.gecko, model=model, upstream=upstream)


def _find_database(options: Options) -> str | None:
    return options.save if options.save and options.save.startswith(("postgresql://", "postgres://")) else None


def _open_store(base: World, options: Options) -> Any:
    """Return the store of sessions. Raises GeckoError."""
    from ..serve.journal import Journal
    from ..serve.store import Store

    identity = digest({"tools": base.toolkit.to_openapi(), "state": base.state})
    if address := _find_database(options):
        from ..serve.postgres import Postgres  # here, because few have psycopg

        return Postgres(address, identity=identity, idle_s=options.idle, wait_s=options.call_s)
    return Journal(options.save, identity=identity) if options.save else Store()


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise GeckoError(f"--port {port}: cannot listen on {host}: {why}") from None


def _tell_address(options: Options, port: int, tools: int) -> None:
    address = f"http://{options.host}:{port}"
    token = "-H 'X-Gecko-Token: ...' " if options.token else ""
    curl = f"  curl -s {token}{address}/_gecko/sessions -X POST\n"
    sys.stderr.write(f"{tools} tools at {address} (a page at {address}/_gecko/)\n{curl}")
    sys.stderr.flush()


def _build_world(options: Options, scenario: Scenario | None) -> World:
    """Return the world at the start of each session. Raises GeckoError."""
    if options.proxy:
        if options.spec or scenario:
            raise GeckoError("--proxy: leave SPEC and --scenario out: the server has its own tools")
        return _build_proxy(options)
    if not options.spec and scenario is None:
        raise GeckoError("give SPEC, or --scenario FILE, or --proxy SERVER")
    if options.state and scenario:
        raise GeckoError("--state: leave it out: the scenario has its own")
    toolkit: Toolkit = read_toolkit(options.spec, allow_remote=options.allow_remote) if options.spec else scenario.tools  # type: ignore[union-attr]
    toolkit = choose(toolkit, options)
    limits = scenario.limits if scenario else GeckoContext()
    limits = limits.model_copy(update={"reads": options.reads or limits.reads})
    if is_real(options, limits) and not options.upstream:
        toolkit = connect(toolkit, options)
    models = build_models(options) if options.model else None
    if models is None:
        limits = limits.model_copy(update={"semantic_validation": False, "ladder": RULES})
    state: JsonObject | None = scenario.state if scenario else read_state(options.state) if options.state else None
    toolkit, state = _derive(toolkit, state, options)
    return World(toolkit, state=state, model=models, context=limits, observe=options.record, derive=False)


def _derive(toolkit: Toolkit, state: JsonObject | None, options: Options) -> tuple[Toolkit, JsonObject | None]:
    """Return the tools with derived contracts, and the start state: a service that is only simulated starts empty."""
    if options.no_derive or not (options.spec or options.proxy):
        return toolkit, seed(toolkit, state, options)
    toolkit, derived = add_derived(toolkit, state)
    is_known = not (options.upstream or options.proxy)
    empty = {**{key: {} for key in derived.made}, **(state or {})} if is_known else None
    start = seed(toolkit, empty or state, options)
    options.notes = derived.tell(start or {})
    return toolkit, start


def _build_proxy(options: Options) -> World:
    """Return a world of an MCP server's tools: reads opened by name are forwarded, all other calls simulated."""
    server = options.proxy if "://" in options.proxy else shlex.split(options.proxy)
    toolkit = choose(Toolkit.from_mcp(server), options)
    stated = [Tool(name, effect="read") for name in options.opened]
    toolkit = toolkit.declare(*stated).open(*options.opened)
    models = build_models(options) if options.model else None
    limits = GeckoContext() if models else GeckoContext(semantic_validation=False, ladder=RULES)
    toolkit, state = _derive(toolkit, read_state(options.state) if options.state else None, options)
    return World(toolkit, state=state, model=models, context=limits, derive=False)


def build_upstream(toolkit: Toolkit, options: Options) -> tuple[Any, AbstractContextManager[Any]]:
    """Return the real service behind the server (None if there is none), and a context manager for its ledger."""
    needs = ("record", "no_simulation", "allow_writes", "ledger")
    if not options.upstream:
        if given := next((name for name in needs if getattr(options, name)), None):
            raise GeckoError(f"--{given.replace('_', '-')}: it needs --upstream URL")
        return None, nullcontext()
    from ..serve.guard import LOOPBACK
    from ..serve.shadow import Upstream

    parts = urlsplit(options.upstream)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise GeckoError("--upstream: expected http(s)://HOST, with a path or not, without credentials")
    if options.reads == "real" or options.server:
        raise GeckoError("--upstream: leave --reads and --server out: forwarded calls are real")
    if options.no_simulation and options.host not in LOOPBACK:
        raise GeckoError("--no-simulation: a mere proxy is served on loopback only")
    if options.allow_writes != bool(options.ledger):
        raise GeckoError("--allow-writes and --ledger FILE need each other: a write is claimed before it is sent")
    credentials = Credentials(dict(map(read_auth, options.auth)), toolkit) if options.auth else None
    simulate = not options.no_simulation
    upstream = Upstream(options.upstream, simulate=simulate, credentials=credentials, timeout_s=options.call_s)
    return upstream, _holding(upstream, options.ledger)


@contextmanager
def _holding(upstream: Any, ledger: str | None) -> Iterator[None]:
    with open_saver(ledger, new=True) if ledger else nullcontext() as saver:
        upstream.ledger = find_ledger(saver, None) if saver else None
        try:
            yield
        finally:
            sys.stderr.write(f"{upstream.summary()}\n")
