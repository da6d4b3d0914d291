"""Where the commands write to."""

from __future__ import annotations

import sys

from rich.console import Console


class Screen(Console):
    """A console for text that others wrote: nothing in it is markup."""

    def on_broken_pipe(self) -> None:
        """Leave it to `main`, which ends quietly; rich would end the process here."""
        raise BrokenPipeError


def screen(*, stderr: bool = False) -> Screen:
    """The standard output, or the error output. In a pipe, lines are as long as they are."""
    in_pipe = not (sys.stderr if stderr else sys.stdout).isatty()
    return Screen(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=in_pipe)
