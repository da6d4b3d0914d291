"""Processes that begin as forks of one that has imported us, and run nothing yet: two seconds of work less for each.

`Popen` and `run` are those of `subprocess`; what needs an interpreter of its own (another locale, another option of
Python, a file to run) gets one. What a process imports is tested elsewhere, in processes that import it.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import random
import runpy
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module

BECOME_SUBREAPER = 36  # prctl(2)
LOADED = """
gecko_graph.agent gecko_graph.agent.undo gecko_graph.cli.running gecko_graph.cli.saved gecko_graph.cli.serve
gecko_graph.cli.test gecko_graph.cli.tools gecko_graph.cli.turns gecko_graph.conversation gecko_graph.display.page
gecko_graph.scenario.cases gecko_graph.serve.app gecko_graph.serve.mcp gecko_graph.serve.shadow
gecko_graph.testing gecko_graph.toolgate langchain_openai langgraph.checkpoint.sqlite
rich.live rich.tree uvicorn.lifespan.on uvicorn.protocols.http.auto uvicorn.protocols.websockets.auto
"""
AT_START = ("PYTHON", "LC_", "LANG")
"""Beginnings of the variables that an interpreter reads when it starts."""


def _read_at_start(environment):
    names = {name for name in environment if name.startswith(AT_START) and not name.startswith(("LANGG", "LANGS"))}
    return {name: environment[name] for name in names - {"PYTHONPATH"}}


@cache
def _nursery():
    """The process that forks, by its socket; None where the machine has no such thing."""
    if not sys.platform.startswith("linux"):
        return None
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # a child's parent ends at once, after which it is ours, to be waited for
    ctypes.CDLL(None).prctl(BECOME_SUBREAPER, 1, 0, 0, 0)
    process = subprocess.Popen([sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()])
    theirs.close()

    @atexit.register
    def end():
        ours.close()
        process.wait(20)

    return ours


class Popen(subprocess.Popen):
    """A process of `python -m MODULE ...` or `python -c CODE ...`, forked where that comes to the same."""

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest):
        given = dict(os.environ if env is None else env)
        start_new_session, restless = rest[-2], (preexec_fn, pass_fds, executable, rest[2])
        is_alike = list(args[:1]) == [sys.executable] and args[1] in ("-m", "-c") and not any(restless)
        if not is_alike or _read_at_start(given) != _read_at_start(os.environ) or _nursery() is None:
            super()._execute_child(args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest)
            return
        pipes = rest[3:9]
        streams = [given if given != -1 else own for own, given in enumerate((pipes[0], pipes[3], pipes[5]))]
        asked = {"args": args[1:], "cwd": str(cwd or os.getcwd()), "env": given, "session": start_new_session}
        sent, memory = json.dumps(asked).encode(), os.memfd_create("asked")
        os.write(memory, sent)
        os.lseek(memory, 0, os.SEEK_SET)
        socket.send_fds(_nursery(), [b"fork"], [*streams, memory])
        os.close(memory)
        self.pid = int(_nursery().recv(64))
        self._child_created = True
        self._close_pipe_fds(*pipes)


def run(*args, **options):
    """Do as `subprocess.run` does."""
    theirs, subprocess.Popen = subprocess.Popen, Popen
    try:
        return subprocess.run(*args, **options)
    finally:
        subprocess.Popen = theirs


def _serve(ours):
    """Fork for each request; return in the child, with what it is to be."""
    while True:
        _, files, _, _ = socket.recv_fds(ours, 16, 4)
        if not files:
            os._exit(0)
        reading, writing = os.pipe()
        if between := os.fork():
            os.waitpid(between, 0)
            ours.send(os.read(reading, 64))  # now, and not before, it is a child of who asked
            for file in (*files, reading, writing):
                os.close(file)
            continue
        if child := os.fork():
            os.write(writing, str(child).encode())
            os._exit(0)
        os.close(reading)
        os.close(writing)
        ours.close()
        with open(files[3], encoding="utf-8") as memory:
            asked = json.load(memory)
        for number, file in enumerate(files[:3]):
            os.dup2(file, number)
            os.close(file)
        return asked


def _become(asked):
    """Run what was asked for, as an interpreter that starts does."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in a shell's background
    if asked["session"]:
        os.setsid()
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        was = getattr(sys, name)
        made = open(number, mode, encoding=was.encoding, errors=was.errors, closefd=False)  # noqa: SIM115
        if mode == "w":
            made.reconfigure(line_buffering=name == "stderr" or made.isatty())
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)
    random.seed()
    path = [part for part in asked["env"].get("PYTHONPATH", "").split(os.pathsep) if part]
    sys.path[:] = [asked["cwd"] if asked["args"][0] == "-m" else "", *path, *sys.path[1:]]
    kind, what, *words = asked["args"]
    sys.argv = [kind, *words]
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    sys.path[:] = sys.path[1:]
    for name in LOADED.split():
        with suppress(ImportError):
            import_module(name)
    gc.collect()
    gc.freeze()
    _become(_serve(socket.socket(fileno=int(sys.argv[1]))))
