"""The command line: `gecko-graph demo | run | tools | convert | history`.

Exit code: 0 accepted, 1 not accepted, 2 a user's mistake (said on stderr, without a traceback), 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from ..errors import GeckoError
from .arguments import build_parser

__all__ = ["build_parser", "main"]

INTERRUPTED = 130
PIPE_CLOSED = 141

_HOMES = {"demo": ".running", "run": ".running", "tools": ".tools", "convert": ".tools", "history": ".history"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The command's words, else those of the process.

    Returns:
        The exit code.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    _survive_any_character()
    parser = build_parser()
    try:
        options = parser.parse_args(words)
    except SystemExit as done:  # argparse has said what is wrong, or printed its help
        return int(done.code or 0)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        code = _command(options.command)(options)
        sys.stdout.flush()
        return code
    except GeckoError as error:
        _complain(str(error))
        return 2
    except KeyboardInterrupt as interrupted:
        _complain(_how_to_go_on(words, options, saved=getattr(interrupted, "saved", False)))
        return _leave(INTERRUPTED) if argv is None else INTERRUPTED
    except BrokenPipeError:  # whoever reads the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _leave(PIPE_CLOSED) if argv is None else PIPE_CLOSED


def _command(name: str) -> Callable[[argparse.Namespace], int]:
    """The command's function; imported here, so that `--help` does not wait for everything else."""
    command: Callable[[argparse.Namespace], int] = getattr(import_module(_HOMES[name], __name__), name)
    return command


def _survive_any_character() -> None:
    """What the output cannot encode is replaced, not raised."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _complain(message: str) -> None:
    from ..display.words import clean  # here, because `--help` need not wait for what it imports

    sys.stderr.write(f"gecko-graph: {clean(message, lines=True)}\n")


def _leave(code: int) -> int:
    """End the process without waiting for the thread that the run goes on in, nor tearing down what it works with."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _how_to_go_on(words: list[str], options: argparse.Namespace, *, saved: bool) -> str:
    if saved:
        again = [*words, *(() if "--resume" in words else ("--resume",))]
        return f"interrupted; what was done is saved. To go on:\n  {shlex.join(['gecko-graph', *again])}"
    if options.command != "run" or options.save:
        return "interrupted"
    return "interrupted; nothing was kept (--save FILE keeps a run, so that it can be resumed)"
