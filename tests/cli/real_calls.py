"""A run with real calls: against the order service, with its key in the environment, and on a terminal."""

import os
import pty
import re
import select
import socket
import subprocess
import time

from gecko_graph.scenario import examples
from tests import forked
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
    pipes = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "start_new_session": True}
    process = forked.Popen(command, **pipes, **options)
    os.close(theirs)
    shown, left, until = "", list(typed), time.monotonic() + 120
    try:
        while time.monotonic() < until:
            if not select.select([ours], [], [], 0.2)[0]:
                continue
            try:
                shown += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", os.read(ours, 65536).decode(errors="replace"))
            except OSError:  # it has ended
                break
            if left and shown.rstrip().endswith("(decide later):"):
                os.write(ours, f"{left.pop(0)}\n".encode())
    finally:
        os.close(ours)
    return process.wait(30), shown


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return str(found.getsockname()[1])


def wait_for(port):
    """Wait until something listens there."""
    for _ in range(600):
        try:
            return socket.create_connection(("127.0.0.1", int(port)), 1).close()
        except OSError:
            time.sleep(0.1)
    raise AssertionError("it does not start")


def start(*words):
    """Start the command as a process of its own."""
    env = {**ENVIRONMENT, "ORDER_KEY": KEY}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return forked.Popen([*COMMAND, *map(str, words)], env=env, text=True, **pipes)
