"""The console that commands write to."""

from __future__ import annotations

import sys

from rich.console import Console


class Screen(Console):
    """A console for text that others wrote: nothing in it is markup."""

    def on_broken_pipe(self) -> None:
        """Raise, so that `main` can exit quietly; rich would end the process here."""
        raise BrokenPipeError


def screen(*, stderr: bool = False) -> Screen:
    """Return the console of the standard or the error output. In a pipe, lines are not wrapped."""
    in_pipe = not (sys.stderr if stderr else sys.stdout).isatty()
    return Screen(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=in_pipe)
