"""Where the commands write to."""

from __future__ import annotations

import sys

from rich.console import Console


def screen(*, stderr: bool = False) -> Console:
    """A console for text that others wrote: nothing in it is markup. In a pipe, lines are as long as they are."""
    in_pipe = not (sys.stderr if stderr else sys.stdout).isatty()
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=in_pipe)
