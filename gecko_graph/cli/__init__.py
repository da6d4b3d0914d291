"""The command line: `gecko-graph demo | run | tools | convert | history`.

Exit code: 0 accepted, 1 not accepted, 2 a user's mistake (said on stderr, without a traceback), 3 the model did not
answer, 130 interrupted.
"""

from __future__ import annotations

import argparse
import errno
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TextIO

from ..errors import GeckoError
from .arguments import build_parser

__all__ = ["build_parser", "main"]

INTERRUPTED = 130
PIPE_CLOSED = 141
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

_HOMES = {"demo": ".running", "run": ".running", "tools": ".tools", "convert": ".tools", "history": ".history"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The command's words, else those of the process.

    Returns:
        The exit code.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    _survive_any_output()
    try:
        code = _obey(words)
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # whoever reads a pipe may have seen enough
            if error.errno not in DISK_ERRORS:
                raise
            _complain(f"the output cannot be written: {error.strerror}")
        _silence(sys.stdout)
        code = PIPE_CLOSED if isinstance(error, BrokenPipeError) else 2
        return _leave(code) if argv is None else code
    return _leave(code) if code == INTERRUPTED and argv is None else code


def _obey(words: list[str]) -> int:
    parser = build_parser()
    try:
        options = parser.parse_args(words)
    except SystemExit as done:  # argparse has said what is wrong, or printed its help
        return int(done.code or 0)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        return _command(options.command)(options)
    except GeckoError as error:
        _complain(str(error))
        return 2
    except KeyboardInterrupt as interrupted:
        _complain(_how_to_go_on(words, options, saved=getattr(interrupted, "saved", False)))
        return INTERRUPTED


def _command(name: str) -> Callable[[argparse.Namespace], int]:
    """The command's function; imported here, so that `--help` does not wait for everything else."""
    command: Callable[[argparse.Namespace], int] = getattr(import_module(_HOMES[name], __name__), name)
    return command


def _survive_any_output() -> None:
    """What the output cannot encode is replaced, not raised; an output that is closed takes nothing."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    sys.stderr = sys.stderr or sys.stdout
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _complain(message: str) -> None:
    from ..display.words import clean  # here, because `--help` need not wait for what it imports

    try:
        sys.stderr.write(f"gecko-graph: {clean(message, lines=True)}\n")
        sys.stderr.flush()
    except OSError:  # the exit code says it, where nothing can be written
        _silence(sys.stderr)


def _silence(stream: TextIO) -> None:
    """What is still in the stream's buffer would raise again when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _leave(code: int) -> int:
    """End the process without waiting for the thread that the run goes on in, nor tearing down what it works with."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


def _how_to_go_on(words: list[str], options: argparse.Namespace, *, saved: bool) -> str:
    if saved:
        again = [*words, *(() if "--resume" in words else ("--resume",))]
        return f"interrupted; what was done is saved. To go on:\n  {shlex.join(['gecko-graph', *again])}"
    if options.command != "run" or options.save:
        return "interrupted"
    return "interrupted; nothing was kept (--save FILE keeps a run, so that it can be resumed)"
