"""The processes of a server: uvicorn on a socket that listens already, here or in several workers."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from socket import socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp

Ready = Callable[[], object]


async def run(app: ASGIApp, listening: socket, ready: Ready) -> None:
    """Serve until a signal ends it; `ready` is called once it answers."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on"))
    running = asyncio.ensure_future(server.serve(sockets=[listening]))
    while not server.started and not running.done():
        await asyncio.sleep(0.01)
    if server.started:
        ready()
    await running


def supervise(count: int, work: Callable[[socket, Ready], None], listening: socket, ready: Ready) -> None:
    """Have `count` processes `work` on a socket until a signal ends this one; one that ends is begun again.

    `work` is importable by name, serves, and calls its second argument once it answers; then so does this one `ready`.
    """
    spawn, stopped, workers = get_context("spawn"), list[int](), list[Any]()
    started = spawn.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: stopped.append(number))
    while not stopped:
        workers = [worker for worker in workers if worker.is_alive()]
        for _ in range(count - len(workers)):
            workers.append(spawn.Process(target=_work, args=(work, listening, started)))
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


def _work(work: Callable[[socket, Ready], None], listening: socket, started: threading.Event) -> None:
    def end_with_parent() -> None:
        parent_process().join()  # type: ignore[union-attr]
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()
    work(listening, started.set)
