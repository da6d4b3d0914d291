"""`data verify`: the rows of a data set, each with what rules and a judge make of its label."""

from __future__ import annotations

from types import SimpleNamespace as Options

from ..errors import GeckoError


def verify(options: Options) -> int:
    """Write the rows with their verdicts, and show what was found."""
    raise GeckoError("data verify: not built yet")
