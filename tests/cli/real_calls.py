"""A run with real calls: the order service with its key in the environment, a terminal, and the command as a user has it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time

from gecko_graph.scenario import examples
from tests.cli.command import COMMAND, ENVIRONMENT

ORDER = examples()["order"]
KEY = "sesame-for-mugs"
THREAD = "order-with-refund"


def real(service, *more, file=ORDER):
    """The words of a run with the service's tools."""
    return "run", file, "--server", service.url, "--auth", "ApiKey=env:ORDER_KEY", "--reads", "real", *more


def done(service):
    return [entry["operation"] for entry in service.log()]


def on_terminal(command, typed, **options):
    """Run a command on a terminal of its own; type the next line at each question. Return its exit code and output."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True, **options)
    os.close(theirs)
    shown, left, until = "", list(typed), time.monotonic() + 120
    try:
        while time.monotonic() < until:
            if not select.select([ours], [], [], 0.2)[0]:
                continue
            try:
                shown += os.read(ours, 65536).decode(errors="replace")
            except OSError:  # it has ended
                break
            if left and shown.rstrip().endswith("(not now):"):
                os.write(ours, f"{left.pop(0)}\n".encode())
    finally:
        os.close(ours)
    return process.wait(30), shown


def start(*words):
    """Start the command as a process of its own."""
    env = {**ENVIRONMENT, "ORDER_KEY": KEY}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen([*COMMAND, *map(str, words)], env=env, text=True, **pipes)
