"""The command line: `gecko-graph demo | run | do | test | tools | convert | history | completion`.

Exit code: 0 accepted, 1 not accepted, 2 a mistake of the user (a message on stderr, no traceback), 3 the model did not
answer, 4 the plan waits for a decision, 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, TextIO

__all__ = ["main"]

MISTAKE, NO_ANSWER, INTERRUPTED = 2, 3, 130
PIPE_CLOSED = 141
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The command's arguments; by default those of the process.

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
    import click  # here, so that importing this module is fast

    from .arguments import COMPLETION_VARIABLE, cli

    if asked := os.environ.get(COMPLETION_VARIABLE):
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "gecko-graph", COMPLETION_VARIABLE, asked)
    try:
        with cli.make_context("gecko-graph", list(arguments), obj=arguments) as context:
            return int(cli.invoke(context))
    except click.exceptions.Exit as done:  # after --help and --version
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        _print_error(error.format_message() + _advise(error))
        return error.exit_code
    except KeyboardInterrupt as interrupted:
        _print_error(*interrupted.args or ("interrupted",))
        return INTERRUPTED
    except Exception as error:
        from ..errors import GeckoError, NoReply

        if not isinstance(error, GeckoError):
            raise
        _print_error(str(error))
        return NO_ANSWER if isinstance(error, NoReply) else MISTAKE


def _advise(error: Any) -> str:
    """Return a line with the help command that fits a mistake in the arguments."""
    if not (context := getattr(error, "ctx", None)):
        return ""
    option, command = getattr(error, "option_name", None), getattr(error, "command_name", None)
    hint = "lists the options"
    if option and (knob := option.lstrip("-").replace("-", "_")) in _read_knobs():
        hint = f"lists the knobs: --set {knob}=VALUE"
    elif command:
        file = f"; to run a file: gecko-graph run {command}" if "." in command else ""
        hint = f"lists the commands: {', '.join(context.command.commands)}{file}"
    return f"\n  {context.command_path} --help {hint}"


def _read_knobs() -> Iterable[str]:
    from ..context import GeckoContext  # here, because the import is slow and seldom needed

    return GeckoContext.model_fields


def _prepare_streams() -> None:
    """Make the streams replace characters that they cannot encode; replace a closed stream by the null device."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    sys.stderr = sys.stderr or sys.stdout
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _print_error(message: str) -> None:
    from ..display.words import clean  # here, because `--help` need not wait for the import

    try:
        sys.stderr.write(f"gecko-graph: {clean(message, lines=True)}\n")
        sys.stderr.flush()
    except OSError:  # the exit code remains
        _discard_output(sys.stderr)


def _discard_output(stream: TextIO) -> None:
    """Discard the stream's buffer, which would raise again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _exit_process(code: int) -> int:
    """End the process without waiting for the run's thread, and without tearing down the objects that it uses."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)
