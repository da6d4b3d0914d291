"""`serve`: tools as a server of isolated sessions, over HTTP by their own paths, and over MCP."""

from __future__ import annotations

import asyncio
import shlex
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager, nullcontext
from pathlib import Path
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
    """Serve until it is interrupted; the address goes to the standard error."""
    try:
        import uvicorn

        from ..serve.app import Server
        from ..serve.guard import LOOPBACK, Guard
        from ..serve.journal import Journal
        from ..serve.operations import Operations
        from ..serve.sessions import Sessions
    except ImportError as error:
        raise GeckoError(f"serve needs the extra: {install('serve')} ({error.name})") from None
    check_needs(options)
    if options.host not in LOOPBACK and not options.token:
        raise GeckoError(f"--host {options.host} can be reached from elsewhere: it needs --token")
    played = _read_tasks(options)
    scenario = Scenario.load(options.scenario) if options.scenario else None
    alone = played[0] if played and not options.spec and scenario is None else scenario
    base = _build_world(options, alone)
    inputs = [("SPEC", options.spec), ("--state", options.state), ("--scenario", options.scenario)]
    inputs += [("--seed-from", file) for file in options.seed_from]
    check_files(inputs, {"--save": options.save, "--record": options.record, "--ledger": options.ledger})
    identity = digest({"tools": base.toolkit.to_openapi(), "state": base.state})
    upstream, opened = build_upstream(base.toolkit, options)
    journal = Journal(options.save, identity=identity) if options.save else None
    sessions = Sessions(base, journal=journal, most=options.sessions, idle_s=options.idle, call_s=options.call_s)
    mcp = _build_mcp(options, sessions, upstream)
    if options.mcp:
        with opened, closing(journal) if journal else nullcontext():
            asyncio.run(mcp.run_stdio())
        return 0

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        with opened, closing(journal) if journal else nullcontext():
            async with mcp.manager.run() if mcp else nullcontext():
                yield
            if upstream:
                await upstream.close()

    operations = Operations(base.toolkit, prefix=options.prefix, upstream=upstream)
    trainers, told = _build_trainers(played, options)
    notes = getattr(options, "notes", ())
    app = Server(sessions, operations, scenario, notes).build([*trainers, *(mcp.routes() if mcp else ())], lifespan)
    hosts = LOOPBACK if options.host in LOOPBACK else ()
    guarded = Guard(app, hosts=hosts, origins=options.origin, token=options.token)
    if upstream:
        writes = "also writes, those with an Idempotency-Key once" if options.allow_writes else "writes are refused"
        told.append(f"calls pass on to {options.upstream} for real; {writes}")
    sys.stderr.writelines(f"note: {note}\n" for note in [*notes, *operations.notes, *told])
    _check_port(options.host, options.port)
    config = uvicorn.Config(guarded, host=options.host, port=options.port, log_level="warning", lifespan="on")
    asyncio.run(_run(uvicorn.Server(config), options, base))
    return 0


def _build_mcp(options: Options, sessions: Any, upstream: Any) -> Any:
    """Return the tools over MCP; None without its package. Raises GeckoError where they are all that is served."""
    try:
        from ..serve.mcp import McpFace
    except ImportError:
        if options.mcp:
            raise GeckoError(f"--mcp needs the extra: {install('mcp')}") from None
        return None
    model = build_models(options) if options.model else None
    return McpFace(sessions, own=options.gecko, model=model, upstream=upstream)


def _read_tasks(options: Options) -> list[Scenario]:
    """Return the cases of `--tasks`. Raises GeckoError."""
    if not options.tasks:
        return []
    files = sorted(Path(options.tasks).glob("*.gecko.yaml"))
    if not files:
        raise GeckoError(f"--tasks: {options.tasks} holds no *.gecko.yaml (gecko-graph data tasks makes some)")
    return [Scenario.load(file) for file in files]


def _build_trainers(tasks: list[Scenario], options: Options) -> tuple[list[Any], list[str]]:
    """Return the routes of trainers, and what is to be told of them."""
    if not tasks:
        return [], []
    from ..serve.trainers import NEMO_GYM, OPENENV, Episodes, Trainers, find_collisions

    episodes = Episodes(tasks, most=options.sessions)
    told = find_collisions([each["function"]["name"] for each in episodes.tools.as_openai()])
    return Trainers(episodes).routes(), [*told, f"{len(tasks)} tasks at {OPENENV} and {NEMO_GYM}"]


def _check_port(host: str, port: int) -> None:
    """Raise GeckoError where nothing can listen there: uvicorn would end the process with a traceback."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except (OSError, OverflowError) as error:
        raise GeckoError(
            f"--port {port}: cannot listen on {host}: {getattr(error, 'strerror', None) or error}"
        ) from None


async def _run(server: Any, options: Options, base: World) -> None:
    """Serve, and say where once it answers."""
    running = asyncio.ensure_future(server.serve())
    while not server.started and not running.done():
        await asyncio.sleep(0.01)
    if server.started:
        port = server.servers[0].sockets[0].getsockname()[1]
        address = f"http://{options.host}:{port}"
        token = "-H 'X-Gecko-Token: ...' " if options.token else ""
        sys.stderr.write(f"{len(base.toolkit)} tools at {address} (a page at {address}/_gecko/)\n")
        sys.stderr.write(f"  curl -s {token}{address}/_gecko/sessions -X POST\n")
        sys.stderr.flush()
    await running


def _build_world(options: Options, scenario: Scenario | None) -> World:
    """Return the world that each session begins as. Raises GeckoError."""
    if options.proxy:
        if options.spec or scenario:
            raise GeckoError("--proxy: leave SPEC and --scenario out: the server has its own tools")
        return _build_proxy(options)
    if not options.spec and scenario is None:
        raise GeckoError("give SPEC, or --scenario FILE, which holds its tools, or --proxy SERVER")
    if options.state and scenario:
        raise GeckoError("--state: leave it out: the scenario holds its own")
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
    return World(toolkit, state=state, model=models, context=limits, observe=options.record)


def _derive(toolkit: Toolkit, state: JsonObject | None, options: Options) -> tuple[Toolkit, JsonObject | None]:
    """Return the tools with what is derived of them, and the start: a service that is only simulated has no things."""
    if not options.spec or options.no_derive:
        return toolkit, seed(toolkit, state, options)
    toolkit, derived = add_derived(toolkit, state)
    empty = None if options.upstream else {**{key: {} for key in derived.made}, **(state or {})}
    start = seed(toolkit, empty or state, options)
    options.notes = derived.tell(start or {})
    return toolkit, start


def _build_proxy(options: Options) -> World:
    """Return a world of an MCP server's tools: reads that are opened by name are made, all else is simulated."""
    server = options.proxy if "://" in options.proxy else shlex.split(options.proxy)
    toolkit = choose(Toolkit.from_mcp(server), options)
    stated = [Tool(name, effect="read") for name in options.opened]
    toolkit = toolkit.declare(*stated).open(*options.opened)
    models = build_models(options) if options.model else None
    limits = GeckoContext() if models else GeckoContext(semantic_validation=False, ladder=RULES)
    state = read_state(options.state) if options.state else None
    return World(toolkit, state=state, model=models, context=limits)


def build_upstream(toolkit: Toolkit, options: Options) -> tuple[Any, AbstractContextManager[Any]]:
    """Return the real service behind the server, None where there is none, and what holds its ledger open."""
    needs = ("record", "no_simulation", "allow_writes", "ledger")
    if not options.upstream:
        if given := next((name for name in needs if getattr(options, name)), None):
            raise GeckoError(f"--{given.replace('_', '-')}: it belongs to --upstream URL")
        return None, nullcontext()
    from ..serve.guard import LOOPBACK
    from ..serve.shadow import Upstream

    parts = urlsplit(options.upstream)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise GeckoError("--upstream: expected http(s)://HOST, perhaps with a path, and no credentials")
    if options.reads == "real" or options.server:
        raise GeckoError("--upstream: leave --reads and --server out: what passes on is real")
    if options.no_simulation and options.host not in LOOPBACK:
        raise GeckoError("--no-simulation: a proxy is on loopback alone")
    if options.allow_writes != bool(options.ledger):
        raise GeckoError("--allow-writes and --ledger FILE belong together: a write is claimed before it is sent")
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
