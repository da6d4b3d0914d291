"""The command line: `gecko-graph demo | run | do | test | record | tools | convert | history | completion`.

Exit code: 0 accepted, 1 not accepted, 2 a user's mistake (a message on stderr, no traceback), 3 the model did not
answer, 4 a decision is waited for, 130 interrupted.
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
from typing import TextIO, TypeAlias

from ..errors import GeckoError, NoReply
from .arguments import build_parser

__all__ = ["build_parser", "main"]

Command: TypeAlias = Callable[[argparse.Namespace], int]

INTERRUPTED = 130
PIPE_CLOSED = 141
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

_MODULES = {"demo": ".running", "run": ".running", "record": ".running", "tools": ".tools", "convert": ".tools"}
_MODULES |= {"do": ".running", "history": ".history", "completion": ".completion", "test": ".test"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The command's arguments, else those of the process.

    Returns:
        The exit code.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    _prepare_streams()
    try:
        code = _run_command(arguments)
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # the reader of a pipe may stop early, as `head` does
            if error.errno not in DISK_ERRORS:
                raise
            _print_error(f"the output cannot be written: {error.strerror}")
        _discard_output(sys.stdout)
        code = PIPE_CLOSED if isinstance(error, BrokenPipeError) else 2
        return _exit_process(code) if argv is None else code
    return _exit_process(code) if code == INTERRUPTED and argv is None else code


def _run_command(arguments: list[str]) -> int:
    parser = build_parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as done:  # argparse has printed its error or its help
        return int(done.code or 0)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:  # imported here, so that `--help` does not wait for everything else
        command: Command = getattr(import_module(_MODULES[options.command], __name__), options.command)
        return command(options)
    except GeckoError as error:
        _print_error(str(error))
        return 3 if isinstance(error, NoReply) else 2
    except KeyboardInterrupt as interrupted:
        _print_error(_format_interruption(arguments, options, saved=any(interrupted.args)))
        return INTERRUPTED


def _prepare_streams() -> None:
    """Make the streams replace what they cannot encode, and a closed one discard what it is given."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    sys.stderr = sys.stderr or sys.stdout
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _print_error(message: str) -> None:
    from ..display.words import clean  # here, because `--help` need not wait for what it imports

    try:
        sys.stderr.write(f"gecko-graph: {clean(message, lines=True)}\n")
        sys.stderr.flush()
    except OSError:  # the exit code remains
        _discard_output(sys.stderr)


def _discard_output(stream: TextIO) -> None:
    """Discard what the stream has buffered: it would raise again when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _exit_process(code: int) -> int:
    """End the process without waiting for the thread that the run goes on in, nor tearing down what it works with."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


def _format_interruption(arguments: list[str], options: argparse.Namespace, *, saved: bool) -> str:
    if saved:
        again = [*arguments, *(() if "--resume" in arguments or options.command == "do" else ("--resume",))]
        if options.command == "record":  # which needs every reply: what is left goes on as a `run`
            again = ["run", *(word for word in again[1:] if word not in ("--force", "--out", options.out))]
        return f"interrupted; what was done is saved. To resume:\n  {shlex.join(['gecko-graph', *again])}"
    if options.command == "test" and options.save:
        return "interrupted; the finished conversations are saved: the same command goes on with the others"
    if options.command not in ("run", "test") or options.save:
        return "interrupted"
    return "interrupted; nothing was saved (--save FILE keeps a run, so that it can be resumed)"
